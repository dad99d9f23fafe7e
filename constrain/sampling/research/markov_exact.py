"""Exact inference where the model is Markov and the constraint regular.

The product of a model of the last few tokens and an automaton is a weighted automaton (the regular-constrained CRF,
Papay, Klinger & Padó, ICLR 2022). One backward pass gives h(u), the probability that a text that begins with u will be
in L and end in time; everything else follows from h:

    log Z = log h of the empty text   pi(a | u) = p(a | u) h(ua) / h(u)         best text: the same with max for sum
    marginals, gradient of log Z      one forward pass as well: expected uses of each arc under p given L

With at most max_tokens tokens the number of states is finite for any grammar; if it is too large, LimitError is raised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...base.cached_property import cached_property
from ...base.errors import ArgumentError, LimitError, UnsupportedError
from ...engine.length_limits import explain_short_limit
from ..core.language_model import LanguageModel
from ..core.results import Draw, Draws, log_sum
from ..core.sampler_arguments import check_common_arguments, check_counts, check_masks
from .hidden_markov import Hmm
from .hmm_product import HiddenProduct
from .product_exploration import Markov, ProductExplorer
from .segment_sums import max_segments, sum_segments
from .token_automaton import TokenAutomaton

if TYPE_CHECKING:
    from ...engine.constraint import Constraint
    from ...engine.matcher import Matcher

__all__ = ["Markov", "Product", "draw_markov"]

MOST_STATES = 200_000
RARELY = math.log(1e-6)
"""Weight of all visits to a state beside those with the same number of tokens remaining, where means are taken."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Product:
    """The product of a Markov model and a Constraint, over texts of at most max_tokens tokens, end token included.

    pairs: int64 [S, 2], states of the model and of `automaton`; state 0 is the start. end: float64 [S], log of the
    probability that the text ends there, -inf where it may not. All tokens that lead from one state to the same
    successor form an edge: the edges of state s are first_edge[s]:first_edge[s + 1], with `target` and `weight` (log);
    the tokens of edge e are first_arc[e]:first_arc[e + 1] of `token` and `arc` (log). dropped: float64 [S], log of the
    probability, by state, of allowed tokens that a truncated product leaves out; -inf in a complete one. threshold: of
    the truncation, 0 if there was none.
    """

    lm: Markov
    automaton: TokenAutomaton
    max_tokens: int
    pairs: NDArray[np.int64]
    end: Floats
    first_edge: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: Floats
    first_arc: NDArray[np.int64]
    token: NDArray[np.int64]
    arc: Floats
    dropped: Floats
    threshold: float = 0.0

    @classmethod
    def of(
        cls,
        lm: Markov,
        constraint: Constraint,
        *,
        max_tokens: int,
        most_states: int = MOST_STATES,
        threshold: float = 0.0,
    ) -> Product:
        """Build the product of a model and a constraint.

        threshold: 0 for all states that max_tokens tokens can reach. Otherwise only states and edges are in it that
        masking takes at least so often per text (`product_exploration`), and all sums are lower bounds, by at most
        `log_lost`.

        Raise LimitError beyond most_states or MOST_ARCS, and ValueError for logs of another shape, rows that are not
        distributions, and a threshold that is not from 0 to 1.
        """
        if max_tokens < 1:
            raise LimitError(f"max_tokens is {max_tokens}: not even an end token fits")
        size, logs = constraint.vocabulary.size, np.asarray(lm.logs)
        if logs.ndim != 2 or logs.shape[1] < size or logs.dtype.kind != "f":
            raise ArgumentError(
                f"the model's logs are {logs.dtype}{list(logs.shape)}: "
                f"give one row of at least {size} log-probabilities for each state"
            )
        if not 0 <= threshold < 1:
            raise ArgumentError(f"threshold must be from 0 to 1, not {threshold!r}")
        explorer = ProductExplorer(lm, TokenAutomaton(constraint, most_states), most_states)
        if threshold > 0:
            explorer.explore_likely(max_tokens, threshold)
        else:
            explorer.explore_all(max_tokens)
        return cls(lm, explorer.automaton, max_tokens, threshold=threshold, **explorer.to_arrays())

    # ---- sums ------------------------------------------------------------------------------------------------

    @cached_property
    def backward(self) -> Floats:
        """Log h of each state, by number of remaining tokens, end token included: float64 [max_tokens + 1, S]."""
        out = np.full((self.max_tokens + 1, len(self.end)), -np.inf)
        for left in range(1, self.max_tokens + 1):
            out[left] = np.logaddexp(self.end, sum_segments(self.weight + out[left - 1][self.target], self.first_edge))
        return out

    @cached_property
    def forward(self) -> Floats:
        """Log-probability of being in each state after each number of tokens: float64 [max_tokens, S]."""
        out = np.full((self.max_tokens, len(self.end)), -np.inf)
        out[0, 0] = 0.0
        order = np.argsort(self.target, kind="stable")
        into = np.searchsorted(self.target[order], np.arange(len(self.end) + 1))
        for step in range(1, self.max_tokens):
            out[step] = sum_segments((out[step - 1][self.source] + self.weight)[order], into)
        return out

    @cached_property
    def source(self) -> NDArray[np.int64]:
        """The state that each edge leaves: int64 [edges]."""
        return np.repeat(np.arange(len(self.end)), np.diff(self.first_edge))

    @property
    def log_z(self) -> float:
        """Log of p(L), for texts that end within max_tokens; of a truncated product a lower bound."""
        return float(self.backward[self.max_tokens, 0])

    @property
    def log_lost(self) -> float:
        """Log of the probability of all prefixes that a truncated product leaves: p(L) <= exp(log_z) + exp(log_lost).

        The bound is certain: it counts every text that begins with such a prefix as one in L. -inf for a complete
        product.
        """
        return log_sum((self.forward[: self.max_tokens - 1] + self.dropped).ravel())

    @cached_property
    def completed(self) -> tuple[Floats, Floats]:
        """Log h with an estimate of what a truncated product drops, and its means; by number of remaining tokens.

        What a state drops has the h of the state itself with one token less, as most tokens that are not followed
        change little (within a string, for example). A state without edges has the mean of those with edges at the
        same state of the automaton, or else of all. The first: float64 [max_tokens + 1, S], `backward` in a complete
        product; the second: float64 [max_tokens + 1, Q + 1], the means by state of the automaton, and at last of all.
        """
        out = np.full((self.max_tokens + 1, len(self.end)), -np.inf)
        means = np.full((self.max_tokens + 1, len(self.automaton) + 1), -np.inf)
        if self.log_lost == -np.inf:
            return self.backward, means
        has_edges = np.diff(self.first_edge) > 0
        groups = self.pairs[:, 1]
        visits = np.logaddexp.reduce(self.forward, axis=0) + RARELY
        for left in range(1, self.max_tokens + 1):
            after = sum_segments(self.weight + out[left - 1][self.target], self.first_edge)
            values = np.logaddexp(np.logaddexp(self.end, after), self.dropped + out[left - 1])
            weights = np.where(has_edges, np.logaddexp(self.forward[self.max_tokens - left], visits), -np.inf)
            sums = np.full((2, len(self.automaton) + 1), -np.inf)
            for row, logs in enumerate((weights + values, weights)):
                np.logaddexp.at(sums[row], groups, logs)
                sums[row, -1] = log_sum(logs)
            known = sums[1] > -np.inf
            means[left] = np.where(known, sums[0] - np.where(known, sums[1], 0.0), sums[0, -1] - sums[1, -1])
            out[left] = np.where(has_edges, values, np.logaddexp(self.end, means[left][groups]))
        return out, means

    def future(self, matcher: Matcher, tokens: Sequence[int], left: int) -> float:
        """Return log h of a text with `left` tokens remaining: log p(in L and in time | prefix), or -inf if that is 0.

        matcher: the position after the text, of the same Constraint and thread; tokens: the tokens the model has seen.
        Returns -inf for a text that was not explored, because its probability is 0 or it is too long. In a truncated
        product it is the estimate of `completed`, and `mean_future` for a text that was left out.
        """
        if left <= 0:
            return -np.inf
        number = self.automaton.number(matcher)
        state = self._numbers.get((self.lm.state(tokens), -1 if number is None else number))
        if state is None:
            return self.mean_future(matcher, left)
        return float(self.completed[0][min(left, self.max_tokens), state])

    def mean_future(self, matcher: Matcher | None, left: int) -> float:
        """Return the mean of `completed` at a state of the constraint, or of all for None; -inf if it is complete."""
        number = None if matcher is None else self.automaton.number(matcher)
        return float(self.completed[1][min(max(left, 0), self.max_tokens), -1 if number is None else number])

    def futures(self, matcher: Matcher, tokens: Sequence[int], left: int) -> tuple[NDArray[np.int64], Floats]:
        """Return the possible next tokens (int64 [k], ascending, no end tokens) and log h of the text after each."""
        number = self.automaton.number(matcher)
        state = self._numbers.get((self.lm.state(tokens), -1 if number is None else number))
        if state is None or left <= 1:
            return np.empty(0, np.int64), np.empty(0)
        if state not in self._sorted:
            edges = slice(self.first_edge[state], self.first_edge[state + 1])
            arcs = slice(self.first_arc[edges.start], self.first_arc[edges.stop])
            targets = np.repeat(self.target[edges], np.diff(self.first_arc[edges.start : edges.stop + 1]))
            order = np.argsort(self.token[arcs], kind="stable")
            self._sorted[state] = self.token[arcs][order], targets[order]
        known, targets = self._sorted[state]
        return known, self.completed[0][min(left - 1, self.max_tokens)][targets]

    @cached_property
    def _sorted(self) -> dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        return {}

    @cached_property
    def _numbers(self) -> dict[tuple[int, int], int]:
        return {(int(m), int(q)): number for number, (m, q) in enumerate(self.pairs)}

    # ---- inference --------------------------------------------------------------------------------------------

    def sample(self, n: int, rng: np.random.Generator) -> Draws:
        """Return n independent samples from exactly p given L, each of weight Z. Raise LimitError if p(L) is 0.

        Those of a truncated product are from p given L and the texts of the product, and have its sum as weight.
        """
        if self.log_z == -np.inf:
            raise self.no_text_error()
        return Draws.of((self._sample(rng) for _ in range(n)), model_calls=0)

    def _sample(self, rng: np.random.Generator) -> Draw:
        state, tokens, logprob = 0, list[int](), 0.0
        for left in range(self.max_tokens, 0, -1):
            edges = slice(self.first_edge[state], self.first_edge[state + 1])
            logs = np.append(self.end[state], self.weight[edges] + self.backward[left - 1][self.target[edges]])
            edge = _draw_index(logs, rng) - 1
            if edge < 0:
                logprob += float(self.end[state])
                break
            edge += int(self.first_edge[state])
            arcs = slice(self.first_arc[edge], self.first_arc[edge + 1])
            arc = int(self.first_arc[edge]) + _draw_index(self.arc[arcs], rng)
            tokens.append(int(self.token[arc]))
            logprob += float(self.arc[arc])
            state = int(self.target[edge])
        return self._draw(tokens, logprob, self.log_z)

    def best(self) -> Draw:
        """Return the likeliest token sequence of p given L, with weight Z. Several may spell the same text."""
        best = np.full((self.max_tokens + 1, len(self.end)), -np.inf)
        top = max_segments(self.arc, self.first_arc)
        for left in range(1, self.max_tokens + 1):
            best[left] = np.maximum(self.end, max_segments(top + best[left - 1][self.target], self.first_edge))
        if best[self.max_tokens, 0] == -np.inf:
            raise self.no_text_error()
        state, tokens = 0, list[int]()
        for left in range(self.max_tokens, 0, -1):
            edges = slice(self.first_edge[state], self.first_edge[state + 1])
            values = top[edges] + best[left - 1][self.target[edges]]
            if not len(values) or self.end[state] >= values.max():
                break
            edge = int(self.first_edge[state]) + int(values.argmax())
            arcs = slice(self.first_arc[edge], self.first_arc[edge + 1])
            tokens.append(int(self.token[arcs][self.arc[arcs].argmax()]))
            state = int(self.target[edge])
        return self._draw(tokens, float(best[self.max_tokens, 0]), self.log_z)

    def no_text_error(self) -> LimitError:
        """Return the error for a constraint with p(L) = 0."""
        return explain_short_limit(self.automaton.constraint, self.max_tokens) or LimitError(
            f"no text of at most {self.max_tokens} tokens satisfies the constraint with any probability",
            hint="Raise max_tokens, or check which texts the model gives any probability.",
        )

    def marginals(self) -> Floats:
        """Return the probability of each token at each position under p given L: float64 [max_tokens, V].

        The probability of ending is divided among the end tokens as in the model. Positions after the end are empty, so
        rows may sum to less than 1.
        """
        out = np.zeros((self.max_tokens, self.lm.logs.shape[1]))
        for step in range(self.max_tokens):
            uses, ends = self._uses(step)
            np.add.at(out[step], self.token, uses)
            out[step, list(self._ends)] += ends @ self._shares
        return out

    def gradient(self) -> Floats:
        """Return the derivatives of log Z with respect to the model's `logs`, as free parameters: float64 [model
        states, V].

        They are the expected uses of each entry under p given L; for a training text x in L, the gradient of log p(x |
        L) is the uses in x minus these.
        """
        out = np.zeros_like(self.lm.logs)
        arc_state = np.repeat(self.pairs[self.source, 0], np.diff(self.first_arc))
        for step in range(self.max_tokens):
            uses, ends = self._uses(step)
            np.add.at(out, (arc_state, self.token), uses)
            for column, token in enumerate(self._ends):
                np.add.at(out[:, token], self.pairs[:, 0], ends * self._shares[:, column])
        return out

    def _uses(self, step: int) -> tuple[Floats, Floats]:
        """Return probabilities under p given L: of each arc as the token after `step` others (float64 [arcs]), and of
        ending there, by state (float64 [S]).
        """
        if self.log_z == -np.inf:
            return np.zeros(len(self.arc)), np.zeros(len(self.end))
        edges = self.forward[step][self.source] + self.backward[self.max_tokens - step - 1][self.target] - self.log_z
        counts = np.diff(self.first_arc)
        return np.exp(np.repeat(edges, counts) + self.arc), np.exp(self.forward[step] + self.end - self.log_z)

    @property
    def _ends(self) -> tuple[int, ...]:
        return self.automaton.constraint.vocabulary.eos_ids

    @cached_property
    def _shares(self) -> Floats:
        """How the model divides the probability of ending among the end tokens: float64 [S, end tokens]."""
        logs = self.lm.logs[self.pairs[:, 0]][:, list(self._ends)]
        top = np.maximum(logs.max(axis=1, keepdims=True), -1e300)
        weights = np.exp(logs - top)
        shares: Floats = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        return shares

    def _draw(self, tokens: list[int], logprob: float, log_weight: float) -> Draw:
        return Draw(tuple(tokens), self.automaton.constraint.vocabulary.decode(tokens), logprob, log_weight)


def _draw_index(logs: Floats, rng: np.random.Generator) -> int:
    """Draw an index in proportion to exp(logs)."""
    cumulative = np.cumsum(np.exp(logs - logs.max()))
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))


def draw_markov(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int,
    most_states: int = MOST_STATES,
) -> Draws:
    """Draw n independent texts from exactly p given L and at most max_tokens tokens, without calls of the model.

    Parameters
    ----------
    lm : Markov or Hmm
        The model.
    constraint, n, rng, max_tokens
        As in `sampling.draw`.
    most_states : int
        Maximum number of states of the product of model and constraint.

    Returns
    -------
    Draws

    Raises
    ------
    LimitError
        If the product is too large, or no text has any probability.
    UnsupportedError
        If the model is neither Markov nor an Hmm.
    """
    check_common_arguments(lm, constraint, n, rng, max_tokens)
    check_masks(constraint, "markov")
    check_counts(1, most_states=most_states)
    if isinstance(lm, Hmm):
        return HiddenProduct(lm, constraint, max_tokens=max_tokens, most_states=most_states).sample(n, rng)
    if not hasattr(lm, "follow"):
        raise UnsupportedError(
            "the sampler 'markov' needs a model whose distribution depends on the last few tokens only",
            hint="Use sampling.NGram or sampling.Hmm as it is, without a temperature or wrap= of the target, or "
            "another sampler.",
        )
    return Product.of(lm, constraint, max_tokens=max_tokens, most_states=most_states).sample(n, rng)  # type: ignore[arg-type]
