"""mask_softmax_sample beside what it fuses, written with torch's operations."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
import torch

from constrain.integrations.cuda import mask_softmax_sample
from constrain.integrations.logits_processor import unpack_masks

from .applying import WIDTH, build_masks
from .timing import device_time

CUTS: dict[str, dict[str, float]] = {
    "none": {},
    "top_k 50": {"top_k": 50},
    "top_p 0.9": {"top_p": 0.9},
    "top_k 50, top_p 0.9, min_p 0.05": {"top_k": 50, "top_p": 0.9, "min_p": 0.05},
}


def by_torch(
    logits: torch.Tensor, bits: torch.Tensor, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same token, log-probability and feasible mass, as one writes it: a sort where there is a cut."""
    whole = torch.softmax(logits.float(), dim=-1)
    law = whole * unpack_masks(bits, logits.shape[1])
    mass = law.sum(dim=-1)
    if top_k or top_p < 1 or min_p:
        law, order = law.sort(dim=-1, descending=True, stable=True)
        if top_k:
            law[:, top_k:] = 0
        held = law.cumsum(dim=-1) - law
        law = law * (held < top_p * law.sum(dim=-1, keepdim=True)) * (law >= min_p * law[:, :1])
        place = torch.multinomial(law, 1)
        tokens = order.gather(1, place)
    else:
        tokens = place = torch.multinomial(law, 1)
    return tokens[:, 0], (law.gather(1, place)[:, 0] / law.sum(dim=-1)).log(), mass.log()


def measure_part(options: argparse.Namespace) -> list[dict[str, Any]]:
    """One row for each batch, kind of mask and cut."""
    rng = np.random.default_rng(0)
    rows = []
    for batch in (1, 32, 256):
        logits = torch.randn((batch, WIDTH), device="cuda") * 3
        seeds, steps = torch.arange(batch, device="cuda"), torch.zeros(batch, dtype=torch.int64, device="cuda")
        for kind, allowed in (("40 tokens", 40), ("all but 1,300", WIDTH - 1300)):
            bits = build_masks(batch, allowed, rng)
            for name, cut in CUTS.items():
                given: dict[str, Any] = dict(cut)
                ours = device_time(
                    [partial(mask_softmax_sample, logits, bits, seeds=seeds, steps=steps, **given)], options.repeat
                )
                theirs = device_time([partial(by_torch, logits, bits, **given)], options.repeat)
                rows.append({
                    "B": batch, "allowed": kind, "cut": name, "constrain µs": ours, "torch µs": theirs,
                    "ratio": ours / theirs,
                })  # fmt: skip
    return rows
