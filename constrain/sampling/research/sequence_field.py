"""Conditional random fields whose label sequences satisfy a constraint (RegCCRF: Papay, Klinger & Padó, ICLR 2022).

A sequence y of T labels has the weight exp(score(y)) if it is in L, and 0 otherwise, with potentials that may be any
numbers and depend on the position:

    score(y) = sum over t of emissions[t, y_t]  +  sum over t of transitions[t, y_t, y_(t+1)]
    P(y) = exp(score(y)) [y in L] / Z

The labels are the tokens of a vocabulary, and L is any Constraint over it: regular or not, since only what T labels
reach is explored. Its positions are interned sets of configurations, a deterministic automaton, so every sequence
has one path and counts once. The automaton of a union is determinised as it is reached and pruned to what can still end
in time: it is no product of the automata of its parts. One forward and one backward pass give log Z, the marginals,
which are the gradient of log Z, the best sequence and samples; `integrations.torch_fields` is log Z for autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...base.cached_property import cached_property
from ...base.errors import ArgumentError, LimitError
from .segment_sums import max_segments, sum_segments
from .token_automaton import TokenAutomaton

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...engine.constraint import Constraint

__all__ = ["FieldMarginals", "LabelPaths", "SequenceField"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Combine = Callable[[Floats, Ints], Floats]
"""Combines the log-values of each segment."""

MOST_STATES = 100_000


@dataclass(frozen=True)
class FieldMarginals:
    """log_z: nats. labels: float64 [T, V], the probability of each label at each place. pairs: float64 [T - 1, V, V],
    of each pair of adjacent labels. They are the gradient of log_z by emissions and transitions.
    """

    log_z: float
    labels: Floats
    pairs: Floats


@dataclass(frozen=True)
class LabelPaths:
    """The sequences of one length that a constraint accepts, as a graph whose states know the last label.

    size: labels of the vocabulary. label: int64 [S], the last label of a state. source, target: int64 [E], the states
    of each edge, ordered by target; the label of an edge is that of its target. first: int64 [E1], the states after
    the first label. accepting: bool [S]. live: bool [T, S], whether an accepted sequence passes the state at this
    place.
    """

    size: int
    label: Ints
    source: Ints
    target: Ints
    first: Ints
    accepting: NDArray[np.bool_]
    live: NDArray[np.bool_]

    @cached_property
    def into(self) -> Ints:
        """Where the edges into each state begin: int64 [S + 1]."""
        return np.searchsorted(self.target, np.arange(len(self.label) + 1))

    @cached_property
    def by_source(self) -> tuple[Ints, Ints]:
        """The edges in the order of their sources, and where those of each state begin: int64 [E], int64 [S + 1]."""
        order = np.argsort(self.source, kind="stable")
        return order, np.searchsorted(self.source[order], np.arange(len(self.label) + 1))


class SequenceField:
    """The label sequences of a constraint, with what is computed about them under given potentials.

    Parameters
    ----------
    constraint : Constraint
        Over a vocabulary whose tokens are the labels; end tokens are no labels.
    most_states : int
        Most states of the graph of one length.

    Every method takes `emissions`, float [T, V], and `transitions`, float [V, V] or [T - 1, V, V] or None: log
    potentials, unnormalised; -inf excludes. Raises ArgumentError for other shapes, NaN and +inf, and LimitError if the
    constraint accepts no sequence of T labels, or all of them are excluded.
    """

    def __init__(self, constraint: Constraint, *, most_states: int = MOST_STATES) -> None:
        self.constraint, self.most_states = constraint, most_states
        self.automaton = TokenAutomaton(constraint, most_states)
        self._paths: dict[int, LabelPaths] = {}

    def paths(self, length: int) -> LabelPaths:
        """Return the graph of the accepted sequences of `length` labels; it is kept."""
        if length not in self._paths:
            self._paths[length] = self._explore(length)
        return self._paths[length]

    def accepts(self, labels: Sequence[int]) -> bool:
        """Return whether the constraint accepts a sequence of labels."""
        matcher, ends = self.constraint.matcher(), self.constraint.vocabulary.eos_ids
        for label in labels:
            if label in ends or not 0 <= label < self.constraint.vocabulary.size or not matcher.allows(label):
                return False
            matcher.advance(label)
        return matcher.is_complete

    def score(self, labels: Sequence[int], emissions: ArrayLike, transitions: ArrayLike | None = None) -> float:
        """Return the score of a sequence of T labels; -inf if the constraint does not accept it."""
        emitted, moved = self._read(emissions, transitions)
        if len(labels) != len(emitted):
            raise ArgumentError(f"there are {len(labels)} labels for {len(emitted)} rows of emissions")
        if not self.accepts(labels):
            return -np.inf
        chosen = np.asarray(labels, np.int64)
        steps = np.arange(len(chosen) - 1)
        return float(emitted[np.arange(len(chosen)), chosen].sum() + moved[steps, chosen[:-1], chosen[1:]].sum())

    def log_z(self, emissions: ArrayLike, transitions: ArrayLike | None = None) -> float:
        """Return the log of the sum of exp(score) over all accepted sequences of T labels."""
        emitted, moved = self._read(emissions, transitions)
        paths = self.paths(len(emitted))
        return self._total(paths, self._forward(paths, emitted, moved))

    def marginals(self, emissions: ArrayLike, transitions: ArrayLike | None = None) -> FieldMarginals:
        """Return log Z and the probabilities of labels and of pairs of adjacent labels."""
        emitted, moved = self._read(emissions, transitions)
        paths = self.paths(len(emitted))
        forward = self._forward(paths, emitted, moved)
        log_z, backward = self._total(paths, forward), self._backward(paths, emitted, moved)
        labels, pairs = np.zeros_like(emitted), np.zeros((len(emitted) - 1, *moved.shape[1:]))
        for t, (before, after) in enumerate(zip(forward, backward)):
            np.add.at(labels[t], paths.label, np.exp(before + after - log_z))
        last, label = paths.label[paths.source], paths.label[paths.target]
        for t in range(len(emitted) - 1):
            edges = forward[t][paths.source] + moved[t, last, label] + emitted[t + 1, label]
            np.add.at(pairs[t], (last, label), np.exp(edges + backward[t + 1][paths.target] - log_z))
        return FieldMarginals(log_z, labels, pairs)

    def best(self, emissions: ArrayLike, transitions: ArrayLike | None = None) -> tuple[list[int], float]:
        """Return the accepted sequence of the largest score, and that score (Viterbi)."""
        emitted, moved = self._read(emissions, transitions)
        paths = self.paths(len(emitted))
        values = self._forward(paths, emitted, moved, max_segments)
        ended = np.where(paths.accepting, values[-1], -np.inf)
        state, total = int(ended.argmax()), float(ended.max())
        if total == -np.inf:
            raise self._no_sequence(len(emitted))
        labels = [int(paths.label[state])]
        for t in range(len(emitted) - 1, 0, -1):
            edges = np.arange(paths.into[state], paths.into[state + 1])
            sources = paths.source[edges]
            state = int(sources[(values[t - 1][sources] + moved[t - 1, paths.label[sources], labels[-1]]).argmax()])
            labels.append(int(paths.label[state]))
        return labels[::-1], total

    def sample(
        self, n: int, rng: np.random.Generator, emissions: ArrayLike, transitions: ArrayLike | None = None
    ) -> list[list[int]]:
        """Return n independent samples from P."""
        emitted, moved = self._read(emissions, transitions)
        paths = self.paths(len(emitted))
        forward = self._forward(paths, emitted, moved)
        self._total(paths, forward)
        ended = np.where(paths.accepting, forward[-1], -np.inf)
        out = []
        for _ in range(n):
            state = _draw(ended, rng)
            labels = [int(paths.label[state])]
            for t in range(len(emitted) - 1, 0, -1):
                sources = paths.source[paths.into[state] : paths.into[state + 1]]
                logs = forward[t - 1][sources] + moved[t - 1, paths.label[sources], labels[-1]]
                state = int(sources[_draw(logs, rng)])
                labels.append(int(paths.label[state]))
            out.append(labels[::-1])
        return out

    # ---- passes ------------------------------------------------------------------------------------------------

    def _forward(
        self,
        paths: LabelPaths,
        emitted: Floats,
        moved: Floats,
        combine: Callable[[Floats, Ints], Floats] = sum_segments,
    ) -> Floats:
        """Return the sums (or maxima) of exp(score) of all beginnings that end in each state, as logs: [T, S]."""
        out = np.full((len(emitted), len(paths.label)), -np.inf)
        out[0, paths.first] = emitted[0, paths.label[paths.first]]
        out[0][~paths.live[0]] = -np.inf
        last, label = paths.label[paths.source], paths.label[paths.target]
        for t in range(1, len(emitted)):
            out[t] = combine(out[t - 1][paths.source] + moved[t - 1, last, label], paths.into)
            out[t] += emitted[t, paths.label]
            out[t][~paths.live[t]] = -np.inf
        return out

    def _backward(self, paths: LabelPaths, emitted: Floats, moved: Floats) -> Floats:
        """Return the sums of exp(score) of all continuations of each state, as logs: [T, S]."""
        out = np.full((len(emitted), len(paths.label)), -np.inf)
        out[-1, paths.accepting] = 0.0
        order, starts = paths.by_source
        source, target = paths.source[order], paths.target[order]
        last, label = paths.label[source], paths.label[target]
        for t in range(len(emitted) - 2, -1, -1):
            out[t] = sum_segments(out[t + 1][target] + moved[t, last, label] + emitted[t + 1, label], starts)
        return out

    def _total(self, paths: LabelPaths, forward: Floats) -> float:
        total = float(np.logaddexp.reduce(np.where(paths.accepting, forward[-1], -np.inf), initial=-np.inf))
        if total == -np.inf:
            raise self._no_sequence(len(forward))
        return total

    def _no_sequence(self, length: int) -> LimitError:
        return LimitError(
            f"no sequence of {length} labels has any weight",
            hint="The constraint accepts none, or potentials of -inf exclude all of them.",
        )

    # ---- construction ------------------------------------------------------------------------------------------

    def _explore(self, length: int) -> LabelPaths:
        """Build the graph, without states from which no sequence of this length can be accepted."""
        automaton, numbers = self.automaton, dict[tuple[int, int], int]()
        pairs: list[tuple[int, int]] = []

        def number(state: int, label: int) -> int:
            if (state, label) not in numbers:
                if len(pairs) >= self.most_states:
                    raise LimitError(
                        f"the constraint has more than {self.most_states:,} states within {length} labels",
                        hint="Raise most_states, or shorten the sequences.",
                    )
                numbers[state, label] = len(pairs)
                pairs.append((state, label))
            return numbers[state, label]

        first = [number(after, label) for label, after in _list_arcs(automaton, 0)]
        layers, following = [sorted(first)], dict[int, list[int]]()
        for _ in range(length - 1):
            for state in layers[-1]:
                if state not in following:
                    arcs = _list_arcs(automaton, pairs[state][0])
                    following[state] = [number(after, label) for label, after in arcs]
            layers.append(sorted({after for state in layers[-1] for after in following[state]}))
        edges = sorted(((state, one) for state, after in following.items() for one in after), key=lambda edge: edge[1])
        source, target = np.array(edges, np.int64).reshape(-1, 2).T
        accepting = np.array([automaton.accepting[state] for state, _ in pairs], np.bool_)
        live = np.zeros((length, len(pairs)), np.bool_)
        useful = accepting
        for t in range(length - 1, -1, -1):
            live[t, layers[t]] = useful[layers[t]]
            useful = np.zeros(len(pairs), np.bool_)
            useful[source[live[t][target]]] = True
        label = np.array([label for _, label in pairs], np.int64)
        size = self.constraint.vocabulary.size
        return LabelPaths(size, label, source, target, np.array(first, np.int64), accepting, live)

    def _read(self, emissions: ArrayLike, transitions: ArrayLike | None) -> tuple[Floats, Floats]:
        """Return potentials as float64 [T, V] and [T - 1, V, V]."""
        size, emitted = self.constraint.vocabulary.size, np.asarray(emissions, np.float64)
        if emitted.ndim != 2 or emitted.shape[1] != size or not len(emitted):
            raise ArgumentError(f"emissions are {list(emitted.shape)}: give [T, {size}], with T of 1 or more")
        steps = len(emitted) - 1
        moved = np.zeros((size, size)) if transitions is None else np.asarray(transitions, np.float64)
        if moved.shape not in ((size, size), (steps, size, size)):
            raise ArgumentError(f"transitions are {list(moved.shape)}: give {[size, size]} or {[steps, size, size]}")
        for name, values in (("emissions", emitted), ("transitions", moved)):
            if np.isnan(values).any() or (values == np.inf).any():
                raise ArgumentError(f"{name} contain NaN or +inf: give numbers, or -inf for what is excluded")
        return emitted, np.broadcast_to(moved, (steps, size, size)) if moved.ndim == 2 else moved


def _list_arcs(automaton: TokenAutomaton, state: int) -> list[tuple[int, int]]:
    tokens, targets = automaton.arcs(state)
    return list(zip(tokens.tolist(), targets.tolist()))


def _draw(logs: Floats, rng: np.random.Generator) -> int:
    """Draw an index in proportion to exp(logs)."""
    cumulative = np.cumsum(np.exp(logs - logs.max()))
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
