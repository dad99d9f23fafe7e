"""Searches and sessions of an Engine: in its slots, beside batches, with the results that they have alone."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

from constrain import BeamSearch, BestFirst, Engine, Lookahead, StochasticBeams, Vocabulary, generate, session
from constrain.base.errors import ArgumentError, ConstrainError, LimitError, UnsupportedError
from constrain.checking import PrefixChecker
from tests.markov_factory import cases
from tests.model_factory import TableModel, build_model

BYTES = Vocabulary.bytes()
PROMPTS = ["name", "the order of people", "city"]
WORDS = "(ab|abba|b|bab|aabb)(ab)*"


@pytest.mark.parametrize(
    "search",
    [BeamSearch(width=4), BeamSearch(width=3, lookahead=Lookahead(steps=2)), BestFirst(max_calls=60),
     StochasticBeams()],
)  # fmt: skip
def test_searches_of_an_engine_find_what_searches_over_a_model_of_their_own_find(search: Any) -> None:
    from constrain import beam_search, best_first_search, compile as compile_constraint, stochastic_beam_search

    loaded = build_model("llama")
    constraint = compile_constraint(loaded.vocabulary, regex="[a-d]{2,5}")
    with Engine(loaded, slots=6, prefill_tokens=8) as engine:
        found = engine.generate(PROMPTS, regex="[a-d]{2,5}", search=search, n=2, max_tokens=12, seed=[1, 2, 3])
        assert engine.scheduler.used == 0
        engine.generate("x", regex="a")  # after one more step
        assert engine.scheduler.prefix_calls.held == 0
    for seed, (prompt, texts) in enumerate(zip(PROMPTS, found), 1):
        given: dict[str, Any] = {"n": 2, "max_tokens": 12}
        if isinstance(search, BeamSearch):
            alone = beam_search(loaded.on(prompt), constraint, search, **given)
        elif isinstance(search, BestFirst):
            alone = best_first_search(loaded.on(prompt), constraint, search, **given)
        else:
            rng = np.random.default_rng(seed)
            alone = stochastic_beam_search(loaded.on(prompt), constraint, search, rng=rng, **given)
        assert [one.tokens for one in texts] == [one.tokens for one in alone]
        assert [one.logprob for one in texts] == pytest.approx([one.logprob for one in alone], abs=1e-3)


def test_searches_feed_less_than_over_a_cache_of_one_text() -> None:
    """Prefixes of the queue, and those of the look-ahead, are extended in slots."""
    from constrain import beam_search, best_first_search, compile as compile_constraint

    loaded, prompt = build_model("llama"), [*range(5, 45)]
    constraint = compile_constraint(loaded.vocabulary, regex="[a-d]{6,12}")
    for search in (BestFirst(max_calls=80, beam=0), BeamSearch(width=4, lookahead=Lookahead(steps=3))):
        with Engine(loaded) as engine:
            found = engine.generate(prompt, regex="[a-d]{6,12}", search=search, max_tokens=20)
            fed: int = engine.runner.tokens_fed  # type: ignore[attr-defined]
        own = loaded.on(prompt)
        run: Any = best_first_search if isinstance(search, BestFirst) else beam_search
        assert run(own, constraint, search, max_tokens=20)[0].tokens == found.tokens
        assert fed < 0.7 * own.tokens_fed


def test_searches_share_steps_and_take_turns_with_texts() -> None:
    """More searches, sessions and texts than slots: each ends, in two orders of waiting."""
    loaded = build_model("llama")
    search = BeamSearch(width=3)
    alone = [generate(loaded, prompt, regex="[a-d]{2,6}", search=search, n=2, max_tokens=10) for prompt in PROMPTS]
    texts = [generate(loaded, prompt, regex="[a-d]{2,6}", n=4, seed=1, max_tokens=10) for prompt in PROMPTS]
    for slots in (1, 2, 5):
        with Engine(loaded, slots=slots) as engine:

            async def run(engine: Engine = engine) -> Any:
                searches = [
                    engine.agenerate(one, regex="[a-d]{2,6}", search=search, n=2, max_tokens=10) for one in PROMPTS
                ]
                draws = [engine.agenerate(one, regex="[a-d]{2,6}", n=4, seed=1, max_tokens=10) for one in PROMPTS]
                return await asyncio.gather(*searches, *draws)

            found = asyncio.run(run())
        assert [[one.tokens for one in texts] for texts in found] == [
            [one.tokens for one in each] for each in [*alone, *texts]
        ]


def test_searches_take_checks_penalties_and_markov_models() -> None:
    case = cases()["pieces"]
    law = sorted((math.log(p) for p in case.law().values()), reverse=True)
    with Engine(case.lm, case.constraint.vocabulary) as engine:
        found = engine.generate(regex=WORDS, search=BestFirst(), n=4, max_tokens=6)
        assert [one.logprob for one in found] == pytest.approx(law[:4])
        even = engine.generate(
            regex=WORDS, search=BeamSearch(width=9), n=3, max_tokens=6,
            check=PrefixChecker(lambda text: "complete" if text.count("a") % 2 == 0 else "ok"),
        )  # fmt: skip
        assert all(one.text.count("a") % 2 == 0 for one in even)
        repeated = engine.generate(regex="a{2}|b{3}", search=BestFirst(), max_tokens=6, logit_bias={"b": 9.0})
        assert repeated.text == "bbb"
        whole = engine.generate(regex=WORDS, search=BeamSearch(width=9), n=2, check=lambda text: text[0] == "b")
        assert [one.text[0] for one in whole] == ["b", "b"]


def test_wrong_searches_are_refused() -> None:
    case = cases()["pieces"]
    with Engine(case.lm, case.constraint.vocabulary, draft="prompt") as engine:
        for wrong in ({"temperature": 0.5}, {"stop": "a"}, {"draft": "prompt"}, {"forced": "canonical"}):
            with pytest.raises((UnsupportedError, ConstrainError)):
                engine.generate(regex=WORDS, search=BeamSearch(), **wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="search is"):
            engine.generate(regex=WORDS, search="beam")  # type: ignore[arg-type]
        with pytest.raises(UnsupportedError, match="needs a constraint"):
            engine.generate(search=BeamSearch())
        with pytest.raises(ArgumentError):
            engine.generate(regex=WORDS, search=BeamSearch(width=2), n=9)
        found = engine.generate(regex=["a{40}", "ab"], search=BeamSearch(), max_tokens=6, errors="return")
        assert isinstance(found[0], LimitError) and found[1].text == "ab"

        async def stream() -> None:
            async for _ in engine.stream(regex=WORDS, search=BeamSearch()):
                pass

        with pytest.raises(UnsupportedError, match="stream"):
            asyncio.run(stream())


def test_a_healed_search_gives_the_text_alone() -> None:
    loaded = build_model("llama")
    found = generate(loaded, "the na", regex="me[a-c]{1,2}", heal="prompt", search=BeamSearch(width=4), n=3)
    assert all(one.text.startswith("me") for one in found)


# ---- sessions --------------------------------------------------------------------------------------------------------


def write(s: Any) -> tuple[str, tuple[int, ...], float]:
    """A program with decisions, a stop text, and fixed text whose tokens merge with its neighbours."""
    s.text("Name: ")
    name = s.write("name", regex="[a-d]{2,5}")
    s.text(", age ")
    if s.write("age", regex="[1-9][0-9]?") > "5" or "a" in name:
        s.write("more", regex="[a-z ]{3,9}", stop=".")
    s.text("!")
    return s.text_so_far, s.tokens, s.log_weight


@pytest.mark.parametrize("family", ["llama", "gpt2", "t5"])
def test_a_session_in_a_slot_writes_what_it_writes_alone(family: str) -> None:
    loaded = build_model(family)
    with Engine(loaded, slots=3, prefill_tokens=4) as engine:
        for seed in range(4):
            with session(loaded, "the order of people", seed=seed) as s:
                text, tokens, log_weight = write(s)
            with engine.session("the order of people", seed=seed) as s:
                found = write(s)
                assert engine.scheduler.prefix_calls.held == 1
            assert found[:2] == (text, tokens)
            assert found[2] == pytest.approx(log_weight, abs=1e-3)
        engine.generate("x", regex="a")
        assert engine.scheduler.prefix_calls.held == 0


def test_many_sessions_and_requests_share_steps() -> None:
    loaded = build_model("llama")
    wanted = []
    for seed in range(6):
        with session(loaded, "city", seed=seed) as s:
            wanted.append(write(s)[:2])
    for slots in (2, 32):
        found: dict[int, Any] = {}
        with Engine(loaded, slots=slots) as engine:

            def work(seed: int, engine: Engine = engine, found: dict[int, Any] = found) -> None:
                with engine.session("city", seed=seed) as s:
                    found[seed] = write(s)[:2]

            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
            for thread in threads:
                thread.start()
            texts = engine.generate("name", regex="[ab]{9}", n=4)
            for thread in threads:
                thread.join()
        assert [found[seed] for seed in range(6)] == wanted
        assert len(texts) == 4


def test_an_idle_session_gives_its_slot_up_and_goes_on() -> None:
    loaded = build_model("llama")
    with session(loaded, "name", seed=3) as s:
        wanted = write(s)[:2]
    with Engine(loaded, slots=1) as engine, engine.session("name", seed=3) as s:
        s.text("Name: ")
        name = s.write("name", regex="[a-d]{2,5}")
        assert engine.generate("x", regex="[ab]{3}", n=3)
        s.text(", age ")
        if s.write("age", regex="[1-9][0-9]?") > "5" or "a" in name:
            s.write("more", regex="[a-z ]{3,9}", stop=".")
        assert (s.text("!").text_so_far, s.tokens) == wanted


def test_forks_have_slots_of_their_own() -> None:
    loaded = build_model("llama")
    with Engine(loaded) as engine, engine.session("name", seed=1) as s:
        s.write(regex="[ab]{3}")
        other = s.fork(seed=5)
        first, second = s.write(regex="[a-c]{4}"), other.write(regex="[a-c]{4}")
        assert (s.text_so_far[3:], other.text_so_far[3:]) == (first, second)
        assert engine.scheduler.prefix_calls.held == 2
        s.close()
        assert other.write(regex="x") == "x"


def test_a_session_of_a_language_model_and_of_a_closed_engine() -> None:
    lm = TableModel(BYTES.size)
    engine = Engine(lm, BYTES)
    with engine.session(seed=1) as s:
        assert s.write(regex="[ab]{3}") in {a + b + c for a in "ab" for b in "ab" for c in "ab"}
        engine.close()
        with pytest.raises(ConstrainError, match="closed"):
            s.write(regex="[ab]")
    with pytest.raises(ConstrainError, match="holds its own prompt"):
        Engine(lm, BYTES).session("name")


def test_a_check_that_calls_its_own_engine_is_refused() -> None:
    """It would wait for itself."""
    lm = TableModel(BYTES.size)
    with Engine(lm, BYTES) as engine:

        def judge(text: str) -> str:
            engine.generate(regex="a")
            return "complete"

        with pytest.raises(ConstrainError, match="would wait for ever"):
            engine.generate(regex="[ab]", check=PrefixChecker(judge))


def test_a_cancelled_search_ends() -> None:
    lm = TableModel(BYTES.size)
    lm.table[:, list(BYTES.eos_ids)] = -50.0
    with Engine(lm, BYTES) as engine:

        async def run() -> None:
            task = asyncio.create_task(
                engine.agenerate(regex="(.|\n)*", search=BestFirst(max_calls=10**6, beam=0), max_tokens=10_000)
            )
            while not engine.scheduler.steps:
                await asyncio.sleep(0.005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(run())
        assert engine.generate(regex="ab").text == "ab"
