"""Preparation of a call of `generate`: the model after its prompt, the compiled constraint and the checker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

from ..base.errors import ConstrainError, LimitError
from ..base.json_documents import References
from ..base.options import Limits, Style
from ..compilation.constraint_compiler import compile
from ..decoding.language_model_runner import LanguageModelRunner
from ..decoding.model_runner import ModelRunner
from ..engine.constraint import Constraint
from ..integrations.transformers_models import LoadedModel, Prompt, VocabularyTokenizer, as_loaded, load_model
from ..integrations.vocabulary_match import check_tokenizer
from ..sampling import Checker, LanguageModel
from ..vocabulary.vocabulary import Vocabulary
from .generation_arguments import Check, ConstraintRequest

__all__ = [
    "as_bytes_checker",
    "compile_request",
    "compose_prompt",
    "find_prompted_runner",
    "limit_tokens",
    "open_runner",
    "prepare_model",
    "resolve_model",
]


def prepare_model(
    model: Any, tokenizer: Any, prompt: Prompt, request: ConstraintRequest
) -> tuple[Vocabulary, Callable[[], LanguageModel]]:
    """Return the Vocabulary of a model and a function that makes the LanguageModel after the prompt.

    The function is called later, because it runs the model.
    """
    loaded = resolve_model(model, tokenizer)
    if not isinstance(loaded, LoadedModel):
        if prompt is not None:
            raise ConstrainError(
                "prompt= was given with a LanguageModel, which holds its own prompt", hint="Leave prompt= out."
            )
        return tokenizer, lambda: loaded
    composed = compose_prompt(loaded, prompt, request)
    return loaded.vocabulary, lambda: loaded.on(composed)


def resolve_model(model: Any, tokenizer: Any) -> LoadedModel | LanguageModel:
    """Return the LoadedModel of a model argument; a LanguageModel, whose Vocabulary is `tokenizer`, unchanged."""
    if isinstance(model, LanguageModel):
        if not isinstance(tokenizer, Vocabulary):
            raise ConstrainError("a LanguageModel needs its Vocabulary", hint="Give it as tokenizer=.")
        return model
    if isinstance(model, (LoadedModel, str, PathLike)):
        loaded = model if isinstance(model, LoadedModel) else load_model(model)
        if isinstance(tokenizer, Vocabulary) and not isinstance(loaded.tokenizer, VocabularyTokenizer):
            check_tokenizer(tokenizer, loaded.tokenizer)
        return loaded if tokenizer is None else as_loaded(loaded.model, tokenizer, name=loaded.name)
    if hasattr(model, "generate") and hasattr(model, "config"):
        return as_loaded(model, tokenizer)
    raise ConstrainError(
        f"model is of type {model.__class__.__name__}, which is not a language model",
        hint='Give "demo", a folder, a hub id, a loaded transformers model, or an object with next_logprobs.',
    )


def open_runner(model: LoadedModel | LanguageModel, vocabulary: Any) -> tuple[Vocabulary, ModelRunner]:
    """Return the Vocabulary and a ModelRunner of what `resolve_model` returned. vocabulary: that of a LanguageModel."""
    if isinstance(model, LoadedModel):
        from ..integrations.runner_choice import make_runner  # imports torch

        return model.vocabulary, make_runner(model.model, model.vocabulary.size)
    return vocabulary, LanguageModelRunner(lambda _: model, vocabulary.size)


def find_prompted_runner(lm: LanguageModel, size: int) -> tuple[ModelRunner, Sequence[int]]:
    """Return a runner for a LanguageModel and the prompt to feed it; empty if the model holds its own prompt."""
    model: Any = getattr(lm, "prompted", lm) if type(lm).__name__ == "TransformersModel" else lm
    if type(model).__name__ == "PromptedModel":
        from ..integrations.runner_choice import find_slot_attention, make_runner  # imports torch

        if find_slot_attention(model.model) is not None:
            return make_runner(model.model, size), model.prompt_ids
    return LanguageModelRunner(lambda _: lm, size), ()


def compose_prompt(loaded: LoadedModel, prompt: Prompt, request: ConstraintRequest | None) -> Prompt:
    """Return the prompt in the format of a model that is shown the constraint; other prompts are unchanged."""
    if loaded.compose is None or not (prompt is None or isinstance(prompt, str)):
        return prompt
    return loaded.compose(prompt, **({} if request is None else request.prompt_arguments()))


def compile_request(
    vocabulary: Vocabulary, request: ConstraintRequest, style: Style, references: References, limits: Limits
) -> Constraint:
    """Compile the requested constraint."""

    return compile(
        vocabulary, style=style, registry=references, base_uri=references.base_uri, limits=limits, **request.given
    )


def limit_tokens(lm: LanguageModel, max_tokens: int) -> int:
    """Return max_tokens, lowered to the number of positions the model has left. Raise LimitError if it has none."""
    positions_left: int | None = getattr(lm, "max_new_tokens", None)
    if positions_left is not None and positions_left < max_tokens:
        max_tokens = positions_left
    if max_tokens < 1:
        raise LimitError("the prompt fills all the positions that the model has", hint="Shorten the prompt.")
    return max_tokens


def as_bytes_checker(check: Check) -> Checker | Callable[[bytes], bool]:
    """Return a Checker unchanged; wrap a function of str as a function of bytes."""
    if isinstance(check, Checker):
        return check
    check_text = check
    return lambda data: bool(check_text(data.decode("utf-8", "replace")))
