"""Events of a call of an Engine, passed from the thread that steps the model to an event loop.

Pieces that arrive between two reads of a sample are one TextEvent, so that a slow reader gets fewer, longer events.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Union

from ..base.errors import ConstrainError
from ..decoding.events import FinishEvent, StreamEvent, TextEvent
from ..decoding.outcomes import Outcome, Piece
from ..decoding.request_run import RequestRun
from ..decoding.requests import EndListener
from .drawn_texts import DrawnTexts, WantedText
from .engine_call import EngineCall
from .engine_thread import EngineThread
from .masked_batches import draw_texts
from .partial_values import PartialReader

__all__ = ["EventStream"]

Ended = tuple[Union[Outcome, None], Union[BaseException, None]]
Item = tuple[int, int, Union[Piece, Ended, None]]
"""The numbers of a prompt and a sample, and a Piece or the end of the sample; None when the prompt's run is done."""


class EventStream:
    """The events of one call. max_queue: as for `EngineThread.submit`."""

    def __init__(self, call: EngineCall, thread: EngineThread, max_queue: int | None = None) -> None:
        self.call, self.thread, self.max_queue = call, thread, max_queue
        self.loop = asyncio.get_running_loop()
        self.items: deque[Item] = deque()
        self.ready = asyncio.Event()
        self.readers: dict[tuple[int, int], PartialReader] = {}
        self.open = {(prompt, sample) for prompt in range(len(call.prompts)) for sample in range(call.count)}

    def put(self, prompt: int, sample: int, what: Piece | Ended | None) -> None:
        """Add an item, in the thread of the Engine. The reader is woken after the step."""
        self.items.append((prompt, sample, what))
        self.thread.wakeups.add(self.loop, self.ready)

    async def events(self) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of all texts; abandon the texts when closed."""
        runs = self.start()
        left = len(runs)
        try:
            while left:
                await self.ready.wait()
                self.ready.clear()
                items = [self.items.popleft() for _ in range(len(self.items))]
                left -= sum(what is None for _, _, what in items)
                for (prompt, sample), group in groupby(items, key=lambda item: item[:2]):
                    for event in self.make_events(prompt, sample, [what for _, _, what in group], runs):
                        yield event
        finally:
            self.thread.cancel(runs)

    def start(self) -> list[RequestRun]:
        """Queue the requests of the call; return their runs, one for each prompt."""
        call = self.call
        requests = next(draw_texts(call.vocabulary, call.prompts, call.count, call.choice, self.put), [])
        listening = [
            replace(request, end_listener=self.listen_to_ends(number)) for number, request in enumerate(requests)
        ]
        places = {id(request): number for number, request in enumerate(listening)}
        return self.thread.submit(listening, lambda run: self.put(places[id(run.request)], -1, None), self.max_queue)

    def listen_to_ends(self, number: int) -> EndListener:
        """Return a listener to the ends of the samples of one prompt."""
        return lambda sample, outcome, error: self.put(number, sample, (outcome, error))

    def make_events(
        self, prompt: int, sample: int, items: Sequence[Piece | Ended | None], runs: Sequence[RequestRun]
    ) -> Iterator[StreamEvent]:
        """Yield the events of successive items of a sample, or of the end of a prompt (sample -1)."""
        pieces = [item for item in items if isinstance(item, Piece)]
        if pieces:
            text = "".join(piece.text for piece in pieces)
            reader = self.readers.setdefault((prompt, sample), PartialReader(self.call.prompts[prompt].request))
            reader.feed(text)
            tokens = tuple(piece.token for piece in pieces if piece.token >= 0)
            yield TextEvent(prompt, sample, text, tokens, reader)
        for item in items:
            if item is None:
                yield from self.end_prompt(prompt, runs[prompt])
            elif not isinstance(item, Piece):
                yield self.end_text(prompt, sample, *item)

    def end_prompt(self, prompt: int, run: RequestRun) -> Iterator[FinishEvent]:
        """Complete the statistics of a prompt; yield the ends of its texts that were abandoned."""
        texts = DrawnTexts([WantedText(outcome) for outcome in run.outcomes if outcome is not None])
        self.call.complete_stats(prompt, texts)
        for sample in sorted(sample for number, sample in self.open if number == prompt):
            closed = ConstrainError("the Engine was closed before the text had ended")
            yield self.end_text(prompt, sample, None, closed)

    def end_text(self, prompt: int, sample: int, outcome: Outcome | None, error: BaseException | None) -> FinishEvent:
        """Return the FinishEvent of a text; with an error if it failed or is refused."""
        self.open.discard((prompt, sample))
        if outcome is not None:
            try:
                return FinishEvent(prompt, sample, self.call.make_generation(prompt, outcome))
            except Exception as refused:
                error = refused
        return FinishEvent(prompt, sample, error=error)
