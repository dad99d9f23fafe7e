"""Scenarios of `pydantic-ai`: tool, native and prompted output over chat and responses, function tools, streams."""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version

from pydantic import BaseModel, ConfigDict
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    age: int


def weather(city: str) -> str:
    """Weather of a city."""
    return f"sunny in {city}"


async def check_prompted(model: OpenAIChatModel | OpenAIResponsesModel) -> None:
    """The schema is in the prompt alone, and a small model may miss it.

    The corrections that pydantic-ai asks for outgrow the context of the embedded model, so each try is begun anew.
    """
    for seed in range(12):
        agent = Agent(model, output_type=PromptedOutput(Person), retries=1)
        settings = {"max_tokens": 60, "extra_body": {"seed": seed}}
        try:
            made = await agent.run("Describe a person.", model_settings=settings)
        except AgentRunError as error:
            assert "server_error" not in str(error)
            continue
        assert isinstance(made.output, Person)
        return
    raise AssertionError("no prompted answer was a Person")


async def check_model(model: OpenAIChatModel | OpenAIResponsesModel) -> None:
    prompt = "Describe a person."
    await check_prompted(model)
    for wanted in (NativeOutput(Person), ToolOutput(Person)):
        made = await Agent(model, output_type=wanted, retries=5).run(prompt)
        assert isinstance(made.output, Person), wanted
    assert isinstance((await Agent(model, retries=3).run(prompt)).output, str)
    agent = Agent(model, output_type=NativeOutput(Person), tools=[weather], retries=5)
    assert isinstance((await agent.run(prompt)).output, Person)
    for wanted in (NativeOutput(Person), ToolOutput(Person)):
        async with Agent(model, output_type=wanted, retries=5).run_stream(prompt) as result:
            seen = [one async for one in result.stream_output(debounce_by=None)]
            assert isinstance(await result.get_output(), Person) and seen


def main(url: str) -> None:
    provider = OpenAIProvider(base_url=url, api_key="none")
    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        asyncio.run(check_model(kind("demo", provider=provider)))
    print(f"pydantic-ai {version('pydantic-ai-slim')}: ok")


if __name__ == "__main__":
    main(sys.argv[1])
