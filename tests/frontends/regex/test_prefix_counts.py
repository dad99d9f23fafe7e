"""The bound of the states of an automaton holds wherever there is one, and there is one for finite lists of words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from constrain import Limits
from constrain.automata.dfa import Dfa
from constrain.base.errors import LimitError
from constrain.frontends.json_schema.strings.schema_patterns import check_pattern, pattern_dfa, read_pattern
from constrain.frontends.regex.pattern_parts import remove_anchors
from constrain.frontends.regex.prefix_counts import bound_states
from constrain.frontends.regex.regex_parser import parse_pattern

SETS = ("a", "b", "[ab]", "c", "[cd]", "\\d", "0", "é", "[^]", "[]")


def join(parts: list[str]) -> str:
    return "".join(parts)


WORDS = st.recursive(
    st.sampled_from(SETS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=0, max_size=4).map(join),
        st.lists(inner, min_size=1, max_size=4).map(lambda options: f"(?:{'|'.join(options)})"),
        st.tuples(inner, st.integers(0, 3), st.integers(0, 3)).map(lambda x: f"(?:{x[0]}){{{x[1]},{x[1] + x[2]}}}"),
        inner.map(lambda one: f"(?:{one})*"),
    ),
    max_leaves=10,
)


def bound(pattern: str) -> int | None:
    tree = remove_anchors(parse_pattern(pattern, dialect="ecma", flags="", nesting=200), "search")
    return None if tree is None else bound_states(tree)


def count_states(dfa: Dfa) -> int:
    return int(dfa.delta.shape[0])


@settings(deadline=None)
@given(WORDS, st.booleans(), st.booleans())
def test_no_automaton_exceeds_its_bound(words: str, begins: bool, ends: bool) -> None:
    pattern = f"{'^' if begins else ''}(?:{words}){'$' if ends else ''}"
    most = bound(pattern)
    if most is not None:
        dfa = pattern_dfa(pattern, read_pattern(pattern).most_states)
        assert count_states(dfa) <= most and count_states(dfa.complement()) <= most


@pytest.mark.parametrize(
    ("pattern", "states"),
    [
        ("^consent_level_type$", 21), ("^(mac|windows|linux)$", 18), ("finished|failed", 17), ("^\\d{4}-\\d{2}$", 10),
        ("^(ab|cd)-(ef|g)$", 4 + 2 * 1 + 2 * 3 + 3), ("^[a-f0-9]{8}-[1-5][a-f0-9]{3}$", 16),
        ("^(?:a[0-9]){0,2}$", 7), ("^(ax|b){8}$", 3 * (2**8 - 1) + 3),
    ],
)  # fmt: skip
def test_lists_of_words_have_a_bound(pattern: str, states: int) -> None:
    assert bound(pattern) == states >= count_states(pattern_dfa(pattern, 20_000))


@pytest.mark.parametrize(
    "pattern",
    ["^a+$", "^a*b$", "^([a-f]x|a)b$", "[a-f]a", "^(ax|b){9}$", "^a{2000}$", "^" + "(?:a" * 40 + ")?" * 40 + "$"],
)
def test_loops_overlapping_sets_and_many_words_have_none(pattern: str) -> None:
    assert bound(pattern) is None


def test_check_pattern_builds_no_dfa_if_the_state_bound_suffices() -> None:
    pattern = "^(first|second|third) word$"
    before = pattern_dfa.cache_info().misses  # type: ignore[attr-defined]
    check_pattern(pattern, "", Limits())
    assert pattern_dfa.cache_info().misses == before  # type: ignore[attr-defined]
    assert read_pattern(pattern).most_states > 20
    with pytest.raises(LimitError):
        check_pattern(pattern, "", Limits(dfa_states=20))
