"""The engines that MaskBench compares, each with the same small methods, called in its fastest way from Python.

    engine = ENGINES["llguidance"](vocabulary)   everything that is paid once: tokens, tries, kernels. Not timed
    engine.compile(text)                         a schema; raises `Refused(reason)`. Timed
    engine.start()                               to the start of an instance. Timed for the first instance only
    engine.mask()                                into engine.words, int32[4008]. Timed
    engine.advance(token)                        Timed
    engine.prepare()                             of some: between mask and advance, as while a model runs. Timed apart
    engine.forget()                              frees what is held of the schema before. Not timed

A token is allowed if its bit of the mask is set; an instance ends well if the mask then allows an end token.
No engine is helped or hampered: defaults, except that all follow JSON Schema's semantics (undeclared keys are
allowed, white space is free) and use one thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .corpus import ENDS, SIZE, SPECIAL, Llama3

__all__ = [
    "ENGINES",
    "Constrain",
    "ConstrainAny",
    "ConstrainIdle",
    "Engine",
    "Llguidance",
    "Refused",
    "Xgrammar",
    "is_allowed",
]

WORDS = (SIZE + 31) // 32


class Refused(Exception):
    """The engine does not take this schema; `reason` is its message, `kind` the same without its particulars."""

    def __init__(self, reason: str, kind: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind if kind is not None else tally_name(reason)


class Engine(Protocol):
    """What the workers drive. `words` is where `mask` writes: bit i % 32 of word i // 32 set = token i allowed."""

    words: np.ndarray[Any, Any]
    package: str

    def compile(self, text: str) -> None: ...
    def start(self) -> None: ...
    def mask(self) -> None: ...
    def advance(self, token: int) -> None: ...
    def forget(self) -> None: ...
    def why_rejected(self, text: str, tokens: list[int]) -> str: ...


def is_allowed(words: np.ndarray[Any, Any], token: int) -> bool:
    """Return whether the mask allows the token."""
    return bool(words[token >> 5] >> (token & 31) & 1)


def tally_name(reason: str) -> str:
    """Return a message without its particulars (names, numbers, places), so that like reasons are counted together."""
    first = reason.strip().splitlines()[0] if reason.strip() else "no message"
    first = re.sub(r"\"[^\"]*\"|'[^']*'|`[^`]*`", "…", first)
    first = re.sub(r"\d+", "#", first)
    return re.sub(r"\s+", " ", first)[:100]


class Llguidance:
    """llguidance through its matcher and its numpy masks."""

    package = "llguidance"

    def __init__(self, vocabulary: Llama3) -> None:
        from llguidance import LLMatcher
        from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask
        from llguidance.tiktoken import lltokenizer_from_encoding

        self.matcher_type = LLMatcher
        self.fill = fill_next_token_bitmask
        self.tokenizer = lltokenizer_from_encoding(vocabulary.encoding, n_vocab=SIZE, eos_token=list(ENDS))
        self.bits = allocate_token_bitmask(1, SIZE)
        self.words = self.bits[0]

    def compile(self, text: str) -> None:
        try:
            grammar = self.matcher_type.grammar_from_json_schema(text)
        except ValueError as error:
            raise Refused(str(error)) from error
        self.root = self.matcher_type(self.tokenizer, grammar, log_level=0)
        if self.root.is_error():
            raise Refused(self.root.get_error())

    def start(self) -> None:
        self.matcher = self.root.deep_copy()

    def mask(self) -> None:
        self.fill(self.matcher, self.bits, 0)

    def advance(self, token: int) -> None:
        self.matcher.consume_token(token)

    def forget(self) -> None:
        self.root = self.matcher = None

    def why_rejected(self, text: str, tokens: list[int]) -> str:
        return "error in the matcher" if self.matcher.is_error() else "not told apart"


class Xgrammar:
    """XGrammar in the mode that the upstream benchmark calls compliant: not strict, white space free."""

    package = "xgrammar"

    def __init__(self, vocabulary: Llama3) -> None:
        import torch
        import xgrammar

        torch.set_num_threads(1)
        special = [b""] * (SIZE - len(vocabulary.tokens))
        info = xgrammar.TokenizerInfo(
            vocabulary.tokens + special, xgrammar.VocabType.RAW, vocab_size=SIZE, stop_token_ids=list(ENDS)
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        self.matcher_type = xgrammar.GrammarMatcher
        self.bits = xgrammar.allocate_token_bitmask(1, SIZE)
        self.words = self.bits.numpy()[0]

    def compile(self, text: str) -> None:
        try:
            self.compiled = self.compiler.compile_json_schema(text, any_whitespace=True, strict_mode=False)
        except (RuntimeError, ValueError) as error:
            raise Refused(re.sub(r"^\[[^]]*\]\s*\S+:\d+:\s*", "", str(error))) from error

    def start(self) -> None:
        self.matcher = self.matcher_type(self.compiled)

    def mask(self) -> None:
        self.matcher.fill_next_token_bitmask(self.bits)

    def advance(self, token: int) -> None:
        self.matcher.accept_token(token)

    def forget(self) -> None:
        self.compiled = self.matcher = None

    def why_rejected(self, text: str, tokens: list[int]) -> str:
        return "not told apart"


class Constrain:
    """constrain in its default style: keys in the order of `properties`."""

    package = "constrain"

    def __init__(self, vocabulary: Llama3) -> None:
        import constrain
        from constrain.compilation import compile_caches

        self.constrain = constrain
        compile_caches.recent.most = compile_caches.programs.most = 0  # Nothing is known from an earlier schema.
        self.vocabulary = constrain.Vocabulary.from_tiktoken(vocabulary.path, special=SPECIAL, eos_ids=ENDS, size=SIZE)
        constrain.warm_up(self.vocabulary)
        self.style = self.make_style()
        self.words = np.zeros(WORDS, np.int32)

    def make_style(self) -> Any:
        return self.constrain.Style()

    def compile(self, text: str) -> None:
        self.constraint = self.compile_as(text, self.style)

    def compile_as(self, text: str, style: Any) -> Any:
        try:
            return self.constrain.compile(self.vocabulary, schema=text, style=style)
        except self.constrain.ConstrainError as error:
            raise Refused(str(error), f"{type(error).__name__}: {tally_name(error.cause)}") from error

    def start(self) -> None:
        self.matcher = self.constraint.matcher()

    def mask(self) -> None:
        self.matcher.mask(self.words)

    def advance(self, token: int) -> None:
        self.matcher.advance(token)

    def forget(self) -> None:
        self.constraint = self.matcher = None

    def why_rejected(self, text: str, tokens: list[int]) -> str:
        """ "key order" if the same style with free key order accepts the instance, else "other"."""
        from dataclasses import replace

        if self.style.key_order == "any":
            return "other"
        try:
            matcher = self.compile_as(text, replace(self.style, key_order="any")).matcher()
            for token in tokens:
                matcher.advance(token)
        except (Refused, self.constrain.ConstrainError):
            return "other"
        return "key order" if matcher.is_complete else "other"


class ConstrainAny(Constrain):
    """constrain in `Style.any()`: every spelling that RFC 8259 and the schema allow, keys in every order."""

    def make_style(self) -> Any:
        return self.constrain.Style.any()


class ConstrainIdle(Constrain):
    """The same, with `Matcher.prepare` for at most `idle_seconds` after each mask."""

    idle_seconds = 0.005

    def prepare(self) -> None:
        self.matcher.prepare(self.idle_seconds)


class ConstrainAnyIdle(ConstrainIdle, ConstrainAny):
    """`Style.any()`, with `Matcher.prepare`."""


ENGINES: dict[str, Callable[[Llama3], Engine]] = {
    "constrain": Constrain,
    "constrain-any": ConstrainAny,
    "constrain-idle": ConstrainIdle,
    "constrain-any-idle": ConstrainAnyIdle,
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
}
