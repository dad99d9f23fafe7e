"""Hmm: a hidden Markov model of tokens. Its state is never seen, so no number of last tokens says what comes next.

Before each token the model is in one of K states; the state writes a token, or an end token, and the model moves on:

    p(x_1 .. x_T $) = sum over s_1 .. s_{T+1} of start[s_1] emit[s_1, x_1] move[s_1, s_2] emit[s_2, x_2] ... emit[., $]

What is known of the state after a prefix is its *belief* P(s | prefix), K numbers that one token changes in O(K^2); the
next token has the law belief @ emit. `hidden.HiddenProduct` crosses it with an automaton, for exact answers. Source:
Rabiner 1989, A tutorial on hidden Markov models; `fit` is his Baum-Welch, section III.C.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError, LimitError

__all__ = ["Hmm"]

REMEMBERED = 2_000
"""Prefixes whose belief is kept, of those that were asked about; the longest unused are forgotten."""
REACH = 64
"""How much shorter a beginning may be from which a belief is carried on; else it is computed from the start."""
MOST_CELLS = 64_000_000
"""States times tokens: beyond, the rows take more than half a gigabyte."""
SMALLEST = 1e-9
"""Share of the even law that `fit` mixes into every law, so that nothing becomes impossible for good."""

Floats = NDArray[np.float64]


class Hmm:
    """start: float64 [K], move: float64 [K, K], emit: float64 [K, V]: probabilities, each row summing to 1 (to 1e-6;
    they are then made to, exactly). Raises ValueError for others, LimitError for more cells than MOST_CELLS."""

    def __init__(
        self, start: NDArray[np.floating[Any]], move: NDArray[np.floating[Any]], emit: NDArray[np.floating[Any]]
    ) -> None:
        self.start, self.move, self.emit = (
            normalise_rows(start, "start"),
            normalise_rows(move, "move"),
            normalise_rows(emit, "emit"),
        )
        states = len(self.start)
        if self.start.ndim != 1 or self.move.shape != (states, states) or self.emit.shape[:-1] != (states,):
            shapes = [list(rows.shape) for rows in (self.start, self.move, self.emit)]
            raise ArgumentError(f"start, move and emit are {shapes}: they must be [K], [K, K] and [K, V]")
        if self.emit.size > MOST_CELLS:
            raise LimitError(f"{states} states of {self.emit.shape[1]} tokens are more than {MOST_CELLS:,} numbers.")
        self._beliefs: OrderedDict[tuple[int, ...], Floats] = OrderedDict()

    def belief(self, prefix: Sequence[int]) -> Floats:
        """float64 [K]: the probability of each state after a prefix; even, where the prefix is impossible."""
        key = tuple(prefix)
        known, at = self.start, 0
        for length in range(len(key), max(0, len(key) - REACH), -1):
            if (found := self._beliefs.get(key[:length])) is not None:
                self._beliefs.move_to_end(key[:length])
                known, at = found, length
                break
        for token in key[at:]:
            known = self.after(known, token)
        self._beliefs[key] = known
        if len(self._beliefs) > REMEMBERED:
            self._beliefs.popitem(last=False)
        return known

    def after(self, belief: Floats, token: int) -> Floats:
        """The belief one token later. Normalised at each step, so nothing underflows, however long a text is."""
        joint: Floats = belief * self.emit[:, token]
        total = float(joint.sum())
        if total <= 0:
            return np.full(len(belief), 1 / len(belief))
        moved: Floats = (joint / total) @ self.move
        return moved

    def next_logprobs(self, prefixes: list[list[int]]) -> Floats:
        """As every LanguageModel: float64 [n, V]."""
        if not prefixes:
            return np.zeros((0, self.emit.shape[1]))
        with np.errstate(divide="ignore"):
            return np.log(np.array([self.belief(prefix) for prefix in prefixes]) @ self.emit)

    def logprob(self, text: Sequence[int]) -> float:
        """Natural log of the probability that a text begins with these tokens (with an end token: that it is that)."""
        rows = self.next_logprobs([list(text[:i]) for i in range(len(text))])
        return float(sum(rows[i, token] for i, token in enumerate(text)))

    # ---- making one -------------------------------------------------------------------------------------------

    @classmethod
    def random(cls, states: int, size: int, *, rng: np.random.Generator, peaked: float = 0.5) -> Hmm:
        """All rows from a Dirichlet law of concentration `peaked`; size: of the vocabulary."""
        concentration = np.full(states, peaked)
        return cls(
            rng.dirichlet(concentration),
            rng.dirichlet(concentration, states),
            rng.dirichlet(np.full(size, peaked), states),
        )

    @classmethod
    def fit(
        cls,
        texts: Iterable[Sequence[int]],
        *,
        states: int,
        end: int,
        size: int,
        rng: np.random.Generator,
        rounds: int = 20,
    ) -> Hmm:
        """By Baum-Welch from a random start: `rounds` steps, none of which makes the texts less likely (but for the
        SMALLEST share). texts: without their end token, which is `end`; size: of the vocabulary."""
        listed = [[*text, end] for text in texts]
        if not listed:
            raise ArgumentError("there is no text to learn from")
        made = cls.random(states, size, rng=rng, peaked=1.0)
        for _ in range(rounds):
            made = made.better(listed)
        return made

    def better(self, texts: Sequence[Sequence[int]]) -> Hmm:
        """One step of Baum-Welch on texts with their end tokens: expected uses of each number, made into laws."""
        start, move, emit = (np.zeros_like(rows) for rows in (self.start, self.move, self.emit))
        for text in texts:
            ahead = [self.start]
            for token in text[:-1]:
                ahead.append(self.after(ahead[-1], token))
            behind = self.emit[:, text[-1]]
            for i in range(len(text) - 1, -1, -1):
                here = ahead[i] * behind
                total = here.sum()
                if total <= 0:
                    break  # an impossible text teaches nothing
                emit[:, text[i]] += here / total
                if i == 0:
                    start += here / total
                    break
                before = ahead[i - 1] * self.emit[:, text[i - 1]]
                uses = before[:, None] * self.move * behind[None, :]
                move += uses / uses.sum()
                behind = self.emit[:, text[i - 1]] * (self.move @ (behind / behind.max()))
        return Hmm(*(smooth_counts(rows) for rows in (start, move, emit)))


def normalise_rows(rows: NDArray[np.floating[Any]], name: str) -> Floats:
    """Rows as float64 that sum to 1."""
    made = np.asarray(rows, np.float64)
    sums = made.sum(axis=-1, keepdims=True)
    if made.ndim == 0 or not np.isfinite(made).all() or (made < 0).any() or not np.allclose(sums, 1.0, atol=1e-6):
        raise ArgumentError(f"the rows of {name} must be probabilities that sum to 1")
    divided: Floats = made / sums
    return divided


def smooth_counts(counts: Floats) -> Floats:
    """Laws in proportion to counts, mixed with SMALLEST of the even one, which is the law of a row that has none."""
    size = counts.shape[-1]
    sums = counts.sum(axis=-1, keepdims=True)
    laws = np.where(sums > 0, counts / np.maximum(sums, 1e-300), 1 / size)
    mixed: Floats = (1 - SMALLEST) * laws + SMALLEST / size
    return mixed
