"""Call a function with each of many items in forked workers, so that a hang or crash costs one item and not the run.

    for index, outcome in run_guarded(function, items, limits=Guard(seconds=10, memory=2 << 30), fresh=False): ...

A worker is a fork of this process and shares what was prepared before (vocabulary, kernels). With `fresh` every item
has a worker of its own; otherwise one worker processes all items up to the first failure. An outcome is the return
value of `function` or a `Failure`: timeout, memory or crash.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Literal, TypeVar

from .process_figures import read_address_space, read_cpu_seconds

__all__ = ["Failure", "Guard", "fork_child", "run_guarded", "reap_child", "run_in_child", "stream_from_child"]

Item = TypeVar("Item")
PATIENCE = 10
MEMORY_WORDS = ("memory allocation of", "bad_alloc", "MemoryError", "Cannot allocate memory")


@dataclass(frozen=True, slots=True)
class Guard:
    """Limits of one item: seconds, and bytes of additional address space.

    clock: "wall", or "cpu" for CPU time of the worker (with at most PATIENCE times as much wall time).
    """

    seconds: float
    memory: int
    clock: Literal["wall", "cpu"] = "wall"


@dataclass(frozen=True, slots=True)
class Failure:
    """The outcome of an item whose worker died or was killed."""

    kind: Literal["timeout", "memory", "crash"]
    detail: str


def fork_child(work: Callable[[Connection], None], *, errors: int | None = None) -> tuple[int, Connection]:
    """Fork a child that runs `work` with the writing end of a pipe. Return its pid and the reading end.

    errors: file descriptor for the standard error of the child (None: that of the parent).
    """
    reading, writing = Pipe(duplex=False)
    pid = os.fork()
    if pid:
        writing.close()
        return pid, reading
    code = 1
    try:
        reading.close()
        if errors is not None:
            os.dup2(errors, 2)
        if (torch := sys.modules.get("torch")) is not None:
            torch.set_num_threads(1)  # OpenMP has no threads here: parallel operations would wait for them forever
        work(writing)
        code = 0
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)  # without exit handlers, which belong to the parent


def reap_child(pid: int, *, kill: bool) -> int:
    """Wait for a child, after killing it if `kill` is true. Return its wait status."""
    if kill:
        os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def stream_from_child(work: Callable[[], Iterator[Any]], name: str) -> Iterator[Any]:
    """Yield what `work()` yields in a forked child. Exits, naming `name`, if the child fails."""

    def send_all(out: Connection) -> None:
        for item in work():
            out.send((item,))
        out.send(())

    sys.stdout.flush()
    pid, pipe = fork_child(send_all)
    ended = False
    try:
        while item := pipe.recv():
            yield item[0]
        ended = True
    except EOFError:
        raise SystemExit(f"{name} could not be run: see above") from None
    finally:
        pipe.close()
        reap_child(pid, kill=not ended)


def run_in_child(work: Callable[[], Any], name: str = "a process") -> Any:
    """Return what `work` returns in a forked child."""
    (found,) = stream_from_child(lambda: iter([work()]), name)
    return found


def run_guarded(
    function: Callable[[Item], Any],
    items: Sequence[Item],
    *,
    limits: Guard,
    fresh: bool,
    begin: Callable[[], object] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yield (index, return value or Failure) for every item in order; `begin` is called once in each worker."""
    start = 0
    while start < len(items):
        stop = start + 1 if fresh else len(items)
        for index, outcome in run_one_worker(function, items, range(start, stop), limits, begin):
            yield index, outcome
            start = index + 1


def run_one_worker(
    function: Callable[[Item], Any],
    items: Sequence[Item],
    span: range,
    limits: Guard,
    begin: Callable[[], object] | None,
) -> Iterator[tuple[int, Any]]:
    """Run one worker over a span of items, up to the first failure."""
    with tempfile.TemporaryFile() as errors:
        pid, pipe = fork_child(
            lambda out: serve_items(function, items, span, limits, begin, out), errors=errors.fileno()
        )
        status, index = None, span.start
        try:
            if not pipe.poll(60 + limits.seconds) or pipe.recv() != "ready":
                raise RuntimeError("a worker did not start")
            for index in span:
                if not await_outcome(pipe, pid, limits):
                    yield index, Failure("timeout", f"more than {limits.seconds:g} s")
                    return
                yield index, pipe.recv()
        except EOFError:
            status = reap_child(pid, kill=False)
            errors.seek(0)
            yield index, explain_death(status, errors.read().decode(errors="replace"))
        finally:
            pipe.close()
            if status is None:
                reap_child(pid, kill=True)


def await_outcome(pipe: Connection, pid: int, limits: Guard) -> bool:
    """Wait for the outcome of an item. Return whether it came within the time limit."""
    if limits.clock == "wall":
        return pipe.poll(limits.seconds)
    begin = read_cpu_seconds(pid)
    for _ in range(PATIENCE):
        if pipe.poll(limits.seconds):
            return True
        if read_cpu_seconds(pid) - begin > limits.seconds:
            return False
    return False


def serve_items(
    function: Callable[[Item], Any],
    items: Sequence[Item],
    span: range,
    limits: Guard,
    begin: Callable[[], object] | None,
    out: Connection,
) -> None:
    """Run in the worker: send "ready", then the outcome of each item."""
    if begin is not None:
        begin()
    out.send("ready")
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    for index in span:
        resource.setrlimit(resource.RLIMIT_AS, (read_address_space() + limits.memory, hard))
        try:
            outcome = function(items[index])
        except MemoryError:
            outcome = Failure("memory", f"more than {limits.memory >> 20:,} MiB")
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, hard))
        out.send(outcome)


def explain_death(status: int, said: str) -> Failure:
    """Return why a worker died, from its wait status and the last line of its standard error."""
    last = said.strip().splitlines()[-1] if said.strip() else ""
    how = (
        signal.Signals(os.WTERMSIG(status)).name
        if os.WIFSIGNALED(status)
        else f"exit {os.waitstatus_to_exitcode(status)}"
    )
    kind: Literal["memory", "crash"] = "memory" if any(word in said for word in MEMORY_WORDS) else "crash"
    return Failure(kind, f"{how} {last[:160]}".strip())
