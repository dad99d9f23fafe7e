"""Preparation of a call of `generate`: the model after its prompt, the compiled constraint and the checker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from ..base.errors import ArgumentError, ConstrainError, Refusal, UnsupportedError, check_choice
from ..base.json_documents import References
from ..base.options import Limits, Style
from ..checking.verdicts import TextChecker, VerdictChecker
from ..compilation.constraint_compiler import compile
from ..decoding.language_model_runner import LanguageModelRunner
from ..decoding.logit_adjustment import AdjustedModel, LogitAdjustment
from ..decoding.model_runner import DEFAULT_BOUNDS, CacheBounds, ModelRunner
from ..engine.constraint import Constraint
from ..engine.length_limits import make_full_error
from ..integrations.context_length import check_prompt_length
from ..integrations.transformers_models import LoadedModel, Prompt, VocabularyTokenizer, as_loaded, load_model
from ..integrations.vocabulary_match import check_tokenizer
from ..sampling import Checker, LanguageModel
from ..sampling.core.numeric_functions import read_verdict
from ..vocabulary.vocabulary import Vocabulary
from .generation_arguments import Check, ConstraintRequest
from .prompt_composition import PromptTemplate, add_refusals, as_prompt_template, check_retry_prompt, compose_prompt

__all__ = [
    "PreparedPrompt",
    "PromptOptions",
    "bind_check",
    "compile_request",
    "limit_tokens",
    "open_runner",
    "open_superposed_models",
    "prepare_prompt",
    "prompt_model",
    "resolve_model",
]


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """How prompts are composed, see `prompt_composition`."""

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
class PreparedPrompt:
    """A composed prompt and its model. A LanguageModel holds its prompt, a LoadedModel is given it."""

    model: LanguageModel | LoadedModel
    prompt: Prompt = None
    retry_prompt: str | None = None

    def compose_again(self, refusals: tuple[Refusal, ...]) -> Prompt:
        """Return the prompt, with refusals if there is a `retry_prompt`."""
        return add_refusals(self.prompt, refusals, self.retry_prompt) if refusals and self.retry_prompt else self.prompt

    def encode(self, refusals: tuple[Refusal, ...] = ()) -> Sequence[int]:
        """Return the token ids of the prompt, for a runner (`open_runner`). Raise LimitError if it is too long."""
        if isinstance(self.model, LoadedModel):
            ids = self.model.prompt_ids(self.compose_again(refusals))
            check_prompt_length(self.model.model, len(ids), self.model.name)
            return ids
        prompted = find_prompted(self.model)
        return () if prompted is None else prompted.prompt_ids

    def after_prompt(self, adjustment: LogitAdjustment, refusals: tuple[Refusal, ...] = ()) -> LanguageModel:
        """Return the LanguageModel after the prompt, with penalties and biases; it runs the model."""
        lm: LanguageModel
        if isinstance(self.model, LoadedModel):
            lm = self.model.on(self.compose_again(refusals))
        else:
            lm = self.model
        return lm if adjustment.is_empty else AdjustedModel(lm, adjustment, getattr(lm, "prompt_ids", ()))


def prepare_prompt(
    model: LoadedModel | LanguageModel, prompt: Prompt, request: ConstraintRequest | None, options: PromptOptions
) -> PreparedPrompt:
    """Return the prompt of a model that `resolve_model` returned, with the constraint if it is to be shown."""
    if not isinstance(model, LoadedModel):
        if prompt is not None or options != PromptOptions():
            raise ConstrainError(
                "a prompt was given with a LanguageModel, which holds its own prompt",
                hint="Leave prompt=, chat=, show_constraint= and retry_prompt= out.",
            )
        return PreparedPrompt(model)
    composed = compose_prompt(prompt, request, model, chat=options.chat, template=options.template)
    if options.retry_prompt is not None:
        add_refusals(composed, (), options.retry_prompt)
    return PreparedPrompt(model, composed, options.retry_prompt)


def resolve_model(
    model: Any, tokenizer: Any, *, dtype: Any = None, device: Any = None, device_map: Any = None
) -> LoadedModel | LanguageModel:
    """Return the LoadedModel of a model argument; a LanguageModel, whose Vocabulary is `tokenizer`, unchanged.

    dtype, device, device_map: as for `load_model`, only for models given by name.
    """
    loading = {"dtype": dtype, "device": device, "device_map": device_map}
    given = [name for name, value in loading.items() if value is not None]
    if given and not isinstance(model, (str, PathLike)):
        raise ArgumentError(
            f"{given[0]}= was given with a loaded model", hint="It is for models that are loaded by name."
        )
    if isinstance(model, LanguageModel):
        if not isinstance(tokenizer, Vocabulary):
            raise ConstrainError("a LanguageModel needs its Vocabulary", hint="Give it as tokenizer=.")
        return model
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


def prompt_model(
    model: Any, tokenizer: Any, prompt: Prompt, request: ConstraintRequest | None
) -> tuple[LanguageModel, Vocabulary]:
    """Return the LanguageModel after a prompt, and its Vocabulary; it runs the model."""
    resolved = resolve_model(model, tokenizer)
    prepared = prepare_prompt(resolved, prompt, request, PromptOptions())
    prepared.encode()  # checks the length of the prompt
    vocabulary = resolved.vocabulary if isinstance(resolved, LoadedModel) else tokenizer
    return prepared.after_prompt(LogitAdjustment()), vocabulary


def open_runner(
    model: LoadedModel | LanguageModel, vocabulary: Any, bounds: CacheBounds = DEFAULT_BOUNDS
) -> tuple[Vocabulary, ModelRunner]:
    """Return the Vocabulary and a ModelRunner of what `resolve_model` returned. vocabulary: that of a LanguageModel."""
    if isinstance(model, LoadedModel):
        from ..integrations.runner_choice import make_runner  # imports torch

        return model.vocabulary, make_runner(model.model, model.vocabulary.size, bounds)
    prompted = find_prompted(model)
    if prompted is not None:
        from ..integrations.runner_choice import make_runner  # imports torch

        return vocabulary, make_runner(prompted.model, vocabulary.size, bounds)
    return vocabulary, LanguageModelRunner(lambda _: model, vocabulary.size)


def open_superposed_models(model: LoadedModel | LanguageModel) -> Callable[[Sequence[int]], Any]:
    """Return a function that opens a model after a prompt so that it reads mixtures of tokens.

    Raise UnsupportedError unless this is a model of the transformers library.
    """
    if not isinstance(model, LoadedModel):
        raise UnsupportedError(
            f"superposed decoding feeds mixtures of embeddings, which a {type(model).__name__} does not take",
            hint="Give a model of the transformers library.",
        )
    from ..integrations.superposed_model import SuperposedModel  # imports torch

    return lambda prompt: SuperposedModel(model.on(list(prompt)))


def find_prompted(lm: LanguageModel) -> Any:
    """Return the PromptedModel of a LanguageModel if texts after its prompt can be a batch, otherwise None."""
    model: Any = getattr(lm, "prompted", lm) if type(lm).__name__ == "TransformersModel" else lm
    if type(model).__name__ != "PromptedModel":
        return None
    from ..integrations.runner_choice import find_slot_attention  # imports torch

    return model if find_slot_attention(model.model) is not None else None


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
        raise make_full_error("the prompt")
    return max_tokens


def bind_check(check: Check, vocabulary: Vocabulary, skipped: int = 0) -> Checker | Callable[[bytes], bool]:
    """Return a Checker unchanged; wrap a TextChecker as a Checker, and a function of str, which may also reject by a
    ValueError, as one of bytes.

    skipped: number of bytes at the start that are not part of the text.
    """
    if isinstance(check, Checker):
        return check
    if isinstance(check, TextChecker):
        return VerdictChecker(vocabulary, check, skipped=skipped)
    check_text = check

    def accepts(data: bytes) -> bool:
        text = data[skipped:].decode("utf-8", "replace")
        try:
            verdict = check_text(text)
        except ValueError:
            return False
        return read_verdict("the check", text, verdict)

    return accepts
