"""Sessions: the law of a program with fixed text, fields and decisions, token borders, forks, captures, wrong calls."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

import numpy as np
import pytest

import constrain
from constrain import json_schema, regex
from constrain.base.errors import ArgumentError, ConstrainError, LimitError, ValueRefused
from constrain.decoding.prompt_healing import heal_prompt
from constrain.generation.text_session import Session
from constrain.vocabulary.vocabulary import Vocabulary
from tests import model_factory
from tests.decoding.test_field_writing import SMALL, field_law
from tests.markov_factory import ChainModel, outcomes
from tests.model_factory import TableModel

BYTES = Vocabulary.bytes()
FIRST, SECOND, THIRD = {"a", "ab", "b"}, {"a", "cab"}, {"", "c"}


def program(s: Session) -> Session:
    """Two fields, the second of which depends on the first, with fixed text around them."""
    s.text("ca")
    if s.write("first", choices=sorted(FIRST)) == "ab":
        s.text("c").write("second", choices=sorted(SECOND))
    else:
        s.text("b").choose("second", sorted(THIRD))
    return s


def test_the_law_of_a_program() -> None:
    """Every random choice is played through: E[weight, texts] is the product of the laws of the fields.

    The law of the second field depends on the tokens before it, which the session reports.
    """
    lm = ChainModel.random(SMALL, 1, seed=2)

    def run(script):  # type: ignore[no-untyped-def]
        s = Session(lm, SMALL)
        s.rng = script
        s.text("ca")
        first = s.write("first", choices=sorted(FIRST))
        s.text("c" if first == "ab" else "b")
        before = s.tokens
        return first, before, str(s.write("second", choices=sorted(SECOND if first == "ab" else THIRD))), s.log_weight

    found: dict[tuple[str, tuple[int, ...], str], float] = {}
    firsts: dict[tuple[str, tuple[int, ...]], float] = {}
    for probability, (first, before, second, log_weight) in outcomes(run):
        key = first, before, second
        found[key] = found.get(key, 0.0) + probability * math.exp(log_weight)
    healed = heal_prompt(SMALL, SMALL.tokenize(b"ca"))
    law = field_law(lm, list(healed.kept), healed.prefix, {one.encode() for one in FIRST})
    for (first, before, _), p in found.items():
        options = {one.encode() for one in (SECOND if first == "ab" else THIRD)}
        after = heal_prompt(SMALL, before)
        total = math.fsum(field_law(lm, list(after.kept), after.prefix, options).values())
        firsts[first, before] = firsts.get((first, before), 0.0) + p / total
    for text in FIRST:
        assert math.fsum(p for (first, _), p in firsts.items() if first == text) == pytest.approx(law[text.encode()])
    for (first, before, second), p in found.items():
        options = {one.encode() for one in (SECOND if first == "ab" else THIRD)}
        after = heal_prompt(SMALL, before)
        expected = field_law(lm, list(after.kept), after.prefix, options)[second.encode()]
        assert p == pytest.approx(firsts[first, before] * expected)


def test_the_tokens_spell_the_text() -> None:
    for seed in range(20):
        s = program(Session(ChainModel.random(SMALL, 1, seed=seed), SMALL, seed=seed))
        assert SMALL.decode(s.tokens) == s.text_so_far
        assert re.fullmatch("ca(abc(a|cab)|(a|b)b(c)?)", s.text_so_far)
        again = program(Session(ChainModel.random(SMALL, 1, seed=seed), SMALL, seed=seed))
        assert again.tokens == s.tokens
        assert again.fields == s.fields


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral", "t5"])
def test_a_session_over_a_transformers_model(family: str) -> None:
    loaded = model_factory.build_model(family)
    with constrain.session(loaded, "Anna is", seed=1, max_tokens=20) as s:
        s.text(" a person.\nName: ")
        name = s.write("name", regex="[A-Z][a-zé]{0,6}")
        s.text("\nAge: ")
        age = s.write("age", type=int, max_tokens=4)
        s.text("\nList: ")
        items = s.write("items", schema={"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2})
        s.text("\nQuote: ")
        quote = s.write("quote", regex="[^\n]*", stop='"')
        s.text('"\n')
    assert isinstance(age, int)
    assert s.captures == {"name": name, "age": age, "items": items, "quote": quote}
    assert '"' not in quote
    pattern = f' a person.\nName: {name}\nAge: {age}\nList: {re.escape(s.fields[2].text)}\nQuote: {re.escape(quote)}"\n'
    assert re.fullmatch(pattern, s.text_so_far)
    assert s.vocabulary.decode(s.tokens).endswith(s.text_so_far)


def test_fixed_text_is_tokenised_as_the_tokenizer_would() -> None:
    loaded = model_factory.build_model("llama")
    s = constrain.session(loaded, "the city of", seed=0)
    for part in (" Zür", "ich and Jör", "g is a pe", "rson"):
        s.text(part)
        assert s.tokens
        s._append_rest()
    whole = loaded.prompt_ids("the city of Zürich and Jörg is a person")
    assert list(s.tokens) == whole[1:]


def test_forks_share_the_text_and_the_cache() -> None:
    loaded = model_factory.build_model("llama")
    s = constrain.session(loaded, "The following is a long prompt about people and their cities. " * 4, seed=0)
    s.text("Name: ").write("name", regex="[A-Z][a-z]{2}")
    fed = s.lm.tokens_fed  # type: ignore[attr-defined]
    other = s.fork()
    twin = s.fork(seed=5)
    assert other.text_so_far == s.text_so_far
    s.text(" one ").choose("x", ["a", "b"])
    other.text(" two ").choose("y", ["c", "d"])
    twin.text(" two ").choose("y", ["c", "d"])
    assert set(s.captures) == {"name", "x"}
    assert set(other.captures) == {"name", "y"}
    assert s.lm is other.lm
    assert s.lm.tokens_fed - fed < 60  # type: ignore[attr-defined]  # the prompt has more


def test_a_session_of_an_engine() -> None:
    loaded = model_factory.build_model("llama")
    with constrain.Engine(loaded) as engine, engine.session("Anna is", seed=1) as s:
        s.text(" a ").choose("what", ["person", "city"])
        alone = constrain.session(loaded, "Anna is", seed=1)
        alone.text(" a ").choose("what", ["person", "city"])
    assert s.text_so_far == alone.text_so_far


def test_captures_of_parts_and_repeated_names() -> None:
    s = Session(TableModel(257, 0), BYTES, seed=0)
    form = regex("[a-z]{2}").named("word") + "=" + json_schema({"enum": [1, 2]}).named("number")
    for _ in range(3):
        s.write("pair", grammar=form)
        s.text(";")
    words = re.findall("([a-z]{2})=([12]);", s.text_so_far)
    assert s.captures == {
        "pair": [f"{word}={number}" for word, number in words],
        "word": [word for word, _ in words],
        "number": [int(number) for _, number in words],
    }


@dataclass
class Small:
    n: int

    def __post_init__(self) -> None:
        if self.n > 0:
            raise ValueError("too large")


def test_a_refused_value_leaves_the_text_unchanged() -> None:
    s = Session(TableModel(257, 0), BYTES, seed=0, max_tokens=60)
    s.text("x: ")
    with pytest.raises(ValueRefused, match="too large") as caught:
        for _ in range(20):
            s.fork().write("n", type=Small)
            s.rng.random()
    assert json.loads(caught.value.text)["n"] > 0
    assert s.text_so_far == "x: "


def test_positions_of_the_model_are_not_exceeded() -> None:
    loaded = model_factory.build_model("gpt2")  # 512 positions
    s = constrain.session(loaded, "a " * 505, seed=0)
    assert len(s.write(regex="[ab]*")) < 40
    s.text(" b" * 20)
    with pytest.raises(LimitError, match="positions"):
        s.write(regex="c")


def test_a_full_context_is_not_blamed_on_max_tokens() -> None:
    s = constrain.session(model_factory.build_model("gpt2"), [5] * 505, seed=0)  # 512 positions
    with pytest.raises(LimitError, match="the prompt leaves 9 tokens of the model's context"):
        s.write(regex="[ab]{300}")
    with pytest.raises(LimitError, match="max_tokens"):
        s.write(regex="[ab]{5}", max_tokens=2)


def test_wrong_calls() -> None:
    s = Session(TableModel(257, 0), BYTES)
    with pytest.raises(ConstrainError, match="exactly one"):
        s.write("x")
    with pytest.raises(TypeError, match="text"):
        s.text(1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="surrogate"):
        s.text("\ud800")
    with pytest.raises(TypeError, match="name"):
        s.write(3, regex="a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="stop"):
        s.write("x", regex="a", stop=None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="max_tokens"):
        s.write("x", regex="a", max_tokens=0)
    with pytest.raises(ConstrainError, match="Vocabulary"):
        constrain.session(TableModel(257, 0))
    with pytest.raises(ConstrainError, match="prompt"):
        constrain.session(TableModel(257, 0), "a", tokenizer=BYTES)
    with pytest.raises(ConstrainError, match="language model"):
        constrain.session(3)
    with pytest.raises(LimitError):
        s.write("x", regex="a{30}", max_tokens=5)
    assert s.text_so_far == ""
    assert np.isfinite(s.log_weight)
