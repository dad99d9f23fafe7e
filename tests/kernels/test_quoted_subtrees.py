"""Subtrees below an opening quote, and paths to closing ones: against the tokens themselves, and in masks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

import constrain
from constrain import Style, Vocabulary
from constrain.automata.dfa import Dfa
from constrain.kernels import layout as at
from constrain.vocabulary.mask_table import MaskTable
from constrain.vocabulary.mask_table_cache import find_mask_table
from tests.token_mask_oracle import compare_token_masks

TAILS = ["a", "ab", "\\", "\\n", '\\"', '\\"b', "\\x", "\\u00", "é", "\n", "a\n", '"', 'a"', 'ab": ', '",', '","',
         'a","b', '":', '":"', '": {"', '"}', '"]', 'a\\u0062"', '\\"":', "{", '"b":1', '""', '"a"b']  # fmt: skip
HEADS = ['"', ' "', '["', '{"', ',"', ': "', '":"', '\\"', 'b"']
SINGLE = [bytes([byte]) for byte in range(256)]
WORDS = sorted(
    {(head + tail).encode() for head in HEADS for tail in TAILS} | {b'"\xc3', b' "\xe6\xbc', b'"\xa9', b'"a\xff'}
)
TOKENS = Vocabulary.from_tokens([*SINGLE, *WORDS, None], (256 + len(WORDS),))
BYTES = Vocabulary.from_tokens([*SINGLE, None], (256,))


def stays_inside(text: bytes) -> bool:
    """Whether a text can become the inside of a JSON string, without its end."""
    followed = (text + end + tail for end in (b"", b"0", b"00", b"000", b"0000", b"n", b"\xa9", b"\xbc\xa2", b"\xa2")
                for tail in (b"", b"n"))  # fmt: skip
    for one in followed:
        try:
            value = json.loads(b'"' + one + b'"')
        except ValueError:
            continue
        if isinstance(value, str):
            return True
    return False


def read_edges(table: MaskTable, node: int) -> dict[bytes, int]:
    """The child of a node by each byte."""
    trie, edges = table.arrays[at.TRIE], table.arrays[at.TRIE_EDGES]
    return {bytes([edge & 255]): edge >> 8 for edge in edges[trie[2 * node] : trie[2 * node + 2]].tolist()}


def read_tokens(table: MaskTable, node: int) -> list[int]:
    """The tokens that are listed at a node."""
    trie, tokens = table.arrays[at.TRIE], table.arrays[at.TRIE_TOKENS]
    return tokens[2 * trie[2 * node + 1] : 2 * trie[2 * node + 3] : 2].tolist()  # type: ignore[no-any-return]


def find_node(table: MaskTable, path: bytes) -> int:
    """The node of the main trie that a path leads to."""
    node = 0
    for byte in path:
        node = read_edges(table, node)[bytes([byte])]
    return node


def list_copies(table: MaskTable) -> dict[int, int]:
    """The root of the copy of each node that has one."""
    quoted: NDArray[np.int32] = table.arrays[at.QUOTED]
    records = quoted[at.QUOTED_FIRST :][: at.QUOTED_W * quoted[at.QUOTED_COUNT]].reshape(-1, at.QUOTED_W)
    return dict(records.tolist())


def follow_paths(table: MaskTable, copy: int, root: bytes) -> set[bytes]:
    """The texts that lead from the copy of a node to the main trie. root: the text before the node."""
    ends, found, todo = table.arrays[at.TRIE_END][0], set[bytes](), [(b"", copy)]
    while todo:
        path, node = todo.pop()
        for byte, child in read_edges(table, node).items():
            if child < ends:
                assert child == find_node(table, root + path + byte)
                found.add(path + byte)
            else:
                assert not read_tokens(table, child) and read_edges(table, child)
                todo.append((path + byte, child))
    return found


def list_closings(texts: list[bytes]) -> set[bytes]:
    """The texts that begin within a string, each as far as its closing quote."""
    return {one[: end + 1] for one in texts for end in range(len(one)) if one[end : end + 1] == b'"'
            if stays_inside(one[:end]) and not stays_inside(one[: end + 1])}  # fmt: skip


def test_copies_list_the_tokens_inside_and_lead_to_the_closing_quotes() -> None:
    table = MaskTable(TOKENS)
    table.row(table.start(Dfa.any_text(), at.JSON_STRING))
    copies = list_copies(table)
    prefixes = {token[:end] for token in WORDS for end in range(1, len(token) + 1)}
    below_each = {
        one: [token[len(one) :] for token in WORDS if token.startswith(one) and token != one]
        for one in prefixes
        if one.endswith(b'"')
    }
    roots = {one: below for one, below in below_each.items() if len(below) >= 8}
    assert len(roots) > 5 and copies.keys() == {find_node(table, one) for one in roots}
    for root, below in roots.items():
        copy = copies[find_node(table, root)]
        inside = {256 + WORDS.index(root + rest) for rest in below if stays_inside(rest)}
        assert len(read_tokens(table, copy)) == len(inside) and set(read_tokens(table, copy)) == inside
        assert follow_paths(table, copy, root) == list_closings(below)


def test_closing_paths_lead_to_the_closing_quotes_of_all_tokens() -> None:
    table = MaskTable(TOKENS)
    table.row(table.start(Dfa.any_text(), at.JSON_STRING))
    paths = int(table.arrays[at.QUOTED][at.QUOTED_CLOSING])
    assert not read_tokens(table, paths)
    assert follow_paths(table, paths, b"") == list_closings([*SINGLE, *WORDS])


def test_copies_are_kept_with_a_table() -> None:
    table = MaskTable(TOKENS)
    table.row(table.start(Dfa.any_text(), at.JSON_STRING))
    kept = MaskTable(TOKENS, table.snapshot(), table.starts)
    assert list_copies(kept) == list_copies(table) != {}


SCHEMAS: list[tuple[Any, str]] = [
    ({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]},
     '{"a": "ab", "b":"\\n","c": {"d": "x"}}'),
    ({"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "additionalProperties": False},
     '{"a": "b"}'),
    ({"type": "object", "properties": {"ab": {"maxLength": 2}}, "additionalProperties": {"type": "string"}},
     '{"ab": "a", "b": "a", "a": "ab"}'),
    ({"type": "object", "patternProperties": {"^a": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
     '{"ab": "a\\u0062", "b": 1}'),
    ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, '["a", "ab", "b", "\\n"]'),
    ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"enum": [1, ["a"]]}]}, "maxItems": 4},
     '["a", ["a"], "b"]'),
    ({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}, "uniqueItems": True},
     '[{"a": "a"}, {"a": "b", "b": "a"}, {"a": "ab"}]'),
    ({"type": "string", "pattern": "^[ab]+$"}, '"ab"'),
    ({"type": "string", "minLength": 2}, '"\\u00e9b"'),
    ({"oneOf": [{"type": "string"}, {"const": "ab"}]}, '"abb"'),
    (True, '[{"a": "b", "": ["", "\\\\"]}, "é"]'),
]  # fmt: skip


@pytest.mark.parametrize("style", [Style(), Style.any()], ids=["default", "any"])
@pytest.mark.parametrize("schema, text", SCHEMAS)
def test_masks(schema: Any, text: str, style: Style) -> None:
    constraint = constrain.compile(TOKENS, schema=schema, style=style)
    find_mask_table(TOKENS).row(find_mask_table(TOKENS).start(Dfa.any_text(), at.JSON_STRING))
    assert list_copies(find_mask_table(TOKENS))
    compare_token_masks(constraint, constrain.compile(BYTES, schema=schema, style=style), text.encode(), TOKENS)


pieces = st.sampled_from(["a", "b", "é", "\\", '"', "\n", "\\n", '\\"', ":", ",", "{", "u00", "x"])
words = st.lists(pieces, max_size=4).map("".join)


@given(st.lists(words, min_size=8, max_size=60, unique=True), st.sampled_from(["default", "any"]))
def test_masks_with_any_tokens_after_a_quote(rest: list[str], style: str) -> None:
    tokens = [*SINGLE, *dict.fromkeys(f'{head}"{one}'.encode() for head in ("", " ") for one in rest if head or one)]
    vocabulary = Vocabulary.from_tokens([*tokens, None], (len(tokens),))
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "maxProperties": 2}
    made = [constrain.compile(one, schema=schema, style=Style() if style == "default" else Style.any())
            for one in (vocabulary, BYTES)]  # fmt: skip
    table = find_mask_table(vocabulary)
    table.row(table.start(Dfa.any_text(), at.JSON_STRING))
    compare_token_masks(made[0], made[1], b'{"a": "b\\n", "x": "a"}', vocabulary)
