"""The options of `generate` in an Engine: the same texts as `generate` gives, and retries of refused ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import constrain
from constrain import ValueRefused, Vocabulary, generate
from tests.model_factory import TableModel, build_model

BYTES = Vocabulary.bytes()
OPTIONS: list[dict[str, Any]] = [
    {"stop": ["b", "cc"]}, {"min_p": 0.3}, {"presence_penalty": 1.5, "frequency_penalty": 0.3},
    {"logit_bias": {"a": -5.0, 98: 1.0}}, {"repetition_penalty": 1.7}, {"eos_ids": [120, 256]},
    {"check": lambda text: len(text) % 2 == 0, "retries": 30},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
def test_an_engine_gives_what_generate_gives(options: dict[str, Any]) -> None:
    given: dict[str, Any] = {"regex": "[a-d]{2,12}", "max_tokens": 20, "seed": 5, "n": 4, **options}
    lm = TableModel(BYTES.size, 3)
    with constrain.Engine(lm, BYTES) as engine:
        batch = engine.generate([None, None], **given)
        assert batch[0] == generate(lm, tokenizer=BYTES, **given)
        assert asyncio.run(engine.agenerate(None, **given)) == batch[0]
    plain = {name: value for name, value in given.items() if name not in options}
    if next(iter(options)) not in ("eos_ids", "repetition_penalty"):
        assert batch[0] != generate(lm, tokenizer=BYTES, **plain), "the options matter"


def test_refusals_are_those_of_each_prompt() -> None:
    with constrain.Engine(TableModel(BYTES.size, 3), BYTES) as engine:
        options: Any = {"regex": ["[ab]{4}", "x", None], "max_tokens": 12, "seed": 1, "n": 6, "retries": 40}
        first, second, free = engine.generate([None] * 3, check=lambda text: text.count("a") % 2 == 0, **options)
        assert all(one.text.count("a") % 2 == 0 for one in first)
        assert sum(len(one.refusals) for one in first) == first[0].stats.counts["refused"] > 0
        assert all(not one.refusals for one in second)
        assert all(one.text.count("a") % 2 == 0 for one in free)
        errors: Any = {**options, "retries": 1, "errors": "return"}
        given_up, fine, _ = engine.generate([None] * 3, check=lambda text: "x" in text, **errors)
        assert isinstance(given_up, ValueRefused) and len(given_up.refusals) == 2
        assert [one.text for one in fine] == ["x"] * 6


def test_events_name_a_refused_text_as_an_error() -> None:
    async def read() -> list:
        with constrain.Engine(TableModel(BYTES.size, 3), BYTES) as engine:
            events = engine.stream(None, regex="[ab]{3}", seed=1, max_tokens=9, check=lambda text: False)
            return [event async for event in events]

    last = asyncio.run(read())[-1]
    assert isinstance(last.error, ValueRefused)


def test_a_transformers_model_has_them_in_a_batch() -> None:
    """Penalties on logits and prompts with the constraint, beside other texts in the batch."""
    pytest.importorskip("torch")
    loaded = build_model("llama")
    given: dict[str, Any] = {
        "regex": "[a-z ]{3,12}", "max_tokens": 15, "seed": 2, "repetition_penalty": 1.6, "temperature": 0.7,
        "show_constraint": "{prompt} ({constraint})",
    }  # fmt: skip
    with constrain.Engine(loaded) as engine:
        one, two = engine.generate(["go", "come"], **given)
    alone = generate(loaded, "go", **given)
    assert one.text == alone.text
    assert one.logprob == pytest.approx(alone.logprob, abs=1e-3)
    exact = generate(loaded, "go", **{**given, "temperature": 1.0}, sampler="awrs")
    assert exact.text and two.text
