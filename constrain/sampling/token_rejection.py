"""Rejection sampling of one token: a valid token and an unbiased estimate of the mass Z of all valid tokens.

Tokens are taken in the order of an `ExponentialRace` until one is valid; that token has the distribution gamma / Z,
where gamma(a) = p(a) [a valid]. After k tokens, Z lies between `valid` and `valid + left`; the validity of the next
token selects one of the two, and the expectation of this term is Z (Des Raj, 1956). Every method below combines such
terms into a weight w with mean Z given the token, so that

    E[w 1{token = a}] = gamma(a)        (proper weighting; tests/sampling/test_awrs.py verifies it over all orders)

also if a budget ends the search. The methods trade the number of checks against the variance of the weight. Source:
Lipkin et al. 2025 (adaptive weighted rejection sampling) for the idea; the terms and their truncation are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ..base.errors import ArgumentError
from .exponential_race import ExponentialRace

__all__ = [
    "RECURSIVE",
    "CheckBudget",
    "CheckedToken",
    "Chunks",
    "DesRaj",
    "ExploreFlip",
    "Geometric",
    "HorvitzThompson",
    "LateMask",
    "Method",
]


class CheckedToken(NamedTuple):
    """A token and its weight; (None, 0) if no valid token was found."""

    token: int | None
    weight: float


NOTHING = CheckedToken(None, 0.0)

FEWEST = 1e-18
"""Smallest success probability for geometric random numbers, whose values must fit into 64 bits."""


@dataclass(slots=True)
class CheckBudget:
    """The check of a step, with a limit on its number of calls.

    check: whether a token is valid; `many`: the same for several tokens at once. budget: maximum number of checks.
    patience: maximum number of checks before the first valid token, after which the step stops and sets `lost`, so that
    the caller can use a mask instead. mass: the mass of all valid tokens, by the mask, in the unit of the race; None if
    there is no mask.
    """

    check: Callable[[int], bool]
    many: Callable[[list[int]], list[bool]] | None = None
    budget: float = np.inf
    patience: float = np.inf
    mass: Callable[[], float] | None = None
    spent: int = 0
    lost: bool = False

    def __call__(self, token: int) -> bool:
        self.spent += 1
        return bool(self.check(token))

    def all(self, tokens: list[int]) -> list[bool]:
        """Check several tokens at once."""
        self.spent += len(tokens)
        return [bool(self.check(token)) for token in tokens] if self.many is None else list(self.many(tokens))

    @property
    def left(self) -> float:
        """Number of checks left in the budget."""
        return self.budget - self.spent


class Method(Protocol):
    """An estimator: returns a valid token and its weight from a new race."""

    def __call__(self, race: ExponentialRace, check: CheckBudget) -> CheckedToken: ...


def find_first_valid(race: ExponentialRace, check: CheckBudget) -> CheckedToken:
    """Return the first valid token to arrive, with the weight that is correct if no further checks are made."""
    while check.left > 0:
        if check.spent >= check.patience:
            check.lost = True
            return NOTHING
        arrived = race.take()
        if not arrived:
            return NOTHING
        ok = check(arrived[0])
        term = race.record(ok)
        if ok:
            return CheckedToken(arrived[0], term)
    return NOTHING


def add_flip_term(race: ExponentialRace, check: CheckBudget) -> float:
    """Check the next token and return its term."""
    arrived = race.take()
    return race.record(check(arrived[0])) if arrived else race.valid


def rare_flip(race: ExponentialRace, check: CheckBudget, slack: float) -> float:
    """Return a term at an expected cost of less than one check, when little mass is left: check at random and scale up.

    The check is made with probability left / (slack valid); the term is valid or (1 + slack) valid.
    """
    ceiling = slack * race.valid
    if race.left <= 0 or race.rng.random() * ceiling >= race.left:
        return race.valid
    arrived = race.take()
    return race.valid + ceiling if arrived and check(arrived[0]) else race.valid


@dataclass(frozen=True, slots=True)
class DesRaj:
    """Estimate Z by the mean of the `terms` terms after the first valid token.

    Once the remaining mass is below `slack` times the valid mass, one randomised check replaces all further terms: the
    weight is then within that share of Z, and the check adds at most slack^2 / 4 to its squared coefficient of
    variation. The coefficients are fixed before the terms are known, so the mean stays Z.
    """

    terms: int = 4
    slack: float = 0.05

    def __post_init__(self) -> None:
        if self.terms < 1 or not 0 <= self.slack < np.inf:
            raise ArgumentError(f"terms must be 1 or more and slack 0 or more, not {self.terms!r} and {self.slack!r}")

    def __call__(self, race: ExponentialRace, check: CheckBudget) -> CheckedToken:
        token, weight = find_first_valid(race, check)
        promised = int(min(self.terms, check.left))
        if token is None or not promised:
            return CheckedToken(token, weight)
        weight = 0.0
        for done in range(promised):
            if race.left <= self.slack * race.valid:
                remaining_share = 1 - done / promised
                return CheckedToken(token, weight + remaining_share * rare_flip(race, check, self.slack))
            weight += add_flip_term(race, check) / promised
        return CheckedToken(token, weight)


RECURSIVE = DesRaj(terms=1, slack=0.0)
"""Estimate Z by the one term after the first valid token: fewest checks, largest variance."""


@dataclass(frozen=True, slots=True)
class LateMask:
    """Check the first `patience` tokens to arrive, and compute the mask only where they leave the weight in doubt.

    If none of them is valid, the token is drawn under the mask. If one is, and more than `slack` times its mass is
    undecided, the weight is Z itself, the mass under the mask. Otherwise the mask is computed at random, with
    probability left / (slack valid), and its term is scaled up: the weight is then valid or valid + slack valid (Z -
    valid) / left, which adds at most slack^2 / 4 to its squared coefficient of variation. Without a mask this is
    `DesRaj`.
    """

    patience: int = 1
    slack: float = 0.25

    def __post_init__(self) -> None:
        if self.patience < 1 or not 0 <= self.slack < np.inf:
            raise ArgumentError(
                f"patience must be 1 or more and slack 0 or more, not {self.patience!r} and {self.slack!r}"
            )

    def __call__(self, race: ExponentialRace, check: CheckBudget) -> CheckedToken:
        if check.mass is None:
            return DesRaj()(race, check)
        token, _ = find_first_valid(race, check)
        if token is None:
            check.lost = True  # the mask decides, also where the budget ended
            return NOTHING
        valid, left, ceiling = race.valid, race.left, self.slack * race.valid
        if left <= 0 or (left < ceiling and race.rng.random() * ceiling >= left):
            return CheckedToken(token, valid)
        rest = min(max(check.mass() - valid, 0.0), left)  # rounding may lead out of these bounds
        return CheckedToken(token, valid + rest * max(ceiling / left, 1.0))


@dataclass(frozen=True, slots=True)
class ExploreFlip:
    """Estimate Z after checking the likeliest tokens.

    After the first valid token, the likeliest tokens are checked until the remaining mass is below `slack` times the
    valid mass (or `most` were checked, or the budget has one check left). One further term follows; in the first case
    it is always within `slack` of Z.
    """

    slack: float = 0.1
    most: int = 64

    def __post_init__(self) -> None:
        if not 0 <= self.slack < np.inf or self.most < 0:
            raise ArgumentError(f"slack and most must be 0 or more, not {self.slack!r} and {self.most!r}")

    def __call__(self, race: ExponentialRace, check: CheckBudget) -> CheckedToken:
        token, weight = find_first_valid(race, check)
        if token is None or check.left < 1:
            return CheckedToken(token, weight)
        for _ in range(self.most):
            largest = race.take_largest() if race.left > self.slack * race.valid and check.left > 1 else None
            if largest is None:
                break
            race.record(check(largest))
        return CheckedToken(token, add_flip_term(race, check))


@dataclass(frozen=True, slots=True)
class Chunks:
    """Check `size` tokens at once.

    The term is that of the last token of the first chunk with a valid token before its last position. For checks that
    run in parallel, or whose cost does not depend on the number of tokens.
    """

    size: int = 8

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ArgumentError(f"size must be 1 or more, not {self.size!r}")

    def __call__(self, race: ExponentialRace, check: CheckBudget) -> CheckedToken:
        token: int | None = None
        term = 0.0
        while check.left > 0:
            if token is None and check.spent >= check.patience:
                check.lost = True
                break
            arrived = race.take(int(min(self.size, check.left)))
            if not arrived:
                return CheckedToken(token, race.valid)
            known = token is not None
            for each, ok in zip(arrived, check.all(arrived)):
                known = token is not None
                term = race.record(ok)
                if ok and token is None:
                    token = each
            if known:
                break
        return CheckedToken(token, term) if token is not None else NOTHING


@dataclass(frozen=True, slots=True)
class Geometric:
    """Draw with replacement until `accepts` draws were valid; only new tokens are checked.

    With n rejections, (accepts - 1) / (accepts + n - 1) is an unbiased estimate of Z (Haldane, 1945). A budget of B
    checks stops at B - accepts + 1 rejections; after i valid draws the estimate is then i / (i + rejections - 1).
    Budgets below 2 do not allow a second draw: the weight is then that of `RECURSIVE`.
    """

    accepts: int = 4

    def __post_init__(self) -> None:
        if self.accepts < 2:
            raise ArgumentError(f"accepts must be 2 or more, not {self.accepts!r}")

    def __call__(self, race: ExponentialRace, check: CheckBudget) -> CheckedToken:
        if check.left < 2:
            return RECURSIVE(race, check)
        required = int(min(self.accepts, check.left))
        max_rejections = check.left - required + 1
        token: int | None = None
        accepted = rejected = 0
        while accepted < required and rejected < max_rejections:
            undecided = (race.left + race.valid) / race.total  # share of the mass that is not known to be invalid
            if undecided < 1:
                repeats = int(race.rng.geometric(max(undecided, FEWEST))) - 1
                if rejected + repeats >= max_rejections:
                    rejected = int(max_rejections)
                    break
                rejected += repeats
            if race.valid and race.rng.random() * (race.valid + race.left) < race.valid:
                accepted += 1
                continue
            arrived = race.take()
            if not arrived:
                if token is None:
                    return NOTHING
                continue
            ok = check(arrived[0])
            race.record(ok)
            token = arrived[0] if ok and token is None else token
            accepted, rejected = accepted + ok, rejected + (not ok)
        if token is None:
            return NOTHING
        part = (
            (required - 1) / (required + rejected - 1) if accepted == required else accepted / (accepted + rejected - 1)
        )
        return CheckedToken(token, part * race.total)


@dataclass(frozen=True, slots=True)
class HorvitzThompson:
    """Check exactly `checks` tokens, all at once: the likely ones with certainty, the others by systematic sampling.

    A token is included with probability min(1, p / tau), where tau is such that these sum to `checks`, and counts as
    max(p, tau). If none of them is valid the weight is 0. For checks that are remote or vectorised.
    """

    checks: int = 32

    def __post_init__(self) -> None:
        if self.checks < 1:
            raise ArgumentError(f"checks must be 1 or more, not {self.checks!r}")

    def __call__(self, race: ExponentialRace, check: CheckBudget) -> CheckedToken:
        tokens, masses = race.masses()
        count = int(min(self.checks, check.left, len(masses)))
        if count < 1:
            return NOTHING
        order = np.argpartition(-masses, count - 1)
        order[:count] = order[np.argsort(-masses[order[:count]], kind="stable")]
        tokens, masses = tokens[order], masses[order]
        if count < len(masses):
            # tau is (mass of all but the first k) / (count - k), for the first k at which the next mass is below it
            suffix_sums = float(masses[count:].sum()) + masses[:count][::-1].cumsum()[::-1]
            taus = suffix_sums / (count - np.arange(count))
            certain = int(np.argmax(masses[:count] <= taus))
            tau = float(taus[certain])
            points = (race.rng.random() + np.arange(count - certain)) * tau
            edges = np.cumsum(masses[certain:])
            picked = certain + np.searchsorted(edges, points, side="right")
            picked = np.minimum(picked, len(masses) - 1)  # rounding can exceed the last index
            tokens = np.concatenate([tokens[:certain], tokens[picked]])
            masses = np.concatenate([masses[:certain], np.full(len(picked), tau)])
        weights = np.where(check.all(tokens.tolist()), masses, 0.0)
        edges = np.cumsum(weights)
        if edges[-1] <= 0:
            return NOTHING
        index = int(np.searchsorted(edges, race.rng.random() * edges[-1], side="right"))
        return CheckedToken(int(tokens[min(index, int(np.flatnonzero(weights)[-1]))]), float(edges[-1]))
