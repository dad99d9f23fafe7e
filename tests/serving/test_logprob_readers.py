"""Log-probabilities that nobody wants cost a request nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI

from constrain.serving.answer_call import AnswerCall


def test_only_wanted_logprobs_wait_for_a_thread(served: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads may all be compiling."""
    service, hops, hop = served.state.service, list[Any](), asyncio.to_thread

    async def count(function: Any, *given: Any) -> Any:
        hops.append(function)
        return await hop(function, *given)

    monkeypatch.setattr(asyncio, "to_thread", count)

    async def read(top: int | None) -> list[Any] | None:
        found: list[Any] | None = await service.read_logprobs(AnswerCall([5, 6], top_logprobs=top), [7, 8])
        return found

    assert asyncio.run(read(None)) is None
    assert not hops
    found = asyncio.run(read(1))
    assert found is not None
    assert len(found) == 2
    assert hops
