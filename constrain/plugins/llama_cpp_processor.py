"""llama-cpp-python: texts of a `Llama` object that satisfy a constraint.

    llama = Llama("model.gguf")
    constraint = constrain.compile(read_llama_vocabulary(llama), schema=...)
    answer = generate_with_llama(llama, "Describe a person.", constraint, max_tokens=200)

llama-cpp-python (0.3) calls a logits processor from a ctypes callback, with three consequences:

- An exception of the processor is printed and ignored, and the text continues *unconstrained*. This processor therefore
  raises nothing: an error closes it, so that only end tokens are allowed, and is raised after the call.
- The scores are a strided view into a record array, which `constrain.apply_mask` refuses; they are copied first.
- Beside `logit_bias` the processor is never called. That combination, and others that would cut a text short, are
  refused.

Its own samplers (top_k, top_p, temperature) run after the processor.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import (
    ArgumentError,
    ConstrainError,
    UnsupportedError,
    VocabularyError,
    check_count,
    check_type,
    describe_value,
)
from ..engine.batches import apply_mask
from ..engine.constraint import Constraint
from ..vocabulary.tokenizer_check import TokenizerConduct, run_self_test
from ..vocabulary.vocabulary import Vocabulary
from .engine_versions import check_engine_version
from .request_matcher import RequestMatcher

if TYPE_CHECKING:
    from llama_cpp import Llama

__all__ = ["LlamaConstraintProcessor", "chat_with_llama", "generate_with_llama", "read_llama_vocabulary"]

REFUSED_OPTIONS = {
    "logit_bias": "llama-cpp-python never calls a logits processor beside it",
    "grammar": "it would forbid tokens that the constraint needs",
    "response_format": "it would forbid tokens that the constraint needs",
    "stop": "it would cut texts short; an end of its own is part of the constraint, such as `form + literal(...)`",
    "logits_processor": "another processor may forbid every token that the constraint allows",
    "tools": "use constrain.tools, which makes a Form of them",
    "function_call": "use constrain.tools, which makes a Form of them",
    "functions": "use constrain.tools, which makes a Form of them",
}
"""Options of `create_completion` that cannot be combined with a constraint, with the reason."""
CONTROL, UNUSED = 1 << 3, 1 << 1
"""Attributes of tokens in llama.h (enum llama_token_attr)."""


class LlamaConstraintProcessor:
    """A logits processor of llama-cpp-python for one text, as `LogitsProcessorList([processor])`.

    `generate_with_llama` makes one and checks it after the call; whoever passes one to `Llama` must call `check` then.

    Parameters
    ----------
    constraint : Constraint
        Compiled for the Vocabulary of the model, see `read_llama_vocabulary`.
    max_tokens : int, optional
        As given to `create_completion`. Every text is then complete within this number of tokens.

    Attributes
    ----------
    error : BaseException or None
        Why the processor closed.
    calls : int
        Number of calls.

    Raises
    ------
    LimitError
        If the shortest text does not fit in max_tokens.
    TypeError, ArgumentError
        If an argument is not valid.
    """

    def __init__(self, constraint: Constraint, *, max_tokens: int | None = None) -> None:
        check_type("constraint", constraint, Constraint, "give what constrain.compile returned")
        self.request = RequestMatcher(
            constraint, None if max_tokens is None else check_count("max_tokens", max_tokens, 1)
        )
        self.error: BaseException | None = None
        self.calls = 0
        self._prompt: list[int] | None = None

    def __call__(self, input_ids: NDArray[np.intc], scores: NDArray[np.single]) -> NDArray[np.single]:
        """Return a copy of the scores, float32 [V], with every token that is not allowed at -inf. Raises nothing.

        input_ids: the ids so far, prompt included; those of the first call are the prompt.
        """
        self.calls += 1
        try:
            copied = np.array(scores, np.float32, order="C")
            if self.error is None:
                return self._mask_scores(input_ids, copied)
        except BaseException as error:  # also KeyboardInterrupt: the callback would swallow it and go on
            self.error = error
            copied = np.zeros(len(scores), np.float32)
        return self._close_scores(copied)

    def check(self) -> None:
        """Raise the error that closed the processor, or ConstrainError if it was never called."""
        if self.error is not None:
            raise self.error
        if not self.calls:
            raise ConstrainError(
                "llama-cpp-python did not call the logits processor: the text is not constrained",
                hint="Leave out logit_bias, and give the processor as logits_processor=LogitsProcessorList([...]).",
            )

    def _mask_scores(self, input_ids: NDArray[np.intc], scores: NDArray[np.single]) -> NDArray[np.single]:
        size = self.request.vocabulary.size
        if len(scores) < size:
            raise VocabularyError(
                f"the model has {len(scores):,} scores, the vocabulary {size:,} tokens",
                hint="Compile the constraint for read_llama_vocabulary(llama).",
            )
        ids = np.asarray(input_ids).tolist()
        if self._prompt is None:
            self._prompt = ids
        start = len(self._prompt)
        if ids[:start] != self._prompt:
            raise ConstrainError("a processor serves one text", hint="Make a LlamaConstraintProcessor for each call.")
        self.request.follow(ids[start:])
        mask = self.request.mask()
        if self.request.error is not None:
            raise self.request.error
        masked: NDArray[np.single] = apply_mask(scores, mask)
        if not np.isfinite(masked.max()):
            raise ConstrainError("the scores of all allowed tokens are infinite or not numbers")
        return masked

    def _close_scores(self, scores: NDArray[np.single]) -> NDArray[np.single]:
        """Return scores that leave end tokens only."""
        ends = [index for index in self.request.vocabulary.eos_ids if index < len(scores)]
        scores[:] = -np.inf
        scores[ends] = 0
        return scores


def generate_with_llama(
    llama: Llama, prompt: str | Sequence[int], constraint: Constraint, *, max_tokens: int | None = None, **options: Any
) -> Any:
    """Return `llama.create_completion(prompt, ...)` with a text that satisfies the constraint.

    Parameters
    ----------
    llama : llama_cpp.Llama
        The model.
    prompt : str or sequence of int
        The prompt, or its token ids.
    constraint : Constraint
        Compiled for `read_llama_vocabulary(llama)`.
    max_tokens : int, optional
        Most tokens of the text, its end token included; the text is complete within it. By default as many as the
        context holds after the prompt.
    **options
        Other options of `create_completion`, such as temperature, seed and stream.

    Returns
    -------
    dict, or iterator of dict
        What `create_completion` returns. With stream=True an error is raised by the iterator.

    Raises
    ------
    ArgumentError
        If an option cannot be combined with a constraint, or max_tokens does not fit the context.
    LimitError
        If the shortest text does not fit in max_tokens.
    UnsupportedError
        If this version of llama-cpp-python has not been tested.
    """
    check_type("prompt", prompt, (str, list, tuple), "give a text, or a list of token ids")
    ids = llama.tokenize(prompt.encode(), add_bos=True, special=True) if isinstance(prompt, str) else list(prompt)
    room = llama.n_ctx() - len(ids)
    if room < 1:
        raise ArgumentError(f"the prompt has {len(ids)} tokens, and the context of the model {llama.n_ctx()}")
    most = room if max_tokens is None else min(check_count("max_tokens", max_tokens, 1), room)
    return call_llama(llama.create_completion, {"prompt": ids}, constraint, most, options)


def chat_with_llama(
    llama: Llama, messages: Sequence[Any], constraint: Constraint, *, max_tokens: int, **options: Any
) -> Any:
    """Return `llama.create_chat_completion(messages, ...)` with a message that satisfies the constraint.

    Parameters, result and errors are those of `generate_with_llama`. The length of the prompt is not known before the
    call: prompt and max_tokens together must fit the context of the model, or the answer may be cut off, which
    `finish_reason` "length" shows.
    """
    check_type("messages", messages, (list, tuple), "give a list of messages")
    most = check_count("max_tokens", max_tokens, 1)
    return call_llama(llama.create_chat_completion, {"messages": list(messages)}, constraint, most, options)


def call_llama(
    call: Callable[..., Any], content: dict[str, Any], constraint: Constraint, max_tokens: int, options: dict[str, Any]
) -> Any:
    """Return what `call` returns with a processor, and raise the error that closed the processor."""
    check_engine_version("llama-cpp-python")
    for name in options:
        if name in REFUSED_OPTIONS:
            raise ArgumentError(f"{name}= cannot be combined with a constraint", hint=f"{REFUSED_OPTIONS[name]}.")
    processor = LlamaConstraintProcessor(constraint, max_tokens=max_tokens)
    answer = call(**content, max_tokens=max_tokens, logits_processor=list_processors(processor), **options)
    if isinstance(answer, dict):
        processor.check()
        return answer
    return check_stream(answer, processor)


def list_processors(processor: LlamaConstraintProcessor) -> Any:
    """Return llama-cpp-python's list of this one processor."""
    from llama_cpp import LogitsProcessorList

    return LogitsProcessorList([processor])


def check_stream(chunks: Iterator[Any], processor: LlamaConstraintProcessor) -> Iterator[Any]:
    """Yield the chunks of a stream; raise the processor's error as soon as it closed."""
    for chunk in chunks:
        if processor.error is not None:
            raise processor.error
        yield chunk
    processor.check()


def read_llama_vocabulary(llama: Llama) -> Vocabulary:
    """Return the Vocabulary of a loaded GGUF model, by functions of llama.h.

    The end tokens are those at which llama.cpp ends a text (`llama_vocab_is_eog`). Control tokens and unused ones match
    no text. The bytes are tested: they must spell what the model's own tokenizer encodes.

    Parameters
    ----------
    llama : llama_cpp.Llama
        The model; `Llama(path, vocab_only=True)` suffices.

    Returns
    -------
    Vocabulary

    Raises
    ------
    VocabularyError
        If the model has no end token, or the bytes of its tokens cannot be derived.
    UnsupportedError
        If this version of llama-cpp-python has not been tested.
    TypeError
        If `llama` is not a Llama.
    """
    if not hasattr(llama, "tokenize") or not hasattr(llama, "n_vocab"):
        raise TypeError(f"llama is {describe_value(llama)}: give a llama_cpp.Llama")
    check_engine_version("llama-cpp-python")
    import llama_cpp

    handle = getattr(getattr(llama, "_model", None), "vocab", None)
    if handle is None:
        raise UnsupportedError(
            "this Llama object does not show its vocabulary",
            hint="Make the Vocabulary from the model's Hugging Face tokenizer: Vocabulary.from_pretrained(...).",
        )
    size = llama_cpp.llama_vocab_n_tokens(handle)
    kinds = [int(llama_cpp.llama_vocab_get_attr(handle, index)) for index in range(size)]
    pieces = [read_piece(llama_cpp, handle, index) for index in range(size)]
    special = {
        llama_cpp.llama_vocab_get_text(handle, index).decode("utf-8", "replace"): index
        for index, kind in enumerate(kinds)
        if kind & CONTROL
    }
    tokens = [None if kind & (CONTROL | UNUSED) else piece for kind, piece in zip(kinds, pieces)]
    ends = [index for index in range(size) if llama_cpp.llama_vocab_is_eog(handle, index)]

    def encode(text: str) -> list[int]:
        return [int(index) for index in llama.tokenize(text.encode(), add_bos=False, special=False)]

    def encode_prompt(text: str) -> list[int]:
        return [int(index) for index in llama.tokenize(text.encode(), add_bos=True, special=True)]

    name = (llama.metadata or {}).get("general.name") or "llama.cpp"
    out = Vocabulary.from_tokens(tokens, ends, special=special, encode=encode, encode_prompt=encode_prompt, name=name)
    conduct = TokenizerConduct(space="before", unknown=frozenset(i for i, piece in enumerate(pieces) if not piece))
    run_self_test(out, encode, conduct, tokens)
    return out


def read_piece(library: Any, handle: Any, index: int) -> bytes:
    """Return the bytes that a token adds to a text; control tokens add none."""
    room = 64
    while True:
        buffer = ctypes.create_string_buffer(room)
        length = library.llama_token_to_piece(handle, index, buffer, room, 0, False)
        if length >= 0:
            return buffer.raw[:length]
        room = -length
