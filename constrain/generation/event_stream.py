"""Events of a call of an Engine, passed from the thread that steps the model to an event loop.

Pieces that arrive between two reads of a sample are one TextEvent, so that a slow reader gets fewer, longer events.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from itertools import groupby
from typing import Union

from ..base.errors import ConstrainError
from ..decoding.events import FinishEvent, StreamEvent, TextEvent
from ..decoding.outcomes import Outcome, Piece
from ..decoding.request_run import RequestRun
from .drawn_texts import DrawnTexts, WantedText
from .engine_call import EngineCall
from .engine_thread import EngineThread
from .masked_batches import draw_texts

__all__ = ["EventStream"]

Item = tuple[int, int, Union[Piece, None]]
"""The numbers of a prompt and a sample, and a Piece; None when the prompt's run is done."""


class EventStream:
    """The events of one call."""

    def __init__(self, call: EngineCall, thread: EngineThread) -> None:
        self.call, self.thread = call, thread
        self.loop = asyncio.get_running_loop()
        self.items: deque[Item] = deque()
        self.ready = asyncio.Event()

    def put(self, prompt: int, sample: int, piece: Piece | None) -> None:
        """Add an item, from any thread."""
        self.items.append((prompt, sample, piece))
        try:
            self.loop.call_soon_threadsafe(self.ready.set)
        except RuntimeError:  # the loop was closed; nobody reads
            pass

    async def events(self) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of all texts; abandon the texts when closed."""
        call = self.call
        texts = draw_texts(call.vocabulary, call.prompts, call.count, call.choice, self.put)
        requests = next(texts, [])
        places = {id(request): number for number, request in enumerate(requests)}
        runs = self.thread.submit(requests, lambda run: self.put(places[id(run.request)], -1, None))
        left = len(runs)
        try:
            while left:
                await self.ready.wait()
                self.ready.clear()
                items = [self.items.popleft() for _ in range(len(self.items))]
                for key, group in groupby(items, key=lambda item: (item[0], item[1])):
                    pieces = [piece for _, _, piece in group if piece is not None]
                    if pieces:
                        tokens = tuple(piece.token for piece in pieces if piece.token >= 0)
                        yield TextEvent(*key, "".join(piece.text for piece in pieces), tokens)
                    else:
                        left -= 1
                        for event in self.finish(key[0], runs[key[0]]):
                            yield event
        finally:
            self.thread.cancel(runs)

    def finish(self, number: int, run: RequestRun) -> Iterator[FinishEvent]:
        """Yield the FinishEvents of a prompt."""
        texts = DrawnTexts([WantedText(outcome) for outcome in run.outcomes if outcome is not None])
        self.call.complete_stats(number, texts)
        for sample, (outcome, error) in enumerate(zip(run.outcomes, run.errors)):
            if outcome is None:
                closed = ConstrainError("the Engine was closed before the text had ended")
                yield FinishEvent(number, sample, error=error or closed)
            else:
                yield self.finish_text(number, sample, outcome)

    def finish_text(self, number: int, sample: int, outcome: Outcome) -> FinishEvent:
        """Return the FinishEvent of a text; with an error if the type rejects its value."""
        try:
            return FinishEvent(number, sample, self.call.make_generation(number, outcome))
        except Exception as error:
            return FinishEvent(number, sample, error=error)
