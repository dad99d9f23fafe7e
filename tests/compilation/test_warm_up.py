"""The warm-up takes schemas that can be satisfied to their masks, and leaves a vocabulary as useful as before."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import constrain
from constrain import Style, Vocabulary
from constrain.compilation.process_warm_up import PIECES, make_schema, warm_up


def test_a_warm_up_changes_no_mask() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]}
    fresh, warm = Vocabulary.bytes(), Vocabulary.bytes()
    warm_up(warm)
    for style in (Style(), Style.any()):
        first, second = (constrain.compile(v, schema=schema, style=style).matcher() for v in (fresh, warm))
        for byte in b'{"a": 12}':
            assert first.mask().tobytes() == second.mask().tobytes()
            first.advance(byte)
            second.advance(byte)


@pytest.mark.parametrize("properties", PIECES.values(), ids=PIECES)
def test_every_piece_can_be_satisfied(properties: dict[str, Any]) -> None:
    schema = make_schema(properties, "http://json-schema.org/draft-07/schema#")
    text = constrain.compile(Vocabulary.bytes(), schema=schema).matcher().shortest_completion()
    assert text is not None
    jsonschema.validate(json.loads(text), schema)
