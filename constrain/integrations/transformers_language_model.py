"""Transformers: a model of the transformers library after one prompt, as a `LanguageModel` for any sampler."""

from __future__ import annotations

from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .transformers_models import LoadedModel, as_loaded, load_model

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary
    from .model_cache import PromptedModel

__all__ = ["TransformersModel"]


class TransformersModel:
    """model: "demo", a folder, a hub id, or a loaded model, the latter with its tokenizer (or a Vocabulary).

    prompt: a text, as it is; chat messages; token ids; or None. vocabulary: what `constrain.compile` needs. prompted:
    the model with its cache of keys and values. Torch and transformers are imported when one is made.
    Raises ConstrainError for a model that cannot be loaded.
    """

    def __init__(self, model: Any, tokenizer: Any = None, prompt: Any = None) -> None:
        if isinstance(model, (str, PathLike)):
            loaded = load_model(fspath(model))
            loaded = loaded if tokenizer is None else as_loaded(loaded.model, tokenizer, name=loaded.name)
        elif isinstance(model, LoadedModel):
            loaded = model if tokenizer is None else as_loaded(model.model, tokenizer, name=model.name)
        else:
            loaded = as_loaded(model, tokenizer)
        self.vocabulary: Vocabulary = loaded.vocabulary
        self.prompted: PromptedModel = loaded.on(prompt)

    @property
    def room(self) -> int | None:
        """Most tokens of a text that the model has positions for; None for no limit."""
        return self.prompted.room

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        """As every LanguageModel: float64 [n, V]."""
        rows: NDArray[np.float64] = self.prompted.next_logprobs(prefixes)
        return rows
