"""Stochastic beam search: texts drawn without replacement by Gumbel top-k over sequences (Kool et al. 2019).

Let q be the model renormalised by the mask at every token. Perturb log q of every text with independent Gumbel noise:
the n largest are a sample of n texts from q without replacement. They are found top down, because the maximum over all
texts that begin with a prefix u is itself Gumbel with location log q(u), and given that maximum, the maxima over its
children are Gumbel variables conditioned on their own maximum. Here -G is the log of an arrival time: exp(-G) is
exponential with rate q(u), and by memorylessness the children that are not first arrive after further independent
exponential times.

At each step one call of the model expands all prefixes that are among the n + 1 earliest. Without dead ends these are
the beams of Kool et al. A prefix that reaches max_tokens and cannot end is dropped, and the next in order, which a beam
would have lost, takes its place: so there are n different texts whenever the language has them.

*Weights*: let t be the time of text n + 1. A text x is among the first n with probability 1 - exp(-t q(x)), and sums of
p(x) f(x) divided by that are unbiased (Horvitz and Thompson 1952; Kool et al., section 4.2).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from ..base.errors import TokenRefused, UnsupportedError, check_type
from ..sampling.core.language_model import LanguageModel
from ..sampling.core.results import log_sum
from ..sampling.without_replacement import log_inclusion
from .candidate_order import top_falling
from .hypotheses import END, Candidate, Hypothesis, Row, Searchable, SearchSpace, check_search_arguments
from .search_options import StochasticBeams
from .search_results import FoundAnswer, FoundAnswers, FoundTokens

__all__ = ["stochastic_beam_search"]

LISTED = 32
"""Least number of children that are listed when a prefix is expanded."""


def stochastic_beam_search(
    lm: LanguageModel,
    constraint: Searchable,
    options: StochasticBeams = StochasticBeams(),
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int = 512,
) -> FoundAnswers:
    """Draw n different token sequences without replacement from the model under the mask.

    Parameters
    ----------
    lm, constraint, max_tokens
        As in `beam_search`. The constraint must compute masks.
    options : StochasticBeams
    n : int
        Number of token sequences, all different. Different sequences may spell the same text.
    rng : numpy.random.Generator
        The only source of randomness.

    Returns
    -------
    FoundAnswers
        In the order in which sampling without replacement draws them; all texts if there are fewer than n. `score` is
        the perturbed log-probability. The mean over the answers of exp(log_weight) f is an unbiased estimate of the sum
        of p(x) f(x) over the texts of at most max_tokens tokens, as for the draws of samplers. ``stats["log_time"]`` is
        the log of the time t, inf if all texts were drawn; ``stats["missing"]`` is above 0 if max_calls was reached.

    Raises
    ------
    LimitError
        If no text ends within max_tokens.
    UnsupportedError
        If the constraint does not compute masks.
    """
    check_search_arguments(lm, constraint, n, max_tokens)
    check_type("options", options, StochasticBeams, "give a StochasticBeams")
    if isinstance(rng, type) or not (hasattr(rng, "random") and hasattr(rng, "exponential")):
        raise TypeError(f"rng is a {type(rng).__name__}: give numpy.random.default_rng(seed)")
    if not hasattr(constraint.matcher(), "mask"):
        raise UnsupportedError(
            "stochastic beam search needs masks, which this constraint does not compute",
            hint='Use constrain.sampling.draw(..., sampler="without_replacement") with a Constraint.',
        )
    return ArrivalBeams(lm, constraint, options, n, rng, max_tokens).search()


@dataclass(frozen=True, slots=True, eq=False)
class Arriving:
    """A prefix, a child of one, or an end, with a known time of arrival.

    time: log of the time. logq: log-probability under the mask. prefix: None before a candidate was appended. earlier:
    children of the prefix that arrived before (their indices); then `time` is a lower bound of the next one.
    """

    time: float
    logq: float
    candidate: Candidate | None
    prefix: Hypothesis | None = None
    earlier: frozenset[int] | None = None

    @property
    def has_ended(self) -> bool:
        return self.candidate is not None and self.candidate.token == END


class ArrivalBeams:
    """The queue of one search, in order of arrival."""

    def __init__(
        self,
        lm: LanguageModel,
        constraint: Searchable,
        options: StochasticBeams,
        n: int,
        rng: np.random.Generator,
        max_tokens: int,
    ) -> None:
        self.space = SearchSpace(lm, constraint, max_tokens)
        self.options, self.n, self.rng = options, n, rng
        self.number = count()
        self.queue: list[tuple[float, int, Arriving]] = []
        self.push(Arriving(float(np.log(rng.exponential())), 0.0, None, self.space.start()))

    def push(self, entry: Arriving) -> None:
        heapq.heappush(self.queue, (entry.time, next(self.number), entry))

    def search(self) -> FoundAnswers:
        """Expand the n + 1 earliest entries until all of them are texts."""
        while True:
            earliest = [heapq.heappop(self.queue)[2] for _ in range(min(self.n + 1, len(self.queue)))]
            texts = [entry for entry in earliest if entry.has_ended]
            beams = [entry for entry in earliest if not entry.has_ended]
            if not beams:
                return self.build_answers(texts[: self.n], texts[self.n].time if len(texts) > self.n else np.inf, 0)
            if self.space.calls >= self.options.max_calls:
                drawn = [entry for entry in texts if entry.time < beams[0].time]
                return self.build_answers(drawn, beams[0].time, self.n - len(drawn))
            prefixes = [self.open_prefix(entry) for entry in beams]
            rows = self.space.request_rows([prefix.tokens for prefix in prefixes])
            for entry in texts:
                self.push(entry)
            for entry, prefix, row in zip(beams, prefixes, rows):
                self.expand(entry, prefix, row)

    def open_prefix(self, entry: Arriving) -> Hypothesis:
        """Return the prefix of an entry; append the token of a candidate."""
        if entry.prefix is not None:
            return entry.prefix
        assert entry.candidate is not None
        if not self.space.admit(entry.candidate):
            raise TokenRefused(f"token {entry.candidate.token} is in the mask, but refused")
        return entry.candidate.extend()

    def expand(self, entry: Arriving, prefix: Hypothesis, row: Row) -> None:
        """Queue the children of a prefix that arrive next."""
        children = self.space.list_children(prefix, row)
        logs = np.concatenate(([children.end], children.logs))
        mass = log_sum(logs)
        if mass == -np.inf:  # the text may neither end nor continue
            return
        logq = entry.logq + logs - mass
        times = self.draw_times(entry, logq)
        listed = max(LISTED, self.n + 1)
        order = top_falling(-times, listed + 1).tolist()
        order = [index for index in order if times[index] < np.inf]
        for index in order[:listed]:
            token = END if index == 0 else int(children.tokens[index - 1])
            step = float(logs[index])
            candidate = Candidate(prefix, token, step, -float(times[index]))
            self.push(Arriving(float(times[index]), float(logq[index]), candidate))
        if len(order) > listed:
            earlier = frozenset(order[:listed]) | (entry.earlier or frozenset())
            self.push(Arriving(float(times[order[listed - 1]]), entry.logq, None, prefix, earlier))

    def draw_times(self, entry: Arriving, logq: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logs of the times of children (float64 [k]), inf for those that arrived earlier.

        Without earlier children the first one arrives at the time of the entry itself; otherwise all arrive after it.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.log(self.rng.exponential(size=len(logq))) - logq
            times[logq == -np.inf] = np.inf
            if entry.earlier is None:
                least = times.min()
                waits = times + np.log1p(-np.exp(least - times))
                waits[times == least] = -np.inf
                waits[times == np.inf] = np.inf
            else:
                waits = times
                waits[list(entry.earlier)] = np.inf
        after: NDArray[np.float64] = np.logaddexp(entry.time, waits)
        return after

    def build_answers(self, texts: list[Arriving], log_time: float, missing: int) -> FoundAnswers:
        """Return the texts that arrived before a time."""
        if not texts:
            raise self.space.nothing_found()
        answers = tuple(self.build_answer(entry, log_time, len(texts)) for entry in texts)
        return FoundAnswers(answers, {**self.space.stats, "log_time": log_time, "missing": missing})

    def build_answer(self, entry: Arriving, log_time: float, drawn: int) -> FoundAnswer:
        """Return a text with its weight."""
        ended = entry.candidate
        assert ended is not None
        found = FoundTokens(ended.parent.tokens, (*ended.parent.steps, ended.step))
        text = self.space.vocabulary.transcript(found.tokens).decode("utf-8", "replace")
        log_weight = found.logprob - log_inclusion(entry.logq, log_time) + float(np.log(drawn))
        return FoundAnswer(text, found.logprob, -entry.time, (found,), log_weight)
