"""The engines of the table, each over single bytes (lm-format-enforcer: over characters), each by its own defaults.

    engine = ENGINES["xgrammar"]()       ImportError where it is not installed
    takes = engine(schema)               what it raises is a refusal of the schema
    takes(text)                          whether the whole text is written under the masks, byte by byte, to its end

No engine is helped or hampered: they follow JSON Schema's semantics where they have a switch for it (undeclared keys
are allowed, white space is free). Single bytes, so that no token can hide an error or make one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from ..byte_peers import END, build_llguidance_tokenizer, build_xgrammar_compiler

__all__ = ["ENGINES", "OURS", "PACKAGES"]

Takes = Callable[[str], bool]


def prepare_constrain(name: str) -> Callable[[Any], Takes]:
    """Prepare constrain in its default style, or (constrain-any) in `Style.any()`, which allows every spelling."""
    from constrain import Style, TokenRefused, Vocabulary, compile

    vocabulary, style = Vocabulary.bytes(), Style.any() if name == "constrain-any" else Style()

    def compiled(schema: Any) -> Takes:
        constraint = compile(vocabulary, schema=json.dumps(schema), style=style)

        def takes(text: str) -> bool:
            matcher = constraint.matcher()
            try:
                matcher.advance_bytes(text.encode())
            except TokenRefused:
                return False
            return matcher.is_complete

        return takes

    return compiled


def prepare_llguidance() -> Callable[[Any], Takes]:
    """llguidance's matcher."""
    from llguidance import LLMatcher

    tokenizer = build_llguidance_tokenizer()

    def compiled(schema: Any) -> Takes:
        root = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(json.dumps(schema)), log_level=0)
        if root.is_error():
            raise ValueError(root.get_error())

        def takes(text: str) -> bool:
            matcher = root.deep_copy()
            tokens = list(text.encode())
            return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())

        return takes

    return compiled


def prepare_xgrammar() -> Callable[[Any], Takes]:
    """XGrammar, not strict (undeclared keys are allowed), white space free."""
    import xgrammar as xgr

    compiler = build_xgrammar_compiler()

    def compiled(schema: Any) -> Takes:
        grammar = compiler.compile_json_schema(json.dumps(schema), any_whitespace=True, strict_mode=False)

        def takes(text: str) -> bool:
            matcher = xgr.GrammarMatcher(grammar)
            return all(matcher.accept_token(token) for token in (*text.encode(), END))

        return takes

    return compiled


def prepare_outlines_core() -> Callable[[Any], Takes]:
    """outlines-core: a regular expression from the schema, and its index."""
    from outlines_core import Index, Vocabulary
    from outlines_core.json_schema import build_regex_from_schema

    vocabulary = Vocabulary(END, {bytes([byte]): [byte] for byte in range(256)})

    def compiled(schema: Any) -> Takes:
        index = Index(build_regex_from_schema(json.dumps(schema)), vocabulary)

        def takes(text: str) -> bool:
            state = index.get_initial_state()
            for byte in text.encode():
                state = index.get_next_state(state, byte)
                if state is None:
                    return False
            return bool(index.is_final_state(state))

        return takes

    return compiled


def prepare_lm_format_enforcer() -> Callable[[Any], Takes]:
    """lm-format-enforcer's parser, over an alphabet that has the characters of the document."""
    from lmformatenforcer import CharacterLevelParserConfig, JsonSchemaParser

    letters = CharacterLevelParserConfig().alphabet

    def compiled(schema: Any) -> Takes:
        JsonSchemaParser(schema).get_allowed_characters()

        def takes(text: str) -> bool:
            alphabet = "".join(dict.fromkeys(letters + text))
            parser: Any = JsonSchemaParser(schema, CharacterLevelParserConfig(alphabet=alphabet))
            for char in text:
                if char not in parser.get_allowed_characters():
                    return False
                parser = parser.add_character(char)
            return bool(parser.can_end())

        return takes

    return compiled


OURS = {name: partial(prepare_constrain, name) for name in ("constrain-any", "constrain")}

ENGINES: dict[str, Callable[[], Callable[[Any], Takes]]] = {
    **OURS,
    "llguidance": prepare_llguidance,
    "xgrammar": prepare_xgrammar,
    "outlines-core": prepare_outlines_core,
    "lm-format-enforcer": prepare_lm_format_enforcer,
}

PACKAGES = ("constrain-lm", "llguidance", "xgrammar", "outlines-core", "lm-format-enforcer", "jsonschema")
"""Whose versions the page tells."""
