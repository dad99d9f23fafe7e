"""Engine: batches give the texts of single calls, threads and tasks share batches, and any call may end early."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")
import torch

from constrain import Engine, Generation, Vocabulary, compile, generate
from constrain.base.errors import ArgumentError, ConstrainError, LimitError
from constrain.decoding.events import FinishEvent, TextEvent
from constrain.decoding.generation_loop import generate_text
from constrain.sampling.core.masked_sampling import Proposal
from tests.model_factory import FAMILIES, TableModel, build_model

PROMPTS = ["name", "the order of people", "city", "age and name in list", "true", "street green", "email", "x"]
SCHEMA = {
    "type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"],
    "additionalProperties": False,
}  # fmt: skip
BYTES = Vocabulary.bytes()


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(build_model("llama"), slots=6, prefill_tokens=8) as one:
        yield one


def texts_of(generations: Any) -> list[tuple[int, ...]]:
    return [one.tokens for one in generations]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_batch_of_prompts_gives_the_texts_of_the_single_loop(family: str, temperature: float) -> None:
    loaded = build_model(family)
    constraint = compile(loaded.vocabulary, schema=SCHEMA)
    with Engine(loaded, slots=5) as engine:
        batch = engine.generate(PROMPTS, schema=SCHEMA, temperature=temperature, seed=[*range(8)], max_tokens=20)
    for seed, (prompt, found) in list(enumerate(zip(PROMPTS, batch, strict=True)))[::3]:
        alone = generate_text(
            loaded.on(prompt), constraint, rng=np.random.default_rng(seed), max_tokens=20,
            proposal=Proposal(temperature=temperature),
        )  # fmt: skip
        assert found.tokens == tuple(alone.tokens)
        assert found.logprob == pytest.approx(alone.logprob, abs=1e-3)
        assert found.log_weight == pytest.approx(alone.log_weight, abs=1e-3)
        assert found.finish_reason == alone.finish_reason
    listed = generate(loaded, PROMPTS[:3], schema=SCHEMA, temperature=temperature, seed=3, max_tokens=12)
    alone = generate(loaded, PROMPTS[0], schema=SCHEMA, temperature=temperature, seed=3, max_tokens=12)
    assert listed[0].tokens == alone.tokens


def test_thirty_two_constraints_in_one_batch() -> None:
    loaded = build_model("llama")
    patterns = [f"[a-{'bcdefghi'[k % 8]}]{{{k // 8 + 1},{k // 2 + 3}}}" for k in range(32)]
    prompts = [PROMPTS[k % 8] for k in range(32)]
    with Engine(loaded) as engine:
        found = engine.generate(prompts, regex=patterns, seed=[*range(32)])
        assert engine.scheduler.steps < sum(one.stats.model_calls for one in found) / 4
    for k in range(32):
        assert found[k].tokens == generate(loaded, prompts[k], regex=patterns[k], seed=k).tokens


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral"])
def test_without_a_constraint_greedy_texts_are_those_of_transformers(family: str) -> None:
    loaded = build_model(family)
    prompts = PROMPTS[:4]
    with Engine(loaded) as engine:
        found = engine.generate(prompts, temperature=0, max_tokens=12)
    for prompt, one in zip(prompts, found):
        ids = loaded.prompt_ids(prompt)
        with torch.inference_mode():
            output = loaded.model.generate(
                torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=12, do_sample=False
            )
        expected = output[0, len(ids) :].tolist()
        ended = [token for token in expected if token not in loaded.vocabulary.eos_ids]
        assert list(one.tokens) == ended
        assert one.finish_reason == ("length" if len(ended) == 12 else "complete")
        assert one.value == one.text


def test_samples_of_a_prompt_share_it_and_are_those_of_smaller_calls(engine: Engine) -> None:
    prompt = "the order of people in the street " * 3
    wanted = texts_of(generate(build_model("llama"), prompt, schema=SCHEMA, n=8, seed=5, max_tokens=30))
    for n in (1, 3, 8):
        found = engine.generate(prompt, schema=SCHEMA, n=n, seed=5, max_tokens=30)
        assert texts_of(found) == wanted[:n]
    fed = engine.runner.tokens_fed
    single = engine.generate(prompt, regex="[ab]", seed=1)
    once = engine.runner.tokens_fed - fed
    engine.generate(prompt, regex="[ab]", n=6, seed=1)
    assert engine.runner.tokens_fed - fed - once <= once + 6 * 4, "the prompt is fed once"
    assert isinstance(single, Generation)


def test_lists_and_mixed_constraints(engine: Engine) -> None:
    found = engine.generate(["name", "age", "x"], schema=[SCHEMA, None, True], max_tokens=20, seed=2, n=2)
    assert [len(one) for one in found] == [2, 2, 2]
    assert isinstance(found[0][0].value, dict)
    assert found[1][0].value == found[1][0].text
    repeated = engine.generate("name", regex=["a{3}", "b{4}"])
    assert [one.text for one in repeated] == ["aaa", "bbbb"]
    assert [one.value for one in engine.generate([[3, 4], "x"], choices=[["ab"], ["cd", "cd"]])] == ["ab", "cd"]
    assert engine.generate("name", regex="a|b", n=0) == []
    with pytest.raises(ArgumentError, match="2 constraints for 3 prompts"):
        engine.generate(["a", "b", "c"], regex=["a", "b"])
    with pytest.raises(ArgumentError, match="3 seeds for 2 prompts"):
        engine.generate(["a", "b"], regex="a", seed=[1, 2, 3])
    with pytest.raises(ConstrainError, match="schema= and regex="):
        engine.generate("a", regex="a", schema=True)
    with pytest.raises(ArgumentError, match="errors is"):
        engine.generate("a", regex="a", errors="ignore")  # type: ignore[arg-type]


def test_generate_takes_lists_with_every_sampler_and_streams_all_texts() -> None:
    loaded, pieces = build_model("llama"), list[Any]()
    found = generate(loaded, ["name", "x"], regex="[ab]{4}", seed=1, n=2, stream=pieces.append)
    for prompt, texts in enumerate(found):
        for sample, one in enumerate(texts):
            mine = [piece for piece in pieces if (piece.prompt, piece.sample) == (prompt, sample)]
            assert "".join(piece.text for piece in mine) == one.text
    exact = generate(loaded, ["name", "x"], regex=["[ab]", "c"], seed=1, sampler="exact", max_tokens=8)
    assert [len(one.text) for one in exact] == [1, 1]


def test_an_error_of_one_text_is_raised_or_returned(engine: Engine) -> None:
    patterns = ["[ab]{2}", "a{200}", "c"]
    with pytest.raises(LimitError):
        engine.generate("name", regex=patterns, max_tokens=10)
    found = engine.generate("name", regex=patterns, max_tokens=10, errors="return")
    assert [type(one) for one in found] == [Generation, LimitError, Generation]
    assert engine.scheduler.used == 0


def test_threads_share_batches(engine: Engine) -> None:
    wanted = [engine.generate("name", schema=SCHEMA, seed=seed, max_tokens=30) for seed in range(12)]
    steps, found = engine.scheduler.steps, dict[int, Any]()

    def work(seed: int) -> None:
        found[seed] = engine.generate("name", schema=SCHEMA, seed=seed, max_tokens=30)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts_of(found[seed] for seed in range(12)) == texts_of(wanted)
    assert engine.scheduler.steps - steps < steps * 3 / 4


def test_tasks_share_batches_and_give_the_same(engine: Engine) -> None:
    async def gather() -> list[Any]:
        calls = (engine.agenerate("name", schema=SCHEMA, seed=seed, max_tokens=30) for seed in range(6))
        return await asyncio.gather(*calls)

    wanted = [engine.generate("name", schema=SCHEMA, seed=seed, max_tokens=30) for seed in range(6)]
    assert texts_of(asyncio.run(gather())) == texts_of(wanted)


def test_events_add_up_to_the_texts(engine: Engine) -> None:
    async def read() -> list[Any]:
        options: dict[str, Any] = {"regex": ["[a-c]{5}é", "x{400}", None], "n": 2, "seed": 4, "max_tokens": 20}
        return [event async for event in engine.stream(["name", "x", "age"], **options)]

    events = asyncio.run(read())
    wanted = engine.generate(
        ["name", "x", "age"], regex=["[a-c]{5}é", "x{400}", None], n=2, seed=4, max_tokens=20, errors="return"
    )
    ends = {(one.prompt, one.sample): one for one in events if isinstance(one, FinishEvent)}
    assert sorted(ends) == [(prompt, sample) for prompt in range(3) for sample in range(2)]
    for prompt, sample in ends:
        parts = [one for one in events if isinstance(one, TextEvent) and (one.prompt, one.sample) == (prompt, sample)]
        if prompt == 1:
            assert isinstance(ends[prompt, sample].error, LimitError)
            assert not parts
            continue
        assert ends[prompt, sample].generation.tokens == wanted[prompt][sample].tokens
        assert "".join(one.text for one in parts) == wanted[prompt][sample].text
        assert sum((one.tokens for one in parts), ()) == wanted[prompt][sample].tokens


class Slow(TableModel):
    """A model that counts its calls and takes a millisecond for each."""

    def next_logprobs(self, prefixes: Any) -> Any:
        time.sleep(0.001)
        return super().next_logprobs(prefixes)


def test_the_end_of_a_text_is_reported_while_others_go_on() -> None:
    """Long texts take 300 steps, in which the reader wakes even where other processes use the cores."""

    async def read() -> list[Any]:
        with Engine(Slow(BYTES.size), BYTES) as engine:
            return [event async for event in engine.stream(regex="[ab]{2}|[ab]{2}[cd]{300}", n=6, seed=1)]

    events = asyncio.run(read())
    sizes = [len(one.generation.text) for one in events if isinstance(one, FinishEvent)]
    assert sorted(sizes) == sizes and {*sizes} == {2, 302}
    first = next(place for place, one in enumerate(events) if isinstance(one, FinishEvent))
    assert any(isinstance(one, TextEvent) for one in events[first:])


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it did not happen")


@pytest.mark.parametrize("way", ["closed stream", "cancelled task", "cancelled stream"])
def test_abandoned_request_frees_its_slots(way: str) -> None:
    lm = Slow(BYTES.size)
    with Engine(lm, BYTES, slots=2) as engine:

        async def abandon() -> None:
            options: dict[str, Any] = {"regex": "(.|\n)*", "max_tokens": 100_000, "temperature": 0.0, "n": 3}
            lm.table[:, list(BYTES.eos_ids)] = -1e6
            if way == "closed stream":
                events = engine.stream(**options)
                await anext(events)
                await events.aclose()  # type: ignore[attr-defined]
                return

            async def read() -> None:
                async for _ in engine.stream(**options):
                    pass

            task = asyncio.create_task(read() if way == "cancelled stream" else engine.agenerate(**options))
            await asyncio.to_thread(wait_until, lambda: engine.scheduler.used == 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(abandon())
        wait_until(lambda: engine.scheduler.used == 0 and not engine.scheduler.has_work)
        assert engine.generate(regex="ab").text == "ab"


def test_a_cancelled_task_leaves_the_others_alone() -> None:
    lm = Slow(BYTES.size)
    with Engine(lm, BYTES) as engine:
        wanted = engine.generate(regex="[a-z]{80}", seed=3).tokens

        async def run() -> Any:
            options: dict[str, Any] = {"regex": "[a-z]{80}", "seed": 3}
            tasks = [asyncio.create_task(engine.agenerate(**options)) for _ in range(3)]
            await asyncio.to_thread(wait_until, lambda: engine.scheduler.used == 3)
            tasks[0].cancel()
            return await asyncio.gather(*tasks, return_exceptions=True)

        cancelled, *others = asyncio.run(run())
        assert isinstance(cancelled, asyncio.CancelledError)
        assert texts_of(others) == [wanted, wanted]


def test_a_closed_engine_ends_its_texts_and_refuses_more() -> None:
    lm = Slow(BYTES.size)
    lm.table[:, list(BYTES.eos_ids)] = -1e6
    engine = Engine(lm, BYTES)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            engine.generate(regex="(.|\n)*", max_tokens=100_000)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: engine.scheduler.used == 1)
    engine.close()
    thread.join()
    assert isinstance(errors[0], ConstrainError)
    assert "closed" in str(errors[0])
    engine.close()
    with pytest.raises(ConstrainError, match="closed"):
        engine.generate(regex="a")
    Engine(lm, BYTES).close()


def test_an_engine_goes_on_after_an_error_of_the_model() -> None:
    class Failing(TableModel):
        fails = True

        def next_logprobs(self, prefixes: Any) -> Any:
            if self.fails:
                raise RuntimeError("out of memory")
            return super().next_logprobs(prefixes)

    lm = Failing(BYTES.size)
    with Engine(lm, BYTES) as engine:
        with pytest.raises(RuntimeError, match="out of memory"):
            engine.generate(regex="ab")
        lm.fails = False
        assert engine.generate(regex="ab").text == "ab"
        with pytest.raises(ConstrainError, match="holds its own prompt"):
            engine.generate("x", regex="ab")


def test_an_error_that_interrupts_a_step_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that the Engine was closed, which it was not: the next call works."""
    with Engine(build_model("llama")) as engine:
        monkeypatch.setattr(engine.scheduler, "fill_masks", lambda rows: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.generate("a", regex="ab", max_tokens=9)
        monkeypatch.undo()
        assert engine.generate("a", regex="ab", max_tokens=9).text == "ab"
