"""Measure one schema with one engine, in a process forked after the engine is prepared: time to the first mask, memory.

The table has the first compilation, before which nothing of the schema is cached. It is repeated in new processes,
since engines cache patterns, formats or whole schemas. A second compilation in the same process is measured, too
(XGrammar's cache of schemas is cleared before it, no other cache is).
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from time import perf_counter_ns, process_time_ns
from typing import Any

from ..engines import Engine, Refused, Xgrammar
from ..measure import make_first_mask
from ..process_figures import read_resident_memory
from ..workers import Failure, Guard, run_guarded

__all__ = ["ENOUGH", "MEMORY", "TIME", "Cost", "measure_cost"]

TIME = 100.0
"""Limit of milliseconds to the first mask."""
MEMORY = 256.0
"""Limit of additional MiB."""
ENOUGH = 2.0
"""Seconds after which a trial is not repeated: it exceeds the limit by far."""


@dataclass(slots=True)
class Cost:
    """The cost of one schema with one engine. wall, cpu: ms to the first mask. again: wall ms of another compilation in
    the same process. mebibytes: additional memory at the peak. Lists have one value for each process. refused: the
    reason. failed: timeout, memory or crash.
    """

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    mebibytes: list[float] = field(default_factory=list)
    refused: str = ""
    failed: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether there are figures."""
        return bool(self.wall) and not self.failed

    @property
    def exceeds_limit(self) -> bool:
        """Whether it failed or exceeds a limit; time must exceed it on both clocks, as a busy machine
        adds wall time.
        """
        slow = self.is_measured and min(median(self.wall), median(self.cpu)) > TIME
        return bool(self.failed) or slow or (self.is_measured and median(self.mebibytes) > MEMORY)


def measure_cost(engine: Engine, text: str, guard: Guard, repeat: int) -> Cost:
    """Measure one schema with a prepared engine."""
    found = Cost()
    for _ in range(repeat):
        outcome = next(run_guarded(partial(run_trial, engine), [text], limits=guard, fresh=True))[1]
        if isinstance(outcome, Failure):
            found.failed = f"{outcome.kind}: {outcome.detail}"
            return found
        if isinstance(outcome, str):
            found.refused = outcome
            return found
        for values, value in zip((found.wall, found.cpu, found.again, found.mebibytes), outcome):
            values.append(value)
        if found.wall[-1] > 1_000 * ENOUGH:
            break
    return found


def run_trial(engine: Engine, text: str) -> Any:
    """Run in the worker: return (wall ms, CPU ms, wall ms of a second compilation, additional MiB), or the refusal."""
    held = read_resident_memory("VmRSS")
    begin, begin_cpu = perf_counter_ns(), process_time_ns()
    try:
        make_first_mask(engine, text)
    except Refused as refusal:
        return refusal.reason.splitlines()[0][:300]
    wall, cpu = perf_counter_ns() - begin, process_time_ns() - begin_cpu
    added = read_resident_memory("VmHWM") - held
    if isinstance(engine, Xgrammar):
        engine.compiler.clear_cache()
    gc.collect()
    begin = perf_counter_ns()
    make_first_mask(engine, text)
    return wall / 1e6, cpu / 1e6, (perf_counter_ns() - begin) / 1e6, added
