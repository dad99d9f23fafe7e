"""Construction of a position lattice: layer by layer, forward from the start.

Each layer holds the states that some text of the spans so far leads to. The number of states is bounded: beyond the
bound the construction is either refused with LimitError, or *narrowed*, which keeps the states from which the text is
completed soonest (a beam). A narrowed lattice has only true completions, but may lack some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from ..base.errors import LimitError, UnsatisfiableError
from .constraint_states import START, Arcs, ConstraintStates
from .gap_states import GapStates
from .gaps import KnownText, Segment, TextGap, TokenPositions
from .lattice_steps import BytesStep, ClosureStep, Codes, LatticeStep, Piece, TokenStep

__all__ = ["LEAST_WIDTH", "STATES_PER_PLACE", "LatticeBuilder", "LatticePath"]

NODES_PER_STATE, FOUND_PER_STATE = 32, 2
"""Most states over all positions, and most states that are found but not yet followed, as multiples of `most_states`:
these are cheaper."""
LEAST_WIDTH, STATES_PER_PLACE = 16, 8
"""Least states of a narrowed layer, and states that are looked at for each that is kept."""
SHARE, MOST_BRANCHING = 4, 8
"""States of one cost that a narrowed layer takes before it turns to the next cost, and states of a layer that branch
into nearly as many as there are tokens and are followed."""
NO_TOKENS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class LatticePath:
    """A completion in a lattice. pieces: what each step adds to the text. codes: the state in each layer."""

    pieces: list[Piece]
    codes: list[int]


class LatticeBuilder:
    """Builds the layers and steps of a lattice.

    Parameters
    ----------
    states : ConstraintStates
    most_states : int
        Bound of the number of distinct states.
    width : int or None
        Most states of a layer, where the lattice is to be narrowed; None to refuse more than `most_states`.
    kept : LatticePath, optional
        A completion in an earlier lattice of the same spans, which narrowing keeps.
    gaps : sequence of GapStates
        The states of each gap in that lattice, which give the codes their meaning.
    preferred : sequence of int64 [k]
        For each position of a token, tokens that a narrowed lattice should try there.
    """

    def __init__(
        self,
        states: ConstraintStates,
        most_states: int,
        width: int | None,
        kept: LatticePath | None = None,
        gaps: Sequence[GapStates] = (),
        preferred: Sequence[NDArray[np.int64]] = (),
    ) -> None:
        self.states, self.most_states, self.width = states, most_states, width
        self.kept, self.known_gaps, self.preferred = kept, gaps, preferred
        self.positions = 0
        self.layers: list[Codes] = [np.array([START], np.int64)]
        self.steps: list[LatticeStep] = []
        self.is_exact = True
        self.nodes = 0
        self.expanded: dict[int, set[int]] = {}  # by gap: the states that were followed
        self.found: dict[int, set[int]] = {}  # by gap: the states to which these lead
        self.gaps: list[GapStates] = []

    def add(self, segment: Segment) -> None:
        """Add the steps of one segment."""
        if isinstance(segment, KnownText):
            self._add_map(lambda code: self.states.step_bytes(code, segment.data), segment.data)
        elif isinstance(segment, TextGap):
            self._add_closure(self._gap_states(segment))
        else:
            self._add_positions(segment)

    def _gap_states(self, segment: TokenPositions | TextGap) -> GapStates:
        """Return the states of a gap; its own constraint is compiled for the same vocabulary."""
        if len(self.gaps) < len(self.known_gaps):
            self.gaps.append(self.known_gaps[len(self.gaps)])
            return self.gaps[-1]
        inner = None
        if segment.form is not None:
            constraint = self.states.constraint
            try:
                inner = ConstraintStates.of(segment.form.compile(constraint.vocabulary, limits=constraint.limits))
            except UnsatisfiableError:  # Nothing fits into the gap.
                self._add_map(lambda code: -1)
        if isinstance(segment, TextGap):
            gap = GapStates(self.states, inner, "bytes")
        else:
            gap = GapStates(self.states, inner, "tokens", segment.end_tokens)
        self.gaps.append(gap)
        return gap

    def _add_positions(self, segment: TokenPositions) -> None:
        """Add the steps of positions of tokens, with the entry and the exit of the gap around them."""
        gap, count = self._gap_states(segment), len(segment.known)
        self._add_map(lambda code: 2 * gap.enter(code))
        for position, known in enumerate(segment.known):
            self._add_token(gap, known, may_stop=segment.low <= position < count)
        self._add_map(lambda code: code >> 1 if code & 1 else gap.leave(code >> 1))

    def _add_map(self, step: Callable[[int], int], data: bytes = b"") -> None:
        """Add a step that leads from each code to at most one."""
        before = self.layers[-1]
        targets = np.array([step(code) for code in before.tolist()], np.int64)
        source = np.flatnonzero(targets >= 0)
        after, target = np.unique(targets[source], return_inverse=True)
        self._append(BytesStep(before, after, source, target.reshape(-1), data), after)

    def _add_token(self, gap: GapStates, known: int | None, may_stop: bool) -> None:
        """Add the step of one position. may_stop: whether the gap may be over before it."""
        before, self.positions = self.layers[-1], self.positions + 1
        plain, over = np.flatnonzero(before & 1 == 0), np.flatnonzero(before & 1)
        numbers: list[int] = (before[plain] >> 1).tolist()
        sources, targets, arcs = [over], [before[over]], dict[int, Arcs]()
        if known is None:
            arcs = self._expand(gap, numbers)
            counts = np.array([len(arcs[one].successors) if one in arcs else 0 for one in numbers], np.int64)
            sources.append(np.repeat(plain, counts))
            targets.extend(2 * one.successors.astype(np.int64) for one in arcs.values())
        else:
            self._add_edges(sources, targets, plain, [2 * gap.target(one, known) for one in numbers])
        if may_stop:
            left = [gap.leave(one) for one in numbers]
            self._add_edges(sources, targets, plain, [2 * one + 1 if one >= 0 else -1 for one in left])
        source, codes = np.concatenate(sources), np.concatenate(targets)
        flags = np.zeros(gap.code_limit(), np.bool_)
        flags[codes] = True
        after = self._narrow(gap, np.flatnonzero(flags))
        index = np.full(len(flags), -1, np.int64)
        index[after] = np.arange(len(after))
        target = index[codes]
        edges = source[target >= 0], target[target >= 0]
        self._append(TokenStep(gap, (before, after), edges, arcs, known), after)

    def _add_edges(self, sources: list[Codes], targets: list[Codes], plain: Codes, codes: list[int]) -> None:
        """Add the edges from `plain` to the codes that are not negative."""
        wanted = np.array(codes, np.int64)
        sources.append(plain[wanted >= 0])
        targets.append(wanted[wanted >= 0])

    def _expand(self, gap: GapStates, numbers: list[int]) -> dict[int, Arcs]:
        """Return the transitions of the states of a layer, in their order.

        Raise LimitError if there are too many states and the lattice is not narrowed.
        """
        if self.width is not None:
            return self._expand_some(gap, numbers)
        arcs, key = dict[int, Arcs](), id(gap.outer if gap.is_shared else gap)
        expanded, found = self.expanded.setdefault(key, set()), self.found.setdefault(key, set())
        self.nodes += len(numbers)
        for number in numbers:
            arcs[number] = gap.list_arcs(number)
            if number not in expanded:
                expanded.add(number)
                found.update(arcs[number].successors.tolist())
                if (
                    sum(map(len, self.expanded.values())) > self.most_states
                    or sum(map(len, self.found.values())) > FOUND_PER_STATE * self.most_states
                ):
                    raise self._too_many()
        if self.nodes > NODES_PER_STATE * self.most_states:
            raise self._too_many()
        return arcs

    def _expand_some(self, gap: GapStates, numbers: list[int]) -> dict[int, Arcs]:
        """Return transitions of the states of a layer of a narrowed lattice, in their order.

        Of states that branch into nearly as many as there are tokens, only some are followed, by some tokens.
        """
        step, position = len(self.steps), self.positions - 1
        kept, piece = (-1, None) if self.kept is None else (self.kept.codes[step], self.kept.pieces[step])
        preferred = self.preferred[position] if position < len(self.preferred) else NO_TOKENS
        arcs, branching = dict[int, Arcs](), 0
        for number in sorted(numbers, key=lambda one: (2 * one != kept, gap.cost(one))):
            if not gap.is_branching(number):
                arcs[number] = gap.list_arcs(number)
                continue
            self.is_exact = False
            branching += 1
            if branching <= MOST_BRANCHING:
                own = piece if 2 * number == kept else None
                wanted = preferred if own is None else np.append(preferred, own)
                arcs[number] = gap.sample_arcs(number, wanted)
        return {number: arcs[number] for number in numbers if number in arcs}

    def _too_many(self) -> LimitError:
        return LimitError(
            f"The spans lead to more than most_states = {self.most_states:,} states of the constraint.",
            hint='Make the gaps shorter or the constraint narrower, raise most_states, or give beyond="narrow".',
        )

    def _narrow(self, gap: GapStates, codes: Codes) -> Codes:
        """Return the codes of a layer that are kept: of each cost the same share, lower costs first."""
        if self.width is None or len(codes) <= self.width:
            return codes
        self.is_exact = False
        kept = -1 if self.kept is None else self.kept.codes[len(self.layers)]
        ranks, seen = list[tuple[int, int]](), dict[int, int]()
        for code in codes.tolist():
            cost = self.states.cost(code >> 1) if code & 1 else gap.cost(code >> 1)
            seen[cost] = seen.get(cost, -1) + 1
            ranks.append((-1 if code == kept else seen[cost] // SHARE, cost))
        order = sorted(range(len(codes)), key=ranks.__getitem__)
        return np.sort(codes[order[: self.width]])

    def _add_closure(self, gap: GapStates) -> None:
        """Add the step of an unknown text: all states that bytes lead to, those near the end of the text first."""
        before = self.layers[-1]
        nodes = [gap.enter(code) for code in before.tolist()]
        known = set(nodes)
        entry = np.arange(len(nodes), dtype=np.int64)
        todo: list[tuple[int, int]] = []
        for node in nodes:
            heappush(todo, (self._priority(gap, node), node))
        expanded = 0
        while todo:
            if expanded >= self.most_states:
                if self.width is None:
                    raise self._too_many()
                self.is_exact = False
                break
            expanded += 1
            for node in gap.list_arcs(heappop(todo)[1]).successors.tolist():
                if node not in known:
                    known.add(node)
                    nodes.append(node)
                    heappush(todo, (self._priority(gap, node), node))
        expandable = known.difference(node for _, node in todo)
        exits = np.array([gap.leave(node) for node in nodes], np.int64)
        after = np.unique(exits[exits >= 0])
        index = np.where(exits >= 0, np.searchsorted(after, exits), -1)
        self._append(ClosureStep(gap, (before, after), nodes, entry, index, expandable), after)

    def _priority(self, gap: GapStates, node: int) -> int:
        """Return the rank of a node in the search; only a narrowed one depends on it."""
        return 0 if self.width is None else gap.cost(node)

    def _append(self, step: LatticeStep, after: Codes) -> None:
        self.steps.append(step)
        self.layers.append(after)
