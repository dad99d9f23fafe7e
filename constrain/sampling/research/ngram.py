"""NGram: a model of the last few tokens, under which many quantities can be computed exactly.

Its states are contexts: the empty one, and longer ones that were given. After any text the state is the longest context
that is a suffix of the text, so the model backs off from unseen contexts without storing them. It is a `LanguageModel`,
and small enough to be crossed with an automaton (`markov_exact.Product`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError, LimitError
from ..core.language_model import LanguageModel
from ..core.masked_sampling import Proposal, draw_masked as draw_masked

if TYPE_CHECKING:
    from ...engine.constraint import Constraint

__all__ = ["NGram"]

MOST_CELLS = 64_000_000
"""Maximum number of contexts times tokens; the rows then take half a gigabyte."""
SMALLEST = 1e-9
"""Weight of the uniform distribution that is mixed into every estimated row, so that no probability is 0."""

Context = tuple[int, ...]


class NGram:
    """An n-gram model with back-off.

    contexts: dict from context to its number, closed under dropping the first token, () included. logs: float64
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
        self._names = list(self.contexts)

    @property
    def start(self) -> int:
        """The state before any token."""
        return self.contexts[()]

    def follow(self, state: int, tokens: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """Return the state after each of the tokens (int [k]): int32 [k]."""
        before = self._names[state]
        out = np.full(len(tokens), self.start, np.int32)
        for token, longer in self._by_last.items():
            positions = np.flatnonzero(tokens == token)
            if len(positions):
                text = (*before, token)
                fitting = (self.contexts[c] for c in longer if len(c) <= len(text) and text[len(text) - len(c) :] == c)
                out[positions] = next(fitting, self.start)
        return out

    def state(self, tokens: Sequence[int]) -> int:
        """Return the state after a text."""
        last = tuple(tokens[max(0, len(tokens) - self.order) :])
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
        sums: dict[Context, NDArray[np.float64]] = {}
        seen: dict[Context, int] = defaultdict(int)
        for before, row in rows:
            for length in range(min(order, len(before)) + 1):
                context = tuple(before[len(before) - length :])
                seen[context] += 1
                if context in sums:
                    sums[context] += row
                elif len(sums) * len(row) <= 2 * MOST_CELLS:
                    sums[context] = np.array(row, dtype=np.float64)
        if not seen:
            raise ArgumentError("there is no row to learn from")
        by_frequency = sorted((c for c in sums if c), key=lambda c: (-seen[c], len(c), c))
        retained: dict[Context, None] = {(): None}
        for context in by_frequency:
            if len(retained) > contexts:
                break
            for length in range(1, len(context) + 1):
                retained.setdefault(context[len(context) - length :])
        distributions: dict[Context, NDArray[np.float64]] = {}
        for context in sorted(retained, key=len):
            even = np.full(len(sums[()]), 1 / len(sums[()]))
            lower = distributions[context[1:]] if context else even
            mixed = (sums[context] + lower) / (seen[context] + 1) + SMALLEST * even
            distributions[context] = mixed / mixed.sum()
        return cls(distributions, np.log(np.array(list(distributions.values()))))

    @classmethod
    def of_texts(
        cls, texts: Iterable[Sequence[int]], *, end: int, size: int, order: int = 1, contexts: int = 256
    ) -> NGram:
        """Estimate a model from token sequences without the end token, which is `end`; size: of the vocabulary."""
        unit = np.eye(size) if size <= 4096 else None

        def rows() -> Iterable[tuple[Sequence[int], NDArray[np.float64]]]:
            for text in texts:
                for i, token in enumerate([*text, end]):
                    row = np.zeros(size) if unit is None else unit[token]
                    row[token] = 1.0
                    yield text[:i], row

        return cls.of_rows(rows(), order=order, contexts=contexts)

    @classmethod
    def distil(
        cls,
        lm: LanguageModel,
        constraint: Constraint,
        *,
        n: int,
        rng: np.random.Generator,
        max_tokens: int,
        order: int = 1,
        contexts: int = 256,
    ) -> NGram:
        """Estimate a model from another model's own distributions, averaged by context over n masked texts."""
        recorder = _RowRecorder(lm)
        draw_masked(recorder, constraint, n=n, rng=rng, max_tokens=max_tokens, proposal=Proposal())
        return cls.of_rows(recorder.rows, order=order, contexts=contexts)


class _RowRecorder:
    """A LanguageModel that records the rows of another: (prefix, distribution as float64 [V])."""

    def __init__(self, lm: LanguageModel) -> None:
        self.lm, self.rows = lm, list[tuple[list[int], NDArray[np.float64]]]()

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.floating[Any]]:
        answer = self.lm.next_logprobs(prefixes)
        self.rows.extend((list(prefix), np.exp(np.asarray(row, np.float64))) for prefix, row in zip(prefixes, answer))
        return answer
