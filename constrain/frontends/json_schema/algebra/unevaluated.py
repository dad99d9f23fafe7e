"""`unevaluatedProperties`, `unevaluatedItems`: which keys and items the other keywords evaluate, way by way.

What is evaluated depends on which branches hold (JSON Schema 2020-12, 11.2 and 11.3; 7.7.1 on annotations). A `Way` is
a condition (a literal set) and what is evaluated at least when it holds; the ways of a schema cover its values. More
evaluated means less forbidden, so a branch that holds may be ignored in a way: ways need no complements and may
overlap, and the keyword is the union over the ways of "the condition, and what that way leaves over is in the set".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ....base.errors import LimitError
from ....base.options import Limits
from ..reading.json_values import OBJECT
from .schema_sets import ANY, NEVER, Lits

if TYPE_CHECKING:
    from ..reading.schema_parser import Node, Reader

__all__ = ["NOTHING", "Seen", "Way", "of_items", "of_keys", "ways"]


class Seen(NamedTuple):
    """What has been evaluated: everything; or keys by name and by pattern; or the first items and those in the sets."""

    everything: bool = False
    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    first: int = 0
    sets: frozenset[Lits] = frozenset()

    def join(self, other: Seen) -> Seen:
        """What one of them has evaluated."""
        if self.everything or other.everything:
            return EVERYTHING
        return Seen(
            False, self.names | other.names, self.patterns | other.patterns,
            max(self.first, other.first), self.sets | other.sets,
        )  # fmt: skip

    def covers(self, other: Seen) -> bool:
        """Whether it is all that the other is."""
        if self.everything or other.everything:
            return self.everything
        keys = self.names >= other.names and self.patterns >= other.patterns
        return keys and self.first >= other.first and self.sets >= other.sets


NOTHING, EVERYTHING = Seen(), Seen(True)


class Way(NamedTuple):
    """Values of the set `held`, of which at least this has been evaluated."""

    held: Lits
    seen: Seen


NO_WAY = [Way(ANY, NOTHING)]
"""Nothing is evaluated, whatever holds."""


class Algebra(Protocol):
    """What is asked about schemas."""

    nodes: list[Node | None]
    reader: Reader
    limits: Limits

    def opposite(self, lits: Lits) -> Lits: ...
    def both(self, one: Lits, other: Lits) -> Lits: ...
    def overlap(self, lits: Lits) -> bool: ...


Own = Callable[[dict[str, Any], int], Seen]


def of_keys(facts: dict[str, Any], draft: int) -> Seen:
    """The keys that a schema's own keywords evaluate."""
    if "additionalProperties" in facts or "unevaluatedProperties" in facts:
        return EVERYTHING
    return Seen(names=frozenset(facts.get("properties", ())), patterns=frozenset(facts.get("patternProperties", ())))


def of_items(facts: dict[str, Any], draft: int) -> Seen:
    """The items that a schema's own keywords evaluate: `contains` does from 2020-12 on."""
    items = facts.get("items", [])
    listed = isinstance(items, list)
    if "unevaluatedItems" in facts or not listed or facts.keys() >= {"items", "additionalItems"}:
        return EVERYTHING
    first = len(items) or len(facts.get("prefixItems", ()))
    sets = frozenset((facts["contains"],)) if draft >= 2020 and "contains" in facts else frozenset()
    return Seen(first=first, sets=sets)


def ways(node: Node, facts: dict[str, Any], own: Own, algebra: Algebra, path: tuple[int, ...] = ()) -> list[Way]:
    """The ways of a schema that says `facts`, given that it holds. path: the nodes on the way down to it."""

    def below(lits: Lits) -> list[Way]:
        """The ways of another schema for the same value, given that it holds."""
        found = NO_WAY
        for literal in lits if lits != NEVER else ():
            inner = algebra.nodes[abs(literal)]
            assert inner is not None
            if literal > 0 and literal not in path:  # A schema within itself: the algebra refuses it as circular.
                found = product(found, ways(inner, inner.facts, own, algebra, (*path, literal)), algebra, node)
        return found

    def branch(lits: Lits, *more: Lits) -> list[Way]:
        """The ways if a schema holds, and others with it."""
        found = [Way(lits, NOTHING)]
        for held in (lits, *more):
            found = product(found, below(held), algebra, node)
        return found

    out = [Way(ANY, own(facts, node.draft))]
    for field in ("ref", "dynamicRef"):
        out = product(out, below(facts.get(field, ANY)), algebra, node)
    for lits in facts.get("allOf", ()):
        out = product(out, below(lits), algebra, node)
    if "oneOf" in facts:
        out = product(out, choose([branch(lits) for lits in facts["oneOf"]]), algebra, node)
    if "if" in facts:
        held = branch(facts["if"], facts.get("then", ANY))
        failed = [Way(algebra.opposite(facts["if"]), NOTHING)]
        out = product(out, choose([held, product(failed, below(facts.get("else", ANY)), algebra, node)]), algebra, node)
    if "anyOf" in facts:
        out = product(out, any_of([branch(lits) for lits in facts["anyOf"]], algebra, node), algebra, node)
    for name, lits in facts.get("dependentSchemas", {}).items():
        present = algebra.reader.derived(node, {"type": OBJECT, "required": (name,)})
        found = product([Way((present.number,), NOTHING)], below(lits), algebra, node)
        out = product(out, choose([found, NO_WAY]), algebra, node)
    return out


def choose(branches: list[list[Way]]) -> list[Way]:
    """One of several branches holds: those that evaluate nothing are one way without a condition."""
    telling = [[way for way in branch if way.seen != NOTHING] for branch in branches]
    idle = any(way.seen == NOTHING for branch in branches for way in branch)
    return [*(NO_WAY if idle else ()), *(way for branch in telling for way in branch)]


def any_of(branches: list[list[Way]], algebra: Algebra, node: Node) -> list[Way]:
    """At least one of several branches holds: each may be ignored, but for all of them at once."""
    out = NO_WAY
    for branch in branches:
        telling = [way for way in branch if way.seen != NOTHING]
        if telling:
            out = product(out, [*NO_WAY, *telling], algebra, node)
    if all(way.seen != NOTHING for branch in branches for way in branch):
        out = [way for way in out if way.seen != NOTHING]
    return out


def product(one: Iterable[Way], other: Iterable[Way], algebra: Algebra, node: Node) -> list[Way]:
    """Both hold. Ways that cannot be, and those that another one makes idle, are left out."""
    if other is NO_WAY:
        return list(one)
    made = {Way(algebra.both(a.held, b.held), a.seen.join(b.seen)): None for a in one for b in other}
    out: list[Way] = []
    for way in made:
        if way.held != NEVER and not any(_idle(way, kept) for kept in out):
            out = [kept for kept in out if not _idle(kept, way)]
            out.append(way)
    if len(out) > SOME:
        out = [way for way in out if algebra.overlap(way.held)]
    if len(out) > algebra.limits.cases:
        raise LimitError(
            f"What is left unevaluated here depends on more than {algebra.limits.cases} cases.",
            pointer=node.pointer, hint="Raise Limits.cases, or write fewer alternatives that may hold together.",
        )  # fmt: skip
    return out


SOME = 8
"""Ways beyond which it is worth asking which of them can be."""


def _idle(way: Way, other: Way) -> bool:
    """Whether the other way allows all that this one does."""
    return other.seen.covers(way.seen) and set(other.held) <= set(way.held)
