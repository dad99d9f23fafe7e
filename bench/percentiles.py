"""Percentile curves of a run of MaskBench: how long the step takes that only so many are slower than.

    panels = tails(jobs, runs)    {"step, warm": {engine: [(fraction slower, µs), ...]}, ...}, schemas common to all

A curve has PER_DECADE points in each tenfold smaller fraction, down to the slowest value of all.
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
    """(fraction of the values that are slower, µs) from the median on to the slowest, which counts as 1 / n."""
    if not len(nanoseconds):
        return []
    values = np.sort(nanoseconds)[::-1] / 1_000
    ranks = np.unique(np.geomspace(1, len(values), max(2, int(PER_DECADE * np.log10(len(values)) + 1))).astype(int))
    return [(float(rank / len(values)), float(values[rank - 1])) for rank in ranks[::-1]]


def compute_tails(jobs: Sequence[Job], runs: Runs) -> dict[str, dict[str, Curve]]:
    """For steps and first masks in each mode: a curve an engine."""
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
