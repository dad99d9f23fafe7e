"""`Engine`: a model with its key-value caches and a scheduler, which batches the requests of all threads and tasks.

with constrain.Engine("demo") as engine:
    engine.generate(["Describe a person.", "Name a colour."], schema=[Person, None])
    await engine.agenerate("Describe a person.", schema=Person, n=8)
    async for event in engine.stream("Describe a person.", schema=Person): ...
    with engine.session("Describe a person.") as s: ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import finalize

from ..base.errors import ConstrainError, UnsupportedError, check_count, check_type
from ..base.keyword_names import check_keywords, explain_keywords
from ..decoding.events import StreamEvent
from ..decoding.model_runner import DEFAULT_BOUNDS, CacheBounds
from ..decoding.request_run import RequestRun
from ..decoding.requests import GenerationRequest
from ..decoding.scheduler import PREFILL_TOKENS, SLOTS, Scheduler
from ..integrations.transformers_models import Prompt
from .draft_plan import Draft, plan_drafts
from .engine_call import EngineCall, EngineOptions, PromptResult, prepare_call
from .engine_thread import EngineThread
from .event_stream import EventStream
from .masked_batches import BatchDrawing
from .model_preparation import PromptOptions, open_runner, prepare_prompt, resolve_model
from .prompt_lists import Prompts
from .searched_texts import search_call
from .session_opening import begin_session
from .slot_model import SlotModel
from .text_session import Session

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["Engine"]

PREFIXES = 8
"""Default number of ended texts that are kept for their prefix."""


ENGINE_OPTIONS = frozenset(EngineOptions.__annotations__)


class Engine:
    """A model, its caches, and a scheduler that generates many texts as one batch.

    Calls from several threads and tasks share batches: a thread of the engine steps the model while there is work, and
    texts join and leave between its steps. The same seed gives the same texts whatever else is in the batch, as far as
    the model's arithmetic does not depend on the shape of a batch (differences of about 1e-6 in log-probabilities,
    which change a sampled token about as rarely as that).

    Parameters
    ----------
    model : object
        As for `constrain.generate`.
    tokenizer : object, optional
        The tokenizer or Vocabulary of the model.
    slots : int
        Maximum number of texts in a batch; further ones wait.
    prefill_tokens : int
        Maximum number of prompt tokens that a step feeds beside the texts that are being generated.
    dtype, device, device_map : optional
        As for `load_model`, for a model given by name.
    draft : str, model, list of DraftSource, optional
        As for `constrain.generate`, for all calls that give no other. What "suffix" and "recycling" learn is shared by
        all texts of the Engine.
    prefixes : int
        Maximum number of ended texts whose keys and values are kept, in slots that no text needs, for prompts that
        begin as they do; the one that was not used for longest gives way. ``stats.reused_tokens`` of a text says how
        many tokens of its prompt were found. Prompts of texts that are running are reused in any case.
    cache_bytes : int
        Maximum size of the key-value cache while no text is generated, and with kept texts. While texts are generated,
        it has at most this size, or twice what they need, their number and length rounded up to powers of two.
    max_queue : int, optional
        Maximum number of prompts that wait for a slot. A call that would exceed it raises LimitError.

    Raises
    ------
    ConstrainError
        If the model cannot be loaded.
    """

    @explain_keywords
    def __init__(
        self, model: Any, tokenizer: Any = None, *, slots: int = SLOTS, prefill_tokens: int = PREFILL_TOKENS,
        dtype: Any = None, device: Any = None, device_map: Any = None, draft: Draft = None, prefixes: int = PREFIXES,
        cache_bytes: int = DEFAULT_BOUNDS.bytes, max_queue: int | None = None,
    ) -> None:  # fmt: skip
        bounds = CacheBounds(
            check_count("prefixes", prefixes), check_count("slots", slots, 1), check_count("cache_bytes", cache_bytes)
        )  # fmt: skip
        self.max_queue = max_queue if max_queue is None else check_count("max_queue", max_queue)
        self.model = resolve_model(model, tokenizer, dtype=dtype, device=device, device_map=device_map)
        self.vocabulary, self.runner = open_runner(self.model, tokenizer, bounds)
        self.drafts = plan_drafts(draft, self.model, self.vocabulary)
        self.scheduler = Scheduler(self.runner, slots=slots, prefill_tokens=prefill_tokens)
        self._thread = EngineThread(self.scheduler)
        finalize(self, self._thread.stop)

    def generate(self, prompts: Prompts = None, **options: Unpack[EngineOptions]) -> PromptResult:
        """Generate texts for one prompt or several, and wait for them.

        Parameters
        ----------
        prompts : prompt or list of prompts
            A text, a list of messages or of token ids; or a list of these.
        **options
            As those of `constrain.generate`, see `EngineOptions`: schema, regex, grammar, choices or type, each one
            constraint or a list of one for each prompt (None: unconstrained); check, retries; n, max_tokens, seed
            (one, or one for each prompt); those that choose tokens, end texts and compose prompts. errors="return"
            returns an error in place of a prompt's results.

        Returns
        -------
        Generation, list of Generation, or list of these
            As `constrain.generate`; for a list of prompts or constraints, a list of the results of each.

        Raises
        ------
        ConstrainError
            As `constrain.generate`, and after `close`.
        """
        call = self._prepare(prompts, options)
        if call.search is not None:
            return search_call(call, self.open_model, workers=self.scheduler.slots)
        drawing, most = self._draw(call), self.max_queue
        while requests := drawing.plan_round():
            drawing.take_runs(self._wait(requests, most))
            most = None
        return call.collect(drawing.texts)

    async def agenerate(self, prompts: Prompts = None, **options: Unpack[EngineOptions]) -> PromptResult:
        """Generate texts as `generate`, without blocking the event loop. Cancelling the task frees the slots."""
        call = await asyncio.to_thread(self._prepare, prompts, options)
        if call.search is not None:
            return await self._search(call)
        drawing, most = self._draw(call), self.max_queue
        while requests := drawing.plan_round():
            await asyncio.to_thread(drawing.take_runs, await self._await(requests, most))  # checks may be slow
            most = None
        return call.collect(drawing.texts)

    async def stream(self, prompts: Prompts = None, **options: Unpack[EngineOptions]) -> AsyncIterator[StreamEvent]:
        """Generate texts as `generate`, and yield events: `TextEvent` and, for each text, one `FinishEvent`.

        Events of different texts alternate. A text that a validator or check refuses is drawn again as by `generate`: a
        `RetryEvent` says so, and the TextEvents of the new text follow. An error of a text is in its FinishEvent.
        Closing the iterator abandons the texts that have not ended and frees their slots.
        """
        call = await asyncio.to_thread(self._prepare, prompts, options)
        if call.search is not None:
            raise UnsupportedError("search= has no texts to stream before it ends", hint="Use generate or agenerate.")
        async with aclosing(EventStream(call, self._thread, self.max_queue).events()) as events:
            async for event in events:
                yield event

    def session(self, prompt: Prompt = None, *, seed: int | None = None, max_tokens: int = 512) -> Session:
        """Start a session in a slot of this engine, as `constrain.session`.

        Sessions of several threads share batches with each other and with all other calls. Between two fields the slot
        only saves work: it is given up if another call needs it, and freed when the session is closed.

        Parameters
        ----------
        prompt, seed, max_tokens
            As for `constrain.session`.

        Returns
        -------
        Session
        """

        def open_model(ids: Sequence[int] | None) -> SlotModel:
            if ids is None:
                ids = prepare_prompt(self.model, None, None, PromptOptions()).encode()
            return self.open_model(ids, 1)

        return begin_session(self.model, self.vocabulary, prompt, open_model, seed=seed, max_tokens=max_tokens)

    def close(self) -> None:
        """Abandon all texts, stop the thread and free the caches. Further calls raise ConstrainError."""
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepare(self, prompts: Prompts, options: EngineOptions) -> EngineCall:
        check_keywords("Engine.generate", options, ENGINE_OPTIONS)
        if options.get("search") is None and options.get("decide") is None:
            options.setdefault("draft", self.drafts)
        return prepare_call(self.model, self.vocabulary, self.runner, prompts, **options)

    def _draw(self, call: EngineCall) -> BatchDrawing:
        return BatchDrawing(call.vocabulary, call.prompts, call.count, call.choice)

    def open_model(self, prompt: Sequence[int], width: int | None = None) -> SlotModel:
        """Return the model after a prompt, in the slots of this engine, for samplers and searches.

        Its rows are computed in the batches of all other calls.

        Parameters
        ----------
        prompt : sequence of int
            Token ids; empty for a model that holds its own prompt.
        width : int, optional
            Most texts whose keys and values are kept between calls; by default one for each slot.

        Returns
        -------
        SlotModel
            A `LanguageModel`. Close it to free its slots.
        """
        check_type("prompt", prompt, (list, tuple), "give a list of token ids")
        for token in prompt:
            check_type("a token of the prompt", token, int, "give a list of token ids")
        left = self.runner.count_positions_left(prompt)
        width = self.scheduler.slots if width is None else check_count("width", width, 1)
        return SlotModel(self._thread.read_rows, self._thread.free_slots, prompt, left, width)

    async def _search(self, call: EngineCall) -> PromptResult:
        """Return the results of a call with a search. Cancelling the task ends it."""
        models: list[SlotModel] = []

        def open_model(prompt: Sequence[int]) -> SlotModel:
            models.append(self.open_model(prompt))
            return models[-1]

        try:
            return await asyncio.to_thread(search_call, call, open_model, workers=self.scheduler.slots)
        except asyncio.CancelledError:
            for model in models:
                model.stop()
            raise

    def _submit(
        self, requests: list[GenerationRequest], max_queue: int | None
    ) -> tuple[list[RequestRun], list[Future[None]]]:
        """Queue requests; return their runs, and futures that are done when the runs are.

        max_queue: None for texts that are drawn again, since what has begun is not refused.
        """
        futures: list[Future[None]] = [Future() for _ in requests]
        for future in futures:
            future.set_running_or_notify_cancel()  # a cancelled task must not cancel what the thread will set
        places = {id(request): future for request, future in zip(requests, futures)}
        runs = self._thread.submit(requests, lambda run: places[id(run.request)].set_result(None), max_queue)
        return runs, futures

    def _wait(self, requests: list[GenerationRequest], max_queue: int | None) -> list[RequestRun]:
        """Return the runs of requests once they are done."""
        runs, futures = self._submit(requests, max_queue)
        try:
            for future in futures:
                future.result()
        except BaseException:
            self._thread.cancel(runs)
            raise
        return check_runs(runs)

    async def _await(self, requests: list[GenerationRequest], max_queue: int | None) -> list[RequestRun]:
        """Return the runs of requests once they are done."""
        runs, futures = self._submit(requests, max_queue)
        try:
            await asyncio.gather(*(asyncio.wrap_future(future) for future in futures))
        except BaseException:
            self._thread.cancel(runs)
            raise
        return check_runs(runs)


def check_runs(runs: list[RequestRun]) -> list[RequestRun]:
    """Return the runs. Raise the error that interrupted a step, if one did, or ConstrainError if a run was abandoned
    because the Engine was closed.
    """
    for run in runs:
        if run.is_cancelled and run.error is not None:
            raise run.error
    if any(run.is_cancelled for run in runs):
        raise ConstrainError("the Engine was closed before the text had ended")
    return runs
