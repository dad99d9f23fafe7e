"""Prompts that begin as texts in the cache do: the texts are those of a fresh Engine, and the memory is bounded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("transformers")

from constrain import Engine
from constrain.base.errors import ArgumentError, LimitError
from constrain.integrations.cached_texts import CachedText, KeptTexts, find_longest_prefix
from constrain.integrations.transformers_runner import TransformersRunner
from tests.model_factory import build_model

SYSTEM = "the order of people in the street of a green city, with name and age and email "
STEMS = ["", SYSTEM, SYSTEM * 2, SYSTEM + "name ", "age and name in list "]
PATTERN = "[a-e]{1,3}(x[a-z]{2,12})?"


def fresh(family: str, prompt: str, n: int, seed: int) -> Any:
    """The oracle: an Engine that has seen nothing."""
    with Engine(build_model(family), prefixes=0) as engine:
        return engine.generate(prompt, regex=PATTERN, n=n, seed=seed, max_tokens=24)


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral", "t5"])
@given(
    calls=st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from(STEMS), st.sampled_from(["a", "b c", "d"])), min_size=1, max_size=3),
            st.integers(1, 3), st.integers(0, 2),
        ),
        min_size=2, max_size=4,
    ),
    slots=st.integers(1, 4), prefixes=st.integers(0, 3), cache_bytes=st.sampled_from([0, 1 << 16, 1 << 28]),
)  # fmt: skip
@settings(max_examples=4, deadline=None)
def test_texts_are_those_of_a_fresh_engine(
    family: str, calls: list[Any], slots: int, prefixes: int, cache_bytes: int
) -> None:
    with Engine(
        build_model(family), slots=slots, prefixes=prefixes, cache_bytes=cache_bytes, prefill_tokens=16
    ) as engine:
        for prompts, n, seed in calls:
            texts = [stem + end for stem, end in prompts]
            found = engine.generate(texts, regex=PATTERN, n=n, seed=[seed] * len(texts), max_tokens=24)
            for text, samples in zip(texts, found, strict=True):
                for one, wanted in zip(samples, fresh(family, text, n, seed), strict=True):
                    assert one.tokens == wanted.tokens
                    assert one.logprob == pytest.approx(wanted.logprob, abs=1e-3)
            if isinstance(engine.runner, TransformersRunner):
                assert not engine.runner.slots
                assert len(engine.runner.kept.texts) <= min(prefixes, slots)
                assert count_cache(engine.runner) <= max(cache_bytes, smallest(engine.runner))


def count_cache(runner: TransformersRunner) -> int:
    """The bytes of the tensors of a cache."""
    return sum(store.nbytes for layer in runner.cache.layers for store in (layer.keys, layer.values))


def smallest(runner: TransformersRunner) -> int:
    """The bytes of a cache of one row, which is never freed."""
    return sum(store[:1, :, :64].nbytes for layer in runner.cache.layers for store in (layer.keys, layer.values))


def test_a_conversation_is_fed_its_new_turns_only() -> None:
    with Engine(build_model("llama")) as engine:
        loaded, prompt, seen = build_model("llama"), SYSTEM, 0
        for _turn in range(4):
            ids = loaded.prompt_ids(prompt)
            answer = engine.generate(ids, regex="[a-z ]{6}", seed=1)
            assert answer.stats.reused_tokens >= seen
            assert (answer.stats.reused_tokens > 0) == (seen > 0)
            seen = len(ids)
            prompt += answer.text + " and another question "
        assert engine.runner.tokens_reused > engine.runner.tokens_fed / 2
        assert len(engine.runner.kept.texts) == 1, "the last turn begins with the earlier ones"


def test_prompts_of_one_batch_feed_their_common_prefix_once() -> None:
    prompts = [f"{SYSTEM * 3}{name}" for name in ("a", "bc", "d", "ef", "g", "hi")]
    with Engine(build_model("llama"), prefixes=0) as engine:
        found = engine.generate(prompts, regex="[ab]{3}", seed=[*range(6)])
        fed = engine.runner.tokens_fed
    lengths = [len(build_model("llama").prompt_ids(prompt)) for prompt in prompts]
    assert [one.stats.reused_tokens > max(lengths) - 8 for one in found] == [False] + [True] * 5
    assert fed < max(lengths) * 2
    for seed, (prompt, one) in enumerate(zip(prompts, found, strict=True)):
        with Engine(build_model("llama"), prefixes=0) as alone:
            assert alone.generate(prompt, regex="[ab]{3}", seed=seed).tokens == one.tokens


def test_a_prompt_that_was_cancelled_does_not_hold_up_others() -> None:
    with Engine(build_model("llama"), prefill_tokens=4) as engine:
        runs = []
        for _ in range(3):
            call = engine._prepare(SYSTEM * 2, {"regex": "ab", "max_tokens": 8})
            runs.append(engine.scheduler.submit(engine._draw(call).plan_round()[0]))
        engine.scheduler.step()
        assert [run.is_admitted for run in runs] == [False, True, True]
        engine.scheduler.cancel(runs[0])
        engine.scheduler.cancel(runs[1])
        while engine.scheduler.has_work:
            engine.scheduler.step()
        assert engine.scheduler.used == 0
        assert runs[2].outcomes[0] is not None
        assert runs[2].outcomes[0].data == b"ab"


def test_a_full_queue_refuses_calls_and_loses_none() -> None:
    with Engine(build_model("llama"), slots=2, max_queue=1) as engine:
        call = engine._prepare(["a"] * 3, {"regex": "[a-z]{6}", "max_tokens": 8})
        runs = [
            engine.scheduler.submit(request) for request in engine._draw(call).plan_round()
        ]  # nothing steps them yet
        with pytest.raises(LimitError, match="2 of the prompts"):
            engine.generate("a", regex="ab", max_tokens=8)
        engine.scheduler.step()
        with pytest.raises(LimitError, match="max_queue is 1"):
            engine.generate("a", regex="ab", max_tokens=8)
        while engine.scheduler.has_work:
            engine.scheduler.step()
        assert [len(run.outcomes[0].data) for run in runs if run.outcomes[0]] == [6] * 3
    with Engine(build_model("llama"), slots=2, max_queue=0) as engine:
        assert len(engine.generate(["a", "b"], regex="ab", max_tokens=8)) == 2
        with pytest.raises(LimitError, match="max_queue"):
            engine.generate(["a", "b", "c"], regex="ab", max_tokens=8)
    with pytest.raises(ArgumentError, match="max_queue"):
        Engine(build_model("llama"), max_queue=-1)


def test_the_cache_shrinks_after_a_large_batch_and_a_long_text() -> None:
    budget = 1 << 17
    with Engine(build_model("llama"), slots=16, cache_bytes=budget, prefixes=4) as engine:
        engine.generate([f"{SYSTEM}{k}" for k in range(16)], regex="[ab]{4}", seed=1)
        assert isinstance(engine.runner, TransformersRunner)
        assert count_cache(engine.runner) <= budget
        call = engine._prepare([SYSTEM * 40, "x"], {"regex": ["ab", "[a-z]{200}"], "max_tokens": 400})
        for request in engine._draw(call).plan_round():
            engine.scheduler.submit(request)
        sizes = list[tuple[int, int]]()
        while engine.scheduler.has_work:
            engine.scheduler.step()
            needed = engine.runner.cache.count_bytes(*engine.runner.measure())
            sizes.append((count_cache(engine.runner), needed))
        assert max(size for size, _ in sizes) > budget, "the long text needs more"
        ends = next(place for place in range(1, len(sizes)) if sizes[place][1] < sizes[place - 1][1])
        assert all(size <= max(budget, 2 * needed) for size, needed in sizes[ends + 1 :]), "one step after it ended"
        assert count_cache(engine.runner) <= budget


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 2), max_size=12)), max_size=20), st.integers(0, 4))
def test_kept_texts_are_few_and_the_longest_prefix_is_found(added: list[Any], count: int) -> None:
    kept = KeptTexts(count)
    for origin, tokens in added:
        kept.add(CachedText(0, len(tokens), origin, tokens))
        assert len(kept.texts) <= count
        assert len({text.origin for text in kept.texts}) == len(kept.texts)
        if count:
            assert any(text.tokens[: len(tokens)] == tokens for text in kept.texts)
    prompt = [*(added[len(added) // 2][1] if added else []), 0, 1, 2]
    text, length = find_longest_prefix(kept.texts, prompt)

    def common(other: CachedText) -> int:
        return next((k for k in range(len(prompt) - 1) if other.tokens[k : k + 1] != [prompt[k]]), len(prompt) - 1)

    longest = max(map(common, kept.texts), default=0)
    assert length == (longest if longest >= 8 else 0)
    assert (text is None) == (length == 0)
    assert text is None or text.tokens[:length] == prompt[:length]
