"""Loading of transformers models, their tokenizers and Vocabularies, and their conversion to a `LanguageModel`.

    "demo" | folder | hub id | loaded model and tokenizer  --load-->  LoadedModel  --on(prompt)-->  PromptedModel

A LoadedModel is a model with its tokenizer and Vocabulary, created once and used for any number of prompts; a
`PromptedModel` (`model_cache.py`) computes `next_logprobs` after one prompt, with a key-value cache.
Importing this module imports neither torch nor transformers; loading or using a model does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import index
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, cast

from .. import demo
from ..base.cached_property import cached_property
from ..base.errors import ArgumentError, ConstrainError, VocabularyError, check_type, describe_value, shorten_text
from ..base.keyword_names import explain_keywords
from ..vocabulary.vocabulary import Vocabulary
from .context_length import check_least_length, check_prompt_length, is_beyond_context
from .end_tokens import ids_of
from .model_hub import foreign_errors, locally_first
from .model_names import MODELS, check_model_name
from .token_lengths import TokenLengths
from .tokenizer_objects import name_tokenizer
from .transformers_versions import check_transformers_version
from .vocabulary_match import check_logits, check_padding

if TYPE_CHECKING:
    from .model_cache import PromptedModel

__all__ = ["LoadedModel", "Prompt", "VocabularyTokenizer", "as_loaded", "load_model"]

OWN_ARGUMENTS = {"self", "messages", "conversation", "conversations", "tools"}
"""Names that transformers or a chat template use for the conversation itself."""
Prompt = Union[str, Sequence[int], Sequence[Mapping[str, Any]], None]
"""A text, token ids, or chat messages, which are rendered by the tokenizer's chat template."""


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model with its tokenizer and Vocabulary.

    name: used in messages. compose: builds the text of a prompt from an instruction and the constraint to show with it,
    or None if the model has no such format; then a text prompt is used unchanged.
    """

    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    vocabulary: Vocabulary
    name: str = "model"
    compose: Callable[..., str] | None = field(default=None, repr=False)

    def on(self, prompt: Prompt = None) -> PromptedModel:
        """Return the model conditioned on this prompt. Raise LimitError if the prompt exceeds the model's context."""
        from .model_cache import PromptedModel  # imports torch

        ids = self.prompt_ids(prompt)
        check_prompt_length(self.model, len(ids), self.name)
        return PromptedModel(self.model, ids, self.vocabulary.size)

    def prompt_ids(self, prompt: Prompt) -> list[int]:
        """Return the token ids of a prompt, as the tokenizer encodes it with its special tokens.

        Without a prompt: the begin token, or else an end token, since the model needs at least one token. Raise
        LimitError for a text that is longer than the model's context whatever its tokens are, before it is tokenised.
        """
        check_characters(prompt)
        if isinstance(prompt, str):
            self.check_text(prompt)
            ids = list(self.tokenizer(prompt)["input_ids"])
        elif isinstance(prompt, Sequence) and prompt and isinstance(prompt[0], Mapping):
            if not getattr(self.tokenizer, "chat_template", None):
                raise ConstrainError(
                    f"the tokenizer of {self.name} has no chat template, so it cannot render messages",
                    hint="Give the prompt as one text.",
                )
            ids = self.render(prompt)
        else:
            ids = check_token_ids(() if prompt is None else prompt)
        wrong = next((token for token in ids if not 0 <= token < self.vocabulary.size), None)
        if wrong is not None:
            raise ConstrainError(f"the prompt contains token {wrong}; {self.name} has {self.vocabulary.size} tokens")
        if ids or is_encoder_decoder(self.model):
            return ids or [self.vocabulary.eos_ids[0]]
        begin = getattr(self.tokenizer, "bos_token_id", None)
        return [self.vocabulary.eos_ids[0] if begin is None else int(begin)]

    @cached_property
    def token_lengths(self) -> TokenLengths:
        """The lengths of the tokens, as the bytes of text that they stand for."""
        return TokenLengths(self.tokenizer, self.vocabulary)

    def count_least_tokens(self, text: str) -> int:
        """Return a number of tokens that a text has at least; 0 if that is not known."""
        return self.token_lengths.count_least(text)

    @cached_property
    def template_arguments(self) -> frozenset[str]:
        """The arguments of `apply_chat_template`, which are no variables of a chat template.

        One of them is a template, others cut the prompt or change what is returned. `documents` is a variable, too.
        """
        parameters = inspect.signature(self.tokenizer.apply_chat_template).parameters.values()
        named = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD}
        return frozenset(named - {"documents"} | OWN_ARGUMENTS)

    def render(
        self,
        messages: Sequence[Any],
        tools: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Return the token ids of messages, rendered by the tokenizer's chat template.

        variables: further ones of the template, as strangers may give them. What seems too long is rendered as a text
        first: a template may leave out any part of them. Raise ArgumentError for a variable among `template_arguments`,
        and LimitError as `prompt_ids`.
        """
        options = {} if variables is None else dict(variables)
        if taken := sorted(self.template_arguments.intersection(options)):
            raise ArgumentError(f"{taken[0]} is not a variable of chat templates", hint="Leave it out.")
        if tools:
            options["tools"] = tools
        apply = partial(self.tokenizer.apply_chat_template, messages, add_generation_prompt=True)
        if is_beyond_context(self.model, self.count_least_tokens(f"{messages}{options}")):
            self.check_text(apply(tokenize=False, **options))
        return [int(token) for token in apply(tokenize=True, return_dict=True, **options)["input_ids"]]

    def check_text(self, text: str) -> None:
        """Raise LimitError if a text is longer than the model's context, whatever its tokens are."""
        check_least_length(self.model, len(text), self.count_least_tokens(text))


def check_token_ids(prompt: object) -> list[int]:
    """Return the token ids of a prompt that is no text. Raise TypeError unless it is a sequence of integers."""
    try:
        return [index(cast(int, token)) for token in cast(Iterable[object], prompt)]
    except TypeError:
        raise TypeError(
            f"the prompt is {describe_value(prompt)}: give a text, a list of messages or a list of token ids"
        ) from None


def check_characters(prompt: Prompt) -> None:
    """Raise ArgumentError for a prompt whose text no tokenizer can encode."""
    texts: list[Any] = [prompt]
    if not isinstance(prompt, str):
        texts = [
            text
            for one in (prompt if isinstance(prompt, Sequence) else ())
            if isinstance(one, Mapping)
            for text in one.values()
        ]
    for text in texts:
        if isinstance(text, str):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                cause = (
                    f"the prompt contains half of a surrogate pair at character {error.start}, which is not a character"
                )
                raise ArgumentError(cause) from None


@explain_keywords
def load_model(
    source: str | PathLike[str], *, dtype: Any = None, device: Any = None, device_map: Any = None
) -> LoadedModel:
    """Return the model "demo", or that of a folder or hub id, in evaluation mode.

    The last two loaded models are cached.

    Parameters
    ----------
    source : str or path
        "demo", a folder, or a hub id.
    dtype : torch.dtype or str, optional
        By default float32 on a CPU, and the model's own elsewhere.
    device : torch.device or str, optional
        By default a GPU if there is one.
    device_map : str or dict, optional
        The devices of the parts of the model, such as "auto", as transformers takes them (needs the package
        accelerate); instead of `device`.

    Raises
    ------
    ConstrainError
        If the model cannot be loaded.
    """
    check_type("source", source, (str, PathLike), 'give "demo", a folder or a hub id')
    kind = None if dtype is None else str(dtype).removeprefix("torch.")
    if device is not None and device_map is not None:
        raise ArgumentError("device= and device_map= were given", hint="Give one of them.")
    parts = device_map
    if isinstance(device_map, Mapping):
        places = {str(name): place if isinstance(place, int) else str(place) for name, place in device_map.items()}
        parts = tuple(sorted(places.items()))
    elif device_map is not None:
        check_type("device_map", device_map, str, 'give "auto", a device, or a dict of devices by part of the model')
    return _load(str(fspath(source)), kind, None if device is None else str(device), parts)


@lru_cache(maxsize=2)
def _load(
    source: str, dtype: str | None, device: str | None, device_map: str | tuple[tuple[str, int | str], ...] | None
) -> LoadedModel:
    compose, folder = None, source
    if source == "demo":
        compose, folder = demo.compose_prompt, str(demo.model_folder())
        if not (Path(folder) / "config.json").is_file():
            raise ConstrainError(
                "this installation does not contain the embedded model",
                hint=f"{folder} should hold config.json and weights.",
            )
    elif not Path(source).is_dir():
        check_model_name(source)
    check_transformers_version()
    torch, transformers = require_package("torch"), require_package("transformers")
    target_device = resolve_device(torch, device)
    placing: dict[str, Any] = {}
    if device_map is not None:
        placing["device_map"] = device_map if isinstance(device_map, str) else dict(device_map)
    kind = resolve_dtype(torch, dtype) if dtype else (torch.float32 if target_device.type == "cpu" else "auto")

    def read(local: bool) -> tuple[Any, Any]:
        load_options = {"local_files_only": local, "trust_remote_code": False}
        with foreign_errors(f"no model could be loaded from {shorten_text(repr(source))}", MODELS, ConstrainError):
            config = transformers.AutoConfig.from_pretrained(folder, **load_options)
            family = transformers.AutoModelForCausalLM
            if config.is_encoder_decoder:
                family = transformers.AutoModelForSeq2SeqLM
            with hide_progress(transformers) if source == "demo" else nullcontext():
                model = family.from_pretrained(folder, dtype=kind, use_safetensors=True, **placing, **load_options)
            model = model if placing else model.to(target_device)
            return model.eval(), transformers.AutoTokenizer.from_pretrained(folder, **load_options)

    model, tokenizer = read(local=True) if Path(folder).is_dir() else locally_first(source, read)
    return as_loaded(model, tokenizer, name=source, compose=compose)


def resolve_device(torch: Any, device: Any) -> Any:
    """Return the torch device of that name; by default a GPU if there is one."""
    with foreign_errors(f"device={shorten_text(repr(device))} is not a torch device", kind=ConstrainError):
        return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def resolve_dtype(torch: Any, dtype: str) -> Any:
    """Return the torch dtype of that name."""
    torch_dtype = getattr(torch, dtype, None)
    if not isinstance(torch_dtype, torch.dtype):
        raise ConstrainError(
            f"dtype={shorten_text(repr(dtype))} is not a torch dtype", hint='Give "bfloat16", for example.'
        )
    return torch_dtype


@contextmanager
def hide_progress(transformers: Any) -> Iterator[None]:
    """Hide the progress bar of loading weights, which is displayed for longer than the embedded model takes to load."""
    logging = transformers.utils.logging
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()


def as_loaded(
    model: Any, tokenizer: Any = None, *, name: str | None = None, compose: Callable[..., str] | None = None
) -> LoadedModel:
    """Return the LoadedModel of a transformers model and its tokenizer (or Vocabulary).

    The Vocabulary has as many tokens as the model has logits; its end tokens are those of the tokenizer and of the
    model's generation config.
    """
    check_transformers_version()
    title = name or getattr(model.config, "name_or_path", "") or type(model).__name__
    if tokenizer is None:
        if not getattr(model.config, "name_or_path", ""):
            raise VocabularyError(
                "a loaded model needs its tokenizer too", hint="constrain.generate(model, ..., tokenizer=tokenizer)"
            )
        tokenizer = load_tokenizer(model.config.name_or_path)
    if isinstance(tokenizer, Vocabulary):
        check_logits(tokenizer, logit_width(model), title)
        return LoadedModel(model, VocabularyTokenizer(tokenizer), tokenizer, title, compose)
    return LoadedModel(model, tokenizer, vocabulary_of(model, tokenizer), title, compose)


def vocabulary_of(model: Any, tokenizer: Any) -> Vocabulary:
    """Return the Vocabulary of a model and its tokenizer. It is cached on the tokenizer, since deriving it is slow."""
    width = logit_width(model)
    if width < len(tokenizer):
        check_missing(tokenizer, width)
    check_padding(len(tokenizer), width, f"the tokenizer {name_tokenizer(tokenizer)}", type(model).__name__)
    ends = find_end_tokens(model, tokenizer)
    key = (width, tuple(sorted(ends)), len(tokenizer))
    cached = getattr(tokenizer, "_constrain_vocabulary", None)
    if cached is None or cached[0] != key:
        cached = (key, Vocabulary.from_tokenizer(tokenizer, size=key[0], eos_ids=ends or None))
        try:
            tokenizer._constrain_vocabulary = cached
        except AttributeError:
            pass  # a tokenizer with slots: derive it again next time
    vocabulary: Vocabulary = cached[1]
    return vocabulary


def check_missing(tokenizer: Any, width: int) -> None:
    """Raise VocabularyError if a model of `width` logits lacks tokens of the tokenizer that were not added to it."""
    added = set(tokenizer.get_added_vocab().values())
    missing = [index for index in range(width, len(tokenizer)) if index not in added]
    if missing:
        raise VocabularyError(
            f"the model produces {width:,} logits, and the tokenizer {name_tokenizer(tokenizer)} "
            f"has {len(tokenizer):,} tokens",
            hint="Give the tokenizer of this model.",
        )


def find_end_tokens(model: Any, tokenizer: Any) -> set[int]:
    """Return the tokens that end a text according to the tokenizer or the model's own `generate`."""
    ends = set(ids_of(getattr(tokenizer, "eos_token_id", None)))
    for source in (getattr(model, "generation_config", None), model.config):
        if ids := ids_of(getattr(source, "eos_token_id", None)):
            ends.update(ids)
            break  # the config counts only if the generation config declares none
    return {end for end in ends if 0 <= end < logit_width(model)}


def logit_width(model: Any) -> int:
    """Return the number of logits of the model, padding included."""
    head = model.get_output_embeddings()
    if head is not None and getattr(head, "weight", None) is not None:
        return int(head.weight.shape[0])
    return int(model.config.get_text_config().vocab_size)


def is_encoder_decoder(model: Any) -> bool:
    """Return whether the model has an encoder for the prompt and a decoder with a separate start token (T5, BART)."""
    return bool(getattr(model.config, "is_encoder_decoder", False))


@dataclass(frozen=True)
class VocabularyTokenizer:
    """The part of a tokenizer's interface that `LoadedModel` needs, implemented by a Vocabulary."""

    vocabulary: Vocabulary
    chat_template: None = None
    bos_token_id: None = None

    def __call__(self, text: str) -> dict[str, list[int]]:
        """Return the token ids of a text."""
        spell = self.vocabulary.encode_prompt
        return {"input_ids": spell(text) if spell is not None else self.vocabulary.tokenize(text.encode())}


def load_tokenizer(source: str) -> Any:
    """Return the tokenizer of a folder or hub id."""
    auto = require_package("transformers").AutoTokenizer

    def read(local: bool) -> Any:
        with foreign_errors(
            f"no tokenizer could be loaded from {shorten_text(repr(source))}", "Give it with tokenizer=."
        ):
            return auto.from_pretrained(source, local_files_only=local, trust_remote_code=False)

    return read(local=True) if Path(source).is_dir() else locally_first(source, read)


def require_package(name: str) -> Any:
    """Import an optional package. Raise ConstrainError with installation instructions if it is missing."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ConstrainError(
            f"running a model needs the package {name}, which is not installed",
            hint='pip install "constrain-lm[transformers]"',
        ) from error
