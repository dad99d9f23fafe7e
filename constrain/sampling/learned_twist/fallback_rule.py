"""When the learned twist is left for the flat one: where it has been seen to do worse, in the same call.

Both twists give unbiased estimates of the same Z. By Jensen's inequality E[log Z-hat] is the lower, the more Z-hat
varies, so of two twists the one whose estimates have the higher mean log is the better one. A population that died
counts as `DEATH` nats below the lowest estimate.

    not tried both yet      learned. The flat one is probed once the last RECENT learned ones spread by more than SPREAD
                            nats or one of them died, and by a new table after FIRST_PROBE populations: what the model
                            finds likely may be where the table guesses too low. While its mean is the higher one it is
                            probed again, TRIES times in all: a single estimate of the flat twist may be high by
                            chance. A table that ended with flat begins with it
    tried both              flat if its mean log over the last RECENT populations is higher than that of the learned one
                            by more than the standard error of their difference, else learned
    flat is used            the learned one is probed before every RETRY-th population, as the table improves

A probe only compares and teaches: its estimate is not used, so that no estimate comes from a twist that had not shown
itself the better one. The choice depends on the past only, so every population stays unbiased.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

__all__ = ["Kind", "Outcome", "choose_kind", "choose_probe", "has_fallen_back"]

Kind = Literal["learned", "flat"]

RECENT, RETRY, TRIES = 4, 4, 3
SPREAD, DEATH = 2.0, 10.0
FIRST_PROBE = 2
"""Populations of a new table before it is first compared."""
WARM = 4
"""Populations that a table has learned from before the spread of those that follow is judged."""


class Outcome(NamedTuple):
    """A population: its twist, log Z-hat, how many populations its table had learned from, and whether its estimate is
    used.
    """

    kind: Kind
    log_z: float
    populations: int
    counts: bool = True


def choose_probe(history: Sequence[Outcome], begins_flat: bool) -> Kind | None:
    """Return the twist to probe before the next population of a call, None for no probe. begins_flat: what
    `has_fallen_back` said of the last call.
    """
    learned, flat = _recent(history, "learned"), _recent(history, "flat")
    if has_fallen_back(history, begins_flat):
        return "learned" if history and sum(one.counts for one in history) % RETRY == 0 else None
    if flat:
        doubted = bool(learned) and len(flat) < TRIES and _compare_means(learned, flat)[0] > 0
        return "flat" if doubted else None
    is_new = len(history) == FIRST_PROBE and history[0].populations == 0
    return "flat" if is_new or _is_doubtful(learned) else None


def choose_kind(history: Sequence[Outcome], begins_flat: bool) -> Kind:
    """Return the twist of the next population of a call, after the probe if there is one."""
    return "flat" if has_fallen_back(history, begins_flat) else "learned"


def has_fallen_back(history: Sequence[Outcome], begins_flat: bool) -> bool:
    """Return whether the flat twist is the better one so far."""
    learned, flat = _recent(history, "learned"), _recent(history, "flat")
    if not learned or not flat or (len(flat) < TRIES and not begins_flat):
        return begins_flat
    difference, error = _compare_means(learned, flat)
    return difference > error


def _compare_means(learned: Sequence[float], flat: Sequence[float]) -> tuple[float, float]:
    """Return by how much the mean log Z-hat of the flat twist is higher, and the standard error of that, in nats."""
    finite = [one for one in (*learned, *flat) if one > -np.inf]
    if not finite:
        return 0.0, 0.0
    worst = min(finite) - DEATH
    means, errors = list[float](), list[float]()
    for log_zs in (learned, flat):
        values = np.maximum(log_zs, worst)
        means.append(float(values.mean()))
        errors.append(float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0)
    return means[1] - means[0], math.sqrt(sum(errors))


def _recent(history: Sequence[Outcome], kind: Kind) -> list[float]:
    """Return log Z-hat of the last populations with a twist; of the learned one, after warm-up."""
    return [one.log_z for one in history if one.kind == kind and (kind == "flat" or one.populations >= WARM)][-RECENT:]


def _is_doubtful(log_zs: list[float]) -> bool:
    return bool(log_zs) and (min(log_zs) == -np.inf or (len(log_zs) > 2 and float(np.std(log_zs, ddof=1)) > SPREAD))
