"""The warm-up takes schemas that can be satisfied to their masks, and leaves a vocabulary as useful as before."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import constrain
from constrain import Style, Vocabulary
from constrain.compilation.process_warm_up import FORMATS, PIECES, make_schema, warm_up
from constrain.kernels import layout as at
from constrain.vocabulary.mask_table_cache import find_mask_table


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


@pytest.mark.parametrize(("properties", "instance"), PIECES.values(), ids=PIECES)
@pytest.mark.parametrize("style", [Style(), Style.any()], ids=["default", "any"])
def test_the_instance_of_every_piece_is_valid(
    properties: dict[str, Any], instance: dict[str, Any], style: Style
) -> None:
    schema = make_schema(properties, "http://json-schema.org/draft-07/schema#")
    jsonschema.validate(instance, schema)
    matcher = constrain.compile(Vocabulary.bytes(), schema=schema, style=style).matcher()
    matcher.advance_bytes(json.dumps(instance).encode())
    assert matcher.is_complete
    assert instance.keys() == properties.keys() - {"self"}


def test_a_warm_up_makes_the_rows_of_common_leaves() -> None:
    vocabulary = Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"12", b"2024-", b"ab", b""], [259])
    warm_up(vocabulary)
    counts = find_mask_table(vocabulary).arrays[at.TABLE]
    before = int(counts[at.N_LEAVES]), int(counts[at.N_ROWS])
    for name, text in FORMATS.items():
        for style in (Style(), Style.any()):
            schema = {"type": "array", "items": {"anyOf": [{"type": "string", "format": name}, {"type": "integer"}]}}
            matcher = constrain.compile(vocabulary, schema=schema, style=style).matcher()
            for byte in f'["{text}", -120]'.encode():
                matcher.mask()
                matcher.advance(byte)
    assert (int(counts[at.N_LEAVES]), int(counts[at.N_ROWS])) == before
