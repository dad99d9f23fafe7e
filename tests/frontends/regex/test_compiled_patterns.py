"""Automata of patterns made by the kernel are those of the sets of items in Python: languages, limits and charges."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from constrain.automata.dfa import Dfa
from constrain.base.errors import LimitError
from constrain.base.work import WorkBudget, use_budget
from constrain.frontends.json_schema.strings.formats import FORMATS
from constrain.frontends.regex import Dialect
from constrain.frontends.regex.compiled_patterns import build_compiled
from constrain.frontends.regex.pattern_parts import has_lookarounds
from constrain.frontends.regex.regex_dfa import _determinise, newline_charset
from constrain.frontends.regex.regex_parser import parse_pattern
from constrain.frontends.regex.regex_positions import PositionItems
from constrain.frontends.regex.regex_program import RegexProgram, Search, compile_program
from constrain.kernels.pattern_layout import MOST_INSTRUCTIONS
from tests.grammar_strategies import regexes

SEARCHES = get_args(Search)


def build(program: RegexProgram, most: int) -> tuple[Dfa | str | None, int]:
    budget = WorkBudget(10**9)
    with use_budget(budget):
        try:
            return build_compiled(program, most), budget.spent
        except LimitError as error:
            return error.cause, budget.spent


def build_slowly(program: RegexProgram, most: int) -> tuple[Dfa | str, int]:
    budget = WorkBudget(10**9)
    with use_budget(budget):
        try:
            items = PositionItems(program, newline_charset("ecma"))
            return Dfa.from_table(_determinise(items, most)), budget.spent
        except LimitError as error:
            return error.cause, budget.spent


def check(pattern: str, search: Search, most: int, dialect: Dialect = "ecma") -> None:
    term = parse_pattern(pattern, dialect=dialect, flags="", nesting=100)
    if has_lookarounds(term):
        return
    program = compile_program(term, search=search, max_positions=20_000)
    found, units = build(program, most)
    if found is None:
        assert dialect == "python" or len(program.code) > MOST_INSTRUCTIONS
        return
    expected, expected_units = build_slowly(program, most)
    assert found == expected
    assert isinstance(found, str) or abs(units - expected_units) <= expected_units // 4 + 20


@settings(max_examples=180)
@given(regexes(), st.sampled_from(SEARCHES), st.sampled_from([1, 3, 10, 20_000]))
def test_random_patterns(pattern: str, search: Search, most: int) -> None:
    check(pattern.replace("\\Z", "\\b").replace("$", "\\Z"), search, most, "python")


@pytest.mark.parametrize("pattern", [pattern for pattern in FORMATS.values() if pattern])
@pytest.mark.parametrize("search", SEARCHES)
def test_patterns_of_formats(pattern: str, search: Search) -> None:
    check(pattern, search, 20_000)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^",
        "$",
        "^$",
        "a$^",
        "^a^b",
        "(^|a)b",
        "(a|$)+",
        "[^]*a",
        "[^]*",
        "(|a)(|b)",
        "a{0,40}b",
        "[]",
        "\\w+\\W",
        "é|ß",
    ],
)
def test_anchors_and_empty_parts(pattern: str) -> None:
    for search in SEARCHES:
        check(pattern, search, 20_000)


@pytest.mark.parametrize(("pattern", "is_known"), [("a{1,900}", True), ("a{1,1100}", False), ("(?m:^a)", False)])
def test_long_programs_and_anchors_of_lines_are_left_to_python(pattern: str, is_known: bool) -> None:
    dialect: Dialect = "python" if "m" in pattern else "ecma"
    program = compile_program(
        parse_pattern(pattern, dialect=dialect, flags="", nesting=100), search="search", max_positions=20_000
    )
    assert (build_compiled(program, 20_000) is not None) == is_known


def test_many_sets_are_left_to_python() -> None:
    for count in (25, 32):
        pattern = "".join(map(chr, range(0x100, 0x100 + count)))
        program = compile_program(
            parse_pattern(pattern, dialect="ecma", flags="", nesting=100), search="full", max_positions=20_000
        )
        assert (build_compiled(program, 20_000) is None) == (count > 31)


def test_the_kernel_ends_when_the_work_is_spent() -> None:
    """A pattern of many states is refused as soon as the budget is spent, without making all of them."""
    program = compile_program(
        parse_pattern("(?:a|b)*a(?:a|b){12}", dialect="ecma", flags="", nesting=100),
        search="full",
        max_positions=20_000,
    )
    with use_budget(WorkBudget(1_000)) as budget, pytest.raises(LimitError):
        build_compiled(program, 20_000)
    assert 1_000 < budget.spent < 1_200
