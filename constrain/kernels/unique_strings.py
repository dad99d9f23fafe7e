"""Members that must differ and are strings without escapes: queries answered without the caller (kernels).

Most lists of unique members are short lists of short strings. Two strings without a backslash are equal if their bytes
are, so these queries compare bytes. `engine.uniqueness` answers all others: of strings with escapes, of other values,
of lists within lists, and of lists that are so long that its sorted index is faster.
"""

from __future__ import annotations

from typing import Any

from .context_layout import GUARDS, NAMES
from .context_views import view
from .interned_names import extend_chain
from .jit.compilation import inlined, kernel
from .member_guards import add_guard

from .record_layout import (  # isort: skip
    GUARD_ANSWER, GUARD_BYTES, GUARD_W, NAME_PARENT, NAME_VALUE, NAME_W, NO_CANDIDATES, NO_MEMBERS, UNKNOWN_MEMBERS,
)  # fmt: skip

NOT_DECIDED = -2
MOST_COMPARED = 4_096
"""Most bytes of all earlier members."""
QUOTE, BACKSLASH = 34, 92


@kernel("int64(int64, int64, int64)")
def measure_string(c: Any, start: Any, end: Any) -> Any:
    """Return the number of bytes of a text between two chains that begins a JSON string and has no escape, or -1."""
    names = view(c, NAMES)
    n, first, one = 0, QUOTE, end
    while one != start:
        first = names[NAME_W * one + NAME_VALUE] & 255
        if first == BACKSLASH or n == MOST_COMPARED:
            return -1
        n += 1
        one = names[NAME_W * one + NAME_PARENT] + 0
    return n if first == QUOTE else -1


@inlined("int64(int64, int64)")
def is_closed(c: Any, text: Any) -> Any:
    """Return whether a text that begins a string, and has more than its first quote, has its last one, too."""
    return 1 if view(c, NAMES)[NAME_W * text + NAME_VALUE] & 255 == QUOTE else 0


@kernel("int64(int64, int64)")
def are_strings(c: Any, members: Any) -> Any:
    """Return whether all members of a list are strings without escapes, of MOST_COMPARED bytes in all."""
    names = view(c, NAMES)
    total = 0
    while members != NO_MEMBERS:
        if members == UNKNOWN_MEMBERS:
            return 0
        register = names[NAME_W * members + NAME_PARENT] + 0
        n = measure_string(c, names[NAME_W * register + NAME_VALUE], names[NAME_W * members + NAME_VALUE])
        total += n
        if n < 0 or total > MOST_COMPARED:
            return 0
        members = names[NAME_W * register + NAME_PARENT] + 0
    return 1


@kernel("int64(int64, int64, int64, int64, int64)")
def find_following(c: Any, start: Any, end: Any, text: Any, n: Any) -> Any:
    """Return the byte after the first n bytes of the member between `start` and `end`, if these are those of `text`.

    256 if the member has no more bytes, -1 if the bytes differ or the member has fewer.
    """
    names = view(c, NAMES)
    length, one = 0, end
    while one != start:
        length += 1
        one = names[NAME_W * one + NAME_PARENT] + 0
    if length < n:
        return -1
    following = 256
    for _ in range(length - n):
        following = names[NAME_W * end + NAME_VALUE] & 255
        end = names[NAME_W * end + NAME_PARENT] + 0
    for _ in range(n):
        if (names[NAME_W * end + NAME_VALUE] ^ names[NAME_W * text + NAME_VALUE]) & 255:
            return -1
        end = names[NAME_W * end + NAME_PARENT] + 0
        text = names[NAME_W * text + NAME_PARENT] + 0
    return following


@kernel("int64(int64, int64, int64)")
def is_new_string(c: Any, register: Any, text: Any) -> Any:
    """Return whether the complete member of a register differs from all earlier ones: 1, 0, or NOT_DECIDED."""
    names = view(c, NAMES)
    members, start = names[NAME_W * register + NAME_PARENT] + 0, names[NAME_W * register + NAME_VALUE] + 0
    n = measure_string(c, start, text)
    if n < 0 or are_strings(c, members) == 0:
        return NOT_DECIDED
    while members != NO_MEMBERS:
        before = names[NAME_W * members + NAME_PARENT] + 0
        end = names[NAME_W * members + NAME_VALUE] + 0
        if find_following(c, names[NAME_W * before + NAME_VALUE], end, text, n) == 256:
            return 0
        members = names[NAME_W * before + NAME_PARENT] + 0
    return 1


@kernel("int64(int64, int64)")
def may_answer(c: Any, chain: Any) -> Any:
    """Return whether a chain of candidates is of one register, whose earlier members are strings without escapes."""
    names = view(c, NAMES)
    if names[NAME_W * chain + NAME_PARENT] != NO_CANDIDATES:
        return 0
    return are_strings(c, names[NAME_W * names[NAME_W * chain + NAME_VALUE] + NAME_PARENT])


@inlined("int64(int64, int64)")
def add_byte(c: Any, guard: Any, b: Any) -> Any:
    """Add a byte after which some candidate may remain. Return 0."""
    view(c, GUARDS)[guard * GUARD_W + GUARD_BYTES + (b >> 5)] |= 1 << (b & 31)
    return 0


@kernel("int64(int64, int64, int64)")
def add_candidates(c: Any, chain: Any, text: Any) -> Any:
    """Add a record of GUARDS: which candidates remain after a text, and after which bytes. Return its index, or -1.

    The chain is one that `may_answer` allows, and the text one that `measure_string` does.
    """
    names, guards = view(c, NAMES), view(c, GUARDS)
    register = names[NAME_W * chain + NAME_VALUE] + 0
    members, n = (
        names[NAME_W * register + NAME_PARENT] + 0,
        measure_string(c, names[NAME_W * register + NAME_VALUE], text),
    )
    remaining = extend_chain(c, NO_CANDIDATES, register)
    if remaining < 0:
        return -1
    guard = add_guard(c, chain, text, 0, NO_CANDIDATES)
    if guard < 0:
        return -1
    if n == 0:
        for b in (9, 10, 13, 32, QUOTE):
            add_byte(c, guard, b)
        guards[guard * GUARD_W + GUARD_ANSWER] = remaining
        return guard
    while members != NO_MEMBERS:
        before = names[NAME_W * members + NAME_PARENT] + 0
        end = names[NAME_W * members + NAME_VALUE] + 0
        following = find_following(c, names[NAME_W * before + NAME_VALUE], end, text, n)
        # A byte follows the first quote, and what has no second quote yet.
        if following == 256 or (following >= 0 and (n == 1 or is_closed(c, text) == 0)):
            guards[guard * GUARD_W + GUARD_ANSWER] = remaining
            if following < 256:
                add_byte(c, guard, following)
                if following != QUOTE:  # the character may be spelled by an escape, too
                    add_byte(c, guard, BACKSLASH)
        members = names[NAME_W * before + NAME_PARENT] + 0
    return guard
