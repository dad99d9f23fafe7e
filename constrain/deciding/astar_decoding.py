"""A*-decoding: best-first search over blocks of tokens, guided by a score of the text so far (Chatziveroglou 2025).

The queue is ordered by log p(u) + weight score(u), where score estimates the log-probability that u leads to a right
answer (a process reward model in the paper). The text with the largest sum is continued by several blocks: the
likeliest tokens, and draws. A text that has ended and is first in the queue is an answer.

If the score is an upper bound of the log-probability of what may follow (an admissible heuristic) and all tokens are
branches, answers come in order of log p + score of the complete text. With draws as branches this is a heuristic.
"""

from __future__ import annotations

import heapq
from itertools import count

import numpy as np

from ..sampling import LanguageModel
from ..sampling.core.numeric_functions import compute_number
from ..search.hypotheses import Searchable, check_search_arguments
from ..search.search_results import FoundAnswer, FoundAnswers
from .decision_options import AStarDecoding
from .rollouts import Branch, continue_branches, open_space, start_branch

__all__ = ["decide_by_astar"]


def decide_by_astar(
    lm: LanguageModel,
    constraint: Searchable,
    options: AStarDecoding = AStarDecoding(),
    *,
    n: int = 1,
    rng: np.random.Generator,
    max_tokens: int = 512,
) -> FoundAnswers:
    """Search for answers of large log-probability plus score.

    Parameters
    ----------
    lm, constraint, max_tokens
        As in `search.beam_search`.
    options : AStarDecoding
        The score, and how texts are continued.
    n : int
        Number of answers.
    rng : numpy.random.Generator
        Draws the branches.

    Returns
    -------
    FoundAnswers
        In the order in which they were found, which is that of the sums; `score` is the sum of an answer. The stats
        have `expansions`. If the expansions are used up, the best text of the queue is completed greedily.

    Raises
    ------
    LimitError
        If no text ends within max_tokens.
    ValueError
        If a score is not a number.
    """
    check_search_arguments(lm, constraint, n, max_tokens)
    space, number = open_space(lm, constraint, max_tokens), count()

    def value(text: Branch) -> float:
        score = 0.0 if options.score is None else compute_number("the score", options.score, text.text)
        return text.logprob + options.weight * score

    first = start_branch(space)
    queue: list[tuple[float, int, Branch]] = [(0.0, next(number), first)]
    answers: dict[str, FoundAnswer] = {}
    expansions = 0
    while queue and len(answers) < n:
        key, _, text = heapq.heappop(queue)
        if text.end is not None:
            answers.setdefault(text.text, FoundAnswer(text.text, text.logprob, -key, (text.found,)))
            continue
        if expansions == options.expansions and answers:
            break
        last = expansions >= options.expansions
        expansions += 1
        following = continue_branches(space, [text], max_tokens if last else options.block)
        if not last:
            following += continue_branches(space, [text] * (options.branches - 1), options.block, rng)
        for one in {(one.head.tokens, one.end is None): one for one in following}.values():
            if (total := value(one)) > -np.inf:
                heapq.heappush(queue, (-total, next(number), one))
    if not answers:
        raise space.nothing_found()
    return FoundAnswers(tuple(answers.values()), {**space.stats, "expansions": float(expansions)})
