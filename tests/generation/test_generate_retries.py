"""Retries: refused texts are drawn again within the stated number, the reasons are kept, and exact stays exact."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Literal

import numpy as np
import pytest

from constrain import ConstrainError, LimitError, ValueRefused, Vocabulary, generate
from constrain.base.errors import ArgumentError
from constrain.sampling import ValidatorChecker
from tests.markov_factory import PASS_ABOVE, TWO, ChainModel, cases, g_test
from tests.model_factory import TableModel, build_model

pydantic = pytest.importorskip("pydantic")
BYTES = Vocabulary.bytes()
LM = ChainModel.random(TWO, 1, 4)
GIVEN: dict[str, Any] = {"regex": "[ab]{3}", "tokenizer": TWO, "max_tokens": 5}


class Even(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    number: Literal[1, 2, 3, 4]

    @pydantic.field_validator("number")
    @classmethod
    def is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError(f"{value} is odd")
        return value


class Never(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    x: bool

    @pydantic.field_validator("x")
    @classmethod
    def never(cls, value: bool) -> bool:
        raise ValueError("not even this")


def odd_a(text: str) -> bool:
    if text.count("a") % 2 == 0:
        raise ValueError(f"{text.count('a')} is even")
    return True


def test_a_validator_is_asked_again() -> None:
    refused = 0
    for seed in range(10):
        one = generate(TableModel(BYTES.size, 2), schema=Even, tokenizer=BYTES, seed=seed, retries=50)
        assert one.value.number % 2 == 0
        for refusal in one.refusals:
            assert json.loads(refusal.text)["number"] % 2
            assert "is odd" in refusal.reason
        assert one.stats.counts["refused"] == len(one.refusals)
        refused += len(one.refusals)
    assert refused


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_after_the_last_try_all_reasons_are_told(retries: int) -> None:
    with pytest.raises(ValueRefused, match="not even this") as caught:
        generate(TableModel(BYTES.size, 2), schema=Never, tokenizer=BYTES, seed=1, retries=retries)
    refusals = caught.value.refusals
    assert len(refusals) == retries + 1
    assert all("not even this" in refusal.reason for refusal in refusals)
    assert caught.value.text == refusals[-1].text
    assert (f"{retries + 1} texts were drawn" in str(caught.value)) == (retries > 0)


def test_tries_are_counted_per_text() -> None:
    made_texts = generate(LM, **GIVEN, check=odd_a, retries=60, n=30, seed=5)
    assert all(one.text.count("a") % 2 for one in made_texts)
    assert sum(len(one.refusals) for one in made_texts) == made_texts[0].stats.counts["refused"] > 0
    assert all(refusal.reason.endswith("is even") for one in made_texts for refusal in one.refusals)
    again = generate(LM, **GIVEN, check=odd_a, retries=60, n=30, seed=5)
    assert again == made_texts
    with pytest.raises(ValueRefused, match="the check returned False"):
        generate(LM, **GIVEN, check=lambda text: False, n=2, seed=5)
    with pytest.raises(ValueRefused, match="the check returned None"):
        generate(LM, **GIVEN, check=lambda text: None, n=2, seed=5)


@pytest.mark.parametrize("case", list(cases().values())[:4], ids=lambda case: case.name)
def test_exact_draws_stay_exact(case: Any) -> None:
    """A validator of the type refuses: here a check after the draw, as for "masked", with the sampler "exact"."""
    from constrain.generation.drawn_texts import draw_accepted
    from constrain.generation.finished_texts import make_sampler_draw
    from constrain.generation.generation_arguments import ConstraintRequest
    from constrain.generation.refused_texts import accept_text

    vocabulary = case.constraint.vocabulary

    def accepts(text: str) -> bool:
        return len(text.encode()) % 2 == 0

    law = {tokens: p for tokens, p in case.exact().items() if accepts(vocabulary.decode(tokens))}
    if not law or len(law) == len(case.exact()):
        pytest.skip("the check decides nothing here")
    total = sum(law.values())
    draw = make_sampler_draw(case.constraint, "exact", 7, case.max_tokens, {})
    texts = draw_accepted(
        lambda tries: draw(case.lm, len(tries)),
        lambda outcome: accept_text(outcome, ConstraintRequest(regex="."), accepts, vocabulary),
        600,
        1000,
    )
    assert texts.refused > 0
    counts = Counter(tuple(one.tokens) for one in texts.generations)
    assert g_test(counts, {tokens: p / total for tokens, p in law.items()}) > PASS_ABOVE


def test_a_validator_with_the_exact_sampler_is_exact() -> None:
    """By chi-square, through `generate`: the value's distribution given that the validator accepts it."""
    lm = TableModel(BYTES.size, 2)
    given: dict[str, Any] = {"tokenizer": BYTES, "sampler": "exact", "max_tokens": 16}
    from constrain import Style

    compact = Style(whitespace="compact")
    texts = {f'{{"number":{number}}}': number for number in (2, 4)}
    logs = {text: lm.logprob([*text.encode(), 256]) for text in texts}
    import math

    total = sum(math.exp(value - max(logs.values())) for value in logs.values())
    law = {text: math.exp(value - max(logs.values())) / total for text, value in logs.items()}
    drawn = generate(lm, schema=Even, style=compact, n=300, seed=2, retries=500, **given)
    assert sum(len(one.refusals) for one in drawn) > 0
    assert g_test(Counter(one.text for one in drawn), law) > PASS_ABOVE


def test_a_checker_object_guides_masked_texts() -> None:
    """It judges prefixes, so no complete text has to be refused."""
    checker = ValidatorChecker(TWO, viable=lambda data: b"bb" not in data)
    texts = generate(LM, **GIVEN, check=checker, retries=99, n=20, seed=1)
    assert all("bb" not in one.text for one in texts)
    assert not any(one.refusals for one in texts)


def test_a_check_that_fails_is_an_error_and_no_refusal() -> None:
    with pytest.raises(ConstrainError, match=r"the check failed on .*ZeroDivisionError"):
        generate(LM, **GIVEN, check=lambda text: 1 / 0, seed=1)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("sampler", ["masked", "exact", "smc", "awrs", "without_replacement"])
@pytest.mark.parametrize("verdict", ["", "too long", b"no", [], ("no",), {}, object()])
def test_a_check_that_returns_no_verdict_is_named(sampler: str, verdict: object) -> None:
    """A text would count as accepting, whatever it says."""
    with pytest.raises(ArgumentError, match=r"the check of '\w*' is .*: it is True or False\n.*raise a ValueError"):
        generate(LM, **GIVEN, check=lambda text: verdict, seed=1, sampler=sampler)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("sampler", ["masked", "exact", "smc", "awrs"])
def test_numbers_none_and_matches_are_verdicts(sampler: str) -> None:
    for accepting in (True, np.bool_(True), 1, re.compile("").match("")):
        assert generate(LM, **GIVEN, check=lambda text, one=accepting: one, seed=1, sampler=sampler).text  # type: ignore[arg-type]
    for refusing in (False, np.bool_(False), 0, None, re.compile("x").match("")):
        with pytest.raises((ValueRefused, LimitError)):
            generate(LM, **GIVEN, check=lambda text, one=refusing: one, seed=1, sampler=sampler)  # type: ignore[arg-type]


def test_a_reason_raised_is_a_rejection_for_every_sampler() -> None:
    for sampler in ("exact", "smc", "awrs", "without_replacement"):
        texts = generate(LM, **GIVEN, sampler=sampler, check=odd_a, n=3, seed=1)
        assert all(one.text.count("a") % 2 for one in texts)


def test_texts_without_replacement_are_not_drawn_again() -> None:
    with pytest.raises(ValueRefused) as caught:
        generate(
            TableModel(BYTES.size, 2), schema=Even, tokenizer=BYTES, sampler="without_replacement", n=4, seed=1,
            max_tokens=40,
        )  # fmt: skip
    assert len(caught.value.refusals) == 1


def test_refused_texts_count_as_weight_zero() -> None:
    """log Z is that of the constraint and the check."""
    texts = generate(LM, **GIVEN, check=odd_a, retries=99, n=400, seed=3, temperature=1.0)
    import itertools
    import math

    z = sum(
        math.exp(sum(LM.next_logprobs([list(t[:i])])[0][a] for i, a in enumerate([*t, 2])))
        for t in itertools.product((0, 1), repeat=3)
        if t.count(0) % 2
    )
    assert texts[0].stats.weights["log_z"] == pytest.approx(math.log(z), abs=0.25)


def test_the_reason_is_put_into_the_next_prompt() -> None:
    pytest.importorskip("transformers")
    loaded = build_model("llama")
    loaded.tokenizer.chat_template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    seen: list[str] = []
    original = loaded.tokenizer.apply_chat_template

    def record(messages: Any, **more: Any) -> Any:
        seen.append(" | ".join(f"{one['role']}:{one['content']}" for one in messages))
        return original(messages, **more)

    loaded.tokenizer.apply_chat_template = record
    tries: list[str] = []

    def check(text: str) -> bool:
        tries.append(text)
        if len(tries) < 3:
            raise ValueError(f"no {len(tries)}")
        return True

    try:
        one = generate(
            loaded, [{"role": "user", "content": "go"}], regex="[a-z]{3}", seed=1, check=check,
            retry_prompt="{reason}! Not {text}.",
        )  # fmt: skip
    finally:
        del loaded.tokenizer.apply_chat_template
        loaded.tokenizer.chat_template = None
    first, second, third = tries
    assert seen == [
        "user:go",
        f"user:go | assistant:{first} | user:no 1! Not {first}.",
        f"user:go | assistant:{first} | user:no 1! Not {first}. | assistant:{second} | user:no 2! Not {second}.",
    ]
    assert one.text == third
    assert [refusal.reason for refusal in one.refusals] == ["no 1", "no 2"]
    with pytest.raises(ConstrainError, match="not a list of messages"):
        generate(loaded, "go", regex="a", retry_prompt="{reason}")


def test_auto_retries_where_it_selects_masked() -> None:
    one = generate(LM, **GIVEN, sampler="auto", temperature=0.9, check=odd_a, retries=50, seed=4)
    assert one.stats.sampler == "masked" and "temperature" in one.stats.reason
    assert one.text.count("a") % 2
    exact = generate(LM, **GIVEN, sampler="auto", check=odd_a, seed=4)
    assert exact.text.count("a") % 2 and not exact.refusals
