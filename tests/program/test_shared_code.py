"""Shared code: a Program with the code of shared nodes is that which links each of them itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from constrain import Style, Vocabulary, compile
from constrain.automata.dfa import Dfa
from constrain.compilation import compile_caches
from constrain.grammar.nodes import Chars, Choice, Rule, Sequence
from constrain.program import program as programs, shared_code
from constrain.program.shared_code import PLACEHOLDER, link_shared, share

BYTES = Vocabulary.bytes()
STYLES = [Style(), Style.any(), Style(whitespace="compact"), Style(whitespace=2)]
SCALARS = ["string", "integer", "number", "boolean", "null"]
LISTS = st.fixed_dictionaries(
    {"type": st.just("array")},
    optional={
        "items": st.sampled_from(SCALARS).map(lambda name: {"type": name}) | st.just({"type": ["string", "null"]}),
        "minItems": st.integers(0, 3),
        "maxItems": st.integers(3, 70_000),
    },
)
VALUES = LISTS | st.sampled_from([{}, True, {"items": {}}, {"type": "object"}, {"type": "string"}])
TEXT = b'{"a": [1, "x", null, true, {"b": [[]]}, -2.5e1], "c": ["x", "y"], "d": {"e": [0]}}'


def link_all(schema: Any, style: Style) -> list[int]:
    """Return all words of the program of a schema once all its rules are linked that a text or others refer to."""
    constraint = compile(BYTES, schema=json.dumps(schema), style=style)
    matcher = constraint.matcher()
    for byte in TEXT:
        if not matcher.allows(byte):
            break
        matcher.advance(byte)
        matcher.mask()
    program = constraint.program
    for cell in program.cells():
        program.link(cell)
    return program.words.tolist()


def test_leaves_may_be_added_while_their_keys_are_read() -> None:
    """By another thread: a thread that uses what was linked holds no lock."""
    program = compile(BYTES, schema={"enum": ["a", "b"]}).program
    program.leaf(Dfa.from_strings(["x"]), 0)
    keys = program.leaf_keys(0)
    for number, _ in enumerate(keys):
        program.leaf(Dfa.from_strings([f"x{number}"]), 0)
    assert program.leaf_keys(0)[: len(keys)] == keys and len(program.leaf_keys(len(keys))) == len(keys)


@pytest.mark.parametrize("style", STYLES, ids=repr)
@given(values=st.lists(VALUES, min_size=1, max_size=4))
def test_shared_code_is_that_of_each_program(style: Style, values: list[Any]) -> None:
    schema = {"properties": dict(zip("acde", values)), "items": values[0]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_caches.recent, "most", 0)
        patch.setattr(compile_caches.programs, "most", 0)
        found = link_all(schema, style)
        patch.setattr(programs, "link_shared", lambda node, program: None)
        assert found == link_all(schema, style)


def test_only_known_nodes_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """An equal node is linked by itself, as are all that were known before there were too many."""
    program = compile(BYTES, schema={}).program
    monkeypatch.setattr(shared_code, "_shared", {})
    monkeypatch.setattr(shared_code, "MOST_SHARED", 1)
    dfa = Dfa.from_strings(["ab"])
    first, equal = (Choice((Sequence((Rule("S"), Chars(dfa, high=7))), Chars(dfa))) for _ in range(2))
    assert link_shared(first, program) is None
    share(first)
    before = len(program.words)
    address = link_shared(first, program)
    assert address is not None and address >= before and min(program.words) > PLACEHOLDER
    assert link_shared(equal, program) is None
    share(equal)
    assert link_shared(first, program) is None and link_shared(equal, program) is not None
