"""A model after several prompts, for what learns from its texts (`sampling.NGram.distil`, `sampling.Hmm.distil`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..base.errors import ConstrainError
from ..integrations.transformers_models import LoadedModel, Prompt
from ..sampling import LanguageModel
from ..vocabulary.vocabulary import Vocabulary
from .model_preparation import resolve_model

__all__ = ["open_models"]


def open_models(model: Any, tokenizer: Any, prompts: Sequence[Prompt]) -> Iterator[tuple[LanguageModel, Vocabulary]]:
    """Yield the LanguageModel after each prompt, and its Vocabulary.

    model, tokenizer: as for `generate`. Prompts are used unchanged; a LanguageModel holds its own, so it takes None
    only.
    """
    resolved = resolve_model(model, tokenizer)
    for prompt in prompts:
        if isinstance(resolved, LoadedModel):
            yield resolved.on(prompt), resolved.vocabulary
        elif prompt is not None:
            raise ConstrainError(
                "a prompt was given with a LanguageModel, which holds its own prompt", hint="Leave prompts= out."
            )
        else:
            yield resolved, tokenizer
