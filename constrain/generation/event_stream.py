"""Events of a call of an Engine, passed from the thread that steps the model to an event loop.

Pieces that arrive between two reads of a sample are one TextEvent, so that a slow reader gets fewer, longer events.
Texts that have ended are judged one after the other in a thread beside the loop, since a check may be slow; meanwhile
the events of other texts go on. Each prompt is drawn in rounds of its own (`PromptDrawing`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, Union

from ..base.errors import ConstrainError
from ..decoding.events import FinishEvent, RetryEvent, StreamEvent, TextEvent
from ..decoding.outcomes import Outcome, Piece
from ..decoding.request_run import RequestRun
from ..decoding.requests import EndListener
from .engine_call import EngineCall
from .engine_thread import EngineThread
from .masked_batches import BatchPart, PromptDrawing
from .partial_values import PartialReader

__all__ = ["EventStream"]

Item = Union[Piece, RetryEvent, FinishEvent]
NextParts = Sequence[tuple[PromptDrawing, BatchPart]]
Judgement = Callable[[], NextParts]
"""Judges a text, or ends a run; returns the requests of the next round of the prompt, if one begins."""


class EventStream:
    """The events of one call. max_queue: as for `EngineThread.submit`."""

    def __init__(self, call: EngineCall, thread: EngineThread, max_queue: int | None = None) -> None:
        self.call, self.thread, self.max_queue = call, thread, max_queue
        self.loop = asyncio.get_running_loop()
        self.items: deque[Item] = deque()
        self.ready = asyncio.Event()
        self.judgements: asyncio.Queue[Judgement] = asyncio.Queue()
        self.readers: dict[tuple[int, int], PartialReader] = {}
        self.drawings = [
            PromptDrawing(call.vocabulary, number, prompt, call.count, call.choice, self.put_piece)
            for number, prompt in enumerate(call.prompts)
        ]
        self.runs: list[RequestRun] = []
        self.running = [0] * len(self.drawings)  # the runs of the round of each prompt that are not done

    def put(self, item: Item) -> None:
        """Add an item, from any thread."""
        self.items.append(item)
        self.call_in_loop(self.ready.set)

    def put_piece(self, piece: Piece) -> None:
        """Add a Piece, in the thread of the Engine. The reader is woken after the step."""
        self.items.append(piece)
        self.thread.wakeups.add(self.loop, self.ready)

    def call_in_loop(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function in the thread of the event loop; nobody reads the events if it was closed."""
        try:
            self.loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop was closed; nobody reads
            pass

    async def events(self) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of all texts; abandon the texts when closed."""
        self.submit([(drawing, part) for drawing in self.drawings for part in drawing.plan_round()], self.max_queue)
        left = len(self.drawings) * self.call.count
        judging = asyncio.create_task(self.judge_texts())
        judging.add_done_callback(lambda _: self.ready.set())
        try:
            while left:
                await self.ready.wait()
                self.ready.clear()
                if judging.done():
                    judging.result()  # raises: it has no other end
                items = [self.items.popleft() for _ in range(len(self.items))]
                for event in self.merge_pieces(items):
                    left -= isinstance(event, FinishEvent)
                    yield event
        finally:
            judging.cancel()
            self.thread.cancel(self.runs)

    def merge_pieces(self, items: Sequence[Item]) -> Iterator[StreamEvent]:
        """Yield events, of which one stands for successive Pieces of a sample."""
        for (prompt, sample), group in groupby(items, key=lambda item: (item.prompt, item.sample)):
            pieces: list[Piece] = []
            for item in group:
                if isinstance(item, Piece):
                    pieces.append(item)
                    continue
                if pieces:
                    yield self.make_text_event(prompt, sample, pieces)
                self.readers.pop((prompt, sample), None)
                pieces = []
                yield item
            if pieces:
                yield self.make_text_event(prompt, sample, pieces)

    def make_text_event(self, prompt: int, sample: int, pieces: Sequence[Piece]) -> TextEvent:
        """Return the event of successive Pieces."""
        text = "".join(piece.text for piece in pieces)
        reader = self.readers.setdefault((prompt, sample), PartialReader(self.call.prompts[prompt].request))
        reader.feed(text)
        return TextEvent(prompt, sample, text, tuple(piece.token for piece in pieces if piece.token >= 0), reader)

    # ---- texts that have ended ----------------------------------------------------------------------------------

    def submit(self, parts: NextParts, max_queue: int | None) -> None:
        """Queue the requests of a round. max_queue: None for texts that are drawn again, since what has begun is not
        refused.
        """
        listening = [
            (drawing, replace(part, request=replace(part.request, end_listener=self.listen_to_ends(drawing, part))))
            for drawing, part in parts
        ]
        sources = {part.request: (drawing, part) for drawing, part in listening}
        for drawing, _ in listening:
            self.running[drawing.number] += 1
        self.runs += self.thread.submit(
            list(sources), lambda run: self.judge_later(partial(self.end_run, *sources[run.request], run)), max_queue
        )

    def listen_to_ends(self, drawing: PromptDrawing, part: BatchPart) -> EndListener:
        """Return a listener to the ends of the texts of one request."""
        return lambda sample, outcome, error: self.judge_later(
            partial(self.take_end, drawing, part.texts[sample], outcome, error)
        )

    def judge_later(self, judgement: Judgement) -> None:
        """Add a judgement, from any thread."""
        self.call_in_loop(self.judgements.put_nowait, judgement)

    async def judge_texts(self) -> None:
        """Judge texts until cancelled, and draw those again that are refused."""
        while True:
            judge = await self.judgements.get()
            parts = await asyncio.to_thread(judge)
            if parts:
                self.submit(parts, None)

    def take_end(
        self, drawing: PromptDrawing, text: int, outcome: Outcome | None, error: BaseException | None
    ) -> NextParts:
        """Accept or refuse a text that has ended, and add the event that says so."""
        reason = drawing.take_end(text, outcome, error)
        if reason:
            self.put(RetryEvent(drawing.number, text, drawing.texts.wanted[text].attempt, reason))
        else:
            self.finish_texts(drawing, [text])
        return ()

    def end_run(self, drawing: PromptDrawing, part: BatchPart, run: RequestRun) -> NextParts:
        """Return the requests of the next round of a prompt, if this was the last run of a round."""
        if run.is_cancelled:
            closed = ConstrainError("the Engine was closed before the text had ended")
            abandoned = [text for text in part.texts if drawing.texts.wanted[text].is_missing]
            for text in abandoned:
                drawing.take_end(text, None, closed)
            self.finish_texts(drawing, abandoned)
        self.running[drawing.number] -= 1
        if self.running[drawing.number]:
            return ()
        missing, parts = drawing.texts.list_missing(), drawing.plan_round()
        self.finish_texts(drawing, [text for text in missing if not drawing.texts.wanted[text].is_missing])
        return [(drawing, one) for one in parts]

    def finish_texts(self, drawing: PromptDrawing, texts: Sequence[int]) -> None:
        """Add the last events of texts of a prompt, of which the last of all has complete statistics."""
        if drawing.texts.outcomes and not drawing.texts.list_missing():
            self.call.complete_stats(drawing.number, drawing.texts)
        for text in texts:
            wanted = drawing.texts.wanted[text]
            self.put(FinishEvent(drawing.number, text, wanted.generation, wanted.error))
