"""`/v1/completions`: continuations of texts as they are, without a conversation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from ..base.errors import describe_value
from ..decoding.events import AnswerEvent, FinishEvent
from ..generation.generation_result import Generation
from .answer_call import AnswerCall, make_constraint, read_thinking
from .answer_formats import read_answer_format
from .answer_message import describe_call_statistics, describe_text, find_ending
from .answer_service import AnswerService
from .chat_shapes import describe_usage
from .event_responses import respond_with_events
from .request_errors import RequestError
from .request_fields import check_fields
from .request_objects import RequestObject
from .sampling_fields import read_count, read_max_tokens, read_sampler, read_token_options
from .server_settings import ServerSettings
from .shared_fields import StreamOptions, check_model, read_stream_options
from .token_logprobs import LogprobReader, TokenLogprob, list_completion_logprobs
from .tool_requests import ToolPlan

__all__ = ["build_completion_router"]

MOST_LOGPROBS = 5


class CompletionShape:
    """The shape of one answer. prompts: the texts in front of the answers, if they are echoed."""

    def __init__(self, model: str, calls: Sequence[AnswerCall], prompts: Sequence[str]) -> None:
        self.calls, self.prompts = calls, prompts
        self.head = {
            "id": f"cmpl-{uuid4().hex}", "object": "text_completion", "created": int(time.time()), "model": model
        }  # fmt: skip
        self.shows_usage = self.is_begun = False
        self.written = 0

    def describe_choice(
        self, index: int, text: str, ending: str | None, logprobs: Sequence[TokenLogprob] | None, offset: int = 0
    ) -> dict[str, Any]:
        """Return a choice, or a piece of one. offset: the number of characters before it."""
        shown = None if logprobs is None else list_completion_logprobs(logprobs, offset)
        return {"index": index, "text": text, "finish_reason": ending, "logprobs": shown}

    def describe_made(
        self, number: int, sample: int, made: Generation[Any], logprobs: Sequence[TokenLogprob] | None
    ) -> dict[str, Any]:
        """Return the choice of a finished text. logprobs: those of the prompt, too, if it is echoed."""
        call, prompt = self.calls[number], self.prompts[number]
        self.written += made.stats.tokens
        index = number * call.count + sample
        choice = self.describe_choice(index, prompt + made.text, find_ending(call, made, 0), logprobs)
        extension = describe_text(call, made)
        return choice if extension is None else {**choice, "constrain": extension}

    @property
    def usage(self) -> dict[str, int]:
        """The numbers of tokens."""
        return describe_usage(sum(len(call.prompt) for call in self.calls), self.written)

    def make_chunk(self, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """Return a chunk of a stream. The first one has the extensions of the whole answer."""
        extension = {} if self.is_begun else describe_call_statistics(self.calls[0], ())
        self.is_begun = True
        shown = {**({"usage": None} if self.shows_usage else {}), **({"constrain": extension} if extension else {})}
        return {**self.head, "choices": choices, **shown, **more}


def build_completion_router() -> APIRouter:
    """Return the route of completions."""
    router = APIRouter()

    @router.post("/v1/completions")
    async def create_completion(request: Request) -> Response:
        service: AnswerService = request.app.state.service
        calls, prompts, sending = await service.read_request(request, read_completion_request)
        shape = CompletionShape(service.settings.model_name, calls, prompts)
        if sending.is_streamed:
            shape.shows_usage = sending.shows_usage
            return await respond_with_events(stream_completions(service, shape), ends_with="[DONE]")
        return JSONResponse(await complete_all(service, shape))

    return router


def read_completion_request(
    body: RequestObject, service: AnswerService
) -> tuple[list[AnswerCall], list[str], StreamOptions]:
    """Return the calls of a request, one for each prompt, the prompts as texts if they are echoed, and how the answer
    is sent.
    """
    check_fields(body, "completions")
    check_model(body, service.settings)
    prompts, wanted = read_prompts(body, service.settings), read_answer_format(body)
    marks = read_thinking(body, service.settings) if body.has("thinking") else None
    sampler, sampler_options = read_sampler(body)
    is_echoed = bool(body.read_flag("echo"))
    most, length_name = read_max_tokens(body, service.settings, least=0 if is_echoed else 1)
    if not most and not (wanted.is_free and marks is None and sampler is None):
        raise body.refuse(
            length_name, f"{length_name} is 0, and what is to be written has more tokens", code="contradiction",
            hint="With echo alone, 0 returns the prompt.",
        )  # fmt: skip
    options = {**read_token_options(body, service.engine.vocabulary.size), "max_tokens": most}
    constraint, pointer = make_constraint(wanted, ToolPlan(), marks, service.tool_format)
    top = body.read_count("logprobs", 0, MOST_LOGPROBS)
    count = read_count(body, service.settings)
    encoded = [service.encode(prompt, place) for place, prompt in prompts]
    calls = [
        AnswerCall(
            ids, count, {**options, **constraint}, pointer, wanted, ToolPlan(), marks, service.tool_format, top,
            sampler, sampler_options, place, length_name,
        )
        for ids, (place, _) in zip(encoded, prompts)
    ]  # fmt: skip
    decode = service.model.tokenizer.decode
    echoed = [str(decode(ids, skip_special_tokens=True)) if is_echoed else "" for ids in encoded]
    return calls, echoed, read_stream_options(body)


def read_prompts(body: RequestObject, settings: ServerSettings) -> list[tuple[str, Any]]:
    """Return the prompts of a request with their places: texts, or lists of token ids."""
    given, place = body.require("prompt"), body.place("prompt")
    if isinstance(given, str):
        return [(place, str(body.read_text("prompt")))]
    items = body.read_list("prompt", settings.max_n) if not is_ids(given) else [(place, given)]
    for where, item in items or ():
        if not isinstance(item, str) and not is_ids(item):
            raise RequestError(
                f"a text or a list of token ids is wanted here, not {describe_value(item)}", where, code="invalid_type"
            )
    if not items:
        raise body.refuse("prompt", "there is no prompt", code="missing")
    return items


def is_ids(value: Any) -> bool:
    """Return whether a value is a list of token ids."""
    return isinstance(value, list) and bool(value) and all(type(one) is int for one in value)


async def complete_all(service: AnswerService, shape: CompletionShape) -> dict[str, Any]:
    """Return the answer to all prompts."""
    texts = await asyncio.gather(*(service.complete(call) for call in shape.calls))
    choices = []
    for number, (call, several) in enumerate(zip(shape.calls, texts)):
        echoed = await service.read_prompt_logprobs(call) if shape.prompts[number] else []
        for sample, made in enumerate(several):
            found = await service.read_logprobs(call, made.tokens)
            choices.append(shape.describe_made(number, sample, made, None if found is None else [*echoed, *found]))
    extension = describe_call_statistics(shape.calls[0], texts[0])
    return {**shape.head, "choices": choices, "usage": shape.usage, **({"constrain": extension} if extension else {})}


async def stream_completions(service: AnswerService, shape: CompletionShape) -> AsyncGenerator[Any, None]:
    """Yield the chunks of the answers, prompt after prompt."""
    for number, call in enumerate(shape.calls):
        lengths = [len(shape.prompts[number])] * call.count
        readers: list[LogprobReader | None] = [None] * call.count
        begun = False
        async for event in service.stream(call):
            if not begun:
                begun = True
                readers = [await service.open_logprobs(call) for _ in range(call.count)]
                if shape.prompts[number]:
                    echoed = await service.read_prompt_logprobs(call) or None
                    indices = range(number * call.count, (number + 1) * call.count)
                    yield shape.make_chunk(
                        [shape.describe_choice(index, shape.prompts[number], None, echoed) for index in indices]
                    )
            yield await make_completion_chunk(shape, number, event, readers[event.sample], lengths)
    if shape.shows_usage:
        yield shape.make_chunk([], usage=shape.usage)


async def make_completion_chunk(
    shape: CompletionShape, number: int, event: AnswerEvent, reader: LogprobReader | None, lengths: list[int]
) -> dict[str, Any]:
    """Return the chunk of an event. lengths: the characters so far, by sample."""
    index = number * shape.calls[number].count + event.sample
    if isinstance(event, FinishEvent):
        choice = shape.describe_made(number, event.sample, event.generation, None)
        return shape.make_chunk([{**choice, "text": ""}])
    found = None if reader is None else await asyncio.to_thread(reader.read, event.tokens)
    choice = shape.describe_choice(index, event.text, None, found, lengths[event.sample])
    lengths[event.sample] += len(event.text)
    return shape.make_chunk([choice])
