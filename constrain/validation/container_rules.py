"""The keywords of arrays and objects: how many items and members, which ones, and what each must satisfy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..base.work import spend_work
from ..frontends.json_schema.core.json_values import ARRAY, OBJECT
from ..frontends.json_schema.core.schema_sets import ANY, SchemaSet
from ..frontends.json_schema.core.subschema_table import Subschema
from .findings import Finding, Judge, KeywordRule
from .instance_tree import InstanceItem
from .message_words import count_of, listed, show_item, show_text

__all__ = ["CONTAINER_RULES", "declares_name", "prefix_of"]

MOST_PAIRS = 3
"""Most pairs of equal items that a message names."""


def count(keyword: str, kind: int, what: str, words: str, accepts: Callable[[int, int], bool]) -> KeywordRule:
    """Return the rule of a bound on the number of items or properties."""

    def rule(judge: Judge, node: Subschema, limit: int, item: InstanceItem) -> Iterator[Finding]:
        if item.kind == kind and not accepts(len(item.value), limit):
            yield Finding(f"{count_of(len(item.value), what)}, {words} {keyword} {limit:,}", item)

    return rule


# ---- arrays ------------------------------------------------------------------------------------------------------


def prefix_of(node: Subschema) -> tuple[SchemaSet, ...]:
    """Return the subschemas of the first items: `prefixItems`, or a list in `items` before 2020-12."""
    items = node.keywords.get("items")
    return tuple(items) if isinstance(items, list) else node.keywords.get("prefixItems", ())


def check_prefix(
    judge: Judge, node: Subschema, schemas: tuple[SchemaSet, ...], item: InstanceItem
) -> Iterator[Finding]:
    """`prefixItems`: one subschema for each of the first items."""
    if item.kind == ARRAY:
        for at, (one, child) in enumerate(zip(schemas, item.children)):
            if not judge.holds(one, child):
                yield Finding(f"item {at} is not allowed: its schema is false", child, one, path=(at,))


def check_items(judge: Judge, node: Subschema, schemas: Any, item: InstanceItem) -> Iterator[Finding]:
    """`items`: one subschema for all further items; a list is `prefixItems`."""
    if isinstance(schemas, list):
        yield from check_prefix(judge, node, tuple(schemas), item)
    elif item.kind == ARRAY:
        yield from check_further(judge, schemas, item, len(node.keywords.get("prefixItems", ())), "items")


def check_additional_items(judge: Judge, node: Subschema, schemas: SchemaSet, item: InstanceItem) -> Iterator[Finding]:
    """`additionalItems`: one subschema for the items after a list in `items`."""
    if item.kind == ARRAY and isinstance(node.keywords.get("items"), list):
        yield from check_further(judge, schemas, item, len(node.keywords["items"]), "additionalItems")


def check_further(judge: Judge, schemas: SchemaSet, item: InstanceItem, start: int, keyword: str) -> Iterator[Finding]:
    """Yield the findings of items from an index on."""
    if schemas != ANY:
        for child in item.children[start:]:
            if not judge.holds(schemas, child):
                most = f", at most {count_of(start, 'item')} may be there" if start else ""
                yield Finding(f"item {child.key} is not allowed: {keyword} is false{most}", child, schemas)


def check_unique(judge: Judge, node: Subschema, argument: bool, item: InstanceItem) -> Iterator[Finding]:
    """`uniqueItems`: no two items are equal, by value."""
    if item.kind != ARRAY:
        return
    first: dict[int, InstanceItem] = {}
    pairs: list[tuple[InstanceItem, InstanceItem]] = []
    for child in item.children:
        earlier = first.setdefault(judge.values.of_item(child), child)
        if earlier is not child:
            pairs.append((earlier, child))
    if pairs:
        words = [f"{one.key} and {other.key}" for one, other in pairs[:MOST_PAIRS]]
        more = f" and {count_of(len(pairs) - MOST_PAIRS, 'more pair')}" if len(pairs) > MOST_PAIRS else ""
        shown = show_item(pairs[0][1])
        yield Finding(f"items {listed(words, 'and')}{more} are equal ({shown}), and uniqueItems is true", item)


def check_contains(judge: Judge, node: Subschema, schemas: SchemaSet, item: InstanceItem) -> Iterator[Finding]:
    """`contains`, with `minContains` and `maxContains` from 2019-09 on."""
    if item.kind != ARRAY:
        return
    low, high = node.keywords.get("minContains", 1), node.keywords.get("maxContains")
    found = [child for child in item.children if judge.holds(schemas, child)]
    if len(found) < low:
        if not found:
            wanted = "at least 1 must" if low == 1 else f"at least {low:,} must (minContains)"
            yield Finding(f"none of {count_of(len(item.children), 'item')} fits contains, and {wanted}", item)
        else:
            yield Finding(f"{fitting(found)} contains, fewer than minContains {low:,}", item, keyword="minContains")
    if high is not None and len(found) > high:
        yield Finding(f"{fitting(found)} contains, more than maxContains {high:,}", item, keyword="maxContains")


def fitting(found: list[InstanceItem]) -> str:
    """Return "2 items (0 and 3) fit"."""
    which = listed([str(child.key) for child in found[:50]], "and")
    return f"{count_of(len(found), 'item')} ({which}) {'fits' if len(found) == 1 else 'fit'}"


# ---- objects -----------------------------------------------------------------------------------------------------


def check_required(judge: Judge, node: Subschema, names: tuple[str, ...], item: InstanceItem) -> Iterator[Finding]:
    """`required`: names of members that must be there."""
    if item.kind == OBJECT:
        for name in names:
            if name not in item.value:
                yield Finding(partial(missing_name, judge, node, name, item), item)


def missing_name(judge: Judge, node: Subschema, name: str, item: InstanceItem) -> str:
    """Return the message for a required member that is missing, with an undeclared one that has a similar name."""
    others = (other for other in item.value if not declares_name(judge, node, other))
    near = judge.suggest(name, others)
    return f"{show_text(name)} is required{near.replace('; did you mean', '; is it')}"


def check_properties(
    judge: Judge, node: Subschema, schemas: dict[str, SchemaSet], item: InstanceItem
) -> Iterator[Finding]:
    """`properties`: subschemas by name."""
    if item.kind == OBJECT:
        names = schemas if len(schemas) < len(item.children) else item.children
        for name in names:
            if name in schemas and name in item.children and not judge.holds(schemas[name], item.children[name]):
                message = f"{show_text(name)} is not allowed: its schema is false"
                yield Finding(message, item.children[name], schemas[name], path=(name,))


def check_pattern_properties(
    judge: Judge, node: Subschema, schemas: dict[str, SchemaSet], item: InstanceItem
) -> Iterator[Finding]:
    """`patternProperties`: subschemas by patterns of names."""
    if item.kind == OBJECT:
        for pattern, one in schemas.items():
            for name, child in item.children.items():
                if one != ANY and judge.matches(pattern, name) and not judge.holds(one, child):
                    message = (
                        f"{show_text(name)} is not allowed: the schema of names like {show_text(pattern)} is false"
                    )
                    yield Finding(message, child, one, path=(pattern,))


def declares_name(judge: Judge, node: Subschema, name: str) -> bool:
    """Return whether `properties` or `patternProperties` has a subschema for a name."""
    if name in node.keywords.get("properties", ()):
        return True
    return any(judge.matches(pattern, name) for pattern in node.keywords.get("patternProperties", ()))


def check_additional(judge: Judge, node: Subschema, schemas: SchemaSet, item: InstanceItem) -> Iterator[Finding]:
    """`additionalProperties`: one subschema for members that are not declared."""
    if item.kind != OBJECT or schemas == ANY:
        return
    for name, child in item.children.items():
        if not declares_name(judge, node, name) and not judge.holds(schemas, child):
            yield Finding(partial(undeclared_name, judge, node, name, item), child, schemas)


def undeclared_name(judge: Judge, node: Subschema, name: str, item: InstanceItem) -> str:
    """Return the message for a member that is not declared, with a declared one that has a similar name."""
    near = judge.suggest(name, (one for one in node.keywords.get("properties", ()) if one not in item.value))
    return f"{show_text(name)} is not allowed: additionalProperties is false{near}"


def check_names(judge: Judge, node: Subschema, schemas: SchemaSet, item: InstanceItem) -> Iterator[Finding]:
    """`propertyNames`: one subschema for all names."""
    if item.kind == OBJECT and schemas != ANY:
        for name, child in item.children.items():
            if not judge.holds(schemas, judge.name_of(child)):
                message = f"{show_text(name)} is not allowed: propertyNames is false"
                yield Finding(message, judge.name_of(child), schemas, since="by propertyNames")


def check_needs(judge: Judge, node: Subschema, needs: dict[str, Any], item: InstanceItem) -> Iterator[Finding]:
    """`dependentRequired` and `dependencies`: what must be there, or hold, if a member is there."""
    if item.kind != OBJECT:
        return
    for name, needed in needs.items():
        spend_work(1, "dependencies")
        if name not in item.value:
            continue
        if isinstance(needed, frozenset):
            for missing in sorted(needed.difference(item.value)):
                yield Finding(f"{show_text(missing)} is required, since {show_text(name)} is present", item)
        elif not judge.holds(needed, item):
            since = f"since {show_text(name)} is present"
            yield Finding(f"{show_text(name)} must not be present", item, needed, since, path=(name,))


CONTAINER_RULES: dict[str, KeywordRule] = {
    "prefixItems": check_prefix,
    "items": check_items,
    "additionalItems": check_additional_items,
    "minItems": count("minItems", ARRAY, "item", "fewer than", lambda number, limit: number >= limit),
    "maxItems": count("maxItems", ARRAY, "item", "more than", lambda number, limit: number <= limit),
    "uniqueItems": check_unique,
    "contains": check_contains,
    "required": check_required,
    "properties": check_properties,
    "patternProperties": check_pattern_properties,
    "additionalProperties": check_additional,
    "propertyNames": check_names,
    "minProperties": count("minProperties", OBJECT, "property", "fewer than", lambda number, limit: number >= limit),
    "maxProperties": count("maxProperties", OBJECT, "property", "more than", lambda number, limit: number <= limit),
    "dependentRequired": check_needs,
    "dependentSchemas": check_needs,
    "dependencies": check_needs,
}
