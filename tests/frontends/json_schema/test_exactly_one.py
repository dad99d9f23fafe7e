"""Exactly one of many languages, against pairs of automata multiplied out; and as `oneOf` of many patterns."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain import LimitError, Limits, Style, Vocabulary
from constrain.automata.dfa import Dfa
from constrain.base.work import work_budget
from constrain.frontends.regex import to_dfa
from tests.text_acceptance import accepts_text

pieces = st.sampled_from(["a", "b", "[ab]", "c?", "a*", "(ab)*", ".", "a{2}", ".*", "", "(a|bc)"])
languages = st.lists(pieces, min_size=1, max_size=4).map("".join)
VOCABULARY = Vocabulary.bytes()


def pairwise(parts: list[Dfa]) -> tuple[Dfa, bool]:
    """Return the union of each language without all others, and whether any two intersect."""
    alone = []
    for place, part in enumerate(parts):
        for other in parts[:place] + parts[place + 1 :]:
            part = part.subtract(other)
        alone.append(part)
    meets = any(one.meets(other) for place, one in enumerate(parts) for other in parts[:place])
    return Dfa.union_of(alone), meets


@given(st.lists(st.tuples(languages, st.sampled_from(["full", "search"])), max_size=6))
def test_exactly_one_is_the_union_of_each_without_the_others(patterns: list[tuple[str, str]]) -> None:
    parts = [to_dfa(pattern, match=match) for pattern, match in patterns]  # type: ignore[arg-type]
    assert Dfa.exactly_one_of(parts) == pairwise(parts)


@settings(max_examples=25, deadline=None)
@given(st.lists(languages, min_size=10, max_size=14), st.booleans(), st.lists(st.text("abc", max_size=5), max_size=8))
def test_one_of_many_patterns_agrees_with_a_validator(patterns: list[str], negated: bool, texts: list[str]) -> None:
    branches: list[object] = [{"pattern": pattern, "maxLength": 6} for pattern in patterns]
    schema: object = {"oneOf": [*branches, {"type": "integer"}, {"enum": ["ab", 3, []]}]}
    schema = {"not": schema} if negated else schema
    validator = jsonschema.Draft202012Validator(schema)
    try:
        constraint = constrain.compile(VOCABULARY, schema=schema, style=Style.any())
    except constrain.UnsatisfiableError:
        assert not any(validator.is_valid(value) for value in (*texts, 3, 4, None, [], {}))
        return
    for value, text in (*((text, f'"{text}"') for text in texts), (3, "3"), (4, "4"), ([], "[]"), (None, "null")):
        assert accepts_text(constraint, text) == validator.is_valid(value), (schema, value)


def spent(count: int) -> int:
    with work_budget(10**12) as budget:
        constrain.compile(VOCABULARY, schema={"oneOf": [{"pattern": f"^a{{{k}}}b|{count}"} for k in range(count)]})
    return budget.spent


def test_the_work_of_one_of_many_patterns_is_polynomial_in_their_size() -> None:
    # 2n patterns of 2n states each are eight times the work of n; pairs of them would be taken 2^n times over.
    assert spent(64) < 16 * spent(32)


@pytest.mark.parametrize("pattern", ["a{%s}", "a{1,%s}", "a{%s,}", "(a{2}b){%s}", "[a-z]{%s}"])
@pytest.mark.parametrize("digits", [5_000, 20, 19])
def test_a_bound_that_no_automaton_counts_to_is_refused(pattern: str, digits: int) -> None:
    for bound in ("9" * digits, "0" * digits + "9" * digits):
        with pytest.raises(LimitError):
            constrain.compile(VOCABULARY, regex=pattern % bound)
        with pytest.raises(LimitError):
            constrain.compile(VOCABULARY, schema={"pattern": pattern % bound}, limits=Limits(dfa_states=10**6))


@pytest.mark.parametrize("digits", [1, 9, 10, 5_000])
def test_reference_to_a_missing_group_is_invalid(digits: int) -> None:
    with pytest.raises(constrain.RegexError if digits else constrain.ConstrainError):
        constrain.compile(VOCABULARY, regex="(a)\\" + "9" * digits)
    with pytest.raises(constrain.SchemaError):
        constrain.compile(VOCABULARY, schema={"pattern": "(a)\\" + "9" * digits})


def test_leading_zeros_of_a_bound_say_nothing() -> None:
    assert to_dfa("a{" + "0" * 5_000 + "2}") == to_dfa("aa")
