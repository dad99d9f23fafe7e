"""However many requests come, there is only a certain number of threads, and some of them are free for others."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from constrain.base.work import spend_work
from constrain.serving import answer_service, tool_requests
from constrain.serving.answer_service import BYTES_A_UNIT
from constrain.serving.compile_pool import CHEAP
from constrain.serving.paced_budget import UNITS
from constrain.serving.server_settings import ServerSettings
from tests.running_server import chat_body, read_answer, run_in_thread, wait_until

SLOW = {"type": "function", "function": {"name": "slow", "parameters": {"type": "object"}}}
NARROW = ServerSettings(compile_threads=2, max_queue=5, compile_work=1 << 60)


def count_threads() -> int:
    return sum(one.name.startswith("constrain-compile") for one in threading.enumerate())


def test_slow_tools_occupy_their_places_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools are compiled before a request has its texts' places in the queue."""
    with run_in_thread(NARROW, slots=1) as running:
        before = count_threads()

        def check_slowly(*_: Any) -> Any:
            while True:
                spend_work(UNITS, "a test")
                time.sleep(0.001)  # without the interpreter lock

        monkeypatch.setattr(tool_requests, "check_tool", check_slowly)
        places = NARROW.max_queue + 1
        slow = [running.send(chat_body(max_tokens=1, tools=[SLOW])) for _ in range(places - 1)]
        wait_until(lambda: len(running.operations.pool.slow) == places - 1)
        assert read_answer(running.send(chat_body(max_tokens=1)))[0] == 200
        slow.append(running.send(chat_body(max_tokens=1, tools=[SLOW])))
        wait_until(lambda: len(running.operations.pool.slow) == places)
        assert [read_answer(running.send(chat_body(max_tokens=1)))[0] for _ in range(3)] == [429] * 3
        assert count_threads() - before <= NARROW.compile_threads + places
        slow.pop().close()
        wait_until(lambda: running.operations.reading == places - 1)
        assert read_answer(running.send(chat_body(max_tokens=1)))[0] == 200
        for one in slow:
            one.close()
        wait_until(lambda: not running.operations.pool.working)


def test_large_bodies_leave_the_fast_queue_to_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with run_in_thread(NARROW, slots=1) as running:
        go_on, parse = threading.Event(), answer_service.parse_body

        def parse_slowly(data: bytes, settings: ServerSettings) -> Any:
            if len(data) > BYTES_A_UNIT * CHEAP:
                go_on.wait()
            return parse(data, settings)

        monkeypatch.setattr(answer_service, "parse_body", parse_slowly)
        text = "x" * BYTES_A_UNIT * CHEAP
        large = [running.send(chat_body(text, max_tokens=1)) for _ in range(4)]
        wait_until(lambda: len(running.operations.pool.slow) == 4)
        assert read_answer(running.send(chat_body(max_tokens=1)))[0] == 200
        large.pop().close()  # while it waits for its turn, or works
        go_on.set()
        assert [read_answer(one)[0] for one in large] == [400] * 3  # longer than the model's context
        wait_until(lambda: not running.operations.pool.working)


def test_draws_of_a_sampler_end_when_their_client_hangs_up() -> None:
    """They hold one of the threads, and the draws of the next request would run beside them."""
    with run_in_thread(slots=1) as running:
        service, pool = running.app.state.service, running.operations.pool
        endless = {"regex": "[a-z ]{900}", "sampler": "awrs", "n": 16, "max_tokens": 1_000}
        for _ in range(2):
            connection = running.send(chat_body(**endless))
            wait_until(lambda: service.sampling.locked() and pool.working)
            connection.close()
            wait_until(lambda: not service.sampling.locked() and not pool.working)
        assert running.logged()[-1]["status"] == 499
