"""φ-decoding: blocks of tokens are chosen by where they lead (Xu et al. 2025).

At each step, blocks are drawn after every text, and each is continued greedily for a few tokens: its foresight. Two
numbers rate a block (section 3.2):

    advantage   log-probability per token of block and foresight, minus that of the text it follows
    alignment   how like its foresight is to those of the others (the paper: the share of its cluster)

The next texts are drawn without replacement from the mean of the softmaxes of both. Blocks whose own log-probability
per token is below the mean by more than a standard deviation are dropped before they are continued (in-width pruning,
section 3.3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..sampling import LanguageModel
from ..search.hypotheses import Searchable, SearchSpace, check_search_arguments
from ..search.search_results import AnswerPool, FoundAnswers
from .answer_utilities import compare_characters
from .decision_options import PhiDecoding
from .rollouts import Branch, continue_branches, continue_each, open_space, start_branch

__all__ = ["decide_by_foresight"]

Floats = NDArray[np.float64]


def decide_by_foresight(
    lm: LanguageModel,
    constraint: Searchable,
    options: PhiDecoding = PhiDecoding(),
    *,
    n: int = 1,
    rng: np.random.Generator,
    max_tokens: int = 512,
) -> FoundAnswers:
    """Write texts block by block, chosen by their foresight.

    Parameters
    ----------
    lm, constraint, max_tokens
        As in `search.beam_search`.
    options : PhiDecoding
        How many texts and blocks, and how long.
    n : int
        Most answers that are returned, at most `options.width`.
    rng : numpy.random.Generator
        The only source of randomness.

    Returns
    -------
    FoundAnswers
        Largest log-probability per token first, which is their score.

    Raises
    ------
    LimitError
        If no text ends within max_tokens.
    """
    check_search_arguments(lm, constraint, n, max_tokens)
    space = open_space(lm, constraint, max_tokens)
    pool = AnswerPool(constraint.vocabulary, "text", lambda logprob, length: logprob / length)
    texts = [start_branch(space)]
    while texts:
        texts = choose_blocks(space, texts, options, rng)
        for one in texts:
            if one.end is not None:
                pool.add(one.found)
        texts = [one for one in texts if one.end is None]
    if not pool.groups:
        raise space.nothing_found()
    return FoundAnswers(pool.best(n), space.stats)


def choose_blocks(
    space: SearchSpace, texts: list[Branch], options: PhiDecoding, rng: np.random.Generator
) -> list[Branch]:
    """Return the texts of the next step, at most `width`, among them those that ended."""
    drawn: dict[tuple[tuple[int, ...], bool], tuple[Branch, float]] = {}
    for text in texts:
        for one in continue_branches(space, [text] * options.rollouts, options.block, rng):
            drawn[one.head.tokens, one.end is not None] = one, measure_rate(text)
    kept = prune_blocks(list(drawn.values())) if drawn else []
    reached = continue_each(space, [block for block, _ in kept], options.foresight)
    rated = [(block, before, end) for (block, before), end in zip(kept, reached) if end is not None]
    if not rated:
        return []
    blocks = [block for block, _, _ in rated]
    advantage = np.array([measure_rate(end) - before for _, before, end in rated])
    begun = min(len(text.head.text) for text in texts)
    ahead = [end.head.text[begun:].decode("utf-8", "replace") for _, _, end in rated]
    alignment = np.array([np.mean([compare_characters(one, other) for other in ahead]) for one in ahead])
    shares = (soften(advantage, options.temperature) + soften(alignment, options.temperature)) / 2
    count = min(options.width, int((shares > 0).sum()))
    if options.temperature == 0:
        return [blocks[i] for i in np.argsort(-shares, kind="stable")[:count]]
    return [blocks[i] for i in rng.choice(len(blocks), count, replace=False, p=shares)]


def prune_blocks(drawn: list[tuple[Branch, float]]) -> list[tuple[Branch, float]]:
    """Drop blocks that are less likely per token than the mean by more than a standard deviation."""
    rates = np.array([measure_rate(block) for block, _ in drawn])
    least = rates.mean() - rates.std() - 1e-9
    return [one for one, rate in zip(drawn, rates.tolist()) if rate >= least]


def measure_rate(text: Branch) -> float:
    """Return the log-probability per token, end included; 0 for the empty text."""
    length = len(text.head.tokens) + (text.end is not None)
    return text.logprob / length if length else 0.0


def soften(values: Floats, temperature: float) -> Floats:
    """Return the softmax at a temperature; at 0 all of the mass is on the largest."""
    if temperature == 0:
        weights: Floats = (values == values.max()).astype(np.float64)
    else:
        weights = np.exp((values - values.max()) / temperature)
    shares: Floats = weights / weights.sum()
    return shares
