"""Arrays with two equal items, which cannot be enumerated: the complement of `uniqueItems`."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import Any

import numpy as np
import pytest

import constrain
from constrain import Style, Vocabulary
from constrain.authoring.samples.random_instances import random_text
from constrain.base.errors import TokenRefused, UnsupportedError
from tests.schema_strategies import valid
from tests.text_acceptance import accepts_text

SCHEMAS: list[dict[str, Any]] = [
    {},
    {"items": {"type": "string"}},
    {"items": {"type": "integer"}, "minItems": 4},
    {"items": {"type": ["integer", "boolean"]}},
    {"prefixItems": [{"type": "string"}, {"type": "integer"}]},
    {"prefixItems": [{"type": "boolean"}, {"type": "array"}], "items": {"type": ["string", "number"]}, "minItems": 3},
    {"items": {"type": "array", "not": {"uniqueItems": True}}},
    {"items": {"type": "array", "items": {"type": "number"}, "uniqueItems": True}},
]
VALUES = [1, 1.0, 12, "a", "ab", True, [1, 1], [1, 1.0], [1]]
PIECES = [
    b'"', b"a", b"b", b"ab", b'"a"', b',"a"', b'"a",', b'"a","a"]', b"1", b"12", b"1,1]", b",1", b"0", b".0", b"]",
    b"[", b"[1", b"[1,1]", b"],[", b",", b"true", b"rue", b"t", b"true,", b"e0", b"\\u0061", b" ", b", ", b"],",
]  # fmt: skip


def duplicated(keywords: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "not": {"uniqueItems": True}, **keywords}


@pytest.mark.parametrize("keywords", SCHEMAS, ids=json.dumps)
@pytest.mark.parametrize("style", [Style(), Style.any()], ids=["default", "any"])
def test_every_short_array(keywords: dict[str, Any], style: Style) -> None:
    schema = duplicated(keywords)
    constraint = constrain.compile(Vocabulary.bytes(), schema=schema, style=style)
    for length in range(4):
        for value in product(VALUES, repeat=length):
            text = json.dumps(value, separators=(",", ":"))
            if style == Style.any() or "1.0" not in text:
                assert accepts_text(constraint, text.encode()) == valid(schema, json.loads(text)), text


@pytest.mark.parametrize("keywords", SCHEMAS, ids=json.dumps)
def test_masks_agree_with_trying_each_token(keywords: dict[str, Any]) -> None:
    """No prefix is a dead end: a token is allowed exactly if its bytes are taken, and what was taken can be ended."""
    vocabulary = Vocabulary.from_tokens([*(bytes([b]) for b in range(256)), *PIECES, None], eos_ids=[256 + len(PIECES)])
    constraint = constrain.compile(vocabulary, schema=duplicated(keywords), style=Style.any())
    rng = random.Random(json.dumps(keywords))
    tokens = [*range(0x20, 0x7F), *range(256, 256 + len(PIECES))]
    for _ in range(12):
        matcher = constraint.matcher()
        for _ in range(10):
            mask = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
            possible = []
            for token in tokens:
                other = matcher.fork()
                try:
                    other.advance_bytes(bytes([token]) if token < 256 else PIECES[token - 256])
                except TokenRefused:
                    assert not mask[token], (matcher.tokens, token)
                else:
                    assert mask[token], (matcher.tokens, token)
                    possible.append(token)
            if not possible:
                break
            pieces = [token for token in possible if token >= 256]
            matcher.advance(rng.choice(pieces if pieces and rng.random() < 0.9 else possible))
            closing = matcher.shortest_completion()
            assert closing is not None
            other = matcher.fork()
            other.advance_bytes(closing)
            assert other.is_complete


@pytest.mark.parametrize("keywords", SCHEMAS, ids=json.dumps)
def test_random_texts_hold_two_equal_items(keywords: dict[str, Any]) -> None:
    constraint = constrain.compile(Vocabulary.bytes(), schema=duplicated(keywords))
    for seed in range(20):
        text = random_text(constraint, np.random.default_rng(seed), size=100)
        assert valid(duplicated(keywords), json.loads(text)), text


@pytest.mark.parametrize(
    ("written", "completion"),
    [
        (b"", b"[0,0]"), (b'["abc', b'",0,0]'), (b'["a"', b',"a"]'), (b"[12345678", b",0,0]"), (b'["ab",7', b",7]"),
        (b'["abcdef","abcd', b'ef"]'), (b"[1,1", b"]"), (b"[[1,1],[", b"1,1]]"), (b"[12,1", b"2]"),
    ],
)  # fmt: skip
def test_shortest_completions(written: bytes, completion: bytes) -> None:
    matcher = constrain.compile(Vocabulary.bytes(), schema=duplicated({})).matcher()
    matcher.advance_bytes(written)
    assert matcher.shortest_completion() == completion
    assert matcher.shortest_completion(limit=len(completion)) == completion
    assert matcher.shortest_completion(limit=len(completion) - 1) is None


@pytest.mark.parametrize("keywords", [{"maxItems": 5}, {"contains": {"type": "string"}, "maxContains": 2}])
def test_possible_dead_ends_are_refused(keywords: dict[str, Any]) -> None:
    """Where the last item may have to be a copy, or items are counted beside it, nothing watches for both."""
    with pytest.raises(UnsupportedError, match="Two equal items") as caught:
        constrain.compile(Vocabulary.bytes(), schema=duplicated(keywords))
    assert caught.value.pointer is not None and caught.value.pointer.endswith("uniqueItems")
