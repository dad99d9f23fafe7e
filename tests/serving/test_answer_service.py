"""`AnswerService.stream`: a text that is drawn again is hidden while none of it was sent, and an error afterwards."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI

from constrain import FinishEvent, RetryEvent, TextEvent
from constrain.serving.answer_call import AnswerCall
from constrain.serving.answer_service import AnswerService
from constrain.serving.request_errors import RequestError


def read_stream(service: AnswerService, events: list[Any], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    async def replay(*_: Any, **__: Any) -> Any:
        for event in events:
            yield event

    async def read() -> list[Any]:
        return [event async for event in service.stream(AnswerCall([1], 2))]

    monkeypatch.setattr(service.engine, "stream", replay)
    return asyncio.run(read())


def test_a_retry_is_hidden_until_its_text_was_sent(served: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    service: AnswerService = served.state.service
    other, text, retry = TextEvent(0, 1, "y", (2,)), TextEvent(0, 0, "x", (1,)), RetryEvent(0, 0, 1, "no end")
    ends = [FinishEvent(0, 0), FinishEvent(0, 1)]
    assert read_stream(service, [other, retry, text, *ends], monkeypatch) == [other, text, *ends]
    with pytest.raises(RequestError, match=r"choice 0 .*no end") as caught:
        read_stream(service, [other, text, retry, text, *ends], monkeypatch)
    assert (caught.value.status, caught.value.code) == (500, "answer_refused")
