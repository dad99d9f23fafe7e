"""Rows of searches and sessions in slots: equal to plain rows, whatever else needs the slots."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain import compile as compile_constraint
from constrain.base.errors import ConstrainError
from constrain.decoding.generation_loop import finish_runs
from constrain.decoding.language_model_runner import LanguageModelRunner
from constrain.decoding.prefix_calls import PrefixReader, divide_prefixes, find_longest_text
from constrain.decoding.requests import GenerationRequest
from constrain.decoding.scheduler import Scheduler
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import ChainModel
from tests.model_factory import TableModel, build_model

LETTERS = Vocabulary.from_tokens([b"a", b"b", b"c", None], eos_ids=[3])
BYTES = Vocabulary.bytes()
PREFIX = st.lists(st.integers(0, 2), max_size=5)
CALL = st.tuples(st.integers(0, 2), st.lists(PREFIX, min_size=1, max_size=6))


@settings(deadline=None, max_examples=90)
@given(st.lists(CALL, max_size=8), st.integers(1, 5), st.integers(1, 4), st.integers(1, 6))
def test_rows_are_those_of_the_model(calls: Any, slots: int, budget: int, width: int) -> None:
    """Three readers in turn, with as few slots as one, beside texts that need slots as well."""
    lm = ChainModel.random(LETTERS, 2, 0)
    scheduler = Scheduler(LanguageModelRunner(lambda _: lm, 4), slots=slots, prefill_tokens=budget)
    readers = [PrefixReader((), width) for _ in range(3)]
    constraint = compile_constraint(LETTERS, regex="[a-c]{4,8}")
    for number, (which, prefixes) in enumerate(calls):
        generators = [np.random.default_rng([number, k]) for k in range(2)]
        run = scheduler.submit(GenerationRequest(LETTERS, generators, constraint=constraint, max_tokens=12))
        call = scheduler.prefix_calls.submit(readers[which], prefixes, "logprobs")
        for _ in range(200):
            if call.done.done():
                break
            scheduler.step()
            assert scheduler.used + scheduler.prefix_calls.held <= slots
        np.testing.assert_array_equal(call.done.result(timeout=0), lm.next_logprobs(prefixes))
        if number % 2:
            finish_runs(scheduler, [run])
            assert all(outcome is not None for outcome in run.outcomes)
    for reader in readers:
        reader.is_idle = True
    while scheduler.has_work:
        scheduler.step()
    assert not scheduler.runner.slots  # type: ignore[attr-defined]
    assert scheduler.prefix_calls.held == scheduler.used == 0


@pytest.mark.parametrize("family", ["llama", "mistral", "gpt2"])
@pytest.mark.parametrize("kind", ["logprobs", "logits"])
def test_slots_of_a_model_give_plain_rows(family: str, kind: Any) -> None:
    """Also after tokens were taken back, and when prompts are fed in parts."""
    from constrain.integrations.runner_choice import make_runner

    loaded, rng = build_model(family), np.random.default_rng(3)
    prompt = rng.integers(5, 60, 11).tolist()
    plain, width = loaded.on(prompt), loaded.vocabulary.size
    runner = make_runner(loaded.model, width)
    scheduler, reader = Scheduler(runner, slots=4, prefill_tokens=4), PrefixReader(prompt, 4)
    text: list[int] = []
    for _ in range(12):
        text = [*text[: int(rng.integers(0, len(text) + 1))], *rng.integers(5, 60, int(rng.integers(1, 4))).tolist()]
        prefixes = [text[:k] for k in range(len(text) + 1) if rng.random() < 0.5] or [text]
        prefixes.append([*text[:-1], int(rng.integers(5, 60))])
        call = scheduler.prefix_calls.submit(reader, prefixes, kind)
        while not call.done.done():
            scheduler.step()
        expected = plain.next_logprobs(prefixes) if kind == "logprobs" else plain.next_logits(prefixes)
        np.testing.assert_allclose(call.done.result(), expected, atol=2e-4)
    runner.close()


def test_a_chain_is_one_step_and_a_beam_feeds_one_token_a_text() -> None:
    loaded, steps = build_model("llama"), []
    from constrain.integrations.runner_choice import make_runner

    runner = make_runner(loaded.model, loaded.vocabulary.size)
    scheduler, reader = Scheduler(runner, slots=8), PrefixReader([5, 6, 7], 8)
    beams: list[list[list[int]]] = [[[], [8], [8, 9]], [[8, 9, k] for k in (4, 5, 6)]]
    beams.append([[*beams[1][k % 2], 10 + k] for k in range(4)])
    for prefixes in beams:
        before = runner.tokens_fed  # type: ignore[attr-defined]
        call = scheduler.prefix_calls.submit(reader, prefixes, "logprobs")
        while not call.done.done():
            scheduler.step()
        steps.append(runner.tokens_fed - before)  # type: ignore[attr-defined]
    assert steps == [5, 3, 4]
    runner.close()


@given(st.lists(PREFIX.map(tuple), max_size=8))
def test_chains_divide_the_prefixes(prefixes: list[tuple[int, ...]]) -> None:
    chains = divide_prefixes(prefixes)
    assert sorted(prefix for chain in chains for prefix in chain) == sorted(set(prefixes))
    assert all(b[: len(a)] == a != b for chain in chains for a, b in zip(chain, chain[1:]))


def test_the_longest_text_leaves_a_token_to_feed() -> None:
    texts = {0: (1, 2), 1: (1, 2, 3), 2: (4,)}
    assert find_longest_text(texts, (1, 2, 3)) == (0, 2), "a text that need not be shortened is preferred"
    assert find_longest_text(texts, (1, 2, 3, 4)) == (1, 3)
    assert find_longest_text(texts, (4,)) == (2, 0) or find_longest_text(texts, (4,))[1] == 0
    assert find_longest_text({}, (4,)) == (None, 0)


def test_an_error_of_the_model_ends_the_call_and_frees_its_slots() -> None:
    class Failing(TableModel):
        fails = True

        def next_logprobs(self, prefixes: Any) -> Any:
            if self.fails:
                raise RuntimeError("out of memory")
            return super().next_logprobs(prefixes)

    lm = Failing(BYTES.size)
    scheduler, reader = Scheduler(LanguageModelRunner(lambda _: lm, BYTES.size)), PrefixReader(())
    call = scheduler.prefix_calls.submit(reader, [[97]], "logprobs")
    scheduler.step()
    with pytest.raises(RuntimeError, match="out of memory"):
        call.done.result(timeout=0)
    assert scheduler.prefix_calls.held == 0 and not scheduler.has_work
    lm.fails = False
    again = scheduler.prefix_calls.submit(reader, [[97]], "logprobs")
    scheduler.step()
    assert again.done.result(timeout=0).shape == (1, BYTES.size)
    scheduler.abort(ConstrainError("closed"))
    assert scheduler.prefix_calls.held == 0


def test_a_cancelled_call_frees_its_slots() -> None:
    lm = TableModel(BYTES.size)
    scheduler, reader = Scheduler(LanguageModelRunner(lambda _: lm, BYTES.size), prefill_tokens=1), PrefixReader(())
    call = scheduler.prefix_calls.submit(reader, [[97] * 9], "logprobs")
    scheduler.step()
    assert scheduler.prefix_calls.held == 1
    thread = threading.Thread(target=lambda: setattr(call, "is_cancelled", True))
    thread.start()
    thread.join()
    scheduler.step()
    assert scheduler.prefix_calls.held == 0 and not scheduler.has_work
