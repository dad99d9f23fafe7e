"""Layout of a Program in slot CODE: instructions with their operands, and the blocks that instructions refer to.

An instruction 0 .. 255 accepts that byte. All others are an opcode followed by its operands.
"""

from __future__ import annotations

from typing import Final

# fmt: off

# ---- instructions: 0 .. 255 is that byte ---------------------------------------------------------------------------
JUMP: Final = 256        # target
SPLIT: Final = 257       # n, n targets
CALL: Final = 258        # rule cell: [entry or 0, rule]
END: Final = 259         # of the rule
LEAF: Final = 260        # leaf, low, high or -1 characters
SET: Final = 261         # string block
ENTER: Final = 262       # start counting
TEST: Final = 263        # low, high or -1, exit: enough rounds -> exit, not too many -> another round
COUNT: Final = 264       # cap: one round more (no use in counting beyond cap)
INIT: Final = 265        # object block: nothing seen
KEYS: Final = 266        # object block: a declared key, its closing quote included
OTHER: Final = 267       # object block, leaf, target, mark or -1, few: an undeclared key, its closing quote included
                         # few: whether some texts begin only finitely many names of the class
MORE: Final = 268        # object block: only if another member may come
CLOSE: Final = 269       # object block: only if the object may close
UNIQUE: Final = 270      # no members yet
MEMBER: Final = 271      # whether its language is endless: a member begins; a CALL follows, and
MEMBER_END: Final = 272  # target or 0: the member is whole; where an equal one was there: on at the target, if any
PASS: Final = 273        # rule cell: on with a rule in place of this one, which takes over the register
PARSE: Final = 274       # parser block: a text of its language
LENGTHS: Final = (2, 0, 2, 1, 4, 2, 1, 4, 2, 2, 2, 6, 2, 2, 1, 2, 2, 2, 2)


# ---- operands: code[pc + ARG_...] of the instruction at pc -------------------------------------------------------
ARG_TARGET: Final = 1    # JUMP
ARG_COUNT: Final = 1     # SPLIT: number of targets
ARG_TARGETS: Final = 2   # SPLIT: the first
ARG_RULE: Final = 1      # CALL, PASS: rule cell
ARG_LEAF: Final = 1      # LEAF
ARG_LOW: Final = 2       # LEAF: least characters
ARG_HIGH: Final = 3      # LEAF: most characters, -1: any
ARG_STRINGS: Final = 1   # SET: string block
ARG_LEAST: Final = 1     # TEST: least rounds
ARG_MOST: Final = 2      # TEST: most rounds, -1: any
ARG_EXIT: Final = 3      # TEST: where to continue after the last round
ARG_CAP: Final = 1       # COUNT
ARG_OBJECT: Final = 1    # INIT, KEYS, OTHER, MORE, CLOSE: object block
ARG_NAME: Final = 2      # OTHER: leaf of the name
ARG_NEXT: Final = 3      # OTHER: where to continue after the name
ARG_MARK: Final = 4      # OTHER: number of the mark, -1
ARG_FINITE: Final = 5    # OTHER: whether some texts begin only finitely many names of the class
ARG_ENDLESS: Final = 1   # MEMBER: whether the language of the member is infinite
ARG_EQUAL: Final = 1     # MEMBER_END: where to continue after an equal member, 0: refuse it
ARG_PARSER: Final = 1    # PARSE: parser block


# ---- object blocks in CODE ---------------------------------------------------------------------------------------
OBJ_COUNT: Final = 0     # declared keys n
OBJ_ORDER: Final = 1     # 0 schema, 1 any
OBJ_LOW: Final = 2
OBJ_HIGH: Final = 3      # or -1
OBJ_OTHERS: Final = 4    # classes of undeclared names
OBJ_KEYS: Final = 5      # string block of the keys, sorted
OBJ_WORDS: Final = 6     # words of a bit set of keys
OBJ_REQUIRED: Final = 7  # address of a bit set
OBJ_NEEDS: Final = 8     # address of n bit sets, or 0
OBJ_TARGETS: Final = 9   # address of n pcs: what follows key i
OBJ_RANKS: Final = 10    # address of n ints: place of key i in the sorted block
OBJ_COUNTED: Final = 11  # whether the number of members matters
OBJ_EXCLUDED: Final = 12 # string block of the decoded names that no undeclared key may have, sorted
OBJ_MARKS: Final = 13    # marks: classes of which a key must come; they stand behind the keys in bit sets
OBJ_W: Final = 14


# ---- string blocks in CODE: n, 1 if spelled with any escapes, n + 1 offsets (absolute), bytes --------------------
STR_COUNT: Final = 0
STR_ESCAPES: Final = 1
STR_OFFSETS: Final = 2


# ---- parser blocks in CODE: see automata.parser --------------------------------------------------------------------
P_STATES: Final = 0      # of the LALR table
P_TERMINALS: Final = 1   # the last is the end of the text
P_NONTERMINALS: Final = 2
P_WORDS: Final = 3       # words of a bit set of terminals
P_ACTION: Final = 4      # address of [state, terminal] 0, shift to + 1, or -1 - rule
P_GOTO: Final = 5        # address of [state, nonterminal]
P_LEFT: Final = 6        # address of [rule] nonterminal
P_LENGTH: Final = 7      # address of [rule] symbols on the right
P_SHIFTS: Final = 8      # address of [state, words] terminals that are shifted
P_REDUCES: Final = 9     # address of [state + 1] offsets from P_RULES, in entries
P_RULES: Final = 10      # address of [entry, 1 + words] rule, terminals before which it is reduced
P_SCAN: Final = 11       # address of [state] where the scanner starts
P_DELTA: Final = 12      # address of [scanner state, 256]
P_ACCEPT: Final = 13     # address of [scanner state] row of verdicts << 1 | whether it is the same for all bytes
P_VERDICTS: Final = 14   # address of [row, 257] terminal or -1
P_POSSIBLE: Final = 15   # address of [scanner state, words]
P_BYTES: Final = 16      # address of [scanner state, 8] bytes that go on
P_FIRST: Final = 17      # address of [8] bytes that begin a lexeme
P_KINDS: Final = 18      # address of [terminal] kinds, below
P_IGNORED: Final = 19    # address of [words] terminals that are ignored
P_START: Final = 20
P_NEWLINE: Final = 21    # terminal, -1: indentation means nothing
P_INDENT: Final = 22
P_DEDENT: Final = 23
P_TAB: Final = 24        # columns of a tab
P_INDEX: Final = 25      # which parser of the program it is
P_CLASS: Final = 26      # address of [scanner state] its class: what it can still become
P_CLASSES: Final = 27    # how many
P_KINDS_OF_CLASS: Final = 28 # address of [class, words] terminals
P_DEAD_ENDS: Final = 29  # 0: none; 1: stacks must be asked about one by one; BY_LETTERS: and terminals are letters
P_ROWS: Final = 30       # address of [state, words] terminals that may be accepted: shifted, or reduced before
P_W: Final = 31
BY_LETTERS: Final = 2    # in P_DEAD_ENDS
IGNORED: Final = 1
NEWLINE: Final = 2
OPENING: Final = 3
CLOSING: Final = 4
# fmt: on
