"""The rows of a batch over a slot cache are those of plain forward passes, whatever happened to its slots before."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

transformers = pytest.importorskip("transformers")
import torch  # noqa: E402

from constrain.decoding.language_model_runner import LanguageModelRunner  # noqa: E402
from constrain.decoding.model_runner import CacheBounds, RowStep  # noqa: E402
from constrain.integrations.attention_masks import describe_attention  # noqa: E402
from constrain.integrations.runner_choice import find_slot_attention, make_runner  # noqa: E402
from constrain.integrations.transformers_models import logit_width  # noqa: E402
from constrain.integrations.transformers_runner import TransformersRunner, divide_widths  # noqa: E402
from constrain.speculation.draft_source import NO_DRAFT, DraftTree  # noqa: E402
from tests.model_factory import build_model  # noqa: E402

WIDTH = 97
SHAPE = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
MODELS = ("llama", "gpt2", "mistral", "qwen3_sliding", "gemma2_eager")


@lru_cache(maxsize=8)
def small_model(family: str) -> Any:
    """A random model of WIDTH tokens; windows are short, and layers of two kinds alternate in the last two."""
    torch.set_num_threads(1)
    torch.manual_seed(3)
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    if family == "llama":
        config = transformers.LlamaConfig(vocab_size=WIDTH, num_key_value_heads=2, **SHAPE)
        model = transformers.LlamaForCausalLM(config)
    elif family == "gpt2":
        model = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=WIDTH, n_embd=32, n_layer=2, n_head=4, n_positions=128)
        )
    elif family == "mistral":
        config = transformers.MistralConfig(vocab_size=WIDTH, num_key_value_heads=2, sliding_window=4, **SHAPE)
        model = transformers.MistralForCausalLM(config)
    elif family == "qwen3_sliding":
        config = transformers.Qwen3Config(
            vocab_size=WIDTH, num_key_value_heads=2, head_dim=8, sliding_window=4, use_sliding_window=True,
            layer_types=kinds, **SHAPE,
        )  # fmt: skip
        model = transformers.Qwen3ForCausalLM(config)
    else:
        config = transformers.Gemma2Config(
            vocab_size=WIDTH, num_key_value_heads=2, head_dim=8, sliding_window=4, layer_types=kinds, **SHAPE
        )
        config._attn_implementation = "eager"
        model = transformers.Gemma2ForCausalLM(config)
    with torch.no_grad():
        model.get_output_embeddings().weight.normal_(0, 0.7)
    return model.eval()


def plain_row(model: Any, text: Sequence[int]) -> np.ndarray:
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([list(text)]), use_cache=False).logits[0, -1]
    row: np.ndarray = torch.log_softmax(logits.double(), -1).numpy()
    return row


def random_tree(rng: np.random.Generator, count: int) -> DraftTree:
    parents = tuple(int(rng.integers(-1, node)) if node else -1 for node in range(count))
    return DraftTree(tuple(rng.integers(0, WIDTH, count).tolist()), parents)


@pytest.mark.parametrize("family", MODELS)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_rows_are_those_of_plain_passes_after_any_operations(family: str, seed: int) -> None:
    """Slots are opened, also with prefixes of running and ended texts, fed in parts, given trees, shared, rewound and
    released at random. The cache shrinks in between, for there is no byte that it may keep.
    """
    model, rng = small_model(family), np.random.default_rng(seed)
    kinds = find_slot_attention(model)
    assert kinds is not None
    bounds = CacheBounds(int(rng.integers(0, 4)), int(rng.integers(5, 8)), int(rng.choice([0, 50_000])))
    runner = TransformersRunner(model, WIDTH, kinds, bounds)
    begun: list[list[int]] = [[]]
    texts: dict[int, list[int]] = {}
    prompts: dict[int, list[int]] = {}
    checked = 0
    for _ in range(10):
        for slot in [slot for slot in texts if rng.random() < 0.15]:
            runner.release(slot)
            begun.append(texts.pop(slot))
        for slot in [slot for slot in texts if rng.random() < 0.15 and len(texts[slot]) > len(prompts[slot])]:
            runner.rewind(slot)
            texts[slot] = prompts[slot].copy()
        while not texts or (len(texts) < 5 and rng.random() < 0.5):
            stems = [*begun, *texts.values()]
            stem = stems[int(rng.integers(0, len(stems)))][: int(rng.integers(0, 40))]
            prompt = stem + rng.integers(0, WIDTH, int(rng.integers(1, 12))).tolist()
            slot, unfed, reused = runner.open(prompt)
            assert prompt[reused:] == unfed != []
            cut = int(rng.integers(0, len(unfed)))
            if cut:
                assert runner.start([RowStep(slot, unfed[:cut], rows="none")]).wait()[0].shape == (0, WIDTH)
                runner.commit(slot, ())
            (row,) = runner.start([RowStep(slot, unfed[cut:])]).wait()[0]
            assert row == pytest.approx(plain_row(model, prompt), abs=2e-4)
            runner.commit(slot, ())
            texts[slot], prompts[slot] = prompt.copy(), prompt
        chosen = [slot for slot in texts if rng.random() < 0.8]
        steps = [
            RowStep(
                slot, rng.integers(0, WIDTH, int(rng.integers(1, 4))).tolist(),
                random_tree(rng, int(rng.integers(0, 6))) if rng.random() < 0.6 else NO_DRAFT,
            )
            for slot in chosen
        ]  # fmt: skip
        for step, rows in zip(steps, runner.start(steps).wait() if steps else []):
            text = texts[step.slot] + list(step.feed)
            paths = [[step.draft.tokens[one] for one in step.draft.path(node)] for node in range(-1, len(step.draft))]
            for row, path in zip(rows, paths, strict=True):
                assert row == pytest.approx(plain_row(model, text + path), abs=2e-4)
                checked += 1
            node = int(rng.integers(-1, len(step.draft)))
            if rng.random() < 0.3:
                other = runner.share(step.slot)
                runner.commit(other, ())
                texts[other], prompts[other] = text.copy(), prompts[step.slot]
            runner.commit(step.slot, step.draft.path(node))
            texts[step.slot] = text + paths[node + 1]
    runner.close()
    assert checked


def test_equal_rows_whether_logits_or_log_probabilities_are_asked_for() -> None:
    model = small_model("llama")
    runner = make_runner(model, WIDTH)
    slots = [runner.open([3, 4]).slot for _ in range(2)]
    logits, logprobs = runner.start([RowStep(slots[0], [3, 4], rows="logits"), RowStep(slots[1], [3, 4])]).wait()
    assert (logits - np.logaddexp.reduce(logits, axis=1)).ravel() == pytest.approx(logprobs.ravel(), abs=1e-5)
    assert np.abs(logits - logprobs).min() > 0.01
    runner.close()


def test_a_text_at_the_last_position_shares_a_pass_with_a_wider_row() -> None:
    model = small_model("gpt2")
    runner = make_runner(model, WIDTH)
    assert isinstance(runner, TransformersRunner)
    runner.pass_tokens = 10**9  # one pass for all rows
    prompt = [k % WIDTH for k in range(127)]
    assert runner.count_positions_left(prompt) == 2
    long, short = runner.open(prompt).slot, runner.open([5]).slot
    runner.start([RowStep(long, prompt)]).wait()
    runner.commit(long, ())
    rows = runner.start([RowStep(long, [8]), RowStep(short, [5, 6, 7, 8, 9])]).wait()
    assert rows[0][0] == pytest.approx(plain_row(model, [*prompt, 8]), abs=2e-4)
    assert rows[1][0] == pytest.approx(plain_row(model, [5, 6, 7, 8, 9]), abs=2e-4)
    runner.close()


def test_a_row_that_was_not_finite_leaves_nothing_in_its_slot() -> None:
    """NaN in hidden keys would spoil every later text of the row, because 0 * NaN is NaN."""
    model = small_model("llama")
    runner = make_runner(model, WIDTH)
    part = model.model.layers[0].mlp
    handle = part.register_forward_hook(lambda *parts: parts[-1] * np.nan)
    slot = runner.open([1, 2, 3, 4, 5]).slot
    assert np.isnan(runner.start([RowStep(slot, [1, 2, 3, 4, 5])]).wait()[0]).all()
    handle.remove()
    runner.release(slot)
    again, other = runner.open([6, 7]).slot, runner.open([1, 2, 3, 4, 5]).slot
    (short, long) = runner.start([RowStep(again, [6, 7]), RowStep(other, [1, 2, 3, 4, 5])]).wait()
    assert short[0] == pytest.approx(plain_row(model, [6, 7]), abs=2e-4)
    assert long[0] == pytest.approx(plain_row(model, [1, 2, 3, 4, 5]), abs=2e-4)
    runner.close()


def test_a_pass_that_was_interrupted_leaves_the_other_slots_as_they_were() -> None:
    model = small_model("gpt2")
    runner = make_runner(model, WIDTH)
    slots = [runner.open([5]).slot, runner.open([5, 6]).slot]
    runner.start([RowStep(slots[0], [5])]).wait()
    runner.commit(slots[0], ())
    for part in [one for name, one in model.named_modules() if name.endswith("mlp")]:
        handle = part.register_forward_hook(lambda *_: (_ for _ in ()).throw(MemoryError()))
        with pytest.raises(MemoryError):
            runner.start([RowStep(slots[1], [5, 6])]).wait()
        handle.remove()
        runner.release(slots[1])
        slots[1] = runner.open([5, 6]).slot
    rows = runner.start([RowStep(slots[0], [8]), RowStep(slots[1], [5, 6])]).wait()
    assert rows[0][0] == pytest.approx(plain_row(model, [5, 8]), abs=2e-4)
    assert rows[1][0] == pytest.approx(plain_row(model, [5, 6]), abs=2e-4)
    runner.close()


def mamba() -> Any:
    config = transformers.MambaConfig(vocab_size=WIDTH, hidden_size=16, num_hidden_layers=2, state_size=4)
    return transformers.MambaForCausalLM(config).eval()


def bloom() -> Any:
    """A model that derives its positions from the attention mask."""
    config = transformers.BloomConfig(vocab_size=WIDTH, hidden_size=16, n_layer=2, n_head=2)
    return transformers.BloomForCausalLM(config).eval()


@pytest.mark.parametrize("make", [mamba, bloom, lambda: build_model("t5").model])
def test_other_models_run_one_text_at_a_time(make: Any) -> None:
    model = make()
    assert find_slot_attention(model) is None
    runner = make_runner(model, logit_width(model))
    assert isinstance(runner, LanguageModelRunner)
    slots = [runner.open([3, 4, 5]), runner.open([9])]
    assert [list(opened.unfed) for opened in slots] == [[], []]
    assert runner.count_positions_left([3, 4]) is None
    draft = DraftTree((5, 6), (-1, -1))
    rows = runner.start([RowStep(slots[0].slot, (), draft), RowStep(slots[1].slot, [8])]).wait()
    if not model.config.is_encoder_decoder:
        wanted = [[3, 4, 5], [3, 4, 5, 5], [3, 4, 5, 6], [9, 8]]
        for row, text in zip(np.concatenate(rows), wanted, strict=True):
            assert row[:WIDTH] == pytest.approx(plain_row(model, text), abs=2e-4)
    runner.close()


def test_attention_that_is_not_known_is_not_guessed() -> None:
    model = small_model("llama")
    model.config._attn_implementation = "flash_attention_2"
    try:
        assert describe_attention(model) is None
    finally:
        model.config._attn_implementation = "sdpa"


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(0, 30))
def test_passes_cover_all_steps_and_cost_no_more_than_one_pass(widths: list[int], cost: int) -> None:
    groups = divide_widths(widths, cost)
    assert sorted(index for group in groups for index in group) == list(range(len(widths)))
    total = sum(len(group) * max(widths[index] for index in group) + cost for group in groups)
    assert total <= len(widths) * max(widths) + cost
    edges = [(min(widths[index] for index in group), max(widths[index] for index in group)) for group in groups]
    assert all(first[1] <= second[0] for first, second in zip(edges, edges[1:]))


def test_the_cost_of_a_step_is_that_of_its_passes() -> None:
    model = small_model("llama")
    kinds = find_slot_attention(model)
    assert kinds is not None
    runner = TransformersRunner(model, WIDTH, kinds)
    runner.pass_tokens = 64
    assert runner.estimate_cost([1] * 60) == 60 + 64
    assert runner.estimate_cost([1] * 60 + [40]) == (60 + 64) + (40 + 64), "a pass of its own"
    assert runner.estimate_cost([1, 1, 5]) == 3 * 5 + 64, "one pass of the widest row's width"
    runner.close()


def test_a_thread_gives_the_rows_that_a_small_model_gives_without_one() -> None:
    model = small_model("llama")
    kinds = find_slot_attention(model)
    assert kinds is not None
    found = []
    for is_small in (True, False):
        runner = TransformersRunner(model, WIDTH, kinds)
        runner.is_small = is_small
        try:
            slot = runner.open([3, 5, 8]).slot
            first = runner.start([RowStep(slot, [3, 5, 8])]).wait()
            runner.commit(slot, ())
            found.append([*first, *runner.start([RowStep(slot, [9], DraftTree.chain([4, 2]))]).wait()])
        finally:
            runner.close()
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)
