"""The engines of the table, over single bytes (lm-format-enforcer: over characters), with their defaults.

    engine = ENGINES["xgrammar"]()       raises ImportError if it is not installed
    accepts = engine(schema)             an exception is a refusal of the schema
    accepts(text)                        whether the masks allow the whole text, byte by byte, and its end

Options that select the semantics of JSON Schema are set (undeclared keys are allowed, any white space). Single bytes,
so that the vocabulary has no influence on the verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from ..byte_peers import END, build_llguidance_tokenizer, build_xgrammar_compiler

__all__ = ["ENGINES", "OURS", "PACKAGES"]

Accepts = Callable[[str], bool]


def prepare_constrain(name: str) -> Callable[[Any], Accepts]:
    """Prepare constrain in its default style, or (constrain-any) in `Style.any()`, which allows every spelling."""
    from constrain import Style, TokenRefused, Vocabulary, compile

    vocabulary, style = Vocabulary.bytes(), Style.any() if name == "constrain-any" else Style()

    def compile_schema(schema: Any) -> Accepts:
        constraint = compile(vocabulary, schema=json.dumps(schema), style=style)

        def accepts(text: str) -> bool:
            matcher = constraint.matcher()
            try:
                matcher.advance_bytes(text.encode())
            except TokenRefused:
                return False
            return matcher.is_complete

        return accepts

    return compile_schema


def prepare_llguidance() -> Callable[[Any], Accepts]:
    """Prepare llguidance."""
    from llguidance import LLMatcher

    tokenizer = build_llguidance_tokenizer()

    def compile_schema(schema: Any) -> Accepts:
        root = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(json.dumps(schema)), log_level=0)
        if root.is_error():
            raise ValueError(root.get_error())

        def accepts(text: str) -> bool:
            matcher = root.deep_copy()
            tokens = list(text.encode())
            return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())

        return accepts

    return compile_schema


def prepare_xgrammar() -> Callable[[Any], Accepts]:
    """Prepare XGrammar, not strict (undeclared keys are allowed), with any white space."""
    import xgrammar as xgr

    compiler = build_xgrammar_compiler()

    def compile_schema(schema: Any) -> Accepts:
        grammar = compiler.compile_json_schema(json.dumps(schema), any_whitespace=True, strict_mode=False)

        def accepts(text: str) -> bool:
            matcher = xgr.GrammarMatcher(grammar)
            return all(matcher.accept_token(token) for token in (*text.encode(), END))

        return accepts

    return compile_schema


def prepare_outlines_core() -> Callable[[Any], Accepts]:
    """Prepare outlines-core: a regular expression from the schema, and its index."""
    from outlines_core import Index, Vocabulary
    from outlines_core.json_schema import build_regex_from_schema

    vocabulary = Vocabulary(END, {bytes([byte]): [byte] for byte in range(256)})

    def compile_schema(schema: Any) -> Accepts:
        index = Index(build_regex_from_schema(json.dumps(schema)), vocabulary)

        def accepts(text: str) -> bool:
            state = index.get_initial_state()
            for byte in text.encode():
                state = index.get_next_state(state, byte)
                if state is None:
                    return False
            return bool(index.is_final_state(state))

        return accepts

    return compile_schema


def prepare_lm_format_enforcer() -> Callable[[Any], Accepts]:
    """Prepare lm-format-enforcer, over an alphabet with the characters of the document."""
    from lmformatenforcer import CharacterLevelParserConfig, JsonSchemaParser

    letters = CharacterLevelParserConfig().alphabet

    def compile_schema(schema: Any) -> Accepts:
        JsonSchemaParser(schema).get_allowed_characters()

        def accepts(text: str) -> bool:
            alphabet = "".join(dict.fromkeys(letters + text))
            parser: Any = JsonSchemaParser(schema, CharacterLevelParserConfig(alphabet=alphabet))
            for char in text:
                if char not in parser.get_allowed_characters():
                    return False
                parser = parser.add_character(char)
            return bool(parser.can_end())

        return accepts

    return compile_schema


OURS = {name: partial(prepare_constrain, name) for name in ("constrain-any", "constrain")}

ENGINES: dict[str, Callable[[], Callable[[Any], Accepts]]] = {
    **OURS,
    "llguidance": prepare_llguidance,
    "xgrammar": prepare_xgrammar,
    "outlines-core": prepare_outlines_core,
    "lm-format-enforcer": prepare_lm_format_enforcer,
}

PACKAGES = ("constrain-lm", "llguidance", "xgrammar", "outlines-core", "lm-format-enforcer", "jsonschema")
"""Packages whose versions are on the page."""
