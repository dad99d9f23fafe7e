"""Exploration of the product of a Markov model and a Constraint: which pairs of states there are, and their edges.

`explore_all` finds everything that a number of tokens reaches. `explore_likely` finds what masking under the model
reaches, whose probabilities are renormalised over the allowed tokens at every step, as nothing is known yet about what
a prefix loses later:

    a pair is expanded     if masking visits it `threshold` times or more per text
    an edge is kept        if the same holds of all the tokens that lead from its pair to one other

Tokens of less than TAIL times that much are not followed at all. Visits are counted by the number of tokens, so a pair
is expanded anew whenever they have doubled. What is left out is counted: `dropped` is the probability under the model
of the allowed tokens of a state that no edge has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...base.errors import LimitError
from ..core.language_model import check_distribution
from ..core.results import log_sum
from .token_automaton import TokenAutomaton

__all__ = ["TAIL", "Markov", "ProductExplorer"]

MOST_ARCS = 20_000_000
"""Maximum number of arcs of a product, 12 bytes each."""

TAIL = 0.01
"""Share of the least probability of an edge that a single token must have to be followed."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Markov(Protocol):
    """A LanguageModel with finitely many states, such as `sampling.NGram`.

    logs: float64 [states, V], natural logs, rows normalised; start: the state before any token.
    """

    logs: Floats

    @property
    def start(self) -> int: ...
    def follow(self, state: int, tokens: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """Return the state after each of the tokens: int32 [k]."""
        ...

    def state(self, tokens: Sequence[int]) -> int:
        """Return the state after a whole text."""
        ...

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.floating[Any]]: ...


class Edge(NamedTuple):
    """The tokens (int64 [k]) that lead from one pair to another, their log-probabilities, and the log of their sum."""

    target: int
    tokens: Ints
    logs: Floats
    weight: float


class ProductExplorer:
    """Finds pairs of a state of the model and one of the automaton, and the edges between them."""

    def __init__(self, lm: Markov, automaton: TokenAutomaton, most_states: int) -> None:
        self.lm, self.automaton, self.most_states = lm, automaton, most_states
        self.numbers: dict[tuple[int, int], int] = {}
        self.pairs: list[tuple[int, int]] = []
        self.edges: dict[int, list[Edge]] = {}
        self.dropped: dict[int, float] = {}
        self.end_logs: dict[int, float] = {}
        self._masses: dict[int, float] = {}
        self.arcs = 0
        self.ends = list(automaton.constraint.vocabulary.eos_ids)
        self._number((lm.start, 0))

    def explore_all(self, max_tokens: int) -> None:
        """Expand every pair that fewer than max_tokens tokens reach, breadth first."""
        done = 0
        for _ in range(max_tokens - 1):
            layer = len(self.pairs)
            if done == layer:
                break
            for pair in range(done, layer):
                self._expand(pair, -np.inf)
                del self.dropped[pair]  # tokens of probability 0
            done = layer

    def explore_likely(self, max_tokens: int, threshold: float) -> None:
        """Expand the pairs, and keep the edges, that masking takes this often per text."""
        visits, known, layer = dict[int, float](), dict[int, float](), {0: 1.0}
        for _ in range(max_tokens - 1):
            after: dict[int, float] = {}
            for pair, mass in layer.items():
                visits[pair] = visits.get(pair, 0.0) + mass
                if visits[pair] >= max(threshold, 2 * known.get(pair, 0.0)):
                    known[pair] = visits[pair]
                    self._expand(pair, self._allowed_mass(pair) + float(np.log(threshold / visits[pair])))
                for edge in self.edges.get(pair, ()):
                    share = mass * float(np.exp(edge.weight - self._allowed_mass(pair)))
                    after[edge.target] = after.get(edge.target, 0.0) + share
            layer = after
            if not layer:
                break
        for pair, (model, _) in enumerate(self.pairs):
            if pair not in self.edges:  # anything may follow but the end, which the product has
                self.dropped[pair] = float(np.log1p(-min(np.exp(self.end_logs[model]), 1.0)))

    def _allowed_mass(self, pair: int) -> float:
        """Return the log of the mass that the mask leaves."""
        if pair not in self._masses:
            model, state = self.pairs[pair]
            logs = self.lm.logs[model][self.automaton.allowed(state)]
            ends = self.end_logs[model] if self.automaton.accepting[state] else -np.inf
            self._masses[pair] = log_sum(np.append(logs, ends))
        return self._masses[pair]

    def to_arrays(self) -> dict[str, Any]:
        """Return the arrays of a `markov_exact.Product`, by name."""
        edges = [self.edges.get(pair, []) for pair in range(len(self.pairs))]
        flat = [edge for some in edges for edge in some]
        accepting = np.array([self.automaton.accepting[state] for _, state in self.pairs])
        return {
            "pairs": np.array(self.pairs, np.int64),
            "end": np.where(accepting, np.array([self.end_logs[model] for model, _ in self.pairs]), -np.inf),
            "first_edge": count_up([len(some) for some in edges]),
            "target": np.array([edge.target for edge in flat], np.int64),
            "weight": np.array([edge.weight for edge in flat], np.float64),
            "first_arc": count_up([len(edge.tokens) for edge in flat]),
            "token": np.concatenate([np.empty(0, np.int64), *(edge.tokens for edge in flat)]),
            "arc": np.concatenate([np.empty(0), *(edge.logs for edge in flat)]),
            "dropped": np.array([self.dropped.get(pair, -np.inf) for pair in range(len(self.pairs))]),
        }

    def _number(self, pair: tuple[int, int]) -> int:
        number = self.numbers.get(pair)
        if number is None:
            if len(self.pairs) >= self.most_states:
                raise LimitError(
                    f"the product of model and constraint has more than {self.most_states:,} states",
                    hint="Lower max_tokens, raise most_states or threshold, use fewer contexts, or another sampler.",
                )
            if pair[0] not in self.end_logs:
                check_distribution(self.lm.logs[pair[0]])
                self.end_logs[pair[0]] = log_sum(self.lm.logs[pair[0], self.ends])
            number = self.numbers[pair] = len(self.pairs)
            self.pairs.append(pair)
        return number

    def _expand(self, pair: int, least: float) -> None:
        """Find the edges of a pair that have a log-probability of at least `least`."""
        model, state = self.pairs[pair]
        row, allowed = self.lm.logs[model], self.automaton.allowed(state)
        followed = (row[allowed] > -np.inf) & (row[allowed] >= least + np.log(TAIL))
        tokens = allowed[followed]
        self.arcs += len(tokens)
        if self.arcs > MOST_ARCS:
            raise LimitError(
                f"the product of model and constraint has more than {MOST_ARCS:,} arcs", hint="Use fewer contexts."
            )
        sets = self.automaton.sets_after(state, tokens)
        codes = np.stack([self.lm.follow(model, tokens).astype(np.int64), sets])
        groups, inverse = np.unique(codes, axis=1, return_inverse=True)
        order = np.argsort(inverse.ravel(), kind="stable")
        bounds = np.searchsorted(inverse.ravel()[order], np.arange(groups.shape[1] + 1)).tolist()
        tokens, sets = tokens[order], sets[order]
        logs, edges, lost = row[tokens], list[Edge](), [row[allowed[~followed]]]
        for (then, _), a, b in zip(groups.T.tolist(), bounds, bounds[1:]):
            weight = log_sum(logs[a:b])
            if weight >= least:
                after = int(self.automaton.number_sets(state, tokens[a : a + 1], sets[a : a + 1])[0])
                edges.append(Edge(self._number((then, after)), tokens[a:b], logs[a:b], weight))
            else:
                lost.append(logs[a:b])
        self.edges[pair], self.dropped[pair] = edges, log_sum(np.concatenate(lost))


def count_up(sizes: list[int]) -> Ints:
    """Return where each of some segments begins, and the end of the last: int64 [n + 1]."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
