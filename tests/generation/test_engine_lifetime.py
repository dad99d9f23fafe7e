"""An Engine across forks, in many threads, closed, interrupted and forgotten: no caller hangs, and no slot is lost."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

from constrain import Engine, Vocabulary
from constrain.base.errors import ConstrainError, LimitError
from constrain.base.options import Limits
from constrain.decoding.requests import GenerationRequest
from constrain.speculation.draft_source import NO_DRAFT, DraftTree
from tests.model_factory import TableModel, build_model

BYTES = Vocabulary.bytes()
SECONDS = 500
"""After this long a subprocess counts as hanging."""

FORKING = """
import os, signal, sys, threading, time
import constrain
from constrain.base.errors import ConstrainError
from tests.model_factory import TableModel, build_model

class Locked(TableModel):
    lock = threading.Lock()

    def next_logprobs(self, prefixes):
        with self.lock:
            time.sleep(0.001)  # so that most forks fall into a call
            return super().next_logprobs(prefixes)

BYTES = constrain.Vocabulary.bytes()
engines = [constrain.Engine(build_model("llama"), slots=3), constrain.Engine(Locked(BYTES.size), BYTES, slots=3)]

def write(engine, seed):
    return engine.generate("name" if engine is engines[0] else None, regex="[a-z]{12}", seed=seed).tokens

wanted = [write(engine, 7) for engine in engines]
stop = threading.Event()

def hammer(engine, seed):
    while not stop.is_set():
        write(engine, seed)

threads = [threading.Thread(target=hammer, args=(engine, seed)) for engine in engines for seed in range(4)]
for thread in threads:
    thread.start()
statuses = []
for _ in range(4):
    child = os.fork()
    if not child:
        signal.alarm(100)
        found = [write(engine, 7) for engine in engines]
        free = all(engine.scheduler.used == 0 for engine in engines)
        grandchild = os.fork()
        if not grandchild:
            signal.alarm(100)
            os._exit(found != [write(engine, 7) for engine in engines])
        free = free and os.waitpid(grandchild, 0)[1] == 0
        for engine in engines:
            engine.close()
        os._exit(found != wanted or not free)
    statuses.append(os.waitpid(child, 0)[1])
stop.set()
for thread in threads:
    thread.join()
assert statuses == [0] * 4, statuses
assert [write(engine, 7) for engine in engines] == wanted
print("done")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_has_an_engine_of_its_own_whatever_the_parent_was_doing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING], timeout=SECONDS, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    assert done.stdout == "done\n", done.stderr[-2000:]


def test_a_model_that_cannot_be_forked_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine(TableModel(BYTES.size), BYTES) as engine:
        monkeypatch.setattr(engine.runner, "restart", lambda: False)
        engine._thread.after_fork()  # what runs in the child
        with pytest.raises(ConstrainError, match=r"after the fork.*spawn"):
            engine.generate(regex="ab")


class Slow(TableModel):
    """A model that takes a millisecond, and never ends a text itself."""

    def __init__(self) -> None:
        super().__init__(BYTES.size)
        self.table[:, list(BYTES.eos_ids)] = -1e6

    def next_logprobs(self, prefixes: Any) -> Any:
        time.sleep(0.001)
        return super().next_logprobs(prefixes)


ENDLESS: dict[str, Any] = {"regex": "(.|\n)*", "max_tokens": 1_000_000}


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(4000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it did not happen")


def start_calls(engine: Engine, count: int, **options: Any) -> tuple[list[threading.Thread], list[BaseException]]:
    errors: list[BaseException] = []

    def call() -> None:
        try:
            engine.generate(**options)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, errors


def test_closing_ends_the_calls_that_wait_for_a_slot() -> None:
    engine = Engine(Slow(), BYTES, slots=1)
    threads, errors = start_calls(engine, 4, **ENDLESS)
    wait_until(lambda: engine.scheduler.used == 1 and len(engine.scheduler.queue) == 3)
    engine.close()
    for thread in threads:
        thread.join()
    assert [type(error) for error in errors] == [ConstrainError] * 4
    assert engine.scheduler.used == 0


@pytest.fixture
def interrupts() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also in a process that was started in the background, which ignores it."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread only")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupted_caller_frees_its_slot() -> None:
    with Engine(Slow(), BYTES) as engine:

        def interrupt() -> None:
            wait_until(lambda: engine.scheduler.used == 1)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            engine.generate(**ENDLESS)
        thread.join()
        wait_until(lambda: not engine.scheduler.has_work)
        assert engine.scheduler.used == 0
        assert engine.generate(regex="ab").text == "ab"


def test_an_engine_that_is_forgotten_stops_its_thread_and_frees_its_cache() -> None:
    engine = Engine(build_model("llama"))
    engine.generate("name", regex="[a-z]{8}", seed=1)
    thread, runner = engine._thread.thread, engine.runner
    assert thread is not None
    assert runner.cache.layers
    del engine
    gc.collect()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert not runner.cache.layers


class Failing:
    """A `DraftSource` that fails when it is asked, or calls back into the Engine."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    def propose(self, context: Sequence[int], matcher: Any, limit: int) -> DraftTree:
        self.act()
        return NO_DRAFT

    def observe(self, tokens: Sequence[int]) -> None:
        """Nothing is learnt."""


def refuse() -> None:
    raise ValueError("a foreign error")


@pytest.mark.parametrize("fails", ["draft", "end listener"])
def test_an_error_of_foreign_code_ends_one_text_only(fails: str) -> None:
    with Engine(TableModel(BYTES.size), BYTES) as engine:
        call = engine._prepare([None, None], {"regex": ["[ab]{30}", "[cd]{30}"]})
        requests = engine._draw(call).plan_round()
        bad: dict[str, Any] = {"draft_source": lambda: Failing(refuse)}
        if fails == "end listener":
            bad = {"end_listener": lambda *_: refuse()}
        kind = requests[0]
        failing = GenerationRequest(
            kind.vocabulary, [np.random.default_rng(1)], constraint=kind.constraint, max_tokens=40, **bad
        )
        runs = [engine.scheduler.submit(request) for request in (failing, *requests)]
        while engine.scheduler.has_work:
            engine.scheduler.step()
        assert [type(run.error) for run in runs] == [ValueError, type(None), type(None)]
        assert engine.scheduler.used == 0


def test_a_call_from_within_a_step_is_refused_instead_of_waiting_for_itself() -> None:
    with Engine(TableModel(BYTES.size), BYTES) as engine:
        source = Failing(lambda: engine.generate(regex="ab"))
        with pytest.raises(ConstrainError, match="wait for ever"):
            engine.generate(regex="[ab]{9}", draft=[source])


def test_a_limit_of_one_request_leaves_the_others_alone() -> None:
    """Its state cache is too small for its texts; drafts meet that limit before the text itself does."""
    tight = Limits(state_cache_bytes=1 << 20)
    schema = {"type": "array", "items": {"anyOf": [{"type": "object"}, {"type": "array"}, {"type": "string"}]}}
    with Engine(TableModel(BYTES.size), BYTES) as engine:
        threads, errors = start_calls(engine, 2, schema=schema, limits=tight, max_tokens=3000, n=2)
        for seed in range(3):
            assert len(engine.generate(regex="[a-z]{40}", seed=seed).text) == 40
        for thread in threads:
            thread.join()
        assert all(isinstance(error, LimitError) for error in errors)
        assert engine.scheduler.used == 0


def test_hammering_and_cancelling_leaves_all_slots_free() -> None:
    options: dict[str, Any] = {"regex": "[a-z ]{4,40}", "max_tokens": 64}
    with Engine(build_model("llama"), slots=3, prefixes=2, cache_bytes=1 << 16, prefill_tokens=8) as engine:
        wanted = engine.generate("name of people", seed=5, **options).tokens
        failures: list[BaseException] = []

        def call(seed: int) -> None:
            rng = np.random.default_rng(seed)
            try:
                for _ in range(6):
                    prompt = "name of people " * int(rng.integers(1, 12))
                    found = engine.generate([prompt, "x"], seed=seed, n=int(rng.integers(0, 4)), **options)
                    assert len(found) == 2
                    with pytest.raises(LimitError):
                        engine.generate(prompt, regex="a{90}", max_tokens=9)
            except BaseException as error:
                failures.append(error)

        async def cancel(seed: int) -> None:
            rng = np.random.default_rng(seed)
            for _ in range(8):
                task = asyncio.create_task(engine.agenerate("name", seed=seed, n=5, **options))
                await asyncio.sleep(float(rng.exponential(0.02)))
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                events = engine.stream(["age", "x"], seed=seed, **options)
                for _ in range(int(rng.integers(0, 6))):
                    await anext(events, None)
                await events.aclose()  # type: ignore[attr-defined]

        async def cancel_all() -> None:
            await asyncio.gather(*(cancel(seed) for seed in range(3)))

        threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
        threads.append(threading.Thread(target=lambda: asyncio.run(cancel_all())))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        wait_until(lambda: not engine.scheduler.has_work)
        assert engine.scheduler.used == 0
        assert not engine.runner.slots
        assert len(engine.runner.kept.texts) <= 2
        assert engine.generate("name of people", seed=5, **options).tokens == wanted
