"""What a request constructs rests while texts are generated, and only then, and never in the thread of the loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from constrain.base.errors import LimitError
from constrain.serving import paced_budget
from constrain.serving.compile_pool import CHEAP, CompilePool
from constrain.serving.paced_budget import LONG_REST, REST, UNITS, PacedBudget


@pytest.fixture
def pool() -> Iterator[CompilePool]:
    with CompilePool(1, 1) as one:
        yield one


class Clock:
    """The CPU time of a thread, which the test advances, and what was slept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.slept = 5_000_000, list[float]()
        monkeypatch.setattr(paced_budget.time, "thread_time_ns", lambda: self.now)
        monkeypatch.setattr(paced_budget.time, "sleep", self.slept.append)

    def work(self, budget: PacedBudget, nanoseconds: int, units: int = UNITS) -> None:
        self.now += nanoseconds
        budget.spend(units, "a test")


def in_thread(run: object) -> None:
    thread = threading.Thread(target=run)  # type: ignore[arg-type]
    thread.start()
    thread.join()


def test_a_busy_server_makes_a_thread_rest_in_proportion(monkeypatch: pytest.MonkeyPatch, pool: CompilePool) -> None:
    clock, budget = Clock(monkeypatch), PacedBudget(10 * UNITS, pool, lambda: True)

    def run() -> None:
        clock.work(budget, 1_000_000)  # the clock of the thread begins here
        clock.work(budget, 2_000_000)
        clock.work(budget, 500_000, units=UNITS - 1)
        clock.work(budget, 500_000, units=1)

    in_thread(run)
    assert clock.slept == pytest.approx([REST * 0.002, REST * 0.001])
    assert budget.spent == 3 * UNITS


def test_an_idle_server_and_the_event_loop_do_not_rest(monkeypatch: pytest.MonkeyPatch, pool: CompilePool) -> None:
    clock, idle, busy = (
        Clock(monkeypatch),
        PacedBudget(10 * UNITS, pool, lambda: False),
        PacedBudget(10 * UNITS, pool, lambda: True),
    )
    in_thread(lambda: [clock.work(idle, 1_000_000) for _ in range(3)])
    for _ in range(3):
        clock.work(busy, 1_000_000)  # in the thread that made the budget
    assert clock.slept == []


def test_the_limit_holds(monkeypatch: pytest.MonkeyPatch, pool: CompilePool) -> None:
    clock, budget = Clock(monkeypatch), PacedBudget(UNITS, pool, lambda: True)
    clock.work(budget, 1)
    with pytest.raises(LimitError, match="A test needs more than"):
        clock.work(budget, 1, units=1)


def test_budget_does_not_count_time_that_a_thread_sleeps(pool: CompilePool) -> None:
    """The clock is that of the thread: waiting for others is not work."""
    budget, times = PacedBudget(10 * UNITS, pool, lambda: True), list[float]()

    def run() -> None:
        budget.spend(UNITS, "a test")
        time.sleep(0.2)
        before = time.thread_time_ns(), budget.worked[threading.get_ident()]
        times.append((before[0] - before[1]) / 1e9)

    in_thread(run)
    assert times[0] < 0.1


def test_abandoned_work_raises_at_the_next_pause(pool: CompilePool) -> None:
    budget, errors = PacedBudget(10 * UNITS, pool, lambda: False), list[str]()

    def run() -> None:
        budget.spend(UNITS, "a test")
        budget.abandon()
        budget.spend(UNITS - 1, "a test")
        with pytest.raises(LimitError, match="abandoned") as found:
            budget.spend(1, "a test")
        errors.append(str(found.value))

    in_thread(run)
    assert len(errors) == 1


def test_expensive_work_pauses_longer(monkeypatch: pytest.MonkeyPatch, pool: CompilePool) -> None:
    clock, budget = Clock(monkeypatch), PacedBudget(10 * CHEAP, pool, lambda: True)

    def run() -> None:
        clock.work(budget, 1_000_000, units=CHEAP)  # the clock of the thread begins here
        clock.work(budget, 2_000_000)

    in_thread(run)
    assert clock.slept == pytest.approx([LONG_REST * 0.002])
