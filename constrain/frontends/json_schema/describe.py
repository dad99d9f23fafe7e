"""Row by row: every keyword of a schema, with how it is enforced. What `constrain check` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...errors import UnsupportedError
from ...style import Limits, Style
from .formats import FORMATS
from .front import load, to_grammar
from .keywords import KEYWORDS, STRUCTURE, by_draft, children, inert
from .refs import Library, Scope, token

__all__ = ["Row", "describe"]


class Row(NamedTuple):
    """One keyword of a schema.

    pointer: where it stands. how: "mask", "counter", "guard", "annotation", "structure" or "refused", as in
    `keywords`. note: what there is to say about it here.
    """

    pointer: str
    keyword: str
    how: str
    note: str


def describe(
    schema: dict[str, Any] | bool | str,
    *,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),
) -> list[Row]:
    """Every keyword at every schema position of the document, in its order. Errors as of `to_grammar`, except that
    what is not enforced yet is not raised: the first such keyword has a row that says "refused" and why."""
    document = load(schema)
    refused: UnsupportedError | None = None
    try:
        to_grammar(document, style=style, registry=registry, limits=limits)
    except UnsupportedError as error:
        refused = error
    library = Library(document, registry)
    rows: list[Row] = []
    todo: list[tuple[Any, Scope, str]] = [(document, library.main, "")]
    while todo:
        raw, scope, pointer = todo.pop()
        if not isinstance(raw, dict):
            continue
        scope = library.enter(raw, scope, pointer)
        rows += [_row(raw, name, scope.draft, pointer, style, refused) for name in raw]
        below = [(child, scope, "/".join((pointer, *map(token, path)))) for path, child in children(raw, scope.draft)]
        todo.extend(reversed(below))
    if refused is not None and not any(row.how == "refused" for row in rows):
        pointer = refused.pointer or ""
        rows.append(Row(pointer, pointer.rpartition("/")[2], "refused", refused.cause))
    return rows


def _row(
    raw: dict[str, Any], name: str, draft: int, pointer: str, style: Style, refused: UnsupportedError | None
) -> Row:
    where = f"{pointer}/{token(name)}"
    row = by_draft(draft).get(name)
    if refused is not None and refused.pointer == where:
        return Row(where, name, "refused", refused.cause)
    if row is None:
        return Row(where, name, *_unread(name, draft))
    if "$ref" in raw and draft <= 7 and name != "$ref":
        return Row(where, name, "annotation", "ignored beside $ref, as the dialect has it")
    if name == "format" and (style.formats == "annotate" or raw[name] not in FORMATS):
        return Row(
            where, name, "annotation", "not asserted" if raw[name] in FORMATS else f"no known format: {raw[name]}"
        )
    if row.how == "refused" and refused is None:
        return Row(where, name, "annotation", "in a schema that nothing refers to")
    return Row(where, name, row.how, row.note)


def _unread(name: str, draft: int) -> tuple[str, str]:
    """How and why for a name that the dialect does not read."""
    if name in STRUCTURE:
        return "structure", "schemas that others refer to"
    if name in inert():
        return "annotation", ""
    dialect = f"draft {draft}" if draft < 2019 else "2019-09" if draft == 2019 else "2020-12"
    if any(row.name == name for row in KEYWORDS):
        return "annotation", f"not a keyword of {dialect}"
    return "annotation", "unknown keyword"
