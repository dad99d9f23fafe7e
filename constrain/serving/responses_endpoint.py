"""`/v1/responses`: requests, answers, and streams of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from ..base.errors import shorten_text
from ..decoding.events import TextEvent
from .answer_call import AnswerCall, make_constraint, read_thinking
from .answer_formats import read_answer_format
from .answer_service import AnswerService
from .event_responses import respond_with_events
from .prompt_rendering import render_conversation
from .request_errors import RequestError, describe_error, locate_errors
from .request_fields import check_fields
from .request_objects import RequestObject
from .request_record import current_record
from .response_items import read_input
from .response_shapes import ResponseShape
from .sampling_fields import read_max_tokens, read_sampler, read_token_options
from .shared_fields import StreamOptions, check_model, read_stream_options
from .thought_tokens import ContentLogprobs
from .tool_requests import plan_tools

__all__ = ["build_responses_router"]

LOGPROBS = "message.output_text.logprobs"
INCLUDED = (LOGPROBS, "reasoning.encrypted_content")
MOST_TOP_LOGPROBS = 20


def build_responses_router() -> APIRouter:
    """Return the route of responses."""
    router = APIRouter()

    @router.post("/v1/responses")
    async def create_response(request: Request) -> Response:
        service: AnswerService = request.app.state.service
        call, body, sending = await service.read_request(request, read_responses_request)
        shape = ResponseShape(service.settings.model_name, call, body, service.engine.vocabulary)
        if sending.is_streamed:
            if (record := current_record()) is not None:
                record.describe_interruption = shape.interrupt
            return await respond_with_events(stream_response(service, call, shape), ends_with=None)
        async for _ in write_response(service, call, shape):
            pass
        return JSONResponse(shape.response)

    return router


def read_responses_request(
    body: RequestObject, service: AnswerService
) -> tuple[AnswerCall, dict[str, Any], StreamOptions]:
    """Return the call of a request, its body, and how its answer is sent. Raise RequestError for whatever is wrong.

    Runs in a thread: schemas of tools are compiled here.
    """
    check_fields(body, "responses")
    check_model(body, service.settings)
    messages, wanted = read_input(body), read_answer_format(body)
    plan = plan_tools(body, "flat", service.engine.vocabulary)
    marks = read_thinking(body, service.settings)
    sampler, sampler_options = read_sampler(body)
    most, length_name = read_max_tokens(body, service.settings, "max_output_tokens")
    options = {**read_token_options(body, service.engine.vocabulary.size), "max_tokens": most}
    constraint, pointer = make_constraint(wanted, plan, marks, service.tool_format)
    with locate_errors("/input"):
        rendered = render_conversation(service.model, messages, plan, wanted, {})
    ids = service.encode(rendered, "/input")
    body.read_typed("metadata", lambda value: isinstance(value, dict), "an object")
    call = AnswerCall(
        ids, 1, {**options, **constraint}, pointer, wanted, plan, marks, service.tool_format, read_included(body),
        sampler, sampler_options, "/input", length_name,
    )  # fmt: skip
    return call, body.value, read_stream_options(body)


def read_included(body: RequestObject) -> int | None:
    """Return the number of alternatives at each token; None if no log-probabilities are asked for."""
    included = body.read_texts("include") or []
    for place, name in body.read_list("include") or ():
        if name not in INCLUDED:
            raise RequestError(
                f"{shorten_text(name, 80)!r} cannot be included", place, hint=f"Give {' or '.join(INCLUDED)}."
            )
    count = body.read_count("top_logprobs", 0, MOST_TOP_LOGPROBS)
    return (count or 0) if LOGPROBS in included or count else None


async def stream_response(
    service: AnswerService, call: AnswerCall, shape: ResponseShape
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the events of an answer. An error after the first one is an event of its own."""
    begun = False
    try:
        async for event in write_response(service, call, shape):
            begun = True
            yield event
    except Exception as error:
        if not begun:
            raise
        _, body = describe_error(error)
        yield shape.fail(body["error"])


async def write_response(
    service: AnswerService, call: AnswerCall, shape: ResponseShape
) -> AsyncGenerator[dict[str, Any], None]:
    """Run a call, and yield the events of its answer; `shape.response` is the answer then."""
    reader, logprobs, content, begun = call.open_reader(), None, ContentLogprobs(), False
    async for event in service.stream(call):
        if not begun:
            begun = True
            logprobs = await service.open_logprobs(call)
            for one in shape.begin():
                yield one
        if isinstance(event, TextEvent):
            found = [] if logprobs is None else await asyncio.to_thread(logprobs.read, event.tokens)
            parts = reader.feed(event.text)
            for one in shape.add(parts, content.feed(found, reader.thought_size)):
                yield one
        else:
            for one in [*shape.add(reader.finish(), None), *shape.end(event.generation)]:
                yield one
