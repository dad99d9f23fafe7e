"""Layout of a context: its slots, the fields of its two headers, and the requests that a kernel can make.

A *context* is an int64 array of (address, length) pairs, one pair per slot; each slot is a flat int32 array. Kernels
take the address of a context and ints, so a call costs the same however many arrays it reads. Slots up to `QUESTIONS`
belong to the state cache of one thread; those from `TABLE` on belong to the MaskTable of the vocabulary and are shared.
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
NEED_COREACHABLE: Final = 16   # by which terminals stack ARGUMENT comes to an end at last
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
# fmt: on
