"""Server-sent events (WHATWG HTML, section 9.2) whose data is JSON.

The response begins with the first event: an error before it is an ordinary response with its status. A later one is an
event in the shape of errors, after which the stream ends.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi.responses import StreamingResponse

from .request_errors import describe_error

__all__ = ["respond_with_events", "write_event"]

HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


async def respond_with_events(events: AsyncGenerator[Any, None], *, ends_with: str | None) -> StreamingResponse:
    """Return a response that sends objects as they are yielded.

    Parameters
    ----------
    events : async generator of dict
        It is closed when the client hangs up. Objects with a `type` are sent under that name.
    ends_with : str or None
        The data of a last event.

    Raises
    ------
    Exception
        What the generator raises before its first object.
    """
    try:
        first = await anext(events)
    except BaseException:
        await events.aclose()
        raise
    return StreamingResponse(write_events(first, events, ends_with), media_type="text/event-stream", headers=HEADERS)


async def write_events(
    first: Any, events: AsyncGenerator[Any, None], ends_with: str | None
) -> AsyncGenerator[str, None]:
    """Yield events as text."""
    async with aclosing(events):
        try:
            yield write_event(first)
            async for event in events:
                yield write_event(event)
        except Exception as error:
            yield write_event(describe_error(error)[1])
        if ends_with is not None:
            yield f"data: {ends_with}\n\n"


def write_event(event: dict[str, Any]) -> str:
    """Return an event as text."""
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n"
