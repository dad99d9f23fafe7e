"""`TransformersModel`: a model of the transformers library after one prompt, as a `LanguageModel` for any sampler."""

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
    """A model of the transformers library after one prompt, as a `LanguageModel`.

    Torch and transformers are imported when an instance is created.

    Parameters
    ----------
    model : str, path or model
        "demo", a folder, a hub id, or a loaded model.
    tokenizer : optional
        The tokenizer of a loaded model, or its Vocabulary.
    prompt : str, list of messages, list of int, or None
        A text, used unchanged; chat messages; or token ids.

    Attributes
    ----------
    vocabulary : Vocabulary
        The vocabulary of the model, for `constrain.compile`.
    prompted : PromptedModel
        The model with its key-value cache.

    Raises
    ------
    ConstrainError
        If the model cannot be loaded.
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
    def max_new_tokens(self) -> int | None:
        """Most tokens of a text that the model has positions for, or None if there is no limit."""
        return self.prompted.max_new_tokens

    @property
    def prompt_ids(self) -> list[int]:
        """The tokens of the prompt (of the start of the decoder, for an encoder-decoder)."""
        return self.prompted.prompt_ids

    def next_logits(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        """Return the logits of the next token after each prefix, float64 [n, V]."""
        rows: NDArray[np.float64] = self.prompted.next_logits(prefixes)
        return rows

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        """Return the log-probabilities (nats) of the next token after each prefix, float64 [n, V]."""
        rows: NDArray[np.float64] = self.prompted.next_logprobs(prefixes)
        return rows
