"""A constraint that took more work than the server allows is refused again at once, whatever else the request says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from constrain.base.errors import LimitError
from constrain.base.json_documents import parse_strictly
from constrain.base.work import WorkBudget
from constrain.serving import refused_work
from constrain.serving.application import create_app
from constrain.serving.paced_budget import PacedBudget
from constrain.serving.refused_work import RefusedWork
from constrain.serving.request_errors import RequestError
from constrain.serving.server_settings import ServerSettings

CHAIN = [f'r{number} ::= "a" r{number + 1}' for number in range(500)]
CLAUSES = {
    "type": "object",
    "allOf": [{"anyOf": [{"required": [f"{a}{number}"]} for a in "abc"]} for number in range(12)],
}
"""Its shortest completion is searched for among 3^12 choices."""
LARGE = {
    "regex": {"structured_outputs": {"regex": "(?!.*a.{12}b).*"}},
    "schema": {"structured_outputs": {"json": {"type": "string", "pattern": "a.{20}$"}}},
    "completion": {"structured_outputs": {"json": CLAUSES}},
    "grammar": {"structured_outputs": {"grammar": "\n".join([*CHAIN, 'r500 ::= "b"', "root ::= r0"])}},
}


@pytest.fixture
def client(served: FastAPI) -> Iterator[TestClient]:
    app = create_app(served.state.service.engine, ServerSettings(compile_work=5_000))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The units that are spent from now on."""
    units, spend = list[int](), PacedBudget.spend

    def note_units(budget: PacedBudget, number: int, construction: str) -> None:
        units.append(number)
        spend(budget, number, construction)

    monkeypatch.setattr(PacedBudget, "spend", note_units)
    return units


def ask(client: TestClient, path: str, **fields: Any) -> tuple[int, dict[str, Any]]:
    question = {"messages": [{"role": "user", "content": "x"}]} if "chat" in path else {"prompt": "x"}
    answer = client.post(path, json={"model": "demo", "max_tokens": 5, **question, **fields})
    return answer.status_code, answer.json()


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
@pytest.mark.parametrize("kind", LARGE)
def test_a_large_constraint_is_built_once(client: TestClient, spent: list[int], kind: str, path: str) -> None:
    status, error = ask(client, path, **LARGE[kind])
    assert (status, error["error"]["code"]) == (400, "limit_exceeded")
    assert "Limits.work" in error["error"]["message"] and spent
    spent.clear()
    for fields in ({}, {"seed": 3}, {"max_tokens": 9, "temperature": 0.5}, {"n": 2, "stream": True}):
        assert ask(client, path, **LARGE[kind], **fields) == (status, error)
    assert not spent
    assert ask(client, path, structured_outputs={"regex": "[ab]{3}"})[0] == 200


def test_refusals_for_too_small_max_tokens_are_not_cached(client: TestClient) -> None:
    """The shortest text takes more tokens than the first request allows, and not more than the second does."""
    fields = {"structured_outputs": {"regex": "[0-9]{30}"}}
    assert ask(client, "/v1/completions", **fields, max_tokens=2)[1]["error"]["code"] == "limit_exceeded"
    assert ask(client, "/v1/completions", **fields, max_tokens=40)[0] == 200


def test_the_digest_is_of_what_constrains() -> None:
    refused = RefusedWork()
    body = {"prompt": "x", "regex": "a", "seed": 1}
    assert refused.digest("/a", body) == refused.digest("/a", {"prompt": "y", "regex": "a", "stream": True})
    others = [{"regex": "b"}, {"regex": "a", "tools": []}, {"regex": "a", "unknown": 1}, {}]
    digests = {refused.digest("/a", one) for one in others} | {refused.digest("/b", body), refused.digest("/a", body)}
    assert len(digests) == 6


@pytest.mark.parametrize("length", [refused_work.MOST_POINTER, refused_work.MOST_POINTER + 1])
def test_errors_with_long_pointers_are_not_kept(length: int) -> None:
    refused, error = RefusedWork(), LimitError("too much work", pointer="/" * length)
    error.is_of_source = True
    refused.note("digest", error)
    assert len(refused.errors) == (length == refused_work.MOST_POINTER)


def test_errors_are_few_and_of_spent_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_work, "MOST_ERRORS", 3)
    refused = RefusedWork()
    refused.note("other", LimitError("of another kind"))
    refused.note("fault", ValueError("a fault"))
    refused.note("queue", RequestError("queue", status=429, code="queue_full"))
    for name in ["", *"abcd"]:
        with pytest.raises(LimitError) as caught:
            WorkBudget(1).spend(2, f"the {name}")
        refused.note(name, caught.value)
    assert list(refused.errors) == ["b", "c", "d"]
    with pytest.raises(RequestError, match="The b needs more than"):
        refused.check("b")
    assert list(refused.errors) == ["c", "d", "b"]
    refused.check("a")


def test_numbers_that_no_float_has_differ() -> None:
    """Two bodies whose numbers have the same nearest float are two requests."""
    texts = [f'{{"json_schema": {{"const": {number}}}}}' for number in ("9007199254740993.0", "9007199254740992")]
    digests = {RefusedWork().digest("/v1/chat/completions", parse_strictly(text, 9)) for text in texts}
    assert len(digests) == 2
