"""Small random models of every family, with matching tokenizers of `tokenizer_factory`.

`build_model("llama")` returns a LoadedModel whose logits are wider than its tokenizer, as real ones are. `TableModel`
is a `LanguageModel` without a network: its distribution depends on the last token only, so that exact answers can be
computed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from constrain.integrations.transformers_models import LoadedModel, as_loaded
from tests import tokenizer_factory

FAMILIES = ("llama", "gpt2", "mistral", "t5")
TOKENIZERS = {
    "llama": ("byte_level_bpe", {"bos_token": "<|turn|>", "pad_token": "<|turn|>"}),
    "gpt2": ("byte_level_bpe", {"bos_token": "<|turn|>"}),
    "mistral": ("sentencepiece_bpe", {"bos_token": "<s>", "unk_token": "<unk>", "pad_token": "<unk>"}),
    "t5": ("sentencepiece_unigram", {"bos_token": "<bos>", "unk_token": "<unk>", "pad_token": "<bos>"}),
}
PADDING = 13
"""Logits beyond the tokenizer's tokens."""


def build_tokenizer(family: str) -> Any:
    """Return a transformers tokenizer in the convention of the family (T5's own cannot spell all bytes)."""
    kind, names = TOKENIZERS[family]
    make, eos = tokenizer_factory.MADE[kind]
    return tokenizer_factory.wrapped(make(), eos, **names)


def build_configured_model(family: str, width: int, start: int) -> Any:
    """Return a model of two layers with large random weights, so that its distribution is far from uniform."""
    transformers = pytest.importorskip("transformers")
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    if family == "llama":
        config = transformers.LlamaConfig(vocab_size=width, num_key_value_heads=2, **shape)
        return transformers.LlamaForCausalLM(config)
    if family == "gpt2":
        return transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=width, n_embd=32, n_layer=2, n_head=4, n_positions=512)
        )
    if family == "mistral":
        config = transformers.MistralConfig(vocab_size=width, num_key_value_heads=2, sliding_window=8, **shape)
        return transformers.MistralForCausalLM(config)
    config = transformers.T5Config(
        vocab_size=width, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=start,
        pad_token_id=start,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


@lru_cache(maxsize=8)
def build_model(family: str, seed: int = 0) -> LoadedModel:
    """Return a LoadedModel of a family, the same for the same seed."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # more threads are slower for models of this size
    tokenizer = build_tokenizer(family)
    torch.manual_seed(seed)
    model = build_configured_model(family, len(tokenizer) + PADDING, tokenizer.bos_token_id).eval()
    with torch.no_grad():
        model.get_output_embeddings().weight.normal_(0, 0.7)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.generation_config.bos_token_id = tokenizer.bos_token_id
    return as_loaded(model, tokenizer, name=family)


@lru_cache
def draw_table(size: int, seed: int, spread: float) -> NDArray[np.float64]:
    """Return the table of a TableModel."""
    logits = np.random.default_rng(seed).normal(0, spread, (size + 1, size))
    table: NDArray[np.float64] = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    return table


class UniformModel:
    """A `LanguageModel` in which all tokens are equally likely. calls: number of calls."""

    def __init__(self, size: int) -> None:
        self.size, self.calls = size, 0

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        self.calls += 1
        return np.full((len(prefixes), self.size), -np.log(self.size))


class TableModel:
    """A `LanguageModel` whose distribution depends on the last token. table: float64 [V + 1, V], logs; last row: the
    start.
    """

    def __init__(self, size: int, seed: int = 0, spread: float = 1.5) -> None:
        self.table = draw_table(size, seed, spread).copy()
        self.row_counts: list[int] = []

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        self.row_counts.append(len(prefixes))
        return self.table[[prefix[-1] if prefix else len(self.table) - 1 for prefix in prefixes]]

    def logprob(self, tokens: list[int]) -> float:
        """Return the log-probability of a complete sequence."""
        before = [len(self.table) - 1, *tokens[:-1]]
        return float(self.table[before, tokens].sum())
