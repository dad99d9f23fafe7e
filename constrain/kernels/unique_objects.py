"""Members that must differ and are objects: candidates found by their texts, without the caller (kernels).

The text of a member has no white space but one after a word (`unique_members.extend_text`). So two values are equal if
their texts are; strings without escapes, integers and literals are different otherwise, and objects are compared member
by member, in any order. What cannot be told so is NOT_DECIDED, and `engine.uniqueness` answers: texts with escapes,
numbers in several spellings, complete values within a member that are arrays or objects and not spelled alike.

BUFFER holds the bytes found, as 8 words, then the text of the member, then that of an earlier one.
"""

from __future__ import annotations

from typing import Any

from .context_layout import BUFFER, FULL, GUARDS, NAMES
from .context_views import size, view
from .interned_names import extend_chain, request
from .jit.compilation import inlined, kernel
from .member_guards import add_guard
from .unique_strings import MOST_COMPARED, NOT_DECIDED

from .record_layout import (  # isort: skip
    GUARD_ANSWER, GUARD_BYTES, GUARD_W, NAME_PARENT, NAME_VALUE, NAME_W, NO_CANDIDATES, NO_MEMBERS, UNKNOWN_MEMBERS,
)  # fmt: skip

FOUND, TEXT_AT = 0, 8
OPEN, DIFFERS, REQUESTED = -1, -1, -3
QUOTE, COMMA, ZERO, NINE, COLON, OPEN_ARRAY, BACKSLASH, OPEN_OBJECT, CLOSE_OBJECT = 34, 44, 48, 57, 58, 91, 92, 123, 125
CLOSE_ARRAY, MINUS = 93, 45


@kernel("int64(int64, int64, int64, int64)")
def copy_text(c: Any, start: Any, end: Any, at: Any) -> Any:
    """Write the bytes of a text between two chains to BUFFER at `at`. Return the place behind them.

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


@inlined("int64(int64)")
def is_blank(b: Any) -> Any:
    """Return whether a byte is white space."""
    return b == 32 or b == 9 or b == 10 or b == 13


@inlined("int64(int64)")
def is_digit(b: Any) -> Any:
    """Return whether a byte is a digit."""
    return ZERO <= b <= NINE


@inlined("int64(int64)")
def is_of_number(b: Any) -> Any:
    """Return whether a byte occurs in numbers."""
    return is_digit(b) or b == MINUS or b == 43 or b == 46 or b == 69 or b == 101


@kernel("int64(int64, int64, int64)")
def skip_value(c: Any, i: Any, end: Any) -> Any:
    """Return the place behind the value at `i` of BUFFER, OPEN if it may go on at `end`, NOT_DECIDED at an escape.

    Arrays and objects may have escapes.
    """
    buffer = view(c, BUFFER)
    first = buffer[i] + 0
    j = i + 1
    if first == QUOTE:
        while j < end:
            if buffer[j] == BACKSLASH:
                return NOT_DECIDED
            if buffer[j] == QUOTE:
                return j + 1
            j += 1
        return OPEN
    if first == OPEN_OBJECT or first == OPEN_ARRAY:
        depth, is_string = 1, False
        while j < end:
            b = buffer[j] + 0
            if b == QUOTE:
                is_string = not is_string
            elif is_string:
                if b == BACKSLASH:
                    j += 1
            elif b == OPEN_OBJECT or b == OPEN_ARRAY:
                depth += 1
            elif b == CLOSE_OBJECT or b == CLOSE_ARRAY:
                depth -= 1
                if depth == 0:
                    return j + 1
            j += 1
        return OPEN
    if is_digit(first) or first == MINUS:
        while j < end and is_of_number(buffer[j]):
            j += 1
        return j if j < end else OPEN
    j = i + (5 if first == 102 else 4)  # false, or true and null
    return j if j <= end else OPEN


@inlined("int64(int64, int64, int64)")
def skip_blanks(c: Any, i: Any, end: Any) -> Any:
    """Return the first place from `i` on that is not white space."""
    while i < end and is_blank(view(c, BUFFER)[i]):
        i += 1
    return i


@kernel("int64(int64, int64, int64, int64, int64)")
def has_prefix(c: Any, a: Any, a_end: Any, b: Any, b_end: Any) -> Any:
    """Return whether the bytes of BUFFER from b on begin with those from a on: 2 if these are all, 1, or 0."""
    buffer = view(c, BUFFER)
    if a_end - a > b_end - b:
        return 0
    for k in range(a_end - a):
        if buffer[a + k] != buffer[b + k]:
            return 0
    return 2 if a_end - a == b_end - b else 1


@kernel("int64(int64, int64, int64)")
def is_natural(c: Any, i: Any, end: Any) -> Any:
    """Return whether all bytes of BUFFER from `i` on are digits."""
    for k in range(i, end):
        if not is_digit(view(c, BUFFER)[k]):
            return 0
    return 1


@inlined("int64(int64)")
def kind_of(b: Any) -> Any:
    """Return the first byte of a value as that of its kind: all numbers have the same."""
    return ZERO if is_digit(b) or b == MINUS else b


@kernel("int64(int64, int64, int64, int64, int64)")
def is_equal_value(c: Any, a: Any, a_end: Any, b: Any, b_end: Any) -> Any:
    """Return whether two complete values are equal: 1, 0, or NOT_DECIDED."""
    buffer = view(c, BUFFER)
    if has_prefix(c, a, a_end, b, b_end) == 2:
        return 1
    kind = kind_of(buffer[a])
    if kind != kind_of(buffer[b]):
        return 0
    if kind == OPEN_OBJECT or kind == OPEN_ARRAY:
        return NOT_DECIDED
    if kind == ZERO:
        return 0 if is_natural(c, a, a_end) and is_natural(c, b, b_end) else NOT_DECIDED
    return 0


@kernel("int64(int64, int64, int64, int64, int64)")
def find_value(c: Any, i: Any, end: Any, key: Any, key_end: Any) -> Any:
    """Return where the value of a key begins in the object at `i` of BUFFER; 0 if there is none, or NOT_DECIDED.

    The object has complete members up to `end`. With key_end 0 the number of its members is returned.
    """
    buffer = view(c, BUFFER)
    i += 1
    count = 0
    while i < end and buffer[i] != CLOSE_OBJECT:
        name_end = skip_value(c, i, end)
        if name_end < 0:
            return NOT_DECIDED
        value_end = skip_value(c, name_end + 1, end)
        if value_end < 0:
            return NOT_DECIDED
        if key_end > 0 and has_prefix(c, key, key_end, i, name_end) == 2:
            return name_end + 1
        count += 1
        i = skip_blanks(c, value_end, end)
        if i < end and buffer[i] == COMMA:
            i += 1
    return count if key_end == 0 else 0


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def add_names(c: Any, text: Any, key: Any, text_end: Any, other: Any, other_end: Any) -> Any:
    """Find how the key that the text is within may go on, to be one of another object that the text does not have.

    Return 1, or DIFFERS. The text has complete members from `text` to `key`.
    """
    buffer = view(c, BUFFER)
    found, i = DIFFERS, other + 1
    while i < other_end and buffer[i] != CLOSE_OBJECT:
        name_end = skip_value(c, i, other_end)
        if has_prefix(c, key, text_end, i, name_end) and find_value(c, text, key, i, name_end) == 0:
            b = buffer[i + text_end - key] + 0
            found = add_found(c, b)
            if b != QUOTE:  # the character may be spelled by an escape, too
                add_found(c, BACKSLASH)
        i = skip_blanks(c, skip_value(c, name_end + 1, other_end), other_end)
        if i < other_end and buffer[i] == COMMA:
            i += 1
    return found


@kernel("int64(int64, int64, int64, int64, int64)")
def may_become(c: Any, a: Any, a_end: Any, b: Any, b_end: Any) -> Any:
    """Return whether the digits of BUFFER from a on may be continued to a number equal to the integer from b on."""
    buffer = view(c, BUFFER)
    length = 0 if buffer[a] == ZERO else a_end - a
    stripped = length
    while stripped > 0 and buffer[a + stripped - 1] == ZERO:
        stripped -= 1
    while b_end > b and buffer[b_end - 1] == ZERO:
        b_end -= 1
    if b == b_end:
        return 1 if length == 0 else 0
    if has_prefix(c, a, a + length, b, b_end):
        return 1
    return 1 if has_prefix(c, a, a + stripped, b, b_end) == 2 else 0


@kernel("int64(int64, int64, int64)")
def add_first_bytes(c: Any, i: Any, end: Any) -> Any:
    """Find the bytes with which a value may begin that equals the one at `i` of BUFFER. Return 1, or NOT_DECIDED."""
    buffer = view(c, BUFFER)
    add_blanks(c)
    if buffer[i] == MINUS or (is_digit(buffer[i]) and not is_natural(c, i, end)):
        return NOT_DECIDED
    if not is_digit(buffer[i]):
        return add_found(c, buffer[i])
    if buffer[i] == ZERO:
        add_found(c, MINUS)
    for b in range(ZERO, NINE + 1):
        add_found(c, b)
    return 1


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def add_continuations(c: Any, a: Any, a_end: Any, b: Any, b_end: Any, is_last: Any) -> Any:
    """Find how a value that the text is within, no array or object, may go on to equal the one at b of BUFFER.

    is_last: whether the object has no further member. Return 1, DIFFERS or NOT_DECIDED.
    """
    buffer = view(c, BUFFER)
    kind = kind_of(buffer[a])
    if kind != kind_of(buffer[b]):
        return DIFFERS
    if kind == ZERO:
        if not is_natural(c, a, a_end) or not is_natural(c, b, b_end):
            return NOT_DECIDED
        if not may_become(c, a, a_end, b, b_end):
            return DIFFERS
        for byte in range(43, 58):
            if is_of_number(byte):
                add_found(c, byte)
        add_found(c, 69)
        add_found(c, 101)
        add_found(c, CLOSE_OBJECT if is_last else COMMA)
        return add_blanks(c)
    if has_prefix(c, a, a_end, b, b_end) == 0:
        return DIFFERS
    following = buffer[b + a_end - a] + 0
    if kind == QUOTE and following != QUOTE:
        add_found(c, BACKSLASH)
    return add_found(c, following)


@kernel("int64(int64, int64, int64, int64, int64)")
def follow_object(c: Any, text: Any, text_end: Any, other: Any, other_end: Any) -> Any:
    """Find the bytes by which the object that begins at `text` of BUFFER may go on to equal another one.

    Return 1, DIFFERS or NOT_DECIDED; of two complete objects 1 if they are equal.
    """
    buffer = view(c, BUFFER)
    while True:  # once for each object within the last one
        total = find_value(c, other, other_end, 0, 0)
        if total < 0:
            return NOT_DECIDED
        matched, i = 0, text + 1
        while True:
            if i == text_end:
                has_comma = buffer[i - 1] == COMMA
                if (has_comma or matched == 0) and matched < total:
                    add_found(c, QUOTE)
                elif has_comma:
                    return DIFFERS
                else:
                    add_found(c, CLOSE_OBJECT)
                return add_blanks(c)
            if buffer[i] == CLOSE_OBJECT and i + 1 == text_end:
                return 1 if matched == total else DIFFERS
            if buffer[i] != QUOTE:
                return NOT_DECIDED
            name_end = skip_value(c, i, text_end)
            if name_end == NOT_DECIDED:
                return NOT_DECIDED
            if name_end == OPEN:
                return add_names(c, text, i, text_end, other, other_end)
            value = find_value(c, other, other_end, i, name_end)
            if value == 0:
                return DIFFERS
            if name_end == text_end:
                add_found(c, COLON)
                return add_blanks(c)
            value_end = skip_value(c, value, other_end)
            if value_end < 0:
                return NOT_DECIDED
            i = name_end + 1
            if i == text_end:
                return add_first_bytes(c, value, value_end)
            end = skip_value(c, i, text_end)
            if end == NOT_DECIDED:
                return NOT_DECIDED
            if end == OPEN:
                if buffer[i] == OPEN_OBJECT and buffer[value] == OPEN_OBJECT:
                    text, other, other_end = i, value, value_end
                    break
                if buffer[i] == OPEN_ARRAY and buffer[value] == OPEN_ARRAY:
                    return NOT_DECIDED
                return add_continuations(c, i, text_end, value, value_end, 1 if matched + 1 == total else 0)
            is_equal = is_equal_value(c, i, end, value, value_end)
            if is_equal != 1:
                return DIFFERS if is_equal == 0 else NOT_DECIDED
            matched += 1
            i = skip_blanks(c, end, text_end)
            if i == text_end:
                add_found(c, COMMA if matched < total else CLOSE_OBJECT)
                return add_blanks(c)
            if buffer[i] == COMMA:
                i += 1


@kernel("int64(int64, int64, int64)")
def follow_members(c: Any, register: Any, text: Any) -> Any:
    """Find the bytes by which a text may go on to equal an earlier member of its register.

    Return 1, DIFFERS, NOT_DECIDED, or REQUESTED. The text is one that has not begun, or that begins an object.
    """
    names, buffer = view(c, NAMES), view(c, BUFFER)
    members = names[NAME_W * register + NAME_PARENT] + 0
    end = copy_text(c, names[NAME_W * register + NAME_VALUE], text, TEXT_AT)
    if end < 0:
        return end
    if end > TEXT_AT and buffer[TEXT_AT] != OPEN_OBJECT:
        return NOT_DECIDED
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
        follows = DIFFERS
        if end == TEXT_AT:
            follows = add_first_bytes(c, end, other_end)
        elif buffer[end] == OPEN_OBJECT:
            follows = follow_object(c, TEXT_AT, end, end, other_end)
        if follows == NOT_DECIDED:
            return NOT_DECIDED
        if follows == 1:
            found = 1
        members = names[NAME_W * before + NAME_PARENT] + 0
    return found


@kernel("int64(int64, int64, int64)")
def is_new_object(c: Any, register: Any, text: Any) -> Any:
    """Return whether the complete member of a register differs from all earlier ones: 1, 0, -1 or NOT_DECIDED."""
    found = follow_members(c, register, text)
    return 1 if found == DIFFERS else 0 if found == 1 else -1 if found == REQUESTED else NOT_DECIDED


@kernel("int64(int64, int64, int64)")
def add_object_candidates(c: Any, chain: Any, text: Any) -> Any:
    """Add a record of GUARDS: which candidates remain after a text, and after which bytes.

    Return its index, -1, or NOT_DECIDED. The text is one that has not begun, or that begins an object.
    """
    names, buffer, guards = view(c, NAMES), view(c, BUFFER), view(c, GUARDS)
    if names[NAME_W * chain + NAME_PARENT] != NO_CANDIDATES:
        return NOT_DECIDED
    register = names[NAME_W * chain + NAME_VALUE] + 0
    found = follow_members(c, register, text)
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
