"""The code of an Object: its block, and the members.

The register of the rule holds the state of the object; see `kernels.program_layout` for the instructions and the block.
The code of a declared key is its colon, the call of its value and a jump. It is the same for all keys but for the cell
that is called, so it is generated once and repeated. A value that is a leaf is jumped to instead: its code is at the
end of the rule, and jumps back.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import accumulate, chain, islice
from json.encoder import encode_basestring
from operator import attrgetter

from ..automata.dfa import Dfa
from ..automata.listed_words import ListedWords
from ..base.errors import LimitError
from ..base.work import spend_work
from ..grammar.nodes import Chars, JsonString, Layout, Literal, Node, Number, Object, Sequence, Strings
from ..kernels import layout as at
from ..kernels.entry_points import write_object
from ..kernels.object_request_layout import (
    FIXED_WORDS,
    IS_BLOCK,
    IS_QUOTED,
    LAYOUT_PARTS,
    LEAF_WORDS,
    NOTHING,
    SORTING_PARTS,
    THE_KEYS,
    THE_NAMES,
)
from .byte_code import ByteCode, FirstCode, LayoutCode, Leaf

__all__ = [
    "MODES", "add_first_layout", "append_declared", "append_general_object", "append_object", "check_count",
    "find_leaf", "join_names",
]  # fmt: skip

MOST_COUNT = (1 << 31) - 1
MODES = {"utf8": at.UTF8, "json": at.JSON_INSIDE, "bytes": at.BYTES}
MEMBER_WORDS = 4
"""Words of the code of a member besides its colon: a call and a jump."""
NAME, VALUE, NEEDS, REQUIRED = map(attrgetter, ("name", "value", "needs", "required"))
COLON = 3
"""Place of the colon among the parts of a layout."""
MOST_LAYOUTS = 64
"""Layouts whose code is kept, each for so many numberings of its leaves."""
_layouts: dict[int, tuple[Layout, list[Leaf] | None, dict[tuple[int, ...], LayoutCode]]] = {}
"""By the id of a layout: the layout, its leaves, and its code by their numbers."""
CLASS_WORDS = 6
"""Words of the instruction OTHER."""


def append_object(node: Object, program: ByteCode) -> int:
    """Append the code of `{`, nothing or members, `}`; the state of the object determines which keys may follow.

    The brackets are those of the layout. Return the entry address.
    """
    check_count(node.low, node.high)
    properties, others = node.properties, node.others
    if (node.excluded and others) or any(map(NEEDS, properties)) or (others and any(map(REQUIRED, others))):
        return append_general_object(node, program)
    text = join_names([*map(NAME, properties)], node.escapes)
    if text is None:
        return append_general_object(node, program)
    values, required = [*map(VALUE, properties)], bytes(map(REQUIRED, properties))
    for one in others:
        values.append(one.value)
    cells, leaves = program.place_values(values, find_leaf)
    bounds = node.low, -1 if node.high is None else node.high
    classes = [one.names for one in others]
    return append_declared(
        text, required, cells, leaves, classes, node.layout, node.order, node.escapes, program, bounds
    )


def join_names(names: list[str], escapes: str) -> str | None:
    """Return names with a quote after each; None if JSON writes one of them in another way."""
    text = "".join(names)
    if '"' in text or (escapes != "any" and _is_escaped(text)):
        return None
    return '"'.join(names) + '"' if names else ""


def append_declared(
    names: str,
    required: bytes,
    cells: list[int],
    leaves: list[int],
    classes: list[Dfa],
    layout: Layout,
    order: str,
    escapes: str,
    program: ByteCode,
    bounds: tuple[int, int] = (0, -1),
) -> int:
    """Append the code of an object with declared keys, and return its entry address.

    `names` are those that `join_names` returned, `required` has a byte for each. `cells` and `leaves` are the places of
    their values, then of those of the classes of undeclared keys, of which none must occur
    (`ByteCode.place_values`). `bounds` are those of the number of members, -1 if there is no upper one.
    """
    known = program.layouts.get(id(layout))
    layout_code = _layout_code(layout, program) if known is None else known[1]
    base, n, m, (low, high) = len(program.words), len(required), len(classes), bounds
    is_spelled_in_any_way = escapes == "any"
    excluded = NOTHING if not classes else THE_KEYS if is_spelled_in_any_way else THE_NAMES
    head = [  # in the order of `kernels.object_request_layout`
        base, n, m, order == "any", low, high, low > 0 or high >= 0, is_spelled_in_any_way, excluded,
        layout.opening[0], layout.closing[0], len(leaves),
    ]  # fmt: skip
    for one in classes:
        head += (program.leaf(one, at.JSON_STRING), -1, not one.is_endless)
    request = array("i", [*head, *cells, *leaves])
    request += layout_code
    octets = required + names.encode()
    # Each name is written twice at most, and the colon with every member.
    most = FIXED_WORDS + 2 * len(octets) + (10 + layout_code[COLON] + MEMBER_WORDS) * (n + m) + len(request)
    output = array("i", bytes(4 * (most + LEAF_WORDS * len(leaves) + SORTING_PARTS * (n + m + 1) + 1)))
    length = write_object(request, octets, output)
    program.append(output[:length])
    return base + output[-1]


def _is_escaped(text: str) -> bool:
    """Return whether JSON writes some character of a text without quotes as an escape."""
    return "\\" in text or (not text.isprintable() and len(encode_basestring(text)) > len(text) + 2)


def append_general_object(node: Object, program: ByteCode) -> int:
    """Append what `append_object` does, for any object. Keys may depend on each other, and classes be required."""
    values = [*[one.value for one in node.properties], *[one.value for one in node.others]]
    cells, found = program.place_values(values, find_leaf)
    leaves = [_leaf_code(leaf) for leaf in found]
    layout = iter(_layout_code(node.layout, program))
    sizes = list(islice(layout, LAYOUT_PARTS))
    opened, close, comma, colon, empty = [list(islice(layout, size)) for size in sizes]
    block, classes = _append_block(program, node)

    entry = len(program.words)
    has_members = entry + 11 + len(empty)
    key = has_members + 2 + len(opened)
    kinds = key + 4 + len(classes)  # of keys: the declared ones, then each class
    first_class = kinds + 2
    members = first_class + CLASS_WORDS * len(classes)
    stride = len(colon) + MEMBER_WORDS
    after = members + stride * len(values)
    is_last = after + 8 + len(comma)
    targets = range(members, after, stride)

    [before], [behind] = node.layout.opening, node.layout.closing
    head = [at.INIT, block, before, at.SPLIT, 2, entry + 7, has_members, at.CLOSE, block, *empty, behind, at.END]
    head += (at.MORE, block, *opened, 34, at.SPLIT, 1 + len(classes), kinds)
    head += range(first_class, members, CLASS_WORDS)
    head += (at.KEYS, block)
    for (leaf, mark, is_finite), target in zip(classes, targets[len(node.properties) :]):
        head += (at.OTHER, block, leaf, target, mark, is_finite)
    tail = [
        at.SPLIT, 2, after + 4, is_last, at.MORE, block, *comma, at.JUMP, key, at.CLOSE, block, *close, behind, at.END
    ]  # fmt: skip
    places = list(accumulate(map(len, leaves), initial=after + len(tail)))
    program.append(head)
    program.append(_member_code(colon, places, cells, after))
    program.append([*tail, *chain.from_iterable(leaves)])
    for place in places[1:]:
        program.words[place - 1] = after  # the operand of the jump that ends the code of each leaf

    listed = program.words[block + at.OBJ_TARGETS]
    program.words[listed : listed + len(node.properties)] = array("i", targets[: len(node.properties)])
    return entry


def _member_code(colon: list[int], places: list[int], cells: list[int], after: int) -> array[int]:
    """Return the code of each member after its key: the colon, a call of the value and a jump to `after`.

    `cells` are the rule cells of the values, or -1 - k for the k-th leaf, and `places` the addresses of the leaves.
    """
    code = array("i", [*colon, at.CALL, 0, at.JUMP, after]) * len(cells)
    stride = len(colon) + MEMBER_WORDS
    code[stride - 4 :: stride] = array("i", [at.CALL if cell >= 0 else at.JUMP for cell in cells])
    code[stride - 3 :: stride] = array("i", [cell if cell >= 0 else places[-1 - cell] for cell in cells])
    return code


def find_leaf(value: Node, program: ByteCode) -> int | None:
    """Return how an object writes a value that needs no rule (see `kernels.object_request_layout`); None for others.

    Most values are plain strings and numbers, or one of some constants: all members with the same value share its
    code.
    """
    if isinstance(value, Strings):
        return 4 * program.strings(value.options, 0) + IS_BLOCK
    if isinstance(value, JsonString) and value.high is None and not value.low:
        if isinstance(value.dfa, ListedWords):
            return 4 * program.texts(value.dfa.words, 1) + IS_BLOCK + IS_QUOTED
        return 4 * program.leaf(value.dfa, at.JSON_STRING) + IS_QUOTED
    if isinstance(value, Chars) and value.high is None and not value.low:
        return 4 * program.leaf(value.dfa, MODES[value.encoding])
    if isinstance(value, Number):
        return 4 * program.leaf(value.language, at.NUMBER)
    return None


def _leaf_code(leaf: int) -> list[int]:
    """Return the code of what `find_leaf` returns for a value, with a jump whose operand is not known yet."""
    code = [at.SET, leaf >> 2] if leaf & IS_BLOCK else [at.LEAF, leaf >> 2, 0, -1]
    return [*[34] * (leaf & IS_QUOTED), *code, at.JUMP, 0]


def _layout_code(layout: Layout, program: ByteCode) -> LayoutCode:
    """Return the code of the white space and punctuation of an object, the parts in the order of `Layout` one after
    the other, after the length of each.
    """
    known = program.layouts.get(id(layout))
    if known is None:
        known = program.layouts[id(layout)] = layout, _generate_layout(layout, program)
    return known[1]


def _generate_layout(layout: Layout, program: ByteCode) -> LayoutCode:
    """Return the code of a layout, of which only the numbers of its leaves depend on the program."""
    kept = _layouts.get(id(layout))
    if kept is None:
        if len(_layouts) >= MOST_LAYOUTS:
            _layouts.clear()
        kept = _layouts[id(layout)] = layout, list_layout_leaves(layout), {}
    _, leaves, codes = kept
    if leaves is None:
        return _join_layout(layout, program)
    numbers = tuple([program.leaf(*leaf) for leaf in leaves])
    code = codes.get(numbers)
    if code is None:
        if len(codes) >= MOST_LAYOUTS:
            codes.clear()
        code = codes[numbers] = _join_layout(layout, program)
    return code


def _join_layout(layout: Layout, program: ByteCode | FirstCode) -> LayoutCode:
    parts = [_space_code(part, program) for part in _layout_parts(layout)]
    return array("i", [*map(len, parts), *chain.from_iterable(parts)])


def _layout_parts(layout: Layout) -> tuple[Node, ...]:
    return layout.open, layout.close, layout.comma, layout.colon, layout.empty


def add_first_layout(layout: Layout, first: FirstCode) -> None:
    """Add the leaves of a layout to those that Programs begin with, and its code, if it calls no rule."""
    if list_layout_leaves(layout) is not None:
        first.layouts[id(layout)] = layout, _join_layout(layout, first)


def list_layout_leaves(layout: Layout) -> list[Leaf] | None:
    """Return the leaves of a layout in the order in which its code refers to them; None if it calls a rule."""
    leaves: list[Leaf] = []
    pending = list(_layout_parts(layout))[::-1]
    while pending:
        node = pending.pop()
        if isinstance(node, Chars):
            leaves.append((node.dfa, MODES[node.encoding]))
        elif isinstance(node, Sequence):
            pending += node.parts[::-1]
        elif not isinstance(node, Literal):
            return None
    return list({(dfa.key, mode): (dfa, mode) for dfa, mode in leaves}.values())


def _space_code(node: Node, program: ByteCode | FirstCode) -> list[int]:
    """Return the code of white space and punctuation.

    That of literals, characters and sequences of these, which is all that styles have, is as `linker.RuleLinker`
    generates it. Other nodes are called as rules, since their code has addresses: a FirstCode has none.
    """
    if isinstance(node, Chars):
        low, high = node.low, node.high
        check_count(low, high)
        return [at.LEAF, program.leaf(node.dfa, MODES[node.encoding]), low, -1 if high is None else high]
    if isinstance(node, Literal):
        return list(node.data)
    if isinstance(node, Sequence):
        return [word for part in node.parts for word in _space_code(part, program)]
    assert isinstance(program, ByteCode)
    return [at.CALL, program.cell(node)]


def _append_block(program: ByteCode, node: Object) -> tuple[int, list[tuple[int, int, int]]]:
    """Append an object block (see `layout`). Return its address and (leaf, mark, is finite) of each class of other
    keys.
    """
    properties, others, is_spelled_in_any_way = node.properties, node.others, node.escapes == "any"
    names = [one.name for one in properties]
    spelled = names if is_spelled_in_any_way else _spell_keys(names)
    n = len(names)
    order = sorted(range(n), key=spelled.__getitem__)
    ranks = [0] * n
    for rank, key in enumerate(order):
        ranks[key] = rank
    marks = {k: n + i for i, k in enumerate([k for k, one in enumerate(others) if one.required])} if others else {}
    width = (n + len(marks) + 31) // 32 or 1
    keys = program.texts([spelled[key] for key in order], int(is_spelled_in_any_way))
    tables = _bits(width, [*[k for k, one in enumerate(properties) if one.required], *marks.values()])
    dependent = any(map(NEEDS, properties))
    if dependent:
        spend_work(n * width // 8, "the keys that depend on each other")
        index = {name: k for k, name in enumerate(names)}
        for one in properties:
            tables += _bits(width, [index[name] for name in one.needs])
    if not others:
        excluded = program.strings((), 1)
    elif is_spelled_in_any_way and not node.excluded:
        excluded = keys
    else:
        excluded = program.texts(sorted({*names, *node.excluded}), 1)  # UTF-8 has the order of code points
    targets = len(tables)
    required = program.append([*tables, *[0] * n, *ranks])
    counted = int(node.low > 0 or node.high is not None)
    block = [  # in the order of `kernels.program_layout`
        n, int(node.order == "any"), node.low, -1 if node.high is None else node.high, len(others), keys, width,
        required, required + width if dependent else 0, required + targets, required + targets + n, counted, excluded,
        len(marks),
    ]  # fmt: skip
    classes = [
        (program.leaf(one.names, at.JSON_STRING), marks.get(k, -1), int(not one.names.is_endless))
        for k, one in enumerate(others)
    ]
    return program.append(block), classes


def _spell_keys(names: list[str]) -> list[str]:
    """Return names as `json.dumps(ensure_ascii=False)` writes them, with the closing quote only."""
    text = "".join(names)
    if len(encode_basestring(text)) == len(text) + 2:  # nothing is escaped
        return [name + '"' for name in names]
    return [encode_basestring(name)[1:] for name in names]


def check_count(low: int, high: int | None) -> None:
    """Raise LimitError if a count does not fit in int32."""
    if low > MOST_COUNT or (high is not None and high > MOST_COUNT):
        raise LimitError(f"A count of {max(low, high or 0):.3g} is beyond {MOST_COUNT:,}.", hint="Use a smaller bound.")


def _bits(width: int, members: Iterable[int]) -> list[int]:
    """Return a bit set as int32 words."""
    words = [0] * width
    for k in members:
        words[k >> 5] |= 1 << (k & 31)
    return [word - (1 << 32) if word >= 1 << 31 else word for word in words]
