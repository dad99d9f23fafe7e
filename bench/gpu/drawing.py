"""Measure mask_softmax_sample, and the same with separate operations of torch."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
import torch

from constrain.integrations.cuda import mask_softmax_sample
from constrain.integrations.logits_processor import unpack_masks

from .applying import WIDTH, build_masks
from .timing import measure_device_time, measure_host_time

CUTS: dict[str, dict[str, float]] = {
    "none": {},
    "top_k 50": {"top_k": 50},
    "top_p 0.9": {"top_p": 0.9},
    "top_k 50, top_p 0.9, min_p 0.05": {"top_k": 50, "top_p": 0.9, "min_p": 0.05},
}


def sample_with_torch(
    logits: torch.Tensor, bits: torch.Tensor, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return token, log-probability and feasible mass by torch's operations: a sort where there is a cut."""
    probabilities = torch.softmax(logits.float(), dim=-1)
    weights = probabilities * unpack_masks(bits, logits.shape[1])
    mass = weights.sum(dim=-1)
    if top_k or top_p < 1 or min_p:
        weights, order = weights.sort(dim=-1, descending=True, stable=True)
        if top_k:
            weights[:, top_k:] = 0
        mass_before = weights.cumsum(dim=-1) - weights
        weights = (
            weights * (mass_before < top_p * weights.sum(dim=-1, keepdim=True)) * (weights >= min_p * weights[:, :1])
        )
        position = torch.multinomial(weights, 1)
        tokens = order.gather(1, position)
    else:
        tokens = position = torch.multinomial(weights, 1)
    return tokens[:, 0], (weights.gather(1, position)[:, 0] / weights.sum(dim=-1)).log(), mass.log()


def measure_part(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each batch, kind of mask and cut."""
    rng = np.random.default_rng(0)
    rows = []
    for batch in (1, 32, 256):
        logits = torch.randn((batch, WIDTH), device="cuda") * 3
        seeds, steps = torch.arange(batch, device="cuda"), torch.zeros(batch, dtype=torch.int64, device="cuda")
        for kind, allowed in (("40 tokens", 40), ("all but 1,300", WIDTH - 1300)):
            bits = build_masks(batch, allowed, rng)
            for name, cut in CUTS.items():
                given: dict[str, Any] = dict(cut)
                draw = partial(mask_softmax_sample, logits, bits, seeds=seeds, steps=steps, **given)
                by_operations = partial(sample_with_torch, logits, bits, **given)
                ours, theirs = (measure_device_time([run], options.repeat) for run in (draw, by_operations))
                launch, launches = (measure_host_time(run, options.repeat) for run in (draw, by_operations))
                rows.append({
                    "B": batch, "allowed": kind, "cut": name, "constrain µs": ours, "torch µs": theirs,
                    "ratio": ours / theirs, "constrain host µs": launch, "torch host µs": launches,
                })  # fmt: skip
    return rows
