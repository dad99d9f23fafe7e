"""Masked sampling under a checker against its exact distribution, by brute force; and `generate` with checkers."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from constrain import generate
from constrain.base.errors import ConstrainError, LimitError, UnsupportedError
from constrain.checking import PrefixChecker, VerdictChecker, draw_checked
from constrain.sampling.checkers import ValidatorChecker
from constrain.sampling.core.masked_sampling import Proposal, apply_proposal
from tests.markov_factory import PIECES, Case, Tokens, cases, g_test

CASE = cases()["pieces"]


def judge(text: str) -> str:
    """No "bab"; complete unless the text ends in "b" after an "a"."""
    if "bab" in text:
        return "dead"
    return "complete" if not text.endswith("abab") else "ok"


def checked_law(case: Case, proposal: Proposal, masks: str) -> dict[Tokens, float]:
    """The probability of every text under step-wise renormalisation over the tokens that pass, by recursion."""
    vocabulary, found = case.constraint.vocabulary, dict[Tokens, float]()
    ends = list(vocabulary.eos_ids)

    def passes(tokens: Tokens, token: int) -> bool:
        matcher, checker = case.constraint.matcher(), VerdictChecker(vocabulary, PrefixChecker(judge)).matcher()
        for one in tokens:
            matcher.advance(one)
            checker.advance(one)
        return matcher.allows(token) and checker.allows(token)

    def visit(tokens: Tokens, p: float) -> None:
        matcher = case.constraint.matcher()
        for one in tokens:
            matcher.advance(one)
        row = case.lm.next_logprobs([list(tokens)])[0]
        every = [t for t in range(vocabulary.size) if masks == "after" or matcher.allows(t)]
        if len(tokens) == case.max_tokens - 1:
            every = [t for t in every if t in ends]
        if not every:
            return
        probabilities = apply_proposal(row[every], proposal)
        weights = {t: float(q) for t, q in zip(every, probabilities) if q > 0 and passes(tokens, t)}
        total = math.fsum(weights.values())
        for token, weight in weights.items():
            if token in ends:
                found[tokens] = found.get(tokens, 0.0) + p * weight / total
            else:
                visit((*tokens, token), p * weight / total)

    visit((), 1.0)
    return found


@pytest.mark.parametrize("masks", ["first", "after"])
@pytest.mark.parametrize("proposal", [Proposal(), Proposal(temperature=0.5), Proposal(top_k=5)])
def test_draws_have_the_exact_distribution(proposal: Proposal, masks: Any) -> None:
    law = checked_law(CASE, proposal, masks)
    ended = math.fsum(law.values())
    drawn = draw_checked(
        CASE.lm, CASE.constraint, VerdictChecker(PIECES, PrefixChecker(judge)), n=1200, rng=np.random.default_rng(3),
        max_tokens=CASE.max_tokens, proposal=proposal, masks=masks, dead=Unmemorable(),
    )  # type: ignore[arg-type] # fmt: skip
    counts = Counter(one.tokens for one in drawn if one.log_weight > -np.inf)
    assert g_test(counts, {tokens: p / ended for tokens, p in law.items()}) > 1e-6
    if proposal == Proposal():
        z = math.fsum(p for tokens, p in CASE.law().items() if judge(PIECES.decode(tokens)) == "complete"
                      and all(judge(PIECES.decode(tokens[:k])) != "dead" for k in range(len(tokens))))  # fmt: skip
        weights = np.exp(drawn.log_weights)
        assert abs(weights.mean() - z) < 4 * weights.std() / math.sqrt(len(weights))


class Unmemorable(set):  # type: ignore[type-arg]
    """A set that stays empty: dead prefixes that are avoided change the distribution of later draws."""

    def add(self, element: object) -> None:
        pass


def test_dead_prefixes_are_avoided() -> None:
    """After "b" nothing passes; what was found out by one call is not tried by the next."""
    checker = ValidatorChecker(
        PIECES, lambda data: data != b"b", lambda data: data in (b"", b"b") or data.startswith((b"a", b"ab"))
    )
    given = {"n": 20, "max_tokens": 6}
    dead: set[Tokens] = set()
    first = draw_checked(CASE.lm, CASE.constraint, checker, rng=np.random.default_rng(0), dead=dead, **given)  # type: ignore[arg-type]
    assert dead and all(PIECES.text(prefix).startswith(b"b") for prefix in dead if len(prefix) == 1)
    again = draw_checked(CASE.lm, CASE.constraint, checker, rng=np.random.default_rng(0), dead=dead, **given)  # type: ignore[arg-type]
    ended = [sum(one.log_weight > -np.inf for one in drawn) for drawn in (first, again)]
    assert ended[0] < ended[1]


def test_greedy_takes_the_likeliest_that_passes() -> None:
    checker = VerdictChecker(PIECES, PrefixChecker(judge))
    drawn = draw_checked(
        CASE.lm,
        CASE.constraint,
        checker,
        n=2,
        rng=np.random.default_rng(0),
        max_tokens=6,
        proposal=Proposal(temperature=0),
    )
    assert len({one.tokens for one in drawn}) == 1
    assert drawn[0].log_weight in (-math.inf, pytest.approx(drawn[0].logprob))


GIVEN = {"regex": "(ab|abba|b|bab|aabb)(ab)*", "tokenizer": PIECES, "max_tokens": 8, "seed": 1}


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "top_k": 3}, {"masks": "after"}, {"sampler": "awrs"},
                                     {"sampler": "awrs", "masks": "after"}, {"sampler": "exact"},
                                     {"sampler": "smc"}, {"sampler": "auto"}])  # fmt: skip
def test_every_sampler_takes_a_text_checker(options: dict[str, object]) -> None:
    made = generate(CASE.lm, **GIVEN, n=10, check=PrefixChecker(judge), **options)  # type: ignore[call-overload]
    assert len(made) == 10
    assert all(judge(one.text) == "complete" for one in made)
    assert all(judge(one.text[:k]) != "dead" for one in made for k in range(len(one.text)))


def test_streams_and_stop_strings_are_checked_afterwards() -> None:
    streamed = list[object]()
    made = generate(CASE.lm, **GIVEN, n=3, check=PrefixChecker(judge), retries=200, stream=streamed.append)  # type: ignore[call-overload]
    assert streamed and all(judge(one.text) == "complete" for one in made)


def test_a_failing_checker_ends_the_call() -> None:
    def fails(text: str) -> str:
        if len(text) > 2:
            raise OSError("lost")
        return "ok"

    for sampler in ("masked", "exact", "awrs"):
        with pytest.raises(ConstrainError, match="lost"):
            generate(CASE.lm, **GIVEN, n=5, check=PrefixChecker(fails), sampler=sampler)  # type: ignore[call-overload]


def test_nothing_passes() -> None:
    with pytest.raises(LimitError, match="texts ended"):
        generate(CASE.lm, **GIVEN, check=PrefixChecker(lambda text: "dead" if text else "ok"))  # type: ignore[call-overload]


def test_masks_after_needs_a_check_of_prefixes() -> None:
    for more in ({}, {"check": lambda text: True}, {"check": PrefixChecker(judge), "sampler": "exact"}):
        with pytest.raises(UnsupportedError, match="masks"):
            generate(CASE.lm, **GIVEN, masks="after", **more)  # type: ignore[call-overload]
