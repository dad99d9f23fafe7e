"""`generate` with penalties, biases, min-p, stop strings and other end tokens: each acts on the right distribution."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import constrain
from constrain import ArgumentError, ConstrainError, UnsupportedError, Vocabulary, VocabularyError, generate
from constrain.sampling import SAMPLERS
from tests.markov_factory import PASS_ABOVE, TWO, ChainModel, g_test
from tests.model_factory import TableModel

BYTES = Vocabulary.bytes()
LM = ChainModel.random(TWO, 1, 4)
GIVEN: dict[str, Any] = {"regex": "[ab]{1,3}", "tokenizer": TWO, "max_tokens": 5, "seed": 3}


def adjusted_law(bias: dict[int, float], presence: float) -> dict[str, float]:
    """p of the adjusted model given the pattern, by enumeration."""
    law = {}
    for length in range(1, 4):
        for number in range(2**length):
            tokens, p = [number >> i & 1 for i in range(length)], 1.0
            for i, token in enumerate([*tokens, 2]):
                row = LM.next_logprobs([tokens[:i]])[0].copy()
                for other, value in bias.items():
                    row[other] += value
                for other in set(tokens[:i]):
                    row[other] -= presence
                p *= float(np.exp(row[token] - np.logaddexp.reduce(row)))
            law["".join("ab"[token] for token in tokens)] = p
    total = sum(law.values())
    return {text: p / total for text, p in law.items()}


@pytest.mark.parametrize("options", [{"presence_penalty": 0.8}, {"logit_bias": {"a": 1.5}}, {"logit_bias": {0: 1.5}}])
def test_exact_texts_have_the_distribution_of_the_adjusted_model(options: dict) -> None:
    law = adjusted_law({0: 1.5} if "logit_bias" in options else {}, options.get("presence_penalty", 0.0))
    texts = Counter(one.text for one in generate(LM, **GIVEN, sampler="exact", n=1500, **options))
    assert g_test(texts, law) > PASS_ABOVE
    assert g_test(texts, adjusted_law({}, 0.0)) < 1e-6, "the options matter"


def test_masked_texts_have_their_logprob_under_the_adjusted_model() -> None:
    for seed in range(5):
        one = generate(LM, **{**GIVEN, "seed": seed}, frequency_penalty=0.5, logit_bias={1: -0.5})
        expected = 0.0
        for i, token in enumerate([*one.tokens, 2]):
            row = LM.next_logprobs([list(one.tokens[:i])])[0].copy()
            row[1] -= 0.5
            for other in set(one.tokens[:i]):
                row[other] -= 0.5 * one.tokens[:i].count(other)
            expected += row[token] - np.logaddexp.reduce(row)
        assert one.logprob == pytest.approx(expected)


def test_the_prompt_counts_for_the_repetition_penalty_on_logits() -> None:
    """The first greedy token of a transformers model is that of transformers' own processor."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    from tests.model_factory import build_model

    loaded = build_model("llama")
    for seed in range(6):
        prompt = [int(token) for token in np.random.default_rng(seed).integers(10, 60, 7)]
        with torch.inference_mode():
            logits = loaded.model(torch.tensor([prompt])).logits[:, -1]
        scores = transformers.RepetitionPenaltyLogitsProcessor(1.8)(torch.tensor([prompt]), logits)[0]
        any_text = constrain.free_text(1)
        constraint = any_text.compile(loaded.vocabulary)
        mask = constrain.Matcher(constraint).mask()
        constrain.apply_mask(scores, mask)
        one = generate(loaded, prompt, grammar=any_text, temperature=0, repetition_penalty=1.8, max_tokens=3, seed=seed)
        assert one.tokens[0] == int(scores.argmax())


@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name not in ("masked", "markov")])
def test_other_samplers_refuse_what_only_masked_has(sampler: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{sampler}.*has no top_k, top_p or min_p"):
        generate(LM, **GIVEN, sampler=sampler, min_p=0.2)
    with pytest.raises(UnsupportedError, match=f"{sampler}.* does not support stop="):
        generate(LM, **GIVEN, sampler=sampler, stop="a")
    assert generate(LM, **GIVEN, sampler=sampler, presence_penalty=1.0).text


def test_auto_selects_masked_for_stop_and_min_p() -> None:
    for options in ({"stop": "zz"}, {"min_p": 0.1}):
        stats = generate(LM, **GIVEN, sampler="auto", **options).stats
        assert stats.sampler == "masked"
        assert next(iter(options)) in stats.reason


def test_min_p_excludes_unlikely_tokens_and_is_not_trusted() -> None:
    made = generate(LM, **GIVEN, n=20, min_p=1.0)
    assert len({one.text for one in made}) == 1, "only the likeliest token is left"
    assert made[0].text == generate(LM, **GIVEN, temperature=0).text
    assert not made[0].stats.weights["trusted"]


def test_a_stop_string_ends_a_text() -> None:
    lm, found = TableModel(BYTES.size, 1), 0
    for seed in range(12):
        given: dict[str, Any] = {"regex": "[a-d]{8,60}", "tokenizer": BYTES, "seed": seed, "max_tokens": 80}
        pieces: list = []
        whole, one = generate(lm, **given), generate(lm, **given, stop=["ab", "dd"], stream=pieces.append)
        assert whole.text.startswith(one.text)
        assert "".join(piece.text for piece in pieces) == one.text
        if one.stop is not None:
            found += 1
            assert one.finish_reason == "stop"
            assert whole.text.startswith(one.text + one.stop)
            assert bytes(one.tokens).decode() == one.text + one.stop
        starts = [i for i in range(8, len(whole.text)) if whole.text[i : i + 2] in ("ab", "dd")]
        assert one.text == whole.text[: starts[0] if starts else None]
    assert found


def test_a_stop_string_within_a_value_is_ordinary_text() -> None:
    lm = TableModel(BYTES.size, 2)
    for seed in range(5):
        given: dict[str, Any] = {"schema": {"type": "string", "maxLength": 30}, "tokenizer": BYTES, "seed": seed}
        one = generate(lm, **given, stop=['"', "a", "\\"])
        assert isinstance(one.value, str)
        assert one == generate(lm, **given), "before no occurrence the text is a JSON string"


def test_other_tokens_end_a_text() -> None:
    one = generate(TableModel(BYTES.size, 3), regex="[a-c]{2,9}", tokenizer=BYTES, eos_ids=[ord("x"), 256], seed=1)
    assert re.fullmatch("[a-c]{2,9}", one.text)
    table = TableModel(BYTES.size, 3)
    table.table[:, 256] -= 50
    table.table[:, ord("x")] += 5
    table.table -= np.logaddexp.reduce(table.table, axis=1, keepdims=True)
    likely = generate(table, regex="[a-c]{2,9}", tokenizer=BYTES, eos_ids=[ord("x")], seed=1)
    assert len(likely.tokens) == 2
    with pytest.raises(VocabularyError, match="end token 999"):
        generate(LM, **GIVEN, eos_ids=[999])
    with pytest.raises(TypeError, match="eos_ids is 'x'"):
        generate(LM, **GIVEN, eos_ids="x")


def test_biases_are_given_by_text_or_id() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"a", None], [3], special={"<end>": 3})
    lm, never = TableModel(4, 0), -np.inf
    for biases in ({"a": never}, {0: never, 2: never}, {"a": never, "b": 1}):
        made = generate(lm, regex="[ab]{4}", tokenizer=vocabulary, logit_bias=biases, n=5, seed=1)
        assert {one.text for one in made} == {"bbbb"}, "all tokens with this text"
    short = generate(lm, regex="[ab]{1,40}", tokenizer=vocabulary, logit_bias={"<end>": 50}, n=5, seed=1)
    assert {len(one.text) for one in short} == {1}


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"min_p": 2.0}, ConstrainError, "min_p must be from 0 to 1"),
        ({"min_p": "x"}, ConstrainError, "min_p is 'x': give a number"),
        ({"repetition_penalty": -1}, ArgumentError, "repetition_penalty must be above 0"),
        ({"presence_penalty": "x"}, TypeError, "presence_penalty is 'x'"),
        ({"frequency_penalty": float("inf")}, ArgumentError, "frequency_penalty is inf"),
        ({"logit_bias": {"zz": 1}}, ArgumentError, "text 'zz', which is not one token"),
        ({"logit_bias": {"a": "b"}}, TypeError, r"logit_bias\['a'\] is 'b'"),
        ({"logit_bias": {77: 1}}, ArgumentError, "token 77: the vocabulary has 3"),
        ({"logit_bias": [1]}, TypeError, "logit_bias is"),
        ({"stop": 5}, TypeError, "stop is 5"),
        ({"stop": ""}, ArgumentError, "empty string"),
        ({"retries": -1}, ArgumentError, "retries is -1"),
        ({"retries": None}, TypeError, "retries is None"),
        ({"device": "cpu"}, ArgumentError, "device= was given with a loaded model"),
    ],
)
def test_wrong_options_are_named(wrong: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        generate(LM, **GIVEN, **wrong)
