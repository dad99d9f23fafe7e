"""`/v1/completions`: prompts, echoes, log-probabilities, streams."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from openai.types import Completion

import constrain
from tests.serving.request_bodies import post, post_stream, refusal


def ask(client: TestClient, **more: Any) -> Completion:
    return Completion.model_validate(post(client, "completions", {"model": "demo", "prompt": "Name:", **more}))


def test_several_prompts_and_answers_are_in_order(client: TestClient) -> None:
    made = ask(client, prompt=["Red", "Blue"], n=2, echo=True, max_tokens=3, seed=1)
    assert [choice.index for choice in made.choices] == [0, 1, 2, 3]
    assert [choice.text[:3] for choice in made.choices] == ["Red", "Red", "Blu", "Blu"]
    assert {choice.finish_reason for choice in made.choices} == {"length"}


def test_token_ids_are_prompts(client: TestClient) -> None:
    for prompt in ([300, 301], [[300, 301], [302]]):
        assert ask(client, prompt=prompt, max_tokens=2).usage.prompt_tokens == (2 if prompt == [300, 301] else 3)


def test_constraints_and_samplers(client: TestClient) -> None:
    assert ask(client, structured_outputs={"choice": ["red", "blue"]}).choices[0].text in ("red", "blue")
    body = {"model": "demo", "prompt": "x", "regex": "[ab]{2}", "sampler": "awrs", "n": 2, "seed": 1}
    assert all(one["constrain"]["log_weight"] <= 0 for one in post(client, "completions", body)["choices"])


def test_log_probabilities(client: TestClient) -> None:
    [choice] = ask(client, max_tokens=5, logprobs=2, seed=1).choices
    found = choice.logprobs
    assert found is not None and found.tokens is not None and found.top_logprobs is not None
    assert "".join(found.tokens) == choice.text
    assert found.text_offset == [len("".join(found.tokens[:k])) for k in range(len(found.tokens))]
    assert all(len(one) <= 2 for one in found.top_logprobs)


def test_log_probabilities_of_an_echoed_prompt(client: TestClient) -> None:
    """Of each token but the first, as scoring clients read them: those of the same tokens as an answer."""
    text = "The sky is blue."
    # Not as a Completion: its types have no null, which the API has for the first token.
    body = {"model": "demo", "prompt": text, "echo": True, "max_tokens": 1, "logprobs": 1, "seed": 1}
    [choice] = post(client, "completions", body)["choices"]
    tokens, logprobs, top, offsets = (
        choice["logprobs"][name] for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    )
    assert tokens[0] == "<|begin|>" and "".join(tokens[1:]) == choice["text"] and choice["text"].startswith(text)
    assert offsets == [0, *(len("".join(tokens[1:k])) for k in range(1, len(tokens)))]
    assert logprobs[0] is None and top[0] is None
    assert all(one <= 0 for one in logprobs[1:]) and all(len(one) == 1 for one in top[1:])
    demo = constrain.load_model("demo")
    ids = demo.prompt_ids(text)
    row = demo.on(ids[:2]).next_logprobs([[]])[0]
    assert len(tokens) == len(ids) + 1 and logprobs[2] == pytest.approx(float(row[ids[2]]), abs=1e-4)


def test_no_tokens_after_an_echoed_prompt_score_it(client: TestClient) -> None:
    body = {"model": "demo", "prompt": ["The sky", "is blue"], "echo": True, "n": 2, "logprobs": 1}
    answer, one_more = (post(client, "completions", {**body, "max_tokens": most}) for most in (0, 1))
    for choice, longer in zip(answer["choices"], one_more["choices"]):
        assert choice["text"] == body["prompt"][choice["index"] // 2] and choice["finish_reason"] == "length"
        for name, values in choice["logprobs"].items():
            assert (
                len(values) == len(choice["logprobs"]["tokens"]) and values == longer["logprobs"][name][: len(values)]
            )
    assert answer["usage"] == {
        **one_more["usage"],
        "completion_tokens": 0,
        "total_tokens": answer["usage"]["prompt_tokens"],
    }
    chunks = post_stream(client, "completions", {**body, "max_tokens": 0})
    echoed = [choice for chunk in chunks for choice in chunk["choices"] if choice["text"]]
    assert [(one["text"], one["logprobs"]) for one in echoed] == [
        (one["text"], one["logprobs"]) for one in answer["choices"]
    ]
    endings = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if not choice["text"]]
    assert endings == ["length"] * 4
    assert post(client, "completions", {**body, "max_tokens": 0, "logprobs": None})["choices"][0]["logprobs"] is None


def test_chunks_add_up_to_the_answer(client: TestClient) -> None:
    body = {"model": "demo", "prompt": ["Red", "Blue"], "echo": True, "max_tokens": 6, "seed": 3, "logprobs": 1, "n": 2}
    chunks = post_stream(client, "completions", {**body, "stream_options": {"include_usage": True}})
    whole = post(client, "completions", body)
    texts = dict.fromkeys(range(4), "")
    tokens: dict[int, list[str]] = {index: [] for index in range(4)}
    for chunk in chunks[:-1]:
        for choice in chunk["choices"]:
            texts[choice["index"]] += choice["text"]
            tokens[choice["index"]] += [] if choice["logprobs"] is None else choice["logprobs"]["tokens"]
    assert list(texts.values()) == [choice["text"] for choice in whole["choices"]]
    assert list(tokens.values()) == [choice["logprobs"]["tokens"] for choice in whole["choices"]]
    assert ["".join(one[1:]) for one in tokens.values()] == list(texts.values())
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"] == whole["usage"]


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"prompt": None}, "/prompt"),
        ({"prompt": []}, "/prompt"),
        ({"prompt": ["a", 3]}, "/prompt/1"),
        ({"prompt": [10**9]}, "/prompt"),
        ({"suffix": "x"}, "/suffix"),
        ({"best_of": 3}, "/best_of"),
        ({"logprobs": 9}, "/logprobs"),
        ({"messages": []}, "/messages"),
        ({"max_tokens": 0}, "/max_tokens"),
        ({"max_tokens": 0, "echo": True, "regex": "a*"}, "/max_tokens"),
        ({"max_tokens": 0, "echo": True, "thinking": {}}, "/max_tokens"),
        ({"regex": "a", "ebnf": 'root ::= "a"'}, "/ebnf"),
    ],
    ids=str,
)
def test_errors_have_their_place(client: TestClient, fields: dict[str, Any], pointer: str) -> None:
    assert refusal(client, "completions", {"model": "demo", "prompt": "x", **fields})["param"] == pointer
