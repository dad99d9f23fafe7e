"""Characters in all their spellings: the engine against the slow oracle, byte by byte through UTF-8 and escapes.

The characters stand at the edges of what an encoding can spell: of one to four bytes of UTF-8, of hexadecimal digits,
of the surrogates, and of the blocks of 1,024 that share a high surrogate.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from constrain.automata.dfa import Dfa
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.grammar.nodes import EMPTY, Chars, Grammar, JsonString, Layout, Literal, Node, Object, Property, Sequence
from constrain.vocabulary.vocabulary import Vocabulary
from tests.engine.test_mask_oracle import list_tokens
from tests.grammar_oracle import Reference

CODES = [
    0x00, 0x08, 0x1F, 0x22, 0x2F, 0x41, 0x5C, 0x7F, 0x80, 0xFF, 0x100, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD000,
    0xD7FF, 0xE000, 0xEFFF, 0xF000, 0xFFFF, 0x10000, 0x103FE, 0x103FF, 0x10400, 0x10FFF, 0x11000, 0x3FFFF, 0x40000,
    0xFFFFF, 0x100000, 0x10FBFF, 0x10FC00, 0x10FFFF,
]  # fmt: skip
PIECES = [b"\\", b"\\ud8", b"\\uD83", b"d8", b"00", b"\\ud800\\udc", b"\\udbff", b"\\udfff", b"\\n", b'"', b'":',
          b"\xed\x9f", b"\xee\x80", b"\xf0\x90", b"\xf4\x8f\xbf", b"\xe0\xa0", b"\\u0041", b"A", b"AA"]  # fmt: skip
VOCABULARY = Vocabulary.from_tokens([*(bytes([b]) for b in range(256)), *PIECES, None], (256 + len(PIECES),))

characters = st.sampled_from(CODES).map(chr)
words = st.lists(st.text(characters, min_size=1, max_size=2), min_size=1, max_size=4, unique=True)
ranges = st.lists(
    st.tuples(st.sampled_from(CODES), st.sampled_from(CODES)).map(lambda pair: (min(pair), max(pair))), max_size=3
)


def spelled(text: str, choice: list[int]) -> bytes:
    """A text inside a JSON string, each character in one of its spellings."""
    out = b""
    for place, char in enumerate(text):
        unit = char.encode("utf-16-be").hex()
        escape = "".join("\\u" + unit[k : k + 4] for k in range(0, len(unit), 4)).encode()
        upper = escape.upper().replace(b"\\U", b"\\u")
        short = b"\\/" if char == "/" else json.dumps(char, ensure_ascii=False)[1:-1].encode()
        out += [short, escape, upper, escape][choice[place % len(choice)] % 4]
    return out


def agree(node: Node, begun: bytes, text: bytes) -> None:
    """Masks and next bytes before each byte of a text, as far as it goes."""
    oracle, grammar = Reference(Grammar(node, {})), Grammar(node, {})
    matcher = compile_grammar(grammar, VOCABULARY).matcher()
    matcher.advance_bytes(begun)
    for end in range(len(text) + 1):
        here = begun + text[:end]
        assert matcher.next_bytes() == oracle.next_bytes(here), here
        end_token = {VOCABULARY.size - 1} if oracle.accepts(here) else set()
        assert list_tokens(matcher.mask()) == oracle.mask(here, VOCABULARY.tokens) | end_token, here
        if text[end : end + 1] == b"" or text[end] not in matcher.next_bytes():
            return
        matcher.advance(text[end])


@settings(max_examples=35)
@given(words, ranges, st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data())
def test_strings(words: list[str], ranges: list[tuple[int, int]], choice: list[int], data: st.DataObject) -> None:
    """Of a language of words and, between them, ranges of characters: with quotes, and in UTF-8."""
    apart = [(low, high) for low, high in ranges if high < 0xD800 or low > 0xDFFF]
    dfa = Dfa.from_strings(words)
    for one in apart:
        dfa = dfa.union(Dfa.from_ranges([one]))
    dfa = dfa.repeat(1, 3)
    samples = [chr(code) for pair in apart for code in (pair[0], pair[1], sum(pair) // 2) if not 0xD7FF < code < 0xE000]
    text = "".join(data.draw(st.lists(st.sampled_from([*words, *samples]), min_size=1, max_size=3)))
    agree(JsonString(dfa), b'"', spelled(text, choice) + b'"')
    agree(Chars(dfa), b"", text.encode())


@settings(max_examples=35)
@given(words, st.integers(0, 3), st.integers(0, 2), st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data())
def test_bounded_texts(words: list[str], low: int, more: int, choice: list[int], data: st.DataObject) -> None:
    """With a bound on the characters: how many are needed at least is known inside a character, too."""
    dfa = Dfa.from_strings([*words, words[0][0]]).star()
    text = "".join(data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=3)))
    quoted = Sequence((Literal(b'"'), Chars(dfa, "json", low, low + more), Literal(b'"')))
    agree(quoted, b'"', spelled(text, choice) + b'"')
    agree(Chars(dfa, "utf8", low, low + more), b"", text.encode())


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(st.text(characters, min_size=1, max_size=2), min_size=1, max_size=6, unique=True),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.data(),
)
def test_keys(names: list[str], choice: list[int], data: st.DataObject) -> None:
    """Declared keys, which are decoded while they are read."""
    layout = Layout(EMPTY, EMPTY, Literal(b","), Literal(b":"), EMPTY)
    properties = tuple(Property(name, Literal(b"1")) for name in names)
    key = data.draw(st.sampled_from(names))
    node = Object(properties, (), layout, order="any", escapes="any")
    agree(node, b'{"', spelled(key, choice) + b'":1')
