"""Small transformers that are trained on sentences of a grammar, so that they put mass on its texts.

The sentences, with their noise, are those that the n-gram models of `gad_grammars` are trained on.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

from constrain.integrations.transformers_models import LoadedModel, as_loaded

from .gad_grammars import TrainedGrammar, draw_training_texts

__all__ = ["Training", "train_transformer"]

IGNORED = -100
"""Label of positions that are left out of the loss (torch's `ignore_index`)."""


@dataclass(frozen=True)
class Training:
    """Figures of a training. first_loss, last_loss: mean nats per token of the first and the last tenth of the steps.
    seconds, cpu: wall and CPU time.
    """

    parameters: int
    steps: int
    first_loss: float
    last_loss: float
    seconds: float
    cpu: float


def train_transformer(
    grammar: TrainedGrammar, *, seed: int = 0, sentences: int = 4000, steps: int = 1200, batch: int = 64
) -> tuple[LoadedModel, Training]:
    """Return a GPT-2 of two layers of 64, trained by AdamW on sentences of a grammar, and figures of its training.

    Tokens are the words of the grammar; the end token stands at the beginning of every text, too. The learning rate
    rises for a tenth of the steps and then falls to 0.
    """
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    texts, end = draw_training_texts(grammar, seed, sentences), len(grammar.words)
    length = max(map(len, texts)) + 2
    tokens = torch.full((len(texts), length), end)
    labels = torch.full((len(texts), length), IGNORED)
    for row, text in enumerate(texts):
        tokens[row, 1 : len(text) + 1] = torch.tensor(text, dtype=torch.long)
        labels[row, : len(text) + 2] = tokens[row, : len(text) + 2]
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # at this size more threads only wait for each other
    model: Any = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=end + 1, n_positions=length + 1, n_embd=64, n_layer=2, n_head=4, bos_token_id=end,
            eos_token_id=end, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, loss_type="ForCausalLM",
        )
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    warm = max(steps // 10, 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (steps - step) / (steps - warm + 1))
    )
    rng, losses = random.Random(f"{seed} {grammar.name}, batches"), list[float]()
    begin, cpu = perf_counter(), process_time()
    for _ in range(steps):
        chosen = torch.tensor(rng.sample(range(len(texts)), batch))
        loss = model(input_ids=tokens[chosen], labels=labels[chosen]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    made = Training(
        sum(part.numel() for part in model.parameters()), steps, sum(losses[:warm]) / warm,
        sum(losses[-warm:]) / warm, perf_counter() - begin, process_time() - cpu,
    )  # fmt: skip
    return as_loaded(model.eval(), grammar.vocabulary, name=grammar.name), made
