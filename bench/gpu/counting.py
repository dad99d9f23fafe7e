"""Count loads and stores of apply_mask for one row of 128,256 logits, in numba's simulator, without a card."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from constrain.integrations.cuda import apply_mask

WIDTH = 128_256
KINDS = ("none allowed", "40 tokens", "half, at random", "all but 1,300", "all but a run of 1,300", "all")


def build_mask(kind: str, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return int32 [words]."""
    flags = np.zeros(WIDTH, np.uint8)
    if kind == "40 tokens":
        flags[rng.permutation(WIDTH)[:40]] = 1
    elif kind == "half, at random":
        flags[rng.permutation(WIDTH)[: WIDTH // 2]] = 1
    elif kind.startswith("all"):
        flags[:] = 1
        if "1,300" in kind:
            flags[slice(40_000, 41_300) if "run" in kind else rng.permutation(WIDTH)[:1300]] = 0
    return np.packbits(flags, bitorder="little").view(np.int32)


def measure_part() -> list[dict[str, Any]]:
    """Return a row for each type of logits and kind of mask."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeWithinKernelCUDAArray as Array

    rng, rows = np.random.default_rng(0), []
    get, put = Array.__getitem__, Array.__setitem__
    seen = {"bits": 0, "logits": 0, "written": 0}

    def read(self: Any, index: Any) -> Any:
        if self.size in (WIDTH, WIDTH // 32):
            seen["logits" if self.size == WIDTH else "bits"] += 1
        return get(self, index)

    def write(self: Any, index: Any, value: Any) -> None:
        if self.size == WIDTH:
            seen["written"] += 1
        put(self, index, value)

    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        for kind in KINDS:
            seen.update(bits=0, logits=0, written=0)
            logits = torch.zeros((1, WIDTH), dtype=dtype)
            Array.__getitem__, Array.__setitem__ = read, write
            try:
                apply_mask(logits, torch.from_numpy(build_mask(kind, rng)))
            finally:
                Array.__getitem__, Array.__setitem__ = get, put
            masked = int((logits == -torch.inf).sum())
            rows.append({
                "logits": name, "allowed": kind, "masked": masked, "words read": seen["bits"], "of": WIDTH // 32,
                "logits read": seen["logits"], "logits written": seen["written"],
            })  # fmt: skip
    return rows
