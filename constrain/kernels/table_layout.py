"""Layout of the records in a MaskTable: tries, leaf states, rows, readers; and of the scratch that builds them.

A slot of records of width X_W holds field X_F of record k at index k * X_W + X_F.
"""

from __future__ import annotations

from typing import Final

# fmt: off

# ---- records of the table ----------------------------------------------------------------------------------------
# TRIE: a node; the next node holds the ends
TRIE_W: Final = 2
TRIE_FIRST_EDGE: Final = 0
TRIE_FIRST_TOKEN: Final = 1
# TRIE_TOKENS
ENTRY_W: Final = 2
ENTRY_TOKEN: Final = 0
ENTRY_CHARACTERS: Final = 1 # characters before the token left the leaf | ESCAPED
# BELOW: the bytes in the subtree of the root, then in those below each edge e, at 1 + e; see `subtree_summaries`
BELOW_W: Final = 6
BELOW_BYTES: Final = 0   # 5 words: which of the bytes 32 .. 127 and 0xC0 .. 0xFF
BELOW_HEIGHT: Final = 5  # height of the subtree in bytes | WELL_FORMED
# CONTENTS: tables of groups of bytes, then rows of tokens; see `byte_rows`
CONTENTS_GROUPS: Final = 0   # [byte] its group
CONTENTS_COUNTS: Final = 256 # [group] tokens that begin with one of its bytes
CONTENTS_ROWS: Final = 320   # [row, words]
GROUPS: Final = 46       # row g: the tokens with a byte of group g
ALL_GROUPS: Final = (1 << GROUPS) - 1
QUOTE_GROUP: Final = 36
BACKSLASH_GROUP: Final = 37
ILL_FORMED: Final = 39   # of control characters; its row: the tokens that are not the beginning of a text in UTF-8
SYNTAX_GROUPS: Final = 1 << QUOTE_GROUP | 1 << BACKSLASH_GROUP | 1 << ILL_FORMED
MULTIBYTE: Final = 40    # the first group of first bytes of characters beyond ASCII
MULTIBYTE_GROUPS: Final = (1 << GROUPS) - (1 << MULTIBYTE)
BLOCK: Final = 4         # groups of a block, and blocks of a span
FIRST_BLOCK: Final = 48  # row FIRST_BLOCK + b: the tokens with a byte of some group of block b
FIRST_SPAN: Final = 60   # row FIRST_SPAN + s: of some group of span s
FIRST_LENGTH: Final = 63 # rows of the tokens of more than 1 .. 16, 20, 24, 32, 48, 64 bytes
SHORT_LENGTHS: Final = 16
LENGTH_ROWS: Final = 21
CONTENT_ROWS: Final = FIRST_LENGTH + LENGTH_ROWS
# TRIE_TEMP while a row is made: word groups of a leaf state, and what they mean; see `byte_rows`
WORD_GROUPS: Final = 0   # 2 words
WORD_OTHERS: Final = 2   # 5 words: bytes that may come besides, as in BELOW
WORD_DIES: Final = 7
WORD_NEED: Final = 8
WORD_REFUSED: Final = 9  # 2 words: groups of which a character is refused after that many others
WORD_LEADING: Final = 11  # 2 words: groups of which a character leads to where others are refused
WORD_ENDS: Final = 13    # whether the leaf may end after characters of the groups
WORD_W: Final = 14
# MACHINES
MACHINE_W: Final = 2
MACHINE_MODE: Final = 0
MACHINE_DFA: Final = 1   # offset in DFAS
# QUOTED: the leaf state after an opening quote, the number of subtrees, the root of the closing paths (0: there are
# none), then a record for each subtree
QUOTED_STATE: Final = 0
QUOTED_COUNT: Final = 1
QUOTED_CLOSING: Final = 2
QUOTED_FIRST: Final = 3
QUOTED_W: Final = 2
QUOTED_NODE: Final = 0   # main trie node after the quote
QUOTED_COPY: Final = 1   # the root of its copy
MOST_QUOTED: Final = 31
# LEX_CACHE: the result of `lexemes.read_token` from a scanner state, without the first byte of the token
CACHED_W: Final = 4
CACHED_STATE: Final = 0  # scanner state after the first byte of the token, -1: none
CACHED_END: Final = 1
CACHED_ITEM: Final = 2
CACHED_DOUBT: Final = 3
# STACK of a walk of the trie; `try_subtree_from` uses two int32s per entry, node and set
WALK_W: Final = 4
WALK_NODE: Final = 0     # trie node
WALK_SET: Final = 1      # a set, or -1 - the string cursor of a declared key
WALK_BYTE: Final = 2     # depth << 8 | the byte that led there
WALK_CONFIG: Final = 3   # of a cursor: the configuration whose key it is
# INSIDE: bytes that may follow the leaf, as the words of BELOW, then the stack of a walk inside it
INSIDE_FIRST: Final = 5  # where the stack begins
INSIDE_W: Final = 4
INSIDE_EDGE: Final = 0   # the next edge of the trie node
INSIDE_END: Final = 1    # the edge after its last one
INSIDE_STATE: Final = 2  # leaf state
INSIDE_CHARACTERS: Final = 3 # characters of the leaf so far
# TRIE_TEMP while readers are built: the result for each token
READ_W: Final = 3
READ_END: Final = 0      # class of the scanner state (0 or more), or -2 - key of an exit; -1: refused
READ_ITEM: Final = 1     # the remainder of an exit: token << 8 | bytes read
READ_DOUBT: Final = 2    # 0, DOUBTFUL, UNREAD or OPEN_END
# TRIE_TEMP while a row is made, from MERGED_FIRST on: exits of the leaf, or tokens with their lengths
MERGED_FIRST: Final = 4
MERGED_W: Final = 2
MERGED_NODE: Final = 0   # trie node, or token
MERGED_CHARACTERS: Final = 1
# TRIE_TEMP, downwards from its end: the stack of a descent
DESCENT_W: Final = 3
DESCENT_NODE: Final = 0
DESCENT_STATE: Final = 1 # leaf state
DESCENT_CHARACTERS: Final = 2
# of `make_row` and `order_by_length`, which have in addition
VISIT_W: Final = 4
VISIT_END: Final = 3     # the node after the subtree


# ---- LEAVES --------------------------------------------------------------------------------------------------
LEAF_W: Final = 28
LEAF_MACHINE: Final = 0
LEAF_DECODER: Final = 1  # state of the decoder: kind << KIND | digits left << LEFT | value
LEAF_STATE: Final = 2    # state of the DFA that reads its characters (uniform kinds: the state after the character)
LEAF_FLAGS: Final = 3
LEAF_NEED: Final = 4     # least number of further characters
LEAF_ALLOWED: Final = 5  # number of allowed bytes
LEAF_ROW: Final = 6      # row, -1: not made, -2: too few bytes are allowed for a row to pay off
LEAF_SUFFIXES: Final = 7 # root of the suffix trie in TRIE, -1: not made, -2: over the budget
LEAF_BY_LENGTH: Final = 8 # offset in BY_LENGTH of the long tokens, -1: not made
LEAF_SLOT: Final = 9     # in LEAF_HASH, which holds the number of the state + 1, or 0; -1: a number's
LEAF_LONGEST: Final = 10 # most characters that a token of the row needs
LEAF_SUFFIXES_END: Final = 11 # the node after the last one of the suffix trie
LEAF_BYTES: Final = 12   # allowed bytes as 256 bits: 8 words
LEAF_EXITS: Final = 1    # the leaf may be left here
LEAF_BOUNDARY: Final = 2 # the next byte begins a character
LEAF_EXPANDED: Final = 4
LEAF_CLOSES: Final = 8   # a closing quote may come
LEAF_GAP: Final = 16     # only white space may come, and more of it after some: see `gap_masks`
LEAF_ENDLESS: Final = 32 # infinitely many texts are accepted after any further characters
LEAF_SAFE: Final = 8     # LEAF_FLAGS >> LEAF_SAFE: a number of characters none of which is refused from here on
LEAF_STAYING: Final = 20 # staying bytes: 5 words as in BELOW; see `subtree_summaries`
LEAF_STAYING_DEPTH: Final = 25 # number of bytes for which none of them is refused, HEIGHT: always; 0: not computed
LEAF_STAYING_NEED: Final = 26 # most characters that must follow after some of them
LEAF_SHORT: Final = 27    # offset in BY_LENGTH of the short tokens, -1: not made
HEIGHT: Final = (1 << 16) - 1 # in BELOW_HEIGHT
WELL_FORMED: Final = 1 << 16 # BELOW: the subtree is UTF-8, begun between characters, without control characters
WIDE_LEAF: Final = 4     # allowed bytes from which a row pays off
# BY_LENGTH of a leaf state: tokens by length, which is that of the shortest text with the token, less that of the
# shortest text (LEAF_NEED). The least and most length that is listed, the first place of each class among the tokens
# and the end of the last one, the tokens, and the lengths of those of the last class.
LENGTH_CLASSES: Final = 130 # lengths that BY_LENGTH distinguishes: 0 .. 128, and more
LISTED_FROM: Final = 0
LISTED_TO: Final = 1
LISTED_OFFSETS: Final = 2
LISTED_TOKENS: Final = 133
ALL_LENGTHS: Final = (1 << 30) - 1
# NEED_BY_LENGTH: leaf state << LEVEL_BITS | level. Of the levels below LONG_LEVEL, LEAF_SHORT has the tokens of lengths
# below 4 << l. Of the others, LEAF_BY_LENGTH has those of 4 << l and more, l being the level less LONG_LEVEL - 1.
LEVEL_BITS: Final = 3
LONG_LEVEL: Final = 2
LEVELS: Final = 5
LEAST_LISTED: Final = 4
ESCAPED: Final = 1 << 20 # TRIE_TOKENS: the part inside the leaf contains an escape
IN_ROW: Final = 1 << 21  # make_row: the tokens that stay inside the leaf are in the row already
IN_WORDS: Final = 1 << 22 # make_row: all bytes so far are of word groups
QUOTE_BELOW: Final = 1 << 2 # BELOW: of the bytes 32 .. 63


# ---- modes of a leaf machine -----------------------------------------------------------------------------------
UTF8: Final = 0          # plain text
JSON_STRING: Final = 1   # the inside of a JSON string and its closing quote
JSON_INSIDE: Final = 2   # the inside of a JSON string
BYTES: Final = 3         # bytes, each a character, whether or not they are valid UTF-8
NUMBER: Final = 4        # a JSON number: no DFA, its states are computed by the owner of the table; see `mask_table`


# ---- kinds of decoder state: kind << KIND | digits or bytes left << LEFT | value ---------------------------------
KIND: Final = 26
LEFT: Final = 22
VALUE: Final = (1 << 22) - 1
PLAIN: Final = 0         # between characters
RAW: Final = 1           # in a UTF-8 sequence: value so far, bytes left
RAW_UNIFORM: Final = 2   # the same if every completion leads to the same DFA state
ESCAPE: Final = 3        # after a backslash
HEX: Final = 4           # in \uXXXX: value so far, digits left
HEX_UNIFORM: Final = 5
HIGH: Final = 6          # after a high surrogate (value: its 10 bits): a backslash must follow
HIGH_ESCAPE: Final = 7   # then u
LOW: Final = 8           # then the digits of a low surrogate: value = 10 bits << 10 | low bits so far, digits left
HIGH_UNIFORM: Final = 9  # the same three if every completion leads to the same DFA state
HIGH_ESCAPE_UNIFORM: Final = 10
LOW_UNIFORM: Final = 11
DONE: Final = 12         # after the closing quote


# ---- readers: the results of scanning all tokens -------------------------------------------------------------------
READER_W: Final = 10
READER_SCANNER: Final = 0
READER_STATE: Final = 1  # of the unfinished lexeme, or -1 - start
READER_CLASSES: Final = 2 # first class
READER_N_CLASSES: Final = 3
READER_EXITS: Final = 4  # first exit
READER_N_EXITS: Final = 5
READER_DOUBTS: Final = 6 # offset in LEX_WORDS of the doubtful tokens
READER_N_DOUBTS: Final = 7
READER_BOUNDS: Final = 8 # offset in LEX_WORDS: by which terminals a lexeme ends before a token; -1
READER_NEXT: Final = 9   # next reader in the same hash chain, -1
CLASS_W: Final = 3
CLASS_KIND: Final = 0    # class of scanner states
CLASS_FIRST: Final = 1   # offset in LEX_WORDS
CLASS_COUNT: Final = 2   # number of tokens there, -1: a row of bits
EXIT_W: Final = 5
EXIT_TERMINAL: Final = 0
EXIT_COLUMN: Final = 1   # of a lexeme that ends a line: columns << 1 | whether the line ended in the bytes read
EXIT_FIRST: Final = 2    # offset in LEX_WORDS of the remainders
EXIT_COUNT: Final = 3
EXIT_READER: Final = 4   # the first reader of the remainders, -1
LEX_CHAINS: Final = 1 << 14
MOST_COLUMNS: Final = 1 << 11
MOST_LISTED: Final = 512 # tokens of a class that are stored as a list; a row of bits is as fast for more
DOUBTFUL: Final = 1      # an earlier end of the lexeme may count, if the unfinished one fails
UNREAD: Final = 2        # not read: the token is to be stepped byte by byte
OPEN_END: Final = 4      # the unfinished lexeme may fail, and has no earlier end
# fmt: on
