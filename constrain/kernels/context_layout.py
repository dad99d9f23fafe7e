"""Layout of a context: its slots, the fields of its two headers, and the requests that a kernel can make.

A *context* is an int64 array of (address, length) pairs, one pair per slot; each slot is a flat int32 array. Kernels
take the address of a context and ints, so a call costs the same however many arrays it reads. Slots up to `MASK_HASH`
belong to the state cache of one thread; those from `TABLE` on belong to the MaskTable of the vocabulary and are shared.
"""

from __future__ import annotations

from typing import Final

# fmt: off

# ---- slots of a context ----------------------------------------------------------------------------------
CODE: Final = 0          # the Program: instructions, rule cells, blocks of strings, objects, parsers (`program_layout`)
HEAD: Final = 1          # counts and status of the state cache; fields HEAD below
STARTS: Final = 2        # [leaf] start state of a leaf of the Program in this MaskTable, -1: not requested yet
SETS: Final = 3          # [set, SET_W] sets of configurations
CONFIGS: Final = 4       # [config, CONFIG_W] configurations of all sets
SET_HASH: Final = 5      # open addressing: set ids
WIDE: Final = 6          # [row, 256] memoised steps of sets that allow more than NARROW bytes, below 0: unknown
NODES: Final = 7         # [node, NODE_W] nodes of the graph-structured stack
EDGES: Final = 8         # [edge, EDGE_W] their edges: return pc, register, stack node below
NODE_HASH: Final = 9
CURSORS: Final = 10      # [cursor, CURSOR_W] positions in string blocks
CURSOR_HASH: Final = 11
OBJECTS: Final = 12      # object states of variable length, addressed by offset; fields O_...
OBJECT_HASH: Final = 13
NAMES: Final = 14        # [name, NAME_W] byte chains and lists of names, as cons cells
NAME_HASH: Final = 15
ITEMS: Final = 16        # closure scratch: [item, CONFIG_W] the worklist; an item of the new set has pc = -pc - 1
SEEN: Final = 17         # closure scratch: [slot, SEEN_W] hash table over ITEMS
CALLS: Final = 18        # closure scratch: [call, CALL_W]
PENDING_EDGES: Final = 19 # closure scratch: [edge, PENDING_W]
MISSING: Final = 20      # closure scratch: rule cells that are not linked yet
BUFFER: Final = 21       # scratch: serialised stack nodes, decoded names
MASKS: Final = 22        # memoised masks, each as a delta to a row; see `mask_deltas`
STACK: Final = 23        # scratch of trie walks: [entry, WALK_W]

SPARE: Final = 24        # scratch: one mask
PATH: Final = 25         # closure scratch: depth-first visits of calls, or stacks of a parser that wait for others

GUARDS: Final = 26       # [guard, GUARD_W] answers of the caller about members that must be unique
GUARD_HASH: Final = 27
WORKLIST: Final = 28     # scratch of walks: [entry, WORK_W] sets with candidates that are still to be examined

PAIRS: Final = 29        # [pair, PAIR_W] stacks of parsers and of indentation, as cons cells: value and pair below
PAIR_HASH: Final = 30
LISTS: Final = 31        # lists of unfinished lexemes, of variable length, addressed by offset; fields LIST_...
LIST_HASH: Final = 32
MAY_SHIFT: Final = 33    # bit sets of terminals that a stack accepts; header SHIFTS_..., then words
LISTING: Final = 34      # scratch: the list of lexemes being built
UNIONS: Final = 35       # [union, UNION_W] what a lexeme can still become besides those before it
                         # states, offset in MAY_SHIFT
SCANNERS: Final = 36     # [parser of the Program] number of its scanner in the MaskTable, -1: not requested yet

ROUTE: Final = 37        # scratch of walks: the bytes from the root to the node

QUESTIONS: Final = 38    # [question, QUESTION_W] what the current mask could not decide about some tokens

MASK_HASH: Final = 39    # [bucket] the latest mask in MASKS of each bucket, 0: none

INSIDE: Final = 40       # scratch of walks inside a leaf: what may follow, then [depth, INSIDE_W]

TABLE: Final = 41        # counts of the MaskTable; fields TABLE below
ENDS: Final = 42         # tokens that end a text
LEAF_NEXT: Final = 43    # [leaf state, 256] next leaf state, -1: refused
LEAVES: Final = 44       # [leaf state, LEAF_W]
LEAF_HASH: Final = 45
MACHINES: Final = 46     # [machine, MACHINE_W] a DFA with the encoding of its text
DFAS: Final = 47         # states n, classes c, ranges r; bounds[r], classes[r], class of ASCII[128], accepting[n],
                         # distance[n], delta[n, c], facts[n]: LEAF_ENDLESS or 0, and above LEAF_SAFE
                         # a number of characters none of which is refused from there on
ROWS: Final = 48         # [row, words] the tokens that stay inside a leaf, from a leaf state
TRIE: Final = 49         # [trie node, TRIE_W] the main trie, then the suffix tries; the next node holds the ends
TRIE_EDGES: Final = 50   # child << 8 | byte, ascending by byte
TRIE_TOKENS: Final = 51  # [entry, ENTRY_W]
TRIE_END: Final = 52     # [main trie node] the first node after its subtree (nodes are in preorder)
BY_LENGTH: Final = 53    # tokens of rows by length; see `table_layout`
TRIE_TEMP: Final = 54    # scratch of building rows, tries and readers
BLOB: Final = 55         # the bytes of all tokens, 4 per word
OFFSETS: Final = 56      # [token + 1] where the bytes of each token begin
BELOW: Final = 57        # [1 + edge of the main trie, BELOW_W] summary of the subtree below; see `subtree_summaries`
LEX_ROOTS: Final = 58    # [hash chain] the first reader of all tokens
LEX_READERS: Final = 59  # [reader, READER_W] what a scanner makes of tokens, or of their remainders
LEX_CLASSES: Final = 60  # [class, CLASS_W]
LEX_EXITS: Final = 61    # [exit, EXIT_W]
LEX_WORDS: Final = 62    # tokens, remainders (token << 8 | bytes read), rows of bits
LEX_CACHE: Final = 63    # [token, CACHED_W] memoised results of `lexemes.read_token`
CONTENTS: Final = 64     # the tokens by the bytes that they have; see `byte_rows`
QUOTED: Final = 65      # the subtrees of the main trie below an opening quote; see `quoted_subtrees`
SLOTS: Final = 66


# ---- HEAD --------------------------------------------------------------------------------------------------
STATUS: Final = 0        # the request of a kernel that returned -1: one of the codes below
ARGUMENT: Final = 1      # the slot, rule, leaf, ... that the request is about
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
CLOSURES: Final = 14     # number of closures begun: the stamp in SEEN
ACCEPTS: Final = 15      # the current closure reached the end of the text
UNSURE: Final = 16       # the current closure reached a key of an object one of whose keys is unknown
N_MASKS: Final = 17
WORDS: Final = 18        # int32 words of a mask
ENTRY: Final = 19        # rule cell where the text starts
TEXT: Final = 20         # current closure: text since the outermost member began; OPEN_NAME: unknown
CANDIDATES: Final = 21   # current closure: list of the members (registers) that may still equal an earlier one
N_GUARDS: Final = 22
N_WORKLIST: Final = 24
SPELLING: Final = 25     # for NEED_NAME: chain of bytes
NAMED_IN: Final = 26     # for NEED_NAME: object state
CUT: Final = 23          # the current closure refused the end of a member equal to an earlier one
N_PAIRS: Final = 28
N_LISTS: Final = 29
N_MAY_SHIFT: Final = 30
N_UNIONS: Final = 31
REQUEST_BLOCK: Final = 32 # for NEED_UNION, NEED_COREACHABLE, NEED_READERS and NEED_ROOT: parser block
REQUEST_LIST: Final = 33 # for NEED_UNION: offset of the list in LISTING
BUILDING: Final = 34     # which readers may be built: 0 (none), REMAINDERS or REQUESTED
NAMED: Final = 35        # the current closure ended an unknown key, which may be a duplicate
VISITED: Final = 36      # trie nodes that walks have visited (statistics)
STEPS: Final = 37        # work of the current mask: configurations stepped, trie nodes, rows
MOST_STEPS: Final = 38   # bound of STEPS
MAY_LACK: Final = 39     # whether a set may allow no token, because the vocabulary does not spell every byte
N_QUESTIONS: Final = 40
EPOCH: Final = 46        # number of evictions of the state cache
WORKER: Final = 47       # worker that fills masks from this state cache, where there are several
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
LONGEST: Final = 11      # bytes of the longest token
N_LEX_READERS: Final = 12
N_LEX_CLASSES: Final = 13
N_LEX_EXITS: Final = 14
N_LEX_WORDS: Final = 15
LEX_CACHED: Final = 16   # scanner whose results LEX_CACHE holds, + 1
FREE_ROW: Final = 17     # the row of an unconstrained JSON string, + 1
MADE_ROW: Final = 18     # the row that the last `make_row` has written or found


# ---- status codes: the request of a kernel that returned -1 ---------------------------------------------------------
FULL: Final = 1          # more space in slot ARGUMENT
NEED_RULES: Final = 2    # the rules in MISSING
NEED_START: Final = 3    # STARTS[ARGUMENT]
NEED_LEAF: Final = 4     # the transitions of leaf state ARGUMENT
NEED_ROW: Final = 5      # the row of leaf state ARGUMENT
NEED_SUFFIXES: Final = 6 # the suffix trie of leaf state ARGUMENT
NEED_BY_LENGTH: Final = 7 # tokens of a leaf state sorted by length, down or up to a level; see `table_layout`
NEED_CANDIDATES: Final = 8 # which members of list ARGUMENT may still equal the one with text HEAD[TEXT]
NEED_IS_UNIQUE: Final = 9 # whether the member of register ARGUMENT that ends at HEAD[TEXT] is unique
NEED_NAME_FREE: Final = 11 # whether HEAD[SPELLING] can become a key that OTHER at ARGUMENT accepts
NEED_CAN_DIFFER: Final = 10 # whether set ARGUMENT, which has candidates, can reach a unique member
NEED_UNION: Final = 12   # what the last of the first ARGUMENT lexemes in LISTING can become besides the others

NEED_SCANNER: Final = 13 # the number of the scanner of parser block ARGUMENT
NEED_READERS: Final = 14 # the same call again, while readers of remainders may be built
TABLE_FULL: Final = 15
NEED_COREACHABLE: Final = 16 # the terminals by which stack ARGUMENT can reach the end of the text
SPENT: Final = 17        # nothing: the mask would exceed MOST_STEPS
STUCK: Final = 18        # nothing: no token is allowed, although the text may not end here
NEED_ANSWERS: Final = 19 # the answers to QUESTIONS
NEED_ROOT: Final = 20    # the reader of all tokens from scanner state ARGUMENT, or the same call while it may be built


# ---- values of BUILDING: the caller holds the lock of the table ------------------------------------------------------
REMAINDERS: Final = 1    # readers of remainders
REQUESTED: Final = 2     # these, and that of all tokens that NEED_ROOT has requested


# ---- QUESTIONS -----------------------------------------------------------------------------------------------
QUESTION_W: Final = 5
Q_STATUS: Final = 0      # NEED_CANDIDATES, NEED_IS_UNIQUE, NEED_CAN_DIFFER or NEED_NAME_FREE
Q_ARGUMENT: Final = 1    # ARGUMENT, TEXT, SPELLING and NAMED_IN of HEAD at the time of the request
Q_TEXT: Final = 2
Q_SPELLING: Final = 3
Q_NAMED_IN: Final = 4
# fmt: on
