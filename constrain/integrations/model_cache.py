"""A transformers model after one prompt: `next_logprobs` with a key-value cache.

The token ids of the cache are stored beside it. A new request reuses their common prefix, crops the rest of the cache,
and feeds only the remaining tokens. So prefixes may be requested in any order, and several answers to one prompt share
its keys and values. A chain of prefixes, each extending the one before, is one forward pass; unrelated prefixes are one
padded batch over the keys and values of their common prefix.

Particle samplers request prefixes of equal length, step by step: the batch of the last step is retained, its rows are
gathered in the order of the new prefixes (some duplicated, some dropped), and one token is fed to each.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache, EncoderDecoderCache

from ..base.errors import ConstrainError
from .context_length import count_positions
from .transformers_versions import name_cache_argument

__all__ = ["PromptedModel"]

CROPPABLE = {"full_attention", "sliding_attention", "chunked_attention", "attention"}
"""Types of layers whose cache has one entry per token, so that it can be cropped."""


SMALL = 20_000_000
"""Number of parameters below which a forward pass on a CPU uses one thread. Parallelising so little work gains nothing,
and is costly while other processes use the cores: 200 ms instead of 3 ms per pass of the embedded model.
"""


class PromptedModel:
    """A `LanguageModel`: the distribution of the next token after `prompt` and a prefix. Not thread-safe.

    prompt: token ids; of an encoder-decoder, the input of the encoder. width: number of columns of the result; a model
    with fewer logits is refused, and further logits are padding, dropped after normalisation, so that their mass is
    missing. calls, tokens_fed: number of forward passes so far, and of tokens fed to them. max_new_tokens:
    most tokens of a text, end token included, that the model has positions for after the prompt; None if there is no
    limit.
    """

    def __init__(self, model: Any, prompt: list[int], width: int) -> None:
        self.model, self.width = model, width
        self.calls = self.tokens_fed = 0
        self.device = model.get_input_embeddings().weight.device
        self.decoding: dict[str, Any] = {}
        self.prompt_ids = list(prompt)
        if model.config.is_encoder_decoder:
            self.prompt_ids = [decoder_start(model)]
            ids = torch.tensor([prompt], device=self.device)
            with torch.inference_mode():
                self.decoding["encoder_outputs"] = model.get_encoder()(input_ids=ids, return_dict=True)
        limit = count_positions(model)
        self.max_new_tokens = None if limit is None else limit - len(self.prompt_ids) + 1
        self.cached: list[int] = []
        self.cache: Any = None
        self.batch: Any = None
        self.rows: dict[tuple[int, ...], int] = {}  # of the batch: a text's row
        self.crops = can_crop(model)
        small = self.device.type == "cpu" and sum(part.numel() for part in model.parameters()) < SMALL
        self.threads: Callable[[], AbstractContextManager[None]] = one_thread if small else nullcontext
        self.cache_argument = name_cache_argument(model)
        self.accepts_logits_to_keep = "logits_to_keep" in inspect.signature(model.forward).parameters

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        """Return the log-probabilities (nats) of the next token after each prefix, float64 [n, width]."""
        rows: NDArray[np.float64] = self.evaluate(prefixes, normalised=True)
        return rows

    def next_logits(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        """Return the logits of the next token after each prefix, float64 [n, width], for penalties on their scale."""
        rows: NDArray[np.float64] = self.evaluate(prefixes, normalised=False)
        return rows

    @torch.inference_mode()
    def evaluate(self, prefixes: list[list[int]], *, normalised: bool) -> NDArray[np.float64]:
        """Return the log-probabilities or logits of the next token after each prefix, float64 [n, width]."""
        if not prefixes:
            return np.zeros((0, self.width))
        requested = [(*self.prompt_ids, *prefix) for prefix in prefixes]
        number = {text: i for i, text in enumerate(dict.fromkeys(requested))}
        texts = [list(text) for text in number]
        with self.threads():
            logits = self.compute_logits(texts)
            rows = self.normalise(logits) if normalised else self.crop_padding(logits.float().cpu().double())
        return rows if len(texts) == len(requested) else rows[[number[text] for text in requested]]

    def compute_logits(self, texts: list[list[int]]) -> torch.Tensor:
        """Return logits [n, V] after each of n different texts, in the cheapest way."""
        parents = [self.rows.get(tuple(text[:-1])) for text in texts]
        known = [row for row in parents if row is not None]
        if self.batch is not None and len(known) == len(texts):
            return self.extend_batch(texts, known)
        self.batch, self.rows = None, {}
        chain = all(len(a) <= len(b) and b[: len(a)] == a for a, b in zip(texts, texts[1:]))
        return self.evaluate_chain(texts) if chain else self.evaluate_batch(texts)

    def extend_batch(self, texts: list[list[int]], parents: list[int]) -> torch.Tensor:
        """Return logits [n, V] after texts that extend rows of the retained batch by one token each; they replace the
        batch.
        """
        batch, size = self.batch, len(self.rows)
        self.batch, self.rows = None, {}  # until the pass is complete
        if parents != list(range(size)):
            chosen = torch.tensor(parents, device=self.device)
            batch = copy_cache(batch, lambda part: part.index_select(0, chosen))
        tokens = torch.tensor([text[-1:] for text in texts], device=self.device)
        seen = torch.ones((len(texts), len(texts[0])), dtype=torch.long, device=self.device)
        out = self.run(tokens, seen, 1, batch)
        self.retain_batch(batch, texts)
        return out[:, -1]

    def retain_batch(self, batch: Any, texts: list[list[int]]) -> None:
        """Retain a batch without padding for the next step."""
        self.batch, self.rows = batch, {tuple(text): row for row, text in enumerate(texts)}

    def evaluate_chain(self, texts: list[list[int]]) -> torch.Tensor:
        """Return logits [n, V] after each text of a chain, in one pass over the longest."""
        first, longest = len(texts[0]) - 1, texts[-1]
        start = min(self.count_cached(longest), first)
        self.crop(start)
        self.cached = []  # until the pass is complete: an interrupt may leave some layers longer than others
        logits = self.forward(longest[start:], start, first - start)
        self.cached = longest
        return logits[[len(text) - 1 - first for text in texts]]

    def count_cached(self, text: list[int]) -> int:
        """Return how many tokens of `text` are in the cache already."""
        if self.cache is None:
            return 0
        common = 0
        for a, b in zip(self.cached, text):
            if a != b:
                break
            common += 1
        return common

    def crop(self, length: int) -> None:
        """Crop the cache to its first `length` tokens."""
        if self.cache is None or not self.crops or length == 0:
            self.cache, self.cached = self.fresh(), []
        elif length < len(self.cached):
            prefix, excess = self.cached[:length], len(self.cached) - length
            self.cached = []  # until all layers are cropped: an interrupt may leave some of them longer
            self.cache.crop(-excess)  # counted from the end: all versions agree on negative numbers
            self.cached = prefix

    def fresh(self) -> Any:
        """Return an empty cache, with full layers even for sliding windows, so that it can always be cropped."""
        if not self.crops:
            return None
        if self.decoding:
            return EncoderDecoderCache(DynamicCache(), DynamicCache())
        return DynamicCache()

    def forward(self, ids: list[int], start: int, skip: int) -> torch.Tensor:
        """Feed `ids` after `start` cached tokens; return logits [len(ids) - skip, V] of all but the first `skip` of
        them.
        """
        tokens = torch.tensor([ids], device=self.device)
        if self.cache is None:
            out = self.run(tokens, None, len(ids) - skip, None)
        else:
            seen = torch.ones((1, start + len(ids)), dtype=torch.long, device=self.device)
            out = self.run(tokens, seen, len(ids) - skip, self.cache)
        return out[0]

    def evaluate_batch(self, texts: list[list[int]]) -> torch.Tensor:
        """Return logits [n, V] after each of unrelated texts: one right-padded batch over their common prefix.

        A text that is a prefix of another one has no row of its own: its logits are those of a position of the other.
        """
        shared = 0
        while all(len(text) > shared + 1 and text[shared] == texts[0][shared] for text in texts):
            shared += 1
        if not self.crops or shared == 0:
            return torch.cat([self.evaluate_chain([text]) for text in texts])
        if self.count_cached(texts[0]) < shared:
            self.evaluate_chain([texts[0][:shared]])
        self.crop(shared)
        leaves, owners = find_leaves(texts)
        tails = [leaf[shared:] for leaf in leaves]
        longest, needed = max(map(len, tails)), min(map(len, texts)) - shared
        tokens = torch.tensor([tail + [tail[-1]] * (longest - len(tail)) for tail in tails], device=self.device)
        seen = torch.tensor([[1] * (shared + len(t)) + [0] * (longest - len(t)) for t in tails], device=self.device)
        batch = copy_cache(self.cache, lambda part: part.repeat_interleave(len(leaves), 0))
        out = self.run(tokens, seen, longest - needed + 1, batch)
        if all(len(text) - shared == longest for text in texts):
            self.retain_batch(batch, texts)
        return out[owners, [len(text) - shared - needed for text in texts]]

    def run(self, tokens: torch.Tensor, seen: torch.Tensor | None, last: int, cache: Any) -> torch.Tensor:
        """Run one forward pass, with a cache or none; return logits [batch, last, V] of the last positions."""
        self.calls, self.tokens_fed = self.calls + 1, self.tokens_fed + tokens.numel()
        named = {"decoder_input_ids": tokens} if self.decoding else {"input_ids": tokens}
        if seen is not None:
            named["decoder_attention_mask" if self.decoding else "attention_mask"] = seen
        extra = dict(self.decoding)
        if self.decoding and len(tokens) > 1:
            extra["encoder_outputs"] = type(extra["encoder_outputs"])(
                last_hidden_state=extra["encoder_outputs"].last_hidden_state.expand(len(tokens), -1, -1)
            )
        extra["use_cache"] = cache is not None
        if cache is not None:
            extra[self.cache_argument] = cache
        if self.accepts_logits_to_keep:
            extra["logits_to_keep"] = last
        logits = self.model(**named, **extra, return_dict=True).logits
        return logits[:, logits.shape[1] - last :]

    def normalise(self, logits: torch.Tensor) -> NDArray[np.float64]:
        """Return log-probabilities, float64 [n, width], of logits [n, V >= width] of any floating-point dtype."""
        return self.crop_padding(torch.log_softmax(logits.float().cpu().double(), dim=-1))

    def crop_padding(self, logits: torch.Tensor) -> NDArray[np.float64]:
        """Return the first `width` columns of a tensor [n, V >= width] as an array."""
        if logits.shape[-1] < self.width:
            raise ConstrainError(
                f"the model produces {logits.shape[-1]} logits for a vocabulary of {self.width} tokens"
            )
        return np.asarray(logits[:, : self.width].numpy())


def find_leaves(texts: list[list[int]]) -> tuple[list[list[int]], list[int]]:
    """Return those of different texts that are no proper prefix of another, in their order, and for each text the
    number of one that begins with it.
    """
    ordered = sorted(range(len(texts)), key=texts.__getitem__)
    leaf_of, leaf = [0] * len(texts), ordered[-1]
    for number in reversed(ordered):
        if texts[leaf][: len(texts[number])] != texts[number]:
            leaf = number
        leaf_of[number] = leaf
    kept = sorted(set(leaf_of))
    rows = {leaf: row for row, leaf in enumerate(kept)}
    return [texts[leaf] for leaf in kept], [rows[leaf] for leaf in leaf_of]


def copy_cache(cache: Any, pick: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return a new cache of `pick` applied to all keys and values [batch, ...]; the old one is unchanged."""
    if isinstance(cache, EncoderDecoderCache):
        return EncoderDecoderCache(
            copy_cache(cache.self_attention_cache, pick), copy_cache(cache.cross_attention_cache, pick)
        )
    out = DynamicCache()
    for index, layer in enumerate(cache.layers):
        if layer.keys is not None:
            out.update(pick(layer.keys), pick(layer.values), index)
    return out


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def decoder_start(model: Any) -> int:
    """Return the token that the decoder of an encoder-decoder starts from."""
    for source in (getattr(model, "generation_config", None), model.config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            token = getattr(source, name, None)
            if isinstance(token, int):
                return token
    raise ConstrainError(
        "the model's config defines no decoder start token", hint="Set model.config.decoder_start_token_id."
    )


def can_crop(model: Any) -> bool:
    """Return whether the model's cache can be cropped token by token; otherwise every request is recomputed."""
    config = model.config.get_text_config(decoder=True)
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        return set(kinds) <= CROPPABLE
    return not getattr(model, "_is_stateful", False)
