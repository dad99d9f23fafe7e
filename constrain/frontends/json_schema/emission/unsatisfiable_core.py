"""Why a schema has no instance: a minimal set of keywords that exclude each other, by JSON pointer.

Keywords are removed, first many together and then in halves (delta debugging, Zeller and Hildebrandt 2002); those
without which there is still no instance are irrelevant. The result is minimal: removing any keyword gives an instance.
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
"""Most subschemas inspected in all trials together, so that an error message takes less than a second."""
TRIAL_COST = 40
"""Cost of a trial besides its subschemas, in the same unit."""

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
    blamed = _drop_applicable_types(_minimise_keywords(reader, style, limits), reader, style, limits)
    relevant = [pair for pair in blamed if pair[1] not in STRUCTURAL] or blamed
    pointers = [f"{node.pointer}/{field}" for node, field in relevant]
    if not pointers:
        return UnsatisfiableError("No value satisfies this schema.", pointer="")
    if len(pointers) == 1:
        return UnsatisfiableError("No value satisfies this keyword, and the schema contains one.", pointer=pointers[0])
    named = "\n".join(f"    {pointer}" for pointer in pointers)
    return UnsatisfiableError(
        f"No value satisfies this schema: these keywords exclude each other.\n{named}", pointer=pointers[0],
        hint="Take one of them out, or weaken it.",
    )  # fmt: skip


def _minimise_keywords(reader: SchemaParser, style: Style, limits: Limits) -> list[tuple[Subschema, str]]:
    """Return keywords that together leave no value, and without any one of which there is one."""
    nodes = [node for node in reader.nodes if node is not None and node.pointer is not None]
    candidates = [(node, field) for node in nodes for field in node.keywords]
    keywords = {node.number: dict(node.keywords) for node in nodes}
    blamed: list[tuple[Subschema, str]] = []
    stack = [candidates]
    trials = 0
    try:
        while stack:
            removed = stack.pop()
            trials += len(nodes) + TRIAL_COST
            if trials > MOST_TRIALS:
                return []
            originals = [(node, dict(node.keywords)) for node in dict.fromkeys(node for node, _ in removed)]
            for node, field in removed:
                del node.keywords[field]
            if _is_empty(reader, style, limits):
                continue
            for node, original in originals:
                node.keywords = original
            if len(removed) == 1:
                blamed += removed
            else:
                stack += removed[len(removed) // 2 :], removed[: len(removed) // 2]
        return blamed
    finally:
        for node in nodes:
            node.keywords = keywords[node.number]


def _drop_applicable_types(
    blamed: list[tuple[Subschema, str]], reader: SchemaParser, style: Style, limits: Limits
) -> list[tuple[Subschema, str]]:
    """Return the keywords without each `type` that only makes its neighbours applicable."""
    out = []
    for node, field in blamed:
        constrained_types = {APPLIES_TO.get(other) for holder, other in blamed if holder is node and other != "type"}
        if field == "type" and len(constrained_types) == 1 and constrained_types.isdisjoint(("", None)):
            types = node.keywords["type"]
            node.keywords["type"] = (
                types | NUMBER if types & INTEGER else types
            )  # The restriction to integers alone may be the contradiction.
            is_still_empty = _is_empty(reader, style, limits)
            node.keywords["type"] = types
            if is_still_empty:
                continue
        out.append((node, field))
    return out


def _is_empty(reader: SchemaParser, style: Style, limits: Limits) -> bool:
    for node in reader.nodes:
        if node is not None:
            node.bound = node.satisfiable = node.children = None
    try:
        return not ShapeAlgebra(reader, style, limits).is_satisfiable(reader.root)
    except (CircularSchema, ConstrainError):
        return False
