"""Sampling without replacement: n different texts, by an exponential race over all texts that is evaluated lazily.

Let each text x arrive at a time T(x), exponential with rate p(x). The order of arrival is then that of sampling from p
given L without replacement, and -log T is log p(x) perturbed by Gumbel noise. The first arrival with prefix u has the
rate of the mass of u. Its next token is a with probability proportional to the mass of ua, and by memorylessness the
first arrival with any other next token follows after an exponential time, at the remaining rate. Prefixes therefore
wait in a priority queue by time, the earliest is expanded, and texts come out in order: stochastic beam search (Kool et
al. 2019) of unbounded width, which can enumerate n texts or the whole language. Two orders:

    "exact"   mass p(u) theta(u), with theta from `success_trie`: an arrival that falls into the mass theta(u) - m(u),
              which does not exist, is dropped. The order is that of p given L. Texts that were output are removed
              from the mass, and everything learnt is available to the next call.
    "masked"  mass q(u), renormalised by the mask: arrivals are dropped at dead ends only; fewest calls of the model.

*Weights* (Horvitz-Thompson, as in priority sampling, Duffield et al. 2007): if text n + 1 arrives at time t, a token
sequence arrived earlier with probability 1 - exp(-t p(x)); sums of p(x) divided by that are unbiased.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, LimitError
from ..engine.length_limits import explain_short_limit
from .core.language_model import LanguageModel
from .core.results import Draw, Draws, log_sum
from .core.sampler_arguments import check_common_arguments, check_counts, check_masks, check_validators
from .core.token_masses import draw_index
from .success_trie import END, PrefixDistribution, SuccessTrie, TrieNode
from .success_walks import DistributionSource, Validator

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher

__all__ = ["draw_without_replacement", "log_inclusion"]


def draw_without_replacement(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int,
    order: Literal["exact", "masked"] = "exact",
    trie: SuccessTrie | None = None,
    accepts: Validator | None = None,
    viable: Validator | None = None,
    together: int | None = None,
    prefixes: int = 100_000,
) -> Draws:
    """Draw n different texts without replacement, in order of arrival; all texts if there are no more than n.

    Tokenisations of the same text are one answer: `tokens` and `logprob` are those of the first one that arrived, the
    weight is that of all that arrived in time. Weights make the mean over the draws unbiased: E[mean of w f] = sum of
    p(x) f(x).

    Parameters
    ----------
    lm, constraint, n, rng, max_tokens
        As in `sampling.draw`.
    order : {"exact", "masked"}
        Order in which texts are drawn, see the module.
    trie : SuccessTrie, optional
        Success masses learnt so far, updated in place; a new trie by default.
    accepts : callable, optional
        Validator of complete texts, called with their bytes; see `success_walks.Validator`.
    viable : callable, optional
        Validator of prefixes, called with their bytes. It may refuse only prefixes that no accepted text continues.
    together : int, optional
        Number of prefixes per call of the model (the beam width); n by default.
    prefixes : int
        Maximum number of prefixes that are explored. If it is reached there are fewer than n draws
        (``stats["missing"]``, which is 0 if the language has no more texts).

    Returns
    -------
    Draws
        With the stats missing, log_time (log of the time reached; inf if all texts arrived, so that the weights are the
        model's own mass) and those of `DistributionSource.stats`.

    Raises
    ------
    LimitError
        If max_tokens is less than 1, or no text was found.
    ValueError
        If the model returns no distribution.
    """
    check_common_arguments(lm, constraint, n, rng, max_tokens)
    check_masks(constraint, "without_replacement")
    check_validators(accepts=accepts, viable=viable)
    check_counts(1, prefixes=prefixes, together=1 if together is None else together)
    if order not in ("exact", "masked"):
        raise ArgumentError(f"order is {order!r}: it is 'exact' or 'masked'")
    source = DistributionSource(lm, constraint, trie, max_tokens, accepts, viable)
    if source.trie.full:
        source.trie.evict_nodes()
    if n == 0:
        return Draws.of((), missing=0, log_time=-np.inf, **source.stats)
    race = ArrivalQueue(source, rng, order, together or n, prefixes)
    answers: dict[bytes, list[Arrival]] = {}
    for arrival in race.arrivals():
        text = source.text_bytes(arrival.tokens)
        if text not in answers and len(answers) == n:
            break
        answers.setdefault(text, []).append(arrival)
    if not answers:
        raise (
            source.no_text_error()
            if race.time == np.inf
            else explain_short_limit(constraint, max_tokens)
            or LimitError(
                f"no text was found after {prefixes} prefixes; p(L) is at most {source.trie.bound:.3g}",
                hint="Give a trie, so that the next call continues where this one stopped, or raise prefixes=.",
            )
        )
    draws = []
    for arrivals in answers.values():
        mass = log_sum(np.array([way.logprob - log_inclusion(way.logmass, race.time) for way in arrivals]))
        tokens = arrivals[0].tokens
        text_drawn = source.vocabulary.decode(tokens)
        draws.append(Draw(tokens, text_drawn, arrivals[0].logprob, float(np.log(len(answers))) + mass))
    missing = n - len(draws) if race.spent else 0
    return Draws.of(draws, missing=missing, log_time=race.time, **source.stats)


def log_inclusion(logmass: float, log_time: float) -> float:
    """Return log(1 - exp(-t mass)), the log-probability that an arrival of rate `mass` comes before time t."""
    log_rate = logmass + log_time
    return log_rate if log_rate < -30 else float(np.log(-np.expm1(-np.exp(min(log_rate, 700.0)))))


@dataclass(frozen=True, slots=True)
class Arrival:
    """A token sequence of L without its end token, with log p and the log of its rate in the race."""

    tokens: tuple[int, ...]
    logprob: float
    logmass: float


@dataclass(slots=True)
class QueuedPrefix:
    """A prefix, or END, with a known time of its first arrival.

    logmass: log of its rate; logprob: log p(u); used: theta when it was chosen; before: the position before its last
    token.
    """

    node: TrieNode
    before: Matcher
    logmass: float
    logprob: float
    used: float

    def matcher(self) -> Matcher:
        """Return the position after its last token."""
        if self.node.parent is None:
            return self.before
        after = self.before.fork()
        after.advance(self.node.token)
        return after


@dataclass(slots=True)
class RemainingChildren:
    """The children of a prefix that have no arrival yet.

    scale: log of the rate of a child of weight 1; taken: indices, in the distribution, of the children that have
    arrived.
    """

    node: TrieNode
    matcher: Matcher
    scale: float
    logprob: float
    taken: list[int] = field(default_factory=list)


class ArrivalQueue:
    """The priority queue. time: log of the time reached, inf when everything has arrived; spent: whether the budget ran
    out.
    """

    def __init__(
        self, source: DistributionSource, rng: np.random.Generator, order: str, together: int, budget: int
    ) -> None:
        self.source, self.trie, self.rng, self.order = source, source.trie, rng, order
        self.together, self.left, self.spent = together, budget, False
        self.queue: list[tuple[float, int, QueuedPrefix | RemainingChildren]] = []
        self.number = count()
        self.time = float(np.log(rng.exponential()))
        self.push(self.time, QueuedPrefix(self.trie.root, source.constraint.matcher(), 0.0, 0.0, 1.0))

    def push(self, time: float, entry: QueuedPrefix | RemainingChildren) -> None:
        heapq.heappush(self.queue, (time, next(self.number), entry))

    def arrivals(self) -> Iterator[Arrival]:
        """Yield token sequences of L in order of arrival; `time` is that of the last one yielded."""
        while self.queue:
            self.time, _, entry = heapq.heappop(self.queue)
            if isinstance(entry, RemainingChildren):
                (distribution,) = self.source.distributions_at([(entry.node, entry.matcher)])
                self.arrive(self.time, entry, distribution)
            elif entry.node.token == END and entry.node.parent is not None:
                if self.source.is_success(entry.node, entry.before):
                    yield Arrival(tuple(entry.before.tokens), entry.logprob, entry.logmass)
            elif self.left <= 0:
                self.spent = True
                return
            else:
                self.look(self.time, entry)
        self.time = np.inf

    def look(self, time: float, prefix: QueuedPrefix) -> None:
        """Expand a prefix: decide whether the arrival falls into existing mass, and which child it belongs to."""
        self.left -= 1
        matcher = prefix.matcher()
        positions = [(prefix.node, matcher)]
        if self.trie.cached_distribution(prefix.node) is None:
            positions += self.next_ones()
        distribution = self.source.distributions_at(positions)[0]
        mass = self.trie.visit(prefix.node, self.trie.weights(prefix.node, distribution))
        if self.order == "masked":
            existing_share, total = 1.0, float(distribution.probs.sum())
        else:
            existing_share, total = min(mass / prefix.used, 1.0), prefix.used
        if mass <= 0 or total <= 0:
            return
        others = RemainingChildren(prefix.node, matcher, prefix.logmass - float(np.log(total)), prefix.logprob)
        if self.rng.random() < existing_share:
            self.arrive(time, others, distribution)
        else:
            self.wait(time, others, self.weights(others, distribution))

    def next_ones(self) -> list[tuple[TrieNode, Matcher]]:
        """Return the next prefixes of the queue, to be included in the same call of the model.

        Entries that need no call are expanded now: their time is known, and no earlier entry depends on them.
        """
        soon: list[tuple[float, int, QueuedPrefix | RemainingChildren]] = []
        while self.queue and len(soon) < self.together - 1:
            item = heapq.heappop(self.queue)
            time, _, entry = item
            distribution = self.trie.cached_distribution(entry.node)
            if distribution is None or self.left <= 0:
                soon.append(item)
            elif isinstance(entry, RemainingChildren):
                self.arrive(time, entry, distribution)
            else:
                self.look(time, entry)
        for item in soon:
            heapq.heappush(self.queue, item)
        prefixes = [entry for _, _, entry in soon if isinstance(entry, QueuedPrefix) and entry.node.token != END]
        return [(entry.node, entry.matcher()) for entry in prefixes]

    def weights(self, others: RemainingChildren, distribution: PrefixDistribution) -> NDArray[np.float64]:
        """Return the masses of the remaining children (float64 [k], 0 for the others); none was visited since `others`
        was made.
        """
        weights = distribution.probs.copy() if self.order == "masked" else self.trie.weights(others.node, distribution)
        weights[others.taken] = 0.0
        return weights

    def arrive(self, time: float, others: RemainingChildren, distribution: PrefixDistribution) -> None:
        """Process an arrival at one of the remaining children at the given time."""
        weights = self.weights(others, distribution)
        index = draw_index(weights, self.rng)
        weight = float(weights[index])
        child = self.trie.child(others.node, distribution, index)
        logprob = others.logprob + float(np.log(distribution.probs[index]))
        used = 1.0 if self.order == "masked" else child.theta
        self.push(time, QueuedPrefix(child, others.matcher, others.scale + float(np.log(weight)), logprob, used))
        others.taken.append(index)
        weights[index] = 0.0
        self.wait(time, others, weights)

    def wait(self, time: float, others: RemainingChildren, weights: NDArray[np.float64]) -> None:
        """Queue the next arrival at the remaining children, after an exponential time."""
        left = float(weights.sum())
        if left > 0:
            pause = float(np.log(self.rng.exponential())) - others.scale - float(np.log(left))
            self.push(float(np.logaddexp(time, pause)), others)
