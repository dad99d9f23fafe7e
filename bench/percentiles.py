"""Percentile curves of a run of MaskBench: the time that only a fraction of the steps exceeds.

    panels = compute_tails(jobs, runs)    {"step, warm": {engine: [(fraction slower, µs), ...]}, ...}, common schemas

A curve has PER_DECADE points per decade of the fraction, down to the slowest step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .measure import Job, Result
from .report import Runs, find_common

__all__ = ["compute_tail", "compute_tails"]

PER_DECADE = 12
Curve = list[tuple[float, float]]


def compute_tail(nanoseconds: np.ndarray[Any, Any]) -> Curve:
    """Return points (fraction of slower values, µs) from the median to the slowest value, whose fraction is 1 / n."""
    if not len(nanoseconds):
        return []
    values = np.sort(nanoseconds)[::-1] / 1_000
    ranks = np.unique(np.geomspace(1, len(values), max(2, int(PER_DECADE * np.log10(len(values)) + 1))).astype(int))
    return [(float(rank / len(values)), float(values[rank - 1])) for rank in ranks[::-1]]


def compute_tails(jobs: Sequence[Job], runs: Runs) -> dict[str, dict[str, Curve]]:
    """Return a panel for steps and one for first masks in each mode, with a curve for each engine."""
    common = find_common(jobs, runs)
    panels: dict[str, dict[str, Curve]] = {}
    for what in ("step", "first mask"):
        for (name, mode), outcomes in runs.items():
            common_outcomes = [outcomes[i] for i in common]
            done = [outcome for outcome in common_outcomes if isinstance(outcome, Result)]
            values = (
                np.concatenate([np.asarray(outcome.steps) for outcome in done] or [np.zeros(0)])
                if what == "step"
                else np.array([outcome.first for outcome in done])
            )
            if curve := compute_tail(values):
                panels.setdefault(f"{what}, {mode}", {})[name] = curve
    return panels
