"""Find the slowest schemas of a file: a pass over all of them, then those above the limits again, with a profile.

In the pass one worker compiles all schemas, as a server does. Those above the limits are measured again in new
processes, since on a busy machine any schema may be slow once, and then under Python's profiler.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, perf_counter_ns, process_time_ns
from typing import Any

from ..corpus import Case
from ..engines import Engine, Refused
from ..measure import make_first_mask
from ..workers import Failure, Guard, run_guarded
from .trial import TIME, Cost, measure_cost

__all__ = ["Slow", "find_slowest"]


@dataclass(slots=True)
class Slow:
    """A schema above a limit. cost: in new processes. where: the functions with most CPU time, and their share."""

    id: str
    cost: Cost
    where: list[str]


def find_slowest(engine: Engine, cases: list[Case], guard: Guard, repeat: int, seconds: float) -> Iterator[Slow | str]:
    """Yield the schemas above the limits, then a line about the pass."""
    begin, times, suspects = perf_counter(), list[float](), list[Case]()
    for index, outcome in run_guarded(partial(time_quickly, engine), cases, limits=guard, fresh=False):
        if isinstance(outcome, Failure) or (outcome is not None and min(outcome) > TIME):
            suspects.append(cases[index])
        if not isinstance(outcome, Failure) and outcome is not None:
            times.append(outcome[1])
        if perf_counter() - begin > seconds:
            break
    times.sort()
    passed = index + 1
    for case in suspects:
        found = measure_cost(engine, case.schema, guard, repeat)
        if found.exceeds_limit:
            where = next(run_guarded(partial(profile_compile, engine), [case.schema], limits=guard, fresh=True))[1]
            yield Slow(case.id, found, [where.detail] if isinstance(where, Failure) else where)
    yield (
        f"{passed:,} of {len(cases):,} schemas in one process: median {median(times):.1f} ms of CPU, "
        f"p99 {times[len(times) * 99 // 100]:.1f} ms, most {times[-1]:.0f} ms; above {TIME:g} ms: {len(suspects)}"
    )


def time_quickly(engine: Engine, case: Case) -> tuple[float, float] | None:
    """Run in the worker: return (wall ms, CPU ms) to the first mask, or None if the schema is refused."""
    begin, begin_cpu = perf_counter_ns(), process_time_ns()
    try:
        make_first_mask(engine, case.schema)
    except Refused:
        return None
    return (perf_counter_ns() - begin) / 1e6, (process_time_ns() - begin_cpu) / 1e6


def profile_compile(engine: Engine, text: str, most: int = 4) -> list[str]:
    """Run in the worker: return the functions with most time, including their calls outside of constrain."""
    with cProfile.Profile() as profiler:
        make_first_mask(engine, text)
    stats: Any = pstats.Stats(profiler)
    own: dict[str, float] = {}
    for (file, _, name), (_, _, seconds, _, callers) in stats.stats.items():
        if "constrain" in file:
            own[name_place(file, name)] = own.get(name_place(file, name), 0.0) + seconds
        else:  # the time of a builtin or a library counts for its caller, one level up
            for (from_file, _, from_name), counts in callers.items():
                label = name_place(from_file, from_name) if "constrain" in from_file else "elsewhere"
                own[label] = own.get(label, 0.0) + counts[2]
    total = sum(own.values()) or 1.0
    ranked = sorted(own.items(), key=lambda item: -item[1])[:most]
    return [f"{label} {seconds / total:.0%}" for label, seconds in ranked]


def name_place(file: str, name: str) -> str:
    """Return a function as its file and name."""
    return f"{Path(file).name}:{name}"
