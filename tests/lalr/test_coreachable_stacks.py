"""A stack is alive if, and only if, some text brings it to acceptance; for each next terminal too."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

from constrain.base.errors import GrammarError
from constrain.lalr.coreachable_stacks import CoReachableStacks
from constrain.lalr.lalr_tables import Lalr, build_tables
from tests.lalr.test_lalr import SMALL, grammars, numbered, rules_of

Stack = tuple[int, ...]


def fed(table: Lalr, stack: Stack, terminal: int) -> Stack | None:
    """The stack after a terminal, None if it is refused."""
    states = list(stack)
    seen = 0
    while (act := int(table.action[states[-1], terminal])) < 0:
        del states[len(states) - int(table.length[-1 - act]) :]
        states.append(int(table.goto[states[-1], table.left[-1 - act]]))
        seen += 1
        if seen > 200:  # rules that make each other for ever, as Lark would
            return None
    return (*states, act - 1) if act else None


def finishes(table: Lalr, stack: Stack, most: int) -> bool | None:
    """Whether a text from here is accepted, by trying all, shortest first; None if that is unknown after
    `most` texts.
    """
    todo, met = [stack], {stack}
    end = len(table.terminals) - 1
    for one in todo:  # grows while it is read
        if fed(table, one, end) is not None:
            return True
        for terminal in range(end):
            following = fed(table, one, terminal)
            if following is not None and following not in met:
                met.add(following)
                todo.append(following)
        if len(met) > most:
            return None
    return False


def check(table: Lalr, length: int, most: int) -> int:
    """Compare at every stack that a bounded number of terminals leads to. Return the number of certain answers."""
    alive, certain = CoReachableStacks(table), 0
    end = len(table.terminals) - 1
    todo: list[Stack] = [(table.start,)]
    for _ in range(length + 1):
        following: list[Stack] = []
        for stack in todo:
            state = alive.start
            for q in stack[1:]:
                state = alive.step(state, q)
            accepts = alive.accepts(state)
            assert accepts >> end & 1 == (fed(table, stack, end) is not None)
            certain += 1
            for terminal in range(end):
                after = fed(table, stack, terminal)
                answer = False if after is None else finishes(table, after, most)
                if answer is not None:
                    assert accepts >> terminal & 1 == answer
                    certain += 1
                if after is not None:
                    following.append(after)
        todo = following[:40]
    return certain


@pytest.mark.parametrize("name", SMALL)
def test_small_grammars(name: str) -> None:
    assert check(build_tables(numbered(rules_of(SMALL[name]), "start")), 3, 2_000) > 0


def test_infinite_shifting_without_acceptance() -> None:
    table = build_tables(numbered(rules_of(SMALL["dead end"]), "start"))
    tables = CoReachableStacks(table).tables(100)
    assert tables is not None
    assert tables.has_dead_ends
    state, stack = tables.start, fed(table, (table.start,), 0)
    for pushed in stack[1:] if stack else ():
        assert not tables.accepts[state].any()
        state = tables.following[state, pushed]
    assert not tables.accepts[state].any()


def test_no_dead_ends_without_conflicts_and_unproductive_rules() -> None:
    for name in ("expressions", "dangling", "nullable", "templates", "repeated"):
        tables = CoReachableStacks(build_tables(numbered(rules_of(SMALL[name]), "start"))).tables(10_000)
        assert tables is not None
        assert not tables.has_dead_ends
    assert CoReachableStacks(build_tables(numbered(rules_of(SMALL["expressions"]), "start"))).tables(3) is None


@settings(max_examples=50)
@given(grammars())
def test_random_grammars(rules: list) -> None:  # type: ignore[type-arg]
    try:
        table = build_tables(numbered(rules, "n0"))
    except GrammarError:
        assume(False)
    check(table, 2, 60)
