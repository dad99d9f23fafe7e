"""One schema through one engine, in a process forked where the engine is ready: time to the first mask, and memory.

The first compile is what the table says: nothing of this schema is known then. It is repeated in fresh processes, since
engines remember patterns, formats or whole schemas between compiles; what a second compile in the same process costs
is told beside it (XGrammar's cache of schemas is emptied before; nothing else is).
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
from ..process_memory import read_resident_memory
from ..workers import Failure, Guard, run_guarded

__all__ = ["ENOUGH", "MEMORY", "TIME", "Cost", "measure_cost"]

TIME = 100.0
"""Milliseconds to the first mask that no schema should need."""
MEMORY = 256.0
"""MiB that no schema should add."""
ENOUGH = 2.0
"""Seconds after which a trial is not repeated: it is over the mark by far."""


@dataclass(slots=True)
class Cost:
    """wall, cpu: ms to the first mask. again: wall ms of another compile in the same process. mebibytes: added at the
    peak. refused: the reason; failed: timeout, memory or crash. A list has one value for each process."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    mebibytes: list[float] = field(default_factory=list)
    refused: str = ""
    failed: str = ""

    @property
    def told(self) -> bool:
        """Return whether there are figures."""
        return bool(self.wall) and not self.failed

    @property
    def over(self) -> bool:
        """Return whether it failed, or is above one of the two marks; a busy machine's waiting is not the engine's."""
        slow = self.told and min(median(self.wall), median(self.cpu)) > TIME
        return bool(self.failed) or slow or (self.told and median(self.mebibytes) > MEMORY)


def measure_cost(engine: Engine, text: str, guard: Guard, repeat: int) -> Cost:
    """One schema through one engine that is ready."""
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
    """In the worker: (wall ms, CPU ms, wall ms of a second time, MiB added), or why it was refused."""
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
