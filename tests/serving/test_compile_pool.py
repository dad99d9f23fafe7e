"""Jobs that take long delay neither those that do not nor those that take less long, and end if they are abandoned."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from constrain.base.work import spend_work
from constrain.serving.compile_pool import CHEAP, QUANTUM, CompilePool
from constrain.serving.paced_budget import UNITS, PacedBudget
from constrain.serving.server_settings import ServerSettings
from tests.running_server import PATIENCE, chat_body, read_answer, run_in_thread, wait_until

ENDLESS = 1 << 60


class Jobs:
    """A pool of two threads in its fast queue, with jobs that work until the test is over."""

    def __init__(self, pool: CompilePool) -> None:
        self.pool = pool
        self.is_over = threading.Event()

    def work(self, units: int = ENDLESS) -> int:
        """Spend units under a budget of its own."""
        budget = PacedBudget(ENDLESS, self.pool, lambda: False)
        budget.home = -1
        while budget.spent < units and not self.is_over.is_set():
            budget.spend(UNITS, "a test")
        return budget.spent


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    with CompilePool(2, 16) as pool:
        found = Jobs(pool)
        yield found
        found.is_over.set()


def test_jobs_that_never_end_delay_no_others(jobs: Jobs) -> None:
    endless = [jobs.pool.submit(jobs.work) for _ in range(6)]
    for units in (UNITS, CHEAP, 3 * CHEAP, 3 * QUANTUM):
        assert jobs.pool.submit(jobs.work, units).result(PATIENCE) == units
    wait_until(lambda: len(jobs.pool.slow) == 6)
    assert not jobs.pool.in_fast
    assert not any(one.done() for one in endless)
    jobs.is_over.set()
    assert all(one.result(PATIENCE) > CHEAP for one in endless)
    assert not jobs.pool.slow


def test_the_fast_lane_is_as_wide_as_stated(jobs: Jobs) -> None:
    go_on = threading.Event()
    waiting = [jobs.pool.submit(go_on.wait) for _ in range(5)]
    wait_until(lambda: len(jobs.pool.in_fast) == 2)
    last = jobs.pool.submit(jobs.work, UNITS)
    assert len(jobs.pool.in_fast) == 2 and not last.done()
    go_on.set()
    assert last.result(PATIENCE) == UNITS
    assert all(one.result(PATIENCE) for one in waiting)


def test_the_job_that_received_least_goes_first() -> None:
    with CompilePool(2, 4) as pool:
        has_turn, looked, done = threading.Event(), threading.Event(), list[str]()

        def work_first() -> None:
            pool.wait_turn(2 * QUANTUM, lambda: False)
            has_turn.set()
            assert looked.wait(PATIENCE), "the other one waits"
            pool.wait_turn(2 * QUANTUM + UNITS, lambda: False)
            done.append("first")

        def work_later() -> None:
            assert has_turn.wait(PATIENCE)
            pool.wait_turn(3 * QUANTUM, lambda: looked.set() is not None)  # `set` returns None: not abandoned
            done.append("later")

        for one in [pool.submit(work_first), pool.submit(work_later)]:
            one.result(PATIENCE)
        assert done == ["first", "later"]


def test_threads_of_others_do_not_take_turns() -> None:
    """An application without lifespan has the threads of the loop, whose jobs the pool does not see the end of."""
    with CompilePool(1, 1) as pool:
        pool.wait_turn(2 * QUANTUM, lambda: False)
        assert not pool.slow
        pool.submit(pool.wait_turn, 3 * QUANTUM, lambda: False).result(PATIENCE)


def test_a_server_under_slow_requests_answers_others_and_forgets_those_that_hang_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with run_in_thread(ServerSettings(compile_threads=2, compile_work=ENDLESS), slots=4) as running:
        prepare = running.engine._prepare

        def prepare_slowly(prompts: Any, options: Any) -> Any:
            while options["max_tokens"] == 7:
                spend_work(UNITS, "a test")
                time.sleep(0.001)  # without the interpreter lock
            return prepare(prompts, options)

        monkeypatch.setattr(running.engine, "_prepare", prepare_slowly)
        slow = [running.send(chat_body(max_tokens=7)) for _ in range(6)]
        wait_until(lambda: len(running.operations.pool.slow) == 6)
        for _ in range(3):
            assert read_answer(running.send(chat_body(max_tokens=3)))[0] == 200
        for connection in slow:
            connection.close()
        wait_until(lambda: not running.operations.pool.slow and not running.operations.admitted)
