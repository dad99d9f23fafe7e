"""A transformers model after a prompt gives the distribution of the bare model, whatever the earlier calls."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("transformers")
import torch

from constrain.base.errors import ConstrainError
from constrain.integrations.transformers_models import as_loaded, load_model
from tests.model_factory import FAMILIES, PADDING, build_model, build_tokenizer


def plainly(loaded, prompt: list[int], prefix: list[int]) -> np.ndarray:
    """Return the distribution by one forward pass over the whole context, without a cache."""
    with torch.inference_mode():
        if loaded.model.config.is_encoder_decoder:
            start = [loaded.model.config.decoder_start_token_id]
            out = loaded.model(input_ids=torch.tensor([prompt]), decoder_input_ids=torch.tensor([start + prefix]))
        else:
            out = loaded.model(input_ids=torch.tensor([prompt + prefix]), use_cache=False)
    return torch.log_softmax(out.logits[0, -1].double(), -1).numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_next_logprobs_is_the_bare_model_in_any_order(family: str) -> None:
    loaded = build_model(family)
    rng = np.random.default_rng(0)
    prompt = loaded.prompt_ids("name and age of people")
    lm = loaded.on("name and age of people")
    text = rng.integers(5, 400, 30).tolist()
    requests = [[text[:k] for k in (0, 1, 2, 5)], [text[:20]], [text[:3]], [text[:6], text[:7], text[:8]]]
    requests += [[text[:12], text[:4], text[:9] + [7]], [[9], [8, 7, 6], []], [text[:10]], [text]]
    for prefixes in requests:
        rows = lm.next_logprobs(prefixes)
        assert rows.shape == (len(prefixes), loaded.vocabulary.size)
        assert np.exp(rows).sum(1) == pytest.approx(1)
        for row, prefix in zip(rows, prefixes):
            assert row == pytest.approx(plainly(loaded, prompt, prefix), abs=2e-4)


def test_cached_prefix_is_not_evaluated_again() -> None:
    lm = build_model("llama").on("name")
    start = len(lm.prompt_ids)
    lm.next_logprobs([[]])
    assert (lm.calls, lm.tokens_fed) == (1, start)
    lm.next_logprobs([[5], [5, 6], [5, 6, 7]])
    assert (lm.calls, lm.tokens_fed) == (2, start + 3)
    lm.next_logprobs([[5, 6, 8]])
    assert (lm.calls, lm.tokens_fed) == (3, start + 4)


@pytest.mark.parametrize("family", FAMILIES)
def test_particles_go_on_from_the_rows_of_the_last_step(family: str) -> None:
    """Texts copied, dropped and reordered: the distribution stays that of the bare model, and each step feeds one
    token a text.
    """
    loaded = build_model(family)
    prompt = loaded.prompt_ids("name and age of people")
    lm = loaded.on("name and age of people")
    steps = [
        [[]] * 4,
        [[5], [6], [5], [7]],
        [[6, 1], [5, 2], [5, 3], [5, 2]],
        [[5, 3, 9], [5, 2, 9], [6, 1, 8]],
        [[5, 2, 9, 4], [5, 2, 9, 5]],
        [[5, 2, 9, 5, 1]],
        [[5, 2, 9, 5, 1, 2], [5, 2, 9, 5, 1, 3]],
        [[1, 2, 3], [4, 5, 6]],  # and now for something else
        [[1, 2, 3, 4], [4, 5, 6, 4]],
        [[1, 2, 3, 4], [4]],
    ]
    costs = []
    for prefixes in steps:
        before = lm.tokens_fed
        for row, prefix in zip(lm.next_logprobs(prefixes), prefixes):
            assert row == pytest.approx(plainly(loaded, prompt, prefix), abs=2e-4)
        costs.append(lm.tokens_fed - before)
    if lm.crops:
        assert costs[1:7] == [3, 3, 3, 2, 1, 2]
        assert costs[8] == 2


def test_a_step_that_fails_leaves_nothing_half_done() -> None:
    loaded = build_model("llama")
    prompt = loaded.prompt_ids("name")
    lm = loaded.on("name")
    lm.next_logprobs([[5], [6]])
    run = lm.run

    def breaks(*given: object, **more: object) -> None:
        raise RuntimeError("out of memory")

    lm.run = breaks
    with pytest.raises(RuntimeError):
        lm.next_logprobs([[5, 1], [6, 1]])
    lm.run = run
    for row, prefix in zip(lm.next_logprobs([[5, 1], [6, 1]]), ([5, 1], [6, 1])):
        assert row == pytest.approx(plainly(loaded, prompt, prefix), abs=2e-4)


def test_a_population_feeds_each_distinct_text_once() -> None:
    """smc over a model of transformers: contexts after the prompt are fed one token at a time."""
    import constrain
    from constrain.integrations.transformers_language_model import TransformersModel
    from constrain.sampling import draw

    lm = TransformersModel(build_model("llama"), prompt="name")
    constraint = constrain.compile(lm.vocabulary, regex="[a-f]{6,9}")
    head = len(lm.prompted.prompt_ids)
    drawn = draw(lm, constraint, sampler="smc", n=12, rng=np.random.default_rng(0), max_tokens=10)
    assert drawn.ess > 1
    assert lm.prompted.tokens_fed <= head + 1 + drawn.stats["contexts"]
    assert lm.prompted.calls <= 12


def test_no_prefixes_no_rows() -> None:
    loaded = build_model("gpt2")
    assert loaded.on("name").next_logprobs([]).shape == (0, loaded.vocabulary.size)


def test_a_model_whose_cache_cannot_be_cropped_is_recomputed() -> None:
    loaded = build_model("llama")
    lm = loaded.on("name")
    lm.crops = False
    prompt = loaded.prompt_ids("name")
    for prefixes in ([[]], [[5], [5, 6]], [[9, 9], [8]]):
        for row, prefix in zip(lm.next_logprobs(prefixes), prefixes):
            assert row == pytest.approx(plainly(loaded, prompt, prefix), abs=2e-4)


def test_vocabulary_of_a_loaded_model() -> None:
    loaded = build_model("llama")
    tokenizer = build_tokenizer("llama")
    assert loaded.vocabulary.size == len(tokenizer) + PADDING
    assert loaded.vocabulary.eos_ids == (tokenizer.eos_token_id,)
    assert all(token is None for token in loaded.vocabulary.tokens[-PADDING:])
    model = loaded.model
    ends = model.generation_config.eos_token_id
    try:
        model.generation_config.eos_token_id = [tokenizer.eos_token_id, 40]
        assert as_loaded(model, tokenizer).vocabulary.eos_ids == (tokenizer.eos_token_id, 40)
    finally:
        model.generation_config.eos_token_id = ends


def test_prompts() -> None:
    loaded = build_model("llama")
    ids = loaded.prompt_ids("name")
    assert loaded.prompt_ids(ids) == ids
    assert loaded.prompt_ids(None) == loaded.prompt_ids([]) == [loaded.tokenizer.bos_token_id]
    with pytest.raises(ConstrainError, match="no chat template"):
        loaded.prompt_ids([{"role": "user", "content": "name"}])
    with pytest.raises(ConstrainError, match="contains token 99999"):
        loaded.prompt_ids([99999])
    bare = as_loaded(loaded.model, loaded.vocabulary)
    assert bare.prompt_ids("name") == ids


def test_messages_go_through_the_chat_template() -> None:
    loaded = build_model("gpt2")
    tokenizer = build_tokenizer("gpt2")
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}<|turn|>{% endfor %}"
    chat = as_loaded(loaded.model, tokenizer)
    assert chat.prompt_ids([{"role": "user", "content": "name"}]) == [*tokenizer("name")["input_ids"], 1]


def test_load_failures_raise_constrain_error(tmp_path) -> None:
    with pytest.raises(ConstrainError, match="no model could be loaded from"):
        load_model(tmp_path)
    for nowhere in (tmp_path / "nowhere", "a/b/nowhere", "./nowhere"):
        with pytest.raises(ConstrainError, match="there is no model folder"):
            load_model(nowhere)
    with pytest.raises(ConstrainError, match="needs its tokenizer"):
        model = build_model("llama").model
        model.config.name_or_path = ""
        as_loaded(model)


def test_a_saved_model_is_loaded_with_its_tokenizer(tmp_path) -> None:
    loaded = build_model("llama")
    loaded.model.save_pretrained(tmp_path)
    loaded.tokenizer.save_pretrained(tmp_path)
    again = load_model(tmp_path)
    assert again.vocabulary == loaded.vocabulary
    assert again.on("name").next_logprobs([[]]) == pytest.approx(loaded.on("name").next_logprobs([[]]), abs=1e-5)
    assert load_model(str(tmp_path)) is again
