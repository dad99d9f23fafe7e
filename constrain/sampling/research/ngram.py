"""NGram: a model of the last few tokens, under which many quantities can be computed exactly.

Its states are contexts: the empty one, and longer ones that were given. After any text the state is the longest context
that is a suffix of the text, so the model backs off from unseen contexts without storing them. It is a `LanguageModel`,
and small enough to be crossed with an automaton (`markov_exact.Product`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError, LimitError, check_choice
from ..core.sampler_arguments import check_counts, end_texts
from .model_samples import sample_model
from .ngram_smoothing import BEGIN, SMALLEST, SMOOTHINGS, Context, choose_contexts

if TYPE_CHECKING:
    from ...engine.constraint import Constraint

__all__ = ["NGram"]

MOST_CELLS = 64_000_000
"""Maximum number of contexts times tokens; the rows then take half a gigabyte."""

Smoothing = Literal["mean", "witten_bell", "kneser_ney"]


class NGram:
    """An n-gram model with back-off.

    contexts: dict from context to its number, closed under dropping the first token, () included. A context that begins
    with BEGIN (-1) stands for the beginning of a text. logs: float64
    [contexts, V], the distribution of the next token in each, natural logs, rows normalised. Raises ValueError for
    other rows, LimitError for more than MOST_CELLS cells.
    """

    def __init__(self, contexts: Iterable[Context], logs: NDArray[np.floating[Any]]) -> None:
        self.contexts: dict[Context, int] = {context: number for number, context in enumerate(contexts)}
        self.logs = np.asarray(logs, dtype=np.float64)
        self.order = max(len(context) for context in self.contexts)
        if self.logs.ndim != 2 or len(self.logs) != len(self.contexts):
            raise ArgumentError(f"logs are {list(self.logs.shape)}: one row for each of {len(self.contexts)} contexts")
        if self.logs.size > MOST_CELLS:
            raise LimitError(
                f"{len(self.logs)} contexts of {self.logs.shape[1]} tokens are more than {MOST_CELLS:,} numbers.",
                hint="Use fewer contexts.",
            )
        lost = [context for context in self.contexts if context and context[1:] not in self.contexts]
        if () not in self.contexts or lost:
            raise ArgumentError(f"{lost[:1] or '[()]'} backs off to no context of the model")
        sums = np.exp(self.logs).sum(axis=1)
        if not np.allclose(sums, 1.0, atol=1e-6):
            raise ArgumentError("the rows of an n-gram model must be log-probabilities that sum to 1")
        self._by_last: dict[int, list[Context]] = defaultdict(list)
        for context in sorted(self.contexts, key=len, reverse=True):
            if context:
                self._by_last[context[-1]].append(context)
        self._lasts = np.array(list(self._by_last), np.int64)
        self._names = list(self.contexts)

    @property
    def start(self) -> int:
        """The state before any token."""
        return self.contexts.get((BEGIN,), self.contexts[()])

    def follow(self, state: int, tokens: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """Return the state after each of the tokens (int [k]): int32 [k]."""
        before, shortest = self._names[state], self.contexts[()]
        out = np.full(len(tokens), shortest, np.int32)
        for position in np.flatnonzero(np.isin(tokens, self._lasts)).tolist():
            text = (*before, int(tokens[position]))
            longer = self._by_last[text[-1]]
            fitting = (self.contexts[c] for c in longer if len(c) <= len(text) and text[len(text) - len(c) :] == c)
            out[position] = next(fitting, shortest)
        return out

    def state(self, tokens: Sequence[int]) -> int:
        """Return the state after a text."""
        last = tuple(tokens[max(0, len(tokens) - self.order) :])
        if len(last) < self.order:
            last = (BEGIN, *last)
        return next(self.contexts[last[i:]] for i in range(len(last) + 1) if last[i:] in self.contexts)

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        """Return the log-probabilities of the next token after each prefix, as every LanguageModel: float64 [n, V]."""
        return self.logs[[self.state(prefix) for prefix in prefixes]]

    # ---- making one -------------------------------------------------------------------------------------------

    @classmethod
    def of_rows(
        cls, rows: Iterable[tuple[Sequence[int], NDArray[np.floating[Any]]]], *, order: int, contexts: int = 256
    ) -> NGram:
        """Estimate a model from distributions of the next token (float [V], probabilities) and the tokens before each.

        A context's distribution is the mean of its rows mixed with the distribution it backs off to, which counts as
        one row. Only the `contexts` most frequent longer contexts are kept.
        """
        check_counts(0, order=order, contexts=contexts)
        sums = _RowSums(order)
        for before, row in rows:
            sums.add(before, row)
        return cls._of_distributions(sums.estimate(contexts))

    @classmethod
    def of_texts(
        cls,
        texts: Iterable[Sequence[int]],
        *,
        end: int,
        size: int,
        order: int = 1,
        contexts: int = 256,
        smoothing: Smoothing = "mean",
    ) -> NGram:
        """Estimate a model from token sequences without the end token, which is `end`; size: of the vocabulary.

        smoothing: how a context is mixed with the one that it backs off to. "mean": as `of_rows`. "witten_bell" or
        "kneser_ney": see `ngram_smoothing`.
        """
        check_choice("smoothing", smoothing, ("mean", *SMOOTHINGS))
        check_counts(0, order=order, contexts=contexts)
        ended = end_texts(texts, end, size)
        if smoothing != "mean":
            return cls._of_texts_with_ends(ended, size, order, contexts, smoothing)
        unit = np.eye(size) if size <= 4096 else None

        def rows() -> Iterable[tuple[Sequence[int], NDArray[np.float64]]]:
            for text in ended:
                for i, token in enumerate(text):
                    row = np.zeros(size) if unit is None else unit[token]
                    row[token] = 1.0
                    yield text[:i], row

        return cls.of_rows(rows(), order=order, contexts=contexts)

    @classmethod
    def distil(
        cls,
        model: Any,
        constraint: Constraint | None = None,
        *,
        n: int,
        rng: np.random.Generator,
        max_tokens: int,
        order: int = 1,
        contexts: int = 256,
        smoothing: Literal["rows", "witten_bell", "kneser_ney"] = "rows",
        tokenizer: Any = None,
        prompts: Sequence[Any] = (None,),
        temperature: float = 1.0,
        batch: int = 32,
    ) -> NGram:
        """Estimate an n-gram model from texts of another model.

        Parameters
        ----------
        model, constraint, n, rng, max_tokens, tokenizer, prompts, temperature, batch
            As of `model_samples.sample_model`. With a constraint, texts satisfy it, so that the model is good where the
            constraint needs it.
        order : int
            Number of tokens of the longest contexts.
        contexts : int
            Number of contexts that are kept, besides the empty one: the most frequent ones.
        smoothing : {"rows", "witten_bell", "kneser_ney"}
            "rows": every context has the mean of the model's own distributions along the texts, tokens that the
            constraint refuses included (`of_rows`). The others count the tokens of the texts only (`ngram_smoothing`),
            so with a constraint they imitate masking, which never leaves it, and are no twist.

        Returns
        -------
        NGram
        """
        check_choice("smoothing", smoothing, ("rows", *SMOOTHINGS))
        check_counts(0, order=order, contexts=contexts)
        sums = _RowSums(order)

        def read_row(before: list[int], row: NDArray[np.floating[Any]]) -> None:
            sums.add([BEGIN, *before], np.exp(np.asarray(row, np.float64)))

        samples = sample_model(
            model, constraint, n=n, rng=rng, max_tokens=max_tokens, tokenizer=tokenizer, prompts=prompts,
            temperature=temperature, batch=batch, read_row=read_row if smoothing == "rows" else None,
        )  # fmt: skip
        if smoothing == "rows":
            return cls._of_distributions(sums.estimate(contexts))
        return cls._of_texts_with_ends(samples.texts, samples.size, order, contexts, smoothing)

    @classmethod
    def _of_texts_with_ends(
        cls, texts: Sequence[Sequence[int]], size: int, order: int, contexts: int, smoothing: Smoothing
    ) -> NGram:
        estimate = SMOOTHINGS[smoothing]
        return cls._of_distributions(estimate(texts, size, order, contexts))

    @classmethod
    def _of_distributions(cls, distributions: dict[Context, NDArray[np.float64]]) -> NGram:
        return cls(distributions, np.log(np.array(list(distributions.values()))))


class _RowSums:
    """Sums of rows by the contexts that end where they begin."""

    def __init__(self, order: int) -> None:
        self.order = order
        self.sums: dict[Context, NDArray[np.float64]] = {}
        self.seen: dict[Context, int] = defaultdict(int)

    def add(self, before: Sequence[int], row: NDArray[np.floating[Any]]) -> None:
        """Add the distribution (float [V], probabilities) after some tokens."""
        for length in range(min(self.order, len(before)) + 1):
            context = tuple(before[len(before) - length :])
            self.seen[context] += 1
            if context in self.sums:
                self.sums[context] += row
            elif len(self.sums) * len(row) <= 2 * MOST_CELLS:
                self.sums[context] = np.array(row, dtype=np.float64)

    def estimate(self, contexts: int) -> dict[Context, NDArray[np.float64]]:
        """Return the distributions of the most frequent contexts, shorter ones first."""
        if not self.seen:
            raise ArgumentError("there is no row to learn from")
        distributions: dict[Context, NDArray[np.float64]] = {}
        even = np.full(len(self.sums[()]), 1 / len(self.sums[()]))
        frequencies = {context: self.seen[context] for context in self.sums}
        for context in choose_contexts(frequencies, contexts):
            lower = distributions[context[1:]] if context else even
            mixed = (self.sums[context] + lower) / (self.seen[context] + 1) + SMALLEST * even
            distributions[context] = mixed / mixed.sum()
        return distributions
