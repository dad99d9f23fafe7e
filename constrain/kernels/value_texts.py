"""JSON values as texts in BUFFER: where they end, and whether two of them are equal or may become so (kernels).

The texts have no white space but one after a word (`unique_members.extend_text`). Texts that are spelled alike are
equal. Strings without escapes, integers and literals are different otherwise; arrays and objects if their digests
differ, and other numbers if their digits do. What cannot be told so is NOT_DECIDED, and `engine.uniqueness` answers.
"""

from __future__ import annotations

from typing import Any

from .context_layout import BUFFER
from .context_views import view
from .jit.compilation import inlined, kernel

OPEN, NOT_DECIDED = -1, -2
QUOTE, PLUS, COMMA, MINUS, DOT, SLASH, ZERO, NINE, COLON, CAPITAL_E = 34, 43, 44, 45, 46, 47, 48, 57, 58, 69
OPEN_ARRAY, BACKSLASH, CLOSE_ARRAY, SMALL_E, SMALL_U, OPEN_OBJECT, CLOSE_OBJECT = 91, 92, 93, 101, 117, 123, 125
LETTER_OFFSET = 87  # of the letters a to f from the values of these hexadecimal digits
DIGEST_BITS = (1 << 30) - 1


# ---- where values end


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
    return is_digit(b) or b == MINUS or b == PLUS or b == DOT or b == CAPITAL_E or b == SMALL_E


@inlined("int64(int64)")
def kind_of(b: Any) -> Any:
    """Return the first byte of a value as that of its kind: all numbers have the same."""
    return ZERO if is_digit(b) or b == MINUS else b


@inlined("int64(int64)")
def is_container(b: Any) -> Any:
    """Return whether a byte begins an array or an object."""
    return b == OPEN_ARRAY or b == OPEN_OBJECT


@inlined("int64(int64, int64, int64)")
def skip_blanks(c: Any, i: Any, end: Any) -> Any:
    """Return the first place from `i` on that is not white space."""
    while i < end and is_blank(view(c, BUFFER)[i]):
        i += 1
    return i


@kernel("int64(int64, int64, int64)")
def skip_string(c: Any, i: Any, end: Any) -> Any:
    """Return the place after the string at `i`, OPEN if it may go on at `end`, NOT_DECIDED if it has an escape.

    One that is not complete at `end` may be there.
    """
    buffer = view(c, BUFFER)
    j = i + 1
    while j < end:
        if buffer[j] == BACKSLASH:
            is_open = j + 1 == end or (buffer[j + 1] == SMALL_U and j + 6 > end)
            return OPEN if is_open else NOT_DECIDED
        if buffer[j] == QUOTE:
            return j + 1
        j += 1
    return OPEN


@kernel("int64(int64, int64, int64)")
def skip_container(c: Any, i: Any, end: Any) -> Any:
    """Return the place after the array or object at `i`, or OPEN if it goes on at `end`. It may have escapes."""
    buffer = view(c, BUFFER)
    depth, is_string = 0, False
    while i < end:
        b = buffer[i] + 0
        if b == QUOTE:
            is_string = not is_string
        elif is_string:
            if b == BACKSLASH:
                i += 1
        elif is_container(b):
            depth += 1
        elif b == CLOSE_OBJECT or b == CLOSE_ARRAY:
            depth -= 1
            if depth == 0:
                return i + 1
        i += 1
    return OPEN


@kernel("int64(int64, int64, int64)")
def skip_value(c: Any, i: Any, end: Any) -> Any:
    """Return the place after the value at `i`, OPEN if it may go on at `end`, NOT_DECIDED at an escape of a string."""
    buffer = view(c, BUFFER)
    first = buffer[i] + 0
    if first == QUOTE:
        return skip_string(c, i, end)
    if is_container(first):
        return skip_container(c, i, end)
    if kind_of(first) == ZERO:
        while i < end and is_of_number(buffer[i]):
            i += 1
        return i if i < end else OPEN
    i += 5 if first == 102 else 4  # false, or true and null
    return i if i <= end else OPEN


@kernel("int64(int64, int64, int64, int64, int64)")
def has_prefix(c: Any, a: Any, a_end: Any, b: Any, b_end: Any) -> Any:
    """Return whether the bytes from b on begin with those from a on: 2 if these are all, 1, or 0."""
    buffer = view(c, BUFFER)
    if a_end - a > b_end - b:
        return 0
    for k in range(a_end - a):
        if buffer[a + k] != buffer[b + k]:
            return 0
    return 2 if a_end - a == b_end - b else 1


# ---- numbers


@kernel("int64(int64, int64, int64)")
def find_digit(c: Any, i: Any, end: Any) -> Any:
    """Return the place of the first digit of a mantissa from `i` on, or `end`."""
    buffer = view(c, BUFFER)
    while i < end and (buffer[i] == DOT or buffer[i] == MINUS):
        i += 1
    return i if i < end and is_digit(buffer[i]) else end


@kernel("int64(int64, int64, int64)")
def find_significant(c: Any, i: Any, end: Any) -> Any:
    """Return the place of the first digit of a mantissa from `i` on that is not 0, or `end`."""
    i = find_digit(c, i, end)
    while i < end and view(c, BUFFER)[i] == ZERO:
        i = find_digit(c, i + 1, end)
    return i


@kernel("int64(int64, int64, int64)")
def has_exponent(c: Any, i: Any, end: Any) -> Any:
    """Return whether a number has an exponent."""
    for k in range(i, end):
        if view(c, BUFFER)[k] == SMALL_E or view(c, BUFFER)[k] == CAPITAL_E:
            return 1
    return 0


@kernel("int64(int64, int64, int64)")
def is_integer(c: Any, i: Any, end: Any) -> Any:
    """Return whether a number has neither a point nor an exponent."""
    for k in range(i + 1, end):
        if not is_digit(view(c, BUFFER)[k]):
            return 0
    return 1


@kernel("int64(int64, int64, int64, int64, int64)")
def may_become_number(c: Any, a: Any, a_end: Any, b: Any, b_end: Any) -> Any:
    """Return whether a number from a on, which may go on at a_end, may become equal to the complete one from b on.

    An exponent can make good the position of the digits, so it is not looked at.
    """
    buffer = view(c, BUFFER)
    i, j = find_significant(c, a, a_end), find_significant(c, b, b_end)
    if j == b_end:
        return 1 if i == a_end else 0
    if (buffer[a] == MINUS) != (buffer[b] == MINUS):
        return 0
    while i < a_end and j < b_end:
        if buffer[i] != buffer[j]:
            return 0
        i, j = find_digit(c, i + 1, a_end), find_digit(c, j + 1, b_end)
    if i == a_end and has_exponent(c, a, a_end) == 0:
        return 1
    return 1 if find_significant(c, i, a_end) == a_end and find_significant(c, j, b_end) == b_end else 0


@kernel("int64(int64, int64, int64, int64, int64)")
def is_equal_number(c: Any, a: Any, a_end: Any, b: Any, b_end: Any) -> Any:
    """Return whether two complete numbers that are not spelled alike are equal: 1, 0, or NOT_DECIDED."""
    if find_significant(c, a, a_end) == a_end and find_significant(c, b, b_end) == b_end:
        return 1  # both are zero
    if may_become_number(c, a, a_end, b, b_end) == 0 or may_become_number(c, b, b_end, a, a_end) == 0:
        return 0
    return 0 if is_integer(c, a, a_end) and is_integer(c, b, b_end) else NOT_DECIDED


# ---- values


@kernel("int64(int64, int64, int64)")
def compute_digest(c: Any, i: Any, end: Any) -> Any:
    """Return the digest of an array or object, which equal values share; NOT_DECIDED where equal parts may differ.

    The text is cut at commas and brackets, and the digest adds the squares of the parts' hashes, so that the order of
    members does not matter. Strings with escapes, and numbers but integers, may have other spellings.
    """
    buffer = view(c, BUFFER)
    total, part, depth, is_string, b = 0, 0, 0, False, 0
    for k in range(i, end):
        last, b = b, buffer[k] + 0
        if is_string:
            if b == BACKSLASH:
                return NOT_DECIDED
            is_string = b != QUOTE
        elif b == COMMA or is_container(b) or b == CLOSE_ARRAY or b == CLOSE_OBJECT:
            total = (total + part * part) & DIGEST_BITS
            depth += 1 if is_container(b) else 0 if b == COMMA else -1
            part = depth
            continue
        elif b == QUOTE:
            is_string = True
        elif is_blank(b):
            continue
        elif b == DOT or b == CAPITAL_E or (b == SMALL_E and is_digit(last)) or (b == ZERO and last == MINUS):
            return NOT_DECIDED
        part = (31 * part + b) & DIGEST_BITS
    return total


@kernel("int64(int64, int64, int64, int64, int64)")
def is_equal_value(c: Any, a: Any, a_end: Any, b: Any, b_end: Any) -> Any:
    """Return whether two complete values, no strings with escapes, are equal: 1, 0, or NOT_DECIDED."""
    buffer = view(c, BUFFER)
    if has_prefix(c, a, a_end, b, b_end) == 2:
        return 1
    kind = kind_of(buffer[a])
    if kind != kind_of(buffer[b]):
        return 0
    if kind == ZERO:
        return is_equal_number(c, a, a_end, b, b_end)
    if is_container(kind):
        digest, other = compute_digest(c, a, a_end), compute_digest(c, b, b_end)
        return 0 if digest >= 0 and other >= 0 and digest != other else NOT_DECIDED
    return 0


@kernel("int64(int64, int64, int64)")
def count_members(c: Any, i: Any, end: Any) -> Any:
    """Return how many members or items a complete object or array has, or NOT_DECIDED if one has an escape."""
    buffer = view(c, BUFFER)
    is_object = buffer[i] == OPEN_OBJECT
    count = 0
    i += 1
    while i < end and buffer[i] != CLOSE_OBJECT and buffer[i] != CLOSE_ARRAY:
        if is_object:
            i = skip_value(c, i, end) + 1
            if i <= 0:
                return NOT_DECIDED
        i = skip_value(c, i, end)
        if i < 0:
            return NOT_DECIDED
        count += 1
        i = skip_blanks(c, i, end)
        if i < end and buffer[i] == COMMA:
            i += 1
    return count


@kernel("int64(int64, int64, int64, int64, int64)")
def find_member(c: Any, i: Any, end: Any, name: Any, name_end: Any) -> Any:
    """Return where the value of a name begins in the object at `i`, which has complete members up to `end`.

    0 if there is none, or NOT_DECIDED.
    """
    buffer = view(c, BUFFER)
    i += 1
    while i < end and buffer[i] != CLOSE_OBJECT:
        colon = skip_value(c, i, end)
        if colon < 0:
            return NOT_DECIDED
        if has_prefix(c, name, name_end, i, colon) == 2:
            return colon + 1
        i = skip_value(c, colon + 1, end)
        if i < 0:
            return NOT_DECIDED
        i = skip_blanks(c, i, end)
        if i < end and buffer[i] == COMMA:
            i += 1
    return 0
