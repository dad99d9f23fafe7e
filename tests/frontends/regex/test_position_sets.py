"""The kernel that makes the states of a pattern makes those of the loop over items, with the same work and limits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st

from constrain.automata.dfa import Dfa
from constrain.base.errors import LimitError
from constrain.base.options import Limits
from constrain.base.work import work_budget
from constrain.frontends.regex import regex_dfa
from constrain.frontends.regex.pattern_parts import has_lookarounds
from constrain.frontends.regex.regex_dfa import newline_charset
from constrain.frontends.regex.regex_parser import parse_pattern
from constrain.frontends.regex.regex_positions import PositionItems
from constrain.frontends.regex.regex_program import compile_program

ATOMS = st.sampled_from(["a", "b", "ab", "[ab]", "[^a]", ".", r"\d", r"\w", "é", "[a-c😀]", "", "^", "$"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.builds(
            lambda part, times: f"(?:{part}){times}", inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,40}"])
        ),
    ),
    max_leaves=12,
)


def determinise_both(pattern: str, max_states: int, work: int) -> list[tuple[bytes | str, int]]:
    """Return, for the kernel and for the loop, the key of the Dfa or the error, and the work."""
    term = parse_pattern(pattern, dialect="ecma", flags="", nesting=Limits().nesting)
    program = compile_program(term, search="search", max_positions=20_000)
    results: list[tuple[bytes | str, int]] = []

    def by_kernel(items: PositionItems) -> Dfa:
        following = items.list_following(1 << 40)
        assert following is not None
        return regex_dfa._determinise_items(items, following, max_states)

    def by_loop(items: PositionItems) -> Dfa:
        return Dfa.from_table(regex_dfa._determinise(items, max_states))

    methods: list[Callable[[PositionItems], Dfa]] = [by_kernel, by_loop]
    for method in methods:
        items = PositionItems(program, newline_charset("ecma"))
        with work_budget(work) as budget:
            try:
                results.append((method(items).key, budget.spent))
            except LimitError as error:
                results.append((error.cause, 0))
    return results


@settings(deadline=None)
@given(
    pattern=PATTERNS, max_states=st.sampled_from([2, 5, 20, 20_000]), work=st.sampled_from([10, 100, 1_000, 1 << 40])
)
def test_the_kernel_is_the_loop(pattern: str, max_states: int, work: int) -> None:
    kernel, loop = determinise_both(pattern, max_states, work)
    assert kernel == loop


@pytest.mark.parametrize("pattern", ["^(a?b?c?){60}$", "(a|b)*a(a|b){9}", "^" + "|".join(map(str, range(300))) + "$"])
def test_more_states_than_there_is_space_for_at_first(pattern: str) -> None:
    kernel, loop = determinise_both(pattern, 20_000, 1 << 40)
    assert kernel == loop and isinstance(kernel[0], bytes)


def test_items_of_several_kinds_are_left_to_the_loop() -> None:
    term = parse_pattern("^a$", dialect="ecma", flags="m", nesting=9)
    assert not has_lookarounds(term)
    program = compile_program(term, search="search", max_positions=100)
    assert PositionItems(program, newline_charset("ecma")).list_following(1_000) is None
