"""Verdicts of subschemas on items, each computed once, and which items and members a subschema evaluates.

The parser gives a subschema that is reached in two dynamic scopes two nodes. So a verdict depends on the node and the
item alone, and there are at most as many as pairs of them, whatever the schema refers to: no `anyOf` within `anyOf`
takes exponential time.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from ..base.errors import LimitError, SchemaError
from ..base.options import Limits
from ..base.work import spend_work
from ..frontends.json_schema.core.fresh_stack import run_on_fresh_stack
from ..frontends.json_schema.core.json_values import ARRAY, OBJECT
from ..frontends.json_schema.core.schema_sets import ANY, NEVER, SchemaSet
from ..frontends.json_schema.core.subschema_table import Subschema
from .applicator_rules import APPLICATOR_RULES, UNEVALUATED_RULES
from .container_rules import CONTAINER_RULES, prefix_of
from .findings import Finding, Judge, KeywordRule
from .instance_tree import InstanceItem
from .value_rules import VALUE_RULES

__all__ = ["InstanceJudge"]

RULES: dict[str, KeywordRule] = {**VALUE_RULES, **CONTAINER_RULES, **APPLICATOR_RULES}
"""Keywords that are judged by themselves. `then` is judged by `if`, `minContains` by `contains`, and so on."""

LEVELS = 120
"""Levels of the recursion on one stack: each needs at most five frames, and CPython has 1,000."""
MOST_STACKS = 40
STACK = 200
"""Units of work that a new stack counts as."""
VERDICT = 4
"""Units of work that a verdict counts as."""


class AllChildren(Container[Any]):
    """All items or members."""

    def __contains__(self, key: object) -> bool:
        return True


ALL = AllChildren()


class InstanceJudge(Judge):
    """Verdicts of the nodes of one schema on the items of one instance. Raise LimitError if a budget is exceeded."""

    def __init__(self, nodes: list[Subschema | None], limits: Limits) -> None:
        super().__init__(nodes, limits)
        self._verdicts: dict[tuple[int, int], bool | None] = {}
        self._evaluated: dict[tuple[int, int], Container[Any]] = {}
        self._level = 0

    def holds(self, schemas: SchemaSet, item: InstanceItem) -> bool:
        """Return whether an item satisfies a subschema."""
        if schemas in (ANY, NEVER):
            return schemas == ANY
        key = (schemas[0], item.index)
        known = self._verdicts.get(key, key)
        if isinstance(known, bool):
            return known
        if known is None:
            raise circular_schema(self.node_of(schemas))
        self._verdicts[key] = None
        self._level += 1
        try:
            if self._level % LEVELS:
                verdict = self._judge(self.node_of(schemas), item)
            else:
                verdict = self._judge_on_new_stack(self.node_of(schemas), item)
        finally:
            self._level -= 1
        self._verdicts[key] = verdict
        return verdict

    def _judge_on_new_stack(self, node: Subschema, item: InstanceItem) -> bool:
        if self._level >= LEVELS * MOST_STACKS:
            raise LimitError(
                f"An instance and its schema lead through more than {LEVELS * MOST_STACKS:,} levels.",
                pointer=item.pointer, hint="Nest the instance, or chain the references, less deeply.",
            )  # fmt: skip
        spend_work(STACK, "the validation of an instance")
        return run_on_fresh_stack(self._judge, node, item)

    def _judge(self, node: Subschema, item: InstanceItem) -> bool:
        """Return whether no keyword of a node finds anything."""
        keywords = node.keywords
        spend_work(VERDICT + len(keywords) + (len(item.children) >> 1), "the validation of an instance")
        for rules in (RULES, UNEVALUATED_RULES):
            for name, value in keywords.items():
                rule = rules.get(name)
                if rule is not None:
                    for _ in rule(self, node, value, item):
                        return False
        return True

    def findings(self, node: Subschema, item: InstanceItem) -> Iterator[tuple[str, Finding]]:
        """Yield the findings of all keywords, with the keyword, in the order of the schema, `unevaluated...` last."""
        spend_work(VERDICT + len(node.keywords) + (len(item.children) >> 1), "the report of violations")
        for rules in (RULES, UNEVALUATED_RULES):
            for name, value in node.keywords.items():
                rule = rules.get(name)
                if rule is not None:
                    for finding in rule(self, node, value, item):
                        yield finding.keyword or name, finding

    # ---- what is evaluated ---------------------------------------------------------------------------------------

    def evaluated(self, node: Subschema, item: InstanceItem) -> Container[Any]:
        """Return the indices or names that keywords of a node evaluate, `unevaluated...` left out.

        A subschema of `allOf` and the like that is not satisfied counts, too: the value is refused in any case, and
        what the subschema declares is not unknown.
        """
        found: set[Any] = set()
        for part in self._own_children(node, item):
            if isinstance(part, AllChildren):
                return ALL
            found.update(part)
        for schemas in self._applied_in_place(node, item):
            part = self._evaluated_by(schemas, item)
            if isinstance(part, AllChildren):
                return ALL
            assert isinstance(part, set)
            spend_work(len(part), "the collection of evaluated members")
            found |= part
        return found

    def _evaluated_by(self, schemas: SchemaSet, item: InstanceItem) -> Container[Any]:
        """Return the indices or names that a subschema evaluates."""
        if schemas in (ANY, NEVER):
            return set()
        key = (schemas[0], item.index)
        known = self._evaluated.get(key)
        if known is None:
            node = self.node_of(schemas)
            mine = "unevaluatedItems" if item.kind == ARRAY else "unevaluatedProperties"
            spend_work(VERDICT + len(node.keywords), "the collection of evaluated members")
            self._level += 1
            try:
                if mine in node.keywords:
                    known = ALL
                elif self._level % LEVELS:
                    known = self.evaluated(node, item)
                else:
                    spend_work(STACK, "the collection of evaluated members")
                    known = run_on_fresh_stack(self.evaluated, node, item)
            finally:
                self._level -= 1
            self._evaluated[key] = known
        return known

    def _own_children(self, node: Subschema, item: InstanceItem) -> Iterator[Any]:
        """Yield the children that keywords with subschemas for children evaluate."""
        keywords = node.keywords
        spend_work(len(item.children), "the collection of evaluated members")
        if item.kind == OBJECT:
            if "additionalProperties" in keywords:
                yield ALL
            yield [name for name in item.children if name in keywords.get("properties", ())]
            for pattern in keywords.get("patternProperties", ()):
                yield [name for name in item.children if self.matches(pattern, name)]
        elif item.kind == ARRAY:
            items = keywords.get("items")
            if "items" in keywords and (not isinstance(items, list) or "additionalItems" in keywords):
                yield ALL
            yield range(min(len(prefix_of(node)), len(item.children)))
            if "contains" in keywords and node.draft >= 2020:
                yield [child.key for child in item.children if self.holds(keywords["contains"], child)]

    def _applied_in_place(self, node: Subschema, item: InstanceItem) -> Iterator[SchemaSet]:
        """Yield the subschemas that apply to the same value: of a choice, those that fit, or all if none does."""
        keywords = node.keywords
        for name in ("$ref", "$dynamicRef"):
            if name in keywords:
                yield keywords[name]
        yield from keywords.get("allOf", ())
        for name in ("anyOf", "oneOf"):
            branches = keywords.get(name, ())
            yield from [one for one in branches if self.holds(one, item)] or branches
        if "if" in keywords:
            fits = self.holds(keywords["if"], item)
            if fits:
                yield keywords["if"]
            yield keywords.get("then" if fits else "else", ANY)
        if item.kind == OBJECT:
            for name, schemas in keywords.get("dependentSchemas", {}).items():
                if name in item.value:
                    yield schemas


def circular_schema(node: Subschema) -> SchemaError:
    """Return the error of a schema that is applied to the same value within itself (core specification, 9.4.1)."""
    return SchemaError(
        "This schema applies itself to the same value, so it has no meaning.", pointer=node.pointer,
        hint="Refer to it only from subschemas for items or properties.",
    )  # fmt: skip
