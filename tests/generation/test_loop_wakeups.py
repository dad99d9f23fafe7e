"""An event loop is woken once for all that a step of the model has to tell its tasks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from constrain import Engine, Vocabulary
from constrain.decoding.events import TextEvent
from constrain.generation.loop_wakeups import LoopWakeups, set_events
from tests.model_factory import TableModel

BYTES = Vocabulary.bytes()


def test_events_of_a_loop_are_set_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        loop, calls = asyncio.get_running_loop(), list[Any]()
        call = loop.call_soon_threadsafe
        monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *given: (calls.append(given), call(*given)))
        wakeups, events, other = LoopWakeups(), [asyncio.Event() for _ in range(3)], asyncio.Event()
        for event in [*events, *events]:
            wakeups.add(loop, event)
        assert not any(event.is_set() for event in events)
        wakeups.send()
        await asyncio.wait_for(asyncio.gather(*(event.wait() for event in events)), 60)
        wakeups.send()
        assert len(calls) == 1
        assert not other.is_set()

    asyncio.run(run())


def test_a_closed_loop_does_not_keep_others_from_being_woken() -> None:
    closed = asyncio.new_event_loop()
    closed.close()

    async def run() -> None:
        wakeups, event = LoopWakeups(), asyncio.Event()
        wakeups.add(closed, asyncio.Event())
        wakeups.add(asyncio.get_running_loop(), event)
        wakeups.send()
        await asyncio.wait_for(event.wait(), 60)

    asyncio.run(run())


def test_streams_of_a_batch_are_woken_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine(TableModel(BYTES.size, seed=3), BYTES, slots=8, draft="none") as engine:

        async def read(seed: int) -> int:
            events = engine.stream(regex="[a-z]{20}", seed=seed)
            return sum([len(one.tokens) async for one in events if isinstance(one, TextEvent)])

        async def run() -> tuple[list[int], int]:
            loop, woken = asyncio.get_running_loop(), list[Any]()
            call = loop.call_soon_threadsafe

            def count(callback: Any, *given: Any, **more: Any) -> Any:
                woken.append(callback)
                return call(callback, *given, **more)

            monkeypatch.setattr(loop, "call_soon_threadsafe", count)
            return await asyncio.gather(*map(read, range(8))), woken.count(set_events)

        tokens, woken = asyncio.run(run())
        assert tokens == [20] * 8
        assert 0 < woken <= engine.scheduler.steps
