"""`SuperposedModel`: a transformers model after one prompt that can read mixtures of tokens (`deciding.Superposed`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from ..base.errors import UnsupportedError
from .model_cache import PromptedModel

__all__ = ["SuperposedModel"]


class SuperposedModel:
    """A `LanguageModel` and `deciding.superposed_decoding.SuperposingModel`. Not thread-safe.

    prompted: the model after its prompt. superposed_calls: forward passes over mixtures so far.
    Raises UnsupportedError for encoder-decoders, and for models whose cache has no entry per token.
    """

    def __init__(self, prompted: PromptedModel) -> None:
        if prompted.decoding or not prompted.crops:
            raise UnsupportedError(
                "superposed decoding needs a decoder-only model with a key-value cache",
                hint="Use BeamSearch, which finds several answers with any model.",
            )
        self.prompted = prompted
        self.prompt_ids, self.max_new_tokens = prompted.prompt_ids, prompted.max_new_tokens
        self.superposed_calls = 0
        self.cache: Any = None
        self.cached: list[Mapping[int, float]] = []

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        """Return the log-probabilities (nats) of the next token after each prefix, float64 [n, V]."""
        rows: NDArray[np.float64] = self.prompted.next_logprobs(prefixes)
        return rows

    @torch.inference_mode()
    def next_superposed(self, mixtures: Sequence[Mapping[int, float]]) -> NDArray[np.float64]:
        """Return the log-probabilities of the next token, float64 [V], after the prompt and mixtures of tokens.

        mixtures: for each position the weights of its tokens, which sum to 1. Those of the previous call are cached.
        """
        given = list(mixtures)
        embed = self.prompted.model.get_input_embeddings()
        parts = []
        if self.cache is None or given[: len(self.cached)] != self.cached or len(given) == len(self.cached):
            self.cache, self.cached = DynamicCache(), []
            parts.append(embed(torch.tensor(self.prompt_ids, device=self.prompted.device)))
        cache, new = self.cache, given[len(self.cached) :]
        self.cache = None  # until the pass is complete
        for mixture in new:
            vectors = embed(torch.tensor(list(mixture), device=self.prompted.device))
            weights = torch.tensor(list(mixture.values()), dtype=vectors.dtype, device=vectors.device)
            parts.append((weights @ vectors)[None])
        length = len(self.prompt_ids) + len(given)
        seen = torch.ones((1, length), dtype=torch.long, device=self.prompted.device)
        with self.prompted.threads():
            named = {self.prompted.cache_argument: cache}
            out = self.prompted.model(
                inputs_embeds=torch.cat(parts)[None], attention_mask=seen, use_cache=True, return_dict=True, **named
            )
            row: NDArray[np.float64] = self.prompted.normalise(out.logits[:, -1])[0]
        self.cache, self.cached, self.superposed_calls = cache, given, self.superposed_calls + 1
        return row

    def close(self) -> None:
        """Drop the cache of mixtures."""
        self.cache, self.cached = None, []
