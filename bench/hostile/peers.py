"""The peers: each compiles a source over a vocabulary of single bytes and makes a first mask.

`ENGINES[name]()` prepares an engine and returns {kind: function of a text} for the kinds of source that it supports.
An exception of REFUSALS is a typed refusal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ..byte_peers import END, TOKENS, build_llguidance_tokenizer, build_xgrammar_compiler

__all__ = ["ENGINES", "REFUSALS"]

Use = Callable[[str], Any]
REFUSALS = (ValueError, RuntimeError, NotImplementedError)
"""Exceptions by which peers refuse an input; RecursionError is not a refusal, though it is a RuntimeError."""


def prepare_llguidance() -> Mapping[str, Use]:
    """Prepare llguidance: JSON Schema, regex, its dialect of Lark."""
    from llguidance import LLMatcher
    from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

    tokenizer = build_llguidance_tokenizer()

    def use(read: Callable[[str], Any]) -> Use:
        def run(text: str) -> None:
            matcher = LLMatcher(tokenizer, read(text), log_level=0)
            bits = allocate_token_bitmask(1, END + 1)
            fill_next_token_bitmask(matcher, bits, 0)
            if matcher.is_error():
                raise ValueError(matcher.get_error())

        return run

    return {
        "schema": use(LLMatcher.grammar_from_json_schema),
        "regex": use(LLMatcher.grammar_from_regex),
        "lark": use(LLMatcher.grammar_from_lark),
    }


def prepare_xgrammar() -> Mapping[str, Use]:
    """Prepare XGrammar: JSON Schema, regex, GBNF."""
    import xgrammar as xgr

    compiler = build_xgrammar_compiler()

    def use(read: Callable[[str], Any]) -> Use:
        def run(text: str) -> None:
            matcher = xgr.GrammarMatcher(read(text))
            matcher.fill_next_token_bitmask(xgr.allocate_token_bitmask(1, END + 1))

        return run

    return {
        "schema": use(lambda text: compiler.compile_json_schema(text, any_whitespace=True, strict_mode=False)),
        "regex": use(compiler.compile_regex),
        "gbnf": use(compiler.compile_grammar),
    }


def prepare_outlines_core() -> Mapping[str, Use]:
    """Prepare outlines-core: JSON Schema (converted to a regex), regex."""
    from outlines_core import Index, Vocabulary
    from outlines_core.json_schema import build_regex_from_schema

    vocabulary = Vocabulary(END, {token: [token[0]] for token in TOKENS})

    def regex(text: str) -> None:
        index = Index(text, vocabulary)
        index.get_allowed_tokens(index.get_initial_state())

    return {"schema": lambda text: regex(build_regex_from_schema(text)), "regex": regex}


def prepare_lm_format_enforcer() -> Mapping[str, Use]:
    """Prepare lm-format-enforcer: JSON Schema, regex."""
    from lmformatenforcer import JsonSchemaParser, RegexParser

    return {
        "schema": lambda text: JsonSchemaParser(json.loads(text)).get_allowed_characters(),
        "regex": lambda text: RegexParser(text).get_allowed_characters(),
    }


ENGINES: dict[str, Callable[[], Mapping[str, Use]]] = {
    "llguidance": prepare_llguidance,
    "xgrammar": prepare_xgrammar,
    "outlines-core": prepare_outlines_core,
    "lm-format-enforcer": prepare_lm_format_enforcer,
}
