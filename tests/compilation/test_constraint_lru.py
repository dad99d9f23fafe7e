"""Constraints of this process: equal sources share a Constraint, different ones never do; the cache is bounded."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from constrain import Constraint, Limits, Style, Vocabulary, compile, gbnf, json_schema, literal
from constrain.cache import write_behind
from constrain.cache.source_keys import cache_key, copy_source
from constrain.compilation.compile_caches import recent
from constrain.compilation.constraint_compiler import HELD
from tests.project.test_processes import forked

VOCABULARY = Vocabulary.bytes()
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.fixture(autouse=True)
def recent_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(recent, "most", 8)
    yield
    recent.clear()


@pytest.mark.parametrize(
    "source",
    [
        {"schema": NAMED},
        {"schema": '{"type": "string"}'},
        {"schema": NAMED, "style": Style.any(), "limits": Limits(cases=9)},
        {"schema": {"$ref": "urn:n"}, "registry": {"urn:n": {"type": "null"}}},
        {"regex": "a+"},
        {"choices": ["a", "b"]},
        {"type": list[int]},
        {"grammar": gbnf('root ::= "a"*')},
        {"form": literal("x") + json_schema(NAMED)},
    ],
)
def test_an_equal_source_is_the_same_constraint(source: dict[str, Any]) -> None:
    made = compile(VOCABULARY, **source)
    state_cache = made.state_cache()
    again = compile(VOCABULARY, **source)
    assert again is made
    assert again.state_cache() is state_cache
    recent.clear()
    assert compile(VOCABULARY, **source) is not made


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"schema": {"const": 1}}, {"schema": {"const": True}}),
        ({"schema": {"const": 1}}, {"schema": {"const": 1.0}}),
        ({"schema": {"properties": {"a": {}, "b": {}}}}, {"schema": {"properties": {"b": {}, "a": {}}}}),
        ({"schema": "true"}, {"regex": "true"}),
        ({"regex": "a"}, {"choices": ["a"]}),
        ({"schema": NAMED}, {"schema": NAMED, "style": Style(whitespace="compact")}),
        ({"schema": NAMED}, {"schema": NAMED, "limits": Limits(state_cache_bytes=1 << 20)}),
        ({"schema": NAMED}, {"schema": NAMED, "registry": {"urn:n": True}}),
    ],
)
def test_another_source_is_another_constraint(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert compile(VOCABULARY, **one) is not compile(VOCABULARY, **other)


def test_an_equal_vocabulary_is_still_another() -> None:
    """It may have another tokenizer, and its Constraint says which is its own."""
    other = Vocabulary.bytes()
    assert other == VOCABULARY
    assert compile(other, regex="a").vocabulary is other
    assert compile(VOCABULARY, regex="a").vocabulary is VOCABULARY


def test_a_change_of_the_schema_does_not_change_the_cache() -> None:
    mine: dict[str, Any] = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "null"}}}}
    made = compile(VOCABULARY, schema=mine)
    mine["items"]["properties"]["a"]["type"] = "string"
    made.matcher().advance_bytes(b'[{"a": null')
    changed = compile(VOCABULARY, schema=mine)
    assert changed is not made
    changed.matcher().advance_bytes(b'[{"a": "')


def test_sources_without_a_cache_key_are_compiled_each_time() -> None:
    class Odd(dict[str, Any]):
        pass

    assert cache_key(("schema", Odd(NAMED)), Style(), Limits()) is None
    assert compile(VOCABULARY, schema=Odd(NAMED)) is compile(VOCABULARY, schema=NAMED)  # read as a plain dict
    exact = {"minimum": Decimal("0.1")}
    assert compile(VOCABULARY, schema=exact) is not compile(VOCABULARY, schema=exact)
    spelled = cache_key(("schema", NAMED, None), Style(), Limits())
    assert spelled is not None
    assert copy_source(spelled) == ("schema", NAMED, None)
    assert copy_source(spelled)[1] is not NAMED


def test_the_least_recently_used_are_evicted() -> None:
    made = [compile(VOCABULARY, regex="a" * k) for k in range(1, 9)]
    assert compile(VOCABULARY, regex="a") is made[0]
    compile(VOCABULARY, regex="b")
    assert len(recent) == 8
    assert compile(VOCABULARY, regex="a") is made[0]
    assert compile(VOCABULARY, regex="aa") is not made[1]


def test_the_number_of_bytes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "most_bytes", 1)
    made = compile(VOCABULARY, regex="a")
    made.matcher().mask()
    assert compile(VOCABULARY, regex="a") is made, "the latest is kept in any case"
    other = compile(VOCABULARY, regex="b")
    assert recent.bytes_used == 0
    assert made.bytes_used > 0
    assert len(recent) == 1
    assert compile(VOCABULARY, regex="b") is other


def test_bytes_are_counted_and_given_back() -> None:
    sizes = []
    for k in range(12):
        made = compile(VOCABULARY, regex="a" * (k + 1))
        made.matcher().mask()
        key = cache_key(("regex", made.source["regex"] if made.source else "", None), Style(), Limits())
        assert key is not None
        sizes.append(made.bytes_used + HELD * len(key))
    assert recent.bytes_used == sum(sizes[4:11]), "all but the latest, which is weighed when it is that no more"
    recent.clear()
    assert recent.bytes_used == len(recent) == 0


def test_lru_of_size_zero_caches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "most", 0)
    recent.clear()
    assert compile(VOCABULARY, regex="a") is not compile(VOCABULARY, regex="a")
    assert len(recent) == 0


def test_threads_get_one_and_the_same() -> None:
    found: list[Constraint] = []
    ready = threading.Barrier(8)

    def work() -> None:
        ready.wait()
        found.extend(compile(VOCABULARY, schema={"enum": [k % 12]}) for k in range(48))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 * 48
    assert len(recent) == 8
    for made in found:
        assert made.source is not None
        assert made.matcher().forced() == str(made.source["schema"]["enum"][0]).encode()


class SizedObject:
    """Something to write that can be referred to weakly."""


def test_one_thread_writes_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a write waits for a lock, what comes later waits for that thread, and is written by it."""
    written: list[str] = []
    threads: set[int] = set()
    holding = threading.Lock()

    def write(path: str, made: SizedObject) -> None:
        threads.add(threading.get_ident())
        with holding:
            written.append(path)

    monkeypatch.setattr(write_behind, "PAUSE", 0.01)
    behind, things = write_behind.WriteBehind(write, lambda made: 1), [SizedObject() for _ in range(20)]
    with holding:
        for k, made in enumerate(things):
            behind.later(str(k), made)()
            time.sleep(0.02)
    while len(written) < len(things):
        time.sleep(0.01)
    assert len(threads) == 1
    assert sorted(written, key=int) == [str(k) for k in range(20)]


def test_flush_waits_for_what_the_thread_is_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has flushed finds everything written, although the thread had taken it from the queue before."""
    written: list[str] = []
    begun, flushing = threading.Event(), threading.Event()

    def write(path: str, made: SizedObject) -> None:
        begun.set()
        flushing.wait()
        time.sleep(0.05)  # by now, the caller is within flush()
        written.append(path)

    monkeypatch.setattr(write_behind, "PAUSE", 0.0)
    behind, made = write_behind.WriteBehind(write, lambda made: 1), SizedObject()
    behind.later("a", made)()
    begun.wait()
    flushing.set()
    behind.flush()
    assert written == ["a"]


def test_a_child_does_not_wait_for_what_its_parent_is_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that writes is not in the child, nor is what it has taken from the queue."""
    begun, goes_on = threading.Event(), threading.Event()

    def write(path: str, made: SizedObject) -> None:
        begun.set()
        goes_on.wait()

    monkeypatch.setattr(write_behind, "PAUSE", 0.0)
    behind, made = write_behind.WriteBehind(write, lambda made: 1), SizedObject()
    behind.later("a", made)()
    begun.wait()
    assert forked(behind.flush) == [None]
    goes_on.set()
    behind.flush()
