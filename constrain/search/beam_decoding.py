"""Beam search under a constraint.

At each step one call of the model gives the rows after all hypotheses; their allowed children are ranked by
log-probability, and `beam_selection` says which are continued. A hypothesis carries a completion that fits into the
remaining tokens (`completion_budget`), and hypotheses without one are continued only where there are too few others: so
every answer is complete, and with a beam as wide as the language the search is exhaustive. Finished texts collect in a
pool, and `beam_stopping` decides when to end.

*Diverse beams* (Vijayakumar et al. 2018): groups choose one after the other, and a token that earlier groups chose at
this step is penalised (Hamming diversity). The penalty decides what is continued, and is not part of log-probabilities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, check_type
from ..sampling.core.language_model import LanguageModel
from ..sampling.critics import as_guide
from .beam_selection import CandidateStreams, split_banks, split_candidates, take_candidates
from .beam_stopping import StoppingRule
from .candidate_judge import CandidateJudge
from .candidate_order import iterate_falling
from .completion_budget import CompletionBudget
from .hypotheses import END, Candidate, Children, Hypothesis, Row, Searchable, SearchSpace, check_search_arguments
from .lookahead_scores import add_lookahead
from .phrase_progress import PhraseProgress, PhraseState
from .search_options import BeamSearch
from .search_results import AnswerPool, FoundAnswers, FoundTokens

__all__ = ["beam_search"]


def beam_search(
    lm: LanguageModel,
    constraint: Searchable,
    options: BeamSearch = BeamSearch(),
    *,
    n: int = 1,
    max_tokens: int = 512,
) -> FoundAnswers:
    """Search for likely texts of a constraint with a beam.

    Parameters
    ----------
    lm : LanguageModel
        The model, after its prompt, such as a `TransformersModel`.
    constraint : Constraint or Checker
        What the texts must satisfy. A Checker, whose answers may be slow, is asked only about the likeliest tokens,
        until as many were accepted as the beam holds.
    options : BeamSearch
        The width of the beam and everything else.
    n : int
        Most answers that are returned.
    max_tokens : int
        Most tokens of a text, end token included.

    Returns
    -------
    FoundAnswers
        At most n answers, best score first; all of them are complete.

    Raises
    ------
    LimitError
        If no text ends within max_tokens.
    ArgumentError
        If n is more than the number of texts that the search collects.
    """
    check_search_arguments(lm, constraint, n, max_tokens)
    check_type("options", options, BeamSearch, "give a BeamSearch, such as BeamSearch(width=8)")
    if n > int(np.ceil(options.patience * options.width)):
        raise ArgumentError(f"n is {n}: a beam of width {options.width} finds at most patience * width texts")
    return BeamDecoder(lm, constraint, options, max_tokens).search(n)


class BeamDecoder:
    """The state of one beam search: the hypotheses and finished texts of each group."""

    def __init__(self, lm: LanguageModel, constraint: Searchable, options: BeamSearch, max_tokens: int) -> None:
        vocabulary = constraint.vocabulary
        banks = options.phrases
        self.options, self.width = options, options.width // options.groups
        self.phrases = None if banks is None else PhraseProgress(banks.clauses, vocabulary)
        budget = CompletionBudget(vocabulary, max_tokens, self.phrases)
        self.space = SearchSpace(lm, constraint, max_tokens, self.phrases, budget)
        self.stopping = StoppingRule(options, self.width, max_tokens)
        self.beams: list[list[Hypothesis]] = [[self.space.start()] for _ in range(options.groups)]
        self.texts: list[dict[bytes, float]] = [{} for _ in range(options.groups)]
        self.judge = None if options.critic is None else CandidateJudge(as_guide(options.critic), self.space)
        bonus = None if self.judge is None else self.judge.judge_text
        self.pools = [
            AnswerPool(vocabulary, options.distinct, self.stopping.score, bonus) for _ in range(options.groups)
        ]

    def search(self, n: int) -> FoundAnswers:
        """Return at most n answers."""
        while any(self.beams):
            self.step()
        pool = self.pools[0]
        for other in self.pools[1:]:
            pool.merge(other)
        if not pool.groups:
            raise self.space.nothing_found()
        return FoundAnswers(pool.best(n), self.space.stats)

    def step(self) -> None:
        """Extend the hypotheses of all groups by one token, with one call of the model."""
        rows = iter(self.space.request_rows([one.tokens for beam in self.beams for one in beam]))
        self.space.known = {}
        chosen: Counter[int] = Counter()
        for group, beam in enumerate(self.beams):
            streams = self.list_streams([(one, next(rows)) for one in beam], chosen)
            running, ended = self.select(streams, self.texts[group])
            for candidate in ended:
                tokens, steps = candidate.parent.tokens, (*candidate.parent.steps, candidate.step)
                self.pools[group].add(FoundTokens(tokens, steps))
            self.beams[group] = [candidate.extend() for candidate in running]
            chosen.update(candidate.token for candidate in running)
            self.note_texts(group)
            self.end_if_done(group)

    def end_if_done(self, group: int) -> None:
        """Drop the hypotheses of a group if they cannot change its result."""
        beam = self.beams[group]
        if beam:
            best = max(one.logprob for one in beam) + (0.0 if self.judge is None else self.judge.guide.bound)
            if self.stopping.has_ended(self.pools[group], best, len(beam[0].tokens)):
                self.beams[group] = []

    def note_texts(self, group: int) -> None:
        """Record the texts of the hypotheses of a group, so that other spellings of them come last."""
        known = self.texts[group]
        if self.options.distinct != "tokens":
            for one in self.beams[group]:
                known[one.text] = max(one.logprob, known.get(one.text, -np.inf))

    def select(
        self, banks: dict[int, CandidateStreams], texts: dict[bytes, float]
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Return the candidates that are continued and those that end."""
        ahead, options = self.options.lookahead, self.options.phrases
        slots = self.width * (ahead.breadth if ahead.steps or self.judge is not None else 1)
        known = None if self.options.distinct == "tokens" else texts
        taken = {bank: take_candidates(self.space, streams, slots, known) for bank, streams in banks.items()}
        if ahead.steps:
            add_lookahead(self.space, [one for candidates in taken.values() for one in candidates], ahead)
        if self.judge is not None:
            self.judge.add_judgements([one for candidates in taken.values() for one in candidates])
        if ahead.steps or self.judge is not None:
            taken = {bank: sorted(candidates, key=lambda one: one.rank) for bank, candidates in taken.items()}
        if not taken:
            return [], []
        return split_candidates(taken[0], self.width) if options is None else split_banks(taken, options, self.width)

    def list_streams(self, beam: list[tuple[Hypothesis, Row]], chosen: Counter[int]) -> dict[int, CandidateStreams]:
        """Return the candidates after each hypothesis of a group, by bank; there is only bank 0 without phrases.

        chosen: how many earlier groups chose each token.
        """
        banks: dict[int, CandidateStreams] = {}
        for parent, row in beam:
            children = self.space.list_children(parent, row)
            bonus = np.zeros(len(children.tokens))
            numbers = np.zeros(len(children.tokens), np.int64)
            if self.phrases is not None:
                numbers, bonus = self.score_phrases(parent, children)
            for token, times in chosen.items():
                bonus[children.tokens == token] -= self.options.diversity * times
            closing = self.closing_index(parent, children)
            for bank in np.unique(numbers).tolist():
                streams = banks.setdefault(bank, CandidateStreams())
                indices = np.flatnonzero(numbers == bank)
                if closing is not None and numbers[closing] == bank:
                    indices = indices[indices != closing]
                    streams.certain += self.stream(parent, children, np.array([closing]), bonus)
                into = streams.others if parent.completion is None else streams.fitting
                into.append(self.stream(parent, children, indices, bonus))
            if children.end > -np.inf:
                bank = 0 if self.phrases is None else self.bank_of(parent.phrases)
                end = Candidate(parent, END, children.end, parent.logprob + children.end)
                banks.setdefault(bank, CandidateStreams()).certain.append(end)
        return banks

    def stream(
        self, parent: Hypothesis, children: Children, indices: NDArray[np.int64], bonus: NDArray[np.float64]
    ) -> Iterator[Candidate]:
        """Yield some children (int64 [k], indices) in falling order of log-probability plus bonus."""
        keys = parent.logprob + children.logs[indices] + bonus[indices]
        for i in iterate_falling(keys):
            index = indices[i]
            yield Candidate(parent, int(children.tokens[index]), float(children.logs[index]), float(keys[i]))

    def closing_index(self, parent: Hypothesis, children: Children) -> int | None:
        """Return the index of the child with which the completion of a hypothesis begins, or None."""
        assert self.space.budget is not None
        token = self.space.budget.closing_token(parent.completion)
        found = np.flatnonzero(children.tokens == (END if token is None else token))
        return int(found[0]) if len(found) else None

    def bank_of(self, state: PhraseState) -> int:
        """Return the bank of a state: its progress, or the set of clauses met."""
        assert self.phrases is not None and self.options.phrases is not None
        return state[1] if self.options.phrases.method == "clauses" else self.phrases.bank(state)

    def score_phrases(self, parent: Hypothesis, children: Children) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the bank of each child (int64 [k]) and the reward of its phrases (float64 [k])."""
        assert self.phrases is not None and self.options.phrases is not None
        node, met = parent.phrases
        moves = self.phrases.moves_from(node)
        classes, states = moves.classes[children.tokens], moves.states_after(met)
        banks = np.array([self.bank_of(state) for state in states], np.int64)
        rewards = np.array([self.options.phrases.reward * self.phrases.measure(state) for state in states])
        return banks[classes], rewards[classes]
