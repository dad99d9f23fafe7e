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
from typing import Any

__all__ = ["ENGINES", "OURS", "PACKAGES"]

Takes = Callable[[str], bool]
END = 256


def constrain_any() -> Callable[[Any], Takes]:
    """`Style.any()`: every spelling that RFC 8259 and the schema allow."""
    from constrain import Style

    return prepare_constrain(Style.any())


def constrain_default() -> Callable[[Any], Takes]:
    """The default style."""
    from constrain import Style

    return prepare_constrain(Style())


def prepare_constrain(style: Any) -> Callable[[Any], Takes]:
    """constrain in a style."""
    from constrain import TokenRefused, Vocabulary, compile

    vocabulary = Vocabulary.bytes()

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
    from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

    class Bytes:
        """What the wrapper asks a tokenizer for."""

        def __init__(self) -> None:
            self.eos_token_id, self.bos_token_id, self.special_token_ids = END, None, [END]
            self.tokens = [bytes([byte]) for byte in range(256)] + [b"<|end|>"]

        def __call__(self, text: str | bytes) -> list[int]:
            return list(text if isinstance(text, bytes) else text.encode())

    tokenizer = LLTokenizer(TokenizerWrapper(Bytes()))

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

    tokens = [bytes([byte]) for byte in range(256)] + [b"<|end|>"]
    info = xgr.TokenizerInfo(tokens, xgr.VocabType.RAW, vocab_size=END + 1, stop_token_ids=[END])
    compiler = xgr.GrammarCompiler(info, max_threads=1)

    def compiled(schema: Any) -> Takes:
        grammar = compiler.compile_json_schema(json.dumps(schema), any_whitespace=True, strict_mode=False)

        def takes(text: str) -> bool:
            matcher = xgr.GrammarMatcher(grammar)
            return all(matcher.accept_token(token) for token in (*text.encode(), END))

        return takes

    return compiled


def outlines_core() -> Callable[[Any], Takes]:
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


def lm_format_enforcer() -> Callable[[Any], Takes]:
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


OURS = {"constrain-any": constrain_any, "constrain": constrain_default}
"""In `Style.any()`, and by default."""

ENGINES: dict[str, Callable[[], Callable[[Any], Takes]]] = {
    **OURS,
    "llguidance": prepare_llguidance,
    "xgrammar": prepare_xgrammar,
    "outlines-core": outlines_core,
    "lm-format-enforcer": lm_format_enforcer,
}

PACKAGES = ("constrain-lm", "llguidance", "xgrammar", "outlines-core", "lm-format-enforcer", "jsonschema")
"""Whose versions the page tells."""
