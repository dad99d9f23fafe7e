"""Measure apply_mask on the card, the kernels of the peers, and the lower bound of memory."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from constrain.integrations.cuda import apply_mask

from .timing import measure_bandwidth, measure_device_time, measure_host_time, read_cache_size

WIDTH = 128_256
KINDS = {"40 tokens": 40, "half, at random": WIDTH // 2, "all but 1,300": WIDTH - 1300}
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
Run = Callable[[torch.Tensor, torch.Tensor], Any]


def list_kernels() -> dict[str, Run]:
    """Return our kernel and those of the installed peers."""
    found: dict[str, Run] = {"constrain": apply_mask}
    try:
        from xgrammar import apply_token_bitmask_inplace
    except ImportError:
        pass
    else:
        found["xgrammar triton"] = partial(apply_token_bitmask_inplace, backend="triton")
        found["xgrammar cuda"] = partial(apply_token_bitmask_inplace, backend="cuda")
    try:
        from llguidance.torch import apply_token_bitmask_inplace as of_llguidance
    except ImportError:
        pass
    else:
        found["llguidance"] = of_llguidance
    return found


def build_masks(count: int, allowed: int, rng: np.random.Generator) -> torch.Tensor:
    """Return int32 [count, words], each with `allowed` tokens drawn at random."""
    flags = np.zeros((count, WIDTH), np.uint8)
    for row in flags:
        row[rng.permutation(WIDTH)[:allowed]] = 1
    return torch.from_numpy(np.packbits(flags, axis=1, bitorder="little").view(np.int32)).cuda()


def count_bytes(bits: torch.Tensor, size: int) -> tuple[int, int]:
    """Return bytes that must be read and written: the masks, and sectors of 32 bytes with logits of `size` bytes.

    A sector in which all tokens are masked is written, one in which some are is read too.
    """
    masked = ~np.unpackbits(bits.cpu().numpy().view(np.uint8), bitorder="little").astype(bool)
    sectors = masked.reshape(-1, 32 // size)
    some = int(sectors.any(axis=1).sum())
    whole = int(sectors.all(axis=1).sum())
    return bits.numel() * 4 + 32 * (some - whole), 32 * some


def measure_part(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each engine, type, batch and kind of mask."""
    write, read = measure_bandwidth()
    rng = np.random.default_rng(0)
    rows = []
    for batch in (1, 32, 256):
        for kind, allowed in KINDS.items():
            bits = build_masks(batch, allowed, rng)
            for name, dtype in TYPES.items():
                size = batch * WIDTH * dtype.itemsize
                copies = int(min(max(2, 4 * read_cache_size() // size), 64))
                logits = [torch.zeros((batch, WIDTH), dtype=dtype, device="cuda") for _ in range(copies)]
                loaded, stored = count_bytes(bits, dtype.itemsize)
                floor = (loaded / read + stored / write) * 1e6
                for engine, run in list_kernels().items():
                    try:
                        time = measure_device_time([partial(run, one, bits) for one in logits], options.repeat)
                        launch = measure_host_time(partial(run, logits[0], bits), options.repeat)
                    except Exception as error:
                        if engine == "constrain":
                            raise
                        # a peer that has no kernel for this, or not on this card
                        note = str(error).split("\n")[0][:40]
                        rows.append(build_row(engine, name, batch, kind, None, floor, None, note))
                        continue
                    rows.append(build_row(engine, name, batch, kind, time, floor, launch, ""))
                del logits
    return rows


def build_row(
    engine: str,
    dtype: str,
    batch: int,
    kind: str,
    time: float | None,
    floor: float,
    launch: float | None,
    note: str,
) -> dict[str, Any]:
    """Return one row."""
    return {
        "engine": engine, "logits": dtype, "B": batch, "allowed": kind, "µs": time, "floor µs": floor,
        "times the floor": None if time is None else time / floor, "host µs": launch, "note": note,
    }  # fmt: skip
