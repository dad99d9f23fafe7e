"""Measure how long the stream of a model waits for masks that the host makes while the model runs."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch

import constrain
from constrain import Vocabulary
from constrain.integrations.cuda import Overlap, decode_batch

from ..corpus import ENDS, SIZE

STEPS = 64
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 3},
    },
    "required": ["name", "age", "tags"],
}


class Model:
    """A decoder in the shape of Llama 3.2 1B with random weights, bfloat16: its step of one token is one CUDA graph.

    Engines replay graphs too. Launched operation by operation, such a model takes the host longer than the card, and
    there is no time in which masks could be made.
    """

    hidden, inner, layers, heads, groups, size_of_head = 2048, 8192, 16, 32, 8, 64

    def __init__(self, batch: int) -> None:
        torch.manual_seed(0)
        self.batch, self.done = batch, torch.cuda.Event(enable_timing=True)
        inside = self.size_of_head * (self.heads + 2 * self.groups)
        self.embedding = self.weight(SIZE, self.hidden)
        self.blocks = [
            (
                self.weight(inside, self.hidden), self.weight(self.hidden, self.size_of_head * self.heads),
                self.weight(2 * self.inner, self.hidden), self.weight(self.hidden, self.inner),
            )
            for _ in range(self.layers)
        ]  # fmt: skip
        shape = (self.layers, 2, batch, self.groups, STEPS + 1, self.size_of_head)
        self.past = torch.zeros(shape, dtype=torch.bfloat16, device="cuda")
        self.tokens = torch.zeros(batch, dtype=torch.int32, device="cuda")
        self.position = torch.zeros(1, dtype=torch.int64, device="cuda")
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side), torch.inference_mode():
            self.step()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(self.graph):
            self.logits = self.step()

    @staticmethod
    def weight(rows: int, columns: int) -> torch.Tensor:
        """Return a random matrix of small norm."""
        return (torch.randn((rows, columns), device="cuda") / columns**0.5).bfloat16()

    @property
    def parameters(self) -> int:
        """The number of weights."""
        return int(self.embedding.numel() + sum(one.numel() for block in self.blocks for one in block))

    def step(self) -> torch.Tensor:
        """Return the logits after self.tokens, and move on by one position."""
        norm, linear = torch.nn.functional.rms_norm, torch.nn.functional.linear
        shape = (self.batch, -1, 1, self.size_of_head)
        seen = (torch.arange(STEPS + 1, device="cuda") <= self.position)[None, None, None]
        x = self.embedding[self.tokens.long()]
        for (inside, outside, up, down), (keys, values) in zip(self.blocks, self.past):
            q, k, v = linear(norm(x, (self.hidden,)), inside).split(
                [self.size_of_head * self.heads, *[self.size_of_head * self.groups] * 2], dim=-1
            )
            keys.index_copy_(2, self.position, k.view(shape))
            values.index_copy_(2, self.position, v.view(shape))
            attended = torch.nn.functional.scaled_dot_product_attention(
                q.view(shape), keys, values, attn_mask=seen, enable_gqa=True
            )
            x = x + linear(attended.reshape(self.batch, -1), outside)
            gate, value = linear(norm(x, (self.hidden,)), up).chunk(2, dim=-1)
            x = x + linear(torch.nn.functional.silu(gate) * value, down)
        self.position += 1
        return linear(norm(x, (self.hidden,)), self.embedding)

    def __call__(self, tokens: torch.Tensor | None) -> torch.Tensor:
        if tokens is None:
            self.position.zero_()
            self.tokens.zero_()
        else:
            self.tokens.copy_(tokens)
        self.graph.replay()
        self.done = torch.cuda.Event(enable_timing=True)
        self.done.record()
        return self.logits


class TimedOverlap(Overlap):
    """An Overlap that records an event after the model and one after the wait for masks.

    The first event is recorded when the model was launched, so that time of a late host counts, too.
    """

    def __init__(self, rows: int, words: int, device: str, model: Model) -> None:
        super().__init__(rows, words, device)
        self.model = model
        self.waits: list[tuple[Any, Any]] = []

    def masks(self) -> torch.Tensor:
        """See `Overlap`."""
        out = super().masks()
        after = torch.cuda.Event(enable_timing=True)
        after.record()
        self.waits.append((self.model.done, after))
        return out


def measure_part(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each batch: µs of a step, and of the wait in it."""
    vocabulary = Vocabulary.from_pretrained(options.vocabulary, size=SIZE, eos_ids=ENDS)
    constraint = constrain.compile(vocabulary, schema=SCHEMA)
    rows = []
    for batch in (1, 32, 256):
        model = Model(batch)
        for _ in range(2):  # the first run is a warm-up
            overlap = TimedOverlap(batch, (SIZE + 31) // 32, "cuda", model)
            decode_batch(
                model, [constraint.matcher() for _ in range(batch)], "cuda", max_tokens=STEPS,
                seeds=torch.arange(batch, device="cuda"), overlap=overlap,
            )  # fmt: skip
        torch.cuda.synchronize()
        waits = 1e3 * np.array([before.elapsed_time(after) for before, after in overlap.waits[1:]])
        steps = 1e3 * np.array([a[1].elapsed_time(b[1]) for a, b in zip(overlap.waits[1:], overlap.waits[2:])])
        rows.append({
            "B": batch, "parameters": model.parameters, "steps": len(waits),
            "step µs p50": float(np.median(steps)), "wait µs p50": float(np.median(waits)),
            "wait µs p90": float(np.quantile(waits, 0.9)), "wait µs max": float(waits.max()),
        })  # fmt: skip
        del model
        torch.cuda.empty_cache()
    return rows
