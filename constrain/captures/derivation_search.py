"""The preferred derivation of a text by the rules of a grammar.

First, the positions at which the text of each rule may end are computed for each position at which it may begin, as the
intersection of the grammar with the linear automaton of the text (Bar-Hillel, Perles, Shamir 1961;
`grammar.intersection.ReachableStates`). Then the derivation is read off from the top, span by span. So left recursion
and ambiguity cost nothing special.

*Which derivation.* For the span of a rule, the first alternative that derives it. In a sequence, each part takes the
longest text with which the remaining parts still derive the remaining text, from left to right; a repetition is such a
sequence, in which rounds beyond the least number are not empty. Derivations in which a rule derives itself over the
same span are left out; there is always another one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Union

from ..base.work import spend_work
from ..grammar.intersection import START, ReachableStates
from ..grammar.nodes import Choice, Grammar, Mark, Node, Repeat, Rule, Sequence

__all__ = ["DerivedSpan", "find_derivation"]

OPERATION = "the captures of a text"
Open = frozenset[Hashable]
"""The rules around a goal that have its span: none of them may derive itself."""
NONE_OPEN: Open = frozenset()
LeafEnds = Callable[[str, int], Iterable[int]]
"""Returns where the texts of a leaf, given by the text of its Mark, may end if they begin at a position."""


@dataclass(frozen=True, slots=True)
class DerivedSpan:
    """A rule, by its name, or a leaf, which is a Mark, and the span that it derives."""

    symbol: Hashable
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NodeGoal:
    """Derive the text from `start` to `end` by a node."""

    node: Node
    start: int
    end: int
    open: Open


@dataclass(frozen=True, slots=True)
class PartsGoal:
    """Derive the text from `start` to `end` by the parts of a sequence from number k on. first: where part 0 begins."""

    node: Sequence
    k: int
    start: int
    end: int
    first: int
    open: Open


@dataclass(frozen=True, slots=True)
class RoundsGoal:
    """Derive the text from `start` to `end` by `low` to `high` rounds of a node. first: where the first one began."""

    node: Node
    low: int
    high: int | None
    start: int
    end: int
    first: int
    open: Open


Goal = Union[NodeGoal, PartsGoal, RoundsGoal]
Alternative = tuple["DerivedSpan | None", tuple[Goal, ...]]
"""What a step derives, and the goals that it leaves, the first one first."""


@dataclass(frozen=True, slots=True)
class GoalList:
    """A linked list of goals; its tail is shared."""

    goal: Goal
    after: GoalList | None


@dataclass(frozen=True, slots=True)
class SpanList:
    """A linked list of what was derived, the latest first."""

    span: DerivedSpan
    before: SpanList | None


def find_derivation(grammar: Grammar, leaf_ends: LeafEnds, length: int) -> list[DerivedSpan] | None:
    """Return the preferred derivation of a whole text.

    Parameters
    ----------
    grammar : Grammar
        Its leaves are Marks, and the empty text.
    leaf_ends : callable
        Called with the text of a Mark and a position.
    length : int
        The length of the text.

    Returns
    -------
    list of DerivedSpan, or None
        The rules and leaves in the order in which they begin, outer before inner ones; None if the text is not derived.
    """
    return DerivationSearch(grammar, leaf_ends, length).run(length)


class TextPositions:
    """The linear automaton of a text as transitions of leaves: a state is a position."""

    def __init__(self, leaf_ends: LeafEnds) -> None:
        self.leaf_ends = leaf_ends
        self.known: dict[tuple[str, int], dict[int, Node]] = {}

    def products(self, node: Node, p: int) -> dict[int, Node]:
        """Return the leaf by the positions at which its texts from p may end."""
        if not isinstance(node, Mark):
            return {p: node}  # the empty text
        key = node.text, p
        if key not in self.known:
            self.known[key] = dict.fromkeys(self.leaf_ends(node.text, p), node)
        return self.known[key]


class TextStates(ReachableStates):
    """The positions to which texts of a node lead from a position.

    Positions never decrease. So pairs at later positions, which those at earlier ones depend on, are evaluated first.
    """

    def solve(self) -> None:
        self.states[START, 0] = frozenset()
        self.pending.append((START, 0))
        heap: list[tuple[int, int, tuple[Hashable, int]]] = []  # negated position, order of insertion, pair
        queued: set[tuple[Hashable, int]] = set()
        count = 0
        while self.pending or heap:
            for pair in self.pending:
                if pair not in queued:
                    queued.add(pair)
                    count += 1
                    heappush(heap, (-pair[1], count, pair))
            self.pending.clear()
            self.current = name, position = heappop(heap)[2]
            queued.discard(self.current)
            found = self.visit(self.grammar.start if name is START else self.grammar.rules[name], position)
            if found - self.states[self.current]:
                self.states[self.current] |= found
                self.pending.extend(self.dependents[self.current])
        self.current, self.is_solved = None, True

    def after_rounds(self, node: Node, low: int, high: int | None, p: int) -> frozenset[int]:
        if high is not None or low > 1:
            return super().after_rounds(node, low, high, p)
        found = set(self.visit(node, p)) if low else {p}
        pending = list(found)
        while pending:
            after = self.visit(node, pending.pop()) - found
            found |= after
            pending.extend(after)
        return frozenset(found)


class DerivationSearch:
    """Depth-first search through the derivations of a text, in order of preference.

    Only derivations that are left out make it return to an earlier choice.
    """

    def __init__(self, grammar: Grammar, leaf_ends: LeafEnds, length: int) -> None:
        self.grammar = grammar
        most = (len(grammar.rules) + 1) * (length + 1)  # all pairs of a rule and a position
        self.reachable = TextStates(grammar, TextPositions(leaf_ends), most)
        self.reachable.solve()
        self.rounds: dict[tuple[int, int, int | None, int], frozenset[int]] = {}
        self.finishing: dict[tuple[int, int, int], frozenset[int]] = {}

    def run(self, length: int) -> list[DerivedSpan] | None:
        """Return the derivation of the text up to `length`."""
        if length not in self.reachable.visit(self.grammar.start, 0):
            return None
        start = GoalList(NodeGoal(self.grammar.start, 0, length, NONE_OPEN), None)
        todo: list[tuple[GoalList | None, SpanList | None]] = [(start, None)]
        while todo:
            goals, found = todo.pop()
            if goals is None:
                return list_spans(found)
            spend_work(1, OPERATION)
            for span, inner in reversed(self.step(goals.goal)):
                following = goals.after
                for goal in reversed(inner):
                    following = GoalList(goal, following)
                todo.append((following, found if span is None else SpanList(span, found)))
        return None

    def step(self, goal: Goal) -> list[Alternative]:
        """Return the ways to derive a goal, in order of preference."""
        if isinstance(goal, PartsGoal):
            return self.step_part(goal)
        if isinstance(goal, RoundsGoal):
            return self.step_round(goal)
        node, start, end, around = goal.node, goal.start, goal.end, goal.open
        if isinstance(node, Rule):
            if node.name in around:
                return []
            body = NodeGoal(self.grammar.rules[node.name], start, end, around | {node.name})
            return [(DerivedSpan(node.name, start, end), (body,))]
        if isinstance(node, Choice):
            fitting = [option for option in node.options if end in self.reachable.visit(option, start)]
            return [(None, (NodeGoal(option, start, end, around),)) for option in fitting]
        if isinstance(node, Sequence):
            return [(None, (PartsGoal(node, 0, start, end, start, around),))]
        if isinstance(node, Repeat):
            return [(None, (RoundsGoal(node.node, node.low, node.high, start, end, start, around),))]
        return [(DerivedSpan(node, start, end) if isinstance(node, Mark) else None, ())]

    def step_part(self, goal: PartsGoal) -> list[Alternative]:
        """Return the ways to continue a sequence: the longest text of the next part first."""
        node, k, start, end = goal.node, goal.k, goal.start, goal.end
        if k == len(node.parts):
            return [(None, ())]
        out: list[Alternative] = []
        for middle in sorted(self.reachable.visit(node.parts[k], start), reverse=True):
            if end in self.reachable.after_suffix(node, k + 1, middle):
                around = goal.open if (start, middle) == (goal.first, end) else NONE_OPEN
                part = NodeGoal(node.parts[k], start, middle, around)
                out.append((None, (part, PartsGoal(node, k + 1, middle, end, goal.first, goal.open))))
        return out

    def step_round(self, goal: RoundsGoal) -> list[Alternative]:
        """Return the ways to continue a repetition: another round, the longest first, then its end."""
        node, low, high, start, end = goal.node, goal.low, goal.high, goal.start, goal.end
        out: list[Alternative] = []
        if high != 0:
            fewer, fewer_high = max(low - 1, 0), None if high is None else high - 1
            for middle in sorted(self.reachable.visit(node, start), reverse=True):
                if (low or middle > start) and self.can_finish(goal, fewer, fewer_high, middle):
                    around = goal.open if (start, middle) == (goal.first, end) else NONE_OPEN
                    following = RoundsGoal(node, fewer, fewer_high, middle, end, goal.first, goal.open)
                    out.append((None, (NodeGoal(node, start, middle, around), following)))
        if not low and start == end:
            out.append((None, ()))
        return out

    def can_finish(self, goal: RoundsGoal, low: int, high: int | None, start: int) -> bool:
        """Return whether `low` to `high` rounds from a position can derive the remaining text of a goal."""
        if low or high is not None:
            key = id(goal.node), low, high, start
            if key not in self.rounds:
                self.rounds[key] = self.reachable.after_rounds(goal.node, low, high, start)
            return goal.end in self.rounds[key]
        ends = id(goal.node), goal.first, goal.end
        if ends not in self.finishing:
            self.finishing[ends] = self.find_finishing(goal)
        return start in self.finishing[ends]

    def find_finishing(self, goal: RoundsGoal) -> frozenset[int]:
        """Return the positions after some rounds from `first` from which further rounds lead to `end`."""
        begun: dict[int, list[int]] = {}  # by the end of a round
        pending, known = [goal.first], {goal.first}
        while pending:
            start = pending.pop()
            for middle in self.reachable.visit(goal.node, start):
                begun.setdefault(middle, []).append(start)
                if middle not in known and middle <= goal.end:
                    known.add(middle)
                    pending.append(middle)
        finishing, pending = {goal.end}, [goal.end]
        while pending:
            for start in begun.get(pending.pop(), ()):
                if start not in finishing:
                    finishing.add(start)
                    pending.append(start)
        return frozenset(finishing)


def list_spans(last: SpanList | None) -> list[DerivedSpan]:
    """Return a linked list of spans, the first one first."""
    out = []
    while last is not None:
        out.append(last.span)
        last = last.before
    return out[::-1]
