"""What is wrong with a request is answered by 400 with the JSON pointer of its place; nothing is ignored."""

from __future__ import annotations

import json
import logging
from decimal import Decimal
from typing import Any, get_type_hints

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from openai.types.chat.completion_create_params import CompletionCreateParamsBase as ChatParams
from openai.types.completion_create_params import CompletionCreateParamsBase as TextParams
from openai.types.responses.response_create_params import ResponseCreateParamsBase as ResponseParams

import constrain
from constrain.serving.answer_formats import ANSWER_READERS
from constrain.serving.answer_service import AnswerService
from constrain.serving.request_fields import REQUEST_FIELDS, list_fields
from tests.serving.request_bodies import PERSON, chat, custom, function, refusal, schema_format

MEMBERS = b", ".join(b'"a%d": 1' % number for number in range(100_000))
USER = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("endpoint", "params"), [("chat", ChatParams), ("completions", TextParams), ("responses", ResponseParams)]
)
def test_every_member_that_openai_has_is_in_the_table(endpoint: Any, params: type) -> None:
    known = {field.name for field in list_fields(endpoint)}
    assert set(get_type_hints(params)) | {"stream"} <= known


def test_the_table_names_each_member_once_and_every_reader_is_in_it() -> None:
    for endpoint in ("chat", "completions", "responses"):
        names = [field.name for field in list_fields(endpoint)]  # type: ignore[arg-type]
        assert len(set(names)) == len(names)
    constraints = {field.name for field in REQUEST_FIELDS if field.role == "constraint"}
    assert set(ANSWER_READERS) <= constraints
    assert not [field.name for field in REQUEST_FIELDS if field.neutral and field.role != "refused"]


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"responce_format": {"type": "text"}}, "/responce_format"),
        ({"model": None}, "/model"),
        ({"model": 3}, "/model"),
        ({"messages": None}, "/messages"),
        ({"messages": [3]}, "/messages/0"),
        ({"messages": [{"content": "x"}]}, "/messages/0/role"),
        ({"messages": [{"role": "owner", "content": "x"}]}, "/messages/0/role"),
        ({"messages": [USER, {"role": "user"}]}, "/messages/1/content"),
        ({"messages": [{**USER, "colour": "red"}]}, "/messages/0/colour"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "/messages/0/content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
         "/messages/0/content/0/type"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "y": 1}]}]},
         "/messages/0/content/0/y"),
        ({"messages": [USER, {"role": "tool", "tool_call_id": "c", "content": "x"}]}, "/messages/1/tool_call_id"),
        ({"messages": [{"role": "assistant", "content": None}]}, "/messages/0/content"),
        ({"messages": [{"role": "user", "content": "word " * 3000}]}, "/messages"),
        ({"response_format": "json"}, "/response_format"),
        ({"response_format": {"type": "json"}}, "/response_format/type"),
        ({"response_format": {"type": "json_object", "schema": {}}}, "/response_format/schema"),
        ({"response_format": {"type": "json_schema"}}, "/response_format/json_schema"),
        ({"response_format": schema_format(strict=1)}, "/response_format/json_schema/strict"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": PERSON}}},
         "/response_format/json_schema/name"),
        ({"response_format": schema_format(7)}, "/response_format/json_schema/schema"),
        ({"response_format": schema_format({"properties": {"a/b": {"type": 1}}})},
         "/response_format/json_schema/schema/properties/a~1b/type"),
        ({"response_format": schema_format({"type": "integer", "minimum": 5, "maximum": 3})},
         "/response_format/json_schema/schema/minimum"),
        ({"response_format": schema_format({"$ref": "https://example.com/x.json"})},
         "/response_format/json_schema/schema/$ref"),
        ({"response_format": {"type": "structural_tag", "structures": [], "triggers": []}},
         "/response_format/structures"),
        ({"response_format": schema_format(), "structured_outputs": {"regex": "a"}}, "/structured_outputs"),
        ({"structured_outputs": {}}, "/structured_outputs"),
        ({"structured_outputs": {"json": {}, "regex": "a"}}, "/structured_outputs"),
        ({"structured_outputs": {"jsno": {}}}, "/structured_outputs/jsno"),
        ({"structured_outputs": {"json": "{"}}, "/structured_outputs/json"),
        ({"structured_outputs": {"choice": []}}, "/structured_outputs/choice"),
        ({"structured_outputs": {"choice": ["a", 1]}}, "/structured_outputs/choice/1"),
        ({"structured_outputs": {"regex": "(?<n>a)(?P>n)"}}, "/structured_outputs/regex"),
        ({"structured_outputs": {"json": {}, "whitespace_pattern": " "}}, "/structured_outputs/whitespace_pattern"),
        ({"guided_json": PERSON}, "/guided_json"),
        ({"guided_regex": "a"}, "/guided_regex"),
        ({"custom_logit_processor": "80"}, "/custom_logit_processor"),
        ({"regex": "a", "grammar": 'root ::= "a"'}, "/grammar"),
        ({"regex": 3}, "/regex"),
        ({"ebnf": "root ::= other"}, "/ebnf"),
        ({"grammar": "start: %%"}, "/grammar"),
        ({"json_schema": "nothing"}, "/json_schema"),
        ({"tools": {}}, "/tools"),
        ({"tools": [{"type": "web_search"}]}, "/tools/0/type"),
        ({"tools": [{"type": "function"}]}, "/tools/0/function"),
        ({"tools": [function("a b")]}, "/tools/0/function/name"),
        ({"tools": [function("a"), function("a")]}, "/tools/1/function/name"),
        ({"tools": [function("a", {"type": "array"})]}, "/tools/0/function/parameters/type"),
        ({"tools": [function("a", stritc=True)]}, "/tools/0/function/stritc"),
        ({"tools": [custom("a", "peg", "x")]}, "/tools/0/custom/format/grammar/syntax"),
        ({"tools": [custom("a", "regex", "(")], "tool_choice": "required"},
         "/tools/0/custom/format/grammar/definition"),
        ({"tool_choice": "required"}, "/tool_choice"),
        ({"tools": [function("a")], "tool_choice": "any"}, "/tool_choice"),
        ({"tools": [function("a")], "tool_choice": {"type": "function", "function": {"name": "b"}}},
         "/tool_choice/function/name"),
        ({"tools": [function("a")], "tool_choice": {"type": "custom", "custom": {"name": "a"}}},
         "/tool_choice/custom/name"),
        ({"functions": [{"name": "f"}]}, "/functions"),
        ({"n": 0}, "/n"), ({"n": 17}, "/n"), ({"n": True}, "/n"),
        ({"max_tokens": 0}, "/max_tokens"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "/max_tokens"),
        ({"temperature": 2.5}, "/temperature"), ({"temperature": "hot"}, "/temperature"),
        ({"top_p": 1.5}, "/top_p"), ({"min_p": -1}, "/min_p"), ({"top_k": -2}, "/top_k"),
        ({"repetition_penalty": 0}, "/repetition_penalty"), ({"presence_penalty": 3}, "/presence_penalty"),
        ({"logit_bias": {"a": 1}}, "/logit_bias/a"), ({"logit_bias": {"99999": 1}}, "/logit_bias/99999"),
        ({"logit_bias": {"1": 101}}, "/logit_bias/1"),
        ({"stop": [""]}, "/stop"), ({"stop": ["x"] * 17}, "/stop"), ({"stop": [1]}, "/stop/0"),
        ({"seed": 1.5}, "/seed"),
        ({"top_logprobs": 3}, "/top_logprobs"), ({"logprobs": True, "top_logprobs": 21}, "/top_logprobs"),
        ({"stream_options": {"include_usage": True}}, "/stream_options"),
        ({"stream": True, "stream_options": {"usage": True}}, "/stream_options/usage"),
        ({"sampler": "magic"}, "/sampler"), ({"sampler": "smc"}, "/sampler"),
        ({"sampler": "smc", "regex": "a", "top_p": 0.5}, "/sampler"),
        ({"sampler": "awrs", "regex": "a", "particles": 4}, "/particles"), ({"particles": 4}, "/particles"),
        ({"thinking": {"open": "<t>", "colour": 1}}, "/thinking/colour"), ({"thinking": 3}, "/thinking"),
        ({"thinking": {}, "max_completion_tokens": 3}, "/max_completion_tokens"),
        ({"modalities": ["audio"]}, "/modalities"),
        ({"chat_template_kwargs": {"a": 1}}, "/chat_template_kwargs"),
    ],
    ids=lambda value: json.dumps(value)[:60],
)  # fmt: skip
def test_the_place_of_an_error(client: TestClient, fields: dict[str, Any], pointer: str) -> None:
    error = refusal(client, "chat/completions", chat(**fields))
    assert error["param"] == pointer and error["type"] == "invalid_request_error" and error["code"]


def test_members_without_effect_and_neutral_values_are_accepted(client: TestClient) -> None:
    fields = {"user": "u", "metadata": {"a": "b"}, "store": True, "service_tier": "auto", "modalities": ["text"],
              "reasoning_effort": "low", "prompt_cache_key": "k", "guided_json": None, "tools": None}  # fmt: skip
    assert client.post("/v1/chat/completions", json=chat(**fields, max_tokens=1)).status_code == 200


@pytest.mark.parametrize(
    ("content", "code", "status"),
    [
        (b"", "invalid_json", 400),
        (b"[]", "invalid_json", 400),
        (b'{"model": NaN}', "invalid_json", 400),
        (b'{"n": 1, "n": 2}', "invalid_json", 400),
        (b"{%s, %s}" % (MEMBERS, MEMBERS[-11:]), "invalid_json", 400),
        (b'{"model": "\xff"}', "invalid_json", 400),
        (b'{"a":' * 500, "too_deep", 400),
        (b'"' + b"x" * (5 << 20) + b'"', "body_too_large", 413),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bodies_that_are_not_json_objects(client: TestClient, content: bytes, code: str, status: int) -> None:
    answer = client.post("/v1/chat/completions", content=content)
    assert answer.status_code == status and answer.json()["error"]["code"] == code


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ('{"not":' * 1_000 + "{}" + "}" * 1_000, "too_deep", ""),
        ('{"type": "string", "type": "integer"}', "invalid_json", ""),
        ('{"const": NaN}', "invalid_json", ""),
        ('{"type": ', "invalid_json", ""),
        ('{"const": "\\ud800"}', "invalid_value", "/const"),
        ("[]", "invalid_type", ""),
    ],
    ids=lambda value: str(value)[:30],
)
def test_schemas_as_text_are_read_as_strictly_as_bodies(client: TestClient, text: str, code: str, place: str) -> None:
    for fields, pointer in (
        ({"json_schema": text}, "/json_schema"),
        ({"structured_outputs": {"json": text}}, "/structured_outputs/json"),
    ):
        error = refusal(client, "chat/completions", chat(**fields))
        assert (error["code"], error["param"]) == (code, pointer + place)


@pytest.mark.parametrize("number", ["12345678901234567890123.5", "9007199254740993.5", "0.1", "-3e2", "7"])
@pytest.mark.parametrize("as_text", [False, True])
def test_numbers_of_schemas_are_those_that_were_written(client: TestClient, number: str, as_text: bool) -> None:
    schema = f'{{"const": {number}}}'
    given = json.dumps(schema) if as_text else schema
    body = json.dumps(chat(json_schema=0)).replace('"json_schema": 0', f'"json_schema": {given}')
    answer = client.post("/v1/chat/completions", content=body.encode())
    assert Decimal(answer.json()["choices"][0]["message"]["content"]) == Decimal(number)


@pytest.mark.parametrize(
    ("schema", "pointer"), [(b'{"const": %s}' % (b"1" * 5_000), "/json_schema/const"),
                            (b'{"multipleOf": 1e-5000}', "/json_schema/multipleOf")]
)  # fmt: skip
def test_numbers_that_are_too_long_are_located(client: TestClient, schema: bytes, pointer: str) -> None:
    body = json.dumps(chat(json_schema=0)).encode().replace(b'"json_schema": 0', b'"json_schema": ' + schema)
    answer = client.post("/v1/chat/completions", content=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, pointer)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"json_schema": {"$ref": "https://elsewhere.example/a"}}, None),
        ({"grammar": "/etc/passwd"}, None),
        ({"regex": "(?!.*a.{18}b).*"}, "Simplify the pattern."),
    ],
)
def test_hints_are_what_a_client_can_do(client: TestClient, fields: dict[str, Any], said: str | None) -> None:
    message = refusal(client, "chat/completions", chat(**fields))["message"]
    assert not [word for word in ("Limits", "Path(", "registry=", "--registry", "import_paths=") if word in message]
    assert said is None or message.endswith(said)


def test_an_unknown_model_is_not_found(client: TestClient) -> None:
    error = refusal(client, "chat/completions", {**chat(), "model": "gpt-5"}, status=404)
    assert error["code"] == "model_not_found" and error["param"] == "/model"


def test_other_exceptions_are_500_without_details(
    served: FastAPI, client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(AnswerService, "encode", fail)
    with caplog.at_level(logging.ERROR, "constrain.serving"):
        answer = client.post("/v1/chat/completions", json=chat())
    assert answer.status_code == 500 and "secret" not in answer.text
    assert "secret" in caplog.text


@pytest.mark.parametrize(
    ("path", "body", "suggested"),
    [
        ("responses", {"messages": []}, "'input'"),
        ("responses", {"response_format": {}}, "'text.format'"),
        ("chat/completions", {"input": "x", "messages": []}, "'messages'"),
        ("completions", {"messages": []}, "'prompt'"),
        ("chat/completions", {"temprature": 1}, "'temperature'"),
    ],
)
def test_the_name_that_a_member_has_here_is_suggested(
    client: TestClient, path: str, body: dict[str, Any], suggested: str
) -> None:
    assert f"Did you mean {suggested}?" in refusal(client, path, {"model": "demo", **body})["message"]


def test_a_lark_grammar_that_is_given_as_ebnf_is_told_where_it_belongs(client: TestClient) -> None:
    """Outlines gives SGLang one for `dict`."""
    error = refusal(client, "chat/completions", chat(ebnf='?start: "a" | "b"'))
    assert error["param"] == "/ebnf" and 'Lark grammar as "grammar"' in error["message"]


def test_refused_members_are_not_suggested(client: TestClient) -> None:
    error = refusal(client, "responses", {"model": "demo", "input": "x", "conversatoin": "y"})
    assert error["code"] == "unknown_field" and "Did you mean" not in error["message"]


@pytest.mark.parametrize(
    ("path", "name"), [("chat/completions", "messages"), ("completions", "prompt"), ("responses", "input")]
)
def test_a_prompt_far_beyond_the_context_is_not_tokenised(
    client: TestClient, path: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("tokenised")

    monkeypatch.setattr(type(constrain.load_model("demo").tokenizer), "__call__", refuse)
    text = "word " * 100_000
    body = {"model": "demo", name: [{"role": "user", "content": text}] if name == "messages" else text}
    error = refusal(client, path, body)
    assert (error["code"], error["param"]) == ("context_length_exceeded", f"/{name}")
    assert "1,024 positions" in error["message"]


@pytest.mark.parametrize("words", [990, 1200, 20_000])
def test_a_prompt_that_is_too_long_is_named_in_the_words_that_clients_look_for(client: TestClient, words: int) -> None:
    """It leaves too little, exceeds the context, or does so in any case. LiteLLM and LangChain read the message."""
    body = chat(messages=[{**USER, "content": "cat " * words}], response_format=schema_format())
    error = refusal(client, "chat/completions", body)
    assert error["message"].startswith("the prompt is too long: ")
    assert (error["code"], error["param"]) == ("context_length_exceeded", "/messages")


def test_both_ends_of_a_range_have_the_same_format(client: TestClient) -> None:
    error = refusal(client, "chat/completions", chat(seed=-(1 << 65)))
    assert "from -18,446,744,073,709,551,616 to 18,446,744,073,709,551,616" in error["message"]
