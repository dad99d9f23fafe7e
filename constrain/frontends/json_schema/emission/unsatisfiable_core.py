"""Why a schema has no instance: a minimal set of keywords that exclude each other, by JSON pointer.

Keywords are removed, many at once and then in halves (delta debugging, Zeller and Hildebrandt 2002); those without
which there is still no instance are not to blame. From what is left nothing can be removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....base.errors import ConstrainError, UnsatisfiableError
from ....base.options import Limits, Style
from ..algebra.shape_algebra import CircularSchema, ShapeAlgebra
from ..core.json_values import NUMBER
from ..core.static_types import INTEGER
from ..core.subschema_table import Subschema
from ..reading.keywords import KEYWORDS
from ..reading.schema_parser import SchemaParser, UnsharedSchemaParser

__all__ = ["explain_unsatisfiable"]

MOST_TRIALS = 40_000
"""Subschemas that are looked at in all trials together: an error message must not take a second."""
TRIAL = 40
"""What a trial costs besides them."""

APPLIES_TO = {row.field: row.applies_to for row in KEYWORDS}

STRUCTURAL = frozenset((
    "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else", "properties", "patternProperties",
    "dependentSchemas", "prefixItems",
))  # fmt: skip
"""Keywords that only lead to those that exclude each other; named if there are no others."""


def explain_unsatisfiable(
    document: Any, registry: Mapping[str, Any] | None, style: Style, limits: Limits
) -> UnsatisfiableError:
    """Return the error of a document whose root is empty; it names the keywords that exclude each other."""
    reader = UnsharedSchemaParser(document, registry, style, limits)
    blamed = _telling(_smallest(reader, style, limits), reader, style, limits)
    plain = [pair for pair in blamed if pair[1] not in STRUCTURAL] or blamed
    pointers = [f"{node.pointer}/{field}" for node, field in plain]
    if not pointers:
        return UnsatisfiableError("No value satisfies this schema.", pointer="")
    if len(pointers) == 1:
        return UnsatisfiableError("No value satisfies this keyword, and the schema contains one.", pointer=pointers[0])
    named = "\n".join(f"    {pointer}" for pointer in pointers)
    return UnsatisfiableError(
        f"No value satisfies this schema: these keywords exclude each other.\n{named}", pointer=pointers[0],
        hint="Take one of them out, or weaken it.",
    )  # fmt: skip


def _smallest(reader: SchemaParser, style: Style, limits: Limits) -> list[tuple[Subschema, str]]:
    """Return keywords that together leave no value, and without any one of which there is one."""
    nodes = [node for node in reader.nodes if node is not None and node.pointer is not None]
    candidates = [(node, field) for node in nodes for field in node.keywords]
    keywords = {node.number: dict(node.keywords) for node in nodes}
    blamed: list[tuple[Subschema, str]] = []
    todo = [candidates]
    trials = 0
    try:
        while todo:
            some = todo.pop()
            trials += len(nodes) + TRIAL
            if trials > MOST_TRIALS:
                return []
            kept = [(node, dict(node.keywords)) for node in dict.fromkeys(node for node, _ in some)]
            for node, field in some:
                del node.keywords[field]
            if _empty(reader, style, limits):
                continue
            for node, before in kept:
                node.keywords = before
            if len(some) == 1:
                blamed += some
            else:
                todo += some[len(some) // 2 :], some[: len(some) // 2]
        return blamed
    finally:
        for node in nodes:
            node.keywords = keywords[node.number]


def _telling(
    blamed: list[tuple[Subschema, str]], reader: SchemaParser, style: Style, limits: Limits
) -> list[tuple[Subschema, str]]:
    """Return the keywords without each `type` that only says to which values its neighbours apply."""
    out = []
    for node, field in blamed:
        about = {APPLIES_TO.get(other) for place, other in blamed if place is node and other != "type"}
        if field == "type" and len(about) == 1 and about.isdisjoint(("", None)):
            kept = node.keywords["type"]
            node.keywords["type"] = (
                kept | NUMBER if kept & INTEGER else kept
            )  # The restriction to integers alone may be the contradiction.
            still = _empty(reader, style, limits)
            node.keywords["type"] = kept
            if still:
                continue
        out.append((node, field))
    return out


def _empty(reader: SchemaParser, style: Style, limits: Limits) -> bool:
    for node in reader.nodes:
        if node is not None:
            node.bound = node.satisfiable = node.children = None
    try:
        return not ShapeAlgebra(reader, style, limits).is_satisfiable(reader.root)
    except (CircularSchema, ConstrainError):
        return False
