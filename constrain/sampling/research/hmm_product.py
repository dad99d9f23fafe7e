"""HiddenProduct: exact answers for a hidden Markov model under a Constraint, from the product of automaton and hidden
states.

Let h(q, s, left) be the probability that the text is completed in L within `left` more tokens, from automaton state q
with the model in state s. One backward pass computes all of them:

    h(q, s, left) = emit[s, $] [q accepts] + sum over tokens a of emit[s, a] (move @ h(q after a, ., left - 1))[s]

p(L) is start @ h(start). Given a prefix, only a belief b over hidden states is known, and h(u) = b @ h(q). The next
token has probability in proportion to the sum of b[s] emit[s, a] (move @ h(q after a))[s], so every step samples from p
given L exactly although hidden states are never observed. The recursion is that of `markov_exact`, with vectors in
place of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...base.errors import LimitError
from ..core.results import Draw, Draws
from ..core.token_masses import draw_index
from .hidden_markov import Hmm
from .token_automaton import TokenAutomaton

if TYPE_CHECKING:
    from ...engine.constraint import Constraint

__all__ = ["HiddenProduct"]

MOST_CELLS = 30_000_000
"""Maximum size of h: tokens times automaton states times hidden states, 8 bytes each."""

Floats = NDArray[np.float64]
Arcs = tuple[NDArray[np.int64], NDArray[np.int32]]


class HiddenProduct:
    """The product of an Hmm and a Constraint, for texts of at most max_tokens tokens, end token included.

    h: float64 [max_tokens + 1, Q, K], scaled for each number of remaining tokens and automaton state so that the
    maximum is 1. scale: float64 [max_tokens + 1, Q], the logs of the scales, -inf where h is 0. Raises LimitError
    beyond most_states or MOST_CELLS.
    """

    def __init__(self, lm: Hmm, constraint: Constraint, *, max_tokens: int, most_states: int = 200_000) -> None:
        if max_tokens < 1:
            raise LimitError(f"max_tokens is {max_tokens}: not even an end token fits")
        self.lm, self.vocabulary, self.max_tokens = lm, constraint.vocabulary, max_tokens
        self.automaton = TokenAutomaton(constraint, most_states)
        self.arcs = list(self.explore_arcs())
        states, hidden = len(self.automaton), len(lm.start)
        if (max_tokens + 1) * states * hidden > MOST_CELLS:
            raise LimitError(
                f"{max_tokens} tokens, {states} states of the constraint and {hidden} of the model are too many.",
                hint="Lower max_tokens, or use another sampler.",
            )
        self.ending: Floats = lm.emit[:, list(self.vocabulary.eos_ids)].sum(axis=1)
        self.h = np.zeros((max_tokens + 1, states, hidden))
        self.scale = np.full((max_tokens + 1, states), -np.inf)
        self.backward()

    def explore_arcs(self) -> Iterator[Arcs]:
        """Yield the arcs of each state that fewer than max_tokens tokens reach, breadth first. States of the last layer
        have none, since only an end token fits after them.
        """
        done = 0
        for _ in range(self.max_tokens - 1):
            layer = len(self.automaton)
            for state in range(done, layer):
                yield self.automaton.arcs(state)
            done = layer
        for _ in range(done, len(self.automaton)):
            yield np.empty(0, np.int64), np.empty(0, np.int32)

    def backward(self) -> None:
        """Compute h and scale."""
        edges = [self.edges(tokens, after) for tokens, after in self.arcs]
        for left in range(1, self.max_tokens + 1):
            ahead = self.h[left - 1] @ self.lm.move.T  # values after the next token, averaged over the move
            for state, (targets, weights) in enumerate(edges):
                scales = self.scale[left - 1][targets]
                ends = self.automaton.accepting[state] and self.ending.max() > 0
                top = max(0.0 if ends else -np.inf, float(scales.max(initial=-np.inf)))
                if top == -np.inf:
                    continue
                values = np.exp(-top) * self.ending if ends else np.zeros(len(self.ending))
                values = values + (weights * ahead[targets].T * np.exp(scales - top)).sum(axis=1)
                if (largest := float(values.max())) > 0:
                    self.h[left, state], self.scale[left, state] = values / largest, top + np.log(largest)

    def edges(self, tokens: NDArray[np.int64], after: NDArray[np.int32]) -> tuple[NDArray[np.int64], Floats]:
        """Return the successors of a state (int64 [e]) and the total probability of the tokens that lead to each:
        float64 [K, e].
        """
        targets, inverse = np.unique(after.astype(np.int64), return_inverse=True)
        weights = np.zeros((len(targets), len(self.lm.start)))
        np.add.at(weights, inverse, self.lm.emit[:, tokens].T)
        return targets, weights.T

    @property
    def log_z(self) -> float:
        """Log of p(L), for texts that end within max_tokens."""
        total = float(self.lm.start @ self.h[self.max_tokens, 0])
        return float(np.log(total) + self.scale[self.max_tokens, 0]) if total > 0 else -np.inf

    def sample(self, n: int, rng: np.random.Generator) -> Draws:
        """Return n independent samples from exactly p given L, each of weight Z. Raise LimitError if p(L) is 0."""
        if self.log_z == -np.inf:
            raise LimitError(
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
