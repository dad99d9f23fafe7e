"""Phrases in every output: grid beam search, dynamic beam allocation and NeuroLogic, against exhaustive search."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain import compile as compile_constraint
from constrain.base.errors import ArgumentError, LimitError
from constrain.search import BeamSearch, FoundAnswers, Lookahead, PhraseBanks, PhraseProgress, beam_search
from constrain.search.beam_selection import allocate_banks, rotate_banks
from constrain.search.hypotheses import Candidate
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import LETTERS, PIECES, Case, ChainModel, regular

METHODS = ["grid", "dynamic", "clauses"]
CLAUSES: list[list[Any]] = [["ab"], ["ab", "ca"], [["bb", "ac"], "cb"], ["abc", "cab"], ["aa", "bb"], ["bca"]]


def free(seed: int = 0, vocabulary: Vocabulary = LETTERS, most: int = 6) -> Case:
    """All texts of some letters, of which every one may be unlikely."""
    return regular("free", vocabulary, "[abc]*" if vocabulary is LETTERS else "[ab]*", most, seed=seed)


def contains(text: bytes, clauses: list[Any]) -> bool:
    alternatives = [[clause] if isinstance(clause, str) else clause for clause in clauses]
    return all(any(phrase.encode() in text for phrase in clause) for clause in alternatives)


def likeliest(case: Case, clauses: list[Any]) -> list[float]:
    text = case.constraint.vocabulary.text
    return sorted((math.log(p) for tokens, p in case.law().items() if contains(text(tokens), clauses)), reverse=True)


def search(case: Case, clauses: list[Any], width: int, n: int = 1, **more: Any) -> FoundAnswers:
    ahead = more.pop("lookahead", Lookahead())
    options = BeamSearch(width=width, phrases=PhraseBanks(clauses, **more), lookahead=ahead)
    return beam_search(case.lm, case.constraint, options, n=n, max_tokens=case.max_tokens)


# ---- the published systems on their own terms -------------------------------------------------------------------


@pytest.mark.parametrize("clauses", CLAUSES, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_full_width_finds_the_highest_score_of_exhaustive_search(method: str, clauses: list[Any]) -> None:
    case = free(3)
    found = search(case, clauses, 2000, 5, method=method)
    assert [answer.logprob for answer in found] == pytest.approx(likeliest(case, clauses)[:5])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("method", METHODS)
def test_every_output_has_every_phrase_at_any_width(method: str, width: int, seed: int) -> None:
    case = free(seed, most=8)
    for clauses in CLAUSES:
        found = search(case, clauses, width, width, method=method)
        for answer in found:
            assert contains(answer.text.encode(), clauses)
            assert len(answer.tokens) < case.max_tokens


@pytest.mark.parametrize("method", METHODS)
def test_phrases_are_reached_within_the_tightest_budget(method: str) -> None:
    """Two phrases of three letters and the end need seven tokens; the model finds all of them unlikely."""
    constraint = compile_constraint(LETTERS, regex="[abc]*")
    rows = np.tile([0.001, 0.001, 0.018, 0.98], (5, 1))
    lm = ChainModel(np.log(rows), 1)
    for max_tokens in (7, 8, 12):
        options = BeamSearch(width=2, phrases=PhraseBanks(["aba", "bab"], method=method))  # type: ignore[arg-type]
        found = beam_search(lm, constraint, options, max_tokens=max_tokens)
        assert contains(found[0].text.encode(), ["aba", "bab"])


@pytest.mark.parametrize("method", METHODS)
def test_phrases_begin_and_end_inside_tokens(method: str) -> None:
    """The tokens ab, ba and abb overlap the phrase: it is found in every spelling."""
    case = free(4, PIECES, 5)
    for clauses in (["bab"], ["abba"], ["aab", "bb"]):
        found = search(case, clauses, 2000, 2000, method=method)
        assert [answer.logprob for answer in found] == pytest.approx(likeliest(case, clauses))
        narrow = search(case, clauses, 3, 1, method=method)
        assert contains(narrow[0].text.encode(), clauses)


@pytest.mark.parametrize("clauses", CLAUSES, ids=str)
def test_full_width_clauses_equal_dynamic_allocation(clauses: list[Any]) -> None:
    """NeuroLogic without look-ahead, pruning and reward is DBA with clauses when nothing is cut."""
    case = free(5)
    first, second = (search(case, clauses, 2000, 2000, method=method) for method in ("clauses", "dynamic"))
    assert {one.tokens: one.logprob for one in first} == {one.tokens: one.logprob for one in second}


def test_dynamic_allocation_reaches_the_scores_of_a_grid_of_equal_width() -> None:
    """DBA against GBS with the same number of hypotheses in all: no lower on nearly all cases."""
    better = 0
    cases = [(seed, clauses) for seed in range(4) for clauses in CLAUSES[:4]]
    for seed, clauses in cases:
        case = free(seed, most=7)
        banks = PhraseProgress(clauses, LETTERS).banks
        dynamic = search(case, clauses, 3 * banks, method="dynamic")[0].logprob
        grid = search(case, clauses, 3, method="grid")[0].logprob
        better += dynamic >= grid - 1e-9
    assert better >= 0.9 * len(cases)


def test_look_ahead_finds_likelier_texts_with_the_phrase() -> None:
    """Narrow beams over many models: the look-ahead of NeuroLogic A*esque is no worse on average."""
    totals = {0: 0.0, 2: 0.0}
    for seed in range(12):
        case = free(seed, most=7)
        for steps in totals:
            ahead = Lookahead(steps=steps, weight=0.3, breadth=3)
            totals[steps] += search(case, ["abc"], 2, method="clauses", lookahead=ahead)[0].logprob
    assert totals[2] >= totals[0]


def test_the_reward_prefers_a_phrase_that_was_begun() -> None:
    """With a reward large enough, a beam of one writes the phrase at once."""
    case = free(6, most=9)
    found = search(case, ["acb"], 1, method="clauses", reward=50.0)
    assert found[0].text.startswith("acb")


def test_phrases_hold_within_another_constraint() -> None:
    constraint = compile_constraint(Vocabulary.bytes(), schema={"type": "string", "maxLength": 12})
    lm = ChainModel.random(Vocabulary.bytes(), 0, 1)
    for method in METHODS:
        options = BeamSearch(width=4, phrases=PhraseBanks(["New", "York"], method=method))  # type: ignore[arg-type]
        found = beam_search(lm, constraint, options, n=4, max_tokens=20)
        assert all("New" in answer.value and "York" in answer.value for answer in found)


@pytest.mark.parametrize("clauses", CLAUSES[:4], ids=str)
def test_banks_at_full_width_equal_the_product_of_automata(clauses: list[Any]) -> None:
    """The same phrases as part of the constraint: the same texts with the same probabilities."""
    case = free(7)
    form = constrain.regex("[abc]*") & constrain.all_of(clauses)
    product_constraint = compile_constraint(LETTERS, form)
    within = beam_search(case.lm, product_constraint, BeamSearch(width=2000), n=2000, max_tokens=case.max_tokens)
    beside = search(case, clauses, 2000, 2000)
    assert {one.tokens: one.logprob for one in within} == pytest.approx({one.tokens: one.logprob for one in beside})


def test_phrases_that_the_constraint_excludes_are_a_limit_error() -> None:
    case = regular("no c", LETTERS, "[ab]*", 6)
    with pytest.raises(LimitError, match="no text"):
        search(case, ["c"], 3)


def test_a_search_that_finds_nothing_names_the_context_where_it_is_full() -> None:
    case = regular("no c", LETTERS, "[ab]*", 6)
    for left, is_full in ((None, False), (case.max_tokens + 1, False), (case.max_tokens, True)):
        case.lm.max_new_tokens = left
        with pytest.raises(LimitError) as error:
            search(case, ["c"], 3)
        assert error.value.is_of_context == ("max_tokens" not in str(error.value)) == is_full


# ---- the automaton ----------------------------------------------------------------------------------------------

PHRASES = st.lists(
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3), min_size=1, max_size=4
)  # fmt: skip


@given(clauses=PHRASES, text=st.text("abc", max_size=20))
@settings(max_examples=100, deadline=None)
def test_the_count_is_that_of_searching_every_phrase(clauses: list[list[str]], text: str) -> None:
    progress = PhraseProgress(clauses)
    expected = sum(any(phrase in text for phrase in clause) for clause in clauses)
    assert progress.count(text.encode()) == expected
    state = progress.start
    for byte in text.encode():
        state = progress.advance(state, bytes([byte]))
    assert progress.is_met(state) == (expected == len(clauses))
    rest, missing = progress.rest_of_phrase(state), b"".join(progress.missing_phrases(state))
    assert progress.is_met(progress.advance(state, missing))
    assert (missing == b"") == progress.is_met(state)
    assert not rest or progress.advance(state, rest)[1].bit_count() > expected


@given(clauses=PHRASES, text=st.text("ab", max_size=12))
@settings(max_examples=100, deadline=None)
def test_the_bank_is_the_covered_length(clauses: list[list[str]], text: str) -> None:
    """Of a vocabulary of single bytes: the length of a met clause, else the longest beginning at the end."""
    progress = PhraseProgress(clauses)
    state = progress.advance(progress.start, text.encode())
    expected = 0
    for clause in clauses:
        most = max(map(len, clause))
        begun = max(d for phrase in clause for d in range(len(phrase)) if text.endswith(phrase[:d]))
        expected += most if any(phrase in text for phrase in clause) else min(begun, most - 1)
    assert progress.bank(state) == expected
    assert (progress.bank(state) == progress.banks - 1) == progress.is_met(state)


def test_moves_of_tokens_are_those_of_their_bytes() -> None:
    progress = PhraseProgress(["abba", ["bb", "aab"]], PIECES)
    for text in map(bytes, product(b"ab", repeat=3)):
        node, met = progress.advance(progress.start, text)
        moves = progress.moves_from(node)
        for token, data in enumerate(PIECES.tokens):
            after = progress.advance((node, met), data or b"")
            assert moves.states_after(met)[moves.classes[token]] == after


def test_a_bank_counts_tokens_of_phrases() -> None:
    progress = PhraseProgress(["abb"], PIECES)  # one token
    assert progress.banks == 2
    assert progress.bank(progress.advance(progress.start, b"ab")) == 0


# ---- allocation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "counts", "expected"),
    [
        (10, [99, 99, 99], [3, 3, 4]),  # the remainder goes to the last bank
        (10, [99, 99, 1], [3, 6, 1]),  # unused slots go to the bank before
        (10, [99, 0, 1], [9, 0, 1]),
        (3, [9, 9, 9, 9, 9], [0, 0, 0, 0, 3]),  # more banks than slots
        (3, [9, 9, 1, 0, 0], [0, 2, 1, 0, 0]),
        (9, [1, 9, 9], [1, 3, 5]),  # what the first cannot use goes to the last
        (9, [1, 1, 1], [1, 1, 1]),
    ],
)
def test_allocation_of_banks(width: int, counts: list[int], expected: list[int]) -> None:
    assert allocate_banks(width, counts) == expected


def candidate(key: float) -> Candidate:
    return Candidate(None, 0, 0.0, key)  # type: ignore[arg-type]


def test_banks_of_clauses_take_turns() -> None:
    banks = {0b00: [candidate(-1), candidate(-2)], 0b01: [candidate(-3), candidate(-9)], 0b10: [candidate(-5)]}
    assert [one.key for one in rotate_banks(banks, None, None)] == [-1, -3, -5, -2, -9]
    assert [one.key for one in rotate_banks(banks, 3, None)] == [-1, -3, -2], "the three likeliest"
    assert [one.key for one in rotate_banks(banks, None, 0)] == [-3, -5, -9], "no fewer clauses than the best"


# ---- arguments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["ab", b"ab", [1], ["a", None], 5, None])
def test_clauses_that_are_no_phrases_are_type_errors(wrong: Any) -> None:
    with pytest.raises(TypeError):
        PhraseBanks(wrong)


@pytest.mark.parametrize("wrong", [[], [""], [[]], ["a", ["b", ""]], ["a"] * 64])
def test_clauses_without_meaning_are_argument_errors(wrong: Any) -> None:
    with pytest.raises(ArgumentError):
        PhraseBanks(wrong)


def test_options_of_one_method_are_refused_by_the_others() -> None:
    with pytest.raises(ArgumentError, match="keep"):
        PhraseBanks(["a"], keep=3)
    with pytest.raises(ArgumentError, match="groups"):
        BeamSearch(width=4, groups=2, phrases=PhraseBanks(["a"]))
