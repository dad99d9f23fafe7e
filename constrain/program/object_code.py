"""The code of an Object: its block, and the members.

The register of the rule holds the state of the object; see `kernels.program_layout` for the instructions and the block.
The code of a declared key is its colon, the call of its value and a jump. It is the same for all keys but for the cell
that is called, so it is generated once and repeated.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any, Protocol

from ..base.errors import LimitError
from ..base.work import spend_work
from ..grammar.nodes import Chars, Literal, Node, Object, Sequence
from ..kernels import layout as at
from .byte_code import ByteCode

__all__ = ["MODES", "check_count", "emit_object"]

MOST_COUNT = (1 << 31) - 1
MODES = {"utf8": at.UTF8, "json": at.JSON_INSIDE, "bytes": at.BYTES}


class RuleWriter(Protocol):
    """What `linker.RuleLinker` offers to this file: the code of one rule with addresses relative to its start."""

    program: ByteCode
    words: list[int]
    relocations: list[int]
    uses_register: bool

    def visit(self, node: Node, *context: Any) -> None:
        """Generate a node."""

    def emit_jump(self, op: int) -> int:
        """Generate an instruction whose operand is an unknown address; return the position of the operand."""

    def set_target(self, operand: int) -> None:
        """Store the current address in the operand at a position."""


def emit_object(node: Object, linker: RuleWriter) -> None:
    """Generate `{`, nothing or members, `}`; the state of the object determines which keys may follow."""
    program, layout = linker.program, node.layout
    block, classes = _append_block(program, node)
    check_count(node.low, node.high)
    words, relocations = linker.words, linker.relocations
    linker.uses_register = True  # the register holds the object's state

    words += (at.INIT, block, 123, at.SPLIT, 2, 0, 0)
    is_empty, has_members = len(words) - 2, len(words) - 1
    words[is_empty] = len(words)
    words += (at.CLOSE, block)
    _emit_space(layout.empty, linker)
    words += (125, at.END)

    words[has_members] = len(words)
    words += (at.MORE, block)
    _emit_space(layout.open, linker)
    key = len(words)
    words += (34, at.SPLIT, 1 + len(classes), 0, *[0] * len(classes))
    kinds = key + 3  # of keys: the declared ones, then each class
    words[kinds] = len(words)
    words += (at.KEYS, block)
    for k, (leaf, mark, is_finite) in enumerate(classes):
        words[kinds + 1 + k] = len(words)
        words += (at.OTHER, block, leaf, 0, mark, is_finite)
    first_class = len(words) - 6 * len(classes) + 3  # the operand of the first OTHER that says what follows the name
    relocations += (is_empty, has_members, *range(kinds, kinds + 1 + len(classes)), *range(first_class, len(words), 6))

    members = _emit_members(node, linker)
    for k, member in enumerate(members[len(node.properties) :]):
        words[first_class + 6 * k] = member

    words += (at.SPLIT, 2, 0, 0)
    has_more, is_last = len(words) - 2, len(words) - 1
    words[has_more] = len(words)
    words += (at.MORE, block)
    _emit_space(layout.comma, linker)
    words += (at.JUMP, key)
    relocations += (has_more, is_last, len(words) - 1)
    words[is_last] = len(words)
    words += (at.CLOSE, block)
    _emit_space(layout.close, linker)
    words.append(125)

    count = len(node.properties)
    base, targets = len(program.words), program.words[block + at.OBJ_TARGETS]
    program.words[targets : targets + count] = array("i", [base + member for member in members[:count]])


def _emit_members(node: Object, linker: RuleWriter) -> list[int]:
    """Generate what follows the key of each property and of each class of names. Return the addresses in the rule."""
    cell, words, colon = linker.program.cell, linker.words, node.layout.colon
    cells = [cell(one.value) for one in node.properties] + [cell(one.value) for one in node.others]
    code = _space_code(colon, linker.program)
    if code is None:  # it has addresses of its own
        addresses, ends = [], []
        for one in cells:
            addresses.append(len(words))
            linker.visit(colon)
            words += (at.CALL, one)
            ends.append(linker.emit_jump(at.JUMP))
        for operand in ends:
            linker.set_target(operand)
        return addresses
    first, stride = len(words), len(code) + 4
    words += [*code, at.CALL, 0, at.JUMP, 0] * len(cells)
    end = len(words)
    words[first + stride - 3 :: stride] = cells
    words[first + stride - 1 :: stride] = [end] * len(cells)
    linker.relocations.extend(range(first + stride - 1, end, stride))
    return list(range(first, end, stride))


def _emit_space(node: Node, linker: RuleWriter) -> None:
    """Generate white space and punctuation."""
    code = _space_code(node, linker.program)
    if code is None:
        linker.visit(node)
    else:
        linker.words += code


def _space_code(node: Node, program: ByteCode) -> list[int] | None:
    """Return the code of white space and punctuation, as `linker.RuleLinker` generates it; None if it has addresses.

    All styles have literals, characters and sequences of these, which this is a faster way for.
    """
    if isinstance(node, Chars):
        low, high = node.low, node.high
        check_count(low, high)
        return [at.LEAF, program.leaf(node.dfa, MODES[node.encoding]), low, -1 if high is None else high]
    if isinstance(node, Literal):
        return list(node.data)
    if not isinstance(node, Sequence):
        return None
    code: list[int] = []
    for part in node.parts:
        inner = _space_code(part, program)
        if inner is None:
            return None
        code += inner
    return code


def _append_block(program: ByteCode, node: Object) -> tuple[int, list[tuple[int, int, int]]]:
    """Append an object block (see `layout`). Return its address and (leaf, mark, is finite) of each class of other
    keys.
    """
    properties, others = node.properties, node.others
    names = [one.name for one in properties]
    n = len(names)
    if node.escapes == "canonical":
        spelled = [encode_basestring(name)[1:].encode() for name in names]
    else:
        spelled = [name.encode() for name in names]
    order = sorted(range(n), key=spelled.__getitem__)
    ranks = [0] * n
    for rank, key in enumerate(order):
        ranks[key] = rank
    marks = {k: n + i for i, k in enumerate([k for k, one in enumerate(others) if one.required])}
    width = (n + len(marks) + 31) // 32 or 1
    dependent = [one.needs for one in properties if one.needs]
    if dependent:
        spend_work(n * width // 8, "the keys that depend on each other")
    keys = program.strings([spelled[key] for key in order], int(node.escapes == "any"))
    tables = _bits(width, [*[k for k, one in enumerate(properties) if one.required], *marks.values()])
    if dependent:
        index = {name: k for k, name in enumerate(names)}
        for one in properties:
            tables += _bits(width, [index[name] for name in one.needs])
    targets = len(tables)
    required = program.append([*tables, *[0] * n, *ranks])
    counted = int(node.low > 0 or node.high is not None)
    block = [0] * at.OBJ_W
    block[at.OBJ_COUNT], block[at.OBJ_ORDER] = n, int(node.order == "any")
    block[at.OBJ_LOW], block[at.OBJ_HIGH] = node.low, -1 if node.high is None else node.high
    block[at.OBJ_OTHERS], block[at.OBJ_KEYS], block[at.OBJ_WORDS] = len(others), keys, width
    block[at.OBJ_REQUIRED], block[at.OBJ_NEEDS] = required, required + width if dependent else 0
    block[at.OBJ_TARGETS], block[at.OBJ_RANKS] = required + targets, required + targets + n
    block[at.OBJ_COUNTED], block[at.OBJ_MARKS] = counted, len(marks)
    excluded = sorted({name.encode() for name in [*names, *node.excluded]}) if others else []
    block[at.OBJ_EXCLUDED] = program.strings(excluded, 1)
    classes = [
        (program.leaf(one.names, at.JSON_STRING), marks.get(k, -1), int(not one.names.is_endless))
        for k, one in enumerate(others)
    ]
    return program.append(block), classes


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
