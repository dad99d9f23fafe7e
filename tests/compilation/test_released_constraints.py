"""What a compile has made is freed with its Constraint, without the garbage collector."""

from __future__ import annotations

import gc
import json

import pytest

from constrain.base.options import Style
from constrain.base.weak_calls import call_weakly
from constrain.compilation.constraint_compiler import compile_grammar, to_grammar
from constrain.vocabulary.vocabulary import Vocabulary

ITEM = {"type": "object", "properties": {"x": {"type": "integer", "minimum": 3}}}
PLAIN = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": ITEM}},
    "required": ["a"],
}
WORDS = {"oneOf": [{"type": "string", "pattern": "^a+$"}, {"type": "array", "items": {"enum": ["a", 1]}}]}
PART = {"properties": {"b": {"$ref": "#/definitions/q"}}, "patternProperties": {"^x": {"type": "number"}}}
COMBINED = {"allOf": [PART, PLAIN], "definitions": {"q": WORDS}}


@pytest.mark.parametrize("style", [Style(), Style.any()])
@pytest.mark.parametrize(("schema", "text"), [(PLAIN, b'{"a": "b", "b": ['), (COMBINED, b'{"b": [')])
def test_a_constraint_is_freed_without_a_collection(schema: dict[str, object], text: bytes, style: Style) -> None:
    vocabulary = Vocabulary.bytes()

    def use() -> None:
        matcher = compile_grammar(to_grammar(schema=json.dumps(schema), style=style), vocabulary).matcher()
        for byte in text:
            matcher.mask()
            matcher.advance_bytes(bytes([byte]))
        matcher.mask()

    use()  # imports, and results that are kept
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(100):  # what earlier tests left is freed in turns: an object's end may leave others unreachable
            if not gc.collect():
                break
        use()
        assert gc.collect() == 0
    finally:
        if was_enabled:
            gc.enable()


def test_a_weak_call_keeps_nothing_alive() -> None:
    class Adder:
        def add(self, one: int, other: int = 1) -> int:
            return one + other

    adder = Adder()
    add = call_weakly(adder.add)
    assert add(1) == 2 and add(1, other=2) == 3
    del adder
    with pytest.raises(AssertionError):
        add(1)
