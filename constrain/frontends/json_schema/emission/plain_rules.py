"""Emit plain subschemas from their keywords, without a Shape.

Most rules are plain arrays and objects (`algebra.fast_checks`): nothing is combined or counted by set in them, so their
keywords say all that the algebra would find.
"""

from __future__ import annotations

from typing import Any

from ....base.options import Limits, Style
from ....base.work import memoize_work
from ....grammar.nodes import JsonString, Literal, Node, Strings
from ..algebra.fast_checks import find_children
from ..arrays.array_items import emit_array
from ..arrays.array_keywords import ARRAY_KEYWORDS, build_array_case
from ..core.json_values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Constant
from ..core.schema_sets import SchemaSet
from ..core.static_types import INTEGER, TYPES
from ..numbers import number_sets
from ..numbers.number_keywords import build_integer_case
from ..objects.object_members import emit_plain_object
from ..shapes.array_case import ANY_ARRAY
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.value_emitter import ValueEmitter
from ..strings.string_languages import any_text
from ..strings.string_sets import StringCase

__all__ = ["PlainEmitter", "emit_constants", "emit_plain_options", "emit_types", "list_texts"]


class PlainEmitter(ValueEmitter):
    """The emitter of a schema, as this file needs it. `reachable` are sets that are known to have a value."""

    algebra: SchemaAlgebra
    reachable: set[SchemaSet]


SCALARS = TYPES & ~(ARRAY | OBJECT) | INTEGER
PLAIN_KEYWORDS = frozenset((
    "type", "items", "minItems", "maxItems", "properties", "required", "additionalProperties",
))  # fmt: skip
LISTS = frozenset(("type", "enum", "const"))


def emit_plain_options(schemas: SchemaSet, emitter: PlainEmitter, depth: int) -> list[Node] | None:
    """Return the alternatives of a set with brackets at a depth; None if it needs the algebra."""
    if not schemas:
        return _emit_keywords({}, 0, emitter, depth)
    nodes, is_satisfiable = emitter.algebra.nodes, emitter.algebra.is_satisfiable
    node = nodes[schemas[0]] if len(schemas) == 1 and schemas[0] > 0 else None
    if node is None or not PLAIN_KEYWORDS.issuperset(node.keywords):
        return None
    if not node.is_plain:
        children = find_children(schemas, nodes)
        if children is None or not (emitter.reachable.issuperset(children) or all(map(is_satisfiable, children))):
            return None
    return _emit_keywords(node.keywords, node.draft, emitter, depth)


def _emit_keywords(keywords: dict[str, Any], draft: int, emitter: ValueEmitter, depth: int) -> list[Node]:
    """Return the alternatives of the values that the keywords of a plain subschema allow."""
    types: int = keywords.get("type", TYPES)
    scalars = types & SCALARS
    options = list(emit_types(scalars, draft, emitter.style, emitter.limits)) if scalars else []
    if types & ARRAY:
        case = ANY_ARRAY if keywords.keys().isdisjoint(ARRAY_KEYWORDS) else build_array_case(keywords)
        options.append(emit_array(case, emitter, depth))
    if types & OBJECT:
        options.append(emit_plain_object(keywords, emitter, depth))
    return options


def list_texts(schemas: SchemaSet, emitter: PlainEmitter) -> StringCase | None:
    """Return the texts of a set that is a list of texts and nothing else; None for any other set."""
    node = emitter.algebra.nodes[schemas[0]] if len(schemas) == 1 and schemas[0] > 0 else None
    if node is None or not LISTS.issuperset(node.keywords) or not node.keywords.get("type", STRING) & STRING:
        return None
    values: tuple[Constant, ...] = node.keywords.get("enum", ()) or node.keywords.get("const", ())
    if len(node.keywords) - ("type" in node.keywords) != 1 or not values:
        return None
    texts = tuple([value[1] for value in values if value[0] == STRING])
    return StringCase(texts) if len(texts) == len(values) else None


@memoize_work(maxsize=256)
def emit_types(types: int, draft: int, style: Style, limits: Limits) -> tuple[Node, ...]:
    """Return the alternatives of all values of scalar types, cached: most subschemas assert no more, in any schema."""
    options = emit_constants({word for bits, word in WORDS if types & bits})
    if types & STRING:
        options.append(JsonString(any_text()))
    if types & (NUMBER | INTEGER):
        numbers = number_sets.ANY_NUMBER if types & NUMBER else build_integer_case({}, draft)
        options += number_sets.emit_numbers((numbers,), style, limits)[1]
    return tuple(options)


WORDS = ((NULL, b"null"), (BOOLEAN, b"false"), (BOOLEAN, b"true"))


def emit_constants(words: set[bytes]) -> list[Node]:
    """Return the node of texts to choose from, if there are any."""
    if len(words) < 2:
        return [Literal(word) for word in words]
    return [Strings(tuple(sorted(words)))]
