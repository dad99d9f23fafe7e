"""Layout of the program of a regular expression for `pattern_automata`, and of its scratch (constants only).

A program is one int32 array: the header, then, without gaps,

    operations  int32[instructions]   READ_SET, FORK, AT_BEGIN, AT_END or MATCH
    operands    int32[instructions]   the number of a set; of a FORK the place of its targets, else 0
    targets     int32[...]            of each FORK: their number, then the addresses
    members     int32[classes]        the sets that contain the characters of each class, a bit for each
    bounds      int32[ranges]         starts of the ranges of code points, as in a record of an automaton
    classes     int32[ranges]         class of each range
"""

INSTRUCTIONS, TARGETS, CLASSES, RANGES, REST = 0, 1, 2, 3, 4
"""Fields of the header: lengths of the parts, and the address of the instruction that reads any text after a match, or
-1.
"""
PROGRAM_HEADER_W = 5

READ_SET, FORK, AT_BEGIN, AT_END, MATCH = 0, 1, 2, 3, 4
"""Operations. READ_SET reads one character of a set, FORK continues at each target, AT_BEGIN and AT_END continue where
the text begins and ends, MATCH is the last instruction.
"""

MOST_SETS, MOST_INSTRUCTIONS = 31, 2_000
"""Sets that have a bit in an int32, and the most instructions."""

ITEMS, REACHES, VISITS, READINGS, STEPPED, SCRATCH_HEADER_W = 0, 1, 2, 3, 4, 5
"""Fields of the scratch: the number of items, of calls of `reach_items` and of what they visit, of sets of items that
have read a character, and of items in these that are not followed by one item alone.
"""
BITS = 32
"""Bits of a word of a set of items."""
STEPS_PER_STATE = 64
"""Visits and steps that may be taken per state of the limit."""
