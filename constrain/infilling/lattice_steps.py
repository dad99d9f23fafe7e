"""The steps of a position lattice, each of which relates the states before it to those after it.

    BytesStep     known bytes, or the entry into and exit from a gap: at most one state after each
    TokenStep     one position of a token, known or unknown
    ClosureStep   unknown text: a graph of states and bytes, with cycles

A layer is a sorted array of *codes*. Within positions of tokens a code is twice the number of a state of the gap, or
one more than twice a state of the Constraint where the gap is over and its remaining positions are absent; elsewhere it
is the number of a state of the Constraint. A step maps flags over one layer to flags over the other: those that are
reached (`forward`), and those from which the end can be reached (`backward`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .constraint_states import Arcs
from .gap_states import GapStates

__all__ = ["BytesStep", "ClosureStep", "Codes", "Flags", "LatticeStep", "Piece", "TokenStep"]

Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]
Piece = int | bytes | None
"""What a step adds to a text: a token, bytes, or None for an absent position."""


class LatticeStep(Protocol):
    """A relation between the states of two layers."""

    def forward(self, flags: Flags) -> Flags:
        """Return which states after the step are reached from the flagged ones before it."""
        ...

    def backward(self, flags: Flags) -> Flags:
        """Return which states before the step lead to a flagged one after it."""
        ...

    def trace(self, index: int, alive: Flags) -> tuple[Piece, int]:
        """Return what leads from a state to an `alive` one after the step, of which there must be one, and its
        index.
        """
        ...


class _EdgeStep:
    """A step that consists of edges between two layers. source, target: int64 [edges], indices in the layers."""

    def __init__(self, before: Codes, after: Codes, source: Codes, target: Codes) -> None:
        self.before, self.after, self.source, self.target = before, after, source, target

    def forward(self, flags: Flags) -> Flags:
        out = np.zeros(len(self.after), np.bool_)
        out[self.target[flags[self.source]]] = True
        return out

    def backward(self, flags: Flags) -> Flags:
        out = np.zeros(len(self.before), np.bool_)
        out[self.source[flags[self.target]]] = True
        return out

    def follow(self, index: int, alive: Flags) -> int:
        """Return the first alive state that an edge from a state leads to."""
        targets = self.target[self.source == index]
        return int(targets[alive[targets]].min())


class BytesStep(_EdgeStep):
    """A step by known bytes, which may be none."""

    def __init__(self, before: Codes, after: Codes, source: Codes, target: Codes, data: bytes = b"") -> None:
        super().__init__(before, after, source, target)
        self.data = data

    def trace(self, index: int, alive: Flags) -> tuple[Piece, int]:
        return self.data, self.follow(index, alive)


class TokenStep(_EdgeStep):
    """One position. known: its token, or None. arcs: the transitions of the states before it, by their numbers."""

    def __init__(
        self,
        states: GapStates,
        layers: tuple[Codes, Codes],
        edges: tuple[Codes, Codes],
        arcs: Mapping[int, Arcs],
        known: int | None,
    ) -> None:
        super().__init__(*layers, *edges)
        self.states, self.arcs, self.known = states, arcs, known

    def restrict(self, token: int, live: Flags) -> None:
        """Make the position known. live: the states before it that still matter."""
        source = np.flatnonzero(live & (self.before & 1 == 0))
        targets = np.array([self.states.target(code >> 1, token) for code in self.before[source].tolist()], np.int64)
        source, wanted = source[targets >= 0], 2 * targets[targets >= 0]
        index = np.minimum(np.searchsorted(self.after, wanted), max(len(self.after) - 1, 0))
        found = self.after[index] == wanted if len(wanted) else np.zeros(0, np.bool_)
        self.source, self.target, self.known = source[found], index[found], token

    def allow_tokens(self, live: Flags, alive: Flags, size: int) -> NDArray[np.int32]:
        """Return the mask of the tokens that lead from a live state to an alive one: int32 [ceil(size / 32)]."""
        bits = np.zeros(32 * -(-size // 32), np.bool_)
        if self.known is not None:
            bits[self.known] = bool(self.forward(live)[alive].any())
        else:
            flags = np.zeros(self.states.code_limit(), np.bool_)
            flags[self.after[alive]] = True
            for code in self.before[live].tolist():
                if not code & 1:
                    _add_tokens(bits, self.arcs[code >> 1], flags)
        return np.packbits(bits, bitorder="little").view(np.int32)

    def trace(self, index: int, alive: Flags) -> tuple[Piece, int]:
        after = self.follow(index, alive)
        if self.after[after] & 1:
            return None, after
        if self.known is not None:
            return self.known, after
        arcs = self.arcs[int(self.before[index]) >> 1]
        wanted = np.flatnonzero(arcs.successors == self.after[after] >> 1)[0]
        return int(arcs.labels[arcs.which == wanted][0]), after


def _add_tokens(bits: Flags, arcs: Arcs, flags: Flags) -> None:
    """Set the bits of the labels that lead to flagged states."""
    wanted = flags[2 * arcs.successors]
    if wanted.all():
        bits[arcs.labels] = True
    elif wanted.any():
        bits[arcs.labels[wanted[arcs.which]]] = True


class ClosureStep:
    """Unknown text. nodes: states of the gap; edges between nodes, each by a byte; entries and exits as edges.

    entry : int64 [len(before)], the node of each state before the step. source, target : int64 [edges], nodes.
    exit : int64 [nodes], the index after the step if the text may end at a node, else -1. expanded : the nodes whose
    edges were followed; others are left out of a narrowed lattice.
    """

    def __init__(
        self,
        states: GapStates,
        layers: tuple[Codes, Codes],
        nodes: list[int],
        entry: Codes,
        exits: Codes,
        expanded: set[int],
    ) -> None:
        self.states, self.before, self.after = states, *layers
        self.nodes, self.entry, self.exit = nodes, entry, exits
        numbers = {node: index for index, node in enumerate(nodes)}
        edges = [
            (index, numbers[one])
            for index, node in enumerate(nodes)
            if node in expanded
            for one in states.list_arcs(node).successors.tolist()
            if one in numbers
        ]
        self.numbers, self.expanded = numbers, expanded
        self.source, self.target = np.array(edges, np.int64).reshape(-1, 2).T

    def forward(self, flags: Flags) -> Flags:
        reached = np.zeros(len(self.nodes), np.bool_)
        reached[self.entry[flags]] = True
        reached = _close(reached, self.source, self.target)
        out = np.zeros(len(self.after), np.bool_)
        out[self.exit[reached & (self.exit >= 0)]] = True
        return out

    def backward(self, flags: Flags) -> Flags:
        leading: Flags = self._leading(flags)[self.entry]
        return leading

    def _leading(self, flags: Flags) -> Flags:
        """Return which nodes lead to a flagged state after the step."""
        ending = self.exit >= 0
        ending[ending] = flags[self.exit[ending]]
        return _close(ending, self.target, self.source)

    def trace(self, index: int, alive: Flags) -> tuple[Piece, int]:
        """Return a shortest text, found breadth first."""
        start, leading = int(self.entry[index]), self._leading(alive)
        parents: dict[int, tuple[int, int]] = {start: (-1, 0)}
        todo = deque([start])
        while todo:
            node = todo.popleft()
            if self.exit[node] >= 0 and alive[self.exit[node]]:
                return _spell_path(node, parents), int(self.exit[node])
            if self.nodes[node] not in self.expanded:
                continue
            arcs = self.states.list_arcs(self.nodes[node])
            for label, which in zip(arcs.labels.tolist(), arcs.which.tolist()):
                after = self.numbers.get(int(arcs.successors[which]), -1)
                if after >= 0 and leading[after] and after not in parents:
                    parents[after] = (node, label)
                    todo.append(after)
        raise AssertionError("no alive state can be reached")


def _close(flags: Flags, source: Codes, target: Codes) -> Flags:
    """Return the flags of all nodes that edges reach from the flagged ones."""
    while True:
        grown = flags.copy()
        grown[target[flags[source]]] = True
        if grown.sum() == flags.sum():
            return flags
        flags = grown


def _spell_path(node: int, parents: dict[int, tuple[int, int]]) -> bytes:
    """Return the labels on the path from the root to a node."""
    labels: list[int] = []
    while parents[node][0] >= 0:
        node, label = parents[node]
        labels.append(label)
    return bytes(reversed(labels))
