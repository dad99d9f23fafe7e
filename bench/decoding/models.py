"""The models of the bench: the embedded one, and Llamas with random weights, of 100 million and 1 billion parameters.

A random model has the shape of a real one (that of 1 billion is Llama 3.2's) and Llama 3's vocabulary of 128,256
tokens, so that a forward pass, a row of logits and a mask cost what they cost there. Its text means nothing, and its
distribution is close to uniform; speed and validity do not depend on that, acceptance of drafts does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..checkpoints import BASELINE, load_checkpoint
from ..corpus import ENDS, SIZE, SPECIAL

__all__ = ["EFFORTS", "MODELS", "Effort", "RandomShape", "build_random_model", "count_parameters", "load_bench_model"]


@dataclass(frozen=True, slots=True)
class RandomShape:
    """The shape of a Llama whose input and output embeddings are tied."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    key_value_heads: int


SHAPES = {
    "random-100m": RandomShape(hidden=512, intermediate=2048, layers=9, heads=8, key_value_heads=2),
    "random-1b": RandomShape(hidden=2048, intermediate=8192, layers=16, heads=32, key_value_heads=8),
}
MODELS = ("demo", *SHAPES)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured with a model, so that each takes some minutes although a pass takes 3 ms or 500 ms.

    schemas, tokens, repeat: maximum of each in a part. prompt: characters of the schema in a prompt. documents, styles:
    number of documents in the part "forced", and the styles of white space.
    """

    schemas: int
    tokens: int
    repeat: int
    prompt: int
    documents: int
    styles: tuple[str, ...] = ("compact", "flexible")


EFFORTS = {
    "demo": Effort(schemas=1000, tokens=1000, repeat=1000, prompt=400, documents=1000),
    "random-100m": Effort(schemas=4, tokens=32, repeat=2, prompt=400, documents=4, styles=("compact",)),
    "random-1b": Effort(schemas=2, tokens=12, repeat=1, prompt=120, documents=2, styles=("compact",)),
}


def load_bench_model(name: str, vocabulary: Path, checkpoint: str = BASELINE) -> Any:
    """Return the model of that name as a `LoadedModel`.

    vocabulary: the file of ranks of Llama 3. checkpoint: weights of the embedded model.
    """
    import constrain

    if name == "demo":
        return load_checkpoint(checkpoint)
    from constrain.integrations.transformers_models import as_loaded

    tokens = constrain.Vocabulary.from_tiktoken(vocabulary, special=SPECIAL, eos_ids=ENDS, size=SIZE)
    return as_loaded(build_random_model(SHAPES[name]), tokens, name=name)


def build_random_model(shape: RandomShape, seed: int = 0) -> Any:
    """Return a LlamaForCausalLM with random weights, float32 on a CPU and bfloat16 on a GPU, in evaluation mode."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=SIZE, hidden_size=shape.hidden, intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers, num_attention_heads=shape.heads, num_key_value_heads=shape.key_value_heads,
        max_position_embeddings=8192, tie_word_embeddings=True, bos_token_id=SPECIAL["<|begin_of_text|>"],
        eos_token_id=list(ENDS),
    )  # fmt: skip
    if torch.cuda.is_available():
        return LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()
    return LlamaForCausalLM(config).eval()


def count_parameters(model: Any) -> int:
    """Return the number of parameters of a model, tied ones once."""
    return sum(part.numel() for part in model.parameters())


class ForwardClock:
    """Measure the time inside the forward pass of a model, by wrapping it.

    with ForwardClock(model) as clock: ...
    clock.seconds, clock.calls
    """

    def __init__(self, model: Any, now: Callable[[], float]) -> None:
        self.model, self.now = model, now
        self.seconds, self.calls = 0.0, 0

    def __enter__(self) -> ForwardClock:
        self.forward = self.model.forward

        def timed(*args: Any, **named: Any) -> Any:
            start = self.now()
            answer = self.forward(*args, **named)
            self.seconds += self.now() - start
            self.calls += 1
            return answer

        self.model.forward = timed
        return self

    def __exit__(self, *_: object) -> None:
        del self.model.forward
