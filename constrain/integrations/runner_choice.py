"""Select the `ModelRunner` for a model: one batch over a slot cache where that works, otherwise one text at a time.

Whether it works is tried out, once per model: two rows of different lengths, a draft with two branches, and one more
token alone must give the rows of plain forward passes. Recurrent models, encoder-decoders, and models that derive
positions from a mask or have attention of their own fail this, and run through `PromptedModel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from ..base.errors import ConstrainError
from ..decoding.language_model_runner import LanguageModelRunner
from ..decoding.model_runner import DEFAULT_BOUNDS, CacheBounds, ModelRunner, RowStep
from ..speculation.draft_source import DraftTree
from .attention_masks import AttentionKinds, describe_attention
from .model_cache import PromptedModel, can_crop
from .transformers_models import logit_width
from .transformers_runner import TransformersRunner

if TYPE_CHECKING:
    from ..sampling.core.language_model import LanguageModel

__all__ = ["find_slot_attention", "make_runner"]

TOLERANCE = 0.05
"""Permitted difference of log-probabilities, times 16 in half precision."""

_KINDS: WeakKeyDictionary[Any, AttentionKinds | None] = WeakKeyDictionary()


def make_runner(model: Any, width: int, bounds: CacheBounds = DEFAULT_BOUNDS) -> ModelRunner:
    """Return a runner for a transformers model and a vocabulary of `width` tokens."""
    kinds = find_slot_attention(model)
    if kinds is not None:
        return TransformersRunner(model, width, kinds, bounds)

    @lru_cache(maxsize=4)
    def after(prompt: tuple[int, ...]) -> LanguageModel:
        return PromptedModel(model, list(prompt), width)

    return LanguageModelRunner(lambda prompt: after(tuple(prompt)), width)


def find_slot_attention(model: Any) -> AttentionKinds | None:
    """Return the attention layers of a model whose texts can share a `SlotCache`; None for other models."""
    if model not in _KINDS:
        kinds = None
        if not model.config.is_encoder_decoder and can_crop(model):
            kinds = describe_attention(model)
        _KINDS[model] = kinds if kinds is not None and gives_plain_rows(model, kinds) else None
    return _KINDS[model]


def gives_plain_rows(model: Any, kinds: AttentionKinds) -> bool:
    """Return whether a small batch with a tree of drafts gives the rows of plain forward passes."""
    width = logit_width(model)
    first, second, *others = (token % width for token in (5, 17, 3, 11, 7))
    draft = DraftTree((first, second, others[0]), (-1, -1, 1))
    runner = TransformersRunner(model, width, kinds)
    try:
        texts: list[list[int]] = [[*others, first], [second]]
        slots = [runner.open(text).slot for text in texts]
        steps = [RowStep(slots[0], texts[0]), RowStep(slots[1], texts[1], draft)]
        long, short = runner.start(steps).wait()
        runner.commit(slots[0], ())
        (single,) = runner.start([RowStep(slots[0], [second])]).wait()
        expected = [texts[0], *(texts[1] + path for path in ([], [first], [second], [second, others[0]]))]
        expected.append([*texts[0], second])
        found = np.concatenate([long, short, single])
        tolerance = TOLERANCE * (1 if runner.dtype == torch.float32 else 16)
        plain = np.stack([compute_plain_row(model, text, width) for text in expected])
        likely = plain > np.log(1e-6)
        return bool(np.abs(found - plain)[likely].max() <= tolerance)
    except (ConstrainError, RuntimeError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError):
        return False
    finally:
        runner.close()


@torch.inference_mode()
def compute_plain_row(model: Any, text: Sequence[int], width: int) -> Any:
    """Return the row after a text by one forward pass without a cache, float32 [V]."""
    ids = torch.tensor([list(text)], device=model.get_input_embeddings().weight.device)
    logits = model(input_ids=ids, use_cache=False, return_dict=True).logits[0, -1]
    return torch.log_softmax(logits.float(), -1).cpu().numpy()[:width]
