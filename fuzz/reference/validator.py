"""Keywords of JSON Schema, drafts 4 to 2020-12, over values of `json_text`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .documents import DIALECTS, Documents, Node, UnresolvedReference
from .json_text import Real, canonical, parse
from .patterns import NotPortable, search

__all__ = ["DIALECTS", "Undecided", "Validator"]


class Undecided(Exception):
    """The verdict cannot be decided: a pattern is not supported, or a reference has no target."""


@dataclass
class Result:
    """Whether a schema holds, and which members it evaluated if it does."""

    valid: bool = True
    names: set[str] = field(default_factory=set)
    items: set[int] = field(default_factory=set)

    def add(self, other: Result) -> bool:
        """Add the members that a subschema for the same value evaluated, if it holds. Return whether it holds."""
        if other.valid:
            self.names |= other.names
            self.items |= other.items
        return other.valid


class Validator:
    """A schema, ready to judge values.

    schema: dict, bool or JSON text. dialect: URI of the metaschema for documents that name none. registry: URI ->
    document for references that leave the schema.
    """

    def __init__(self, schema: Any, dialect: str = DIALECTS[-1], registry: Mapping[str, Any] | None = None) -> None:
        exact = parse(schema) if isinstance(schema, str) else exact_value(schema)
        self.documents = Documents({uri: exact_value(document) for uri, document in (registry or {}).items()}, dialect)
        self.root = self.documents.root(exact)
        self.active: set[tuple[int, int]] = set()

    def is_valid(self, value: Any) -> bool:
        """Return whether the value is an instance. Raise Undecided if that cannot be decided."""
        try:
            return self.check(self.root, value, (self.root.resource,)).valid
        except (NotPortable, UnresolvedReference) as error:
            raise Undecided(str(error)) from None
        except RecursionError:
            raise Undecided("a reference loop, or too deep") from None

    def check(self, node: Node, value: Any, scope: tuple[str, ...]) -> Result:
        """Evaluate one schema against one value.

        scope: base URIs of the schema resources entered so far, outermost first.
        """
        if isinstance(node.schema, bool):
            return Result(node.schema)
        if not isinstance(node.schema, dict):
            raise UnresolvedReference(f"{node.schema!r} is not a schema")
        if scope[-1] != node.resource:
            scope = (*scope, node.resource)
        key = (id(node.schema), id(value))
        if key in self.active:
            raise UnresolvedReference("a schema that refers to itself for the same value")
        self.active.add(key)
        try:
            return self.keywords(node, value, scope)
        finally:
            self.active.discard(key)

    def keywords(self, node: Node, value: Any, scope: tuple[str, ...]) -> Result:
        """Evaluate all keywords of a schema object, the unevaluated ones last."""
        result, schema, draft = Result(), node.schema, node.draft
        if draft <= 7 and isinstance(schema.get("$ref"), str):
            return self.check(self.documents.resolve(node, schema["$ref"]), value, scope)
        for keyword in ORDER:
            since, until, rule = RULES[keyword]
            if keyword in schema and since <= draft <= until:
                if not rule(self, node, schema[keyword], value, scope, result):
                    return Result(False)
        return result

    def all(self, node: Node, nodes: list[Any], value: Any, scope: tuple[str, ...]) -> list[Result]:
        """Return the results of subschemas for the same value."""
        return [self.check(node.child(one), value, scope) for one in nodes]


def exact_value(value: Any) -> Any:
    """Return a Python value with its numbers as fractions; a float by its shortest decimal."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, Fraction)):
        return value
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, float):
        number = Fraction(repr(value))
        return Real(number.numerator, number.denominator)
    if isinstance(value, (list, tuple)):
        return [exact_value(item) for item in value]
    return {key: exact_value(item) for key, item in value.items()}


# ---- each keyword: (validator, node, argument, value, scope, result) -> whether it holds ----------------------------

Rule = Callable[[Validator, Node, Any, Any, tuple[str, ...], Result], bool]


def is_number(value: Any) -> bool:
    return isinstance(value, Fraction)


def is_type(name: str, value: Any, draft: int) -> bool:
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return is_number(value) and value.denominator == 1 and not (draft == 4 and isinstance(value, Real))
        case "number":
            return is_number(value)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
    return isinstance(value, dict)


def types(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    return any(is_type(name, value, node.draft) for name in ([argument] if isinstance(argument, str) else argument))


def on(kind: Callable[[Any], bool], holds: Callable[[Any, Any], bool]) -> Rule:
    """Return the rule of a keyword that applies to values of one kind only."""

    def rule(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
        return not kind(value) or holds(argument, value)

    return rule


def of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def minimum(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    if not is_number(value):
        return True
    strict = node.draft == 4 and node.schema.get("exclusiveMinimum") is True
    return value > argument if strict else value >= argument  # type: ignore[no-any-return]


def maximum(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    if not is_number(value):
        return True
    strict = node.draft == 4 and node.schema.get("exclusiveMaximum") is True
    return value < argument if strict else value <= argument  # type: ignore[no-any-return]


def is_unique(argument: Any, value: list[Any]) -> bool:
    return not argument or len(set(map(canonical, value))) == len(value)


def properties(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    if not isinstance(value, dict):
        return True
    for name in argument:
        if name in value:
            result.names.add(name)
            if not v.check(node.child(argument[name]), value[name], scope).valid:
                return False
    return True


def pattern_properties(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    if not isinstance(value, dict):
        return True
    for pattern, schema in argument.items():
        for name, item in value.items():
            if search(pattern, name):
                result.names.add(name)
                if not v.check(node.child(schema), item, scope).valid:
                    return False
    return True


def additional_properties(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    if not isinstance(value, dict):
        return True
    for name, item in value.items():
        if name in node.schema.get("properties", {}):
            continue
        if any(search(pattern, name) for pattern in node.schema.get("patternProperties", {})):
            continue
        result.names.add(name)
        if not v.check(node.child(argument), item, scope).valid:
            return False
    return True


def property_names(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    return not isinstance(value, dict) or all(v.check(node.child(argument), name, scope).valid for name in value)


def dependencies(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    if not isinstance(value, dict):
        return True
    for name, needs in argument.items():
        if name not in value:
            continue
        if isinstance(needs, str):
            needs = [needs]
        if isinstance(needs, list):
            if not all(need in value for need in needs):
                return False
        elif not result.add(v.check(node.child(needs), value, scope)):
            return False
    return True


def items(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    if not isinstance(value, list):
        return True
    if isinstance(argument, list) and node.draft < 2020:
        pairs = list(zip(argument, value))
        result.items |= set(range(len(pairs)))
        return all(v.check(node.child(schema), item, scope).valid for schema, item in pairs)
    start = len(node.schema.get("prefixItems", [])) if node.draft >= 2020 else 0
    result.items |= set(range(start, len(value)))
    return all(v.check(node.child(argument), item, scope).valid for item in value[start:])


def additional_items(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    first = node.schema.get("items")
    if not isinstance(value, list) or not isinstance(first, list):
        return True
    result.items |= set(range(len(first), len(value)))
    return all(v.check(node.child(argument), item, scope).valid for item in value[len(first) :])


def prefix_items(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    if not isinstance(value, list):
        return True
    pairs = list(zip(argument, value))
    result.items |= set(range(len(pairs)))
    return all(v.check(node.child(schema), item, scope).valid for schema, item in pairs)


def contains(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    if not isinstance(value, list):
        return True
    found = {at for at, item in enumerate(value) if v.check(node.child(argument), item, scope).valid}
    if node.draft >= 2020:
        result.items |= found
    counted = node.draft >= 2019
    low = node.schema.get("minContains", 1) if counted else 1
    high = node.schema.get("maxContains", len(value)) if counted else len(value)
    return bool(low <= len(found) <= high)


def all_of(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    held = [result.add(one) for one in v.all(node, argument, value, scope)]
    return all(held)


def any_of(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    held = [result.add(one) for one in v.all(node, argument, value, scope)]
    return any(held)


def one_of(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    return sum([result.add(one) for one in v.all(node, argument, value, scope)]) == 1


def not_(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    return not v.check(node.child(argument), value, scope).valid


def if_(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    branch = "then" if result.add(v.check(node.child(argument), value, scope)) else "else"
    if branch not in node.schema:
        return True
    return result.add(v.check(node.child(node.schema[branch]), value, scope))


def ref(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    return result.add(v.check(v.documents.resolve(node, argument), value, scope))


def dynamic_ref(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    return result.add(v.check(v.documents.resolve_dynamic(node, argument, scope), value, scope))


def recursive_ref(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    return result.add(v.check(v.documents.resolve_recursive(node, scope), value, scope))


def unevaluated_properties(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    if not isinstance(value, dict):
        return True
    left = set(value) - result.names
    result.names |= left
    return all(v.check(node.child(argument), value[name], scope).valid for name in left)


def unevaluated_items(v: Validator, node: Node, argument: Any, value: Any, scope: Any, result: Result) -> bool:
    if not isinstance(value, list):
        return True
    left = set(range(len(value))) - result.items
    result.items |= left
    return all(v.check(node.child(argument), value[at], scope).valid for at in left)


NEWEST = 9999
RULES: dict[str, tuple[int, int, Rule]] = {
    "$ref": (2019, NEWEST, ref),
    "$dynamicRef": (2020, NEWEST, dynamic_ref),
    "$recursiveRef": (2019, 2019, recursive_ref),
    "type": (4, NEWEST, types),
    "enum": (4, NEWEST, lambda v, n, a, value, s, r: canonical(value) in set(map(canonical, a))),
    "const": (6, NEWEST, lambda v, n, a, value, s, r: canonical(value) == canonical(a)),
    "multipleOf": (4, NEWEST, on(is_number, lambda a, value: (value / a).denominator == 1)),
    "minimum": (4, NEWEST, minimum),
    "maximum": (4, NEWEST, maximum),
    "exclusiveMinimum": (6, NEWEST, on(is_number, lambda a, value: value > a)),
    "exclusiveMaximum": (6, NEWEST, on(is_number, lambda a, value: value < a)),
    "minLength": (4, NEWEST, on(of(str), lambda a, value: len(value) >= a)),
    "maxLength": (4, NEWEST, on(of(str), lambda a, value: len(value) <= a)),
    "pattern": (4, NEWEST, on(of(str), search)),
    "minItems": (4, NEWEST, on(of(list), lambda a, value: len(value) >= a)),
    "maxItems": (4, NEWEST, on(of(list), lambda a, value: len(value) <= a)),
    "uniqueItems": (4, NEWEST, on(of(list), is_unique)),
    "prefixItems": (2020, NEWEST, prefix_items),
    "items": (4, NEWEST, items),
    "additionalItems": (4, 2019, additional_items),
    "contains": (6, NEWEST, contains),
    "required": (4, NEWEST, on(of(dict), lambda a, value: all(name in value for name in a))),
    "minProperties": (4, NEWEST, on(of(dict), lambda a, value: len(value) >= a)),
    "maxProperties": (4, NEWEST, on(of(dict), lambda a, value: len(value) <= a)),
    "properties": (4, NEWEST, properties),
    "patternProperties": (4, NEWEST, pattern_properties),
    "additionalProperties": (4, NEWEST, additional_properties),
    "propertyNames": (6, NEWEST, property_names),
    "dependencies": (4, 7, dependencies),
    "dependentRequired": (2019, NEWEST, dependencies),
    "dependentSchemas": (2019, NEWEST, dependencies),
    "allOf": (4, NEWEST, all_of),
    "anyOf": (4, NEWEST, any_of),
    "oneOf": (4, NEWEST, one_of),
    "not": (4, NEWEST, not_),
    "if": (7, NEWEST, if_),
    "unevaluatedItems": (2019, NEWEST, unevaluated_items),
    "unevaluatedProperties": (2019, NEWEST, unevaluated_properties),
}
"""By keyword: the first and last draft that have it, and its rule."""
ORDER = tuple(RULES)
"""The order of evaluation: keywords with annotations before those that read them."""
