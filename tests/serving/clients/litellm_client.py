"""Scenarios of `litellm`: structured output, streams, tools, fields of vLLM, errors."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version

import litellm
from pydantic import BaseModel, ConfigDict

MESSAGES = [{"role": "user", "content": "Describe a person."}]


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    age: int


def main(url: str) -> None:
    common = {"model": "openai/demo", "api_base": url, "api_key": "none", "messages": MESSAGES}
    made = litellm.completion(**common, response_format=Person)
    Person.model_validate_json(made.choices[0].message.content)
    text = ""
    for chunk in litellm.completion(**common, response_format=Person, stream=True):
        text += chunk.choices[0].delta.content or ""
    Person.model_validate_json(text)
    tool = {"type": "function", "function": {"name": "person", "parameters": Person.model_json_schema()}}
    called = litellm.completion(
        **common, tools=[tool], tool_choice={"type": "function", "function": {"name": "person"}}
    )
    Person.model_validate(json.loads(called.choices[0].message.tool_calls[0].function.arguments))
    chosen = litellm.completion(**common, extra_body={"structured_outputs": {"choice": ["red", "blue"]}})
    assert chosen.choices[0].message.content in ("red", "blue")
    try:
        litellm.completion(**common, extra_body={"guided_json": {}})
    except litellm.BadRequestError as error:
        assert "guided_json" in str(error)
    else:
        raise AssertionError("guided_json was not refused")
    print(f"litellm {version('litellm')}: ok")


if __name__ == "__main__":
    main(sys.argv[1])
