"""Baum-Welch: expectation maximisation for hidden Markov models, on batches of texts.

One round replaces every probability by its expected relative count, given the texts, under the model of the round
before (Baum et al. 1970; Rabiner 1989, sections III.C and V.A, with the forward variables scaled to sum to 1 at every
token). It never decreases the log-likelihood of the texts.

Texts that were drawn by masking carry *refused* tokens: at token t, the model that is imitated leaves the mass z to
what is allowed, x_t was drawn from that, and r_t from the rest. Both are observed, as counts of z and 1 - z, whose
expectation is the model's whole distribution there: a state emits them with

    b_t(s) = emit[s, x_t]^z emit[s, r_t]^(1 - z)

as a multinomial distribution emits fractional counts. So a state's estimated mass of what is allowed is the mean of z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError

__all__ = ["Counts", "TrainingTexts", "count_assigned", "count_expected"]

BLOCK = 256
"""Texts of one block of forward and backward variables: float64 [BLOCK, longest text, K]."""
NONE = -1

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TrainingTexts:
    """Texts in a rectangle, the longest first.

    tokens: int64 [N, T], NONE after the end of a text. refused: int64 [N, T], the token that was refused in its place,
    or NONE. leaks: float64 [N, T], the mass of what was refused, 1 - z. classes: int64 [N, T], what tokens of one kind
    have in common, from 0 on; NONE where nothing is known.
    """

    tokens: Ints
    refused: Ints
    leaks: Floats
    classes: Ints

    @classmethod
    def of(
        cls,
        texts: Sequence[Sequence[int]],
        refused: Sequence[Sequence[int]] | None = None,
        leaks: Sequence[Sequence[float]] | None = None,
        classes: Sequence[Sequence[int]] | None = None,
    ) -> TrainingTexts:
        """Lay out texts, and for each token the refused one (-1 for none), the mass of these, and a class.

        Empty texts are left out. Raise ArgumentError if there is no token.
        """
        order = [i for i in sorted(range(len(texts)), key=lambda i: -len(texts[i])) if len(texts[i])]
        if not order:
            raise ArgumentError("there is no text to learn from")

        def lay_out(rows: Sequence[Sequence[float]] | None, dtype: type) -> Any:
            out: NDArray[Any] = np.full((len(order), len(texts[order[0]])), NONE, dtype)
            for row, i in enumerate(order if rows is not None else ()):
                out[row, : len(texts[i])] = rows[i]  # type: ignore[index]
            return out

        others = lay_out(refused, np.int64)
        masses = np.where(others == NONE, 0.0, lay_out(leaks, np.float64))
        return cls(lay_out(texts, np.int64), others, masses, lay_out(classes, np.int64))

    def renumber(self, numbers: Ints) -> TrainingTexts:
        """Return the texts with each token replaced by its number (int64 [V])."""
        codes = np.append(numbers, NONE)  # NONE is the last index
        return replace(self, tokens=codes[self.tokens], refused=codes[self.refused])

    def blocks(self) -> list[TrainingTexts]:
        """Return the texts in blocks of BLOCK, each without the columns that it does not need."""
        out = []
        for at in range(0, len(self.tokens), BLOCK):
            part = slice(at, at + BLOCK), slice(0, int((self.tokens[at] != NONE).sum()))
            out.append(TrainingTexts(self.tokens[part], self.refused[part], self.leaks[part], self.classes[part]))
        return out


@dataclass(frozen=True)
class Counts:
    """Expected counts under a model, and the log-likelihood (nats) of the texts under it.

    start: float64 [K]; move: float64 [K, K]; emit: float64 [K, V].
    """

    start: Floats
    move: Floats
    emit: Floats
    log_likelihood: float


def count_expected(start: Floats, move: Floats, emit: Floats, texts: TrainingTexts) -> Counts:
    """Return the expected counts of a model's starts, moves and emissions, given texts.

    start: float64 [K], move: float64 [K, K], emit: float64 [K, V], probabilities. A text that the model finds
    impossible makes the log-likelihood -inf, and counts for nothing. Takes time in proportion to the tokens, times K^2.
    """
    columns, likelihood = np.ascontiguousarray(emit.T), 0.0
    starts, moves, emits = np.zeros_like(start), np.zeros_like(move), np.zeros_like(columns)
    for block in texts.blocks():
        longest = block.tokens.shape[1]
        emitted = emission_weights(columns, block)
        beliefs, chances = filter_states(start, move, emitted, block)
        with np.errstate(divide="ignore"):
            likelihood += float(np.log(chances).sum())
        after = np.where((chances > 0).all(axis=0), 1.0, 0.0)[:, None] * np.ones(len(start))
        for t in range(longest - 1, -1, -1):
            live = np.flatnonzero(block.tokens[:, t] != NONE)
            written = emitted[t, live] / np.where(chances[t, live] > 0, chances[t, live], 1.0)[:, None]
            if t + 1 < longest:
                onward = np.flatnonzero(block.tokens[live, t + 1] != NONE)
                filtered = beliefs[t, live[onward]] * written[onward]
                moves += move * (filtered.T @ after[live[onward]])
                after[live[onward]] = after[live[onward]] @ move.T
            posterior = beliefs[t, live] * written * after[live]
            leaks = block.leaks[live, t, None]
            np.add.at(emits, block.tokens[live, t], posterior * (1 - leaks))
            np.add.at(emits, block.refused[live, t], posterior * leaks)  # NONE has the mass 0
            after[live] *= written
        starts += (start * after).sum(axis=0)
    return Counts(starts, moves, np.ascontiguousarray(emits.T), likelihood)


def emission_weights(columns: Floats, texts: TrainingTexts) -> Floats:
    """Return b_t(s) of each token of some texts: float64 [T, N, K], 1 after their ends. columns: float64 [V, K]."""
    out = np.where((texts.tokens != NONE).T[:, :, None], columns[texts.tokens.T], 1.0)
    rows, steps = np.nonzero(texts.leaks > 0)
    leaks = texts.leaks[rows, steps, None]
    out[steps, rows] = out[steps, rows] ** (1 - leaks) * columns[texts.refused[rows, steps]] ** leaks
    return out


def filter_states(start: Floats, move: Floats, emitted: Floats, texts: TrainingTexts) -> tuple[Floats, Floats]:
    """Return the forward variables: the distribution of the state before each token (float64 [T, N, K]), and the
    probability of each token given those before it (float64 [T, N], 1 after the end of a text).
    """
    longest, count, _ = emitted.shape
    beliefs, chances = np.zeros(emitted.shape), np.ones((longest, count))
    beliefs[0] = start
    for t in range(longest):
        live = texts.tokens[:, t] != NONE
        joint = beliefs[t, live] * emitted[t, live]
        chances[t, live] = joint.sum(axis=1)
        if t + 1 < longest:
            beliefs[t + 1, live] = (joint / np.where(chances[t, live] > 0, chances[t, live], 1.0)[:, None]) @ move
    return beliefs, chances


def count_assigned(states: int, size: int, texts: TrainingTexts, rng: np.random.Generator) -> Counts:
    """Return counts for a first model: each class has states of its own, the more the more tokens are of it, and every
    token is assigned to one of them at random.

    It is latent variable distillation (Liu, Zhang & Van den Broeck 2023), whose classes are clusters of embeddings. If
    there are more classes than states, the rarest share one.
    """
    places = texts.tokens != NONE
    classes = np.where(texts.classes[places] == NONE, 0, texts.classes[places])
    first, owned = share_states(np.bincount(classes), states)
    path = np.full(texts.tokens.shape, NONE)
    path[places] = first[classes] + rng.integers(0, owned[classes])
    starts, moves, emits = np.zeros(states), np.zeros((states, states)), np.zeros((size, states))
    np.add.at(starts, path[:, 0], 1.0)
    going = places[:, 1:]
    np.add.at(moves, (path[:, :-1][going], path[:, 1:][going]), 1.0)
    np.add.at(emits, (texts.tokens[places], path[places]), 1 - texts.leaks[places])
    np.add.at(emits, (texts.refused[places], path[places]), texts.leaks[places])
    return Counts(starts, moves, np.ascontiguousarray(emits.T), float("nan"))


def share_states(frequencies: Ints, states: int) -> tuple[Ints, Ints]:
    """Return the first state of each class and how many it has, int64 [classes]: one for each of the most frequent
    classes, and the others where there are most tokens for each. The rarest classes share the last one if there are too
    few.
    """
    order = np.argsort(-frequencies, kind="stable")
    owned = np.zeros(len(frequencies), np.int64)
    owned[order[:states]] = 1
    for _ in range(states - len(order)):
        owned[int(np.argmax(frequencies / owned))] += 1
    first = np.cumsum(owned) - owned
    last = order[min(states, len(order)) - 1]
    return np.where(owned > 0, first, first[last]), np.maximum(owned, 1)
