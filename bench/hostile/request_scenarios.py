"""Hostile requests to a server, invalid settings of its operator, and hostile rows of a batch job.

The answer to a request must have status 200, or 4xx and an error with a message; each row must have an answer or an
error.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import constrain

from .answers import WrongAnswer
from .call_scenarios import HUGE, MILLION, build_calls
from .store_scenarios import Scenario

__all__ = ["REQUESTS"]

ORIGIN = "hostile requests"
SECONDS = 60.0
DEEP = "[" * 100_000 + "]" * 100_000


def list_settings() -> Iterator[tuple[str, Scenario]]:
    """Yield scenarios of invalid settings of a server."""
    odd = {
        "nan": math.nan,
        "inf": math.inf,
        "0": 0,
        "-1": -1,
        "10^400": 10**400,
        "text": "5",
        "None": None,
        "list": [1],
    }

    def build_settings(name: str, value: Any) -> Callable[[], Any]:
        from constrain.serving.server_settings import ServerSettings

        return lambda: ServerSettings(**{name: value})

    names = ("model_name", "api_keys", "max_body_bytes", "max_n", "body_seconds", "think_close", "tool_format")
    yield (
        "odd settings of a server",
        build_calls({f"{name}={which}": build_settings(name, value) for name in names for which, value in odd.items()}),
    )


def build_custom_tool(syntax: Any, definition: Any, name: Any = "f") -> dict[str, Any]:
    """Return a custom tool with a grammar."""
    grammar = {"syntax": syntax, "definition": definition}
    return {"type": "custom", "custom": {"name": name, "format": {"type": "grammar", "grammar": grammar}}}


def post_all(requests: Mapping[str, Mapping[str, Any]]) -> Scenario:
    """Return a scenario of chat completion requests. requests: by name, the members that replace those
    of a valid one.
    """

    def scenario() -> None:
        from fastapi.testclient import TestClient

        from constrain.serving.application import create_app

        good = {"model": "demo", "messages": [{"role": "user", "content": "x"}], "max_tokens": 8}
        with (
            constrain.Engine("demo") as engine,
            TestClient(create_app(engine), raise_server_exceptions=False) as client,
        ):
            for name, more in requests.items():
                answer = client.post("/v1/chat/completions", content=json.dumps({**good, **more}))
                if answer.status_code >= 500 or len(answer.text) > 50_000:
                    raise WrongAnswer(f"{name}: {answer.status_code}, {answer.text[:200]}")
                if answer.status_code != 200 and not answer.json()["error"]["message"]:
                    raise WrongAnswer(f"{name}: an error without a message")

    return scenario


def list_requests() -> Iterator[tuple[str, Scenario]]:
    """Yield scenarios of requests with hostile tools and options."""
    tools: dict[str, Any] = {
        "1 MB of regex": build_custom_tool("regex", "a" * MILLION),
        "deep regex": build_custom_tool("regex", "(" * 9_000 + ")" * 9_000),
        "a count of a billion": build_custom_tool("regex", "a{1000000000}"),
        "1 MB of Lark": build_custom_tool("lark", "start: A\n" + "#" * MILLION),
        "recursion": build_custom_tool("lark", "start: start start | start"),
        "an import": build_custom_tool("lark", "%import .secret.A\nstart: A"),
        "surrogate": build_custom_tool("regex", "\ud800"),
        "nul": build_custom_tool("regex", "\0"),
        "empty": build_custom_tool("lark", ""),
        "a number": build_custom_tool("lark", 5),
        "no syntax": build_custom_tool("sparql", "a"),
        "no name": build_custom_tool("regex", "a", ""),
        "a name of 1 MB": build_custom_tool("regex", "a", "n" * MILLION),
        "a list": [],
        "a text": "f",
        "null": None,
        "closing": build_custom_tool("regex", "\n</custom_call>"),
        "doubling": build_custom_tool(
            "lark", "start: A0\n" + "\n".join(f"A{i}: A{i + 1} A{i + 1}" for i in range(40)) + '\nA40: "a"'
        ),
    }
    yield "custom tools of a request", post_all({name: {"tools": [tool]} for name, tool in tools.items()})
    yield (
        "many custom tools",
        post_all(
            {
                "100": {"tools": [build_custom_tool("regex", f"a{i}", f"f{i}") for i in range(100)]},
                "one twice": {"tools": [build_custom_tool("regex", "a")] * 2},
                "100,000": {"tools": [build_custom_tool("regex", "a")] * 100_000},
                "required": {"tools": [build_custom_tool("regex", "a")], "tool_choice": "required"},
            }
        ),
    )
    names = (
        "temperature",
        "top_p",
        "min_p",
        "presence_penalty",
        "repetition_penalty",
        "n",
        "max_tokens",
        "seed",
        "top_logprobs",
    )
    values = {
        "1e400": 1e400,
        "nan": math.nan,
        "10^30": HUGE,
        "10^400": 10**400,
        "-1": -1,
        "text": "x",
        "true": True,
        "list": [[]],
    }
    yield (
        "odd numbers of a request",
        post_all({f"{name}={which}": {name: value} for name in names for which, value in values.items()}),
    )
    yield (
        "odd members of a request",
        post_all(
            {
                "stop of 1 MB": {"stop": "a" * MILLION},
                "10,000 stops": {"stop": ["a"] * 10_000},
                "stop surrogate": {"stop": "\ud800"},
                "no stop": {"stop": ""},
                "biases": {"logit_bias": {str(i): 100 for i in range(5_000)}},
                "a huge id": {"logit_bias": {"9" * 5_000: 1}},
                "nan bias": {"logit_bias": {"5": math.nan}},
                "choices": {"guided_choice": []},
                "1 MB of prompt": {"messages": [{"role": "user", "content": "a" * MILLION}]},
                "no messages": {"messages": []},
                "surrogate": {"messages": [{"role": "user", "content": "\udc00"}]},
                "role": {"messages": [{"role": "x" * MILLION}]},
                "regex": {"regex": "(a+)+" * 9_999},
                "schema": {"response_format": {"type": "json_schema", "json_schema": {}}},
            }
        ),
    )


def run_rows(lines: Mapping[str, bytes]) -> Scenario:
    """Return a scenario of a batch job: every row must have an answer or an error, in order."""

    def scenario() -> None:
        from constrain.jobs import JobOptions, run_job

        with tempfile.TemporaryDirectory() as folder:
            source, output = Path(folder, "in.jsonl"), Path(folder, "out.jsonl")
            source.write_bytes(b"\n".join(lines.values()) + b"\n")
            report = run_job(source, output, JobOptions(regex="[ab]{2}", arguments={"max_tokens": 8}))
            made = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
            if len(made) != len(lines) or report.errors != sum("error" in one for one in made):
                raise WrongAnswer(f"{len(made)} lines, {report.errors} errors for {len(lines)} rows")
            if any(len(json.dumps(one)) > 20_000 for one in made):
                raise WrongAnswer("an answer of more than 20,000 characters")
            if "text" not in made[-1]:
                raise WrongAnswer(f"the answer to the valid row is {str(made[-1])[:200]}")

    return scenario


def list_rows() -> Iterator[tuple[str, Scenario]]:
    """Yield scenarios of hostile rows of `constrain batch`."""
    rows: dict[str, Any] = {
        "unknown": {"prompt": "x", "y" * MILLION: 1},
        "id": {"prompt": "x", "id": "i" * 9_000},
        "huge id": {"prompt": "x", "id": HUGE},
        "surrogate": {"prompt": "\ud800"},
        "surrogate id": {"prompt": "x", "id": "\ud800"},
        "1 MB": {"prompt": "a" * MILLION},
        "no choices": {"prompt": "x", "choices": []},
        "an option": {"prompt": "x", "choices": ["a" * 100_000]},
        "messages": {"messages": [5]},
        "no messages": {"messages": []},
        "max_tokens": {"prompt": "x", "max_tokens": HUGE},
        "regex": {"prompt": "x", "regex": "((a{100}){100}){100}"},
        "schema": {"prompt": "x", "schema": {"type": "nothing"}},
        "n": {"prompt": "x", "n": 10**9},
        "two": {"prompt": "x", "regex": "a", "choices": ["a"]},
        "seed": {"prompt": "x", "seed": -1},
        "temperature": {"prompt": "x", "temperature": 1e308},
        "stop": {"prompt": "x", "stop": ["a"] * 100_000},
    }
    raw = {
        "deep": DEEP.encode(),
        "not JSON": b"{",
        "not UTF-8": b'{"prompt": "\xff"}',
        "nul": b"\0" * 1_000,
        "nan": b'{"prompt": NaN}',
        "a number": b"5",
        "null": b"null",
        "digits": b'{"id": ' + b"9" * 9_000 + b"}",
        "1e400": b'{"max_tokens": 1e400}',
        "twice": b'{"prompt": "x", "prompt": "y"}',
        "a carriage return": b'{"prompt": "x"}\r',
    }
    lines = {**{name: json.dumps(row).encode() for name, row in rows.items()}, **raw}
    yield "rows of a batch job", run_rows({**lines, "good": b'{"prompt": "x", "id": "good"}'})
    yield "10,000 rows of errors", run_rows({**{str(i): b"[]" for i in range(10_000)}, "good": b'{"prompt": "x"}'})


REQUESTS: tuple[tuple[str, str, Scenario, float], ...] = tuple(
    (name, ORIGIN, scenario, SECONDS) for made in (list_settings, list_requests, list_rows) for name, scenario in made()
)
