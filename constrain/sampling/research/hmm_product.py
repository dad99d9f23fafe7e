"""HiddenProduct: exact answers for a hidden Markov model under a Constraint, from the product of automaton and hidden
states.

Let h(q, s, left) be the probability that the text is completed in L within `left` more tokens, from automaton state q
with the model in state s. One backward pass computes all of them:

    h(q, s, left) = emit[s, $] [q accepts] + sum over tokens a of emit[s, a] (move @ h(q after a, ., left - 1))[s]

p(L) is start @ h(start). Given a prefix, only a belief b over hidden states is known, and h(u) = b @ h(q). The next
token has probability in proportion to the sum of b[s] emit[s, a] (move @ h(q after a))[s], so every step samples from p
given L exactly although hidden states are never observed. The recursion is that of `markov_exact`, with vectors in
place of numbers.

A truncated product has only the automaton states and tokens that masking takes often enough, by the rule of
`product_exploration` with automaton states in place of pairs. Its sums are lower bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...base.cached_property import cached_property
from ...base.errors import ArgumentError, LimitError
from ...engine.length_limits import explain_short_limit
from ..core.results import Draw, Draws, log_sum
from ..core.token_masses import draw_index
from .hidden_exploration import NO_ARCS, HiddenExplorer
from .hidden_markov import Hmm
from .token_automaton import TokenAutomaton

if TYPE_CHECKING:
    from ...engine.constraint import Constraint
    from ...engine.matcher import Matcher

__all__ = ["HiddenProduct"]

MOST_CELLS = 30_000_000
"""Maximum size of h: tokens times automaton states times hidden states, 8 bytes each."""

RARELY = 1e-6
"""Weight of all visits to a state beside those with the same number of tokens remaining, where means are taken."""

Floats = NDArray[np.float64]


class HiddenProduct:
    """The product of an Hmm and a Constraint, for texts of at most max_tokens tokens, end token included.

    threshold: 0 for a complete product; otherwise only what masking takes at least so often per text is in it.
    h: float64 [max_tokens + 1, Q, K], scaled for each number of remaining tokens and automaton state so that the
    maximum is 1. scale: float64 [max_tokens + 1, Q], the logs of the scales, -inf where h is 0. Raises LimitError
    beyond most_states or MOST_CELLS.
    """

    def __init__(
        self, lm: Hmm, constraint: Constraint, *, max_tokens: int, most_states: int = 200_000, threshold: float = 0.0
    ) -> None:
        if max_tokens < 1:
            raise LimitError(f"max_tokens is {max_tokens}: not even an end token fits")
        if not 0 <= threshold < 1:
            raise ArgumentError(f"threshold must be from 0 to 1, not {threshold!r}")
        self.lm, self.vocabulary, self.max_tokens = lm, constraint.vocabulary, max_tokens
        self.threshold = threshold
        self.automaton = TokenAutomaton(constraint, most_states)
        self.ending: Floats = lm.emit[:, list(self.vocabulary.eos_ids)].sum(axis=1)
        explorer = HiddenExplorer(lm, self.automaton)
        if threshold > 0:
            explorer.explore_likely(max_tokens, threshold, self.ending)
        else:
            explorer.explore_all(max_tokens)
        states, hidden = len(self.automaton), len(lm.start)
        if (max_tokens + 1) * states * hidden > MOST_CELLS:
            raise LimitError(
                f"{max_tokens} tokens, {states} states of the constraint and {hidden} of the model are too many.",
                hint="Lower max_tokens, raise threshold, or use another sampler.",
            )
        nowhere = np.empty(0, np.int64), np.empty((0, hidden))
        self.arcs = [explorer.arcs.get(state, NO_ARCS) for state in range(states)]
        self.edges = [explorer.edges.get(state, nowhere) for state in range(states)]
        self.dropped = np.array([explorer.dropped.get(state, np.zeros(hidden)) for state in range(states)])
        self.h, self.scale = self.backward()

    def backward(self, *, completed: bool = False) -> tuple[Floats, Floats]:
        """Compute h and scale.

        completed: with an estimate of what a truncated product drops, as `markov_exact.Product.completed` has it: h of
        the state itself with one token less; and for states without edges the mean of those with edges.
        """
        states, hidden = len(self.edges), len(self.ending)
        h, scale = np.zeros((self.max_tokens + 1, states, hidden)), np.full((self.max_tokens + 1, states), -np.inf)
        own = np.array([len(targets) > 0 for targets, _ in self.edges])
        for left in range(1, self.max_tokens + 1):
            ahead = h[left - 1] @ self.lm.move.T  # values after the next token, averaged over the move
            for state, (targets, weights) in enumerate(self.edges):
                if completed and own[state]:
                    targets, weights = np.append(targets, state), np.vstack([weights, self.dropped[state]])
                scales = scale[left - 1][targets]
                ends = self.automaton.accepting[state] and self.ending.max() > 0
                top = max(0.0 if ends else -np.inf, float(scales.max(initial=-np.inf)))
                if top == -np.inf:
                    continue
                values = np.exp(-top) * self.ending if ends else np.zeros(len(self.ending))
                values = values + (weights * ahead[targets] * np.exp(scales - top)[:, None]).sum(axis=0)
                if (largest := float(values.max())) > 0:
                    h[left, state], scale[left, state] = values / largest, top + np.log(largest)
            if completed and not own.all():
                values, top = self.average(h[left], scale[left], left, own)
                if top > -np.inf:
                    h[left, ~own], scale[left, ~own] = values, top
        return h, scale

    def average(self, h: Floats, scale: Floats, left: int, among: NDArray[np.bool_]) -> tuple[Floats, float]:
        """Return the mean of values (float64 [Q, K], logs of their scales [Q]) over some states, and log of its scale.

        States are weighted by the probability of being there with `left` tokens remaining, and a little by all visits.
        """
        shares = self.forward[0].sum(axis=2)
        weights = np.where(among, shares[self.max_tokens - left] + RARELY * shares.sum(axis=0), 0.0)
        top = float(scale[among].max(initial=-np.inf))
        if top == -np.inf or weights.sum() <= 0:
            return np.zeros(h.shape[1]), -np.inf
        return (weights * np.exp(scale - top)) @ h / weights.sum(), top

    @cached_property
    def completed(self) -> tuple[Floats, Floats]:
        """h and scale with an estimate of what a truncated product drops; those of `backward` in a complete one."""
        return (self.h, self.scale) if self.log_lost == -np.inf else self.backward(completed=True)

    @cached_property
    def forward(self) -> tuple[Floats, Floats]:
        """The distribution over states after each number of tokens, given that the text is in the product (float64
        [max_tokens, Q, K], sums of 1 or 0), and the log of the probability of that (float64 [max_tokens]).
        """
        shares = np.zeros((self.max_tokens, len(self.arcs), len(self.lm.start)))
        logs = np.full(self.max_tokens, -np.inf)
        sources = np.repeat(np.arange(len(self.edges)), [len(targets) for targets, _ in self.edges])
        targets = np.concatenate([targets for targets, _ in self.edges])
        weights = np.concatenate([weights for _, weights in self.edges])
        shares[0, 0], logs[0] = self.lm.start, 0.0
        for step in range(1, self.max_tokens):
            np.add.at(shares[step], targets, (shares[step - 1][sources] * weights) @ self.lm.move)
            total = float(shares[step].sum())
            if total <= 0:
                break
            shares[step] /= total
            logs[step] = logs[step - 1] + np.log(total)
        return shares, logs

    @property
    def log_z(self) -> float:
        """Log of p(L), for texts that end within max_tokens; of a truncated product a lower bound."""
        total = float(self.lm.start @ self.h[self.max_tokens, 0])
        return float(np.log(total) + self.scale[self.max_tokens, 0]) if total > 0 else -np.inf

    @property
    def log_lost(self) -> float:
        """Log of the probability of all prefixes that a truncated product leaves: p(L) <= exp(log_z) + exp(log_lost).

        The bound is certain: it counts every text that begins with such a prefix as one in L. -inf for a complete
        product.
        """
        shares, logs = self.forward
        with np.errstate(divide="ignore"):
            return log_sum(np.log((shares * self.dropped).sum(axis=(1, 2)))[:-1] + logs[:-1])

    def future(self, matcher: Matcher, tokens: Sequence[int], left: int) -> float:
        """Return log h of a text with `left` tokens remaining: log p(in L and in time | prefix), or -inf if that is 0.

        matcher: the position after the text, of the same Constraint and thread; tokens: the tokens the model has seen.
        In a truncated product it is the estimate of `completed`, and `mean_future` where the text was left out.
        """
        state = self.automaton.number(matcher)
        if left <= 0:
            return -np.inf
        if state is None:
            return self.mean_future(matcher, left)
        (h, scale), left = self.completed, min(left, self.max_tokens)
        with np.errstate(divide="ignore"):
            return float(np.log(self.lm.belief(tokens) @ h[left, state]) + scale[left, state])

    def futures(self, matcher: Matcher, tokens: Sequence[int], left: int) -> tuple[NDArray[np.int64], Floats]:
        """Return the possible next tokens (int64 [k], ascending, no end tokens) and log h of the text after each."""
        state = self.automaton.number(matcher)
        if state is None or left <= 1:
            return np.empty(0, np.int64), np.empty(0)
        (h, scale), left = self.completed, min(left, self.max_tokens + 1)
        choices, after = self.arcs[state]
        joint = self.lm.belief(tokens)[:, None] * self.lm.emit[:, choices]
        values = (joint * (h[left - 1][after] @ self.lm.move.T).T).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(values / joint.sum(axis=0)) + scale[left - 1][after]
        return choices, np.where(values > 0, logs, -np.inf)

    def mean_future(self, matcher: Matcher | None, left: int) -> float:
        """Return the mean of `completed` at a state of the constraint, or of all states for None and if it is not in
        the product; -inf in a complete product.
        """
        if self.log_lost == -np.inf or left <= 0:
            return -np.inf
        number, left = None if matcher is None else self.automaton.number(matcher), min(left, self.max_tokens)
        key = -1 if number is None else number, left
        if key not in self._means:
            self._means[key] = self._mean(*key)
        return self._means[key]

    def _mean(self, state: int, left: int) -> float:
        """Compute `mean_future` at a state of the automaton; -1 for none."""
        h, scale = self.completed
        if state < 0:
            values, top = self.average(h[left], scale[left], left, np.ones(len(h[left]), np.bool_))
        else:
            values, top = h[left, state], float(scale[left, state])
        beliefs = self.forward[0][:, state].sum(axis=0) if state >= 0 else self.forward[0].sum(axis=(0, 1))
        total = float(beliefs.sum())
        with np.errstate(divide="ignore"):
            return float(np.log(beliefs @ values / total) + top) if total > 0 else float(top)

    @cached_property
    def _means(self) -> dict[tuple[int, int], float]:
        return {}

    def sample(self, n: int, rng: np.random.Generator) -> Draws:
        """Return n independent samples from exactly p given L, each of weight Z. Raise LimitError if p(L) is 0.

        Those of a truncated product are from p given L and the texts of the product, and have its sum as weight.
        """
        if self.log_z == -np.inf:
            raise explain_short_limit(self.automaton.constraint, self.max_tokens) or LimitError(
                f"no text of at most {self.max_tokens} tokens satisfies the constraint with any probability",
                hint="Raise max_tokens, or check which texts the model gives any probability.",
            )
        return Draws.of((self._sample(rng) for _ in range(n)), model_calls=0)

    def _sample(self, rng: np.random.Generator) -> Draw:
        belief, state, tokens, logprob = self.lm.start, 0, list[int](), 0.0
        for left in range(self.max_tokens, 0, -1):
            choices, after = self.arcs[state]
            joint = belief[:, None] * self.lm.emit[:, choices]
            masses = (joint * (self.h[left - 1][after] @ self.lm.move.T).T).sum(axis=0)
            ending = float(belief @ self.ending) if self.automaton.accepting[state] else 0.0
            scales = np.append(0.0 if ending else -np.inf, self.scale[left - 1][after])
            index = draw_index(np.append(ending, masses) * np.exp(scales - scales.max()), rng) - 1
            if index < 0:
                logprob += float(np.log(ending))
                break
            logprob += float(np.log(joint[:, index].sum()))
            tokens.append(int(choices[index]))
            belief, state = self.lm.after(belief, tokens[-1]), int(after[index])
        return Draw(tuple(tokens), self.vocabulary.decode(tokens), logprob, self.log_z)
