"""Rows join and leave, fail and are cancelled in every order; each text is the one that it would be alone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain import compile as compile_constraint
from constrain.base.errors import LimitError
from constrain.decoding.generation_loop import finish_runs, generate_text
from constrain.decoding.language_model_runner import LanguageModelRunner
from constrain.decoding.model_runner import OpenedSlot, RowStep
from constrain.decoding.outcomes import Outcome
from constrain.decoding.request_run import RequestRun
from constrain.decoding.requests import GenerationRequest
from constrain.decoding.scheduler import Scheduler
from constrain.decoding.step_masks import MaskBuffer, compute_step_masks
from constrain.decoding.token_budget import Closing, can_complete
from constrain.decoding.token_choice import TokenChoice
from constrain.sampling.core.masked_sampling import PLAIN, Proposal
from constrain.sampling.core.token_masses import allowed_tokens
from constrain.speculation.draft_source import NO_DRAFT, DraftTree
from constrain.vocabulary.vocabulary import Vocabulary
from tests.finite_grammar_factory import FiniteConstraint, FiniteMatcher
from tests.model_factory import TableModel

BYTES = Vocabulary.bytes()
PATTERNS = ["[a-c]{2,6}", '\\{"name": "[a-d]{1,8}"\\}', "(ab|cd)*e", "x", "[0-9]{1,3}(\\.[0-9]+)?"]
CONSTRAINTS = [compile_constraint(BYTES, regex=pattern) for pattern in PATTERNS]


class RandomTrees:
    """A `DraftSource` of random trees, some tokens of which are refused by the constraint."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def propose(self, context: Sequence[int], matcher: Any, limit: int) -> DraftTree:
        count = int(self.rng.integers(0, min(limit, 8) + 1))
        parents = [int(self.rng.integers(-1, node)) if node else -1 for node in range(count)]
        tokens: list[int] = []
        for node, parent in enumerate(parents):
            siblings = {tokens[other] for other in range(node) if parents[other] == parent}
            tokens.append(int(self.rng.choice([token for token in range(97, 110) if token not in siblings])))
        return DraftTree(tuple(tokens), tuple(parents))

    def observe(self, tokens: Sequence[int]) -> None:
        pass


class PromptRunner(LanguageModelRunner):
    """A runner that is fed its prompts, and checks that each slot is used as the protocol says."""

    def __init__(self, lm: TableModel) -> None:
        super().__init__(lambda _: lm, BYTES.size)
        self.prompts: dict[int, tuple[int, ...]] = {}
        self.steps: list[list[int]] = []
        self.uncommitted: set[int] = set()

    def open(self, prompt: Sequence[int]) -> OpenedSlot:
        slot = super().open(()).slot
        self.prompts[slot] = tuple(prompt)
        return OpenedSlot(slot, tuple(prompt))

    def start(self, steps: Sequence[RowStep]) -> Any:
        assert not self.uncommitted & {step.slot for step in steps}
        assert all(step.feed for step in steps)
        self.uncommitted |= {step.slot for step in steps}
        self.steps.append([len(step.feed) for step in steps if step.rows == "none"])
        return super().start(steps)

    def commit(self, slot: int, kept: Sequence[int]) -> None:
        self.uncommitted.discard(slot)
        super().commit(slot, kept)

    def share(self, slot: int) -> int:
        new = super().share(slot)
        self.prompts[new] = self.prompts[slot]
        if slot in self.uncommitted:
            self.uncommitted.add(new)
        return new

    def rewind(self, slot: int, kept: int = 0) -> None:
        super().rewind(slot, len(self.prompts[slot]) + kept)
        self.uncommitted.discard(slot)

    def release(self, slot: int) -> None:
        super().release(slot)
        self.uncommitted.discard(slot)


def request_for(constraint: Any, seed: int, n: int = 1, proposal: Proposal = PLAIN, **more: Any) -> GenerationRequest:
    generators = [np.random.default_rng([seed, sample]) for sample in range(n)]
    more = {"max_tokens": 20, "choice": TokenChoice(proposal), **more}
    return GenerationRequest(BYTES, generators, constraint=constraint, **more)


def alone(lm: TableModel, constraint: Any, seed: int, sample: int, proposal: Proposal = PLAIN) -> Outcome:
    return generate_text(
        lm, constraint, rng=np.random.default_rng([seed, sample]), max_tokens=20, proposal=proposal
    )  # fmt: skip


def tokens_of(run: RequestRun) -> list[list[int] | None]:
    return [None if outcome is None else outcome.tokens for outcome in run.outcomes]


arrivals = st.lists(
    st.tuples(
        st.integers(0, 6), st.sampled_from(range(len(PATTERNS))), st.integers(0, 5), st.integers(1, 4), st.booleans(),
        st.lists(st.integers(0, 255), min_size=1, max_size=12),
    ),
    min_size=1, max_size=8,
)  # fmt: skip


@given(arrivals, st.integers(1, 5), st.sampled_from([1, 4, 100]))
@settings(max_examples=30)
def test_texts_are_those_of_the_single_loop_in_whatever_order_rows_come_and_go(
    arrivals: list[Any], slots: int, prefill: int
) -> None:
    lm = TableModel(BYTES.size, seed=1)
    runner = PromptRunner(lm)
    scheduler = Scheduler(runner, slots=slots, prefill_tokens=prefill)
    runs: dict[int, RequestRun] = {}
    step = 0
    while len(runs) < len(arrivals) or scheduler.has_work:
        for number, (time, kind, seed, n, greedy, prompt) in enumerate(arrivals):
            if time <= step and number not in runs:
                proposal = Proposal(temperature=0) if greedy else PLAIN
                request = request_for(CONSTRAINTS[kind], seed, n, proposal, prompt=prompt, draft_source=RandomTrees)
                runs[number] = scheduler.submit(request)
        scheduler.step()
        assert scheduler.used == len(runner.slots) + sum(run.is_admitted for run in scheduler.runs) <= slots
        step += 1
    assert not runner.slots
    for number, (_, kind, seed, n, greedy, prompt) in enumerate(arrivals):
        proposal = Proposal(temperature=0) if greedy else PLAIN
        after = TableModel(BYTES.size, seed=1)
        after.table[-1] = after.table[prompt[-1]]
        texts = [alone(after, CONSTRAINTS[kind], seed, sample, proposal) for sample in range(n)]
        assert tokens_of(runs[number]) == [text.tokens for text in texts]
        for outcome, text in zip(runs[number].outcomes, texts):
            assert outcome is not None
            assert outcome.logprob == pytest.approx(text.logprob)
            assert outcome.log_weight == pytest.approx(text.log_weight)
    assert all(sum(lengths) <= prefill for lengths in runner.steps)


def test_a_long_prompt_is_fed_in_parts_beside_running_rows() -> None:
    runner = PromptRunner(TableModel(BYTES.size))
    scheduler = Scheduler(runner, prefill_tokens=4)
    short = scheduler.submit(request_for(CONSTRAINTS[1], 0, prompt=[1]))
    scheduler.step()
    long = scheduler.submit(request_for(CONSTRAINTS[0], 1, prompt=list(range(18))))
    finish_runs(scheduler, [short, long])
    assert [lengths for lengths in runner.steps if lengths] == [[4]] * 4


class Broken(FiniteConstraint):
    """A constraint whose masks fail after some bytes."""

    def matcher(self) -> FiniteMatcher:
        class Matcher(FiniteMatcher):
            def mask(self, out: Any = None) -> Any:
                if len(self.data) >= 2:
                    raise LimitError("a search gave up")
                return super().mask(out)

            def fork(self) -> FiniteMatcher:
                return Matcher(self.constraint, self.tokens, self.data)

        return Matcher(self)


@pytest.mark.parametrize("n", [1, 3])
def test_a_text_that_fails_ends_with_its_own_error(n: int) -> None:
    lm = TableModel(BYTES.size)
    scheduler = Scheduler(LanguageModelRunner(lambda _: lm, BYTES.size), slots=4)
    good = [scheduler.submit(request_for(CONSTRAINTS[kind], kind)) for kind in (0, 1)]
    broken = scheduler.submit(request_for(Broken(BYTES, [b"abc", b"bcd"]), 0, n))
    refused = scheduler.submit(request_for(CONSTRAINTS[1], 0, max_tokens=3))
    more = scheduler.submit(request_for(CONSTRAINTS[2], 2))
    while scheduler.has_work:
        scheduler.step()
    assert all(isinstance(error, LimitError) for error in (*broken.errors, *refused.errors))
    assert broken.outcomes == [None] * n
    for kind, run in enumerate([*good, more]):
        assert tokens_of(run) == [alone(lm, CONSTRAINTS[kind], kind, 0).tokens]
    assert scheduler.used == 0


def test_an_error_of_a_listener_ends_its_sample_only() -> None:
    lm = TableModel(BYTES.size)
    heard: list[int] = []

    def listen(sample: int, piece: Any) -> None:
        heard.append(sample)
        if sample == 1 and heard.count(1) == 2:
            raise KeyError("listener")

    scheduler = Scheduler(LanguageModelRunner(lambda _: lm, BYTES.size), slots=2)
    run = scheduler.submit(request_for(CONSTRAINTS[1], 0, 4, listener=listen))
    while scheduler.has_work:
        scheduler.step()
    assert isinstance(run.errors[1], KeyError)
    assert heard.count(1) == 2
    wanted = [alone(lm, CONSTRAINTS[1], 0, sample).tokens for sample in range(4)]
    assert tokens_of(run) == [wanted[0], None, wanted[2], wanted[3]]


def test_cancelled_runs_free_their_slots() -> None:
    lm = TableModel(BYTES.size)
    runner = LanguageModelRunner(lambda _: lm, BYTES.size)
    scheduler = Scheduler(runner, slots=3)
    done: list[RequestRun] = []
    runs = [scheduler.submit(request_for(CONSTRAINTS[1], seed, 2), done.append) for seed in range(4)]
    for _ in range(3):
        scheduler.step()
    scheduler.cancel(runs[0])
    scheduler.cancel(runs[3])
    scheduler.step()
    assert done == [runs[0], runs[3]]
    finish_runs(scheduler, runs[1:3])
    for seed in (1, 2):
        assert tokens_of(runs[seed]) == [alone(lm, CONSTRAINTS[1], seed, sample).tokens for sample in range(2)]
    assert not runner.slots
    assert not scheduler.has_work


def test_an_error_of_the_model_ends_the_texts_of_its_step() -> None:
    class Failing(TableModel):
        def next_logprobs(self, prefixes: Any) -> Any:
            if len(self.row_counts) == 2:
                self.row_counts.append(0)
                raise RuntimeError("out of memory")
            return super().next_logprobs(prefixes)

    lm = Failing(BYTES.size)
    scheduler = Scheduler(LanguageModelRunner(lambda _: lm, BYTES.size), slots=1)
    first = scheduler.submit(request_for(CONSTRAINTS[1], 0, 3))
    later = scheduler.submit(request_for(CONSTRAINTS[1], 1))
    while scheduler.has_work:
        scheduler.step()
    assert all(isinstance(error, RuntimeError) for error in first.errors)
    assert tokens_of(later) == [alone(TableModel(BYTES.size), CONSTRAINTS[1], 1, 0).tokens]
    with pytest.raises(RuntimeError):
        finish_runs(scheduler, [first])


class CountingRunner(PromptRunner):
    """A runner whose rows cost what a function of their widths says, and that counts drafted tokens."""

    def __init__(self, lm: TableModel, cost: Callable[[Sequence[int]], float]) -> None:
        super().__init__(lm)
        self.estimate_cost, self.drafted = cost, 0  # type: ignore[method-assign]

    def start(self, steps: Sequence[RowStep]) -> Any:
        self.drafted += sum(len(step.draft) for step in steps)
        return super().start(steps)


def test_drafts_that_cost_more_than_they_save_are_left_out_and_change_no_text() -> None:
    """Forced text, and the completions of texts that their budget ends."""
    found = []
    for cost in (lambda _: 1.0, lambda widths: 10.0 + 100 * sum(width - 1 for width in widths)):
        runner = CountingRunner(TableModel(BYTES.size, seed=2), cost)
        scheduler = Scheduler(runner, slots=12)
        constraints = [CONSTRAINTS[1], compile_constraint(BYTES, regex="[a-z]*(end of the text)")]
        runs = [
            scheduler.submit(request_for(constraints[seed % 2], seed, prompt=[1], max_tokens=22)) for seed in range(12)
        ]
        finish_runs(scheduler, runs)
        found.append((runner.drafted, [tokens_of(run) for run in runs]))
        assert {run.outcomes[0].finish_reason for run in runs if run.outcomes[0]} == {"complete", "budget"}
    (many, texts), (none, others) = found
    assert many > 0 == none
    assert texts == others


def test_without_a_constraint_the_text_is_the_models() -> None:
    lm = TableModel(BYTES.size, seed=2)
    scheduler = Scheduler(LanguageModelRunner(lambda _: lm, BYTES.size))
    runs = [scheduler.submit(request_for(None, 0, 1, Proposal(temperature=heat), max_tokens=30)) for heat in (0, 1)]
    finish_runs(scheduler, runs)
    greedy: list[int] = []
    while len(greedy) < 30 and (not greedy or greedy[-1] not in BYTES.eos_ids):
        greedy.append(int(lm.next_logprobs([greedy])[0].argmax()))
    outcome = runs[0].outcomes[0]
    assert outcome is not None
    assert outcome.tokens == [token for token in greedy if token not in BYTES.eos_ids]
    assert outcome.finish_reason == ("complete" if greedy[-1] in BYTES.eos_ids else "length")
    sampled = runs[1].outcomes[0]
    assert sampled is not None
    assert sampled.log_weight == pytest.approx(0, abs=1e-9)
    ended = [BYTES.eos_ids[0]] if sampled.finish_reason == "complete" else []
    assert sampled.logprob == pytest.approx(lm.logprob([*sampled.tokens, *ended]))


@given(st.integers(0, 1000), st.sampled_from(range(len(PATTERNS))), st.integers(0, 3))
def test_masks_at_the_nodes_of_a_draft_are_those_of_the_matcher_there(seed: int, kind: int, taken: int) -> None:
    rng = np.random.default_rng(seed)
    matcher = CONSTRAINTS[kind].matcher()
    for _ in range(taken):
        allowed = [token for token in allowed_tokens(matcher.mask()).tolist() if token not in BYTES.eos_ids]
        if allowed:
            matcher.advance(int(rng.choice(allowed)))
    draft = RandomTrees(seed).propose([], matcher, 8)
    before = matcher.state
    (masks, other, none) = compute_step_masks([(matcher, draft), (matcher, NO_DRAFT), (None, draft)], MaskBuffer())
    assert matcher.state == before
    assert none == [None] * (len(draft) + 1)
    assert (other[0] == matcher.mask()).all()
    for node in range(-1, len(draft)):
        trial, mask = matcher.fork(), masks[node + 1]
        path = [draft.tokens[one] for one in draft.path(node)]
        allowed = [trial.allows(token) and not trial.advance(token) for token in path]
        if all(allowed):
            assert (mask == trial.mask()).all()
        else:
            assert mask is None


@given(st.integers(0, 10_000), st.sampled_from(range(len(PATTERNS))))
def test_a_completion_is_known_after_every_token(seed: int, kind: int) -> None:
    """What `Closing` says without a trial is what a trial says."""
    rng, matcher = np.random.default_rng(seed), CONSTRAINTS[kind].matcher()
    closing, remaining = Closing(BYTES, matcher, 40), 40
    while True:
        tokens = [token for token in allowed_tokens(matcher.mask()).tolist() if token not in BYTES.eos_ids]
        if not tokens or rng.random() < 0.05:
            return
        token = int(rng.choice(tokens))
        remaining -= 1
        matcher.advance(token)
        shortest = matcher.shortest_completion(None)
        assert shortest is not None
        assert closing.follow(matcher, token, remaining) == (len(shortest) < remaining)
        assert closing.data is not None
        if len(shortest) >= remaining:
            return
        assert can_complete(matcher, closing.data)
        trial = matcher.fork()
        trial.advance_bytes(closing.data)
        assert trial.is_complete
        assert not can_complete(matcher, closing.data + b"\x00")
        assert can_complete(matcher, b"") == matcher.is_complete


def test_a_run_that_has_ended_holds_no_state_cache() -> None:
    """Who waits for its outcomes may keep it for long, or leave it in a cycle until the next garbage collection."""
    constraint = compile_constraint(BYTES, regex="(ab|cd){2}e{3}")
    scheduler = Scheduler(PromptRunner(TableModel(BYTES.size)), slots=2)
    generators = [np.random.default_rng(k) for k in range(3)]
    run = scheduler.submit(GenerationRequest(BYTES, generators, (1, 2), constraint=constraint, max_tokens=20))
    gc.collect()
    gc.disable()
    try:
        while scheduler.has_work:
            scheduler.step()
        assert all(outcome is not None for outcome in run.outcomes)
        state_cache = weakref.ref(constraint.state_cache())
        constraint.drop_state_caches()
        assert state_cache() is None
    finally:
        gc.enable()
