"""Preparation of a call of `generate`: the model after its prompt, the compiled constraint and the checker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from ..base.errors import ArgumentError, ConstrainError, LimitError, Refusal, check_choice
from ..base.json_documents import References
from ..base.options import Limits, Style
from ..checking.verdicts import TextChecker, VerdictChecker
from ..compilation.constraint_compiler import compile
from ..decoding.logit_adjustment import AdjustedModel, LogitAdjustment
from ..engine.constraint import Constraint
from ..integrations.transformers_models import LoadedModel, Prompt, VocabularyTokenizer, as_loaded, load_model
from ..integrations.vocabulary_match import check_tokenizer
from ..sampling import Checker, LanguageModel
from ..vocabulary.vocabulary import Vocabulary
from .generation_arguments import Check, ConstraintRequest
from .prompt_composition import (
    PromptTemplate,
    add_refusals,
    as_prompt_template,
    check_retry_prompt,
    compose_prompt,
)

__all__ = ["PreparedModel", "PromptOptions", "bind_check", "compile_request", "limit_tokens", "prepare_model"]


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """How the prompt is composed, see `prompt_composition`."""

    chat: str = "plain"
    template: PromptTemplate | None = None
    retry_prompt: str | None = None

    @classmethod
    def of(cls, chat: object, show_constraint: object, retry_prompt: object) -> PromptOptions:
        """Make PromptOptions of the arguments of `generate`. Raise TypeError or ArgumentError."""
        check_choice("chat", chat, ("plain", "template"))
        check_retry_prompt(retry_prompt)
        template = as_prompt_template(show_constraint)
        return cls(str(chat), template, None if retry_prompt is None else str(retry_prompt))


@dataclass(frozen=True, slots=True)
class PreparedModel:
    """A model and its prompt, before the model is run. A LanguageModel holds its prompt, a LoadedModel is given it."""

    vocabulary: Vocabulary
    model: LanguageModel | LoadedModel
    prompt: Prompt = None
    retry_prompt: str | None = None

    def after_prompt(self, adjustment: LogitAdjustment, refusals: tuple[Refusal, ...] = ()) -> LanguageModel:
        """Return the LanguageModel after the prompt, with penalties and biases; it runs the model.

        refusals: put into the prompt if there is a `retry_prompt`.
        """
        lm: LanguageModel
        if isinstance(self.model, LoadedModel):
            prompt = self.prompt
            if refusals and self.retry_prompt is not None:
                prompt = add_refusals(prompt, refusals, self.retry_prompt)
            lm = self.model.on(prompt)
        else:
            lm = self.model
        return lm if adjustment.is_empty else AdjustedModel(lm, adjustment, getattr(lm, "prompt_ids", ()))


def prepare_model(
    model: Any,
    tokenizer: Any,
    prompt: Prompt,
    request: ConstraintRequest,
    options: PromptOptions,
    loading: Mapping[str, Any],
) -> PreparedModel:
    """Return a model with its Vocabulary and its prompt.

    loading: arguments of `load_model`, None where they were not given; only for models given by name.
    """
    given = [name for name, value in loading.items() if value is not None]
    if given and not isinstance(model, (str, PathLike)):
        raise ArgumentError(
            f"{given[0]}= was given with a loaded model", hint="It is for models that are loaded by name."
        )
    if isinstance(model, LanguageModel):
        if not isinstance(tokenizer, Vocabulary):
            raise ConstrainError("a LanguageModel needs its Vocabulary", hint="Give it as tokenizer=.")
        if prompt is not None or options != PromptOptions():
            raise ConstrainError(
                "prompt= was given with a LanguageModel, which holds its own prompt",
                hint="Leave prompt=, chat=, show_constraint= and retry_prompt= out.",
            )
        return PreparedModel(tokenizer, model)
    loaded = find_loaded(model, tokenizer, loading)
    composed = compose_prompt(prompt, request, loaded, chat=options.chat, template=options.template)
    if options.retry_prompt is not None:
        add_refusals(composed, (), options.retry_prompt)
    return PreparedModel(loaded.vocabulary, loaded, composed, options.retry_prompt)


def find_loaded(model: Any, tokenizer: Any, loading: Mapping[str, Any]) -> LoadedModel:
    """Return the LoadedModel of the arguments `model` and `tokenizer`."""
    if isinstance(model, (LoadedModel, str, PathLike)):
        loaded = model if isinstance(model, LoadedModel) else load_model(model, **loading)
        if isinstance(tokenizer, Vocabulary) and not isinstance(loaded.tokenizer, VocabularyTokenizer):
            check_tokenizer(tokenizer, loaded.tokenizer)
        return loaded if tokenizer is None else as_loaded(loaded.model, tokenizer, name=loaded.name)
    if hasattr(model, "generate") and hasattr(model, "config"):
        return as_loaded(model, tokenizer)
    raise ConstrainError(
        f"model is of type {model.__class__.__name__}, which is not a language model",
        hint='Give "demo", a folder, a hub id, a loaded transformers model, or an object with next_logprobs.',
    )


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


def bind_check(check: Check, vocabulary: Vocabulary) -> Checker | Callable[[bytes], bool]:
    """Return a Checker unchanged; wrap a TextChecker as a Checker, and a function of str, which may also reject by a
    ValueError, as one of bytes.
    """
    if isinstance(check, Checker):
        return check
    if isinstance(check, TextChecker):
        return VerdictChecker(vocabulary, check)
    check_text = check

    def accepts(data: bytes) -> bool:
        try:
            return bool(check_text(data.decode("utf-8", "replace")))
        except ValueError:
            return False

    return accepts
