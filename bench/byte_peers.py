"""The tokenizers of llguidance and XGrammar over single bytes: token b is the byte b, END ends a text."""

from __future__ import annotations

from typing import Any

__all__ = ["END", "TOKENS", "build_llguidance_tokenizer", "build_xgrammar_compiler"]

END = 256
TOKENS = [bytes([byte]) for byte in range(256)]


class ByteTokenizer:
    """The attributes that llguidance reads from a tokenizer."""

    def __init__(self) -> None:
        self.eos_token_id, self.bos_token_id, self.special_token_ids = END, None, [END]
        self.tokens = [*TOKENS, b"<|end|>"]

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


def build_llguidance_tokenizer() -> Any:
    """Return an `LLTokenizer` over bytes."""
    from llguidance import LLTokenizer, TokenizerWrapper

    return LLTokenizer(TokenizerWrapper(ByteTokenizer()))


def build_xgrammar_compiler() -> Any:
    """Return a `GrammarCompiler` over bytes that runs on one thread and caches nothing."""
    import xgrammar as xgr

    info = xgr.TokenizerInfo([*TOKENS, b"<|end|>"], xgr.VocabType.RAW, vocab_size=END + 1, stop_token_ids=[END])
    return xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
