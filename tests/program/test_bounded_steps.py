"""Hostile grammars and texts: each step counts what it does, and nothing recurses as deep as a text or a grammar."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from constrain import LimitError, Limits, Style, Vocabulary, compile, gbnf, json_schema, lark
from constrain.base.work import work_budget
from constrain.engine.matcher import Matcher
from constrain.kernels import layout as at
from tests.text_acceptance import accepts_text

VOCABULARY = Vocabulary.bytes()


def derives(rules: dict[str, list[str]], text: str) -> bool:
    """Whether the rule S makes a text (Cocke, Younger, Kasami). Capital letters are rules."""
    n = len(text)
    made: dict[tuple[int, int], set[str]] = {(i, i): set() for i in range(n + 1)}
    for length in range(n + 1):
        for i in range(n - length + 1):
            here = made[i, i + length] = set()
            while True:
                before = len(here)
                for name, options in rules.items():
                    if name not in here and any(_splits(option, text, i, i + length, made) for option in options):
                        here.add(name)
                if len(here) == before:
                    break
    return "S" in made[0, n]


def _splits(option: str, text: str, i: int, j: int, made: dict[tuple[int, int], set[str]]) -> bool:
    if not option:
        return i == j
    head, rest = option[0], option[1:]
    if head.islower():
        return i < j and text[i] == head and _splits(rest, text, i + 1, j, made)
    return any(head in made[i, k] and _splits(rest, text, k, j, made) for k in range(i, j + 1) if (i, k) in made)


def as_gbnf(rules: dict[str, list[str]]) -> str:
    def option(symbols: str) -> str:
        return " ".join(f'"{s}"' if s.islower() else s for s in symbols) or '""'

    lines = [f"{name} ::= {' | '.join(map(option, options))}" for name, options in rules.items()]
    return "root ::= S\n" + "\n".join(lines)


options = st.lists(
    st.sampled_from(["a", "b", "aS", "aT", "bS", "aSS", "aST", "aTS", "aSa", "bTb", "aSb", ""]), min_size=1, max_size=4
)


@given(options, options, st.lists(st.sampled_from("aaab"), min_size=18, max_size=30).map("".join))
def test_ambiguous_texts_longer_than_a_node_has_edges(s: list[str], t: list[str], text: str) -> None:
    """Nodes that share edges take the texts that rules make: against the textbook's table."""
    rules = {"S": [*s, "a"], "T": [*t, "b"]}
    constraint = compile(VOCABULARY, gbnf(as_gbnf(rules)))
    for one in (text, "a" * len(text), text[:19]):
        assert accepts_text(constraint, one.encode()) == derives(rules, one)


@pytest.mark.parametrize(
    "rules", ['"a" root root | "a"', '"a" root "a" | "a" root | "a"', '("a" root)? | "a" root root', '"a" root* "a"?']
)
def test_edges_of_ambiguous_texts_grow_with_the_text(rules: str) -> None:
    """n bytes leave O(n) edges: each node shares those of the one before."""
    matcher = compile(VOCABULARY, gbnf(f"root ::= {rules}")).matcher()
    matcher.advance_bytes(b"a" * 400)
    edges = int(matcher._state_cache.arrays[at.HEAD][at.N_EDGES])
    assert edges < 400 * 20


@pytest.mark.parametrize("n", [300, 3_000])
@pytest.mark.parametrize(
    "line",
    [
        "r{0} ::= r{1}",
        'r{0} ::= "a" r{1}',
        'r{0} ::= r{1} "a"',
        'r{0} ::= "a" r{1} | "b"',
        'r{0} ::= "a" r{1} "b"',
        'r{0} ::= r{1} | "a{0}" root',
    ],
)
def test_chains_of_rules_cost_as_much_as_they_are_long(line: str, n: int) -> None:
    text = "root ::= r0\n" + "\n".join(line.format(i, i + 1) for i in range(n)) + f'\nr{n} ::= "c"'
    with work_budget(120 * n + 2_000):
        made = gbnf(text).read(Limits())
    matcher = compile(VOCABULARY, gbnf(text)).matcher()
    assert made is not None and matcher.shortest_completion()


@pytest.mark.parametrize(
    "line", ["r{0} ::= r{1} r{1}", "r{0} ::= r{1} | r{1} r{1}", 'r{0} ::= r{1} "x" | r{1} "y"', "r{0} ::= r{1}{{9}}"]
)
@pytest.mark.parametrize("leaf", ['"a"', "[a-z]", '"a" | "b"', '"a" root?'])
def test_rules_that_double_stay_rules(line: str, leaf: str) -> None:
    text = "root ::= r0\n" + "\n".join(line.format(i, i + 1) for i in range(60)) + f"\nr60 ::= {leaf}"
    matcher = compile(VOCABULARY, gbnf(text)).matcher()
    assert ord("a") in matcher.next_bytes()
    matcher.advance_bytes(b"a")


@pytest.mark.parametrize(
    "text",
    ["(" * 100_000, 'root ::= "a"' + "*" * 5_000, 'root ::= "a"' + "{2}" * 3_000, 'root ::= "a"{' + "9" * 5_000 + "}"],
)
def test_deep_and_long_texts_end_in_an_answer_or_an_error(text: str) -> None:
    text = text if "root" in text else f'root ::= {text}"a"{")" * len(text)}'
    try:
        assert compile(VOCABULARY, gbnf(text)).matcher().next_bytes() == {ord("a")}
    except LimitError as error:
        assert len(str(error)) < 1_000


def test_a_set_of_too_many_configurations_is_refused_and_the_matcher_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.engine.state_cache.MOST_ITEMS", 1_000)
    matcher = compile(VOCABULARY, gbnf('root ::= "a" root root | "a" | "a" root "b"')).matcher()
    taken = 0
    with pytest.raises(LimitError, match="positions of the grammar"):
        while True:
            matcher.advance_bytes(b"a")
            taken += 1
    before = matcher.state, matcher.tokens
    with pytest.raises(LimitError, match="positions of the grammar"):
        matcher.advance_bytes(b"a")
    assert (matcher.state, matcher.tokens) == before
    assert taken > 100
    matcher.rollback(10)
    assert matcher.mask().any()


def test_a_mask_beyond_the_budget_is_refused_each_time() -> None:
    """Its steps are counted whether or not they were remembered, so that it fails again."""
    text = "root ::= " + " | ".join(f'[a-{chr(98 + i % 20)}]+ "{i}"{{3}} root?' for i in range(40))
    constraint = compile(VOCABULARY, gbnf(text), limits=Limits(work=60_000))
    matcher = constraint.matcher()
    matcher.mask()
    matcher._state_cache.arrays[at.HEAD][at.MOST_STEPS] = 10
    matcher.advance_bytes(b"a")
    for _ in range(3):
        with pytest.raises(LimitError, match="steps"):
            matcher.mask()
    assert matcher.allows(ord("a"))


DEEP: dict[str, Callable[[], Matcher]] = {
    "lark": lambda: compile(VOCABULARY, lark('start: "(" start ")" | "a" start | "x"')).matcher(),
    "gbnf": lambda: compile(VOCABULARY, gbnf('root ::= "(" root ")" | "a" root | "x"')).matcher(),
}


@pytest.mark.parametrize("front", DEEP)
def test_deep_texts_need_no_deep_stack(front: str) -> None:
    """In a thread with a stack of 256 KiB: what recursed once a byte would be a segmentation fault."""
    found: list[Any] = []

    def run() -> None:
        matcher = DEEP[front]()
        matcher.advance_bytes(b"a" * 30_000)
        matcher.mask()
        matcher.advance_bytes(b"(" * 3_000 + b"x")
        matcher.mask()
        matcher.advance_bytes(b")" * 3_000)
        matcher.mask()
        found.append(matcher.is_complete)

    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert found == [True]


@pytest.mark.parametrize("n", [10, 200, 2_000])
def test_tuples_of_any_length_are_linked_without_a_deep_stack(n: int) -> None:
    """What nests deeper than one rule's code holds becomes separate rules with the same meaning."""
    schema = {"type": "array", "prefixItems": [{"type": "integer"}] * n, "items": False}
    constraint = compile(VOCABULARY, json_schema(schema), style=Style.any())
    for count in (0, 1, n - 1, n, n + 1):
        assert accepts_text(constraint, b"[" + b",".join([b"7"] * count) + b"]") == (count <= n)
    assert constraint.matcher().shortest_completion() is not None
