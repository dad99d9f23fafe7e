"""Texts made of a Grammar's nodes: all of them in small languages, and single ones by a random walk."""

from __future__ import annotations

import json
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from constrain import Vocabulary, compile
from constrain.authoring.samples.random_instances import STEPS_PER_BYTE, Enough, Walker
from constrain.automata.dfa import Dfa
from constrain.engine.text_enumeration import list_texts
from constrain.grammar.nodes import (  # fmt: skip
    EMPTY,
    Chars,
    Choice,
    Grammar,
    Layout,
    Literal,
    Member,
    NameClass,
    Node,
    Object,
    Property,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Unique,
)
from tests.recogniser_oracle import accepts

BYTES = Vocabulary.bytes()


# ---- texts of grammars -----------------------------------------------------------------------------------------


def random_node(random: Random, depth: int) -> Node:
    """A node with a small number of short texts over a and b."""
    kind = random.randrange(9 if depth else 3)
    if kind == 0:
        return Literal(random.choice([b"", b"a", b"b", b"ab"]))
    if kind == 1:
        return Strings(tuple(sorted({random.choice([b"a", b"b", b"ba"]) for _ in range(2)})))
    if kind == 2:
        return Chars(Dfa.from_strings(random.sample(["", "a", "b", "bb"], 2)))
    if kind < 5:
        return Sequence(tuple(random_node(random, depth - 1) for _ in range(random.randint(1, 2))))
    if kind < 7:
        return Choice(tuple(random_node(random, depth - 1) for _ in range(random.randint(1, 2))))
    low = random.randint(0, 2)
    return Repeat(random_node(random, depth - 1), low, low + random.randint(0, 1))


def test_the_texts_of_a_small_grammar() -> None:
    short = [bytes(text) for length in range(6) for text in product(b"ab", repeat=length)]
    for seed in range(60):
        grammar = Grammar(Rule("r"), {"r": random_node(Random(seed), 3)})
        found = list_texts(grammar, 10_000)
        assert found is not None
        assert found == sorted(set(found), key=lambda text: (len(text), text))
        assert [text for text in found if len(text) < 6] == sorted(
            (text for text in short if accepts(grammar, text)), key=lambda text: (len(text), text)
        )
        most = max(1, len(found))
        assert list_texts(grammar, most) in (found, None) and (len(found) < 2 or list_texts(grammar, most - 1) is None)


COMMA = Literal(b",")
LAYOUT = Layout(EMPTY, EMPTY, COMMA, Literal(b":"), EMPTY)
ONE_OF = Choice((Literal(b"1"), Literal(b"2")))


def few_of(node: Node) -> list[bytes] | None:
    return list_texts(Grammar(node, {"r": node}), 100)


def test_the_texts_of_unique_members() -> None:
    member = Member(ONE_OF)
    assert few_of(Unique(Sequence((member, COMMA, member)))) == [b"1,2", b"2,1"]
    assert few_of(Unique(Sequence((Member(ONE_OF, Rule("r")), COMMA, member)))) is None


def test_the_texts_of_small_objects() -> None:
    a, b = Property("a", ONE_OF, False), Property("b", Literal(b"0"), False, frozenset("a"))
    others = (NameClass(Dfa.from_strings(["x"]).star(), ONE_OF),)
    assert few_of(Object((a, b), (), LAYOUT)) == [b"{}", b'{"a":1}', b'{"a":2}', b'{"a":1,"b":0}', b'{"a":2,"b":0}']
    assert few_of(Object((a, b), (), LAYOUT, low=2)) == [b'{"a":1,"b":0}', b'{"a":2,"b":0}']
    assert few_of(Object((a, b), (), LAYOUT, high=1)) == [b"{}", b'{"a":1}', b'{"a":2}']
    assert few_of(Object((), others, LAYOUT)) is None
    assert few_of(Object((a,), others, LAYOUT, high=1)) is None
    assert few_of(Object((a,), others, LAYOUT, high=0)) == [b"{}"]


# ---- random walks ----------------------------------------------------------------------------------------------


def walker(constraint: Any, size: int, seed: int = 0) -> Walker:
    return Walker(constraint, np.random.default_rng(seed), size)


def test_a_walk_has_a_number_of_steps() -> None:
    constraint = compile(BYTES, regex="a*")
    most = STEPS_PER_BYTE * 2
    walker(constraint, 2).node(Sequence((EMPTY,) * (most - 1)))
    with pytest.raises(Enough):
        walker(constraint, 2).node(Sequence((EMPTY,) * most))
    with pytest.raises(Enough):
        walker(constraint, 2).node(Sequence((Literal(b"aaa"), Literal(b"a"))))


def test_a_walk_closes_objects_by_itself() -> None:
    schema = {
        "type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}, "c": {"const": 1}},
        "required": ["a"], "additionalProperties": False, "minProperties": 2,
    }  # fmt: skip
    constraint = compile(BYTES, schema=schema)
    for seed in range(30):
        walk = walker(constraint, 1_000, seed)
        walk.node(constraint.grammar.start)
        value = json.loads(bytes(walk.written))
        assert walk.matcher.is_complete and walk.level == 0
        assert "a" in value and len(value) >= 2
