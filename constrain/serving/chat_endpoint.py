"""`/v1/chat/completions`: requests, answers, and streams of chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from ..decoding.events import AnswerEvent, TextEvent
from ..generation.generation_result import Generation
from .answer_call import AnswerCall, make_constraint, read_thinking
from .answer_formats import read_answer_format
from .answer_message import AnswerMessage, fold_parts
from .answer_reader import AnswerReader
from .answer_service import AnswerService
from .chat_messages import read_messages
from .chat_shapes import ChatShape
from .event_responses import respond_with_events
from .prompt_rendering import render_conversation
from .request_errors import locate_errors
from .request_fields import check_fields
from .request_objects import RequestObject
from .sampling_fields import read_count, read_max_tokens, read_sampler, read_token_options
from .shared_fields import StreamOptions, check_model, read_stream_options
from .thought_tokens import ContentLogprobs
from .token_logprobs import LogprobReader
from .tool_requests import plan_tools

__all__ = ["build_chat_router"]

MOST_TOP_LOGPROBS = 20


def build_chat_router() -> APIRouter:
    """Return the route of chat completions."""
    router = APIRouter()

    @router.post("/v1/chat/completions")
    async def create_chat_completion(request: Request) -> Response:
        service: AnswerService = request.app.state.service
        call, sending = await service.read_request(request, read_chat_request)
        shape = ChatShape(service.settings.model_name, call, service.engine.vocabulary)
        if sending.is_streamed:
            shape.shows_usage = sending.shows_usage
            return await respond_with_events(stream_chat(service, call, shape), ends_with="[DONE]")
        messages = [await read_answer(service, call, made) for made in await service.complete(call)]
        return JSONResponse(shape.describe(messages))

    return router


def read_chat_request(body: RequestObject, service: AnswerService) -> tuple[AnswerCall, StreamOptions]:
    """Return the call of a request, and how its answer is sent. Raise RequestError for whatever is wrong with it.

    Runs in a thread: schemas of tools are compiled here.
    """
    check_fields(body, "chat")
    check_model(body, service.settings)
    messages, wanted = read_messages(body), read_answer_format(body)
    plan = plan_tools(body, "nested", service.engine.vocabulary)
    marks = read_thinking(body, service.settings)
    sampler, sampler_options = read_sampler(body)
    template = body.read_object("chat_template_kwargs")
    most, length_name = read_max_tokens(body, service.settings)
    options = {**read_token_options(body, service.engine.vocabulary.size), "max_tokens": most}
    constraint, pointer = make_constraint(wanted, plan, marks, service.tool_format)
    with locate_errors("/messages"):
        ids = render_conversation(service.model, messages, plan, wanted, {} if template is None else template.value)
    call = AnswerCall(
        service.encode(ids, "/messages"), read_count(body, service.settings), {**options, **constraint}, pointer,
        wanted, plan, marks, service.tool_format, read_top_logprobs(body), sampler, sampler_options,
        "/messages", length_name,
    )  # fmt: skip
    return call, read_stream_options(body)


def read_top_logprobs(body: RequestObject) -> int | None:
    """Return the number of alternatives at each token; None if no log-probabilities are asked for."""
    wanted, count = body.read_flag("logprobs"), body.read_count("top_logprobs", 0, MOST_TOP_LOGPROBS)
    if count and not wanted:
        raise body.refuse("top_logprobs", "top_logprobs needs logprobs", hint='Give "logprobs": true.')
    return (count or 0) if wanted else None


async def read_answer(service: AnswerService, call: AnswerCall, made: Generation[Any]) -> AnswerMessage:
    """Return a finished text as a message."""
    reader = call.open_reader()
    parts = [*reader.feed(made.text), *reader.finish()]
    found = await service.read_logprobs(call, made.tokens)
    logprobs = None if found is None else ContentLogprobs().feed(found, reader.thought_size)
    return fold_parts(call, parts, made, logprobs)


async def stream_chat(service: AnswerService, call: AnswerCall, shape: ChatShape) -> AsyncGenerator[Any, None]:
    """Yield the chunks of an answer."""
    readers = [call.open_reader() for _ in range(call.count)]
    logprobs: list[LogprobReader | None] = [None] * call.count
    content = [ContentLogprobs() for _ in range(call.count)]
    begun = False
    async for event in service.stream(call):
        if not begun:
            for index in range(call.count):
                yield shape.begin_choice(index)
                logprobs[index] = await service.open_logprobs(call)
            begun = True
        index = event.sample
        for chunk in await make_chunks(event, readers[index], logprobs[index], content[index], shape):
            yield chunk
    if shape.shows_usage:
        yield shape.describe_usage_chunk()


async def make_chunks(
    event: AnswerEvent, reader: AnswerReader, logprobs: LogprobReader | None, content: ContentLogprobs, shape: ChatShape
) -> list[dict[str, Any]]:
    """Return the chunks of an event."""
    index = event.sample
    if isinstance(event, TextEvent):
        found = [] if logprobs is None else await asyncio.to_thread(logprobs.read, event.tokens)
        parts = reader.feed(event.text)
        return shape.describe_parts(index, parts, content.feed(found, reader.thought_size))
    parts = reader.finish()
    return [*shape.describe_parts(index, parts, None), shape.end_choice(index, event.generation)]
