"""`AnswerService`: runs the calls of all endpoints on one Engine.

Every answer passes through `complete` or `stream`, so this is the place of what concerns all requests alike.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any, TypeVar, cast

from fastapi import Request

from ..base.errors import LimitError
from ..base.work import active_budget
from ..decoding.events import AnswerEvent, FinishEvent, RetryEvent, StreamEvent, TextEvent
from ..decoding.outcomes import Stats
from ..engine.length_limits import make_context_error, make_limit_error
from ..generation.generation_result import Generation
from ..generation.inference_engine import Engine
from ..generation.pipeline import generate
from ..integrations.context_length import check_prompt_length
from ..integrations.transformers_models import LoadedModel, Prompt
from .answer_call import AnswerCall
from .call_formats import choose_tool_format
from .operations import Operations
from .paced_budget import PacedBudget
from .request_body import parse_body, receive_body
from .request_errors import RequestError, locate_errors
from .request_objects import RequestObject
from .schema_notes import begin_schema_notes, note_schema_warnings
from .server_settings import ServerSettings
from .token_logprobs import LogprobReader, TokenLogprob

__all__ = ["AnswerService"]

T = TypeVar("T")

BYTES_A_UNIT = 2
"""Bytes of a body that are parsed and encoded in a unit of work; bodies of 40 KB and more go to the slow queue."""
CONSTRAINTS = ("schema", "regex", "grammar", "choices")


class AnswerService:
    """The Engine of a server, with its settings and operations.

    started: seconds since 1970. tool_format: how the model writes calls. sampling: held by a call with a sampler of its
    own, which runs the model beside the Engine, one at a time.
    """

    def __init__(self, engine: Engine, settings: ServerSettings, operations: Operations) -> None:
        self.engine, self.settings, self.operations = engine, settings, operations
        self.started = int(time.time())
        template = getattr(getattr(engine.model, "tokenizer", None), "chat_template", None)
        self.tool_format = settings.tool_format or choose_tool_format(template)
        self.sampling = asyncio.Lock()

    @property
    def model(self) -> LoadedModel:
        """The model. Raise RequestError if it takes no prompts."""
        if not isinstance(self.engine.model, LoadedModel):
            raise RequestError("the model of this server holds its own prompt", status=500, code="no_prompts")
        return self.engine.model

    async def read_request(self, request: Request, read: Callable[[RequestObject, AnswerService], T]) -> T:
        """Return what `read` makes of the body of a request. Both the body and what it asks for are read in a thread.

        Raises
        ------
        RequestError
            If the body is refused, by `read` too; with status 429 if too many others wait.
        """
        data = await receive_body(request, self.settings)

        def read_in_turn() -> T:
            budget = active_budget()
            if isinstance(budget, PacedBudget):
                budget.take_turn(len(data) // BYTES_A_UNIT)
            return read(self.parse(request, data), self)

        with self.operations.count_reading(), note_schema_warnings(""):
            return await asyncio.to_thread(read_in_turn)

    def parse(self, request: Request, data: bytes) -> RequestObject:
        """Return the body of a request. Raise RequestError as `parse_body`, or if an equal constraint has taken more
        work than the server allows.
        """
        body, refused = parse_body(data, self.settings), self.operations.refused
        request.state.digest = refused.digest(request.url.path, body)
        refused.check(request.state.digest)
        return RequestObject(body)

    def encode(self, prompt: Prompt, pointer: str) -> list[int]:
        """Return the token ids of a prompt. Raise RequestError at its place if the model's context is too short."""
        with locate_errors(pointer):
            ids = self.model.prompt_ids(prompt)
        try:
            check_prompt_length(self.model.model, len(ids), self.settings.model_name)
        except LimitError as error:
            raise RequestError(error.cause, pointer, hint="Shorten it.", code="context_length_exceeded") from None
        return ids

    async def complete(self, call: AnswerCall) -> list[Generation[Any]]:
        """Return the n texts of a call. Cancelling the task abandons them.

        Raises
        ------
        RequestError
            If the constraint or the prompt is refused.
        """
        if call.sampler is not None:
            return await self.sample(call)
        if call.is_empty:
            with self.operations.admit(call):
                return [Generation("", "", (), 0.0, 0.0, "length", Stats()) for _ in range(call.count)]
        begin_schema_notes(call.pointer)
        with locate_errors(call.pointer), explain_length(call), self.operations.admit(call) as (options, meter):
            texts = list(await self.engine.agenerate(call.prompt, n=call.count, **options))
            meter.count_texts(texts)
            return texts

    async def sample(self, call: AnswerCall) -> list[Generation[Any]]:
        """Return the texts that a sampler of `constrain.generate` draws. A cancelled call ends when they are drawn."""
        if not any(name in call.options for name in CONSTRAINTS):
            raise RequestError(
                "a sampler corrects the distribution of constrained answers, and this one is not constrained",
                "/sampler", code="contradiction",
            )  # fmt: skip
        begin_schema_notes(call.pointer)
        with locate_errors("/sampler"), explain_length(call), self.operations.admit(call) as (options, meter):
            options.pop("draft", None)  # only the Engine drafts
            options |= {**call.sampler_options, "sampler": call.sampler, "n": call.count}
            async with self.sampling:
                draw: Any = partial(generate, self.model, call.prompt, **options)
                texts = list(await asyncio.to_thread(draw))
            meter.count_texts(texts)
            return texts

    async def stream(self, call: AnswerCall) -> AsyncGenerator[AnswerEvent, None]:
        """Yield the events of the n texts of a call as `Engine.stream` does. Closing it abandons them.

        The texts of a call with a sampler, or of no tokens, come when all are there. What a client has been sent cannot
        be taken back. No validator refuses texts here; but a text whose completion the vocabulary cannot spell is drawn
        again, which nobody notices if none of it was sent, and is an error otherwise.

        Raises
        ------
        RequestError
            If the constraint or the prompt is refused, before the first event; or for the error of a text.
        """
        if call.sampler is not None or call.is_empty:
            for number, made in enumerate(await self.complete(call)):
                if made.tokens:
                    yield TextEvent(0, number, made.text, made.tokens)
                yield FinishEvent(0, number, made)
            return
        begin_schema_notes(call.pointer)
        with locate_errors(call.pointer), explain_length(call), self.operations.admit(call) as (options, meter):
            stream = cast(AsyncGenerator[StreamEvent, None], self.engine.stream(call.prompt, n=call.count, **options))
            async with aclosing(stream) as events:
                begun: set[int] = set()
                async for event in events:
                    if isinstance(event, RetryEvent):
                        check_retry(event, begun)
                        continue
                    if isinstance(event, FinishEvent) and event.error is not None:
                        raise event.error
                    begun.add(event.sample)
                    meter.count_event(event)
                    yield event

    async def open_logprobs(self, call: AnswerCall) -> LogprobReader | None:
        """Return a reader of the log-probabilities of one text; None if none are wanted. Its `read` runs the model:
        call it in a thread.
        """
        if call.top_logprobs is None:
            return None
        lm = await asyncio.to_thread(self.model.on, call.prompt)
        return LogprobReader(lm, self.engine.vocabulary, call.top_logprobs)

    async def read_prompt_logprobs(self, call: AnswerCall) -> list[TokenLogprob]:
        """Return the log-probabilities of the tokens of the prompt; none if none are wanted."""
        if call.top_logprobs is None:
            return []
        first, *rest = call.prompt
        lm = await asyncio.to_thread(self.model.on, [first])
        reader = LogprobReader(lm, self.engine.vocabulary, call.top_logprobs)
        return [reader.describe_first(first), *await asyncio.to_thread(reader.read, rest)]

    async def read_logprobs(self, call: AnswerCall, tokens: Sequence[int]) -> list[Any] | None:
        """Return the log-probabilities of a text; None if none are wanted."""
        reader = await self.open_logprobs(call)
        return None if reader is None else await asyncio.to_thread(reader.read, tokens)


@contextmanager
def explain_length(call: AnswerCall) -> Iterator[None]:
    """Turn the error that no answer is short enough into a RequestError: at the prompt where it fills the context, and
    otherwise with the request's own name of the most tokens.
    """
    try:
        yield
    except LimitError as error:
        if error.shortest is None:
            raise
        if error.is_of_context:
            said, place, code = make_context_error(*error.shortest), call.prompt_pointer, "context_length_exceeded"
        else:
            said, code = make_limit_error(*error.shortest, call.length_name), "limit_exceeded"
            place = call.pointer or f"/{call.length_name}"  # the server's own constraint has no place in the request
        raise RequestError(said.cause, place, hint=said.hint, code=code) from error


def check_retry(event: RetryEvent, begun: set[int]) -> None:
    """Raise RequestError if a text is drawn again of which some was sent. begun: the samples of which some was."""
    if event.sample in begun:
        raise RequestError(
            f"choice {event.sample} would have to be written again, and its beginning was sent: {event.reason}",
            status=500, code="answer_refused", hint="Send the request without `stream`.",
        )  # fmt: skip
