"""Whether trie rejection can succeed: how many attempts a text takes, before all of them were made.

An attempt is accepted with probability p(L) / m(root) (see `trie_rejection`). m(root) is known. p(L) is estimated by
SMC with learned values, whose populations agree within a nat where independent weighted walks miss tens of nats. It is
called once, after the first FIRST attempts have all failed; its rows of the model are about those of 100 attempts.

The trie goes on learning, so m(root) will be smaller. An attempt that fails finds a piece of mass without texts, with a
probability in proportion to its size. Large pieces are found first, so an attempt lowers m(root) by ever less: while
their number doubles, m(root) falls by at most twice as much as in the doubling before (pieces of one size), and often
by no more. The ratio of the last two doublings is taken to go on, at least SLOWEST, with a fall that is SLACK times as
large, and p(L) to be as large as it may be. The sum of p(L) / m(root) over the attempts that are left is then more
texts than are to be expected, which `tests/sampling/test_attempt_forecast.py` simulates. If it is below HOPELESS,
further attempts are a waste.

The forecast decides only whether to stop: texts are accepted as before, so their law is p given L with it and without
it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .core.language_model import LanguageModel
from .smc import draw_smc
from .success_trie import SMALLEST

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["FIRST", "WORTH", "MassEstimate", "count_expected_texts", "describe_mass", "estimate_mass", "is_hopeless"]

FIRST = 32
"""Failed attempts before the first forecast."""
WORTH = 64
"""Attempts that are left from which on a forecast is worth its cost."""
POPULATIONS, PARTICLES = 4, 16
"""Populations of SMC by which p(L) is estimated, each of which learns from those before, and their size."""
MARGIN = 2.0
"""Nats that are added to the estimate of p(L) and to the gap that its values leave: several times its spread."""
SLACK = 2.0
"""Factor by which m(root) may fall faster than the latest attempts show."""
SLOWEST = 1.5
"""Smallest ratio of the falls of two doublings: in the first attempts a smaller one may be chance."""
HOPELESS = 0.05
"""Expected number of texts in all attempts that are left below which none of them is made."""


class MassEstimate(NamedTuple):
    """Estimates of log p(L) in nats. log_z: the likely value. largest: more than it can be expected to be."""

    log_z: float
    largest: float


def estimate_mass(
    lm: LanguageModel, constraint: Constraint, max_tokens: int, rng: np.random.Generator
) -> tuple[MassEstimate | None, int]:
    """Estimate p(L) under the masks of a constraint; None if no estimate can be relied on: where values cannot be
    learned, and where no particle lived to the end. Also return the number of calls of the model that this took.

    Validators of complete texts, as options of `exact`, are not applied: they can only make p(L) smaller.
    """
    drawn = draw_smc(lm, constraint, n=POPULATIONS, particles=PARTICLES, rng=rng, max_tokens=max_tokens, twist="fresh")
    value_gap, log_z = drawn.stats.get("value_gap", math.inf), drawn.stats["log_z"]
    if not math.isfinite(value_gap) or log_z == -math.inf:
        return None, int(drawn.stats["model_calls"])
    return MassEstimate(log_z, log_z + value_gap + MARGIN), int(drawn.stats["model_calls"])


def count_expected_texts(mass: float, masses: Sequence[float], attempts: float) -> float:
    """Return how many texts are expected of further attempts, at most; inf if m(root) could fall to p(L), so that every
    attempt would succeed. (It never falls below SMALLEST.)

    mass: p(L). masses: m(root) at the beginning of each attempt so far, at least 4. attempts: their number.
    """
    made, root = len(masses), masses[-1]
    before, fall = masses[made // 4] - masses[made // 2], masses[made // 2] - root
    growth = min(max(fall / before, SLOWEST), 2.0) if before > 0 else 2.0
    fall, expected = SLACK * fall, 0.0
    while attempts > 0:  # one doubling after the other
        fall, step = fall * growth, min(made, attempts)
        root = max(root - fall * step / made, SMALLEST)
        if root <= mass:
            return math.inf
        expected += step * mass / root
        made, attempts = 2 * made, attempts - step
    return expected


def is_hopeless(estimate: MassEstimate, masses: Sequence[float], attempts: float) -> bool:
    """Return whether no text is to be expected of the attempts that are left, see `count_expected_texts`."""
    return count_expected_texts(math.exp(estimate.largest), masses, attempts) < HOPELESS


def describe_mass(log: float) -> str:
    """Return a number, given by its log, for an error message."""
    return f"{math.exp(log):.1g}" if abs(log) < 600 else f"exp({log:.0f})"
