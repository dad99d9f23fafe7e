"""Why a schema has no instance: a smallest set of keywords that exclude each other, by JSON pointer.

Keywords are left out, many at once and then in halves; those without which there is still no instance are not to
blame. What is left after that is a set from which nothing can be taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....base.errors import ConstrainError, UnsatisfiableError
from ....base.options import Limits, Style
from ..algebra.shape_algebra import Algebra, Circular
from .json_values import NUMBER
from .keywords import KEYWORDS, LIST, MAP, NUMERIC, TEXT
from .schema_parser import ExactReader, Node, Reader
from .static_types import INTEGER

__all__ = ["unsatisfiable"]

MOST_TRIALS = 40_000
"""Subschemas that are looked at, in all trials together: an error message must not take a second."""
TRIAL = 40
"""What a trial costs beside them."""

EMITTER = {row.field: row.emitter for row in KEYWORDS}
APPLIED = {NUMERIC, TEXT, LIST, MAP}
"""Emitters of keywords that are about the values of one type."""

STRUCTURAL = frozenset((
    "ref", "dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else", "properties", "patternProperties",
    "dependentSchemas", "prefixItems",
))  # fmt: skip
"""Fields that only lead to the keywords that clash; named if there are no others."""


def unsatisfiable(
    document: Any, registry: Mapping[str, Any] | None, style: Style, limits: Limits
) -> UnsatisfiableError:
    """What to raise for a document whose root is empty; says which keywords exclude each other."""
    reader = ExactReader(document, registry, style, limits)
    blamed = _telling(_smallest(reader, style, limits), reader, style, limits)
    plain = [pair for pair in blamed if pair[1] not in STRUCTURAL] or blamed
    pointers = [f"{node.pointer}/{'$ref' if field == 'ref' else field}" for node, field in plain]
    if not pointers:
        return UnsatisfiableError("No value satisfies this schema.", pointer="")
    if len(pointers) == 1:
        return UnsatisfiableError("No value satisfies this keyword, and the schema demands one.", pointer=pointers[0])
    named = "\n".join(f"    {pointer}" for pointer in pointers)
    return UnsatisfiableError(
        f"No value satisfies this schema: these keywords exclude each other.\n{named}", pointer=pointers[0],
        hint="Take one of them out, or weaken it.",
    )  # fmt: skip


def _smallest(reader: Reader, style: Style, limits: Limits) -> list[tuple[Node, str]]:
    """Keywords that together leave no value, and without any one of which there is one."""
    nodes = [node for node in reader.nodes if node is not None and node.pointer is not None]
    candidates = [(node, field) for node in nodes for field in node.facts]
    facts = {node.number: dict(node.facts) for node in nodes}
    blamed: list[tuple[Node, str]] = []
    todo = [candidates]
    trials = 0
    try:
        while todo:
            some = todo.pop()
            trials += len(nodes) + TRIAL
            if trials > MOST_TRIALS:
                return []
            kept = [(node, dict(node.facts)) for node in dict.fromkeys(node for node, _ in some)]
            for node, field in some:
                del node.facts[field]
            if _empty(reader, style, limits):
                continue
            for node, before in kept:
                node.facts = before
            if len(some) == 1:
                blamed += some
            else:
                todo += some[len(some) // 2 :], some[: len(some) // 2]
        return blamed
    finally:
        for node in nodes:
            node.facts = facts[node.number]


def _telling(blamed: list[tuple[Node, str]], reader: Reader, style: Style, limits: Limits) -> list[tuple[Node, str]]:
    """Without each `type` that only says which values its neighbours are about: they exclude each other anyway."""
    out = []
    for node, field in blamed:
        about = {EMITTER.get(other) for place, other in blamed if place is node and other != "type"}
        if field == "type" and len(about) == 1 and about <= APPLIED:
            kept = node.facts["type"]
            node.facts["type"] = kept | NUMBER if kept & INTEGER else kept  # An integer may be what is asked too much.
            still = _empty(reader, style, limits)
            node.facts["type"] = kept
            if still:
                continue
        out.append((node, field))
    return out


def _empty(reader: Reader, style: Style, limits: Limits) -> bool:
    for node in reader.nodes:
        if node is not None:
            node.static = node.sure = node.inner = None
    try:
        return not Algebra(reader, style, limits).nonempty(reader.root)
    except (Circular, ConstrainError):
        return False
