"""Batches: the share of a step outside the forward pass and the softmax, and the cost of n = 8 relative to n = 1.

*A batch of 32 with 32 different constraints*: 32 requests of one prompt each under 32 schemas run at once, without
drafts, so that every step is one token for each row. Time inside the forward pass is measured by wrapping it; the
softmax of the step's logits is timed alone on a tensor of the same shape and counted as often as there were steps.
*n = 8*: eight texts after one prompt compared with one text, and the time of a forward pass over eight rows compared
with one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Any

from ..corpus import Case
from .models import ForwardClock
from .plain import make_prompt

__all__ = ["measure_batch", "measure_samples", "time_softmax"]


def time_softmax(rows: int, columns: int, repeat: int = 20) -> float:
    """Return the median seconds of a log-softmax over float32 [rows, columns]."""
    import torch

    logits = torch.randn(rows, columns)
    times = []
    for _ in range(repeat):
        start = perf_counter()
        torch.log_softmax(logits, -1)
        times.append(perf_counter() - start)
    return median(times)


def measure_batch(engine: Any, cases: Sequence[Case], *, most: int, seed: int) -> dict[str, Any]:
    """Run one text under each case at once, warm; return the shares of the time of the run."""
    prompts = [engine.model.prompt_ids(make_prompt(case)[:200]) for case in cases]
    schemas = [case.schema for case in cases]
    engine.generate(prompts, schema=schemas, max_tokens=most, seed=seed, draft="none", errors="return")
    softmax = time_softmax(len(cases), engine.vocabulary.size)
    with ForwardClock(engine.model.model, perf_counter) as clock:
        start = perf_counter()
        made = engine.generate(prompts, schema=schemas, max_tokens=most, seed=seed + 1, draft="none", errors="return")
        seconds = perf_counter() - start
    ended = [one for one in made if not isinstance(one, Exception)]
    outside = seconds - clock.seconds - softmax * clock.calls
    return {
        "rows": len(cases), "constraints": len(set(schemas)), "texts": len(ended), "steps": clock.calls,
        "seconds": seconds, "forward": clock.seconds / seconds, "softmax": softmax * clock.calls / seconds,
        "outside": max(outside, 0.0) / seconds, "tokens/s": sum(one.stats.tokens for one in ended) / seconds,
    }  # fmt: skip


def measure_samples(engine: Any, case: Case, *, most: int, repeat: int, seed: int) -> dict[str, Any]:
    """Return the time of n = 8 over that of n = 1, per step, and the same of the model's own forward pass."""
    prompt = engine.model.prompt_ids(make_prompt(case))
    per_step: dict[int, list[float]] = {1: [], 8: []}
    forward: dict[int, list[float]] = {1: [], 8: []}
    for turn in range(repeat + 1):
        for n in (1, 8):
            with ForwardClock(engine.model.model, perf_counter) as clock:
                start = perf_counter()
                engine.generate(prompt, schema=case.schema, n=n, max_tokens=most, seed=seed + turn, draft="none")
                seconds = perf_counter() - start
            if turn:  # the first turn warms up
                per_step[n].append(seconds / clock.calls)
                forward[n].append(clock.seconds / clock.calls)
    return {
        "n=1, ms/step": median(per_step[1]) * 1e3, "n=8, ms/step": median(per_step[8]) * 1e3,
        "ratio": median(per_step[8]) / median(per_step[1]), "model alone": median(forward[8]) / median(forward[1]),
    }  # fmt: skip
