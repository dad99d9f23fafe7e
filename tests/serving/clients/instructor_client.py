"""Scenarios of the `instructor` package: its modes, streaming of partial objects and of lists, parallel tools."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import version

import instructor
import openai
from instructor.core.exceptions import InstructorRetryException
from pydantic import BaseModel, ConfigDict, ValidationError

MESSAGES = [{"role": "user", "content": "Describe a person."}]
REQUEST = {"model": "demo", "messages": MESSAGES}
SEEDS = range(12)


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    age: int


class Tasks(BaseModel):
    """The schema that `create_iterable` sends: no property is required, and others are allowed."""

    tasks: list[Person] = []


def connect(url: str, mode: str) -> instructor.Instructor:
    return instructor.from_openai(openai.OpenAI(base_url=url, api_key="none"), mode=instructor.Mode[mode])


def check_constrained(url: str) -> None:
    for mode in ("TOOLS", "TOOLS_STRICT", "JSON_SCHEMA"):
        made = connect(url, mode).chat.completions.create(**REQUEST, response_model=Person, max_retries=0)
        assert isinstance(made, Person), mode


def check_prompted(url: str) -> None:
    """In JSON and MD_JSON the schema is in the prompt alone, and a small model may miss it.

    The corrections that instructor asks for outgrow the context of the embedded model, so each of them is begun anew.
    """
    for mode in ("JSON", "MD_JSON"):
        for seed in SEEDS:
            try:
                made = connect(url, mode).chat.completions.create(
                    **REQUEST, response_model=Person, max_retries=1, max_tokens=60, seed=seed
                )
            except InstructorRetryException:
                continue
            assert isinstance(made, Person), mode
            break
        else:
            raise AssertionError(f"no answer in mode {mode} was a Person")


def check_partial(url: str) -> None:
    for mode in ("TOOLS", "JSON_SCHEMA"):
        seen = list(connect(url, mode).chat.completions.create_partial(**REQUEST, response_model=Person))
        assert len(seen) > 2 and isinstance(seen[-1].age, int), mode


def check_iterable(url: str) -> None:
    """instructor reads the first array of an answer, whatever its key is; an answer without "tasks" is then refused.

    Such an answer must at least satisfy what was asked for.
    """
    for mode in ("TOOLS", "JSON_SCHEMA"):
        read = 0
        for seed in SEEDS:
            sent: dict[str, object] = {}
            client = connect(url, mode)
            client.on("completion:kwargs", lambda *_, sent=sent, **options: sent.update(options))
            try:
                several = list(client.chat.completions.create_iterable(**REQUEST, response_model=Person, seed=seed))
            except ValidationError:
                Tasks.model_validate_json(answer_again(url, sent))
                continue
            assert all(isinstance(one, Person) for one in several), mode
            read += len(several)
        assert read, f"no answer in mode {mode} had a Person"


def answer_again(url: str, sent: dict[str, object]) -> str:
    """Return the text or the arguments of the answer to a request that was streamed, which its seed determines."""
    whole = openai.OpenAI(base_url=url, api_key="none").chat.completions.create(**{**sent, "stream": False})
    message = whole.choices[0].message
    return message.tool_calls[0].function.arguments if message.tool_calls else message.content


def main(url: str) -> None:
    for check in (check_constrained, check_prompted, check_partial, check_iterable):
        check(url)
    client = connect(url, "PARALLEL_TOOLS")
    for one in client.chat.completions.create(**REQUEST, response_model=Iterable[Person]):
        assert isinstance(one, Person)
    client = connect(url, "RESPONSES_TOOLS")
    assert isinstance(client.responses.create(model="demo", input=MESSAGES, response_model=Person), Person)
    print(f"instructor {version('instructor')}: ok")


if __name__ == "__main__":
    main(sys.argv[1])
