"""Layout of the requests of `digit_runs`: what is asked about all runs of digits (constants only).

A request is one int64 array: the kind, the number of bounds, the bounds, ascending, then for each gap below a bound and
above the last one the place of its alternatives in the request, or 0 for a gap without any. Alternatives are their
number, then for each

    MEMBERS     step, size, offset, most, number of periods, periods, greatest number that occurs: an integer k with
                k * step in the interval from value * size + offset on, of `size` numbers, that no period divides, among
                the first `most`. Step 0: all values. Step -1: it is not found out
    MULTIPLES   modulus, remainder, number of others, modulus and remainder of each: values that have the remainder, and
                of the others none. A remainder of -1: none
"""

KIND, BOUNDS, REQUEST_HEADER_W = 0, 1, 2
MEMBERS, MULTIPLES = 0, 1
"""Kinds: which runs have a member that begins so; after which ones the number may end."""

MEMBER_W, MULTIPLE_W = 6, 3
"""Words of an alternative without its list."""

ALIVE, ENDS, UNSURE = 1, 2, 4
"""Bits of the answer for each run. UNSURE: the run has the digits of a bound, or whether a member begins with it is not
found out.
"""
