"""Phrase automata against `re` and `in`, on all short texts and on random ones."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, strategies as st

from constrain import LimitError, Limits, UnsatisfiableError, all_of, contains, excludes
from constrain.automata.dfa import Dfa
from constrain.automata.phrase_automata import build_phrase_dfa, intersect_all
from constrain.base.work import work_budget
from constrain.forms import Form
from constrain.grammar.grammar_dfa import to_dfa

ALPHABET = "ab -"
ALL = ["".join(word) for length in range(7) for word in product(ALPHABET, repeat=length)]
phrases = st.lists(st.text(ALPHABET, min_size=1, max_size=4), min_size=1, max_size=4)
TEXT = st.text("abAB ſsSİiıKkK_é\U0001f600-", max_size=12)
PHRASE = st.text("abAsSſkKiıİ é-\U0001f600", min_size=1, max_size=3)


def language(form: Form) -> Dfa:
    return to_dfa(form.grammar(), "a test")


def pattern(words: list[str], boundaries: str, case: str) -> re.Pattern[str]:
    """The pattern of `re` that finds the phrases."""
    found = "|".join(map(re.escape, words))
    bounded = rf"(?<!\w)(?:{found})(?!\w)" if boundaries == "words" else found
    return re.compile(bounded, re.IGNORECASE if case == "insensitive" else 0)


@given(phrases)
def test_all_short_texts(words: list[str]) -> None:
    dfa = build_phrase_dfa(words)
    assert len(dfa.delta) <= 2 + sum(map(len, words))
    for text in ALL:
        assert dfa.accepts(text) == any(word in text for word in words), text


@given(phrases)
def test_all_short_texts_with_whole_words(words: list[str]) -> None:
    dfa, oracle = language(contains(*words, boundaries="words")), pattern(words, "words", "sensitive")
    for text in ALL:
        assert dfa.accepts(text) == bool(oracle.search(text)), text


@given(
    st.lists(PHRASE, min_size=1, max_size=3),
    st.sampled_from(["none", "words"]),
    st.sampled_from(["sensitive", "insensitive"]),
    st.lists(TEXT, min_size=1, max_size=30),
)
def test_random_texts(words: list[str], boundaries: str, case: str, texts: list[str]) -> None:
    options = {"boundaries": boundaries, "case": case}
    some, none = language(contains(*words, **options)), language(excludes(*words, **options))  # type: ignore[arg-type]
    assert none == some.complement()
    oracle = pattern(words, boundaries, case)
    for text in [*texts, *(text + words[0] + end for text in texts for end in ("", " ", "a"))]:
        assert some.accepts(text) == bool(oracle.search(text)), text


@given(st.lists(phrases, min_size=1, max_size=3))
def test_conjunctions_of_clauses(clauses: list[list[str]]) -> None:
    dfa = language(all_of(clauses))
    assert dfa == intersect_all(map(build_phrase_dfa, clauses))
    for text in ALL:
        assert dfa.accepts(text) == all(any(word in text for word in clause) for clause in clauses), text


def test_symbols_that_differ_in_being_parts_of_words() -> None:
    """U+0345 equals iota if case is ignored, but is no word character."""
    dfa, oracle = language(contains("ι", case="insensitive", boundaries="words")), re.compile(r"(?i)(?<!\w)ι(?!\w)")
    for text in map("".join, product("ι\u0345Ιa ", repeat=3)):
        assert dfa.accepts(text) == bool(oracle.search(text)), text


def test_many_phrases() -> None:
    words = [f"word{number}" for number in range(500)]
    dfa = language(excludes(*words, boundaries="words"))
    assert dfa.accepts("word 500 word500 aword7 word77x")
    assert not dfa.accepts("a word77, too")


def test_no_phrases_and_no_clauses() -> None:
    assert build_phrase_dfa([]).is_empty
    assert intersect_all([]).is_universal


def test_clauses_that_exclude_each_other() -> None:
    with pytest.raises(UnsatisfiableError, match="all clauses"):
        all_of(["abc", excludes("b")]).grammar()


@pytest.mark.parametrize("limits", [Limits(dfa_states=50), Limits(work=2_000)])
def test_work_is_bounded(limits: Limits) -> None:
    with work_budget(limits.work), pytest.raises(LimitError):
        contains("a" * 100).grammar(limits)
    with work_budget(limits.work), pytest.raises(LimitError):
        all_of(["ab", "ba", "cd", "dc", "ef", "fe", "gh"]).grammar(limits)


def test_many_clauses_are_too_large() -> None:
    with pytest.raises(LimitError), work_budget(Limits().work):
        all_of([f"{number:05d}" for number in range(40)]).grammar()
