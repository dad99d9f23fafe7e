"""Measure device time by events around the replay of a CUDA graph, and the bandwidth of the card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any

import torch

__all__ = ["describe_card", "measure_device_time", "measure_host_time", "measure_bandwidth"]

ROUND = 16
"""Launches in a graph: enough that the cost of its replay is negligible."""


def describe_card() -> dict[str, Any]:
    """Return the properties of the card, with its bandwidth."""
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name, "memory GiB": round(properties.total_memory / 2**30),
        "L2 MiB": read_cache_size() / 2**20,
        "multiprocessors": properties.multi_processor_count, "CUDA": torch.version.cuda,
        **{f"{what} GB/s": round(rate / 1e9) for what, rate in zip(("write", "read"), measure_bandwidth())},
    }  # fmt: skip


def read_cache_size() -> int:
    """Return bytes of the L2 cache."""
    return int(getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20))


def measure_bandwidth() -> tuple[float, float]:
    """Return bytes per second of writes and of reads that exceed the cache: from a fill, and a copy less its writes."""
    here = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    there = torch.empty_like(here)
    write = measure_device_time([lambda: here.fill_(1)], repeat=5)
    copy = measure_device_time([lambda: there.copy_(here)], repeat=5)
    return len(here) / write * 1e6, len(here) / max(copy - write, copy / 2) * 1e6


def measure_device_time(runs: Sequence[Callable[[], Any]], repeat: int = 20) -> float:
    """Return µs of one run: the median over replays of a graph of all runs, which work on different memory."""
    torch.cuda.synchronize()  # the data of the runs was created on another stream
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for run in runs:  # compiles, and allocates
            run()
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    count = max(1, ROUND // len(runs)) * len(runs)
    with torch.cuda.graph(graph, stream=side):
        for at in range(count):
            runs[at % len(runs)]()
    times = []
    for _ in range(repeat):
        before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before.record()
        graph.replay()
        after.record()
        after.synchronize()
        times.append(before.elapsed_time(after) * 1e3 / count)
    return float(median(times))


def measure_host_time(run: Callable[[], Any], repeat: int = 20) -> float:
    """Return µs that the host takes to launch a run: the median over batches of 16, between which the card is idle."""
    times = []
    for _ in range(repeat):
        torch.cuda.synchronize()
        begin = perf_counter()
        for _ in range(ROUND):
            run()
        times.append((perf_counter() - begin) / ROUND * 1e6)
    torch.cuda.synchronize()
    return float(median(times))
