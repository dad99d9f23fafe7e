"""The options heal= and forced= of `generate` and of an Engine, with transformers models."""

from __future__ import annotations

import math

import numpy as np
import pytest

import constrain
from constrain.base.errors import ArgumentError, UnsupportedError
from constrain.decoding.generation_loop import generate_text
from constrain.decoding.outcomes import Piece
from constrain.decoding.prompt_healing import heal_prompt, prepend_bytes
from constrain.vocabulary.vocabulary import Vocabulary
from tests import model_factory
from tests.model_factory import TableModel

PROMPT = "Anna is a per"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["Anna", "Jörg"]}, "city": {"const": "Zürich"}, "n": {"type": "integer"}},
    "required": ["name", "city", "n"],
    "additionalProperties": False,
}
COMPACT = constrain.Style(whitespace="compact")


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral"])
def test_a_healed_prompt_is_continued_across_its_end(family: str) -> None:
    loaded = model_factory.build_model(family)
    ids = loaded.prompt_ids(PROMPT)
    healed = heal_prompt(loaded.vocabulary, ids, least=1)
    assert healed.prefix
    pieces: list[Piece] = []
    found = constrain.generate(
        loaded, PROMPT, regex="(son|fect)[a-z]{0,3}", heal="prompt", seed=4, n=3, max_tokens=30, stream=pieces.append
    )
    for sample, one in enumerate(found):
        assert "".join(piece.text for piece in pieces if piece.sample == sample) == one.text
    constraint = constrain.compile(loaded.vocabulary, regex="(son|fect)[a-z]{0,3}")
    again = generate_text(
        loaded.on(list(healed.kept)), prepend_bytes(constraint, healed.prefix, loaded.vocabulary),
        rng=np.random.default_rng(np.random.SeedSequence(4)), max_tokens=30,
    )  # fmt: skip
    assert again.data == healed.prefix + found[0].text.encode()
    assert again.log_weight == pytest.approx(found[0].log_weight, abs=1e-3)
    for one in found:
        assert one.text == one.value
        assert loaded.vocabulary.text(one.tokens) == healed.prefix + one.text.encode()


def test_healing_with_schemas_captures_stops_and_lists() -> None:
    loaded = model_factory.build_model("llama")
    one = constrain.generate(loaded, PROMPT, schema=SCHEMA, heal="prompt", seed=1, max_tokens=80)
    assert one.value["city"] == "Zürich"
    form = constrain.regex("[a-z]{2}").named("a") + ", " + constrain.regex("[a-z]{1,4}").named("b")
    found = constrain.generate(loaded, [PROMPT, "the city of"], grammar=form, heal="prompt", seed=1, max_tokens=40)
    for one in found:
        assert one.text == f"{one.captures['a']}, {one.captures['b']}"
    stopped = constrain.generate(loaded, PROMPT, regex="[a-e ]{2,30}", heal="prompt", stop="e", seed=1, max_tokens=40)
    assert stopped.stop is None or "e" not in stopped.text
    with constrain.Engine(loaded) as engine:
        free = engine.generate(PROMPT, heal="prompt", seed=1, max_tokens=12)
        assert len(free.tokens) <= 12
        with constrain.Engine(loaded) as other:
            assert other.generate(PROMPT, heal="prompt", seed=1, max_tokens=12).text == free.text


@pytest.mark.parametrize("family", ["llama", "mistral", "t5"])
def test_canonical_runs_of_transformers_models(family: str) -> None:
    """Valid, complete, in fewer calls, and the weight is log p / q' also where several texts share a batch."""
    loaded = model_factory.build_model(family)
    arguments = {"schema": SCHEMA, "style": COMPACT, "seed": 2, "n": 4, "max_tokens": 90}
    plain = constrain.generate(loaded, PROMPT, **arguments)
    runs = constrain.generate(loaded, PROMPT, forced="canonical", **arguments)
    assert sum(one.stats.model_calls for one in runs) < sum(one.stats.model_calls for one in plain)
    lm = loaded.on(PROMPT)
    for one in runs:
        assert one.value["city"] == "Zürich"
        assert one.stats.forced_logprob < 0
        assert one.stats.forced_tokens > 0
        assert one.stats.weights["trusted"] == 0
        tokens = list(one.tokens)
        rows = lm.next_logprobs([tokens[:k] for k in range(len(tokens) + 1)])
        ends = float(np.logaddexp.reduce(rows[-1][list(loaded.vocabulary.eos_ids)]))
        assert one.logprob == pytest.approx(ends + sum(row[token] for row, token in zip(rows, tokens)), abs=1e-2)
    assert all(one.stats.forced_logprob == 0 for one in plain)
    unscored = constrain.generate(loaded, PROMPT, forced="unscored", **arguments)
    assert [one.tokens for one in unscored] == [one.tokens for one in runs]
    assert sum(one.stats.model_calls for one in unscored) <= sum(one.stats.model_calls for one in runs)
    assert all(math.isnan(one.logprob) and not one.stats.weights for one in unscored)
    pieces: list[str] = []
    single = constrain.generate(
        loaded, PROMPT, forced="unscored", **{**arguments, "n": 1}, stream=lambda piece: pieces.append(piece.text)
    )
    assert "".join(pieces) == single[0].text == unscored[0].text


def test_both_options_together_and_small_budgets() -> None:
    loaded = model_factory.build_model("llama")
    for most in (60, 45, 40, 36):
        try:
            one = constrain.generate(
                loaded, PROMPT, schema=SCHEMA, style=COMPACT, heal="prompt", forced="canonical", seed=3, max_tokens=most
            )
        except constrain.LimitError:
            continue
        assert one.value["city"] == "Zürich"
        assert len(one.tokens) < most


def test_wrong_calls() -> None:
    loaded = model_factory.build_model("llama")
    with pytest.raises(ArgumentError, match="heal"):
        constrain.generate(loaded, PROMPT, regex="a", heal="all")
    with pytest.raises(ArgumentError, match="forced"):
        constrain.generate(loaded, PROMPT, regex="a", forced="never")
    with pytest.raises(UnsupportedError, match="exact"):
        constrain.generate(loaded, PROMPT, regex="a", heal="prompt", sampler="exact")
    with pytest.raises(UnsupportedError, match="forced"):
        constrain.generate(loaded, PROMPT, regex="a", forced="canonical", sampler="exact")
    with pytest.raises(UnsupportedError, match="draft"):
        constrain.generate(loaded, PROMPT, regex="a", forced="canonical", draft="prompt")
    with pytest.raises(UnsupportedError, match="LanguageModel"):
        constrain.generate(TableModel(257), regex="a", tokenizer=Vocabulary.bytes(), heal="prompt")
    with pytest.raises(UnsupportedError, match="encoder"):
        constrain.generate(model_factory.build_model("t5"), PROMPT, regex="a", heal="prompt")
    with pytest.raises(UnsupportedError, match="retry_prompt"):
        messages = [{"role": "user", "content": "a"}]
        constrain.generate(loaded, messages, regex="a", heal="prompt", retry_prompt="{text} {reason}")
    auto = constrain.generate(loaded, PROMPT, regex="son", heal="prompt", sampler="auto", seed=1)
    assert auto.text == "son"
    assert auto.stats.sampler == "masked"
