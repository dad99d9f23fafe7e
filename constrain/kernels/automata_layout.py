"""Layout of the record of a deterministic automaton over classes of code points (constants only).

A record is one int32 array: the header, then, without gaps,

    bounds     int32[ranges]            starts of the ranges of code points, ascending from 0
    classes    int32[ranges]            class of each range
    delta      int32[states, classes]   next state, or -1 (dead); the start is state 0
    accepting  int32[states]            1 where a text may end, else 0

The empty language has no states, one range and one class.
"""

STATES, CLASSES, RANGES = 0, 1, 2
"""Fields of the header: how many there are of each."""
HEADER_W = 3
"""Length of the header."""

NO_SPACE = -1
"""Result of a construction whose arrays are too short: call it again with longer ones."""
TOO_MANY_STATES = -2
"""Result of a construction that exceeded its limit. Its output then has the number of states that were expanded in the
field STATES, and the number of classes in CLASSES.
"""

UNION, INTERSECTION, DIFFERENCE, REVERSED_DIFFERENCE = 0b1110, 0b1000, 0b0100, 0b0010
"""Boolean operations as truth tables: bit 2 * a + b says whether a text is accepted where the first automaton accepts
(a = 1) or not (a = 0), and likewise the second (b). Bit 0 is not set.
"""

NO_BOUND = -1
"""An upper bound that does not exist, of a number of repetitions or of characters."""

STATE_PARTS, CLASS_PARTS, SCRATCH_HEADER_W = 23, 8, 1
"""Scratch of `minimal_automata` in int32s: a header, STATE_PARTS of a length of states + 1, two parts as long as delta,
and CLASS_PARTS of a length of classes.
"""

POOL_HEADER_W, MEMBERS = 4, 0
"""Scratch of `automaton_subsets`: its header, and the field of the number of members of all expanded subsets."""
MEMBER_PARTS = 3
"""Its arrays that have an entry for each state of the nondeterministic automaton."""
MEMBERS_PER_STATE = 64
"""Members of subsets that may be expanded per state of the limit: bounds constructions with few but large subsets."""
