"""Best-first search: the likeliest texts of a constraint, with proof.

Log-probabilities of tokens are at most 0, so the log-probability of a prefix bounds that of every text that begins with
it. Prefixes wait in a queue, those with the largest bound first (A* search with the heuristic 0, which is admissible;
Dijkstra's algorithm on the tree of prefixes). When n answers are found and no bound in the queue exceeds the worst of
them, they are the n likeliest: `optimal` is then True. If the calls of the model are used up before, the answers are
the best so far, and `bound` says how likely what is missing may be. A beam search gives the first answers, as in branch
and bound.

Answers that are distinct by text or value are ranked by the likeliest token sequence of each; probabilities of further
spellings are added if these were found on the way.

A prefix is expanded into its likeliest children only, and waits in the queue with the bound of the others; they are
listed when that bound is reached, for which the model is called again.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import LimitError, check_type
from ..sampling.core.language_model import LanguageModel
from .beam_decoding import beam_search
from .candidate_order import top_falling
from .completion_budget import CompletionBudget
from .hypotheses import END, Candidate, Hypothesis, Row, Searchable, SearchSpace, check_search_arguments
from .search_options import MOST_WIDTH, BeamSearch, BestFirst
from .search_results import AnswerPool, FoundAnswers, FoundTokens

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["best_first_search"]

LISTED = 64
"""Children that are listed when a prefix is first expanded; each further time there are four times as many."""


def best_first_search(
    lm: LanguageModel,
    constraint: Searchable,
    options: BestFirst = BestFirst(),
    *,
    n: int = 1,
    max_tokens: int = 512,
) -> FoundAnswers:
    """Search for the n likeliest texts of a constraint.

    Parameters
    ----------
    lm, constraint, max_tokens
        As in `beam_search`.
    options : BestFirst
        Budget of model calls, and how answers are compared.
    n : int
        Number of answers.

    Returns
    -------
    FoundAnswers
        The likeliest first; fewer than n if there are no more, or if the calls are used up. `optimal` says whether they
        are proven to be the likeliest; otherwise `bound` is the log-probability that no missing text exceeds.

    Raises
    ------
    LimitError
        If no text was found.
    """
    check_search_arguments(lm, constraint, n, max_tokens)
    check_type("options", options, BestFirst, "give a BestFirst, such as BestFirst(max_calls=100)")
    return PrefixQueue(lm, constraint, options, n, max_tokens).search()


@dataclass(frozen=True, slots=True, eq=False)
class OpenPrefix:
    """A prefix whose children from number `listed` on (in falling order) are not in the queue. bound: the largest
    log-probability of a text that begins with it and one of them.
    """

    prefix: Hypothesis
    listed: int
    bound: float


class PrefixQueue:
    """The queue of one search. Its entries are prefixes, and candidates: tokens that were not yet appended to one."""

    def __init__(self, lm: LanguageModel, constraint: Searchable, options: BestFirst, n: int, max_tokens: int) -> None:
        informed = options.heuristic == "completion"
        self.budget = CompletionBudget(constraint.vocabulary, max_tokens) if informed else None
        self.space = SearchSpace(lm, constraint, max_tokens, budget=self.budget)
        self.options, self.n = options, n
        self.pool = AnswerPool(constraint.vocabulary, options.distinct, lambda logprob, length: logprob)
        self.least = -np.inf  # log-probability of the n-th best answer
        self.dropped = -np.inf  # largest bound of what was dropped because of it
        self.queue: list[tuple[float, int, OpenPrefix | Candidate]] = []
        self.number = count()
        self.push(OpenPrefix(self.space.start(), 0, 0.0), 0.0)
        self.stats: dict[str, float] = {}
        if options.beam:
            self.search_beam(lm, constraint, max_tokens)

    def search_beam(self, lm: LanguageModel, constraint: Searchable, max_tokens: int) -> None:
        """Record the answers of a beam search."""
        options = BeamSearch(width=min(max(self.options.beam, self.n), MOST_WIDTH), distinct=self.options.distinct)
        try:
            found = beam_search(lm, constraint, options, n=options.width, max_tokens=max_tokens)
        except LimitError:  # nothing found
            return
        self.stats = found.stats
        for answer in found:
            for spelling in answer.spellings:
                self.pool.add(spelling)
        self.least = self.pool.kth_logprob(self.n)

    def push(self, entry: OpenPrefix | Candidate, key: float) -> None:
        heapq.heappush(self.queue, (-key, next(self.number), entry))

    def search(self) -> FoundAnswers:
        """Expand prefixes until the answers are proven, or the calls are used up."""
        while self.queue and self.space.calls < self.options.max_calls:
            batch = self.next_prefixes()
            if batch:
                rows = self.space.request_rows([entry.prefix.tokens for entry in batch])
                for entry, row in zip(batch, rows):
                    self.expand(entry, row)
        unused = self.pool.kth_logprob(self.n + 1)
        bound = max([self.dropped, unused, *(bound_of(entry) for _, _, entry in self.queue)])
        if not self.pool.groups:
            raise self.space.nothing_found()
        stats = {name: count + self.stats.get(name, 0) for name, count in self.space.stats.items()}
        return FoundAnswers(self.pool.best(self.n), stats, bool(bound <= self.least), bound)

    def next_prefixes(self) -> list[OpenPrefix]:
        """Take prefixes for one call of the model from the queue, and record the texts that end before them."""
        batch: list[OpenPrefix] = []
        while self.queue and len(batch) < self.options.together:
            _, _, entry = heapq.heappop(self.queue)
            if bound_of(entry) <= self.least:
                self.dropped = max(self.dropped, bound_of(entry))
                continue
            if isinstance(entry, OpenPrefix):
                batch.append(entry)
            elif self.space.admit(entry):
                if entry.token == END:
                    self.record(entry)
                else:
                    batch.append(OpenPrefix(entry.extend(), 0, entry.logprob))
        return batch

    def record(self, ended: Candidate) -> None:
        """Add a text to the answers."""
        self.pool.add(FoundTokens(ended.parent.tokens, (*ended.parent.steps, ended.step)))
        self.least = self.pool.kth_logprob(self.n)

    def expand(self, entry: OpenPrefix, row: Row) -> None:
        """Queue the next children of a prefix, its end the first time, and the prefix itself if there are more."""
        prefix, listed = entry.prefix, entry.listed
        children = self.space.list_children(prefix, row)
        if children.end > -np.inf and listed == 0:
            bound = prefix.logprob + children.end
            self.push(Candidate(prefix, END, children.end, bound), bound)
        until = max(LISTED, 4 * listed)
        order: Sequence[int] = top_falling(children.logs, until + 1).tolist()
        penalty = self.penalty(prefix)
        for index in order[listed:until]:
            step = float(children.logs[index])
            bound = prefix.logprob + step
            if bound <= self.least:
                self.dropped = max(self.dropped, bound)
                return
            self.push(Candidate(prefix, int(children.tokens[index]), step, bound), bound - penalty)
        if len(order) > until:
            bound = prefix.logprob + float(children.logs[order[until]])
            self.push(OpenPrefix(prefix, until, bound), bound - penalty)

    def penalty(self, prefix: Hypothesis) -> float:
        """Return what the heuristic subtracts from the bound of what follows a prefix."""
        if self.budget is None or prefix.completion is None:
            return 0.0
        return self.options.weight * (self.budget.budget.length(prefix.completion) or 0)


def bound_of(entry: OpenPrefix | Candidate) -> float:
    """Return the largest log-probability of a text of an entry."""
    return entry.bound if isinstance(entry, OpenPrefix) else entry.logprob
