"""Keywords that apply schemas to the same value, and those about items and members that nothing else evaluates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..frontends.json_schema.core.json_values import ARRAY, OBJECT
from ..frontends.json_schema.core.schema_sets import ANY, SchemaSet
from ..frontends.json_schema.core.subschema_table import Subschema
from .findings import Finding, Judge, KeywordRule
from .instance_tree import InstanceItem
from .message_words import listed, show_constant, show_item, show_text, type_names

__all__ = ["APPLICATOR_RULES", "UNEVALUATED_RULES"]


def check_reference(judge: Judge, node: Subschema, schemas: SchemaSet, item: InstanceItem) -> Iterator[Finding]:
    """`$ref` and `$dynamicRef`."""
    if not judge.holds(schemas, item):
        yield Finding(f"{show_item(item)} is not allowed: $ref names a schema that is false", item, schemas)


def check_all(judge: Judge, node: Subschema, branches: tuple[SchemaSet, ...], item: InstanceItem) -> Iterator[Finding]:
    """`allOf`."""
    for at, one in enumerate(branches):
        if not judge.holds(one, item):
            yield Finding(f"{show_item(item)} is not allowed: allOf has a schema that is false", item, one, path=(at,))


def check_any(judge: Judge, node: Subschema, branches: tuple[SchemaSet, ...], item: InstanceItem) -> Iterator[Finding]:
    """`anyOf`."""
    if not any(judge.holds(one, item) for one in branches):
        yield Finding(none_fits("anyOf", branches, item), item, branches=branches)


def check_one(judge: Judge, node: Subschema, branches: tuple[SchemaSet, ...], item: InstanceItem) -> Iterator[Finding]:
    """`oneOf`."""
    fitting = [at for at, one in enumerate(branches) if judge.holds(one, item)]
    if not fitting:
        yield Finding(none_fits("oneOf", branches, item), item, branches=branches)
    elif len(fitting) > 1:
        which = listed([str(at) for at in fitting], "and")
        both = "both fit" if len(fitting) == 2 else "all fit"
        yield Finding(f"the branches {which} of oneOf {both} {show_item(item)}, and exactly one must", item)


def none_fits(keyword: str, branches: tuple[SchemaSet, ...], item: InstanceItem) -> str:
    """Return the message of a choice none of whose branches fits."""
    if len(branches) == 1:
        return f"{show_item(item)} does not fit the only branch of {keyword}"
    return f"{show_item(item)} fits none of the {len(branches)} branches of {keyword}"


def check_not(judge: Judge, node: Subschema, schemas: SchemaSet, item: InstanceItem) -> Iterator[Finding]:
    """`not`."""
    if judge.holds(schemas, item):
        yield Finding(f"{show_item(item)} {forbidden(judge, schemas)}", item)


def forbidden(judge: Judge, schemas: SchemaSet) -> str:
    """Return what a schema under `not` forbids, if it is simple enough for a sentence."""
    keywords = {} if schemas == ANY else judge.node_of(schemas).keywords
    if schemas == ANY:
        return "is not allowed: not forbids everything"
    if len(keywords) == 1:
        ((name, value),) = keywords.items()
        if name == "type":
            return f"is {type_names(value)}, which not forbids"
        if name in ("const", "enum"):
            return f"is forbidden: it must not be {listed([show_constant(one) for one in value[:50]])} (not)"
        if name == "required":
            return f"must not have {listed([show_text(one) for one in value], 'and')} (not)"
        if name == "pattern":
            return f"matches the pattern {show_text(value)}, which not forbids"
    return "fits the schema of not, and must not"


def check_if(judge: Judge, node: Subschema, schemas: SchemaSet, item: InstanceItem) -> Iterator[Finding]:
    """`if`, with `then` and `else`; without them it asserts nothing, so the value is not compared with it."""
    if not node.keywords.keys() & {"then", "else"}:
        return
    fits = judge.holds(schemas, item)
    branch = "then" if fits else "else"
    chosen = node.keywords.get(branch, ANY)
    if not judge.holds(chosen, item):
        since = f"since the value {'fits' if fits else 'does not fit'} if"
        yield Finding(f"{show_item(item)} is not allowed, {since}", item, chosen, since, keyword=branch)


# ---- what nothing else evaluates ---------------------------------------------------------------------------------


def check_unevaluated(keyword: str, kind: int) -> KeywordRule:
    """Return the rule of `unevaluatedItems` or `unevaluatedProperties`."""

    def rule(judge: Judge, node: Subschema, schemas: SchemaSet, item: InstanceItem) -> Iterator[Finding]:
        if item.kind != kind or schemas == ANY:
            return
        evaluated: Any = judge.evaluated(node, item)
        children = item.children.values() if kind == OBJECT else item.children
        for child in children:
            if child.key not in evaluated and not judge.holds(schemas, child):
                what = f"item {child.key}" if kind == ARRAY else show_text(str(child.key))
                message = f"{what} is not allowed: no other keyword allows it, and {keyword} is false"
                yield Finding(message, child, schemas)

    return rule


APPLICATOR_RULES: dict[str, KeywordRule] = {
    "$ref": check_reference,
    "$dynamicRef": check_reference,
    "allOf": check_all,
    "anyOf": check_any,
    "oneOf": check_one,
    "not": check_not,
    "if": check_if,
}

UNEVALUATED_RULES: dict[str, KeywordRule] = {
    "unevaluatedItems": check_unevaluated("unevaluatedItems", ARRAY),
    "unevaluatedProperties": check_unevaluated("unevaluatedProperties", OBJECT),
}
