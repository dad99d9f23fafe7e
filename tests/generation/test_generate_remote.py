"""`constrain.generate_remote` against a local server in the shape of OpenAI's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

import constrain
from tests.markov_factory import g_test
from tests.stand_in_server import StandIn, UrlClient

LETTERS = {"a": 0.5, "b": 0.3, "c": 0.2}
END = 0.3


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn(LETTERS, END) as server:
        yield server


def remote(stand_in: StandIn, api: Any = "chat", **options: Any) -> constrain.RemoteModel:
    return constrain.RemoteModel(UrlClient(stand_in.url), "stand-in", api, options)


def test_a_valid_answer_is_returned(stand_in: StandIn) -> None:
    found = constrain.generate_remote(remote(stand_in, temperature=0.5), "Write.", regex="[abc]*", max_tokens=90)
    assert (found.refusals, found.requests, found.repair) == ((), 1, None)
    assert found.text == found.value
    assert stand_in.requests[0]["messages"] == [{"role": "user", "content": "Write."}]
    assert stand_in.requests[0]["temperature"] == 0.5


def test_retries_sample_from_the_model_given_the_constraint() -> None:
    """Texts of at most three letters, exactly, by a G-test with a fixed seed."""
    pattern = "a[bc]?|b{1,3}|ca"
    law = {}
    for size in range(4):
        for letters in product(LETTERS, repeat=size):
            text = "".join(letters)
            if re.fullmatch(pattern, text):
                law[text] = END
                for letter in text:
                    law[text] *= LETTERS[letter] * (1 - END)
    with StandIn(LETTERS, END, seed=5) as server:
        model = constrain.RemoteModel(InProcess(server), "stand-in")
        draws = [
            constrain.generate_remote(model, "x", regex=pattern, tries=1000, invalid="raise").text for _ in range(1500)
        ]
    total = sum(law.values())
    assert g_test(Counter(draws), {text: p / total for text, p in law.items()}) > 1e-6


class InProcess:
    """The server without the network."""

    def __init__(self, server: StandIn) -> None:
        def create(**body: Any) -> Any:
            text = server.reply("/v1/chat/completions", body)["choices"][0]["message"]["content"]
            return SimpleNamespace(
                choices=[SimpleNamespace(message=SimpleNamespace(content=text), finish_reason="stop")]
            )

        self.chat = SimpleNamespace(completions=SimpleNamespace(create=create))


def test_the_last_answer_is_repaired(stand_in: StandIn) -> None:
    found = constrain.generate_remote(remote(stand_in), "Write.", choices=["xyz", "abcabc"], tries=2)
    assert found.text in ("xyz", "abcabc")
    assert found.requests == len(found.refusals) == 2
    assert found.repair is not None
    assert found.repair.original == found.refusals[-1][0]
    for text, reason in found.refusals:
        assert "is refused after" in reason or "ends too early" in reason, text


def test_no_answer_is_valid(stand_in: StandIn) -> None:
    with pytest.raises(constrain.ValueRefused, match="none of 3 answers") as caught:
        constrain.generate_remote(remote(stand_in), "Write.", regex="z", tries=3, invalid="raise")
    assert caught.value.text is not None


@pytest.mark.parametrize("pattern", ["(ab|ba)*c", "[ab]{4,8}", "a+b+c+", "xa*y"])
def test_resampling_replaces_refused_tokens(stand_in: StandIn, pattern: str) -> None:
    found = constrain.generate_remote(
        remote(stand_in, "completions"), "Write: ", regex=pattern, method="resample", tries=60, seed=3
    )
    assert re.fullmatch(pattern, found.text)
    assert found.repair is None
    prompts = [body["prompt"] for body in stand_in.requests]
    assert all(prompt.startswith("Write: ") for prompt in prompts)
    assert all(re.match(r"[abcxy]*$", prompt[len("Write: ") :]) for prompt in prompts)


def test_a_validator_is_a_reason_to_retry(stand_in: StandIn) -> None:
    class Letters(BaseModel):
        text: str

        @field_validator("text")
        @classmethod
        def check(cls, text: str) -> str:
            if text != "ab":
                raise ValueError("not ab")
            return text

    answers = iter(['{"text": "x"}', '{"text": 5}', '{"text": "ab"}'])

    def create(**_: Any) -> Any:
        message = SimpleNamespace(content=next(answers))
        return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")])

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    found = constrain.generate_remote(constrain.RemoteModel(client, "x"), "?", type=Letters)
    assert found.value == Letters(text="ab")
    assert [text for text, _ in found.refusals] == ['{"text": "x"}', '{"text": 5}']
    assert "not ab" in found.refusals[0][1]


def test_wrong_calls(stand_in: StandIn) -> None:
    with pytest.raises(constrain.ConstrainError, match="create"):
        constrain.RemoteModel(object(), "x")
    with pytest.raises(constrain.ArgumentError, match="api"):
        constrain.RemoteModel(UrlClient(stand_in.url), "x", "other")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="RemoteModel"):
        constrain.generate_remote("demo", "x", regex="a")  # type: ignore[arg-type]
    with pytest.raises(constrain.ArgumentError, match="continue"):
        constrain.generate_remote(remote(stand_in), "x", regex="a", method="resample")
    with pytest.raises(constrain.ConstrainError, match="no choices"):
        empty = SimpleNamespace(completions=SimpleNamespace(create=lambda **_: SimpleNamespace(choices=[])))
        constrain.generate_remote(constrain.RemoteModel(SimpleNamespace(chat=empty), "x"), "?", regex="a")


def test_the_client_of_openai(stand_in: StandIn) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=stand_in.url, api_key="none")
    for api, method in (("chat", "retry"), ("completions", "resample")):
        model = constrain.RemoteModel(client, "stand-in", api)  # type: ignore[arg-type]
        found = constrain.generate_remote(model, "Write: ", regex="[ab]{2}c", method=method, tries=30, seed=1)
        assert re.fullmatch("[ab]{2}c", found.text)
