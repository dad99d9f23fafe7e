"""Masks of real vocabularies against the oracle: rows, suffix tries and complete subtrees need many tokens.

A sample of the tokens is compared along a text that has everything in it: nesting, escapes, characters
of several bytes, numbers, a pattern, keys in any spelling, white space.
"""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from constrain.automata.dfa import Dfa
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.frontends.regex import to_dfa
from constrain.grammar.nodes import (
    Chars,
    Choice,
    Grammar,
    JsonString,
    Layout,
    Literal,
    NameClass,
    Node,
    Object,
    Property,
    Repeat,
    Rule,
    Sequence,
)
from constrain.vocabulary.vocabulary import Vocabulary
from tests.grammar_oracle import Reference

EACH, STRIDE = 40, 6
TEXT = (
    '{ "name": "a\\u00e9\\n","größe" : [12.5e3,"x\\"y z",{"name" :"1ü2","xé": true},-0],"date":"2024-02-3%",'
    '"x\\u0041": "Hello, wörld 😀\\ud83d\\ude00 \\t end","77": { "name": "abc"} }'
).replace("3%", "30")
ANY_ORDER = TEXT.replace('"größe"', '"gr\\u00f6\\u00DFe"')


def grammar(order: str, escapes: str) -> Grammar:
    """Objects of objects; `name` is bounded, `date` has a pattern, other names are `x...` or digits."""
    space: Node = Repeat(Choice((Literal(b" "), Literal(b"\n"))), 0, 2)
    layout = Layout(
        space, space, Sequence((space, Literal(b","), space)), Sequence((space, Literal(b":"), space)), space
    )
    number = Chars(to_dfa(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"), "utf8")
    items = Sequence((Literal(b"["), Repeat(Sequence((Rule("V"), Literal(b",")))), Rule("V"), Literal(b"]")))
    value = Choice((JsonString(Dfa.any_text()), number, Literal(b"true"), Rule("O"), items))
    properties = (
        Property("name", JsonString(Dfa.any_text(), 2, 5), required=True),
        Property("größe", Rule("V")),
        Property("date", JsonString(to_dfa(r"\d{4}-\d{2}-\d{2}")), needs=frozenset({"name"})),
    )
    others = (NameClass(to_dfa("x.*|[0-9]+"), Rule("V")),)
    made = Object(properties, others, layout, 0, None, order, escapes)  # type: ignore[arg-type]
    return Grammar(Rule("O"), {"O": made, "V": value})


@lru_cache(maxsize=2)
def mistral(name: str) -> Vocabulary:
    package = pytest.importorskip("mistral_common", reason="needs mistral-common, whose package carries vocabularies")
    file = Path(package.__file__).parent / "data" / name
    if not file.is_file():
        pytest.skip(f"this mistral-common does not carry {name}")
    return Vocabulary.from_pretrained(file)


def compare_along(vocabulary: Vocabulary, made: Grammar, text: bytes) -> None:
    """At every STRIDE-th position: the mask, for a sample of the tokens and for those that go on as the text does."""
    oracle, matcher, rng = Reference(made), compile_grammar(made, vocabulary).matcher(), random.Random(0)
    for at in range(0, len(text) + STRIDE, STRIDE):
        mask = matcher.mask()
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: vocabulary.size]
        allowed = np.flatnonzero(bits).tolist()
        ids = {*rng.sample(range(vocabulary.size), EACH), *rng.sample(allowed, min(EACH, len(allowed)))}
        ids |= {i for length in range(1, 9) if (i := vocabulary.by_bytes[0].get(text[at : at + length])) is not None}
        listed = sorted(ids)
        wanted = {listed[i] for i in oracle.mask(text[:at], [vocabulary.tokens[i] for i in listed])}
        if oracle.accepts(text[:at]):
            wanted |= ids & set(vocabulary.eos_ids)
        found = ids & set(allowed)
        names = {i: vocabulary.tokens[i] for i in wanted ^ found}
        assert found == wanted, f"after {text[:at]!r}: {names}, of which allowed {sorted(found - wanted)}"
        matcher.advance_bytes(text[at : at + STRIDE])
    assert matcher.is_complete and matcher.is_finished


@pytest.mark.slow
@pytest.mark.parametrize(("name", "order"), [("tokenizer.model.v1", "schema"), ("tekken_240911.json", "any")])
def test_mistral(name: str, order: str) -> None:
    text = TEXT if order == "schema" else ANY_ORDER
    compare_along(mistral(name), grammar(order, "canonical" if order == "schema" else "any"), text.encode())


@pytest.mark.slow
def test_llama3(shared: Path) -> None:
    vocabulary = Vocabulary.from_pretrained(shared / "data" / "llama3.tiktoken")
    compare_along(vocabulary, grammar("any", "any"), ANY_ORDER.encode())
