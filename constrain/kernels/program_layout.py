"""Layout of a Program in slot CODE: instructions with their operands, and the blocks that instructions refer to.

An instruction 0 .. 255 accepts that byte. All others are an opcode followed by its operands.
"""

from __future__ import annotations

from typing import Final

# fmt: off

# ---- instructions: 0 .. 255 is that byte ---------------------------------------------------------------------------
JUMP: Final = 256        # target
SPLIT: Final = 257       # n, n targets
CALL: Final = 258        # rule cell: [entry address or 0, rule]
END: Final = 259         # of the rule
LEAF: Final = 260        # leaf, low, high or -1 characters
SET: Final = 261         # string block; with any escapes, the closing quote is included
ENTER: Final = 262       # start counting
TEST: Final = 263        # low, high or -1, exit: enough rounds -> exit, not too many -> another round
COUNT: Final = 264       # cap: one more round (counting stops at cap)
INIT: Final = 265        # object block: no member yet
KEYS: Final = 266        # object block: a declared key, its closing quote included
OTHER: Final = 267       # object block, leaf, target, mark or -1, finite: an undeclared key with its closing quote
MORE: Final = 268        # object block: continue only if another member may come
CLOSE: Final = 269       # object block: continue only if the object may close
UNIQUE: Final = 270      # no members yet
MEMBER: Final = 271      # whether its language is infinite: a member begins; a CALL follows, and
MEMBER_END: Final = 272  # target or 0: the member ends; if it equals an earlier one: continue at the target, if any
PASS: Final = 273        # rule cell: tail call of a rule, which takes over the register
PARSE: Final = 274       # parser block: a text of its language
LENGTHS: Final = (2, 0, 2, 1, 4, 2, 1, 4, 2, 2, 2, 6, 2, 2, 1, 2, 2, 2, 2)


# ---- operands: code[pc + ARG_...] of the instruction at pc -------------------------------------------------------
ARG_TARGET: Final = 1    # JUMP
ARG_COUNT: Final = 1     # SPLIT: number of targets
ARG_TARGETS: Final = 2   # SPLIT: the first
ARG_RULE: Final = 1      # CALL, PASS: rule cell
ARG_LEAF: Final = 1      # LEAF
ARG_LOW: Final = 2       # LEAF: least characters
ARG_HIGH: Final = 3      # LEAF: most characters, -1: unbounded
ARG_STRINGS: Final = 1   # SET: string block
ARG_LEAST: Final = 1     # TEST: least rounds
ARG_MOST: Final = 2      # TEST: most rounds, -1: unbounded
ARG_EXIT: Final = 3      # TEST: where to continue after the last round
ARG_CAP: Final = 1       # COUNT
ARG_OBJECT: Final = 1    # INIT, KEYS, OTHER, MORE, CLOSE: object block
ARG_NAME: Final = 2      # OTHER: leaf of the name
ARG_NEXT: Final = 3      # OTHER: where to continue after the name
ARG_MARK: Final = 4      # OTHER: number of the mark, -1
ARG_FINITE: Final = 5    # OTHER: whether some prefixes have only finitely many completions in the class
ARG_ENDLESS: Final = 1   # MEMBER: whether the language of the member is infinite
ARG_EQUAL: Final = 1     # MEMBER_END: where to continue after an equal member, 0: refuse it
ARG_PARSER: Final = 1    # PARSE: parser block


# ---- object blocks in CODE ---------------------------------------------------------------------------------------
OBJ_COUNT: Final = 0     # declared keys n
OBJ_ORDER: Final = 1     # 0: keys in schema order, 1: in any order
OBJ_LOW: Final = 2
OBJ_HIGH: Final = 3      # -1: unbounded
OBJ_OTHERS: Final = 4    # number of classes of undeclared names
OBJ_KEYS: Final = 5      # string block of the keys, sorted
OBJ_WORDS: Final = 6     # words of a bit set of keys
OBJ_REQUIRED: Final = 7  # address of a bit set
OBJ_NEEDS: Final = 8     # address of n bit sets, or 0
OBJ_TARGETS: Final = 9   # address of n pcs: what follows key i
OBJ_RANKS: Final = 10    # address of n ints: rank of key i in the sorted block
OBJ_COUNTED: Final = 11  # whether the number of members matters
OBJ_EXCLUDED: Final = 12 # string block of the decoded names that no undeclared key may have, sorted
OBJ_MARKS: Final = 13    # number of marks: classes of which a key must come; they follow the keys in bit sets
OBJ_W: Final = 14


# ---- string blocks in CODE: n, 1 if spelled with any escapes, n + 1 offsets (absolute), bytes --------------------
STR_COUNT: Final = 0
STR_ESCAPES: Final = 1
STR_OFFSETS: Final = 2


# ---- parser blocks in CODE: see lalr.parser_code -------------------------------------------------------------------
P_STATES: Final = 0      # of the LALR table
P_TERMINALS: Final = 1   # the last is the end of the text
P_NONTERMINALS: Final = 2
P_WORDS: Final = 3       # words of a bit set of terminals
P_ACTION: Final = 4      # address of [state, terminal] 0: error, shift to + 1, or -1 - rule
P_GOTO: Final = 5        # address of [state, nonterminal]
P_LEFT: Final = 6        # address of [rule] nonterminal
P_LENGTH: Final = 7      # address of [rule] number of symbols on the right
P_SHIFTS: Final = 8      # address of [state, words] terminals that are shifted
P_REDUCES: Final = 9     # address of [state + 1] offsets from P_RULES, in entries
P_RULES: Final = 10      # address of [entry, 1 + words] rule, lookahead terminals
P_SCAN: Final = 11       # address of [parser state] scanner start state
P_DELTA: Final = 12      # address of [scanner state, 256]
P_ACCEPT: Final = 13     # address of [scanner state] row of accept_table << 1 | whether it is the same for all bytes
P_ACCEPT_TABLE: Final = 14  # address of [row, 257] terminal or -1
P_POSSIBLE: Final = 15   # address of [scanner state, words]
P_BYTES: Final = 16      # address of [scanner state, 8] bytes that continue
P_FIRST: Final = 17      # address of [8] bytes that begin a lexeme
P_KINDS: Final = 18      # address of [terminal] kinds, below
P_IGNORED: Final = 19    # address of [words] terminals that are ignored
P_START: Final = 20
P_NEWLINE: Final = 21    # terminal, -1: indentation means nothing
P_INDENT: Final = 22
P_DEDENT: Final = 23
P_TAB: Final = 24        # columns of a tab
P_INDEX: Final = 25      # which parser of the program it is
P_CLASS: Final = 26      # address of [scanner state] its class: the terminals that it can still become
P_CLASSES: Final = 27    # how many
P_KINDS_OF_CLASS: Final = 28 # address of [class, words] terminals
P_DEAD_ENDS: Final = 29  # 0: none; 1: stacks must be requested one at a time; BY_LETTERS: terminals are letters
P_ROWS: Final = 30       # address of [state, words] terminals that are shifted, or reduced before
P_W: Final = 31
BY_LETTERS: Final = 2    # in P_DEAD_ENDS
IGNORED: Final = 1
NEWLINE: Final = 2
OPENING: Final = 3
CLOSING: Final = 4
# fmt: on
