"""The peers' grammars in the benchmark accept what ours make: each text, token by token, and no broken one."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from bench.grammars.languages import draw_sentences, load_language
from bench.grammars.peers import PEERS, peer_grammar

SENTENCES = 8
JSON = b' {"a": [1, -2.5e+10, true, null, ""], "\\u00e9\\n\xc3\xa9": {}}'


def texts(name: str) -> list[bytes]:
    found = [text.content for text in draw_sentences(name, SENTENCES, 0)]
    return [*found, JSON] if name == "json" else found


@cache
def bytes_of_llguidance() -> Any:
    """A tokenizer whose tokens are the 256 bytes and an end."""
    llguidance = pytest.importorskip("llguidance")
    return llguidance.LLTokenizer("byte")


def llguidance_accepts(matcher: Any, text: bytes) -> bool:
    matcher.reset()
    return all(matcher.try_consume_tokens([byte]) == 1 for byte in text) and matcher.is_accepting()


@pytest.mark.parametrize("name", PEERS)
def test_llguidance_takes_every_text(name: str) -> None:
    llguidance = pytest.importorskip("llguidance")
    grammar = llguidance.LLMatcher.grammar_from_lark(peer_grammar(load_language(name), "lark"))
    matcher = llguidance.LLMatcher(bytes_of_llguidance(), grammar, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    assert [text for text in texts(name) if not llguidance_accepts(matcher, text)] == []
    assert not llguidance_accepts(matcher, b"][")


@pytest.mark.parametrize("name", PEERS)
def test_xgrammar_takes_every_text(name: str) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    info = xgrammar.TokenizerInfo(
        [bytes([byte]) for byte in range(256)] + [b""], xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[256]
    )
    compiled = xgrammar.GrammarCompiler(info, max_threads=1).compile_grammar(peer_grammar(load_language(name), "ebnf"))

    def accepts(text: bytes) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return all(matcher.accept_token(byte) for byte in text) and bool(matcher.accept_token(256))

    assert [text for text in texts(name) if not accepts(text)] == []
    assert not accepts(b"][")
