"""All violations of an instance: from the findings of its root down to the keywords that refuse something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..base.json_documents import pointer_token
from ..base.work import spend_work
from ..frontends.json_schema.core.schema_sets import ANY, NEVER, SchemaSet
from ..frontends.json_schema.core.subschema_table import Subschema
from .findings import Finding
from .instance_judge import InstanceJudge
from .instance_tree import InstanceItem
from .message_words import show_item, type_names
from .violations import Violation

__all__ = ["ItemViolation", "find_violations"]

MOST_BRANCHES = 50
"""Most branches among which the closest one is looked for."""
MOST_HOPS = 20
"""Most subschemas from a branch to the keyword that refuses the value, in an explanation."""
MOST_FINDINGS = 20
"""Most findings of a subschema that are compared with those of other branches."""


class ItemViolation(NamedTuple):
    """A violation, and the item that it is about."""

    violation: Violation
    item: InstanceItem


class Refusing(NamedTuple):
    """A keyword that refuses something: the node with the keyword, and its finding."""

    node: Subschema
    keyword: str
    finding: Finding


def find_violations(judge: InstanceJudge, schemas: SchemaSet, root: InstanceItem) -> list[ItemViolation]:
    """Return all violations, ordered by where their items begin. Each pair of a subschema and an item counts once."""
    if schemas == NEVER:
        message = f"{show_item(root)} is not allowed: the schema is false"
        return [ItemViolation(Violation(message, "", "", ""), root)]
    if judge.holds(schemas, root):
        return []
    found: list[ItemViolation] = []
    seen: set[tuple[int, int]] = set()
    stack: list[tuple[SchemaSet, InstanceItem, str]] = [(schemas, root, "")]
    while stack:
        schemas, item, since = stack.pop()
        if (schemas[0], item.index) in seen:
            continue
        seen.add((schemas[0], item.index))
        node = judge.node_of(schemas)
        below: list[tuple[SchemaSet, InstanceItem, str]] = []
        for keyword, finding in judge.findings(node, item):
            spend_work(4, "the report of violations")
            if finding.schemas is None or finding.schemas == NEVER:
                found.append(report(judge, node, keyword, finding, since))
            else:
                inherited = since if finding.item is item else ""
                below.append((finding.schemas, finding.item, finding.since or inherited))
        stack.extend(reversed(below))
    return sorted(found, key=lambda one: one.item.index if one.item.index >= 0 else -1 - one.item.index)


def report(judge: InstanceJudge, node: Subschema, keyword: str, finding: Finding, since: str) -> ItemViolation:
    """Return the violation of a finding."""
    message = finding.text
    if finding.branches and judge.may_explain():
        message = explain_choice(judge, finding)
    if since and since not in message:
        message += f", {since}"
    pointer = finding.item.pointer
    spend_work(len(pointer) >> 6, "the report of violations")
    place = "/".join((node.pointer or "", pointer_token(keyword), *map(pointer_token, finding.path)))
    if keyword in ("then", "else"):
        place = f"{node.pointer or ''}/{keyword}"
    return ItemViolation(Violation(message, keyword, pointer, place), finding.item)


# ---- why no branch fits ------------------------------------------------------------------------------------------


def explain_choice(judge: InstanceJudge, finding: Finding) -> str:
    """Return the message of a choice, with the types that are allowed, or what the closest branch refuses."""
    branches = [one for one in finding.branches if one not in (NEVER, ANY)][:MOST_BRANCHES]
    masks = [judge.node_of(one).keywords.get("type") for one in branches]
    item = finding.item
    fits_types = [
        branch for branch, mask in zip(branches, masks) if mask is None or not type_refuses(judge, branch, item)
    ]
    if not fits_types and branches and len(finding.branches) <= MOST_BRANCHES:
        mask = 0
        for one in masks:
            mask |= one or 0
        return f"{finding.text}: it is not {type_names(mask)}"
    ranked: list[tuple[tuple[int, int], int, Refusing]] = []
    for branch in fits_types:
        refusing = follow(judge, branch, item)
        if refusing is not None:
            ranked.append((rank(judge, branch, item), finding.branches.index(branch), refusing))
    if not ranked:
        return finding.text
    _, number, closest = min(ranked, key=lambda one: one[:2])
    other = closest.finding.item
    place = f"{relative(item, other)}: " if other is not item else ""
    which = f"; branch {number} comes closest: " if len(finding.branches) > 1 else ": "
    return f"{finding.text}{which}{place}{closest.finding.text}"


def type_refuses(judge: InstanceJudge, branch: SchemaSet, item: InstanceItem) -> bool:
    """Return whether `type` of a branch refuses the item."""
    return any(keyword == "type" for keyword, _ in judge.findings(judge.node_of(branch), item))


def rank(judge: InstanceJudge, branch: SchemaSet, item: InstanceItem) -> tuple[int, int]:
    """Return how far a branch is from the item: whether a constant differs, as of a tag, and how much is wrong."""
    differs, count = 0, 0
    for keyword, finding in judge.findings(judge.node_of(branch), item):
        count += 1
        if count > MOST_FINDINGS:
            break
        refusing = None if finding.schemas is None else follow(judge, finding.schemas, finding.item)
        last = keyword if refusing is None else refusing.keyword
        differs |= last in ("const", "enum")
    return differs, count


def follow(judge: InstanceJudge, schemas: SchemaSet, item: InstanceItem) -> Refusing | None:
    """Return the first keyword that refuses the item, in a subschema or those below it."""
    for _ in range(MOST_HOPS):
        if schemas in (ANY, NEVER):
            return None
        node = judge.node_of(schemas)
        first = next(first_findings(judge, node, item), None)
        if first is None:
            return None
        keyword, finding = first
        if finding.schemas is None or finding.schemas == NEVER:
            return Refusing(node, keyword, finding)
        schemas, item = finding.schemas, finding.item
    return None


def first_findings(judge: InstanceJudge, node: Subschema, item: InstanceItem) -> Iterator[tuple[str, Finding]]:
    """Yield the findings of a node, those about names and types that are wrong first."""
    found = []
    for one in judge.findings(node, item):
        found.append(one)
        if len(found) > MOST_FINDINGS:
            break
    yield from sorted(found, key=lambda one: one[0] not in ("type", "required", "const", "enum"))


def relative(outer: InstanceItem, inner: InstanceItem) -> str:
    """Return the pointer of an item from one that contains it."""
    return inner.pointer[len(outer.pointer) :]
