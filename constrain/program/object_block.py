"""The block of an object in the byte-code: its keys, which of them are required, and what follows each."""

from __future__ import annotations

from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import NamedTuple

from ..base.work import spend_work
from ..grammar.nodes import Object
from ..kernels import layout as at
from .byte_code import ByteCode, string_block_head

__all__ = ["ObjectBlock", "append_object_block"]


class ObjectBlock(NamedTuple):
    """An object block in the code (see `kernels.program_layout`).

    Attributes
    ----------
    address : int
        Of the block.
    targets : int
        Address of one word for each declared key: the instruction that follows the key, 0 until the rule is appended.
    classes : list of (int, int, int)
        Leaf, mark (-1: none) and whether it is finite, of each class of undeclared keys.
    """

    address: int
    targets: int
    classes: list[tuple[int, int, int]]


def append_object_block(program: ByteCode, node: Object) -> ObjectBlock:
    """Append the block of an object, after the bit sets and strings that it refers to."""
    names = [p.name for p in node.properties]
    n = len(names)
    if node.escapes == "canonical":
        spelled = [encode_basestring(name)[1:].encode() for name in names]
    else:
        spelled = [name.encode() for name in names]
    order = sorted(range(n), key=spelled.__getitem__)
    ranks = [0] * n
    for rank, key in enumerate(order):
        ranks[key] = rank
    marks = {k: n + i for i, k in enumerate(k for k, c in enumerate(node.others) if c.required)}
    width = (n + len(marks) + 31) // 32 or 1
    demanded = [k for k, p in enumerate(node.properties) if p.required]

    keys = len(program.words)
    in_order = [spelled[key] for key in order]
    code = string_block_head(in_order, int(node.escapes == "any"), keys)
    code += b"".join(in_order)
    required = keys + len(code)
    code += _bits(width, [*demanded, *marks.values()])
    needs = 0
    if any(p.needs for p in node.properties):
        spend_work(n * width // 8, "the keys that depend on each other")
        index = {name: k for k, name in enumerate(names)}
        needs = keys + len(code)
        for p in node.properties:
            code += _bits(width, [index[name] for name in p.needs])
    targets = keys + len(code)
    code += [0] * n
    ranks_at = keys + len(code)
    code += ranks
    excluded = keys + len(code)
    taken = sorted({name.encode() for name in (*names, *node.excluded)}) if node.others else []
    code += string_block_head(taken, 1, excluded)
    code += b"".join(taken)
    block = [0] * at.OBJ_W
    block[at.OBJ_COUNT], block[at.OBJ_ORDER] = n, int(node.order == "any")
    block[at.OBJ_LOW], block[at.OBJ_HIGH] = node.low, -1 if node.high is None else node.high
    block[at.OBJ_OTHERS], block[at.OBJ_KEYS], block[at.OBJ_WORDS] = len(node.others), keys, width
    block[at.OBJ_REQUIRED], block[at.OBJ_NEEDS], block[at.OBJ_TARGETS] = required, needs, targets
    block[at.OBJ_RANKS], block[at.OBJ_COUNTED] = ranks_at, int(node.low > 0 or node.high is not None)
    block[at.OBJ_EXCLUDED], block[at.OBJ_MARKS] = excluded, len(marks)
    address = keys + len(code)
    code += block
    program.append(code)
    classes = [
        (program.leaf(c.names, at.JSON_STRING), marks.get(k, -1), int(not c.names.endless()))
        for k, c in enumerate(node.others)
    ]
    return ObjectBlock(address, targets, classes)


def _bits(width: int, members: Iterable[int]) -> list[int]:
    """Return a bit set as int32 words."""
    words = [0] * width
    for k in members:
        words[k >> 5] |= 1 << (k & 31)
    return [word - (1 << 32) if word >= 1 << 31 else word for word in words]
