"""Rules that a rule begins with are linked together with it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import pytest

from constrain.base.errors import UnsupportedError
from constrain.grammar.nodes import Choice, Grammar, Literal, Node, Repeat, Rule, Sequence
from constrain.program.program import MOST_NEAR, Program

OPEN, CLOSE, WORD = Literal(b"["), Literal(b"]"), Literal(b"word")


def linked(rules: Mapping[Hashable, Node], *names: str) -> list[bool]:
    """Link rule `a`, and return which of the others are linked."""
    program = Program(Grammar(WORD, rules))
    program.link_following([program.cell(Rule("a"))], 0)
    return [bool(program.words[program.cell(Rule(name))]) for name in names]


def test_rules_before_a_byte_and_after_a_bracket_are_near() -> None:
    items = Sequence((OPEN, Repeat(Rule("b"), 0, 3), CLOSE))
    start = Choice((items, Rule("c"), Sequence((WORD, Rule("d")))))
    rules: dict[Hashable, Node] = {"a": start, "b": WORD, "c": Rule("e"), "d": WORD, "e": WORD}
    assert linked(rules, "b", "c", "d", "e") == [True, True, False, True]


def test_a_second_bracket_ends_the_search() -> None:
    assert linked({"a": Sequence((OPEN, OPEN, Rule("b"))), "b": WORD}, "b") == [False]


def test_left_recursion_and_many_rules_end() -> None:
    assert linked({"a": Choice((Rule("a"), WORD))}, "a") == [True]
    names = [f"r{i}" for i in range(3 * MOST_NEAR)]
    rules: dict[Hashable, Node] = dict.fromkeys(names, WORD)
    rules["a"] = Choice(tuple(map(Rule, names)))
    assert sum(linked(rules, *names)) <= MOST_NEAR
    chain: dict[Hashable, Node] = {f"r{i}": Rule(f"r{i + 1}") for i in range(len(names) - 1)}
    chain |= {"a": Rule("r0"), names[-1]: WORD}
    assert sum(linked(chain, *names)) == MOST_NEAR


class Refusing(dict[Hashable, Node]):
    """Rules of which `bad` cannot be emitted."""

    def __getitem__(self, name: Hashable) -> Node:
        if name == "bad":
            raise UnsupportedError("bad")
        return super().__getitem__(name)


def test_an_error_of_a_near_rule_is_raised_where_it_is_needed() -> None:
    program = Program(Grammar(WORD, Refusing(a=Choice((Rule("bad"), Rule("b"))), b=WORD)))
    program.link_following([program.cell(Rule("a"))], 0)
    assert program.words[program.cell(Rule("b"))] and not program.words[program.cell(Rule("bad"))]
    with pytest.raises(UnsupportedError, match="bad"):
        program.link(program.cell(Rule("bad")))
