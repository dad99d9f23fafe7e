"""Layout of the records in a state cache: configurations, sets, stacks, objects, names, lexemes, guards.

A slot of records of width X_W holds field X_F of record k at index k * X_W + X_F.
"""

from __future__ import annotations

from typing import Final

# fmt: off

# ---- records of the state cache ----------------------------------------------------------------------------------
# CONFIGS and ITEMS (an item of the new set has pc = -pc - 1): one configuration
CONFIG_W: Final = 5
CONFIG_PC: Final = 0     # an instruction that accepts a byte
CONFIG_STATE: Final = 1  # leaf state, string cursor or list of lexemes; -1: none
CONFIG_NODE: Final = 2   # stack node
CONFIG_REGISTER: Final = 3 # of the running rule: rounds counted, object state, or members of an array
CONFIG_EXTRA: Final = 4  # characters counted, the name spelled so far, or an incomplete escape
# CONFIGS, after the configurations of a set that is IS_MEMBER: the text of the member
MEMBER_TEXT: Final = 0
MEMBER_CANDIDATES: Final = 1 # list of the members that may still be equal
MEMBER_GUARD: Final = 2  # record in GUARDS, -1
# NODES: a stack node; equal stacks are one node
NODE_W: Final = 4
NODE_FIRST: Final = 0    # first edge
NODE_EDGES: Final = 1    # number of edges
NODE_BLOCK: Final = 2    # first node of a block: number of nodes interned together | IN_MEMBER
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
SEEN_STAMP: Final = 0    # number of the closure (CLOSURES) that wrote the entry
SEEN_ITEM: Final = 1
# CALLS: calls of a closure, which are its new stack nodes
CALL_W: Final = 4
CALL_RULE: Final = 0     # rule cell
CALL_EDGE: Final = 1     # first pending edge, -1
CALL_RETURNED: Final = 2 # whether the rule ended without accepting a byte
CALL_NODE: Final = 3     # state of the depth-first visit (0: not visited, below 0: on the path), then the stack node
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
# PATH, while reductions are tried: stacks that wait for the results of others
WAIT_W: Final = 4
WAIT_STACK: Final = 0
WAIT_SHIFTS: Final = 1   # its terminals in MAY_SHIFT
WAIT_RULE: Final = 2     # the rule to try next
WAIT_AFTER: Final = 3    # the stack after the previous rule, -1
# WORKLIST: sets with candidates that a walk reached, whose tokens are examined one at a time
WORK_W: Final = 5
WORK_NODE: Final = 0     # trie node
WORK_SET: Final = 1
WORK_LEAST: Final = 2    # least and most characters inside the leaf, as in a walk
WORK_MOST: Final = 3
WORK_WALKED: Final = 4   # whether the tokens below were walked already
# MAY_SHIFT: header, then a bit set of terminals
SHIFTS_STACK: Final = 0  # 0: of no stack
SHIFTS_WORDS: Final = 1
SHIFTS_FIRST: Final = 2


# ---- SETS ----------------------------------------------------------------------------------------------------
SET_W: Final = 16        # one cache line
SET_FIRST: Final = 0     # first config
SET_COUNT: Final = 1     # configs
SET_FLAGS: Final = 2
SET_ALLOWED: Final = 3   # number of allowed bytes (an upper bound: a step decides); NARROW + 1: more than NARROW
SET_BYTES: Final = 4     # the allowed bytes, 4 per word; if more than NARROW: the row in WIDE, -1: no memo, or below
                         # that -2 - (step << 8 | byte): the only step that was taken (see NO_STEP)
SET_KEYLESS: Final = 5   # if more than NARROW bytes: the variant for walks (`make_keyless`, `drop_keys`), -1: not made
SET_NEXT: Final = 6      # memoised steps per allowed byte, -1: unknown; if more than NARROW: 256 bits of allowed bytes
SET_MASK: Final = 14     # offset in MASKS or -1
SET_SLOT: Final = 15     # hash slot
NARROW: Final = 8
NO_STEP: Final = -2      # SET_BYTES: no step was taken yet
MOST_STEP: Final = 1 << 22 # number of the first set that is not stored in SET_BYTES
IS_ACCEPTING: Final = 1
IS_NAMING: Final = 4     # an undeclared key is being spelled, and its bytes are known
IS_UNSURE: Final = 2     # some byte may be refused later: tokens through here are stepped exactly
IS_MEMBER: Final = 8     # a member of a Unique is being written: one record MEMBER_... follows the configurations
IS_OPEN: Final = 16      # the same, but the text of the member is unknown
HAS_CANDIDATES: Final = 32 # the member may still equal an earlier one
CAN_DIFFER: Final = 64   # it is known that the set can reach a unique member
CANNOT_DIFFER: Final = 128 # it is known that the set cannot reach a unique member
IS_CUT: Final = 256      # a member equal to an earlier one could have ended here
IS_NAMED: Final = 1024   # an unknown key ended here, which may be a duplicate
HAS_KEYS: Final = 2048   # a declared key or a constant is being spelled, outside members: see `key_walks`
DIFFER_KNOWN: Final = CAN_DIFFER | CANNOT_DIFFER
DEAD: Final = 0          # the empty set

IN_MEMBER: Final = 1 << 24 # flag in NODE_BLOCK: what returns here is inside a member
RETURN: Final = 0        # EDGES: the pc of an END. An edge to it represents all edges of the node below
MOST_EDGES: Final = 16   # edges of a node, and calls of a closure that are searched linearly
CALLED: Final = 1 << 28  # ITEMS: a call is an item with pc = -CALLED - cell and state = its index in CALLS
LARGE_SET: Final = 16    # configurations from which on walks count them as work


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
O_MARK: Final = 8        # an undeclared key may come if it sets a mark that is not set yet


# ---- roots in NAMES ------------------------------------------------------------------------------------------------
SPELLED: Final = 0       # chains of bytes as they are spelled
DECODED: Final = 1       # chains of decoded bytes
NO_NAMES: Final = 2      # the empty list
UNKNOWN_NAMES: Final = 3 # a list that holds an unknown name
NO_MEMBERS: Final = 4    # the empty list of members
UNKNOWN_MEMBERS: Final = 5 # a list that holds an unknown member
NO_CANDIDATES: Final = 6 # the empty list of candidates
ROOTS: Final = 7
OPEN_NAME: Final = -2    # in place of a chain: the bytes are unknown
TEXT_STRING: Final = 256 # flag of a byte in the text of a member: the next byte is inside a string
TEXT_ESCAPE: Final = 512 # the same, after a backslash that begins an escape


# ---- PAIRS ---------------------------------------------------------------------------------------------------------
PAIR_W: Final = 4
PAIR_VALUE: Final = 0    # state of the parser, or column
PAIR_BELOW: Final = 1    # pair, STATES or COLUMNS: the bottom, whose value is the parser block
PAIR_SLOT: Final = 2
PAIR_SHIFTS: Final = 3   # offset in MAY_SHIFT, -1: not computed
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
LEXEME_STATE: Final = 1  # scanner state; -1 - state: nothing was read yet
LEXEME_COLUMNS: Final = 2 # stack of indentation
LEXEME_BRACKETS: Final = 3 # brackets open
LEXEME_COLUMN: Final = 4 # column since the last line break in it, -1: none
MOST_LEXEMES: Final = 12
MASK_BASE: Final = 0     # row, or NO_ROW or FULL_MASK of `mask_deltas`
MASK_COUNT: Final = 1    # words that follow, each with the bits that differ
MASK_NEXT: Final = 2     # the next record of the bucket, 0: none
MASK_HEAD: Final = 3
MOST_MASKS: Final = 1024 # memoised masks of parsed texts, which take longest and recur: 16 MB at most
UNION_W: Final = 3 + MOST_LEXEMES
UNION_BLOCK: Final = 0   # parser block
UNION_COUNT: Final = 1   # number of scanner states
UNION_STATES: Final = 2
UNION_SHIFTS: Final = UNION_W - 1 # offset in MAY_SHIFT


# ---- GUARDS --------------------------------------------------------------------------------------------------------
GUARD_W: Final = 13
GUARD_KEY: Final = 0     # the list or register of the request, or -1 - an object state
GUARD_TEXT: Final = 1    # byte chain
GUARD_ANSWER: Final = 2  # remaining candidates; or 1: unique, 0: not
GUARD_SLOT: Final = 3
GUARD_PLACE: Final = 4   # of an object state: the address of the OTHER instruction; else 0
GUARD_BYTES: Final = 5   # bytes after which some candidate may remain: 8 words
# fmt: on
