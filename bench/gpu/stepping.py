"""Measure a step of constraints whose tables are on the card."""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

import numpy as np
import torch

import constrain
from constrain import Vocabulary
from constrain.integrations.cuda import ResidentConstraints, TokenTable, apply_mask, token_table

from ..corpus import ENDS, SIZE
from .timing import measure_device_time

FORMS: dict[str, dict[str, Any]] = {
    "a word of three": {"regex": "yes|no|maybe"},
    "an address": {"regex": r"[a-z]{1,20}@[a-z]{1,20}\.(com|org)"},
    "an object": {
        "schema": {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"enum": ["x", "yy"]},
                "c": {"type": "string", "maxLength": 10},
            },
            "required": ["a", "b", "c"],
            "additionalProperties": False,
        }
    },
}
BATCH = 64


def measure_part(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each constraint: its size, the time to build it, and µs of a step of 64 rows."""
    vocabulary = Vocabulary.from_pretrained(options.vocabulary, size=SIZE, eos_ids=ENDS)
    rows = []
    for name, form in FORMS.items():
        begin = perf_counter()
        table = token_table(constrain.compile(vocabulary, **form))
        built = perf_counter() - begin
        step, applied = time_steps(table, options.repeat)
        rows.append({
            "constraint": name, "states": len(table.states), "classes": int(table.classes.max()) + 1,
            "slots": len(table.slots), "masks": len(table.masks), "MB": table.nbytes / 1e6, "built s": built,
            "step µs": step, "apply bf16 µs": applied,
        })  # fmt: skip
    return rows


def time_steps(table: TokenTable, repeat: int) -> tuple[float, float]:
    """Return µs of a step from random states with random tokens (refused tokens cost the same), and of apply_mask."""
    here = ResidentConstraints([table], "cuda")
    places = here.start([0] * BATCH)
    states = torch.from_numpy(np.random.default_rng(0).integers(2, len(table.states), BATCH).astype(np.int32)).cuda()
    tokens = torch.randint(0, SIZE, (BATCH,), dtype=torch.int32, device="cuda")
    logits = torch.zeros((BATCH, SIZE), dtype=torch.bfloat16, device="cuda")

    def reset() -> None:
        places.states.copy_(states)

    def step() -> None:
        reset()
        here.step(places, tokens)

    both, alone = measure_device_time([step], repeat), measure_device_time([reset], repeat)
    return both - alone, measure_device_time([lambda: apply_mask(logits, here.masks, sources=places.rows)], repeat)
