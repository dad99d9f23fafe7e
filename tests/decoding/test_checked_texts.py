"""Texts under a checker: against their exact distribution by brute force, within a budget, and in batches."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from constrain import Engine, compile as compile_constraint, generate
from constrain.base.errors import ConstrainError, LimitError, UnsupportedError
from constrain.checking import PrefixChecker, VerdictChecker
from constrain.checking.checked_sampling import TokenCheck
from constrain.decoding.generation_loop import finish_runs, generate_text
from constrain.decoding.language_model_runner import LanguageModelRunner
from constrain.decoding.outcomes import Outcome
from constrain.decoding.requests import GenerationRequest
from constrain.decoding.scheduler import Scheduler
from constrain.decoding.token_choice import TokenChoice
from constrain.sampling.checkers import ValidatorChecker
from constrain.sampling.core.masked_sampling import PLAIN, Proposal, apply_proposal
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import PIECES, Case, Tokens, cases, g_test
from tests.model_factory import TableModel, build_model

BYTES = Vocabulary.bytes()
CASE = cases()["pieces"]


def judge(text: str) -> str:
    """No "bab"; complete unless the text ends in "b" after an "a"."""
    if "bab" in text:
        return "dead"
    return "complete" if not text.endswith("abab") else "ok"


def checked_law(case: Case, proposal: Proposal, masks: str, longest: int) -> dict[Tokens, float]:
    """The probability of every text of at most `longest` tokens under step-wise renormalisation over the tokens that
    pass, by recursion.
    """
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
        probabilities = apply_proposal(row[every], proposal)
        weights = {t: float(q) for t, q in zip(every, probabilities) if q > 0 and passes(tokens, t)}
        total = math.fsum(weights.values())
        for token, weight in weights.items():
            if token in ends:
                found[tokens] = found.get(tokens, 0.0) + p * weight / total
            elif len(tokens) < longest:
                visit((*tokens, token), p * weight / total)

    visit((), 1.0)
    return found


def draw(case: Case, check: TokenCheck, count: int, max_tokens: int, proposal: Proposal = PLAIN) -> list[Outcome]:
    """Texts of a case, as one batch."""
    vocabulary = case.constraint.vocabulary
    seeds = [np.random.default_rng([3, seed]) for seed in range(count)]
    request = GenerationRequest(
        vocabulary, seeds, constraint=case.constraint, max_tokens=max_tokens, choice=TokenChoice(proposal), check=check
    )
    scheduler = Scheduler(LanguageModelRunner(lambda _: case.lm, vocabulary.size))
    run = scheduler.submit(request)
    finish_runs(scheduler, [run])
    return [one for one in run.outcomes if one is not None]


@pytest.mark.parametrize("masks", ["first", "after"])
@pytest.mark.parametrize(
    "proposal",
    [
        Proposal(),
        *(pytest.param(one, marks=pytest.mark.slow) for one in (Proposal(temperature=0.5), Proposal(top_k=5))),
    ],
)
def test_texts_have_the_exact_distribution(proposal: Proposal, masks: Any) -> None:
    """Texts that the budget did not change; all others, and the long ones, count as one outcome."""
    law, other = checked_law(CASE, proposal, masks, 5), (-1,)
    check = TokenCheck(VerdictChecker(PIECES, PrefixChecker(judge)), masks)
    drawn = draw(CASE, check, 1200, 40, proposal)
    counts = Counter(
        tuple(one.tokens) if one.finish_reason == "complete" and len(one.tokens) <= 5 else other for one in drawn
    )
    assert g_test(counts, {**law, other: 1 - math.fsum(law.values())}) > 1e-6
    if proposal == PLAIN:
        inside = {tokens: p for tokens, p in CASE.law().items() if len(tokens) <= 5 and passes_checker(tokens)}
        weights = np.array([
            math.exp(one.log_weight) if one.finish_reason == "complete" and len(one.tokens) <= 5 else 0.0
            for one in drawn
        ])  # fmt: skip
        assert abs(weights.mean() - math.fsum(inside.values())) < 4 * weights.std() / math.sqrt(len(weights))


def passes_checker(tokens: Tokens) -> bool:
    """Whether `judge` accepts a text, and calls none of its beginnings dead."""
    beginnings = (judge(PIECES.decode(tokens[:k])) for k in range(len(tokens)))
    return judge(PIECES.decode(tokens)) == "complete" and "dead" not in beginnings


def test_dead_prefixes_are_avoided() -> None:
    """After "b" nothing passes; what was found out by one call is not tried by the next."""
    checker = ValidatorChecker(
        PIECES, lambda data: data != b"b", lambda data: data in (b"", b"b") or data.startswith((b"a", b"ab"))
    )
    first = draw(CASE, TokenCheck(checker), 20, 6)
    dead = frozenset(tuple(one.tokens) for one in first if one.finish_reason == "dead_end")
    assert dead and all(PIECES.text(prefix).startswith(b"b") for prefix in dead if len(prefix) == 1)
    again = draw(CASE, TokenCheck(checker, dead=dead), 20, 6)
    ended = [sum(one.finish_reason != "dead_end" for one in drawn) for drawn in (first, again)]
    assert ended[0] < ended[1]


def test_greedy_takes_the_likeliest_that_passes() -> None:
    check = TokenCheck(VerdictChecker(PIECES, PrefixChecker(judge)))
    drawn = draw(CASE, check, 2, 12, Proposal(temperature=0))
    assert drawn[0].tokens == drawn[1].tokens
    assert drawn[0].log_weight == pytest.approx(drawn[0].logprob) or drawn[0].finish_reason != "complete"


# ---- the budget ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", range(3, 14))
def test_texts_end_in_time_where_the_checker_accepts_a_completion(most: int) -> None:
    """The completion "]" is refused after an odd number of digits, and the shortest text of all is too short."""
    constraint = compile_constraint(BYTES, regex=r"\[[0-9]{0,60}\]")
    checker = PrefixChecker(lambda text: "ok" if "]" not in text else "complete" if len(text) % 3 == 1 else "dead")
    lm = TableModel(BYTES.size, seed=most)
    lm.table[:, ord("]")] = -30.0  # the model never closes a text
    check = TokenCheck(VerdictChecker(BYTES, checker))
    reasons = Counter[str]()
    for seed in range(6):
        made = generate_text(lm, constraint, rng=np.random.default_rng(seed), max_tokens=most, check=check)
        reasons[made.finish_reason] += 1
        assert len(made.tokens) + 1 <= most
        if made.finish_reason == "budget":
            assert checker.check(made.data.decode()) == "complete"
    possible = most >= 5  # the least text is [00]
    assert reasons == ({"budget": 6} if possible else {"length": 6}), (most, reasons)


def test_a_text_that_cannot_end_is_an_error_that_says_so() -> None:
    lm, given = TableModel(BYTES.size, seed=2), {"regex": "[ab]{3,40}", "tokenizer": BYTES, "max_tokens": 9}
    with pytest.raises(LimitError, match="0 of 64 texts ended") as never:
        generate(lm, **given, check=PrefixChecker(lambda text: "ok"))  # type: ignore[call-overload]
    assert "no completion" in str(never.value).lower()
    with pytest.raises(LimitError, match="0 of 64 texts ended") as dead:
        generate(lm, **given, check=PrefixChecker(lambda text: "dead" if len(text) > 1 else "ok"))  # type: ignore[call-overload]
    assert "passed no token" in str(dead.value)


# ---- Engine and generate ---------------------------------------------------------------------------------------------


def test_an_engine_checks_lists_in_one_batch() -> None:
    """The same texts as of single calls, in fewer steps; with and without a constraint."""
    loaded = build_model("llama")
    check = PrefixChecker(lambda text: "dead" if "a" in text else "complete" if len(text) > 1 else "ok")
    prompts, given = ["name", "x", "city"], {"regex": ["[a-d]{1,6}", None, "[ab]{2}c"], "max_tokens": 24, "n": 3}
    with Engine(loaded) as engine:
        found = engine.generate(prompts, **given, check=check, seed=[1, 2, 3])
        steps, engine.scheduler.steps = engine.scheduler.steps, 0
        alone = [engine.generate(prompt, regex=regex, n=3, max_tokens=24, check=check, seed=seed)
                 for prompt, regex, seed in zip(prompts, given["regex"], (1, 2, 3))]  # type: ignore[call-overload]  # fmt: skip
        assert steps < engine.scheduler.steps
        assert [[one.tokens for one in texts] for texts in found] == [[one.tokens for one in texts] for texts in alone]
        assert engine.scheduler.used == 0
    for one in [one for texts in found for one in texts]:
        assert "a" not in one.text and len(one.text) > 1
        assert one.stats.counts["checks"] > 0
    assert {one.text for one in found[2]} == {"bbc"}


def test_drafts_do_not_change_checked_texts() -> None:
    loaded, check = build_model("llama"), PrefixChecker(lambda text: "dead" if text.count("1") > 1 else "complete")
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "ages": {"type": "integer"}},
              "required": ["name", "ages"], "additionalProperties": False}  # fmt: skip
    texts = []
    for draft in ("none", "constraint", "prompt", loaded):
        with Engine(loaded) as engine:
            found = engine.generate("name", schema=schema, n=4, seed=5, max_tokens=60, check=check, draft=draft)
            texts.append([one.tokens for one in found])
    assert texts[1:] == texts[:1] * 3


def test_a_check_after_a_healed_prompt_sees_the_text_alone() -> None:
    loaded, seen = build_model("llama"), list[str]()

    def note(text: str) -> str:
        seen.append(text)
        return "complete" if text.endswith("x") else "ok"

    found = generate(loaded, "the na", regex="me[a-z]{1,3}x?", heal="prompt", check=PrefixChecker(note), seed=1, n=3)
    assert all(one.text.startswith("me") and one.text.endswith("x") for one in found)
    assert all("me".startswith(text[:2]) for text in seen)


GIVEN = {"regex": "(ab|abba|b|bab|aabb)(ab)*", "tokenizer": PIECES, "max_tokens": 8, "seed": 1}


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "top_k": 3}, {"masks": "after"}, {"sampler": "awrs"},
                                     {"sampler": "awrs", "masks": "after"}, {"sampler": "exact"},
                                     {"sampler": "smc"}, {"sampler": "auto"}])  # fmt: skip
def test_every_sampler_takes_a_text_checker(options: dict[str, object]) -> None:
    made = generate(CASE.lm, **GIVEN, n=10, check=PrefixChecker(judge), **options)  # type: ignore[call-overload]
    assert len(made) == 10
    assert all(judge(one.text) == "complete" for one in made)
    assert all(judge(one.text[:k]) != "dead" for one in made for k in range(len(one.text)))


def test_streams_are_guided_and_stop_strings_are_checked_afterwards() -> None:
    pieces = list[Any]()
    made = generate(CASE.lm, **GIVEN, n=3, check=PrefixChecker(judge), retries=0, stream=pieces.append)  # type: ignore[call-overload]
    assert pieces and all(judge(one.text) == "complete" for one in made)
    stopped = generate(CASE.lm, **GIVEN, n=3, check=PrefixChecker(judge), retries=200, stop="bb")  # type: ignore[call-overload]
    assert all(judge(one.text) == "complete" for one in stopped)


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
