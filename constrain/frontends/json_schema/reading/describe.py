"""Row by row: every keyword of a schema, with how it is enforced. What `constrain check` prints.

The table of keywords says how a keyword is enforced in general. Here is what depends on the schema: whether
`uniqueItems` needs a guard or is decided without, which keywords the dialect does not know, which ones can never
apply because of the `type` beside them, and which names look like slips.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from ....errors import ConstrainError, UnsupportedError
from ....grammar.nodes import Choice, Node, Repeat, Sequence, Unique
from ....style import Limits, Style
from ..algebra.algebra import Algebra, Circular
from ..emit import Writer
from ..front import load, to_grammar
from ..strings.formats import FORMATS
from .keywords import KEYWORDS, LIST, MAP, NUMERIC, STRUCTURE, TEXT, Keyword, children, inert
from .read import ExactReader
from .refs import Library, Scope, token

__all__ = ["Row", "describe"]


class Row(NamedTuple):
    """One keyword of a schema.

    pointer: where it stands. how: "mask", the automaton; "counter" or "keys", a register or the set of keys in the
    frame of the string, array or object; "guard", a comparison with values before; "annotation", "structure" or
    "refused", as in `keywords`. note: what there is to say about it here.
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
    document = load(schema, limits)
    refused: UnsupportedError | None = None
    try:
        to_grammar(document, style=style, registry=registry, limits=limits)
    except UnsupportedError as error:
        refused = error
    library = Library(document, registry, limits)
    rows: list[Row] = []
    todo: list[tuple[Any, Scope, str]] = [(document, library.main, "")]
    while todo:
        raw, scope, pointer = todo.pop()
        if not isinstance(raw, dict):
            continue
        scope = library.enter(raw, scope, pointer)
        for name in raw:
            where = f"{pointer}/{token(name)}"
            if refused is not None and refused.pointer == where:
                rows.append(Row(where, name, "refused", refused.cause))
            else:
                rows.append(Row(where, name, *_how(raw, name, scope, style)))
        below = [(child, scope, "/".join((pointer, *map(token, path)))) for path, child in children(raw, scope.draft)]
        todo.extend(reversed(below))
    if refused is not None:
        if not any(row.how == "refused" for row in rows):
            pointer = refused.pointer or ""
            rows.append(Row(pointer, pointer.rpartition("/")[2], "refused", refused.cause))
    elif any(row.keyword == "uniqueItems" for row in rows):
        decided = dict(_unique(document, style, registry, limits))
        rows = [row._replace(**decided.get(row.pointer, {})) for row in rows]
    return rows


def _how(raw: dict[str, Any], name: str, scope: Scope, style: Style) -> tuple[str, str]:
    """How and why for one keyword, by the keywords beside it."""
    row = scope.dialect.keywords.get(name)
    if row is None:
        return _unread(name, scope)
    if "$ref" in raw and scope.draft <= 7 and name != "$ref":
        return "annotation", "ignored beside $ref, as the dialect has it"
    idle = _idle(raw, row)
    if idle:
        return "annotation", idle
    if name == "format" and (style.formats == "annotate" or raw[name] not in FORMATS):
        return "annotation", "not asserted" if raw[name] in FORMATS else _no_format(raw[name])
    if name == "uniqueItems" and raw[name] is False:
        return "annotation", "false asserts nothing"
    if row.how == "refused":
        return "annotation", "in a schema that nothing refers to"
    note = row.note if scope.draft <= row.noted else ""
    return ("keys" if row.how == "guard" and row.emitter is MAP else row.how), note


APPLIES = {
    NUMERIC: frozenset(("integer", "number")),
    TEXT: frozenset(("string",)),
    LIST: frozenset(("array",)),
    MAP: frozenset(("object",)),
}
"""By emitter: the types whose values a keyword says something about."""


def _idle(raw: dict[str, Any], row: Keyword) -> str:
    """Why a keyword can never apply: of the types beside it none is one that it is about; "" if it can."""
    given = raw.get("type")
    types = [given] if isinstance(given, str) else given
    kinds = APPLIES.get(row.emitter) if row.emitter is not None else None
    if kinds is None or not isinstance(types, list) or kinds & set(types):
        return ""
    return f"never applies: the type is {' or '.join(types)}"


RENAMED = {
    "dependencies": "dependentRequired or dependentSchemas",
    "additionalItems": "items, beside prefixItems",
    "id": "$id",
    "divisibleBy": "multipleOf",
    "$recursiveRef": "$dynamicRef",
    "$recursiveAnchor": "$dynamicAnchor",
    "nullable": 'a list of types with "null" in it',
    "prefixItems": "a list in `items`",
    "dependentRequired": "dependencies",
    "dependentSchemas": "dependencies",
    "const": "an enum of one value",
}
"""What a keyword of another dialect is called in this one, or a keyword of OpenAPI in JSON Schema."""

CONTENT = frozenset(("contentEncoding", "contentMediaType", "contentSchema"))


def _unread(name: str, scope: Scope) -> tuple[str, str]:
    """How and why for a name that the dialect does not read."""
    dialect = f"draft {scope.draft}" if scope.draft < 2019 else "2019-09" if scope.draft == 2019 else "2020-12"
    hint = f"; write {RENAMED[name]}" if name in RENAMED else ""
    if name in STRUCTURE:
        return "structure", "schemas that others refer to"
    if name in CONTENT:
        return "annotation", "the text inside is not looked at, as the specification has it"
    if name == "id" and scope.draft > 4:
        return "annotation", f"not a keyword of {dialect}{hint}"
    if name in inert():
        return "annotation", ""
    if any(row.name == name for row in KEYWORDS):
        if any(row.name == name and row.since <= scope.draft <= row.until for row in KEYWORDS):
            return "annotation", "of a vocabulary that its $schema leaves out"
        return "annotation", f"not a keyword of {dialect}{hint}"
    if name in RENAMED:
        return "annotation", f"not a keyword of JSON Schema{hint}"
    close = _slip(name)
    return "annotation", f"unknown keyword: did you mean {close}?" if close else "unknown keyword"


def _no_format(name: str) -> str:
    """A format that the specification does not know, and what was most likely meant."""
    near = [OTHERWISE[name]] if name in OTHERWISE else get_close_matches(name.lower(), FORMATS, n=1, cutoff=0.85)
    return f"no known format: {name}" + (f"; did you mean {near[0]}?" if near else "")


OTHERWISE = {"url": "uri", "guid": "uuid", "ip": "ipv4", "timestamp": "date-time"}
"""What formats are called in other places."""


def _slip(name: str) -> str:
    """The keyword that a name was most likely meant to be; "" if none is near."""
    known = {row.name.lower(): row.name for row in KEYWORDS}
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.82)
    return known[near[0]] if near else ""


# ---- uniqueItems: the one keyword of which the schema decides how it is enforced ---------------------------------


def _unique(
    document: Any, style: Style, registry: Mapping[str, Any] | None, limits: Limits
) -> Iterator[tuple[str, dict[str, str]]]:
    """(pointer, how and note) for every `uniqueItems` that can be reached."""
    reader = ExactReader(document, registry, style, limits)
    algebra = Algebra(reader, style, limits)
    writer = Writer(algebra, style)
    for node in reader.nodes:
        if node is None or node.pointer is None or not node.facts.get("uniqueItems"):
            continue
        try:
            guarded = _has_guard(writer.body((node.number,), 0)) if algebra.nonempty((node.number,)) else False
            most = [array.high for array in algebra.live((node.number,)).arrays]
        except (ConstrainError, Circular):  # of this subschema on its own; where it is used it may well be enforced
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
    """Whether values in a node are compared with those before."""
    todo = [node]
    while todo:
        node = todo.pop()
        if isinstance(node, Unique):
            return True
        if isinstance(node, Sequence):
            todo += node.parts
        elif isinstance(node, Choice):
            todo += node.options
        elif isinstance(node, Repeat):
            todo.append(node.node)
    return False
