"""Hostile requests to the playground: the status must be 200, or 4xx with an error message, and the answer short."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import constrain

from .answers import WrongAnswer
from .call_scenarios import HUGE, MILLION
from .store_scenarios import Scenario

__all__ = ["PLAYGROUND"]

ORIGIN = "hostile requests"
SECONDS = 60.0
LONGEST = 2_000_000
"""Maximum number of characters of an answer: that to the longest text, of which each character is described."""
VALID: dict[str, dict[str, Any]] = {
    "inspect": {"text": "re"},
    "complete": {"text": "re"},
    "step": {"prompt": "A colour?"},
    "law": {"prompt": "A colour?"},
    "sample": {"prompt": "A colour?", "sampler": "masked", "draws": 2},
}
"""A valid request to each route, without its source."""


def build_source(kind: Any, text: Any, option: Any = None) -> dict[str, Any]:
    """Return the member `source` of a request."""
    return {"source": {"kind": kind, "text": text, **({} if option is None else {"option": option})}}


def post_everywhere(requests: Mapping[str, Mapping[str, Any]], routes: tuple[str, ...] = tuple(VALID)) -> Scenario:
    """Return a scenario of requests to routes. requests: by name, the members that replace those of a valid one."""

    def scenario() -> None:
        from fastapi.testclient import TestClient

        from constrain.playground.play_application import create_play_app
        from constrain.serving.server_settings import ServerSettings

        with (
            constrain.Engine("demo") as engine,
            TestClient(create_play_app(engine, ServerSettings()), raise_server_exceptions=False) as client,
        ):
            for route in routes:
                for name, more in requests.items():
                    body = json.dumps({**build_source("regex", "red|blue"), **VALID[route], **more})
                    answer = client.post(
                        f"/playground/{route}", content=body, headers={"content-type": "application/json"}
                    )
                    if answer.status_code >= 500 or len(answer.text) > LONGEST:
                        raise WrongAnswer(f"{route}, {name}: {answer.status_code}, {answer.text[:200]}")
                    if answer.status_code != 200 and not answer.json()["error"]["message"]:
                        raise WrongAnswer(f"{route}, {name}: an error without a message")

    return scenario


def list_requests() -> Iterator[tuple[str, Scenario]]:
    """Yield scenarios of hostile sources, texts and numbers."""
    rules = "\n".join(f"r{i}: r{i + 1} r{i + 1}" for i in range(40))
    sources = {
        "1 MB of regex": build_source("regex", "a" * MILLION),
        "deep regex": build_source("regex", "(" * 9_000 + ")" * 9_000),
        "nested counts": build_source("regex", "((a{1000}){1000}){1000}"),
        "deep schema": build_source("schema", '{"not":' * 9_000 + "{}" + "}" * 9_000),
        "deep JSON": build_source("schema", "[" * 100_000),
        "a digit of 1 MB": build_source("schema", '{"minimum": ' + "9" * MILLION + "}"),
        "a schema that refers to itself": build_source("schema", '{"$ref": "#"}'),
        "a file": build_source("schema", '{"$ref": "file:///etc/passwd"}'),
        "an import": build_source("lark", "%import .secret.A\nstart: A"),
        "doubling": build_source("lark", f'start: r0\n{rules}\nr40: "a"'),
        "ambiguity": build_source("lark", 'start: start start | "a" |', "dynamic_complete"),
        "left recursion": build_source("gbnf", 'root ::= root root | "a" |'),
        "surrogate": build_source("regex", "\ud800"),
        "nul": build_source("regex", "\0"),
        "empty": build_source("lark", ""),
        "a number": build_source("regex", 5),
        "a kind of 1 MB": build_source("k" * MILLION, "a"),
        "an option of 1 MB": build_source("regex", "a", "o" * MILLION),
        "tools": build_source("tools", "[" + ",".join(["{}"] * 9_000) + "]"),
        "a list": {"source": []},
        "null": {"source": None},
    }
    yield "sources of the playground", post_everywhere(sources)
    texts = {
        "32 KB": "a" * (1 << 15),
        "1 MB": "a" * MILLION,
        "open brackets": "[" * (1 << 15),
        "surrogate": "\ud800",
        "nul": "\0",
        "a list": [],
        "a number": HUGE,
    }
    free = build_source("regex", "(?s).*")
    yield (
        "texts of the playground",
        post_everywhere({name: {"text": text} for name, text in texts.items()}, ("inspect", "complete")),
    )
    yield (
        "long texts of the playground",
        post_everywhere(
            {
                "free": {**free, "text": "é" * (1 << 14)},
                "JSON": {**build_source("schema", "{}", "any"), "text": "[" * 400 + "1," * 9_000},
                "ambiguous": {
                    **build_source("lark", 'start: start start | "a" |', "dynamic_complete"),
                    "text": "a" * 2_000,
                },
            },
            ("inspect", "complete"),
        ),
    )
    odd = {"10^400": 10**400, "-1": -1, "text": "x", "true": True, "list": [[]], "1e400": 1e400}
    for route, names in {"step": ("tokens", "bars", "seed"), "sample": ("draws", "max_tokens", "seed")}.items():
        wrong = {f"{name}={which}": {name: value} for name in names for which, value in odd.items()}
        yield f"odd numbers of /playground/{route}", post_everywhere(wrong, (route,))
    yield (
        "long prompts of the playground",
        post_everywhere({"1 MB": {"prompt": "a" * MILLION}, "tokens": {"tokens": [5] * 100_000}}, ("step",)),
    )
    yield (
        "unbounded laws of the playground",
        post_everywhere({"all texts": free, "all JSON": build_source("schema", "{}")}, ("law",)),
    )


PLAYGROUND: tuple[tuple[str, str, Scenario, float], ...] = tuple(
    (name, ORIGIN, scenario, SECONDS) for name, scenario in list_requests()
)
