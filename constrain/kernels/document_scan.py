"""A scan of the text of a schema document that finds most plain ones (kernels; see `document_scan_layout`).

It follows the rules of `frontends.json_schema.reading.document_inspection`, and is certain where it says yes: then
that inspection would, too, apart from the texts whose places are returned (patterns, formats, references, identifiers).
Where it says no, the document may be plain all the same: names are spelled with escapes or not unique, numbers have
fractions, objects have many keys. The text has been parsed before, so it is JSON.
"""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_records import READ_BYTES
from .context_views import int64s_at
from .document_scan_layout import (
    A_FORMAT,
    A_PATTERN,
    A_REFERENCE,
    A_SUBSCHEMA,
    ALL_TYPES,
    AN_IDENTIFIER,
    ANY_LIST,
    B_ADDITIONAL,
    B_ANY_OF,
    B_ASSERTIONS,
    B_CONST,
    B_CONTAINER,
    B_DIALECT,
    B_ENUM,
    B_FORMAT,
    B_HOLDERS,
    B_IDENTIFIER,
    B_ITEMS,
    B_MAX_ITEMS,
    B_MAX_LENGTH,
    B_MAXIMUM,
    B_MIN_ITEMS,
    B_MIN_LENGTH,
    B_MINIMUM,
    B_ONE_OF,
    B_OTHER,
    B_PATTERN,
    B_PATTERNS,
    B_PROPERTIES,
    B_REFERENCE,
    B_REQUIRED,
    B_SPANS,
    B_TEXTS,
    B_TYPE,
    B_UNKNOWN,
    D_BITS,
    D_FIRST,
    D_HASH,
    D_HEADER,
    D_LEGACY,
    D_LENGTH,
    D_MOST_COUNT,
    D_SLOTS,
    D_TYPES,
    D_W,
    DEFINITION_MAP,
    F_CLOSED,
    F_COUNT,
    F_KIND,
    F_KINDS,
    F_LAST,
    F_LOW,
    F_NAMES,
    F_REQUIRED,
    F_TYPES,
    F_W,
    IS_BOOLEAN,
    IS_INTEGER,
    IS_NULL,
    IS_NUMBER,
    IS_STRING,
    MOST_DIGITS,
    MOST_FRAMES,
    MOST_MEMBERS,
    MOST_OPTIONS,
    MOST_VALUES,
    MULTIPLIER,
    N_W,
    ONE_LIST,
    PROPERTY_MAP,
    R_HAS_IDS,
    R_HEADER,
    R_SPANS,
    R_SUBSCHEMAS,
    R_VALUES,
    S_W,
    T_W,
    UNKNOWN_NAME,
)
from .jit.compilation import entry, inlined
from .json_texts import (
    BACKSLASH,
    CLOSE_LIST,
    CLOSE_OBJECT,
    COMMA,
    OPEN_LIST,
    OPEN_OBJECT,
    QUOTE,
    find_quote,
    skip_number,
    skip_space,
    skip_value,
)  # fmt: skip

READ64 = types.Array(types.int64, 1, "C", readonly=True)
MINUS = 45
LETTER_F, LETTER_N, LETTER_T, LETTER_U = 102, 110, 116, 117
UNBOUNDED = 1 << 62
NO_INTEGER = 1 << 61


@inlined("boolean(uint8[:], int64, int64)")
def has_escape(text: Any, p: Any, end: Any) -> Any:
    """Return whether there is a backslash from p on before `end`."""
    while p < end:
        if text[p] == BACKSLASH:
            return True
        p += 1
    return False


@inlined("int64(uint8[:], int64, int64)")
def read_integer(text: Any, p: Any, end: Any) -> Any:
    """Return the integer of at most MOST_DIGITS digits from p to `end`, or NO_INTEGER."""
    negative = p < end and text[p] == MINUS
    if negative:
        p += 1
    if p >= end or end - p > MOST_DIGITS:
        return NO_INTEGER
    value = 0
    while p < end:
        digit = text[p] - 48
        if digit < 0 or digit > 9:
            return NO_INTEGER
        value = 10 * value + digit
        p += 1
    return -value if negative else value


@inlined("int64(uint8[:], int64, int64)")
def hash_name(text: Any, p: Any, end: Any) -> Any:
    """Return the hash of the bytes from p on before `end`."""
    h = 0
    while p < end:
        h = h * MULTIPLIER + text[p]
        p += 1
    return h


@inlined("boolean(uint8[:], int64, uint8[:], int64, int64)")
def are_equal(text: Any, p: Any, other: Any, q: Any, length: Any) -> Any:
    """Return whether `length` bytes at p and at q are equal."""
    i = 0
    while i < length and text[p + i] == other[q + i]:
        i += 1
    return i == length


@inlined("int64(uint8[:], int64, int64, int64, uint8[:], pointer)")
def find_bits(text: Any, p: Any, end: Any, h: Any, blob: Any, table: Any) -> Any:
    """Return the bits of a name: B_UNKNOWN if the draft does not define it."""
    mask = table[D_SLOTS] - 1
    k = h & mask
    while True:
        slot = D_HEADER + D_W * k
        length = table[slot + D_LENGTH]
        if length < 0:
            return B_UNKNOWN
        if table[slot + D_HASH] == h and length == end - p and are_equal(text, p, blob, table[slot + D_FIRST], length):
            return table[slot + D_BITS]
        k = (k + 1) & mask


@inlined("int64(uint8[:], int64, int64, uint8[:], pointer)")
def find_type(text: Any, p: Any, end: Any, blob: Any, table: Any) -> Any:
    """Return the bit of the name of a type, or 0."""
    first = D_HEADER + D_W * table[D_SLOTS]
    for k in range(table[D_TYPES]):
        record = first + T_W * k
        if table[record + 1] == end - p and are_equal(text, p, blob, table[record], end - p):
            return table[record + 2]
    return 0


@inlined("int64(uint8[:], int64, int64)")
def find_kind(text: Any, p: Any, end: Any) -> Any:
    """Return the types of a scalar in an enum; 0 for what is not certainly valid."""
    c = text[p]
    if c == QUOTE:
        while p < end:  # No half of a surrogate pair: any \\u is left to the inspection.
            if text[p] == BACKSLASH:
                if text[p + 1] == LETTER_U:
                    return 0
                p += 1
            p += 1
        return IS_STRING
    if c == LETTER_T or c == LETTER_F:
        return IS_BOOLEAN
    if c == LETTER_N:
        return IS_NULL
    if c == OPEN_LIST or c == OPEN_OBJECT or read_integer(text, p, end) == NO_INTEGER:
        return 0
    return IS_NUMBER | IS_INTEGER


@inlined("int64(uint8[:], pointer, int64, int64, int64, int64)")
def find_listed(text: Any, names: Any, last: Any, p: Any, length: Any, h: Any) -> Any:
    """Return a name of a linked list that equals the bytes at p, or -1."""
    while last >= 0:
        record = N_W * last
        if names[record + 2] == h and names[record + 1] == length and are_equal(text, p, text, names[record], length):
            return last
        last = names[record + 3]
    return -1


@inlined("int64(pointer, int64, int64)")
def open_frame(frame: Any, f: Any, kind: Any) -> Any:
    """Initialise the frame at f. Return f."""
    frame[f + F_KIND], frame[f + F_NAMES], frame[f + F_TYPES], frame[f + F_KINDS] = kind, 0, ALL_TYPES, 0
    frame[f + F_LAST], frame[f + F_REQUIRED], frame[f + F_COUNT], frame[f + F_CLOSED] = -1, -1, 0, 0
    for k in range(0, 6, 2):
        frame[f + F_LOW + k], frame[f + F_LOW + k + 1] = -UNBOUNDED, UNBOUNDED
    return f


@inlined("boolean(uint8[:], pointer, int64, pointer, pointer)")
def is_plain_frame(text: Any, frame: Any, f: Any, names: Any, table: Any) -> Any:
    """Return whether a subschema whose parts are plain is plain."""
    asserted = frame[f + F_NAMES] & B_ASSERTIONS
    if asserted & B_REFERENCE:
        return asserted == B_REFERENCE or (table[D_LEGACY] != 0 and asserted & (B_HOLDERS | B_SPANS) == 0)
    if asserted & (B_ANY_OF | B_ONE_OF):
        return asserted == B_ANY_OF or asserted == B_ONE_OF
    if asserted & (B_ENUM | B_CONST):
        alone = asserted & ~B_TYPE
        return (alone == B_ENUM or alone == B_CONST) and frame[f + F_KINDS] & frame[f + F_TYPES] != 0
    if asserted & (B_PATTERN | B_FORMAT):
        texts = asserted & B_TEXTS
        if texts != B_PATTERN and texts != B_FORMAT:
            return False
    for k in range(0, 6, 2):
        if frame[f + F_LOW + k] > frame[f + F_LOW + k + 1]:
            return False
    if frame[f + F_LOW + 3] <= 0:  # no item may come
        return False
    if frame[f + F_CLOSED]:
        last = frame[f + F_REQUIRED]
        while last >= 0:
            record = N_W * last
            found = find_listed(text, names, frame[f + F_LAST], names[record], names[record + 1], names[record + 2])
            if found < 0:
                return False
            last = names[record + 3]
    return True


@entry([types.int64(READ_BYTES, READ_BYTES, READ64, types.int64[::1])], releases_gil=False)
def scan_document(text: Any, blob: Any, names_table: Any, result: Any) -> Any:
    """Return 1 if the document is certainly plain, apart from the spans in the result; 0 if that is not known.

    blob, names_table: the names of the draft. result: of the length that `result_length` says.
    """
    table, head = int64s_at(names_table.ctypes.data), int64s_at(result.ctypes.data)
    n_spans, n_names = 0, 0
    frame = int64s_at(result.ctypes.data + 8 * R_HEADER)
    spans = int64s_at(result.ctypes.data + 8 * (R_HEADER + MOST_FRAMES * F_W))
    names = int64s_at(result.ctypes.data + 8 * (R_HEADER + MOST_FRAMES * F_W + S_W * (text.size // 4 + 1)))
    head[R_SUBSCHEMAS], head[R_VALUES], head[R_SPANS], head[R_HAS_IDS] = 0, 0, 0, 0
    p = skip_space(text, 0)
    if p >= text.size or text[p] != OPEN_OBJECT:
        return 0
    p += 1
    f = open_frame(frame, 0, A_SUBSCHEMA)
    while True:
        p = skip_space(text, p)
        if p >= text.size:
            return 0
        kind = frame[f + F_KIND]
        if text[p] == CLOSE_OBJECT or text[p] == CLOSE_LIST:
            p += 1
            outer = f - F_W
            if kind == A_SUBSCHEMA:
                if not is_plain_frame(text, frame, f, names, table):
                    return 0
                head[R_SUBSCHEMAS] += 1
                if f == 0:
                    head[R_SPANS] = n_spans
                    return 1
                if frame[outer + F_KIND] == ONE_LIST:  # Options have types that exclude each other.
                    bits = frame[f + F_TYPES]
                    if frame[f + F_NAMES] & (B_TYPE | B_REFERENCE) != B_TYPE or bits & frame[outer + F_TYPES]:
                        return 0
                    frame[outer + F_TYPES] |= bits
            elif kind == PROPERTY_MAP:
                frame[outer + F_LAST] = frame[f + F_LAST]
            elif kind == ANY_LIST or kind == ONE_LIST:
                if frame[f + F_COUNT] == 0:
                    return 0
                if kind == ONE_LIST and frame[f + F_TYPES] & IS_INTEGER and frame[f + F_TYPES] & IS_NUMBER:
                    return 0
            f = outer
            continue
        if text[p] == COMMA:
            p = skip_space(text, p + 1)
        opened = -1  # the kind of the frame that the value opens
        if kind == ANY_LIST or kind == ONE_LIST:
            frame[f + F_COUNT] += 1
            if text[p] != OPEN_OBJECT or frame[f + F_COUNT] > MOST_OPTIONS:
                return 0
            opened = A_SUBSCHEMA
        else:
            first = p + 1
            end = find_quote(text, first)
            if has_escape(text, first, end):
                return 0
            h = hash_name(text, first, end)
            p = skip_space(text, skip_space(text, end + 1) + 1)
            if p >= text.size:
                return 0
            if kind != A_SUBSCHEMA:
                frame[f + F_COUNT] += 1
                if frame[f + F_COUNT] > MOST_MEMBERS:
                    return 0
                if find_listed(text, names, frame[f + F_LAST], first, end - first, h) >= 0:
                    return 0
                record = N_W * n_names
                names[record], names[record + 1], names[record + 2] = first, end - first, h
                names[record + 3] = frame[f + F_LAST]
                frame[f + F_LAST] = n_names
                n_names += 1
                if text[p] == OPEN_OBJECT:
                    opened = A_SUBSCHEMA
                elif kind == PROPERTY_MAP and text[p] != LETTER_T:
                    return 0
                else:
                    p = skip_value(text, p)
            else:
                bits = find_bits(text, first, end, h, blob, table)
                if bits & frame[f + F_NAMES] & ~B_UNKNOWN or bits & (B_OTHER | B_PATTERNS):
                    return 0
                frame[f + F_NAMES] |= bits
                c = text[p]
                if bits == 0:
                    p = skip_value(text, p)
                elif bits == B_UNKNOWN:
                    spans[S_W * n_spans], spans[S_W * n_spans + 1], spans[S_W * n_spans + 2] = UNKNOWN_NAME, first, end
                    n_spans += 1
                    p = skip_value(text, p)
                elif bits == B_DIALECT:
                    if f != 0:
                        return 0
                    p = skip_value(text, p)
                elif bits == B_IDENTIFIER:
                    if f != 0:
                        head[R_HAS_IDS] = 1
                        if c == QUOTE:
                            end = find_quote(text, p + 1)
                            spans[S_W * n_spans], spans[S_W * n_spans + 1] = AN_IDENTIFIER, p + 1
                            spans[S_W * n_spans + 2] = end
                            n_spans += 1
                    p = skip_value(text, p)
                elif bits == B_CONTAINER:
                    if c == OPEN_OBJECT:
                        opened = DEFINITION_MAP
                    else:
                        p = skip_value(text, p)
                elif bits == B_PROPERTIES:
                    if c != OPEN_OBJECT:
                        return 0
                    opened = PROPERTY_MAP
                elif bits == B_ANY_OF or bits == B_ONE_OF:
                    if c != OPEN_LIST:
                        return 0
                    opened = ANY_LIST if bits == B_ANY_OF else ONE_LIST
                elif bits == B_ITEMS or bits == B_ADDITIONAL:
                    if c == OPEN_OBJECT:
                        opened = A_SUBSCHEMA
                    elif c == LETTER_F and bits == B_ADDITIONAL:
                        frame[f + F_CLOSED] = 1
                        p = skip_value(text, p)
                    elif c == LETTER_T:
                        p = skip_value(text, p)
                    else:
                        return 0
                elif bits == B_PATTERN or bits == B_FORMAT or bits == B_REFERENCE:
                    if c != QUOTE:
                        return 0
                    end = find_quote(text, p + 1)
                    what = A_PATTERN if bits == B_PATTERN else A_FORMAT if bits == B_FORMAT else A_REFERENCE
                    spans[S_W * n_spans], spans[S_W * n_spans + 1], spans[S_W * n_spans + 2] = what, p + 1, end
                    n_spans += 1
                    p = end + 1
                elif bits == B_TYPE or bits == B_REQUIRED or bits == B_ENUM or bits == B_CONST:
                    # A list of names or values, or for `type` and `const` one alone.
                    is_list = c == OPEN_LIST and bits != B_CONST
                    if not is_list and (bits == B_REQUIRED or bits == B_ENUM):
                        return 0
                    found, count = 0, 0
                    if is_list:
                        p = skip_space(text, p + 1)
                    while p < text.size and not (is_list and text[p] == CLOSE_LIST):
                        first = p
                        if text[p] == QUOTE:
                            end = find_quote(text, p + 1)
                            p = end + 1
                        else:
                            p = skip_number(text, p)
                            end = p
                        count += 1
                        if bits == B_TYPE or bits == B_REQUIRED:
                            if text[first] != QUOTE or has_escape(text, first, end):
                                return 0
                        if bits == B_TYPE:
                            bit = find_type(text, first + 1, end, blob, table)
                            if bit == 0:
                                return 0
                            found |= bit
                        elif bits == B_REQUIRED:
                            record = N_W * n_names
                            names[record], names[record + 1] = first + 1, end - first - 1
                            names[record + 2] = hash_name(text, first + 1, end)
                            names[record + 3] = frame[f + F_REQUIRED]
                            frame[f + F_REQUIRED] = n_names
                            n_names += 1
                        else:
                            bit = find_kind(text, first, end)
                            if bit == 0:
                                return 0
                            found |= bit
                        if not is_list:
                            break
                        p = skip_space(text, p)
                        if p < text.size and text[p] == COMMA:
                            p = skip_space(text, p + 1)
                    if is_list:
                        p += 1
                    if bits == B_TYPE:
                        if found == 0:
                            return 0
                        frame[f + F_TYPES] = found
                    elif bits == B_REQUIRED:
                        if count > MOST_MEMBERS:
                            return 0
                    else:
                        if count > MOST_VALUES:
                            return 0
                        frame[f + F_KINDS] = found
                        head[R_VALUES] += count
                else:  # a bound
                    end = skip_number(text, p)
                    value = read_integer(text, p, end)
                    if value == NO_INTEGER:
                        return 0
                    p = end
                    if bits != B_MINIMUM and bits != B_MAXIMUM and not 0 <= value <= table[D_MOST_COUNT]:
                        return 0
                    place = 0
                    if bits == B_MAX_LENGTH:
                        place = 1
                    elif bits == B_MIN_ITEMS:
                        place = 2
                    elif bits == B_MAX_ITEMS:
                        place = 3
                    elif bits == B_MINIMUM:
                        place = 4
                    elif bits == B_MAXIMUM:
                        place = 5
                    elif bits != B_MIN_LENGTH:
                        return 0
                    frame[f + F_LOW + place] = value
        if opened >= 0:
            f += F_W
            if f >= F_W * MOST_FRAMES:
                return 0
            open_frame(frame, f, opened)
            if opened == ONE_LIST:
                frame[f + F_TYPES] = 0
            p += 1
