"""Hmm: a hidden Markov model of tokens. Its state is not observed, so no fixed number of last tokens determines the
next distribution.

Before each token the model is in one of K states; the state emits a token, or an end token, and the model moves on:

    p(x_1 .. x_T $) = sum over s_1 .. s_{T+1} of start[s_1] emit[s_1, x_1] move[s_1, s_2] emit[s_2, x_2] ... emit[., $]

The distribution of the state given a prefix is its *belief* P(s | prefix), K numbers, updated in O(K^2) per token; the
next token has the distribution belief @ emit. `hmm_product.HiddenProduct` crosses the model with an automaton, for
exact answers. Source: Rabiner 1989, A tutorial on hidden Markov models; `fit` is his Baum-Welch, section III.C.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError, LimitError
from ..core.sampler_arguments import check_counts, check_rng, end_texts
from .baum_welch import Counts, TrainingTexts, count_assigned, count_expected
from .model_samples import sample_model

if TYPE_CHECKING:
    from ...engine.constraint import Constraint

__all__ = ["Hmm"]

REMEMBERED = 2_000
"""Maximum number of prefixes whose belief is cached; the least recently used are evicted."""
REACH = 64
"""A belief is continued from a cached prefix at most this many tokens shorter, or else computed from the start."""
MOST_CELLS = 64_000_000
"""Maximum number of states times tokens, and times states; the rows then take half a gigabyte each."""
SMALLEST = 1e-9
"""Weight of the uniform distribution that `fit` mixes into every distribution, so that no probability becomes 0."""

Floats = NDArray[np.float64]


class Hmm:
    """A hidden Markov model, usable as a LanguageModel.

    start: float64 [K], move: float64 [K, K], emit: float64 [K, V]: probabilities, each row summing to 1 to within 1e-6;
    rows are then normalised. log_likelihoods: of the texts that `fit` or `distil` learned from (nats), before each step
    and after the last. Raises ValueError for other rows, LimitError for more than MOST_CELLS cells of `emit` or `move`.
    """

    def __init__(
        self,
        start: NDArray[np.floating[Any]],
        move: NDArray[np.floating[Any]],
        emit: NDArray[np.floating[Any]],
        log_likelihoods: tuple[float, ...] = (),
    ) -> None:
        self.log_likelihoods = log_likelihoods
        self.start, self.move, self.emit = (
            normalise_rows(start, "start"),
            normalise_rows(move, "move"),
            normalise_rows(emit, "emit"),
        )
        states = len(self.start)
        if self.start.ndim != 1 or self.move.shape != (states, states) or self.emit.shape[:-1] != (states,):
            shapes = [list(rows.shape) for rows in (self.start, self.move, self.emit)]
            raise ArgumentError(f"start, move and emit are {shapes}: they must be [K], [K, K] and [K, V]")
        check_size(states, self.emit.shape[1])
        self._beliefs: OrderedDict[tuple[int, ...], Floats] = OrderedDict()

    def belief(self, prefix: Sequence[int]) -> Floats:
        """Return the probability of each state after a prefix, float64 [K]; uniform if the prefix is impossible."""
        key = tuple(prefix)
        known, at = self.start, 0
        for length in range(len(key), max(0, len(key) - REACH), -1):
            if (cached := self._beliefs.get(key[:length])) is not None:
                self._beliefs.move_to_end(key[:length])
                known, at = cached, length
                break
        for token in key[at:]:
            known = self.after(known, token)
        self._beliefs[key] = known
        if len(self._beliefs) > REMEMBERED:
            self._beliefs.popitem(last=False)
        return known

    def after(self, belief: Floats, token: int) -> Floats:
        """Return the belief after one more token. It is normalised at each step, so long texts do not underflow."""
        joint: Floats = belief * self.emit[:, token]
        total = float(joint.sum())
        if total <= 0:
            return np.full(len(belief), 1 / len(belief))
        moved: Floats = (joint / total) @ self.move
        return moved

    def next_logprobs(self, prefixes: list[list[int]]) -> Floats:
        """Return the log-probabilities of the next token after each prefix, as every LanguageModel: float64 [n, V]."""
        if not prefixes:
            return np.zeros((0, self.emit.shape[1]))
        with np.errstate(divide="ignore"):
            return np.log(np.array([self.belief(prefix) for prefix in prefixes]) @ self.emit)

    def logprob(self, text: Sequence[int]) -> float:
        """Return the log-probability that a text begins with these tokens (or, with an end token, equals them)."""
        rows = self.next_logprobs([list(text[:i]) for i in range(len(text))])
        return float(sum(rows[i, token] for i, token in enumerate(text)))

    # ---- making one -------------------------------------------------------------------------------------------

    @classmethod
    def random(cls, states: int, size: int, *, rng: np.random.Generator, peaked: float = 0.5) -> Hmm:
        """Make a random model of a vocabulary of `size` tokens, with rows from a Dirichlet distribution of
        concentration `peaked`.
        """
        check_size(states, size)
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
        """Fit a model to texts by `rounds` steps of Baum-Welch from a random start (`baum_welch`).

        No step decreases the likelihood of the texts, except for the SMALLEST mixture. texts: token sequences without
        the end token, which is `end`; size: of the vocabulary.
        """
        check_counts(0, rounds=rounds)
        check_rng(rng)
        training = TrainingTexts.of(end_texts(texts, end, size))
        return cls.random(states, size, rng=rng, peaked=1.0).improve(training, rounds)

    @classmethod
    def distil(
        cls,
        model: Any,
        constraint: Constraint | None = None,
        *,
        n: int,
        rng: np.random.Generator,
        max_tokens: int,
        states: int = 32,
        rounds: int = 30,
        tokenizer: Any = None,
        prompts: Sequence[Any] = (None,),
        temperature: float = 1.0,
        batch: int = 32,
    ) -> Hmm:
        """Fit a hidden Markov model to texts of another model, as Ctrl-G and GeLaTo do (Zhang et al. 2023, 2024).

        Its parameters are those of the tokens of these texts and of one class for all others, whose tokens are equally
        likely. Every state then mixes in the distribution of all texts by the rule of Witten & Bell (1991).

        Parameters
        ----------
        model, constraint, n, rng, max_tokens, tokenizer, prompts, temperature, batch
            As of `model_samples.sample_model`. With a constraint, texts satisfy it, so that the model is good where the
            constraint needs it; what the mask refused is learned from, too, so the probability of leaving the
            constraint is estimated as well (`baum_welch`).
        states : int
            Number of hidden states.
        rounds : int
            Number of steps of Baum-Welch. The first model has states of its own for each state of the constraint that
            occurs, as far as there are enough.

        Returns
        -------
        Hmm
            With the log-likelihood before each step and after the last one as `log_likelihoods`.
        """
        check_size(states, 1)
        check_counts(0, rounds=rounds)
        samples = sample_model(
            model, constraint, n=n, rng=rng, max_tokens=max_tokens, tokenizer=tokenizer, prompts=prompts,
            temperature=temperature, batch=batch,
        )  # fmt: skip
        check_size(states, samples.size)
        seen = np.unique([token for text in samples.texts for token in text])
        others = np.setdiff1d(np.arange(samples.size), seen)
        numbers = np.full(samples.size, len(seen))
        numbers[seen] = np.arange(len(seen))
        training = TrainingTexts.of(samples.texts, samples.refused, samples.leaks, samples.positions)
        training = training.renumber(numbers)
        classes = len(seen) + bool(len(others))
        small = cls._of_counts(count_assigned(states, classes, training, rng)).improve(training, rounds)
        counts = count_expected(small.start, small.move, small.emit, training)
        mixed = interpolate_states(counts.emit)
        emit = np.zeros((states, samples.size))
        emit[:, seen] = mixed[:, : len(seen)]
        emit[:, others] = mixed[:, len(seen) :] / max(len(others), 1)
        return cls(small.start, small.move, emit, small.log_likelihoods)

    @classmethod
    def _of_counts(cls, counts: Counts) -> Hmm:
        return cls(smooth_counts(counts.start), smooth_counts(counts.move), smooth_counts(counts.emit))

    def improve(self, texts: TrainingTexts, rounds: int) -> Hmm:
        """Return the model after some steps of Baum-Welch on texts with end tokens, with its `log_likelihoods`."""
        model, history = self, list[float]()
        for _ in range(rounds):
            counts = count_expected(model.start, model.move, model.emit, texts)
            history.append(counts.log_likelihood)
            model = Hmm._of_counts(counts)
        history.append(count_expected(model.start, model.move, model.emit, texts).log_likelihood)
        return Hmm(model.start, model.move, model.emit, tuple(history))

    def reestimate(self, texts: Sequence[Sequence[int]]) -> Hmm:
        """Return the model after one step of Baum-Welch on texts with end tokens: the normalised expected counts."""
        return self.improve(TrainingTexts.of(texts), 1)


def check_size(states: int, tokens: int) -> None:
    """Raise TypeError, ArgumentError or LimitError unless a model may have this many states and tokens."""
    check_counts(1, states=states)
    if states * tokens > MOST_CELLS:
        raise LimitError(f"{states} states of {tokens} tokens are more than {MOST_CELLS:,} numbers.")
    if states * states > MOST_CELLS:
        raise LimitError(
            f"Moves between {states} states are more than {MOST_CELLS:,} numbers.", hint="Use fewer states."
        )


def normalise_rows(rows: NDArray[np.floating[Any]], name: str) -> Floats:
    """Return rows as float64, normalised to sum to 1."""
    array = np.asarray(rows, np.float64)
    sums = array.sum(axis=-1, keepdims=True)
    if array.ndim == 0 or not np.isfinite(array).all() or (array < 0).any() or not np.allclose(sums, 1.0, atol=1e-6):
        raise ArgumentError(f"the rows of {name} must be probabilities that sum to 1")
    divided: Floats = array / sums
    return divided


def smooth_counts(counts: Floats) -> Floats:
    """Normalise counts and mix in the uniform distribution with weight SMALLEST; rows without counts become uniform."""
    size = counts.shape[-1]
    sums = counts.sum(axis=-1, keepdims=True)
    frequencies = np.where(sums > 0, counts / np.maximum(sums, 1e-300), 1 / size)
    mixed: Floats = (1 - SMALLEST) * frequencies + SMALLEST / size
    return mixed


def interpolate_states(counts: Floats) -> Floats:
    """Return the emissions of states of expected counts (float64 [K, V], the last token being a class that texts may
    lack), each mixed with the distribution of all states together.

    A state with n counts of T different tokens gives the shared distribution the weight T / (n + T) (Witten & Bell
    1991, The zero-frequency problem), where a token expected less than once counts as that part of one. The shared
    distribution gives the uniform one its weight by the same rule.
    """
    size = counts.shape[1]

    def mix(rows: Floats, lower: Floats) -> Floats:
        types = np.minimum(rows, 1.0).sum(axis=-1, keepdims=True)
        total = rows.sum(axis=-1, keepdims=True) + types
        mixed: Floats = np.where(total > 0, (rows + types * lower) / np.where(total > 0, total, 1.0), lower)
        return mixed

    return mix(counts, mix(counts.sum(axis=0), np.full(size, 1 / size)))
