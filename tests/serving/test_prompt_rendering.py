"""Conversations as prompts: by a chat template, in the form of the embedded model, or as plain text."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

import constrain
from constrain.demo import compose_prompt
from constrain.dialogue import Tool
from constrain.integrations.transformers_models import LoadedModel
from constrain.serving.answer_formats import AnswerFormat
from constrain.serving.prompt_rendering import render_conversation
from constrain.serving.request_errors import RequestError
from constrain.serving.tool_requests import ToolPlan
from tests.serving.request_bodies import CITY, PERSON

TEMPLATE = (
    "{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}"
    "{% for message in messages %}{% if message.role == 'unfit' %}{{ raise_exception('no') }}{% endif %}"
    "{{ message.role }}:{{ message.content }}"
    "{% for call in message.tool_calls or [] %}{{ call.function.name }}({{ call.function.arguments.city }}){% endfor %}"
    "|{% endfor %}{{ mood }}assistant:"
)
CALL = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "sunny"},
]
WEATHER = ToolPlan((Tool("weather", "d", CITY),))


@pytest.fixture(scope="module")
def demo() -> LoadedModel:
    return constrain.load_model("demo")


NO_TOOLS, ANYTHING = ToolPlan(), AnswerFormat()


def render(model: LoadedModel, plan: ToolPlan = NO_TOOLS, wanted: AnswerFormat = ANYTHING, **more: Any) -> str:
    ids = render_conversation(model, more.pop("messages", MESSAGES), plan, wanted, more)
    return str(model.tokenizer.decode(ids, skip_special_tokens=True))


@pytest.mark.parametrize(
    "name",
    ["chat_template", "tokenize", "truncation", "max_length", "padding", "return_dict", "tokenizer_kwargs", "tools",
     "messages", "conversation", "conversations", "self", "add_generation_prompt"],
)  # fmt: skip
def test_arguments_of_the_tokenizer_are_not_variables(demo: LoadedModel, name: str) -> None:
    """Least of all a template: a loop in it would never end."""
    tokenizer = copy.deepcopy(demo.tokenizer)
    tokenizer.chat_template = TEMPLATE
    model = replace(demo, tokenizer=tokenizer)
    with pytest.raises(RequestError, match="not a variable") as caught:
        render_conversation(model, MESSAGES, NO_TOOLS, ANYTHING, {name: "{{ 7 * 7 }}"})
    assert caught.value.pointer == f"/chat_template_kwargs/{name}"
    with pytest.raises(constrain.ArgumentError, match=name):
        model.render(MESSAGES, variables={name: "{{ 7 * 7 }}"})


def test_a_chat_template_gets_tools_calls_and_variables(demo: LoadedModel) -> None:
    tokenizer = copy.deepcopy(demo.tokenizer)
    tokenizer.chat_template = TEMPLATE
    model = replace(demo, tokenizer=tokenizer)
    assert render(model, WEATHER, mood="calm ") == (
        "[weather]system:Be brief.|user:Hi|assistant:weather(Oslo)|tool:sunny|calm assistant:"
    )
    with pytest.raises(RequestError, match="refuses the conversation") as caught:
        render(model, messages=[{"role": "unfit", "content": "x"}])
    assert caught.value.pointer == "/messages"


def test_the_embedded_model_is_shown_what_the_answer_must_be(demo: LoadedModel) -> None:
    person = AnswerFormat({"schema": PERSON})
    users = [{"role": "user", "content": "Describe a person."}]
    assert render(demo, wanted=person, messages=users) == compose_prompt("Describe a person.", PERSON)
    assert render(demo, messages=users) == compose_prompt("Describe a person.")
    assert '"const":"weather"' in render(demo, WEATHER, messages=users)
    shown = render(demo, messages=[{"role": "system", "content": f"As {json.dumps(PERSON)}!"}, *users])
    assert shown.endswith("Schema: " + json.dumps(PERSON, separators=(",", ":")) + "\nAnswer:\n")
    with pytest.raises(RequestError) as caught:
        render(demo, mood="calm")
    assert caught.value.pointer == "/chat_template_kwargs"


def test_other_models_without_a_template_get_plain_text(demo: LoadedModel) -> None:
    text = render(replace(demo, compose=None), WEATHER)
    assert text.endswith('Be brief.\nHi\nweather({"city": "Oslo"})\nsunny\nassistant:') and '"weather"' in text
