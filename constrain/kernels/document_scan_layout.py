"""Layout of what `document_scan` reads and writes, all int64 (constants only).

The table of names of a draft: the header, then a hash table of D_W words for each slot, probed linearly, with the hash
of a name, its first byte in the blob, its length (-1: an empty slot) and its bits. The names of types follow, T_W words
each: first byte, length and bits.

The result: the header, then spans of S_W words: what it is, and where its text begins and ends, without quotes. Frames
of F_W words and names of N_W words follow, which are scratch.
"""

from typing import Final

# fmt: off
MULTIPLIER: Final = 1_000_003
"""Of the hash of a name: that of the bytes before times this, plus the byte, as int64."""

D_SLOTS: Final = 0       # of the hash table: a power of 2
D_TYPES: Final = 1       # names of types
D_LEGACY: Final = 2      # 1: siblings of $ref mean nothing
D_MOST_COUNT: Final = 3  # the greatest count
D_HEADER: Final = 4
D_HASH: Final = 0
D_FIRST: Final = 1
D_LENGTH: Final = 2
D_BITS: Final = 3
D_W: Final = 4
T_W: Final = 3

R_SUBSCHEMAS: Final = 0  # objects that are subschemas
R_VALUES: Final = 1      # values of enum and const
R_SPANS: Final = 2
R_HAS_IDS: Final = 3     # whether a subschema below the root has an identifier
R_HEADER: Final = 4
S_W: Final = 3
UNKNOWN_NAME: Final = 0
A_FORMAT: Final = 1
A_PATTERN: Final = 2
A_REFERENCE: Final = 3
AN_IDENTIFIER: Final = 4

MOST_FRAMES: Final = 64  # nested subschemas and containers
F_KIND: Final = 0
F_NAMES: Final = 1       # bits of the names so far
F_TYPES: Final = 2
F_KINDS: Final = 3       # of the values of enum and const, as types
F_LAST: Final = 4        # the last of the declared names, linked from the last to the first; -1: none
F_REQUIRED: Final = 5    # the last of the required names
F_COUNT: Final = 6       # children
F_CLOSED: Final = 7      # whether additionalProperties is false
F_LOW: Final = 8         # six bounds: of lengths, of items, of numbers
F_W: Final = 14
N_W: Final = 4           # first byte, length, hash, the name before

A_SUBSCHEMA: Final = 0
PROPERTY_MAP: Final = 1
DEFINITION_MAP: Final = 2
ANY_LIST: Final = 3
ONE_LIST: Final = 4

B_TYPE: Final = 1        # bits of names, in the order of `name_summaries.PLAIN_KEYWORDS`
B_ENUM: Final = 1 << 1
B_CONST: Final = 1 << 2
B_MIN_LENGTH: Final = 1 << 3
B_MAX_LENGTH: Final = 1 << 4
B_PATTERN: Final = 1 << 5
B_FORMAT: Final = 1 << 6
B_MINIMUM: Final = 1 << 7
B_MAXIMUM: Final = 1 << 8
B_ITEMS: Final = 1 << 9
B_MIN_ITEMS: Final = 1 << 10
B_MAX_ITEMS: Final = 1 << 11
B_PROPERTIES: Final = 1 << 12
B_REQUIRED: Final = 1 << 13
B_ADDITIONAL: Final = 1 << 14
B_REFERENCE: Final = 1 << 15
B_ANY_OF: Final = 1 << 16
B_ONE_OF: Final = 1 << 17
B_PATTERNS: Final = 1 << 18
B_OTHER: Final = 1 << 19
B_IDENTIFIER: Final = 1 << 20
B_CONTAINER: Final = 1 << 21
B_UNKNOWN: Final = 1 << 22
B_DIALECT: Final = 1 << 23
B_ASSERTIONS: Final = (1 << 19) - 1
B_HOLDERS: Final = B_ITEMS | B_PROPERTIES | B_ADDITIONAL | B_PATTERNS | B_ANY_OF | B_ONE_OF
B_SPANS: Final = B_PATTERN | B_FORMAT | B_ENUM | B_CONST
"""Keywords that leave a trace in the result."""
B_TEXTS: Final = B_MIN_LENGTH | B_MAX_LENGTH | B_PATTERN | B_FORMAT

IS_NULL: Final = 1       # types, as `json_values` and `static_types` number them
IS_BOOLEAN: Final = 2
IS_NUMBER: Final = 4
IS_STRING: Final = 8
IS_INTEGER: Final = 64
ALL_TYPES: Final = 63

MOST_OPTIONS: Final = 8
MOST_VALUES: Final = 1_000
MOST_DIGITS: Final = 17
MOST_MEMBERS: Final = 128  # of a map of subschemas, and of a list of required names: they are compared in pairs


def result_length(octets: int) -> int:
    """Return the length of the result for a text of so many bytes. A span takes 4 of them at least, and a name 3."""
    return R_HEADER + MOST_FRAMES * F_W + S_W * (octets // 4 + 1) + N_W * (octets // 3 + 1)
