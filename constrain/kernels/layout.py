"""Where every number is: the slots of a context, the widths and fields of records, the instructions.

A *context* is an int64 array of (address, length) pairs, one pair a slot; each slot is a flat int32 array. Kernels
take the context and ints, so that entering one costs the same however many arrays it reads. Slots up to `QUESTIONS`
belong to the state cache of one thread; those from `TABLE` on belong to the MaskTable of the Vocabulary and are shared.

A slot of records of one width X_W holds field X_F of record k at k * X_W + X_F.
"""

from __future__ import annotations

from typing import Final

# fmt: off
# ---- slots of a context ----------------------------------------------------------------------------------
CODE: Final = 0          # program: instructions, rule cells, string blocks, object blocks
HEAD: Final = 1          # counts and status of the state cache, fields below
STARTS: Final = 2        # [leaf] leaf state in which the program's leaf starts in this table, -1: not asked yet
SETS: Final = 3          # [set, SET_W] sets of configurations
CONFIGS: Final = 4       # [config, 5] pc, leaf state or string cursor or -1, stack node, register, extra
SET_HASH: Final = 5      # open addressing: set ids
WIDE: Final = 6          # [row, 256] memoised steps of sets that allow more than NARROW bytes, -1: unknown
NODES: Final = 7         # [node, 4] stack nodes: first edge, edges, nodes interned with it | IN_MEMBER, hash slot
EDGES: Final = 8         # [edge, 3] return pc, register, stack node below
NODE_HASH: Final = 9
CURSORS: Final = 10      # [point, 5] place in a string block: block, low, high, depth, hash slot
CURSOR_HASH: Final = 11
OBJECTS: Final = 12      # object states, variable length, addressed by offset; fields below
OBJECT_HASH: Final = 13
NAMES: Final = 14        # [name, 3] byte chains and lists of names: parent, value, hash slot
NAME_HASH: Final = 15
ITEMS: Final = 16        # closure scratch: [item, 5] as CONFIGS; a finished one has pc = -pc - 1
SEEN: Final = 17         # closure scratch: [slot, 2] stamp, item
CALLS: Final = 18        # closure scratch: [call, 4] rule cell, first edge or -1, returned, visit state or final id
PENDING_EDGES: Final = 19 # closure scratch: [edge, 5] return pc, register, extra, node, next edge or -1
MISSING: Final = 20      # closure scratch: rule cells that are not linked yet
BUFFER: Final = 21       # scratch: serialised stack nodes, decoded names
MASKS: Final = 22        # masks that were made, each as what is other than in a row; see `mask_deltas`
STACK: Final = 23        # scratch of trie walks: [entry, 3] trie node, set, depth << 8 | byte

SPARE: Final = 24        # scratch: one mask
PATH: Final = 25         # closure scratch: [entry, 2] calls being visited

GUARDS: Final = 26       # [guard, GUARD_W] what the caller said about members that must differ, fields below
GUARD_HASH: Final = 27
WORKLIST: Final = 28     # scratch of walks: [entry, WORK_W] sets whose tokens are examined one by one

PAIRS: Final = 29        # [pair, PAIR_W] stacks of parsers and of indentation: a value and the pair below
PAIR_HASH: Final = 30
LISTS: Final = 31        # lists of lexemes in the making, variable length, addressed by offset; fields below
LIST_HASH: Final = 32
MAY_SHIFT: Final = 33    # [entry, 2 + words] stack (0: none), words, terminals that it accepts
LISTING: Final = 34      # scratch: the list in the making
UNIONS: Final = 35       # [union, UNION_W] what a lexeme can still become beside others: parser block, count, scanner
                         # states, offset in MAY_SHIFT
SCANNERS: Final = 36     # [parser of the program] the table's number of its scanner, -1: not asked yet

ROUTE: Final = 37        # scratch of walks: the bytes on the way to the node

QUESTIONS: Final = 38    # [question, QUESTION_W] what the mask at work could not know of some tokens, fields below

TABLE: Final = 39        # counts and status of the table, fields below
ENDS: Final = 40         # end tokens
LEAF_NEXT: Final = 41    # [leaf state, 256] next leaf state, -1: refused
LEAVES: Final = 42       # [leaf state, LEAF_W] fields below
LEAF_HASH: Final = 43
MACHINES: Final = 44     # [machine, 2] mode, offset in DFAS
DFAS: Final = 45         # states n, classes c, ranges r; bounds[r], classes[r], class of ASCII[128], accepting[n],
                         # distance[n], delta[n, c], safe[n]: so many characters are
                         # surely not refused from there on
ROWS: Final = 46         # [row, words] tokens that stay inside a leaf from a leaf state
TRIE: Final = 47         # [trie node, 2] first edge, first token; the next node holds the ends
TRIE_EDGES: Final = 48   # child << 8 | byte, ascending by byte
TRIE_TOKENS: Final = 49  # [entry, 2] token, characters before the leaf was left | ESCAPED
TRIE_END: Final = 50     # [main trie node] the first node after its subtree (main trie nodes are in preorder)
BY_LENGTH: Final = 51    # rows by room: for each row ordered so, ROOMS offsets and then its tokens
TRIE_TEMP: Final = 52    # scratch of trie building
BLOB: Final = 53         # the bytes of all tokens, 4 a word
OFFSETS: Final = 54      # [token + 1] where they begin
BELOW: Final = 55        # [main trie node, 4] the bytes in its subtree: 32 .. 127 as bits, height | OTHERS
LEX_ROOTS: Final = 56    # [chain] the first reader of all tokens
LEX_READERS: Final = 57  # [reader, READER_W] what a scanner makes of tokens, or of what remains of them; fields below
LEX_CLASSES: Final = 58  # [class, CLASS_W]
LEX_EXITS: Final = 59    # [exit, EXIT_W]
LEX_WORDS: Final = 60    # tokens, remainders (token << 8 | bytes read), rows of bits
LEX_CACHE: Final = 61    # [token, 4] state after its first byte, what was read from there: see `lexemes.read`
SLOTS: Final = 62

# ---- HEAD --------------------------------------------------------------------------------------------------
STATUS: Final = 0        # what the kernel requests: one of the codes below
ARGUMENT: Final = 1      # and for which slot, rule, leaf or state
N_SETS: Final = 2
N_CONFIGS: Final = 3
N_WIDE: Final = 4
N_NODES: Final = 5
N_EDGES: Final = 6
N_CURSORS: Final = 7
N_OBJECTS: Final = 8
N_NAMES: Final = 9
N_ITEMS: Final = 10
N_CALLS: Final = 11
N_PENDING_EDGES: Final = 12
N_MISSING: Final = 13
CLOSURES: Final = 14     # closures begun: what SEEN is stamped with
ACCEPTS: Final = 15      # the closure at work reached the end of the text
UNSURE: Final = 16       # the closure at work reached a name of an object one of whose names is not known
N_MASKS: Final = 17
WORDS: Final = 18        # int32 words of a mask
ENTRY: Final = 19        # rule cell where the text starts
TEXT: Final = 20         # the closure at work: what was written since the outermost member began, OPEN_NAME: not known
CANDIDATES: Final = 21   # and the members (their registers) that are still like one that was there
N_GUARDS: Final = 22
N_WORKLIST: Final = 24
SPELLING: Final = 25     # for NEED_NAME: chain of bytes
NAMED_IN: Final = 26     # for NEED_NAME: object state
BEGUN: Final = 27        # the closure at work began a member
CUT: Final = 23          # the closure at work refused the end of a member that was there
N_PAIRS: Final = 28
N_LISTS: Final = 29
N_MAY_SHIFT: Final = 30
N_UNIONS: Final = 31
REQUEST_BLOCK: Final = 32 # for NEED_JOINT: parser block
REQUEST_LIST: Final = 33 # for NEED_JOINT: where the list begins in LISTING
BUILDING: Final = 34     # whether readers may be made: the caller holds the lock of the table
NAMED: Final = 35        # the closure at work ended a name that is not known, and that may be taken
VISITED: Final = 36      # trie nodes that walks have visited, for whoever counts the work
STEPS: Final = 37        # work of the mask at hand: configurations of large sets taken by a byte, trie nodes, rows
MOST_STEPS: Final = 38   # how many it may take
MAY_LACK: Final = 39     # whether a set may have no token, as the vocabulary does not spell every byte
N_QUESTIONS: Final = 40
EPOCH: Final = 46        # as of State cache
WORKER: Final = 47       # which worker fills masks from this state cache, where several do
HEAD_W: Final = 48

# ---- TABLE -------------------------------------------------------------------------------------------------
N_LEAVES: Final = 2
N_MACHINES: Final = 3
N_DFAS: Final = 4
N_ROWS: Final = 5
N_TRIE: Final = 6
N_TRIE_EDGES: Final = 7
N_TRIE_TOKENS: Final = 8
N_BY_LENGTH: Final = 9
T_WORDS: Final = 10
LONGEST: Final = 11      # most bytes of a token
N_LEX_READERS: Final = 12
N_LEX_CLASSES: Final = 13
N_LEX_EXITS: Final = 14
N_LEX_WORDS: Final = 15
LEX_CACHED: Final = 16   # the scanner that LEX_CACHE is about, + 1
FREE_ROW: Final = 17     # the row of any JSON string, + 1

# ---- status: what a kernel that returned -1 requests ---------------------------------------------------------
FULL: Final = 1          # more room in slot ARGUMENT
NEED_RULES: Final = 2    # the rules in MISSING
NEED_START: Final = 3    # STARTS[ARGUMENT]
NEED_LEAF: Final = 4     # the transitions of leaf state ARGUMENT
NEED_ROW: Final = 5      # the row of leaf state ARGUMENT
NEED_SUFFIXES: Final = 6 # the suffix trie of leaf state ARGUMENT
NEED_BY_LENGTH: Final = 7 # the row of leaf state ARGUMENT sorted by length
NEED_CANDIDATES: Final = 8 # which members of list ARGUMENT may still equal the one of HEAD[TEXT]
NEED_IS_UNIQUE: Final = 9 # whether the member of register ARGUMENT that ends at HEAD[TEXT] is unique
NEED_NAME_FREE: Final = 11 # whether HEAD[SPELLING] can become a key that OTHER at ARGUMENT may take
NEED_CAN_DIFFER: Final = 10 # whether set ARGUMENT, which has candidates, can reach a unique member
NEED_UNION: Final = 12   # what the last of the ARGUMENT lexemes in LISTING can still become beside those before it

NEED_SCANNER: Final = 13 # the number of the scanner of parser block ARGUMENT
NEED_READERS: Final = 14 # the same call, while readers may be made
TABLE_FULL: Final = 15
NEED_ALIVE: Final = 16   # by which terminals stack ARGUMENT comes to an end at last
SPENT: Final = 17        # nothing: the mask takes more than MOST_STEPS
STUCK: Final = 18        # nothing: no token is allowed, though the text may not end here
NEED_ANSWERS: Final = 19 # the questions in QUESTIONS

# ---- QUESTIONS -----------------------------------------------------------------------------------------------
QUESTION_W: Final = 5
Q_STATUS: Final = 0      # NEED_WATCH, NEED_VERDICT, NEED_NAME or NEED_WAY
Q_ARGUMENT: Final = 1    # ARGUMENT, TEXT, SPELLING and NAMED_IN of HEAD, as when it was asked
Q_TEXT: Final = 2
Q_SPELLING: Final = 3
Q_NAMED_IN: Final = 4

# ---- records of the state cache ----------------------------------------------------------------------------------
# CONFIGS and ITEMS (of a closure; a finished item has pc = -pc - 1): one configuration
CONFIG_W: Final = 5
CONFIG_PC: Final = 0     # an instruction that takes a byte
CONFIG_PLACE: Final = 1  # leaf state, string cursor or list of lexemes, -1: none
CONFIG_NODE: Final = 2   # stack node
CONFIG_REGISTER: Final = 3 # of the running rule: rounds counted, object state, or members of an array
CONFIG_EXTRA: Final = 4  # characters counted, the name spelled so far, or the escape that is pending
# CONFIGS, after the configurations of a set that is IS_MEMBER: the text of the member
MEMBER_TEXT: Final = 0
MEMBER_CANDIDATES: Final = 1 # list of the members that may still be equal
MEMBER_GUARD: Final = 2  # number in GUARDS, -1
# ITEMS: index in CALLS of a call, where there are many: CONFIG_PC is -CALLED - cell, CONFIG_PLACE the index
# NODES: a stack node; equal stacks are one node
NODE_W: Final = 4
NODE_FIRST: Final = 0    # first edge
NODE_EDGES: Final = 1    # number of edges
NODE_BLOCK: Final = 2    # nodes that were interned with it, of the first of them | IN_MEMBER
NODE_SLOT: Final = 3     # hash slot
# EDGES, and edges in BUFFER: one caller
EDGE_W: Final = 3
EDGE_PC: Final = 0       # where the caller continues
EDGE_REGISTER: Final = 1 # of the caller
EDGE_BELOW: Final = 2    # stack node of the caller
# CURSORS: the strings low .. high - 1 of a string block, of which depth bytes were read
CURSOR_W: Final = 5
CURSOR_BLOCK: Final = 0
CURSOR_LOW: Final = 1
CURSOR_HIGH: Final = 2
CURSOR_DEPTH: Final = 3
CURSOR_SLOT: Final = 4   # hash slot
# NAMES: byte chains and lists, as their last element and what is before it
NAME_W: Final = 3
NAME_PARENT: Final = 0
NAME_VALUE: Final = 1    # a byte, or the id of a chain
NAME_SLOT: Final = 2     # hash slot
# SEEN: hash table of a closure
SEEN_W: Final = 2
SEEN_STAMP: Final = 0    # the closure that wrote it, as counted by CLOSURES
SEEN_ITEM: Final = 1
# CALLS: calls of a closure, which are its new stack nodes
CALL_W: Final = 4
CALL_RULE: Final = 0     # rule cell
CALL_EDGE: Final = 1     # first pending edge, -1
CALL_RETURNED: Final = 2 # whether the rule ended without taking a byte
CALL_NODE: Final = 3     # state of the visit (0: not visited, below 0: at work), then the id of the stack node
# PENDING_EDGES: pending edges, the callers of a call, as a linked list
PENDING_W: Final = 5
PENDING_PC: Final = 0
PENDING_REGISTER: Final = 1
PENDING_EXTRA: Final = 2
PENDING_BELOW: Final = 3 # stack node; -2 - index of a call of this closure
PENDING_NEXT: Final = 4  # next pending edge, -1
# PATH, while the calls of a closure are visited depth first
VISIT_W: Final = 2
VISIT_CALL: Final = 0
VISIT_EDGE: Final = 1    # the pending edge to follow next
# PATH, while reductions are tried: the stacks that wait for others
WAIT_W: Final = 4
WAIT_STACK: Final = 0
WAIT_SHIFTS: Final = 1   # its terminals in MAY_SHIFT
WAIT_RULE: Final = 2     # the rule to try next
WAIT_AFTER: Final = 3    # the stack after the rule before that, -1
# WORKLIST: sets with candidates that a walk met, whose tokens are examined one by one
WORK_W: Final = 5
WORK_NODE: Final = 0     # trie node
WORK_SET: Final = 1
WORK_LEAST: Final = 2    # least and most characters in the leaf, as of a walk
WORK_MOST: Final = 3
WORK_WALKED: Final = 4   # whether the tokens below were walked already
# MAY_SHIFT: header, then a bit set of terminals
SHIFTS_STACK: Final = 0  # 0: of no stack
SHIFTS_WORDS: Final = 1
SHIFTS_FIRST: Final = 2

# ---- records of the table ----------------------------------------------------------------------------------------
# TRIE: a node; the next node holds the ends
TRIE_W: Final = 2
TRIE_FIRST_EDGE: Final = 0
TRIE_FIRST_TOKEN: Final = 1
# TRIE_TOKENS
ENTRY_W: Final = 2
ENTRY_TOKEN: Final = 0
ENTRY_CHARACTERS: Final = 1 # before the leaf was left | ESCAPED
# BELOW: the bytes in the subtree of a main trie node
BELOW_W: Final = 4
BELOW_BYTES: Final = 0   # 3 words: which of the bytes 32 .. 127
BELOW_HEIGHT: Final = 3  # height of the subtree | OTHERS
# MACHINES
MACHINE_W: Final = 2
MACHINE_MODE: Final = 0
MACHINE_DFA: Final = 1   # offset in DFAS
# LEX_CACHE: what `lexemes.read` found for a token from a scanner state, without its first byte
CACHED_W: Final = 4
CACHED_STATE: Final = 0  # state after its first byte
CACHED_END: Final = 1
CACHED_ITEM: Final = 2
CACHED_DOUBT: Final = 3
# STACK of a walk of the trie; `try_from` uses two int32s an entry, without the byte
WALK_W: Final = 3
WALK_NODE: Final = 0     # trie node
WALK_SET: Final = 1
WALK_BYTE: Final = 2     # depth << 8 | the byte that led there
# TRIE_TEMP while readers are made: what was read of each token
READ_W: Final = 3
READ_END: Final = 0      # class of the scanner state (0 or more), or -2 - an exit
READ_ITEM: Final = 1     # what remains: token << 8 | bytes read
READ_DOUBT: Final = 2    # 0, DOUBTFUL, UNREAD or OPEN_END
# TRIE_TEMP while a row is made: from MERGED_FIRST on the places where the leaf may be left, or tokens and their room
MERGED_FIRST: Final = 4
MERGED_W: Final = 2
MERGED_NODE: Final = 0   # trie node, or token
MERGED_CHARACTERS: Final = 1
# TRIE_TEMP, downwards from its end: the stack of a descent
DESCENT_W: Final = 3
DESCENT_NODE: Final = 0
DESCENT_STATE: Final = 1 # leaf state
DESCENT_CHARACTERS: Final = 2

# ---- SETS ----------------------------------------------------------------------------------------------------
SET_W: Final = 16        # one cache line
SET_FIRST: Final = 0     # first config
SET_COUNT: Final = 1     # configs
SET_FLAGS: Final = 2
SET_ALLOWED: Final = 3   # bytes allowed (perhaps a few too many: a step decides), NARROW + 1: many
SET_BYTES: Final = 4     # the allowed bytes, 4 a word; if many: the row in WIDE, -1: none
SET_KEYLESS: Final = 5   # if many and IS_NAMING: the same set with names left open, -1: not made
SET_NEXT: Final = 6      # memoised steps, one an allowed byte, -1: unknown; if many: the allowed bytes as 256 bits
SET_MASK: Final = 14     # offset in MASKS or -1
SET_SLOT: Final = 15     # hash slot
NARROW: Final = 8
IS_ACCEPTING: Final = 1
IS_NAMING: Final = 4     # an undeclared key is being spelled, and what was spelled is kept
IS_UNSURE: Final = 2     # some byte below may be refused: tokens through here are taken from the start
IS_MEMBER: Final = 8     # a member of a Unique is being written: behind the configurations stands one more record,
                         # MEMBER_TEXT and following
IS_OPEN: Final = 16      # the same, but the text is not kept
HAS_CANDIDATES: Final = 32 # the member is still like one that was there
CAN_DIFFER: Final = 64   # it is known that a set with candidates can reach a unique member
CANNOT_DIFFER: Final = 128 # it is known that it cannot
IS_CUT: Final = 256      # a member that was there could have ended here
IS_BEGUN: Final = 512    # a member begins here
IS_NAMED: Final = 1024   # a name that is not known ends here, and may be taken
DIFFER_KNOWN: Final = CAN_DIFFER | CANNOT_DIFFER
DEAD: Final = 0          # the empty set

IN_MEMBER: Final = 1 << 24 # NODES: what returns here is inside a member
RETURN: Final = 0        # EDGES: the pc of an END. An edge to it has all edges of the node below
FEW_EDGES: Final = 16    # of a node, and calls of a closure, up to which a linear search is as quick
CALLED: Final = 1 << 28  # ITEMS: -CALLED - cell, index in CALLS: a call, where there are many. More than any pc
LARGE_SET: Final = 16    # configurations of a set from which on walks count them

# ---- LEAVES --------------------------------------------------------------------------------------------------
LEAF_W: Final = 24
LEAF_MACHINE: Final = 0
LEAF_DECODER: Final = 1  # state of the decoder in front: kind << KIND | digits left << LEFT | value
LEAF_STATE: Final = 2    # state of the Dfa behind it (for uniform kinds: the state after the character)
LEAF_FLAGS: Final = 3
LEAF_NEED: Final = 4     # least number of further characters
LEAF_ALLOWED: Final = 5  # number of allowed bytes
LEAF_ROW: Final = 6      # row, -1: not made, -2: too few bytes are allowed for a row to pay
LEAF_SUFFIXES: Final = 7 # root of the suffix trie in TRIE, -1: not made, -2: too large to be kept
LEAF_BY_LENGTH: Final = 8 # offset in ORDERS, -1: not made
LEAF_SLOT: Final = 9
LEAF_LONGEST: Final = 10 # most characters that a token of the row needs
LEAF_SUFFIXES_END: Final = 11 # the node after the last of the suffix trie
LEAF_BYTES: Final = 12   # allowed bytes as 256 bits: 8 words
LEAF_EXITS: Final = 1    # the leaf may be left here
LEAF_BOUNDARY: Final = 2 # the next byte begins a character
LEAF_EXPANDED: Final = 4
LEAF_CLOSES: Final = 8   # a closing quote may come
LEAF_SAFE: Final = 8     # LEAF_FLAGS >> LEAF_SAFE: so many characters are surely not refused from here on
LEAF_LOOPS: Final = 20   # bytes 32 .. 127 that lead back to the state itself: 3 words; then 1 if worked out
OTHERS: Final = 1 << 16  # BELOW: there are other bytes too
WIDE_LEAF: Final = 4     # allowed bytes from which a row pays
LENGTH_CLASSES: Final = 130 # rooms told apart by ORDERS: 0 .. 128 and more
ESCAPED: Final = 1 << 20 # TRIE_TOKENS: the part inside the leaf holds an escape
IN_ROW: Final = 1 << 21  # make_row: what stays inside the leaf is in the row already
QUOTE_BELOW: Final = 1 << 2 # BELOW: of the bytes 32 .. 63

# ---- modes of a leaf machine -----------------------------------------------------------------------------------
UTF8: Final = 0          # plain text
JSON_STRING: Final = 1   # the inside of a JSON string and its closing quote
JSON_INSIDE: Final = 2   # the inside of a JSON string
BYTES: Final = 3         # bytes, each a character by itself, whether or not they are UTF-8

# ---- kinds of decoder state: kind << KIND | digits or bytes left << LEFT | value ---------------------------------
KIND: Final = 26
LEFT: Final = 22
VALUE: Final = (1 << 22) - 1
PLAIN: Final = 0         # between characters
RAW: Final = 1           # in a UTF-8 sequence: value so far, bytes left
RAW_UNIFORM: Final = 2   # the same where every completion leads to the same Dfa state
ESCAPE: Final = 3        # after a backslash
HEX: Final = 4           # in \uXXXX: value so far, digits left
HEX_UNIFORM: Final = 5
HIGH: Final = 6          # after a high surrogate (value: its 10 bits): a backslash must follow
HIGH_ESCAPE: Final = 7   # then u
LOW: Final = 8           # then the digits of a low surrogate: value = 10 bits << 10 | low bits so far, digits left
HIGH_UNIFORM: Final = 9  # the same three where every completion leads to the same Dfa state
HIGH_ESCAPE_UNIFORM: Final = 10
LOW_UNIFORM: Final = 11
DONE: Final = 12         # after the closing quote

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

# ---- object states in OBJECTS: header, then the keys and marks seen and the keys allowed now (by rank) -------------
O_BLOCK: Final = 0
O_NEXT: Final = 1        # order schema: first key that may still come
O_MEMBERS: Final = 2
O_NAMES: Final = 3       # list of undeclared names seen
O_FLAGS: Final = 4
O_SLOT: Final = 5
O_BITS: Final = 6
O_KEYS: Final = 1        # a declared key may come
O_OTHER: Final = 2       # an undeclared key may come
O_CLOSE: Final = 4       # the object may close
O_MARK: Final = 8        # an undeclared key may come if it sets a mark that is still to be set

# ---- string blocks in CODE: n, 1 if spelled with any escapes, n + 1 offsets (absolute), bytes --------------------
STR_COUNT: Final = 0
STR_ESCAPES: Final = 1
STR_OFFSETS: Final = 2

# ---- roots in NAMES ------------------------------------------------------------------------------------------------
SPELLED: Final = 0       # chains of bytes as they are spelled
DECODED: Final = 1       # chains of decoded bytes
NO_NAMES: Final = 2      # the empty list
UNKNOWN_NAMES: Final = 3 # a list with a name that is not known
NO_MEMBERS: Final = 4    # the empty list of members
UNKNOWN_MEMBERS: Final = 5 # a list with a member that is not known
NO_CANDIDATES: Final = 6 # the empty list of candidates
ROOTS: Final = 7
OPEN_NAME: Final = -2    # in place of a chain: what was spelled is not kept

# ---- PAIRS ---------------------------------------------------------------------------------------------------------
PAIR_W: Final = 4
PAIR_VALUE: Final = 0    # state of the parser, or column
PAIR_BELOW: Final = 1    # pair, STATES or COLUMNS: the bottom, whose value is the parser block
PAIR_SLOT: Final = 2
PAIR_SHIFTS: Final = 3   # offset in MAY_SHIFT, -1: not worked out
STATES: Final = -1
COLUMNS: Final = -2

# ---- LISTS: header, then the lexemes in the making, the longest first ------------------------------------------------
LIST_COUNT: Final = 0
LIST_BLOCK: Final = 1
LIST_COMPLETE: Final = 2 # whether the text may end here
LIST_SLOT: Final = 3
LIST_FIRST: Final = 4
LEXEME_W: Final = 5      # a lexeme in the making
LEXEME_STACK: Final = 0  # stack before it
LEXEME_STATE: Final = 1  # scanner state (-1 - state: nothing read yet)
LEXEME_COLUMNS: Final = 2 # stack of indentation
LEXEME_BRACKETS: Final = 3 # brackets open
LEXEME_COLUMN: Final = 4 # column after a line break in it, -1
MOST_LEXEMES: Final = 12
MOST_MASKS: Final = 1024 # kept of texts that are parsed, which take longest and come again: 16 MB at most
UNION_W: Final = 3 + MOST_LEXEMES
UNION_BLOCK: Final = 0   # parser block
UNION_COUNT: Final = 1   # number of scanner states
UNION_STATES: Final = 2
UNION_SHIFTS: Final = UNION_W - 1 # offset in MAY_SHIFT

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

# ---- what a scanner makes of tokens ---------------------------------------------------------------------------------
READER_W: Final = 10
READER_SCANNER: Final = 0
READER_STATE: Final = 1  # of the lexeme in the making, or -1 - start
READER_CLASSES: Final = 2 # first class
READER_N_CLASSES: Final = 3
READER_EXITS: Final = 4  # first exit
READER_N_EXITS: Final = 5
READER_DOUBTS: Final = 6 # place in LEX_WORDS of the doubtful tokens
READER_N_DOUBTS: Final = 7
READER_BOUNDS: Final = 8 # place in LEX_WORDS: by what a lexeme in the making ends before a token, and before which; -1
READER_NEXT: Final = 9   # reader in the same chain, -1
CLASS_W: Final = 3
CLASS_KIND: Final = 0    # class of the scanner's states
CLASS_FIRST: Final = 1   # place in LEX_WORDS
CLASS_COUNT: Final = 2   # tokens there, -1: a row of bits
EXIT_W: Final = 5
EXIT_TERMINAL: Final = 0
EXIT_COLUMN: Final = 1   # of a lexeme that ends a line: columns << 1 | whether the line ended in what was read
EXIT_FIRST: Final = 2    # place in LEX_WORDS of what remains
EXIT_COUNT: Final = 3
EXIT_READER: Final = 4   # the first reader of that, -1
LEX_CHAINS: Final = 1 << 14
MOST_COLUMNS: Final = 1 << 11
MOST_LISTED: Final = 512 # tokens of a class kept as a list: a row of bits is as quick for more
DOUBTFUL: Final = 1      # what was read of a token: an earlier end may count, if the lexeme comes to nothing
UNREAD: Final = 2        # nothing: it is to be taken byte by byte
OPEN_END: Final = 4      # its lexeme may come to nothing, and has no earlier end

# ---- GUARDS --------------------------------------------------------------------------------------------------------
GUARD_W: Final = 12
GUARD_KEY: Final = 0     # the list or the register that was asked about, or -1 - an object state
GUARD_TEXT: Final = 1    # byte chain
GUARD_ANSWER: Final = 2  # candidates that are left; or 1: unique, 0: not
GUARD_SLOT: Final = 3
GUARD_BYTES: Final = 4   # bytes that may leave candidates: 8 words
# fmt: on
