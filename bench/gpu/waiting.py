"""How long the model's stream waits for masks that the host makes while the model runs."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch

import constrain
from constrain import Vocabulary
from constrain.integrations.cuda import Overlap, decode_batch

from ..corpus import ENDS, SIZE

STEPS, PROMPT = 64, 32
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
    """A Llama of 1.2 billion random weights, bfloat16, with its cache."""

    def __init__(self, batch: int) -> None:
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.set_default_dtype(torch.bfloat16)
        with torch.device("cuda"):
            self.model = LlamaForCausalLM(
                LlamaConfig(
                    vocab_size=SIZE, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                    num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=1024,
                    tie_word_embeddings=True,
                )
            ).eval()  # fmt: skip
        torch.set_default_dtype(torch.float32)
        self.batch, self.past, self.done = batch, None, torch.cuda.Event(enable_timing=True)

    def __call__(self, tokens: torch.Tensor | None) -> torch.Tensor:
        if tokens is None:
            ids = torch.randint(0, 1000, (self.batch, PROMPT), device="cuda")
            self.past = None
        else:
            ids = tokens.long()[:, None]
        with torch.inference_mode():
            out = self.model(ids, past_key_values=self.past, use_cache=True, logits_to_keep=1)
        self.past = out.past_key_values
        self.done = torch.cuda.Event(enable_timing=True)
        self.done.record()
        logits: torch.Tensor = out.logits[:, -1]
        return logits


class Watched(Overlap):
    """Events where the model was done, and where masks were there: what lies between is what they cost.

    The first is recorded when the model was launched, so that a host that comes late with masks counts too.
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
    """One row for each batch: µs of a step, and of waiting in it."""
    vocabulary = Vocabulary.from_pretrained(options.vocabulary, size=SIZE, eos_ids=ENDS)
    constraint = constrain.compile(vocabulary, schema=SCHEMA)
    rows = []
    for batch in (1, 32, 256):
        model = Model(batch)
        for _ in range(2):  # the first warms everything up
            watched = Watched(batch, (SIZE + 31) // 32, "cuda", model)
            decode_batch(
                model, [constraint.matcher() for _ in range(batch)], "cuda", max_tokens=STEPS,
                seeds=torch.arange(batch, device="cuda"), overlap=watched,
            )  # fmt: skip
        torch.cuda.synchronize()
        waits = 1e3 * np.array([before.elapsed_time(after) for before, after in watched.waits[1:]])
        steps = 1e3 * np.array([a[1].elapsed_time(b[1]) for a, b in zip(watched.waits[1:], watched.waits[2:])])
        rows.append({
            "B": batch, "parameters": sum(one.numel() for one in model.model.parameters()), "steps": len(waits),
            "step µs p50": float(np.median(steps)), "wait µs p50": float(np.median(waits)),
            "wait µs p90": float(np.quantile(waits, 0.9)), "wait µs max": float(waits.max()),
        })  # fmt: skip
        del model
        torch.cuda.empty_cache()
    return rows
