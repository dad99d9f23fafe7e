"""Masks inside white space that a counter bounds, against taking the bytes of each token one after the other."""

from __future__ import annotations

import json
from typing import Any

import pytest

import constrain
from constrain import Style, Vocabulary
from constrain.kernels import layout as at
from constrain.vocabulary.mask_table_cache import find_mask_table
from tests.token_mask_oracle import compare_token_masks

SPACES = [mark + " " * n for mark in ("", "\n") for n in (1, 2, 3, 31, 62, 63, 64, 65, 66, 70)]
TABS = ["\n" + "\t" * n for n in (1, 2, 63, 64, 65, 66)]
MIXED = [
    "\n\n", " \n", "\n \t", "\n\t ", ' "', '\n"', '\n  "', ' "a', '\n "a":', '\n  "b": ', ', "', ',\n  "', ',\n "a"',
    '","', '", "', '":"', " }", "\n}", "\n  }", "}\n", " ]", "\n]", ",\n  1", ", 2", " {", '\n {"', "[\n",
    '{\n  "', " b", "  b", "\n   b",
]  # fmt: skip
SINGLE = [bytes([byte]) for byte in range(256)]
TOKENS = Vocabulary.from_tokens([None, *(piece.encode() for piece in [*SPACES, *TABS, *MIXED]), *SINGLE], (0,))
BYTES = Vocabulary.from_tokens([*SINGLE, None], (256,))

SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "additionalProperties": False},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {"type": "object", "maxProperties": 2},
    {"type": "array", "uniqueItems": True},
    {"type": "array", "items": {"type": "object", "properties": {"a": {"enum": [1, "a"]}}}, "minItems": 2},
]
TEXTS = [
    '{"a": 1, "b": {}}', '{\n  "a": 1,\n  "b": [\n    1\n  ]\n}', "{\n" + " " * 63 + '"a":1,\n' + "\t" * 64 + '"b":2}',
    "[1,\n 2,\n " + " " * 40 + "[1, 2]]", '[{ "a": 1 }, {"a": "a"\n}\n]', "[\n{},\n  {\n \"a\": 1}]",
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
@pytest.mark.parametrize("key_order", ["schema", "any"])
def test_gaps_of_json_are_masked_as_their_tokens_are_stepped(schema: dict[str, Any], key_order: Any) -> None:
    style = Style(whitespace="flexible", key_order=key_order)
    whole, slow = (constrain.compile(vocabulary, schema=schema, style=style) for vocabulary in (TOKENS, BYTES))
    for text in TEXTS:
        compare_token_masks(whole, slow, text.encode(), TOKENS)
    table = find_mask_table(TOKENS)
    leaves = table.arrays[at.LEAVES][: at.LEAF_W * int(table.arrays[at.TABLE][at.N_LEAVES])].reshape(-1, at.LEAF_W)
    assert (leaves[:, at.LEAF_FLAGS] & at.LEAF_GAP).any()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"a[ \n]{1,9}b", "a  \n b"), (r"a[ ]*b?", "a    b"), (r"(a|a {3,70}b)", "a" + " " * 9 + "b"),
        (r"(\n( *|\t*))?b", "\n   b"), (r" {64}b|\t+a", " " * 64 + "b"), (r"[ \t]+", " \t "),
    ],
)  # fmt: skip
def test_gaps_of_patterns_are_masked_as_their_tokens_are_stepped(pattern: str, text: str) -> None:
    whole, slow = (constrain.compile(vocabulary, regex=pattern) for vocabulary in (TOKENS, BYTES))
    compare_token_masks(whole, slow, text.encode(), TOKENS)
