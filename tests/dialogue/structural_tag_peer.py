"""Verdicts of XGrammar on texts of structural tags, as the reference; a vocabulary of single bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

import constrain
from constrain import Form, Style, TokenRefused, Vocabulary

END = 256
BYTES = Vocabulary.bytes()


@lru_cache
def peer_compiler() -> Any:
    xgrammar = pytest.importorskip("xgrammar")
    info = xgrammar.TokenizerInfo([bytes((value,)) for value in range(256)] + [b""], stop_token_ids=[END])
    return xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)


def peer_verdict(compiled: Any, text: str) -> bool:
    """Return whether a grammar that XGrammar compiled accepts a text, whole."""
    import xgrammar

    matcher = xgrammar.GrammarMatcher(compiled)
    return bool(matcher.accept_string(text) and matcher.accept_token(END))


def peer_tag(body: Any) -> Callable[[str], bool] | None:
    """Return XGrammar's verdict on texts of a format; None if it refuses the format."""
    compiler = peer_compiler()
    try:
        compiled = compiler.compile_structural_tag({"type": "structural_tag", "format": body})
    except RuntimeError:
        return None
    return lambda text: peer_verdict(compiled, text)


def peer_ebnf(text: str) -> Callable[[str], bool] | None:
    """Return XGrammar's verdict on texts of an EBNF grammar; None if it refuses the grammar."""
    compiler = peer_compiler()
    try:
        compiled = compiler.compile_grammar(text)
    except RuntimeError:
        return None
    return lambda text: peer_verdict(compiled, text)


def our_verdict(form: Form) -> Callable[[str], bool]:
    """Return whether a form matches a text, whole."""
    constraint = form.compile(BYTES)

    def takes(text: str) -> bool:
        matcher = constraint.matcher()
        try:
            matcher.advance_bytes(text.encode())
        except TokenRefused:
            return False
        return matcher.is_complete

    return takes


def our_tag(body: Any, style: Style = Style()) -> Callable[[str], bool]:
    return our_verdict(constrain.structural_tag({"type": "structural_tag", "format": body}, style=style))
