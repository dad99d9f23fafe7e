"""Emit plain subschemas from their keywords, without a Shape.

Most rules are plain arrays and objects (`algebra.fast_checks`): nothing is combined or counted by set in them, so their
keywords say all that the algebra would find. Some are the same in all schemas, such as any value: their nodes are made
once, and their code, too (`program.shared_code`).
"""

from __future__ import annotations

from typing import Any

from ....automata.dfa import Dfa
from ....base.options import Limits, Style
from ....base.work import memoize_work
from ....grammar.nodes import JsonString, Literal, Node, Rule, Strings
from ....program.shared_code import ANY_RULE, share
from ..algebra.fast_checks import find_children, find_plain_types
from ..arrays.array_items import emit_array
from ..arrays.array_keywords import ARRAY_KEYWORDS, build_array_case
from ..core.json_values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Constant
from ..core.node_building import choice_of
from ..core.schema_sets import ANY, SchemaSet
from ..core.static_types import INTEGER, TYPES
from ..core.whitespace import Spacing, spacing_at
from ..numbers import number_sets
from ..numbers.number_keywords import build_integer_case
from ..objects.object_members import emit_plain_object
from ..shapes.array_case import ANY_ARRAY, ArrayCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.value_emitter import ValueEmitter
from ..strings.string_languages import LanguageCache
from ..strings.string_sets import StringCase

__all__ = [
    "PlainEmitter", "emit_any_value", "emit_constants", "emit_list", "emit_plain_options", "emit_scalars",
    "emit_rule_list", "emit_types", "list_texts", "name_members", "refuse_keyword",
]  # fmt: skip


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
    is_indented = isinstance(emitter.style.whitespace, int)  # then the node depends on the depth, and is not shared
    if not schemas:
        if is_indented:
            return _emit_keywords({}, 0, emitter, depth)
        return [emit_any_value(emitter.style, emitter.limits)]
    nodes, is_satisfiable = emitter.algebra.nodes, emitter.algebra.is_satisfiable
    node = nodes[schemas[0]] if len(schemas) == 1 and schemas[0] > 0 else None
    if node is None or not PLAIN_KEYWORDS.issuperset(node.keywords):
        return None
    if not node.is_plain:
        children = find_children(schemas, nodes)
        if children is None or not (emitter.reachable.issuperset(children) or all(map(is_satisfiable, children))):
            return None
    if node.keywords.get("type") == ARRAY and not is_indented:
        shared = _emit_shared_list(node.keywords, emitter)
        if shared is not None:
            return [shared]
    return _emit_keywords(node.keywords, node.draft, emitter, depth)


def _emit_shared_list(keywords: dict[str, Any], emitter: PlainEmitter) -> Node | None:
    """Return the arrays of scalar types that keywords allow, a node that many schemas share; None for others."""
    case = ANY_ARRAY if keywords.keys().isdisjoint(ARRAY_KEYWORDS) else build_array_case(keywords)
    if case.prefix or case.contains or case.unique:
        return None
    types = find_plain_types(case.items, emitter.algebra.nodes)
    return None if types is None else emit_list(*types, case.low, case.high, emitter.style, emitter.limits)


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
        options.append(JsonString(Dfa.any_text()))
    if types & (NUMBER | INTEGER):
        numbers = number_sets.ANY_NUMBER if types & NUMBER else build_integer_case({}, draft)
        options += number_sets.emit_numbers((numbers,), style, limits)[1]
    return tuple(options)


@memoize_work(maxsize=256)
def emit_scalars(types: int, draft: int, style: Style, limits: Limits) -> Node:
    """Return all values of scalar types: the same node for all subschemas that assert no more."""
    return choice_of(list(emit_types(types, draft, style, limits)))


@memoize_work(maxsize=64)
def emit_any_value(style: Style, limits: Limits) -> Node:
    """Return any value: the same node in all schemas of a style that does not indent."""
    return share(choice_of(_emit_keywords({}, 0, _SharedEmitter(style, limits, Rule((ANY, 0))), 0)))


@memoize_work(maxsize=256)
def emit_list(types: int, draft: int, low: int, high: int | None, style: Style, limits: Limits) -> Node:
    """Return the arrays of `low` to `high` values of scalar types, for a style that does not indent."""
    item = emit_scalars(types, draft, style, limits)
    return share(emit_array(ArrayCase(low=low, high=high), _SharedEmitter(style, limits, item), 0))


@memoize_work(maxsize=256)
def emit_rule_list(low: int, high: int | None, style: Style, limits: Limits) -> Node:
    """Return the arrays of `low` to `high` values of a rule, for which ANY_RULE stands, for a style that does not
    indent.
    """
    return share(emit_array(ArrayCase(low=low, high=high), _SharedEmitter(style, limits, ANY_RULE), 0))


def name_members(raw: dict[str, Any], properties: dict[str, Any]) -> tuple[list[str], bytes]:
    """Return the declared names of an object, those of `properties` first, and a byte for each: 1 if it is required."""
    names, required = [*properties], raw.get("required")
    if not required:
        return names, bytes(len(names))
    listed = set(required)
    if not properties.keys() >= listed:
        names += [name for name in dict.fromkeys(required) if name not in properties]
    return names, bytes(map(listed.__contains__, names))


class _SharedEmitter(ValueEmitter):
    """Emits arrays and objects of no schema in particular: every value in them is `item`."""

    def __init__(self, style: Style, limits: Limits, item: Node) -> None:
        self.style, self.limits, self.item = style, limits, item
        self.languages = LanguageCache(limits, refuse_keyword, refuse_keyword)

    def value(self, schemas: SchemaSet, depth: int) -> Node:
        return self.item

    def member_values(self, sets: list[SchemaSet], depth: int) -> list[Node]:
        return [self.item for _ in sets]

    def spacing(self, depth: int) -> Spacing:
        return spacing_at(self.style, 0)

    def constant_set(self, value: Constant) -> SchemaSet:
        raise refuse_keyword()

    def plan(self, case: ArrayCase) -> Any:
        raise refuse_keyword()


def refuse_keyword(*arguments: object) -> Any:
    """Return the error of what needs a parsed schema."""
    return AssertionError("plain subschemas have neither languages of names nor plans, and no keyword is refused")


WORDS = ((NULL, b"null"), (BOOLEAN, b"false"), (BOOLEAN, b"true"))


def emit_constants(words: set[bytes]) -> list[Node]:
    """Return the node of texts to choose from, if there are any."""
    if len(words) < 2:
        return [Literal(word) for word in words]
    return [Strings(tuple(sorted(words)))]
