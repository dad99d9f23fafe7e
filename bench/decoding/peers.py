"""The peers inside transformers' `model.generate`: the fastest logits processor of each.

    peer = PEERS["llguidance"](vocabulary)      converts the tokenizer. Not timed
    peer.compile(schema)                        raises `Refused`
    peer.processor()                            a logits processor for one call of `generate` with one row

llguidance has no processor of its own: this one fills its mask and applies it with its own kernel. XGrammar has
`xgrammar.contrib.hf.LogitsProcessor`. For Outlines its core (`outlines_core`) is used, as its own package does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from time import perf_counter
from typing import Any, Protocol

from ..engines import Refused

__all__ = ["PEERS", "Peer", "Refused", "compile_within"]

SECONDS = 10.0
"""Time limit of compiling a schema; the index of Outlines may take minutes."""


class Peer(Protocol):
    """A peer over one vocabulary (`constrain.Vocabulary`)."""

    def compile(self, schema: str) -> None: ...
    def processor(self) -> Any: ...


def compile_within(peer: Peer, schema: str, seconds: float = SECONDS) -> float:
    """Compile a schema and return the seconds that it took. Raises `Refused`, too, if the time limit is exceeded.

    The libraries cannot be interrupted, so a forked child compiles the schema first; its caches end with it.
    """
    from multiprocessing import get_context

    child = get_context("fork").Process(target=compile_or_exit, args=(peer, schema))
    child.start()
    child.join(seconds)
    if child.is_alive():
        child.kill()
        child.join()
        raise Refused(f"not compiled in {seconds:g} s")
    start = perf_counter()
    peer.compile(schema)
    return perf_counter() - start


def compile_or_exit(peer: Peer, schema: str) -> None:
    """Compile in a child process. A refusal is ignored: the parent raises it again."""
    try:
        peer.compile(schema)
    except Refused:
        return


class StepProcessor:
    """Logits processor for one row: call `step(last token or None)`, which writes a bitmask, and apply the mask."""

    def __init__(self, step: Any, apply: Callable[[Any], None]) -> None:
        self.step, self.apply, self.begun = step, apply, False

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.step(int(input_ids[0, -1]) if self.begun else None)
        self.begun = True
        self.apply(scores)
        return scores


class VocabularyTokenizer:
    """A Vocabulary with the attributes that llguidance reads from a tokenizer."""

    def __init__(self, vocabulary: Any) -> None:
        self.vocabulary = vocabulary
        self.eos_token_id, self.bos_token_id = vocabulary.eos_ids[0], None
        self.special_token_ids = list(vocabulary.eos_ids)
        ends = set(vocabulary.eos_ids)
        self.tokens = [b"<|end|>" if i in ends else token or b"" for i, token in enumerate(vocabulary.tokens)]

    def __call__(self, text: str | bytes) -> list[int]:
        data = text if isinstance(text, bytes) else text.encode()
        ids: list[int] = self.vocabulary.tokenize(data)
        return ids


class LlguidanceProcessors:
    """llguidance with its own kernel that applies masks."""

    def __init__(self, vocabulary: Any) -> None:
        import llguidance.torch as kernels
        from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

        self.kernels, self.matcher_type = kernels, LLMatcher
        self.tokenizer = LLTokenizer(TokenizerWrapper(VocabularyTokenizer(vocabulary)))
        self.bits = kernels.allocate_token_bitmask(1, vocabulary.size)

    def compile(self, schema: str) -> None:
        try:
            self.root = self.matcher_type(
                self.tokenizer, self.matcher_type.grammar_from_json_schema(schema), log_level=0
            )
        except ValueError as error:
            raise Refused(str(error)) from error
        if self.root.is_error():
            raise Refused(self.root.get_error())

    def processor(self) -> Any:
        matcher = self.root.deep_copy()

        def step(token: int | None) -> None:
            if token is not None:
                matcher.consume_token(token)
            self.kernels.fill_next_token_bitmask(matcher, self.bits, 0)

        return StepProcessor(step, lambda scores: self.kernels.apply_token_bitmask_inplace(scores, self.bits))


class XgrammarProcessors:
    """XGrammar with its own processor for transformers; any white space, as in MaskBench."""

    def __init__(self, vocabulary: Any) -> None:
        import xgrammar

        self.xgrammar = xgrammar
        tokens = [token or b"" for token in vocabulary.tokens]
        info = xgrammar.TokenizerInfo(
            tokens, xgrammar.VocabType.RAW, vocab_size=vocabulary.size, stop_token_ids=list(vocabulary.eos_ids)
        )
        self.compiler = xgrammar.GrammarCompiler(info)

    def compile(self, schema: str) -> None:
        try:
            self.compiled = self.compiler.compile_json_schema(schema, any_whitespace=True, strict_mode=False)
        except (RuntimeError, ValueError) as error:
            raise Refused(re.sub(r"^\[[^]]*\]\s*\S+:\d+:\s*", "", str(error))) from error

    def processor(self) -> Any:
        return self.xgrammar.contrib.hf.LogitsProcessor(self.compiled)


class OutlinesProcessors:
    """Outlines' core: the schema is converted to a pattern, the pattern to an index over the vocabulary."""

    def __init__(self, vocabulary: Any) -> None:
        import numpy as np
        import torch
        from outlines_core import Guide, Index, Vocabulary, json_schema

        self.guide_type, self.index_type, self.json_schema = Guide, Index, json_schema
        ends = set(vocabulary.eos_ids)
        texts: dict[bytes, list[int]] = {}
        for token, data in enumerate(vocabulary.tokens):
            if data and token not in ends:
                texts.setdefault(data, []).append(token)
        self.vocabulary = Vocabulary(vocabulary.eos_ids[0], texts)
        self.words = np.zeros((vocabulary.size + 31) // 32, np.uint32)
        self.size, self.torch, self.end = vocabulary.size, torch, vocabulary.eos_ids[0]

    def compile(self, schema: str) -> None:
        try:
            self.index = self.index_type(self.json_schema.build_regex_from_schema(schema), self.vocabulary)
        except Exception as error:  # its errors have no class in common
            raise Refused(str(error)) from error

    def processor(self) -> Any:
        import numpy as np

        guide = self.guide_type(self.index)

        def step(token: int | None) -> None:
            if token is not None and not guide.is_finished():
                guide.advance(token, return_tokens=False)
            guide.write_mask_into(self.words.ctypes.data, self.words.size, self.words.itemsize)

        def apply(scores: Any) -> None:
            bits = np.unpackbits(self.words.view(np.uint8), bitorder="little")[: scores.shape[-1]]
            scores.masked_fill_(self.torch.from_numpy(bits == 0), float("-inf"))

        return StepProcessor(step, apply)


PEERS: dict[str, Callable[[Any], Peer]] = {
    "llguidance": LlguidanceProcessors,
    "xgrammar": XgrammarProcessors,
    "outlines": OutlinesProcessors,
}
