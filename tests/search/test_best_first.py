"""Best-first search against the sorted language, with and without proof."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest

from constrain.base.errors import LimitError
from constrain.sampling.checkers import BothCheckers, ValidatorChecker
from constrain.search import BestFirst, beam_search, best_first_search
from tests.markov_factory import ALL_BYTES, PIECES, Case, ChainModel, cases, empty, regular


def sorted_law(case: Case) -> list[tuple[float, tuple[int, ...]]]:
    return sorted(((math.log(p), tokens) for tokens, p in case.law().items() if p > 0), reverse=True)


@pytest.mark.parametrize(("together", "beam"), [(1, 0), (8, 0), (8, 4)])
@pytest.mark.parametrize("n", [1, 4, 5000])
@pytest.mark.parametrize("name", list(cases()))
def test_the_n_likeliest_texts_with_proof(name: str, n: int, together: int, beam: int) -> None:
    case = cases()[name]
    found = best_first_search(
        case.lm,
        case.constraint,
        BestFirst(together=together, max_calls=9999, beam=beam),
        n=n,
        max_tokens=case.max_tokens,
    )
    law = sorted_law(case)
    assert [answer.logprob for answer in found] == pytest.approx([logprob for logprob, _ in law[:n]])
    assert all(math.log(case.law()[answer.tokens]) == pytest.approx(answer.logprob) for answer in found)
    assert found.optimal
    if n < len(law):
        assert found.bound >= law[n][0] - 1e-12, "what is missing is no likelier than the bound says"
    else:
        assert found.bound <= found[-1].logprob


@pytest.mark.parametrize("calls", [3, 6, 12, 20, 340])
def test_without_proof_the_bound_holds(calls: int) -> None:
    case = cases()["brackets"]
    options = BestFirst(max_calls=calls, together=4, beam=0)
    found = best_first_search(case.lm, case.constraint, options, n=40, max_tokens=case.max_tokens)
    assert found.stats["model_calls"] <= calls
    known = {answer.tokens for answer in found}
    missing = max(logprob for logprob, tokens in sorted_law(case) if tokens not in known)
    assert missing <= found.bound + 1e-9
    assert found.optimal == ([answer.logprob for answer in found] == pytest.approx(
        [logprob for logprob, _ in sorted_law(case)[:40]]
    ) and found.bound <= found[-1].logprob)  # fmt: skip
    assert calls < 340 or found.optimal


def test_the_completion_heuristic_is_proven_as_well() -> None:
    for name in ("brackets", "sums", "counting"):
        case = cases()[name]
        options = BestFirst(heuristic="completion", weight=2.0, together=1, beam=0)
        found = best_first_search(case.lm, case.constraint, options, n=3, max_tokens=case.max_tokens)
        assert [answer.logprob for answer in found] == pytest.approx([p for p, _ in sorted_law(case)[:3]])
        assert found.optimal


def test_the_completion_heuristic_finds_a_first_answer_sooner() -> None:
    """A text that is long because its tokens are likely: pure best-first explores short prefixes instead."""
    case = regular("long", ALL_BYTES, "[ab]{20}", 25, seed=2)
    calls = []
    for heuristic in ("completion", "none"):
        options = BestFirst(heuristic=heuristic, weight=3.0, together=1, max_calls=24, beam=0)  # type: ignore[arg-type]
        try:
            calls.append(best_first_search(case.lm, case.constraint, options, max_tokens=25).stats["model_calls"])
        except LimitError:
            calls.append(math.inf)
    assert calls[0] < calls[1]


def test_a_beam_search_gives_answers_when_the_calls_are_used_up() -> None:
    case = regular("long", ALL_BYTES, "[ab]{20}", 25, seed=2)
    with pytest.raises(LimitError):
        best_first_search(case.lm, case.constraint, BestFirst(max_calls=3, beam=0), max_tokens=25)
    found = best_first_search(case.lm, case.constraint, BestFirst(max_calls=3), n=2, max_tokens=25)
    beams = beam_search(case.lm, case.constraint, n=2, max_tokens=25)
    assert [answer.tokens for answer in found] == [answer.tokens for answer in beams]
    assert not found.optimal and found.bound > found[0].logprob
    assert found.stats["model_calls"] == 3 + beams.stats["model_calls"]


def test_texts_are_ranked_by_their_likeliest_spelling_and_spellings_are_added() -> None:
    case = cases()["pieces"]
    masses, best = defaultdict[str, float](float), defaultdict[str, float](float)
    for tokens, p in case.law().items():
        text = PIECES.transcript(tokens).decode()
        masses[text] += p
        best[text] = max(best[text], p)
    options = BestFirst(distinct="text")
    found = best_first_search(case.lm, case.constraint, options, n=5000, max_tokens=case.max_tokens)
    assert {answer.text: math.exp(answer.logprob) for answer in found} == pytest.approx(dict(masses))
    few = best_first_search(case.lm, case.constraint, options, n=4, max_tokens=case.max_tokens)
    assert {answer.text for answer in few} == set(sorted(best, key=lambda text: -best[text])[:4]) and few.optimal


def test_children_beyond_those_listed_are_found() -> None:
    """More than 64 children of one prefix are needed, which costs another call of the model."""
    constraint = regular("bytes", ALL_BYTES, "[ -~]", 3).constraint
    lm = ChainModel.random(ALL_BYTES, 1, 5, peaked=5.0)
    found = best_first_search(lm, constraint, n=95, max_tokens=2)
    assert len({answer.text for answer in found}) == 95 and found.optimal
    assert [answer.logprob for answer in found] == sorted((answer.logprob for answer in found), reverse=True)


def test_a_checker_is_asked_in_order_of_probability() -> None:
    case = cases()["brackets"]
    checked = BothCheckers(case.constraint, ValidatorChecker(ALL_BYTES, accepts=lambda text: text.count(b"(") == 2))
    found = best_first_search(case.lm, checked, n=3, max_tokens=case.max_tokens)
    law = [(p, t) for p, t in sorted_law(case) if ALL_BYTES.text(t).count(b"(") == 2]
    assert [answer.logprob for answer in found] == pytest.approx([p for p, _ in law[:3]])
    assert found.optimal


def test_no_text_in_time_is_a_limit_error() -> None:
    case = empty()
    with pytest.raises(LimitError, match="max_tokens is 5; the shortest text found takes 7"):
        best_first_search(case.lm, case.constraint, max_tokens=case.max_tokens)
