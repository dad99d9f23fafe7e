"""Interrupts (KeyboardInterrupt) and closed generators: no wrong mask afterwards, wherever they came.

An interrupt is raised at the n-th line that is run in the files that hold state, for many n. Lines with `with` are left
out: a tracer sees them a second time just before `__exit__`, where the interpreter itself lets no signal in.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import constrain
from constrain import Constraint, Limits, Matcher, Style, Vocabulary, compile, lark
from constrain.base.work import _current, active_budget, memoize_work, spend_work, use_budget, work_budget
from constrain.compilation.compile_caches import recent

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in a finalizer

PACKAGE = str(Path(constrain.__file__).parent)
STATEFUL = (
    "engine/state_cache.py", "engine/memory_block.py", "engine/matcher.py", "engine/matcher_position.py",
    "engine/accepted_items.py", "engine/bound_program.py", "engine/constraint.py", "engine/shortest_completion.py",
    "engine/uniqueness/", "compilation/constraint_compiler.py",
    "program/byte_code.py", "program/program.py", "program/linker.py", "program/restored_program.py",
    "vocabulary/mask_table.py", "vocabulary/mask_table_cache.py", "vocabulary/special_tokens.py",
    "vocabulary/number_leaves.py", "automata/numerals/number_automaton.py", "automata/numerals/magnitude_set.py",
    "cache/constraint_lru.py",
)  # fmt: skip
UNIQUE = {"type": "array", "uniqueItems": True, "items": {"type": ["integer", "string"]}}
NUMBERS = {
    "type": "array",
    "prefixItems": [{"minimum": 3, "maximum": 70.5, "multipleOf": 0.5}, {"exclusiveMinimum": -2}],
}
OBJECT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "more": {"type": "array", "items": {"$ref": "#"}},
    },
    "required": ["name"],
}
TOKENS = [*(bytes([b]) for b in range(256)), b'{"', b'":', b"ab", b'"}', b"12", b"]}", None]
SCENES: dict[str, tuple[dict[str, Any], bytes]] = {
    "object": ({"schema": OBJECT}, b'{"name":"ab","more":[{"name":"c"}],"x":12}'),
    "unique": ({"schema": UNIQUE}, b'[1,"a",12,"ab"]'),
    "lark": ({"form": lark('start: (A | "(" start ")")+\nA: /[a-z]+/\n%ignore " "')}, b"ab (c d) e"),
    "numbers": ({"schema": NUMBERS, "style": Style.any()}, b"[12.5,-1.25e0]"),
    "small": ({"schema": OBJECT, "limits": Limits(state_cache_bytes=1)}, b'{"name":"ab","more":[{"name":"c"}]}'),
}


@cache
def is_with(name: str, number: int) -> bool:
    """Whether a line of a file begins a block of `with`."""
    return linecache.getline(name, number).lstrip().startswith("with ")


class Interrupter:
    """Raises KeyboardInterrupt at the n-th line; counts them."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE) or not name[len(PACKAGE) + 1 :].startswith(STATEFUL):
            return None
        if event == "line" and not is_with(name, frame.f_lineno):
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt
        return self


def run_interrupted(work: Callable[[], None], at: int) -> int:
    """Runs something, interrupted at the n-th line: how many lines were run."""
    tracer, before = Interrupter(at), sys.gettrace()
    sys.settrace(tracer)
    try:
        work()
    except KeyboardInterrupt:
        assert tracer.count >= at
    finally:
        sys.settrace(before)
    return tracer.count


def walk(matcher: Matcher, text: bytes) -> None:
    """Advance over a text, and call every query at each position."""
    for byte in text:
        matcher.mask()
        matcher.advance(byte)
    matcher.shortest_completion(50)
    matcher.rollback(2)
    matcher.advance_bytes(text[-2:])


def masks(matcher: Matcher, text: bytes) -> list[bytes]:
    found = [matcher.mask().tobytes()]
    for byte in text:
        matcher.advance(byte)
        found.append(matcher.mask().tobytes())
    return found


def make(source: dict[str, Any]) -> Constraint:
    return compile(Vocabulary.from_tokens(TOKENS, eos_ids=(len(TOKENS) - 1,)), **source)


@pytest.mark.parametrize("scene", SCENES)
def test_an_interrupt_at_any_line(scene: str) -> None:
    """An interrupted matcher continues from its reported tokens, and new matchers are not affected."""
    source, text = SCENES[scene]
    wanted = masks(make(source).matcher(), text)
    shortest = make(source).matcher().shortest_completion(50)
    constraint = make(source)
    lines = run_interrupted(lambda: walk(constraint.matcher(), text), -1)
    assert lines > 200
    for at in range(1, lines + 1, max(1, lines // 100)):
        constraint = make(source)
        matcher = constraint.matcher() if at % 2 else None

        def work(made: Constraint = constraint, known: Matcher | None = matcher) -> None:
            walk(made.matcher() if known is None else known, text)

        run_interrupted(work, at)
        if matcher is not None:
            taken = b"".join(item if isinstance(item, bytes) else bytes([item]) for item in matcher._accepted.to_list())
            assert text.startswith(taken)
            assert masks(matcher, text[len(taken) :]) == wanted[len(taken) :], at
            matcher.rollback(len(matcher._accepted))
            assert matcher.mask().tobytes() == wanted[0]
        assert masks(constraint.matcher(), text) == wanted, at
        assert constraint.matcher().shortest_completion(50) == shortest


@pytest.mark.parametrize("at", range(1, 40))
def test_an_interrupt_between_any_two_lines_of_a_step(at: int) -> None:
    """On the fast path, which takes nearly all steps."""
    constraint = make(SCENES["object"][0])
    text = SCENES["object"][1]
    wanted = masks(constraint.matcher(), text)
    matcher = constraint.matcher()
    end = len(TOKENS) - 1

    def work() -> None:
        matcher.advance_bytes(text[:3])
        matcher.advance(text[3])
        matcher.rollback(1)
        matcher.advance_bytes(text[3:])
        matcher.advance(end)
        matcher.rollback(1)

    run_interrupted(work, at)
    taken = [item for item in matcher._accepted.to_list() if item != end]
    done = b"".join(item if isinstance(item, bytes) else bytes([item]) for item in taken)
    if len(taken) < len(matcher._accepted):
        assert matcher.is_finished
        assert not matcher.mask().any()
        matcher.rollback(1)
    assert masks(matcher, text[len(done) :]) == wanted[len(done) :]


def test_no_memory_leaves_no_wrong_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an interrupt: what was being provided is given up."""
    source, text = SCENES["object"]
    wanted = masks(make(source).matcher(), text)
    constraint = make(source)
    matcher = constraint.matcher()

    def full(*_: object) -> None:
        raise MemoryError

    for name in ("start", "expand", "row"):
        with monkeypatch.context() as patch:
            patch.setattr(type(constraint.state_cache().table), name, full)
            try:
                masks(matcher.fork(), text)
            except MemoryError:
                assert constraint.state_cache() is not matcher._state_cache
    assert masks(matcher, text) == wanted


@memoize_work(1)
def build_cached(units: int) -> int:
    """A cached construction outside a compile."""
    spend_work(units, "a test")
    return units


BUDGET_CALLS = {
    method.__code__
    for method in (work_budget.__enter__, work_budget.__exit__, use_budget.__enter__, use_budget.__exit__)
}
BUDGETED: dict[str, Callable[[], object]] = {
    "schema": lambda: walk(make({"schema": OBJECT}).matcher(), SCENES["object"][1]),
    "lark": lambda: walk(make(SCENES["lark"][0]).matcher(), SCENES["lark"][1]),
    "prepared": lambda: make({"schema": OBJECT}).matcher().prepare(1),
    "cached": lambda: (build_cached.cache_clear(), build_cached(1)),  # type: ignore[attr-defined]
    "validated text": lambda: constrain.validate(OBJECT, text='{"name": 1}'),
    "validated value": lambda: constrain.validate(OBJECT, {"name": 1}),
}


def run_interrupted_at_budget(work: Callable[[], object], at: int) -> int:
    """Run something, interrupted at the n-th call or return of what begins or ends a budget: how many there were."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if frame.f_code not in BUDGET_CALLS:
            return None
        count += event in ("call", "return")
        if event in ("call", "return") and count == at:
            raise KeyboardInterrupt
        return trace

    recent.clear()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        assert count >= at
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("work", BUDGETED.values(), ids=BUDGETED)
def test_no_budget_outlives_its_block(work: Callable[[], object]) -> None:
    """Otherwise all later constructions of the thread would draw on it, until they are refused."""
    run_interrupted_at_budget(work, -1)
    number = run_interrupted_at_budget(work, -1)
    assert number >= 4
    for at in range(1, number + 1, max(1, number // 60)):
        run_interrupted_at_budget(work, at)
        left = active_budget()
        _current.set(None)
        assert left is None, at
