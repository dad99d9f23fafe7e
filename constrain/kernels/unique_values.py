"""Members that must differ: candidates found by their texts, without the caller (kernels).

A member is compared with each earlier one, objects member by member in any order, arrays item by item. What the texts
do not tell is NOT_DECIDED (`value_texts`), and `engine.uniqueness` answers; so it does for members within members, and
for lists so long that its sorted index is faster.

BUFFER holds the bytes found, as 8 words, then the text of the member, then that of an earlier one. Functions that find
bytes return 1, or DIFFERS if no byte leads to an equal value.
"""

from __future__ import annotations

from typing import Any

from .context_layout import BUFFER, FULL, GUARDS, NAMES
from .context_views import size, view
from .interned_names import extend_chain, request
from .jit.compilation import inlined, kernel
from .member_guards import add_guard

from .record_layout import (  # isort: skip
    GUARD_ANSWER, GUARD_BYTES, GUARD_W, NAME_PARENT, NAME_VALUE, NAME_W, NO_CANDIDATES, NO_MEMBERS, UNKNOWN_MEMBERS,
)  # fmt: skip
from .value_texts import (  # isort: skip
    BACKSLASH, CAPITAL_E, CLOSE_ARRAY, CLOSE_OBJECT, COLON, COMMA, DOT, LETTER_OFFSET, MINUS, NINE, NOT_DECIDED, OPEN,
    OPEN_OBJECT, PLUS, QUOTE, SLASH, SMALL_E, SMALL_U, ZERO, count_members, find_member, find_significant, has_prefix,
    is_blank, is_container, is_equal_value, kind_of, may_become_number, skip_blanks, skip_string, skip_value,
)  # fmt: skip

FOUND, TEXT_AT = 0, 8
DIFFERS, REQUESTED = -1, -3
MOST_COMPARED = 4_096
"""Most bytes of a member, and of all earlier ones."""


@kernel("int64(int64, int64, int64, int64)")
def copy_text(c: Any, start: Any, end: Any, at: Any) -> Any:
    """Write the bytes of a text between two chains to BUFFER at `at`. Return the place after them.

    REQUESTED if BUFFER is too short, NOT_DECIDED if they are more than MOST_COMPARED.
    """
    names, buffer = view(c, NAMES), view(c, BUFFER)
    n, one = 0, end
    while one != start:
        n += 1
        if n > MOST_COMPARED:
            return NOT_DECIDED
        one = names[NAME_W * one + NAME_PARENT] + 0
    if at + n > size(c, BUFFER):
        request(c, FULL, BUFFER)
        return REQUESTED
    for i in range(n):
        buffer[at + n - 1 - i] = names[NAME_W * end + NAME_VALUE] & 255
        end = names[NAME_W * end + NAME_PARENT] + 0
    return at + n


# ---- bytes that lead to an equal value


@inlined("int64(int64, int64)")
def add_found(c: Any, b: Any) -> Any:
    """Add a byte to those found. Return 1."""
    view(c, BUFFER)[FOUND + (b >> 5)] |= 1 << (b & 31)
    return 1


@kernel("int64(int64)")
def add_blanks(c: Any) -> Any:
    """Add the bytes of white space to those found. Return 1."""
    add_found(c, 9)
    add_found(c, 10)
    add_found(c, 13)
    return add_found(c, 32)


@kernel("int64(int64)")
def add_digits(c: Any) -> Any:
    """Add the digits to those found. Return 1."""
    for b in range(ZERO, NINE + 1):
        add_found(c, b)
    return 1


@kernel("int64(int64, int64)")
def read_unit(c: Any, i: Any) -> Any:
    """Return the UTF-16 code unit with which the character at `i` begins (RFC 8259, section 7)."""
    buffer = view(c, BUFFER)
    a = buffer[i] + 0
    if a < 128:
        return a
    if a < 0xE0:
        return (a & 31) << 6 | buffer[i + 1] & 63
    point = (buffer[i + 1] & 63) << 6 | buffer[i + 2] & 63
    if a < 0xF0:
        return (a & 15) << 12 | point
    point = (a & 7) << 18 | point << 6 | buffer[i + 3] & 63
    return 0xD800 + ((point - 0x10000) >> 10)


@kernel("int64(int64, int64, int64, int64)")
def add_escape(c: Any, a: Any, a_end: Any, b: Any) -> Any:
    """Find how an escape that is not complete may go on to spell the character at b, which needs none."""
    buffer = view(c, BUFFER)
    if a + 1 == a_end:
        if buffer[b] == SLASH:
            add_found(c, SLASH)
        return add_found(c, SMALL_U)
    unit = read_unit(c, b)
    for k in range(4):
        digit = unit >> (12 - 4 * k) & 15
        wanted = digit + (LETTER_OFFSET if digit > 9 else ZERO)
        if a + 2 + k == a_end:
            add_found(c, wanted)
            return add_found(c, wanted - 32 if digit > 9 else wanted)
        if buffer[a + 2 + k] | 32 != wanted:  # a letter in lower case; digits have that bit
            return DIFFERS
    return DIFFERS


@kernel("int64(int64, int64, int64, int64, int64)")
def add_characters(c: Any, a: Any, a_end: Any, b: Any, b_end: Any) -> Any:
    """Find how a string from a on, which is open at a_end, may go on to equal the one from b on, without escapes."""
    buffer = view(c, BUFFER)
    escape = a
    while escape < a_end and buffer[escape] != BACKSLASH:
        escape += 1
    if has_prefix(c, a, escape, b, b_end) == 0:
        return DIFFERS
    following = buffer[b + escape - a] + 0
    if escape < a_end:
        return DIFFERS if following == QUOTE else add_escape(c, escape, a_end, b + escape - a)
    if following != QUOTE:  # the character may be spelled by an escape, too
        add_found(c, BACKSLASH)
    return add_found(c, following)


@kernel("int64(int64, int64, int64)")
def add_first_bytes(c: Any, i: Any, end: Any) -> Any:
    """Find the bytes with which a value that equals the one at `i`, or white space before it, may begin."""
    first = view(c, BUFFER)[i] + 0
    add_blanks(c)
    if kind_of(first) != ZERO:
        return add_found(c, first)
    is_zero = find_significant(c, i, end) == end
    if is_zero or first == MINUS:
        add_found(c, MINUS)
    return add_digits(c) if is_zero or first != MINUS else 1


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def add_continuations(c: Any, a: Any, a_end: Any, b: Any, b_end: Any, after: Any) -> Any:
    """Find how a value from a on, no array or object, which may go on at a_end, may equal the one from b on.

    after: the byte that may follow a number; 0 for a member, whose text ends with it.
    """
    buffer = view(c, BUFFER)
    kind = kind_of(buffer[a])
    if kind != kind_of(buffer[b]):
        return DIFFERS
    if kind == QUOTE:
        return add_characters(c, a, a_end, b, b_end)
    if kind == ZERO:
        if may_become_number(c, a, a_end, b, b_end) == 0:
            return DIFFERS
        add_found(c, PLUS)
        add_found(c, MINUS)
        add_found(c, DOT)
        add_found(c, CAPITAL_E)
        add_found(c, SMALL_E)
        if after:
            add_found(c, after)
            add_blanks(c)
        return add_digits(c)
    is_begun = has_prefix(c, a, a_end, b, b_end)
    if is_begun == 1:
        add_found(c, buffer[b + a_end - a])
    return 1 if is_begun else DIFFERS


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def add_names(c: Any, text: Any, name: Any, text_end: Any, other: Any, other_end: Any) -> Any:
    """Find how the name that the text is within may go on, to be one of another object that the text does not have.

    The text has complete members from `text` to `name`.
    """
    buffer = view(c, BUFFER)
    found, i = DIFFERS, other + 1
    while i < other_end and buffer[i] != CLOSE_OBJECT:
        colon = skip_value(c, i, other_end)
        if find_member(c, text, name, i, colon) == 0 and add_characters(c, name, text_end, i, colon) == 1:
            found = 1
        i = skip_blanks(c, skip_value(c, colon + 1, other_end), other_end)
        if i < other_end and buffer[i] == COMMA:
            i += 1
    return found


@kernel("int64(int64, int64, int64, int64, int64)")
def follow_container(c: Any, text: Any, text_end: Any, other: Any, other_end: Any) -> Any:
    """Find how the array or object that begins at `text` may go on to equal another of its kind.

    Return 1, DIFFERS or NOT_DECIDED; of two complete ones 1 if they are equal.
    """
    buffer = view(c, BUFFER)
    while True:  # once for each array or object within the last one
        is_object = buffer[text] == OPEN_OBJECT
        closing = CLOSE_OBJECT if is_object else CLOSE_ARRAY
        total = count_members(c, other, other_end)
        if total < 0:
            return NOT_DECIDED
        matched, i, item, is_inside = 0, text + 1, other + 1, False
        while not is_inside:
            if i == text_end and (matched == total or is_object):
                has_comma = buffer[i - 1] == COMMA
                if has_comma and matched == total:
                    return DIFFERS
                add_found(c, QUOTE if matched < total else closing)
                return add_blanks(c)
            if i < text_end and buffer[i] == closing and i + 1 == text_end:
                return 1 if matched == total else DIFFERS
            value = item
            if is_object:
                if buffer[i] != QUOTE:
                    return NOT_DECIDED
                colon = skip_string(c, i, text_end)
                if colon == NOT_DECIDED:
                    return NOT_DECIDED
                if colon == OPEN:
                    return add_names(c, text, i, text_end, other, other_end)
                value = item + colon - i + 1  # most often, members have the same order
                if has_prefix(c, i, colon, item, other_end) == 0 or buffer[value - 1] != COLON:
                    value = find_member(c, other, other_end, i, colon)
                if value == 0:
                    return DIFFERS
                if colon == text_end:
                    add_found(c, COLON)
                    return add_blanks(c)
                i = colon + 1
            elif matched == total:
                return DIFFERS
            value_end = skip_value(c, value, other_end)
            if i == text_end:
                return add_first_bytes(c, value, value_end)
            end = skip_value(c, i, text_end)
            if end == NOT_DECIDED:
                return NOT_DECIDED
            if end == OPEN:
                if buffer[i] != buffer[value] or not is_container(buffer[i]):
                    after = closing if matched + 1 == total else COMMA
                    return add_continuations(c, i, text_end, value, value_end, after)
                text, other, other_end, is_inside = i, value, value_end, True
            else:
                is_equal = is_equal_value(c, i, end, value, value_end)
                if is_equal != 1:
                    return DIFFERS if is_equal == 0 else NOT_DECIDED
                matched += 1
                item = skip_blanks(c, value_end, other_end) + 1  # after the comma, if there is one
                i = skip_blanks(c, end, text_end)
                if i == text_end:
                    add_found(c, COMMA if matched < total else closing)
                    return add_blanks(c)
                if buffer[i] == COMMA:
                    i += 1


@kernel("int64(int64, int64, int64)")
def find_end(c: Any, i: Any, end: Any) -> Any:
    """Return the end of a member from `i` to `end`, without white space, or NOT_DECIDED if it is one with an escape."""
    buffer = view(c, BUFFER)
    if buffer[i] == QUOTE:
        return skip_string(c, i, end)
    return end - 1 if is_blank(buffer[end - 1]) else end


@kernel("int64(int64, int64, int64, int64, int64)")
def follow_member(c: Any, text_end: Any, other: Any, other_end: Any, is_complete: Any) -> Any:
    """Find how the member from TEXT_AT to text_end, which has begun, may go on to equal another one.

    Return 1, DIFFERS or NOT_DECIDED; if it is complete, 1 if they are equal.
    """
    buffer = view(c, BUFFER)
    if kind_of(buffer[TEXT_AT]) != kind_of(buffer[other]):
        return DIFFERS
    if is_container(buffer[other]):
        return follow_container(c, TEXT_AT, text_end, other, other_end)
    end, other_end = find_end(c, TEXT_AT, text_end), find_end(c, other, other_end)
    if end == NOT_DECIDED or other_end == NOT_DECIDED:
        return NOT_DECIDED
    if end == OPEN or (end == text_end and buffer[other] != QUOTE and not is_complete):
        return add_continuations(c, TEXT_AT, text_end, other, other_end, 0)
    is_equal = is_equal_value(c, TEXT_AT, end, other, other_end)
    return DIFFERS if is_equal == 0 else is_equal


@kernel("int64(int64, int64, int64, int64)")
def follow_members(c: Any, register: Any, text: Any, is_complete: Any) -> Any:
    """Find how a text may go on to equal an earlier member of its register.

    Return 1, DIFFERS, NOT_DECIDED, or REQUESTED; if the text is complete, 1 if it equals one.
    """
    names, buffer = view(c, NAMES), view(c, BUFFER)
    members = names[NAME_W * register + NAME_PARENT] + 0
    end = copy_text(c, names[NAME_W * register + NAME_VALUE], text, TEXT_AT)
    if end < 0:
        return end
    for w in range(TEXT_AT):
        buffer[FOUND + w] = 0
    total, found = 0, DIFFERS
    while members != NO_MEMBERS:
        if members == UNKNOWN_MEMBERS:
            return NOT_DECIDED
        before = names[NAME_W * members + NAME_PARENT] + 0
        other_end = copy_text(c, names[NAME_W * before + NAME_VALUE], names[NAME_W * members + NAME_VALUE], end)
        if other_end < 0:
            return other_end
        total += other_end - end
        if total > MOST_COMPARED or other_end == end:
            return NOT_DECIDED
        if end == TEXT_AT:
            follows = add_first_bytes(c, end, other_end)
        else:
            follows = follow_member(c, end, end, other_end, is_complete)
        if follows == NOT_DECIDED:
            return NOT_DECIDED
        if follows == 1:
            found = 1
        members = names[NAME_W * before + NAME_PARENT] + 0
    return found


@kernel("int64(int64, int64, int64)")
def is_new_member(c: Any, register: Any, text: Any) -> Any:
    """Return whether the complete member of a register differs from all earlier ones: 1, 0, -1 or NOT_DECIDED."""
    found = follow_members(c, register, text, 1)
    return 1 if found == DIFFERS else 0 if found == 1 else -1 if found == REQUESTED else NOT_DECIDED


@kernel("int64(int64, int64, int64)")
def add_candidates(c: Any, chain: Any, text: Any) -> Any:
    """Add a record of GUARDS: which candidates remain after a text, and after which bytes.

    Return its index, -1, or NOT_DECIDED.
    """
    names, buffer, guards = view(c, NAMES), view(c, BUFFER), view(c, GUARDS)
    if names[NAME_W * chain + NAME_PARENT] != NO_CANDIDATES:
        return NOT_DECIDED
    register = names[NAME_W * chain + NAME_VALUE] + 0
    found = follow_members(c, register, text, 0)
    if found == NOT_DECIDED or found == REQUESTED:
        return NOT_DECIDED if found == NOT_DECIDED else -1
    remaining = extend_chain(c, NO_CANDIDATES, register) if found == 1 else NO_CANDIDATES
    guard = add_guard(c, chain, text, 0, remaining) if remaining >= 0 else -1
    if guard < 0:
        return -1
    for w in range(TEXT_AT):
        guards[guard * GUARD_W + GUARD_BYTES + w] = buffer[FOUND + w]
    guards[guard * GUARD_W + GUARD_ANSWER] = remaining
    return guard
