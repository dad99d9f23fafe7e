"""Uniqueness guards: members of an array that must differ (`grammar.nodes.Unique`); equal ones are refused (kernels).

While a member is written, its set of configurations carries the text since the outermost member began, as a chain of
bytes; a set outside of all members carries none, and is shared. The register of a Unique's rules is the list of the
members so far: (start, end) of each in that text.

A member that differs from all earlier ones needs no more checks. Otherwise the earlier members that may still be equal
are its *candidates*. `unique_values` or the caller (`engine.uniqueness`) answers which candidates remain and after
which bytes some may (NEED_CANDIDATES), whether a member that ends is unique (NEED_IS_UNIQUE), and whether a set with
candidates can still reach a unique member (NEED_CAN_DIFFER). Walks of the trie leave the text unknown and accept every
member that ends; only where that is uncertain are tokens stepped exactly.
"""

from __future__ import annotations

from typing import Any

from .context_views import size, view
from .interned_names import extend_chain, request
from .jit.compilation import inlined, kernel
from .member_guards import add_guard, find_guard
from .unique_values import add_candidates, is_new_member
from .value_texts import NOT_DECIDED

from .context_layout import (  # isort: skip
    BUFFER, CANDIDATES, CUT, FULL, GUARDS, HEAD, NAMES, NEED_CANDIDATES, NEED_IS_UNIQUE, TEXT, UNSURE,
)  # fmt: skip
from .record_layout import (  # isort: skip
    GUARD_ANSWER, GUARD_BYTES, GUARD_W, NAME_PARENT, NAME_VALUE, NAME_W, NO_CANDIDATES, NO_MEMBERS, OPEN_NAME, ROOTS,
    SPELLED, TEXT_ESCAPE, TEXT_STRING, UNKNOWN_MEMBERS,
)  # fmt: skip


@kernel("int64(int64, int64, int64)")
def extend_text(c: Any, text: Any, b: Any) -> Any:
    """Append byte b to the text of a member, a chain. Return the id of the chain, or -1.

    White space outside strings changes no value, so it is left out: texts that differ by it alone have the same sets
    and answers. Only what may end a number or a literal is kept, once. Each byte is stored with flags: whether the next
    one is inside a string (TEXT_STRING), and after a backslash (TEXT_ESCAPE).
    """
    last = view(c, NAMES)[NAME_W * text + NAME_VALUE] if text >= ROOTS else 0
    if last & TEXT_STRING:
        flags = TEXT_STRING
        if last & TEXT_ESCAPE == 0:
            flags = 0 if b == 34 else TEXT_STRING | TEXT_ESCAPE if b == 92 else TEXT_STRING
        return extend_chain(c, text, b | flags)
    if b == 32 or b == 9 or b == 10 or b == 13:
        a = last & 255
        is_word = 48 <= a <= 57 or 97 <= a <= 122 or a == 69 or a == 43 or a == 45 or a == 46
        return extend_chain(c, text, b) if is_word else text
    return extend_chain(c, text, b | TEXT_STRING if b == 34 else b)


@kernel("int64(int64, int64, int64)")
def begin_member(c: Any, members: Any, endless: Any) -> Any:
    """Begin a member after those of list `members`. Return the register while it is written, or -1.

    endless: whether every prefix of a member has infinitely many completions.
    """
    head, names = view(c, HEAD), view(c, NAMES)
    text = head[TEXT] + 0
    if text == OPEN_NAME:
        text = SPELLED
        if members != NO_MEMBERS:
            members = UNKNOWN_MEMBERS
    if members == UNKNOWN_MEMBERS and not endless:
        head[UNSURE] = 1
    register = extend_chain(c, members, text)
    if register < 0 or members <= UNKNOWN_MEMBERS:
        return register
    candidates = head[CANDIDATES] + 0
    while candidates != NO_CANDIDATES:
        if names[NAME_W * candidates + NAME_VALUE] == register:
            return register
        candidates = names[NAME_W * candidates + NAME_PARENT] + 0
    candidates = extend_chain(c, head[CANDIDATES], register)
    if candidates < 0:
        return -1
    head[CANDIDATES] = candidates
    return register


@kernel("int64(int64, int64)")
def end_member(c: Any, register: Any) -> Any:
    """End the member of a register. Return the list with the member, 0 if it equals an earlier one, or -1."""
    head, names = view(c, HEAD), view(c, NAMES)
    members, text = names[NAME_W * register + NAME_PARENT] + 0, head[TEXT] + 0
    if members == UNKNOWN_MEMBERS:
        head[UNSURE] = 1
        return UNKNOWN_MEMBERS
    if text == OPEN_NAME:
        return UNKNOWN_MEMBERS
    if members != NO_MEMBERS and head[CANDIDATES] != NO_CANDIDATES:
        k = find_guard(c, register, text, 0)
        if k < 0:
            is_new = is_new_member(c, register, text)
            if is_new == -1:
                return -1
            k = add_guard(c, register, text, 0, is_new) if is_new >= 0 else request(c, NEED_IS_UNIQUE, register)
            if k < 0:
                return -1
        if view(c, GUARDS)[k * GUARD_W + GUARD_ANSWER] == 0:
            head[CUT] = 1
            return 0
    return extend_chain(c, register, text)


@kernel("int64(int64, int64, int64)")
def write_text_to_buffer(c: Any, start: Any, end: Any) -> Any:
    """Write the bytes of a text between two chains, `start` and `end`, to BUFFER. Return their number, or -1."""
    names, buffer = view(c, NAMES), view(c, BUFFER)
    n, k = 0, end
    while k != start:
        n += 1
        k = names[NAME_W * k + NAME_PARENT] + 0
    if n > size(c, BUFFER):
        return request(c, FULL, BUFFER)
    k = end
    for i in range(n):
        buffer[n - 1 - i] = names[NAME_W * k + NAME_VALUE] & 255
        k = names[NAME_W * k + NAME_PARENT] + 0
    return n


@kernel("int64(int64)")
def find_candidates(c: Any) -> Any:
    """Return the record of GUARDS with the remaining candidates of the member being written, or -1."""
    head = view(c, HEAD)
    chain, text = head[CANDIDATES] + 0, head[TEXT] + 0
    k = find_guard(c, chain, text, 0)
    if k >= 0:
        return k
    k = add_candidates(c, chain, text)
    return k if k != NOT_DECIDED else request(c, NEED_CANDIDATES, chain)


@inlined("int64(int64, int64, int64)")
def may_keep_candidates(c: Any, guard: Any, b: Any) -> Any:
    """Return whether some candidate may remain after byte b."""
    return view(c, GUARDS)[guard * GUARD_W + GUARD_BYTES + (b >> 5)] >> (b & 31) & 1
