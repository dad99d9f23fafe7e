"""`Generation.captures`, with the embedded vocabulary of bytes and random models."""

from __future__ import annotations

import re

import constrain
from constrain import json_schema, regex
from constrain.vocabulary.vocabulary import Vocabulary
from tests.model_factory import TableModel

BYTES = Vocabulary.bytes()


def test_captures_of_a_form() -> None:
    line = "\n- " + regex("[a-z]{1,3}").named("item") + json_schema({"enum": [1, None, "x"]}).named("value")
    form = "Name: " + regex("[A-Z][a-z]{0,5}").named("name") + line.repeat(0, 3)
    for seed in range(4):
        out = constrain.generate(TableModel(257, seed), tokenizer=BYTES, grammar=form, seed=seed, max_tokens=60)
        assert re.match("Name: (.*)", out.text).group(1) == out.captures["name"]  # type: ignore[union-attr]
        parts = re.findall('\n- ([a-z]+)(1|null|"x")', out.text)
        assert out.captures["item"] == [item for item, _ in parts]
        assert out.captures["value"] == [{"1": 1, "null": None, '"x"': "x"}[value] for _, value in parts]


def test_captures_of_a_regex_and_without_names() -> None:
    lm = TableModel(257, 0)
    pattern = "(?P<a>[ab]{2})-(?P<b>c)?"
    out = constrain.generate(lm, tokenizer=BYTES, regex=pattern, seed=1)
    match = re.fullmatch(pattern, out.text)
    assert match is not None
    assert out.captures == {name: text for name, text in match.groupdict().items() if text is not None}
    assert constrain.generate(lm, tokenizer=BYTES, regex="[ab]", seed=1).captures == {}


def test_captures_of_other_samplers() -> None:
    form = regex("[ab]").named("x") + regex("[ab]").named("x")
    for out in constrain.generate(TableModel(257, 0), tokenizer=BYTES, grammar=form, sampler="exact", n=3, seed=1):
        assert out.captures == {"x": list(out.text)}
