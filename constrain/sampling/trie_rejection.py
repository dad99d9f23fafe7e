"""Trie rejection sampling: independent samples from exactly p given L, with an acceptance rate that grows as the trie
learns.

This is the walk of `asap` with a rejection test at every node. With m(u) the mass found at a node and theta(u) the
bound by which it was chosen, the walk continues with probability m(u) / theta(u) and otherwise restarts. The factors of
`success_walks` then cancel:

    P(an attempt generates x and is accepted) = p(x) [x in L] / m(root)

Accepted texts have the distribution p given L whatever the trie has learnt; the more it has learnt, the closer m(root)
is to p(L) and the fewer attempts fail. Attempts for several texts run side by side, with one call of the model for all
of them. theta(u) belongs to the attempt, so updates by other attempts do not affect it (the probability that it results
in x, p(x | u) / theta(u) + (1 - h(u) / theta(u)) p(x | L), is the same before and after each step).

*The weight* is one unbiased estimate of p(L) for all texts, independent of them: one text more than requested is drawn,
attempts are counted as if each had begun with the m(root) of the first, and with N attempts for n + 1 texts, n / (N -
1) is unbiased (Haldane 1945).

*Where attempts cannot succeed*, because p(L) is far below m(root), the search stops early and says so
(`attempt_forecast`).
"""

from __future__ import annotations

import math
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import LimitError
from ..engine.length_limits import explain_short_limit
from .attempt_forecast import FIRST, WORTH, MassEstimate, describe_mass, estimate_mass, is_hopeless
from .core.language_model import LanguageModel
from .core.results import Draw, Draws
from .core.sampler_arguments import check_common_arguments, check_counts, check_masks, check_seconds, check_validators
from .success_trie import SMALLEST, SuccessTrie
from .success_walks import DistributionSource, Validator, Walk

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["draw_exact"]

LEAST = 1e-18
"""Smallest success probability for geometric random numbers, whose values must fit into 64 bits; below it,
exponential ones are used, as floats."""


def draw_exact(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int,
    trie: SuccessTrie | None = None,
    accepts: Validator | None = None,
    viable: Validator | None = None,
    together: int = 4,
    attempts: int = 1000,
    seconds: float | None = None,
) -> Draws:
    """Draw n independent texts from p given L and at most max_tokens tokens, exactly.

    Parameters
    ----------
    lm, constraint, n, rng, max_tokens
        As in `sampling.draw`.
    trie : SuccessTrie, optional
        Success masses learnt so far, updated in place; a new trie by default.
    accepts : callable, optional
        Validator of complete texts, called with their bytes; see `success_walks.Validator`.
    viable : callable, optional
        Validator of prefixes, called with their bytes. It may refuse only prefixes that no accepted text continues.
    together : int
        Attempts that run side by side, in one call of the model.
    attempts : int
        Maximum number of attempts per text, on average.
    seconds : float, optional
        Time limit, which favours short texts. If attempts or time run out there are fewer than n draws
        (``stats["missing"]``), and the weight is the plain acceptance ratio.

    Returns
    -------
    Draws
        With the stats attempts, acceptance, missing and those of `DistributionSource.stats`.

    Raises
    ------
    LimitError
        If max_tokens is less than 1, no text has any probability, or none was found within the limits; or, after FIRST
        failed attempts, if none is to be expected within them (`attempt_forecast`).
    ValueError
        If the model returns no distribution.
    """
    check_common_arguments(lm, constraint, n, rng, max_tokens)
    check_masks(constraint, "exact")
    check_counts(1, together=together, attempts=attempts)
    check_seconds(seconds)
    check_validators(accepts=accepts, viable=viable)
    source = DistributionSource(lm, constraint, trie, max_tokens, accepts, viable)
    if n == 0:
        return Draws.of((), attempts=0, **source.stats)
    search = RejectionSearch(source, rng, n + 1, together, attempts * (n + 1), seconds)
    search.run()
    draws_found = [draw for draw in search.answers if draw is not None][:n]
    if not draws_found:
        raise explain_short_limit(constraint, max_tokens) or search.nothing_found_error()
    log_z = search.log_z()
    draws = [Draw(draw.tokens, draw.text, draw.logprob, log_z) for draw in draws_found]
    counts = {
        "attempts": search.attempts,
        "acceptance": search.accepted / search.attempts,
        "missing": n - len(draws_found),
    }
    return Draws.of(draws, **counts, **source.stats)


class RejectionSearch:
    """The requested texts, the walks in progress (by the text that each is for), and the counts so far."""

    def __init__(
        self,
        source: DistributionSource,
        rng: np.random.Generator,
        count: int,
        together: int,
        budget: int,
        seconds: float | None,
    ) -> None:
        self.source, self.rng, self.budget, self.together = source, rng, budget, together
        self.started = monotonic()
        self.deadline = math.inf if seconds is None else self.started + seconds
        self.answers: list[Draw | None] = [None] * count
        self.waiting = list(range(count))[::-1]
        self.walks: dict[int, Walk] = {}
        self.attempts = self.accepted = 0
        self.first_mass = 0.0
        self.equivalent_attempts = 0.0
        self.masses: list[float] = []
        """m(root) at the beginning of each attempt, while none was accepted."""
        self.next_forecast = FIRST
        self.estimate: MassEstimate | None = None
        self.hopeless = False

    def run(self) -> None:
        """Run until all texts are found or a limit is reached."""
        trie = self.source.trie
        while self.waiting or self.walks:
            if trie.full and not self.walks:
                trie.evict_nodes()
            while self.waiting and len(self.walks) < self.together and not trie.full and self.attempts < self.budget:
                self.walks[self.waiting.pop()] = Walk(self.source)
                self.attempts += 1
            if not self.walks or monotonic() > self.deadline or self.expects_nothing():
                return
            self.step()

    def step(self) -> None:
        """Move every walk one token further."""
        source = self.source.distributions_at([(walk.node, walk.matcher) for walk in self.walks.values()])
        for (answer, walk), distribution in zip(list(self.walks.items()), source):
            ratio = walk.visit(distribution)
            if walk.node.parent is None:
                self.begin(ratio)
                success = walk.choose(distribution, self.rng)
            elif self.rng.random() < ratio:
                success = walk.choose(distribution, self.rng)
            else:
                success = False
            if success is None:
                continue
            del self.walks[answer]
            if success:
                self.answers[answer], self.accepted = walk.draw(0.0), self.accepted + 1
            else:
                self.waiting.append(answer)

    def begin(self, mass: float) -> None:
        """Count an attempt that begins with m(root) = mass, as the number of attempts it would have been with the first
        value of m(root).
        """
        if mass <= 0:
            raise self.source.no_text_error()
        self.first_mass = self.first_mass or mass
        if not self.accepted:
            self.masses.append(mass)
        chance = min(mass / self.first_mass, 1.0)
        tries = self.rng.geometric(chance) if chance > LEAST else self.rng.standard_exponential() / chance
        self.equivalent_attempts += float(tries)

    def expects_nothing(self) -> bool:
        """Return whether none of the attempts that are left is expected to succeed. Asked after FIRST attempts without
        success, and whenever their number has doubled since.
        """
        if self.accepted or len(self.masses) < self.next_forecast:
            return False
        left = self.attempts_left
        if left < WORTH:
            return False
        if self.next_forecast == FIRST:
            source = self.source
            self.estimate, calls = estimate_mass(source.lm, source.constraint, source.max_tokens, self.rng)
            source.calls += calls
        self.next_forecast *= 2
        self.hopeless = self.estimate is not None and is_hopeless(self.estimate, self.masses, left)
        return self.hopeless

    @property
    def attempts_left(self) -> float:
        """Number of further attempts that the budget allows, and the time, if they take as long as those so far."""
        now = monotonic()
        in_time = math.inf if self.deadline == math.inf else (self.deadline - now) / (now - self.started)
        return min(self.budget - self.attempts, in_time * self.attempts)

    def nothing_found_error(self) -> LimitError:
        """Return the error for a search that found no text: what is known about p(L), and how many attempts a text
        takes.
        """
        bound, failed = self.source.trie.bound, f"no text was found in {self.attempts} attempts"
        if bound <= SMALLEST:
            return LimitError(
                f"{failed}; p(L) is at most {bound:.3g}",
                hint="So little is beyond trie rejection: smc, pimh and without_replacement need no attempts.",
            )
        if self.estimate is None:
            return LimitError(
                f"{failed}; p(L) is at most {bound:.3g}",
                hint="Give a trie, so that the next call continues where this one stopped, or raise attempts= or "
                'seconds=; sampler="smc" and "pimh" need no attempts.',
            )
        log_z, root = self.estimate.log_z, self.masses[-1]
        return LimitError(
            f"{failed}: p(L) is about {describe_mass(log_z)}, and the trie has {root:.2g} left to try, so a text takes "
            f"some {describe_mass(math.log(root) - log_z)} attempts, of which this call may make {self.budget}"
            + (" (it stopped early: none of them is expected to succeed)" if self.hopeless else ""),
            hint='Use sampler="smc" or "pimh", which need no attempts. Or give a trie, so that calls learn from each '
            "other, or raise attempts= or seconds=.",
        )

    def log_z(self) -> float:
        """Return the log of the estimate of p(L)."""
        complete = self.accepted == len(self.answers)
        ratio = (
            (self.accepted - 1) / (self.equivalent_attempts - 1)
            if complete
            else self.accepted / self.equivalent_attempts
        )
        return float(np.log(self.first_mass * ratio))
