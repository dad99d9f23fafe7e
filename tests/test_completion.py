"""The shortest completion: it completes, from wherever; where costs are exact it is the shortest."""

from __future__ import annotations

import json
from collections import deque

from hypothesis import assume, given, strategies as st

from constrain import Matcher, Vocabulary, compile, compile_grammar
from constrain.grammar.nodes import Grammar
from tests import grammars_made as make

VOCABULARY = Vocabulary.bytes()
MOST_STEPS = 8


def walked(grammar: Grammar, data: st.DataObject) -> Matcher:
    """A matcher some random bytes into a text."""
    matcher = compile_grammar(grammar, VOCABULARY).matcher()
    for _ in range(data.draw(st.integers(0, MOST_STEPS))):
        allowed = sorted(matcher.next_bytes())
        if not allowed:
            break
        matcher.advance_bytes(bytes([data.draw(st.sampled_from(allowed))]))
    return matcher


def shortest(matcher: Matcher, most: int) -> int | None:
    """Length of the shortest completion, by breadth first search; None if it is longer than `most`."""
    todo, seen = deque([(matcher, 0)]), {matcher._set}
    while todo:
        current, length = todo.popleft()
        if current.is_complete:
            return length
        for byte in current.next_bytes() if length < most else ():
            after = current.fork()
            after.advance_bytes(bytes([byte]))
            if after._set not in seen:
                seen.add(after._set)
                todo.append((after, length + 1))
    return None


@given(st.one_of(make.rules, make.characters, make.objects), st.data())
def test_it_completes(grammar: Grammar, data: st.DataObject) -> None:
    assume(make.sound(grammar))
    matcher = walked(grammar, data)
    text = matcher.shortest_completion()
    assert text is not None
    matcher.advance_bytes(text)
    assert matcher.is_complete
    assert matcher.shortest_completion() == b""


def test_a_deep_text_is_closed() -> None:
    """The stack of callers is as deep as the text; Python's is not."""
    matcher = compile(VOCABULARY, schema=True).matcher()
    matcher.advance_bytes(b'[{"a":' * 3_000)
    text = matcher.shortest_completion()
    assert text is not None
    assert text[1:] == b"}]" * 3_000


def test_many_keys_are_closed_as_fast_as_they_are_written() -> None:
    """What an object still needs is worked out once a state, not once a key and byte."""
    properties = {f"k{i}": {"type": "integer"} for i in range(300)}
    matcher = compile(
        VOCABULARY, schema={"properties": properties, "required": list(properties), "type": "object"}
    ).matcher()
    text = matcher.shortest_completion()
    assert text is not None
    assert set(json.loads(text)) == set(properties)


def test_an_object_that_no_shortest_text_needs_is_closed_too() -> None:
    """Its rule is not read for the least costs of the start; the costs inside it are asked for all the same."""
    kinds = {
        f"k{i}": {"type": "object", "properties": {"key": {"minimum": i, "type": "integer"}}, "minProperties": 1}
        for i in range(80)
    }
    constraint = compile(VOCABULARY, schema={"type": "object", "properties": kinds})
    for text in (b'{"k79":{"key', b'{"k78":{"new', b'{"k77":{"key":99,"x', b'{"k76":{"'):
        matcher = constraint.matcher()
        matcher.advance_bytes(text)
        rest = matcher.shortest_completion()
        assert rest is not None
        matcher.advance_bytes(rest)
        assert matcher.is_complete


def test_blanks_are_no_way_to_what_is_still_due() -> None:
    """The chain must be three links long: the least cost of a link alone is too low a bound before its key."""
    link = {"type": "object", "additionalProperties": False}
    schema = {
        "$defs": {
            "a": {**link, "properties": {"n": {"$ref": "#/$defs/b"}}},
            "b": {**link, "properties": {"n": {"$ref": "#/$defs/c"}}, "minProperties": 1},
            "c": {**link, "properties": {"n": {"$ref": "#/$defs/a"}}, "minProperties": 1},
        },
        "allOf": [{"$ref": "#/$defs/a"}, {"minProperties": 1}, {"not": {"const": {"n": {"n": {"n": {}}}}}}],
    }
    matcher = compile(VOCABULARY, schema=schema).matcher()
    text = matcher.shortest_completion()
    assert text is not None
    assert text == json.dumps(json.loads(text), separators=(",", ":")).encode()
    assert text == b'{"n":' * 6 + b"{}" + b"}" * 6


@given(make.rules, st.data())
def test_it_is_the_shortest_where_rules_are_made_of_bytes(grammar: Grammar, data: st.DataObject) -> None:
    assume(make.sound(grammar))
    matcher = walked(grammar, data)
    text = matcher.shortest_completion()
    assert text is not None
    least = shortest(matcher, 6)
    if least is not None:
        assert len(text) == least
        assert matcher.shortest_completion(limit=least) == text
        assert least == 0 or matcher.shortest_completion(limit=least - 1) is None
