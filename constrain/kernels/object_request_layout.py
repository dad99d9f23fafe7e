"""Layout of a request for the code of an object (constants only; see `object_writer`).

A request is one int32 array: the header, then, without gaps,

    classes   int32[R_CLASSES, 3]    of undeclared names: leaf, mark or -1, whether some prefixes have few completions
    values    int32[members]         of each declared key, then of each class: the rule cell that is called, or -1 - k
                                     for leaf k of `leaves`
    leaves    int32[R_LEAVES]        values that are written in the object: 4 * leaf, or 4 * string block + IS_BLOCK,
                                     and + IS_QUOTED if a quote precedes it
    sizes     int32[5]               words of each part of the layout
    opened close comma colon empty   white space and punctuation between the parts of the object, each as code

The text is a byte for each declared key, 1 if it must be present, then the names in UTF-8, a quote after each.
"""

from typing import Final

# fmt: off
R_BASE: Final = 0        # address of the first word that is written
R_NAMES: Final = 1       # declared keys
R_CLASSES: Final = 2     # classes of undeclared names
R_ORDER: Final = 3       # as OBJ_ORDER, and so the next
R_LOW: Final = 4
R_HIGH: Final = 5
R_COUNTED: Final = 6
R_ESCAPES: Final = 7     # 1: keys may be spelled with any escapes, 0: as they are, followed by the closing quote
R_EXCLUDED: Final = 8    # which names no undeclared key may have: NOTHING, THE_KEYS or THE_NAMES
R_BEFORE: Final = 9      # the opening bracket
R_BEHIND: Final = 10     # the closing bracket
R_LEAVES: Final = 11     # values that are written in the object
R_W: Final = 12

IS_QUOTED: Final = 1
IS_BLOCK: Final = 2
LAYOUT_PARTS: Final = 5
NOTHING: Final = 0       # there are no classes
THE_KEYS: Final = 1      # the keys, which are not spelled in another way
THE_NAMES: Final = 2     # the declared names, as another string block
CLASS_FIELDS: Final = 3

FIXED_WORDS: Final = 64
"""Words that the code of an object has at most besides its variable parts, with the block of no names."""
SORTING_PARTS: Final = 4
"""Arrays with an entry per member, and one more, that sorting takes at the end of the output; the very last word
becomes the offset of the entry address.
"""
LEAF_WORDS: Final = 7
"""Words of the code of a leaf, at most."""
