"""Masks of strings with a pattern and a greatest length: each token is judged by its bytes alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain import Style, Vocabulary
from tests.engine.test_mask_oracle import list_tokens

PIECES = [b"a" * length for length in (2, 3, 5, 9, 40)] + [b"x" * length for length in (2, 3, 4, 5, 8, 9, 40, 130)]
TOKENS = [
    None,
    *(bytes([byte]) for byte in range(256)),
    *PIECES,
    b"xa",
    b"ax",
    b"aax",
    'é"'.encode(),
    b"\\u00e9",
    b"xxxb",
]
VOCABULARY = Vocabulary.from_tokens(TOKENS, (0,))


@pytest.mark.parametrize("style", [Style(), Style.any()])
@pytest.mark.parametrize("pattern", ["a{%d}", "^x*a{%d}", "^(b{200}|x*a{%d})", "^x*$|^b.{%d}"])
@settings(max_examples=12)
@given(needed=st.sampled_from([0, 1, 7, 100, 129, 200]), more=st.integers(0, 12) | st.just(150), data=st.data())
def test_each_token_that_fits_is_allowed(
    pattern: str, style: Style, needed: int, more: int, data: st.DataObject
) -> None:
    schema = {"type": "string", "pattern": pattern % needed, "maxLength": needed + more}
    matcher = constrain.compile(VOCABULARY, schema=json.dumps(schema), style=style).matcher()
    matcher.advance_bytes(b'"')
    while not matcher.is_complete:
        allowed = list_tokens(matcher.mask())
        assert allowed == {token for token in range(1, len(TOKENS)) if matcher.allows(token)}
        matcher.advance(data.draw(st.sampled_from(sorted(allowed, key=lambda token: -len(TOKENS[token] or b""))[:12])))
