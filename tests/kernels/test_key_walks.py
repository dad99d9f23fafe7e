"""Masks inside declared keys, which are walked with string cursors, against taking the bytes of each token in turn."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

import constrain
from constrain import Style, Vocabulary
from constrain.kernels import layout as at
from tests.token_mask_oracle import compare_token_masks

LETTERS = 'ab"\\u0é\U0001f600'
PIECES = ["a", "b", "ab", "ba", 'a"', '"a', '"ab', '{"a', '"a":', 'b":"', ',"b', '1,"a', '": ', '":{"a', '","ab":',
          "\\", "\\u", "\\u0", "\\u00", "\\u006", "\\u0061", '\\"', "\\u0062a", '"\\', "u0", "é", "aé", "b\U0001f600",
          "\\ud83d", "\\ud83d\\ude00", "\\u00e9", '\\\\"', '\\u0022"', "true", "1", "}", "]", ":", ",", "[", "{", '"}',
          '"a":1,"b":1}']  # fmt: skip
SINGLE = [bytes([byte]) for byte in range(256)]
TOKENS = Vocabulary.from_tokens([None, *(piece.encode() for piece in PIECES), b"a\xc3", b"\xa9", *SINGLE], (0,))
BYTES = Vocabulary.from_tokens([*SINGLE, None], (256,))
VALUES: list[Any] = [{"type": "integer"}, {"const": "ab"}, True, {"type": "array", "uniqueItems": True}]

names = st.text(LETTERS, min_size=0, max_size=4)


@st.composite
def objects(draw: st.DrawFn, depth: int = 1) -> dict[str, Any]:
    """Schemas of objects whose keys share prefixes, need escapes, depend on each other or are counted."""
    keys = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    values = st.sampled_from(VALUES) | objects(depth=depth - 1) if depth else st.sampled_from(VALUES)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: draw(values) for key in keys},
        "required": draw(st.lists(st.sampled_from(keys), max_size=2, unique=True)),
        "additionalProperties": draw(st.sampled_from([False, True, {"type": "integer"}])),
    }
    if draw(st.booleans()):
        schema["dependentRequired"] = {keys[0]: [keys[-1]]}
    if draw(st.booleans()):
        schema["maxProperties"] = len(keys)
    return schema


def spell(draw: st.DrawFn, schema: dict[str, Any], shuffled: bool) -> str:
    """Return a text that begins as an instance of the schema does, with some characters of keys escaped."""
    keys = list(schema["properties"])
    if shuffled:
        keys = draw(st.permutations(keys))
    parts = []
    for key in keys:
        is_ascii = draw(st.booleans())
        name = json.dumps(key, ensure_ascii=is_ascii)
        if shuffled and draw(st.booleans()):
            name = name.replace("a", "\\u0061")
        parts.append(f"{name}:1")
    return "{" + ",".join(parts) + "}"


@pytest.mark.parametrize("key_order", ["schema", "any"])
@given(st.data())
def test_keys_are_masked_as_their_tokens_are_stepped(key_order: Any, data: st.DataObject) -> None:
    schema = data.draw(
        st.one_of(objects(), st.lists(objects(), min_size=2, max_size=3).map(lambda all: {"anyOf": all}))
    )
    style = Style.any() if key_order == "any" else Style()
    try:
        whole, slow = (constrain.compile(one, schema=schema, style=style) for one in (TOKENS, BYTES))
    except constrain.ConstrainError:
        return  # no value is valid
    first = schema.get("anyOf", [schema])[0]
    text = spell(data.draw, first, key_order == "any").encode()
    matcher = slow.matcher()
    length = 0
    for length in range(len(text)):
        if text[length] not in matcher.next_bytes():
            break
        matcher.advance_bytes(text[length : length + 1])
    compare_token_masks(whole, slow, text[:length], TOKENS)


def test_walks_inside_keys_make_no_sets() -> None:
    schema = {"properties": {f"ab{k}": {"type": "integer"} for k in range(40)}, "additionalProperties": False}
    matcher = constrain.compile(TOKENS, schema=schema, style=Style.any()).matcher()
    matcher.advance_bytes(b"{")
    head = matcher.constraint.state_cache().arrays[at.HEAD]
    before = int(head[at.N_SETS])
    matcher.mask()
    # `"`, its escapes, and what follows it: none for `"a` and `"ab`.
    assert int(head[at.N_SETS]) - before < 12
