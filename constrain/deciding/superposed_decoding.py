"""Superposed decoding: several drafts with one row of the model per token (Shen et al. 2024).

The model reads a mean of embeddings in place of a token, so that one pass serves all drafts. At each step the row p
after the superposed positions is shared by the drafts; what follows draft i is rated by

    log P(draft i) + log of  p(token) ** (1 - a) q(token | last token of draft i) ** a,  normalised under its mask

where q is a bigram model of the prompt, which tells drafts apart that p does not, and a the option `bigrams`. The best
tokens over all drafts make the next drafts. Each draft has a position in the constraint of its own, so all are valid;
a draft that has ended keeps its place. At the end the drafts are scored by the model itself, in one call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..base.errors import UnsupportedError
from ..sampling import LanguageModel
from ..sampling.core.results import log_sum
from ..search.candidate_order import iterate_falling
from ..search.hypotheses import Candidate, Searchable, SearchSpace, check_search_arguments
from ..search.search_results import AnswerPool, FoundAnswers, FoundTokens
from .decision_options import Superposed
from .rollouts import Branch, open_space, start_branch

__all__ = ["Bigrams", "SuperposingModel", "decide_by_superposition"]

Floats = NDArray[np.float64]


@runtime_checkable
class SuperposingModel(Protocol):
    """A `LanguageModel` that can read mixtures of tokens."""

    prompt_ids: list[int]

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.floating[Any]]: ...
    def next_superposed(self, mixtures: Sequence[Mapping[int, float]]) -> NDArray[np.floating[Any]]:
        """Return the log-probabilities of the next token (float [V]) after the prompt and positions that are each a
        mean of tokens: token -> its weight, which sum to 1.
        """
        ...


class Bigrams:
    """A bigram model of some tokens, uniform after tokens that it has not seen."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self.counts: dict[int, Counter[int]] = {}
        for one, following in zip(tokens, tokens[1:]):
            self.counts.setdefault(one, Counter())[following] += 1

    def list_logs(self, last: int | None, tokens: NDArray[np.int64]) -> Floats:
        """Return log q of each of some tokens (int64 [k]) after another one: float64 [k], up to a constant; each token
        counts once more than it was seen.
        """
        seen = self.counts.get(-1 if last is None else last, Counter())
        return np.log1p(np.array([seen[token] for token in tokens.tolist()], np.float64))


def decide_by_superposition(
    lm: LanguageModel,
    constraint: Searchable,
    options: Superposed = Superposed(),
    *,
    n: int = 1,
    rng: np.random.Generator | None = None,
    max_tokens: int = 512,
) -> FoundAnswers:
    """Write drafts side by side, with one row of the model per token.

    Parameters
    ----------
    lm : SuperposingModel
        Such as `integrations.superposed_model.SuperposedModel`.
    constraint, max_tokens
        As in `search.beam_search`.
    options : Superposed
        How many drafts, and the weight of the bigram model.
    n : int
        Most answers that are returned, at most `options.drafts`.
    rng : numpy.random.Generator, optional
        Not used: the search is deterministic.

    Returns
    -------
    FoundAnswers
        Largest log-probability under the model first. The stats have `superposed_calls`, the passes that wrote the
        drafts; `model_calls` counts them and the one that scores.

    Raises
    ------
    UnsupportedError
        If the model cannot read mixtures of tokens.
    LimitError
        If no text ends within max_tokens.
    """
    check_search_arguments(lm, constraint, n, max_tokens)
    if not isinstance(lm, SuperposingModel):
        raise UnsupportedError(
            "superposed decoding feeds mixtures of embeddings, which this model does not take",
            hint="Give constrain.generate a model of the transformers library, without penalties and biases.",
        )
    space, bigrams = open_space(lm, constraint, max_tokens), Bigrams(lm.prompt_ids)
    drafts: list[tuple[Branch, float]] = [(start_branch(space), 0.0)]
    mixtures: list[Mapping[int, float]] = []
    calls = 0
    while any(draft.end is None for draft, _ in drafts):
        row, calls = lm.next_superposed(mixtures), calls + 1
        drafts = extend_drafts(space, drafts, row, bigrams, options)
        mixtures.append(mix_last_tokens(drafts))
    if not drafts:
        raise space.nothing_found()
    pool = AnswerPool(constraint.vocabulary, "tokens", lambda logprob, length: logprob)
    for found in score_drafts(lm, [draft.head.tokens for draft, _ in drafts], space.ends):
        pool.add(found)
    stats = {**space.stats, "model_calls": calls + 1.0, "superposed_calls": float(calls)}
    return FoundAnswers(pool.best(n), stats)


def extend_drafts(
    space: SearchSpace,
    drafts: Sequence[tuple[Branch, float]],
    row: NDArray[np.floating[Any]],
    bigrams: Bigrams,
    options: Superposed,
) -> list[tuple[Branch, float]]:
    """Return the best drafts with one token more, and those that have ended, each with its log-probability."""
    following: list[tuple[Branch, float]] = []
    for draft, total in drafts:
        if draft.end is not None:
            following.append((draft, total))
            continue
        children = space.list_children(draft.head, row)
        last = draft.head.tokens[-1] if draft.head.tokens else None
        shared = options.bigrams * bigrams.list_logs(last, children.tokens)
        rated = np.append((1 - options.bigrams) * children.logs + shared, (1 - options.bigrams) * children.end)
        if rated.max() == -np.inf:  # The draft cannot end within the tokens that are left.
            continue
        rated = rated - log_sum(rated)
        taken = 0
        for i in iterate_falling(rated):
            if taken == options.drafts or rated[i] == -np.inf:
                break
            if i == len(children.tokens):
                following.append((Branch(draft.head, children.end), total + float(rated[i])))
                taken += 1
                continue
            candidate = Candidate(draft.head, int(children.tokens[i]), float(children.logs[i]), 0.0)
            if space.admit(candidate) and candidate.fits:
                following.append((Branch(candidate.extend()), total + float(rated[i])))
                taken += 1
    return sorted(following, key=lambda one: -one[1])[: options.drafts]


def mix_last_tokens(drafts: Sequence[tuple[Branch, float]]) -> dict[int, float]:
    """Return the last tokens of the drafts that go on, each with the share of the drafts' probability that has it."""
    running = [(draft.head.tokens[-1], total) for draft, total in drafts if draft.end is None]
    if not running:
        return {}
    top = max(total for _, total in running)
    shares: dict[int, float] = {}
    for token, total in running:
        shares[token] = shares.get(token, 0.0) + float(np.exp(total - top))
    whole = sum(shares.values())
    return {token: share / whole for token, share in shares.items()}


def score_drafts(lm: LanguageModel, texts: Sequence[tuple[int, ...]], ends: Sequence[int]) -> list[FoundTokens]:
    """Return texts with the model's own log-probabilities, computed in one call."""
    prefixes = list(dict.fromkeys(text[:k] for text in texts for k in range(len(text) + 1)))
    rows = dict(zip(prefixes, lm.next_logprobs([list(prefix) for prefix in prefixes])))
    scored = []
    for text in texts:
        steps = [float(rows[text[:k]][token]) for k, token in enumerate(text)]
        scored.append(FoundTokens(text, (*steps, log_sum(rows[text][list(ends)].astype(np.float64)))))
    return scored
