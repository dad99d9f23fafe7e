"""Every keyword of a schema with how it is enforced, as `constrain check` prints it.

The keyword table says how a keyword is enforced in general. This module adds what depends on the schema: whether
`uniqueItems` needs a guard, which keywords the dialect does not know, which never apply because of the `type` beside
them, and which names look misspelt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ....base.errors import ConstrainError, UnsupportedError
from ....base.json_documents import load_document, pointer_token
from ....base.options import Limits, Style
from ....grammar.nodes import Node, Unique
from ....grammar.visitor import walk_nodes
from ..algebra.shape_algebra import CircularSchema, ShapeAlgebra
from ..core.dialects import Scope
from ..emission.emitter import SchemaEmitter
from ..emission.schema_pipeline import to_grammar
from ..reading.keywords import (
    STRUCTURE,
    Keyword,
    iterate_subschemas,
    keywords_of_dialect,
    list_annotations,
)
from ..reading.schema_parser import UnsharedSchemaParser
from ..reading.schema_references import ReferenceResolver
from .suspicious_keywords import format_note, keyword_note

__all__ = ["KeywordRow", "describe_keywords"]


class KeywordRow(NamedTuple):
    """One keyword of a schema.

    pointer: its JSON pointer. how: "mask", by the automaton; "counter" or "keys", by a register or the set of keys in
    the frame of the string, array or object; "guard", by comparison with earlier values; "annotation", "structure" or
    "refused", as in `keywords`. note: a remark about it in this schema.
    """

    pointer: str
    keyword: str
    how: str
    note: str


def describe_keywords(
    schema: dict[str, Any] | bool | str,
    *,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),
) -> list[KeywordRow]:
    """Return every keyword at every schema position of the document, in document order.

    Raise the exceptions of `to_grammar`, except UnsupportedError: the first keyword that is not enforced gets a row
    with "refused" and the reason.
    """
    document = load_document(schema, limits)
    refused: UnsupportedError | None = None
    try:
        to_grammar(document, style=style, registry=registry, limits=limits)
    except UnsupportedError as error:
        refused = error
    references = ReferenceResolver(document, registry, limits)
    rows: list[KeywordRow] = []
    todo: list[tuple[Any, Scope, str]] = [(document, references.main, "")]
    while todo:
        raw, scope, pointer = todo.pop()
        if not isinstance(raw, dict):
            continue
        scope = references.enter(raw, scope, pointer)
        for name in raw:
            where = f"{pointer}/{pointer_token(name)}"
            if refused is not None and refused.pointer == where:
                rows.append(KeywordRow(where, name, "refused", refused.cause))
            else:
                rows.append(KeywordRow(where, name, *_how(raw, name, scope, style)))
        below = [
            (child, scope, "/".join((pointer, *map(pointer_token, path))))
            for path, child in iterate_subschemas(raw, scope.draft)
        ]
        todo.extend(reversed(below))
    if refused is not None:
        if not any(row.how == "refused" for row in rows):
            pointer = refused.pointer or ""
            rows.append(KeywordRow(pointer, pointer.rpartition("/")[2], "refused", refused.cause))
    elif any(row.keyword == "uniqueItems" for row in rows):
        decided = dict(_unique(document, style, registry, limits))
        rows = [row._replace(**decided.get(row.pointer, {})) for row in rows]
    return rows


def _how(raw: dict[str, Any], name: str, scope: Scope, style: Style) -> tuple[str, str]:
    """Return how a keyword is enforced, and a note, given the keywords beside it."""
    row = keywords_of_dialect(scope.dialect).get(name)
    if row is None:
        return _unread(name, raw, scope)
    if "$ref" in raw and scope.draft <= 7 and name != "$ref":
        return "annotation", "ignored beside $ref, as the dialect has it"
    idle = _idle(raw, row)
    if idle:
        return "annotation", idle
    if name == "format" and (style.formats == "annotate" or format_note(raw[name]) is not None):
        return "annotation", _unasserted(raw[name])
    if name == "uniqueItems" and raw[name] is False:
        return "annotation", "false asserts nothing"
    if row.how == "refused":
        return "annotation", "in a schema that nothing refers to"
    note = row.note if scope.draft <= row.noted else ""
    return ("keys" if row.how == "guard" and row.applies_to == "object" else row.how), note


TYPE_NAMES = {"number": frozenset(("integer", "number"))}
"""By `Keyword.applies_to`: the values of `type`, where they are not just the same name."""


def _idle(raw: dict[str, Any], row: Keyword) -> str:
    """Return why a keyword can never apply, since `type` beside it excludes its type of values; "" if it can."""
    given = raw.get("type")
    types = [given] if isinstance(given, str) else given
    kinds = TYPE_NAMES.get(row.applies_to, frozenset((row.applies_to,))) if row.applies_to else None
    if kinds is None or not isinstance(types, list) or kinds & set(types):
        return ""
    return f"never applies: the type is {' or '.join(types)}"


def _unread(name: str, raw: dict[str, Any], scope: Scope) -> tuple[str, str]:
    """Return how and why for a name that the dialect does not define."""
    if name in STRUCTURE:
        return "structure", "schemas that others refer to"
    note = keyword_note(name, raw[name], raw, scope)
    if note is None:
        return "annotation", "" if name in list_annotations() else "unknown keyword"
    if note.cause == "unknown keyword":
        return "annotation", f"unknown keyword: did you mean {note.hint}?"
    return "annotation", note.cause + (f"; write {note.hint}" if note.hint else "")


def _unasserted(name: str) -> str:
    """Return a note for a format that is not asserted, with the format that was most likely intended."""
    note = format_note(name)
    if note is None:
        return "not asserted"
    if not note.is_mistake:
        return note.cause
    return f"no known format: {name}" + (f"; did you mean {note.hint}?" if note.hint else "")


# ---- uniqueItems: the one keyword of which the schema decides how it is enforced ---------------------------------


def _unique(
    document: Any, style: Style, registry: Mapping[str, Any] | None, limits: Limits
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (pointer, how and note) for every reachable `uniqueItems`."""
    reader = UnsharedSchemaParser(document, registry, style, limits)
    algebra = ShapeAlgebra(reader, style, limits)
    writer = SchemaEmitter(algebra, style, set())
    for node in reader.nodes:
        if node is None or node.pointer is None or not node.keywords.get("uniqueItems"):
            continue
        try:
            guarded = _has_guard(writer.body((node.number,), 0)) if algebra.is_satisfiable((node.number,)) else False
            most = [array.high for array in algebra.normalise((node.number,)).arrays]
        except (
            ConstrainError,
            CircularSchema,
        ):  # concerns this subschema alone; where it is used it may still be enforced
            continue
        if not guarded:
            yield (
                f"{node.pointer}/uniqueItems",
                {
                    "how": "mask",
                    "note": "decided by the items: few constants, or none can be equal",
                },
            )
        else:
            bound = max((high for high in most if high is not None), default=0) if None not in most else 0
            often = f", at most {bound - 1:,} times" if bound > 1 else ""
            yield (
                f"{node.pointer}/uniqueItems",
                {
                    "how": "guard",
                    "note": f"an item that equals one before cannot end: it may bite from the second item on{often}",
                },
            )


def _has_guard(node: Node) -> bool:
    """Return whether values in a node are compared with earlier ones."""
    return any(isinstance(part, Unique) for part in walk_nodes(node))
