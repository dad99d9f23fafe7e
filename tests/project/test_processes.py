"""Processes: whatever is forked or spawned, and whenever, every mask is that of a process that never forked."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from constrain import Constraint, Vocabulary, compile, fill_masks, lark, warm_up
from constrain.base import fork_safety
from constrain.grammar.nodes import Grammar, Literal, Node, Rule, Sequence
from constrain.program.program import Program

ROOT = Path(__file__).resolve().parents[2]
VOCABULARY = Vocabulary.bytes()
KINDS: list[Any] = [
    {"type": "string", "maxLength": 5}, {"type": "integer"}, {"type": "array", "items": {"enum": ["a", "ab", 3]}},
    {"type": "string", "pattern": "^[a-f]+-[0-9]{2}$"}, {"type": "number", "minimum": 0.5},
]  # fmt: skip
SCHEMAS = [
    {
        "type": "object",
        "properties": {f"k{i}{j}": KINDS[(i + j) % len(KINDS)] for j in range(6)},
        "required": [f"k{i}0", f"k{i}3"],
        "additionalProperties": i % 2 == 0,
    }
    for i in range(4)
]
TIMEOUT = 300


def walks(constraint: Constraint, seed: int, count: int = 12, steps: int = 60) -> list[bytes]:
    """The masks along some random texts."""
    rng, found = random.Random(seed), []
    for _ in range(count):
        matcher = constraint.matcher()
        for _ in range(steps):
            mask = matcher.mask()
            found.append(mask.tobytes())
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            if not len(allowed) or allowed[0] == VOCABULARY.size - 1:
                break
            matcher.advance(int(rng.choice(allowed.tolist())))
    return found


def task(number: int) -> tuple[int, list[bytes]]:
    """What a worker does."""
    return number, walks(compile(VOCABULARY, schema=SCHEMAS[number]), number)


@pytest.fixture(scope="module")
def wanted() -> list[list[bytes]]:
    """The same, of a process that was never forked from one that was warmed up."""
    code = (
        "import sys; from tests.project.test_processes import SCHEMAS, task\n"
        "for k in range(len(SCHEMAS)): sys.stdout.write(b''.join(task(k)[1]).hex() + '\\n')"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, check=True, capture_output=True, text=True
    )
    size = 4 * ((VOCABULARY.size + 31) // 32)
    texts = [bytes.fromhex(line) for line in said.stdout.split()]
    return [[text[k : k + size] for k in range(0, len(text), size)] for text in texts]


def forked(*tasks: Any) -> list[Any]:
    """Return the result of each function in a separate child process, all at the same time."""
    pipes = []
    for one in tasks:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            code = 1
            try:
                signal.alarm(TIMEOUT)  # A child that waits for a lock of its parent's ends.
                os.close(reading)
                with os.fdopen(writing, "w") as file:
                    json.dump(one(), file)
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        pipes.append((child, reading))
    found = []
    for child, reading in pipes:
        with os.fdopen(reading) as file:
            text = file.read()
        assert os.waitpid(child, 0)[1] == 0, "a child died"
        found.append(json.loads(text))
    return found


def hexed(number: int, constraint: Constraint | None = None) -> list[str]:
    constraint = compile(VOCABULARY, schema=SCHEMAS[number]) if constraint is None else constraint
    return [mask.hex() for mask in walks(constraint, number)]


def test_children_of_a_warm_process(wanted: list[list[bytes]]) -> None:
    """Each with a separate schema, in memory that all inherited, while the parent continues with another."""
    warm_up(VOCABULARY)
    for _ in range(2):
        found = forked(*(lambda k=k: hexed(k) for k in range(4)), lambda: hexed(0))  # type: ignore[misc]
        assert [[bytes.fromhex(one) for one in masks] for masks in found] == [*wanted, wanted[0]]
    assert task(1)[1] == wanted[1]


def test_a_constraint_in_use_is_inherited(wanted: list[list[bytes]]) -> None:
    """Children go on with the sets of the parent, each in another direction; the parent's stay as they were."""
    constraint = compile(VOCABULARY, schema=SCHEMAS[2])
    matcher = constraint.matcher()
    matcher.advance_bytes(b'{"k20":["a"')
    before, state_cache = matcher.mask().tobytes(), constraint.state_cache()

    def child(seed: int) -> list[str]:
        assert constraint.state_cache() is state_cache, "what the forking thread had is not made anew"
        assert matcher.mask().tobytes() == before
        return [one.hex() for one in walks(constraint, seed)] + [matcher.mask().tobytes().hex()]

    found = forked(*(lambda s=s: child(s) for s in (2, 7, 8)))  # type: ignore[misc]
    assert [bytes.fromhex(one) for one in found[0][:-1]] == wanted[2]
    assert matcher.mask().tobytes() == before
    for seed, masks in zip((2, 7, 8), found):
        assert [bytes.fromhex(one) for one in masks] == [*walks(constraint, seed), before]


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing(method: str, wanted: list[list[bytes]]) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} on this system")
    warm_up(VOCABULARY)
    with multiprocessing.get_context(method).Pool(2) as pool:
        for number, masks in pool.map_async(task, [0, 1, 2, 3, 0, 1]).get(TIMEOUT):
            assert masks == wanted[number]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_of_torch(workers: int, wanted: list[list[bytes]]) -> None:
    torch_data = pytest.importorskip("torch.utils.data")
    warm_up(VOCABULARY)
    loader = torch_data.DataLoader([0, 1, 2, 3], batch_size=None, num_workers=workers, collate_fn=task)
    for number, masks in loader:
        assert masks == wanted[number]


@pytest.mark.slow
def test_fork_while_other_threads_mask(wanted: list[list[bytes]]) -> None:
    """Locks that these hold, and sets that they are just writing, are not the child's."""
    shared = compile(VOCABULARY, schema=SCHEMAS[3])
    stop = threading.Event()

    def busy(seed: int) -> None:
        while not stop.is_set():
            walks(shared, seed, 1)
            walks(compile(Vocabulary.bytes(), schema=SCHEMAS[seed % 4]), seed, 1)
            matchers = [shared.matcher() for _ in range(70)]
            fill_masks(matchers, np.empty((70, 9), np.int32), threads=2)

    threads = [threading.Thread(target=busy, args=(seed,), daemon=True) for seed in range(3)]
    for one in threads:
        one.start()
    try:
        for _ in range(12):
            found = forked(lambda: hexed(3, shared), lambda: in_a_thread(lambda: hexed(3, shared)), lambda: hexed(1))
            assert [[bytes.fromhex(one) for one in masks] for masks in found] == [wanted[3], wanted[3], wanted[1]]
    finally:
        stop.set()
        for one in threads:
            one.join(TIMEOUT)


def in_a_thread(work: Any) -> Any:
    """What a new thread gives, which may have the number of one that the parent had."""
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(work())) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert all(one == found[0] for one in found)
    return found[0]


def test_fork_while_a_table_grows() -> None:
    """A table that another thread was growing is rebuilt in the child, and its lock is free."""
    vocabulary = Vocabulary.bytes()
    constraint = compile(vocabulary, schema=SCHEMAS[0])
    matcher = constraint.matcher()
    fresh = hexed(0)
    table = constraint.state_cache().table
    with table.lock:  # as if another thread held it

        def child() -> list[Any]:
            masks = hexed(0, constraint)
            return [masks, table.is_broken, constraint.state_cache().table is table, matcher.mask().tobytes().hex()]

        ((masks, broken, same, mask),) = forked(child)
    assert masks == fresh
    assert broken
    assert not same
    assert mask == matcher.mask().tobytes().hex()
    assert not table.is_broken


class LockWithoutGil:
    """A lock at a fork that a thread has acquired and not told yet, since it waits for the GIL (CPython 3.11)."""

    def locked(self) -> bool:
        return False

    def acquire(self, blocking: bool = True) -> bool:
        assert not blocking, "the child would wait forever"
        return False


def test_fork_while_a_thread_that_has_the_lock_waits_for_the_gil() -> None:
    constraint = compile(Vocabulary.bytes(), regex="a+[0-9]{3}b")
    wanted = constraint.matcher().mask().tobytes()
    table = constraint.state_cache().table
    table.lock = LockWithoutGil()  # type: ignore[assignment]
    table.after_fork()
    assert table.is_broken and table.lock.acquire(blocking=False)
    table.lock.release()
    table.after_fork()
    assert table.is_broken, "a child of the child cannot use it either"
    constraint.state_cache().after_fork()
    assert constraint.matcher().mask().tobytes() == wanted
    assert constraint.state_cache().table is not table


class OneAtATime(dict[Hashable, Node]):
    """Rules that mark what they emit, as a front end does: a rule that refers to itself without a text is an error."""

    def __init__(self, emitting: threading.Event, forking: threading.Event) -> None:
        super().__init__()
        self.emitting, self.forking, self.open = emitting, forking, False

    def __missing__(self, name: Hashable) -> Node:
        assert not self.open, "this rule is circular"
        self.open = True
        self.emitting.set()
        assert self.forking.wait(TIMEOUT)
        self.open = False
        self[name] = Literal(b"yes")
        return self[name]


def test_fork_while_a_rule_is_emitted() -> None:
    """A fork waits for the end of the link: the child has no thread that would take back the marks of a front end."""
    emitting, forking = threading.Event(), threading.Event()
    os.register_at_fork(before=forking.set)  # called before those of the library, which are older
    rules = OneAtATime(emitting, forking)
    program = Program(Grammar(Sequence((Literal(b"<"), Rule("a"))), rules))
    program.link(program.entry)
    (cell,) = (one for one in program.cells() if one != program.entry)
    thread = threading.Thread(target=program.link, args=(cell,))
    thread.start()
    assert emitting.wait(TIMEOUT)
    forking.clear()

    def child() -> bool:
        program.link(cell)
        return bool(program.code[cell])

    assert forked(child) == [True]
    thread.join(TIMEOUT)
    program.link(cell)
    assert program.lock.acquire(blocking=False), "the parent has released what it held while it forked"
    program.lock.release()


def test_forks_of_two_threads_while_rules_are_linked() -> None:
    """Each fork holds all locks; two at a time must not wait for each other."""
    constraints = [compile(Vocabulary.bytes(), schema=SCHEMAS[k % 4]) for k in range(20)]
    found: list[Any] = []

    def fork_often() -> None:
        for one in constraints[:5]:
            found.append(forked(lambda one=one: len(hexed(0, one)) > 0))  # type: ignore[misc]

    threads = [threading.Thread(target=fork_often) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert found == [[True]] * 10


def test_a_fork_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever links may wait for the thread that forks."""
    monkeypatch.setattr(fork_safety, "LOCK_SECONDS", 0.01)
    constraint = compile(VOCABULARY, schema=SCHEMAS[0])
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with constraint.program.lock:
            held.set()
            go.wait(TIMEOUT)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(TIMEOUT)
    (found,) = forked(lambda: hexed(0, constraint))
    go.set()
    thread.join()
    assert found == hexed(0)


def test_fork_with_parsers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSTRAIN_STORE", str(tmp_path))
    constraint = compile(VOCABULARY, lark('start: (A | "(" start ")")+\nA: /[a-z]+/\n%ignore " "'))
    first = [one.hex() for one in walks(constraint, 1)]
    assert forked(*[lambda: [one.hex() for one in walks(constraint, 1)]] * 3) == [first] * 3


def private_dirty() -> int:
    """Return the private dirty memory of this process in kilobytes."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="the kernel does not say what is shared")
def test_forks_share_the_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that computes masks writes to few of the pages of tokens, tries and rows."""
    monkeypatch.setenv("CONSTRAIN_STORE", "off")
    tokens: list[bytes | None] = [bytes([b]) for b in range(256)] + [f"token{k}".encode() for k in range(60_000)]
    vocabulary = Vocabulary.from_tokens([*tokens, None], (len(tokens),))
    constraint = compile(vocabulary, schema=SCHEMAS[0])
    constraint.matcher().mask()

    def child() -> list[int]:
        before = private_dirty()
        matcher = constraint.matcher()
        for byte in b'{"k00":"a","k03":"ab-12"':
            matcher.mask()
            matcher.advance(byte)
        return [before, private_dirty()]

    ((before, after),) = forked(child)
    size = sum(map(sys.getsizeof, tokens)) // 1024 + 18 * len(vocabulary.blob) // 1024
    assert after - before < size / 2, (before, after, size)
