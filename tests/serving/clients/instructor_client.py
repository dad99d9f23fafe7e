"""Scenarios of the `instructor` package: its modes, streaming of partial objects and of lists, parallel tools."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import version

import instructor
import openai
from pydantic import BaseModel, ConfigDict

MESSAGES = [{"role": "user", "content": "Describe a person."}]
# In JSON and MD_JSON the request does not hold the schema, so a small model may need several tries.
MODES = ("TOOLS", "TOOLS_STRICT", "JSON_SCHEMA", "JSON", "MD_JSON")


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    age: int


def main(url: str) -> None:
    for name in MODES:
        client = instructor.from_openai(openai.OpenAI(base_url=url, api_key="none"), mode=instructor.Mode[name])
        made = client.chat.completions.create(model="demo", messages=MESSAGES, response_model=Person, max_retries=10)
        assert isinstance(made, Person), name
    for name in ("TOOLS", "JSON_SCHEMA"):
        client = instructor.from_openai(openai.OpenAI(base_url=url, api_key="none"), mode=instructor.Mode[name])
        seen = list(client.chat.completions.create_partial(model="demo", messages=MESSAGES, response_model=Person))
        assert len(seen) > 2 and isinstance(seen[-1].age, int), name
        several = client.chat.completions.create_iterable(model="demo", messages=MESSAGES, response_model=Person)
        assert all(isinstance(one, Person) for one in several), name
    client = instructor.from_openai(openai.OpenAI(base_url=url, api_key="none"), mode=instructor.Mode.PARALLEL_TOOLS)
    for one in client.chat.completions.create(model="demo", messages=MESSAGES, response_model=Iterable[Person]):
        assert isinstance(one, Person)
    client = instructor.from_openai(openai.OpenAI(base_url=url, api_key="none"), mode=instructor.Mode.RESPONSES_TOOLS)
    assert isinstance(client.responses.create(model="demo", input=MESSAGES, response_model=Person), Person)
    print(f"instructor {version('instructor')}: ok")


if __name__ == "__main__":
    main(sys.argv[1])
