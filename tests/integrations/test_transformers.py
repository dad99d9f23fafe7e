"""The processor inside `model.generate`, in each of its modes, against enumeration, the loop, and decoding by hand."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

transformers = pytest.importorskip("transformers")
import torch  # noqa: E402

from constrain import compile as compile_constraint  # noqa: E402
from constrain.decoding.generation_loop import generate_text  # noqa: E402
from constrain.integrations.logits_processor import ConstraintLogitsProcessor  # noqa: E402
from constrain.sampling.core.masked_sampling import Proposal, allowed_tokens  # noqa: E402
from constrain.sampling.core.results import log_sum  # noqa: E402
from tests.finite_grammar_factory import FiniteConstraint  # noqa: E402
from tests.model_factory import FAMILIES, build_model  # noqa: E402

TEXTS = [b'{"name": "Anna"}', b'{"name": "Bob"}', b'{"age": 12}', b"[true, false]", '{"city": "Zürich"}'.encode()]
PROMPTS = ["name", "the order of people", "city", "age and name in list", "true", "street green", "email", "x"]


def constraint_for(loaded, *texts: bytes) -> FiniteConstraint:
    return FiniteConstraint(loaded.vocabulary, texts or TEXTS)


def greedy_by_hand(loaded, prompt, constraint) -> list[int]:
    """Greedy decoding as anybody would write it: one bare forward pass per token, no cache."""
    model, matcher, ids = loaded.model, constraint.matcher(), loaded.prompt_ids(prompt)
    coded = model.config.is_encoder_decoder
    while True:
        with torch.inference_mode():
            if coded:
                start = [model.config.decoder_start_token_id]
                out = model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([start + matcher.tokens]))
            else:
                out = model(input_ids=torch.tensor([ids + matcher.tokens]))
        scores = out.logits[0, -1].numpy()
        allowed = allowed_tokens(matcher.mask())
        token = int(allowed[scores[allowed].argmax()])
        if token in loaded.vocabulary.eos_ids:
            return matcher.tokens
        matcher.advance(token)


def inputs_for(loaded, *prompts: str):
    """Ids and attention mask of prompts, padded on the left."""
    rows = [loaded.prompt_ids(prompt) for prompt in prompts]
    longest = max(map(len, rows))
    pad = loaded.tokenizer.bos_token_id
    ids = torch.tensor([[pad] * (longest - len(row)) + row for row in rows])
    seen = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    return {"input_ids": ids, "attention_mask": seen}


def written(loaded, inputs, output) -> list[list[int]]:
    """The tokens of each row after its prompt, up to its end token."""
    start = 1 if loaded.model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
    rows, end = output[:, start:].tolist(), loaded.vocabulary.eos_ids[0]
    return [row[: row.index(end)] if end in row else row for row in rows]


def model_generate(loaded, inputs, processor, **more):
    more = {"max_new_tokens": 60, "do_sample": False, "pad_token_id": loaded.tokenizer.bos_token_id, **more}
    with torch.inference_mode():
        return loaded.model.generate(**inputs, logits_processor=[processor], **more)


def sequences(loaded, prompt: str, constraint: FiniteConstraint) -> dict[tuple[int, ...], tuple[float, float]]:
    """log p (end token included) and log q (masked) of every token sequence, by walking all of them."""
    lm, out = loaded.on(prompt), {}

    def walk(matcher, p: float, q: float) -> None:
        row = lm.next_logprobs([matcher.tokens])[0]
        allowed = sorted(matcher.allowed())
        mass = log_sum(row[allowed])
        for token in allowed:
            here = p + row[token], q + row[token] - mass
            if token in loaded.vocabulary.eos_ids:
                out[tuple(matcher.tokens)] = here
            else:
                further = matcher.fork()
                further.advance(token)
                walk(further, *here)

    walk(constraint.matcher(), 0.0, 0.0)
    return out


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("prompt", PROMPTS[:3])
def test_greedy_is_the_same_by_the_processor_the_loop_and_by_hand(family: str, prompt: str) -> None:
    loaded = build_model(family)
    constraint = constraint_for(loaded)
    tokens = greedy_by_hand(loaded, prompt, constraint)
    inputs = inputs_for(loaded, prompt)
    output = model_generate(loaded, inputs, ConstraintLogitsProcessor(constraint))
    assert written(loaded, inputs, output) == [tokens]
    looped = generate_text(
        loaded.on(prompt), constraint, rng=np.random.default_rng(0), max_tokens=60, proposal=Proposal(temperature=0)
    )
    assert looped.tokens == tokens
    assert looped.data in TEXTS


@pytest.mark.parametrize("more", [{}, {"num_beams": 2}, {"do_sample": True, "top_k": 3}])
def test_a_processor_outside_a_list_works_like_a_list_of_it(more: dict[str, object]) -> None:
    loaded = build_model("gpt2")
    inputs, texts = inputs_for(loaded, PROMPTS[0]), []
    for wrap in (list, lambda processors: processors[0]):
        torch.manual_seed(0)
        processors = wrap([ConstraintLogitsProcessor(constraint_for(loaded))])
        options = {"max_new_tokens": 60, "do_sample": False, "pad_token_id": loaded.tokenizer.bos_token_id, **more}
        with torch.inference_mode():
            output = loaded.model.generate(**inputs, logits_processor=processors, **options)
        texts.append(written(loaded, inputs, output))
    assert texts[0] == texts[1]
    assert b"".join(loaded.vocabulary.tokens[token] for token in texts[1][0]) in TEXTS


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_of_eight_with_different_constraints(family: str) -> None:
    """Left padding, one constraint a row, of different lengths, so that rows finish at different times."""
    loaded = build_model(family)
    constraints = [constraint_for(loaded, *TEXTS[: 1 + k % 5]) for k in range(8)]
    if family == "t5":
        inputs = inputs_for(loaded, *PROMPTS)
    else:
        inputs = inputs_for(loaded, *PROMPTS)
        assert (inputs["attention_mask"][:, 0] == 0).any(), "some are padded"
    output = model_generate(loaded, inputs, ConstraintLogitsProcessor(constraints))
    for prompt, constraint, tokens in zip(PROMPTS, constraints, written(loaded, inputs, output)):
        assert tokens == greedy_by_hand(loaded, prompt, constraint)


@pytest.mark.parametrize("family", FAMILIES)
def test_prefetched_masks_are_the_same(family: str) -> None:
    """Another thread makes the masks between the steps; all steps but the first find them ready, beams do not."""
    from constrain.integrations.mask_prefetching import MaskPrefetcher

    loaded = build_model(family)
    constraint = constraint_for(loaded)
    inputs = inputs_for(loaded, *PROMPTS[:3])
    want = model_generate(loaded, inputs, ConstraintLogitsProcessor(constraint))
    processor = ConstraintLogitsProcessor(constraint)
    prefetcher = MaskPrefetcher(processor)
    for _ in range(2):
        output = model_generate(loaded, inputs, processor, stopping_criteria=[prefetcher])
        assert torch.equal(output, want)
    start = 1 if family == "t5" else inputs["input_ids"].shape[1]
    assert prefetcher.ready_count >= 2 * (output.shape[1] - start - 1) > 0
    beams = model_generate(loaded, inputs, processor, num_beams=2, stopping_criteria=[prefetcher])
    assert torch.equal(beams, model_generate(loaded, inputs, ConstraintLogitsProcessor(constraint), num_beams=2))


def test_the_thread_that_prefetches_prepares_for_the_next_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the masks of each step, for the rows that go on; the texts are the same."""
    from constrain.engine.preparation import prepare_matchers
    from constrain.integrations import mask_prefetching

    loaded = build_model("llama")
    constraint = compile_constraint(loaded.vocabulary, regex="(a|b[0-9]{2}|t){6,9}")
    inputs = inputs_for(loaded, *PROMPTS[:3])
    want = model_generate(loaded, inputs, ConstraintLogitsProcessor(constraint))
    prepared: list[tuple[int, bool]] = []
    monkeypatch.setattr(
        mask_prefetching,
        "prepare_matchers",
        lambda matchers, is_over: prepared.append((len(matchers), prepare_matchers(matchers, is_over))),
    )
    processor = ConstraintLogitsProcessor(constraint)
    output = model_generate(loaded, inputs, processor, stopping_criteria=[mask_prefetching.MaskPrefetcher(processor)])
    assert torch.equal(output, want)
    assert len(prepared) >= output.shape[1] - inputs["input_ids"].shape[1] - 1 > 3
    assert prepared[0][0] == 3


@pytest.mark.parametrize("family", FAMILIES)
def test_beams_find_the_likeliest_text_of_all(family: str) -> None:
    """With beams for every sequence, the ranking is that of enumeration."""
    loaded = build_model(family)
    constraints = [constraint_for(loaded, b"true", b"to"), constraint_for(loaded, b"in", b"red", b"1")]
    inputs = inputs_for(loaded, *PROMPTS[:2])
    output = model_generate(
        loaded, inputs, ConstraintLogitsProcessor(constraints), num_beams=40, num_return_sequences=3, length_penalty=0.0
    )
    found = written(loaded, inputs, output)
    for row, (prompt, constraint) in enumerate(zip(PROMPTS, constraints)):
        exact = sequences(loaded, prompt, constraint)
        assert len(exact) <= 40
        best = sorted(exact, key=lambda tokens: -exact[tokens][0])[:3]
        assert [tuple(tokens) for tokens in found[3 * row : 3 * row + 3]] == best


def test_beam_search_stays_inside_the_constraint() -> None:
    loaded = build_model("llama")
    inputs = inputs_for(loaded, *PROMPTS)
    for beams in (2, 3, 5):
        output = model_generate(
            loaded, inputs, ConstraintLogitsProcessor(constraint_for(loaded)), num_beams=beams, num_return_sequences=2
        )
        assert all(loaded.vocabulary.text(tokens) in TEXTS for tokens in written(loaded, inputs, output))


@pytest.mark.parametrize("more", [{}, {"num_return_sequences": 4}, {"repetition_penalty": 1.3}])
def test_sampled_beams_stay_inside_the_constraint(more: dict[str, object]) -> None:
    """Most steps allow fewer tokens than the candidates that are drawn without replacement."""
    loaded = build_model("llama")
    inputs = inputs_for(loaded, *PROMPTS[:2])
    for texts in (TEXTS, TEXTS[1:2]):
        for seed in range(2):
            torch.manual_seed(seed)
            processor = ConstraintLogitsProcessor(constraint_for(loaded, *texts))
            output = model_generate(loaded, inputs, processor, num_beams=4, do_sample=True, **more)
            assert all(loaded.vocabulary.text(tokens) in texts for tokens in written(loaded, inputs, output))


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_sampling_follows_the_masked_distribution(family: str) -> None:
    """400 texts by num_return_sequences, against the exact distribution of masked sampling."""
    loaded = build_model(family)
    constraint = constraint_for(loaded, b"true", b"to", b"red")
    inputs = inputs_for(loaded, "name")
    torch.manual_seed(0)
    output = model_generate(
        loaded, inputs, ConstraintLogitsProcessor(constraint), do_sample=True, num_return_sequences=400, top_k=0
    )
    exact = sequences(loaded, "name", constraint)
    seen = Counter(tuple(tokens) for tokens in written(loaded, inputs, output))
    assert set(seen) <= set(exact)
    expected = {tokens: 400 * math.exp(q) for tokens, (_, q) in exact.items()}
    common = [tokens for tokens, count in expected.items() if count >= 5]
    chi = sum((seen[tokens] - expected[tokens]) ** 2 / expected[tokens] for tokens in common)
    assert chi < len(common) + 6 * math.sqrt(2 * len(common))


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral"])
@pytest.mark.parametrize("more", [{}, {"do_sample": True}], ids=["greedy", "sampled"])
def test_assisted_decoding_goes_back_and_forth(family: str, more) -> None:
    """The draft model disagrees with the model, so drafts are dropped; greedy comes out as without it."""
    loaded, other = build_model(family), build_model(family, 1)
    for prompt in PROMPTS[:4]:
        constraint, inputs = constraint_for(loaded), inputs_for(loaded, prompt)
        processor = ConstraintLogitsProcessor(constraint)
        output = model_generate(loaded, inputs, processor, assistant_model=other.model, **more)
        (tokens,) = written(loaded, inputs, output)
        assert loaded.vocabulary.text(tokens) in TEXTS
        if not more:
            assert tokens == greedy_by_hand(loaded, prompt, constraint)


@pytest.mark.parametrize("named", [False, True])
def test_an_assistant_of_another_vocabulary(named: bool) -> None:
    """transformers shows the assistant's scores to the same processors, and its drafts may be refused."""
    loaded, other = build_model("mistral"), build_model("llama")
    for prompt in PROMPTS[:4]:
        constraint, inputs = constraint_for(loaded), inputs_for(loaded, prompt)
        processor = ConstraintLogitsProcessor(constraint, on_refused="end", model=loaded.model if named else None)
        output = model_generate(
            loaded, inputs, processor, assistant_model=other.model, tokenizer=loaded.tokenizer,
            assistant_tokenizer=other.tokenizer,
        )  # fmt: skip
        assert written(loaded, inputs, output) == [greedy_by_hand(loaded, prompt, constraint)]


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral"])
def test_drafts_looked_up_in_the_prompt(family: str) -> None:
    loaded = build_model(family)
    prompt = 'name {"name": "Anna"} {"name": "Bob"} {"name": "'
    constraint, inputs = constraint_for(loaded), inputs_for(loaded, prompt)
    for policy in ("raise", "end"):
        processor = ConstraintLogitsProcessor(constraint, on_refused=policy)
        output = model_generate(loaded, inputs, processor, prompt_lookup_num_tokens=5)
        assert written(loaded, inputs, output) == [greedy_by_hand(loaded, prompt, constraint)]


def test_a_processor_is_used_again() -> None:
    """One processor, several prompts and modes after each other, prompts of any length, one twice."""
    loaded = build_model("llama")
    constraint = constraint_for(loaded)
    processor = ConstraintLogitsProcessor(constraint)
    for prompts in (PROMPTS[:1], PROMPTS[:1], PROMPTS[:3], PROMPTS[1:2], PROMPTS):
        inputs = inputs_for(loaded, *prompts)
        found = written(loaded, inputs, model_generate(loaded, inputs, processor))
        assert found == [greedy_by_hand(loaded, prompt, constraint) for prompt in prompts]
        assert model_generate(loaded, inputs, processor, num_beams=2) is not None


@pytest.mark.parametrize(
    "more",
    [{}, {"do_sample": True, "num_return_sequences": 3, "top_k": 0}, {"num_beams": 3, "num_return_sequences": 2},
     {"prompt_lookup_num_tokens": 3}, {"assistant_model": True}],
    ids=["greedy", "sampled", "beams", "lookup", "assisted"],
)  # fmt: skip
def test_a_processor_is_used_again_for_longer_prompts(more: dict[str, object]) -> None:
    """Each prompt begins with the one before it, as in a conversation; also one that is a prompt and its answer."""
    loaded = build_model("llama")
    if "assistant_model" in more:
        more = {"assistant_model": build_model("llama", 1).model}
    constraint = constraint_for(loaded)
    processor = ConstraintLogitsProcessor(constraint)
    ids = loaded.prompt_ids("name")
    for text in ("age and name in list", "the order of people", ""):
        output = model_generate(loaded, {"input_ids": torch.tensor([ids])}, processor, **more)
        rows = written(loaded, {"input_ids": torch.tensor([ids])}, output)
        assert all(loaded.vocabulary.text(row) in TEXTS for row in rows)
        ids = [*output[0].tolist(), *loaded.prompt_ids(text)]


def test_a_text_that_was_cut_short_is_continued() -> None:
    """The ids that came out go in again: the same processor knows the prompt; a new one is given its length."""
    loaded = build_model("gpt2")
    constraint, inputs = constraint_for(loaded), inputs_for(loaded, "name")
    whole = greedy_by_hand(loaded, "name", constraint)
    processor = ConstraintLogitsProcessor(constraint)
    part = model_generate(loaded, inputs, processor, max_new_tokens=3)
    with_length = ConstraintLogitsProcessor(constraint, prompt_length=inputs["input_ids"].shape[1])
    for one in (processor, with_length):
        again = {"input_ids": part, "attention_mask": torch.ones_like(part)}
        assert written(loaded, inputs, model_generate(loaded, again, one)) == [whole]


def test_half_precision_scores() -> None:
    loaded = build_model("llama")
    constraint, inputs = constraint_for(loaded), inputs_for(loaded, "name")
    half = loaded.model.to(torch.bfloat16)
    try:
        output = model_generate(loaded, inputs, ConstraintLogitsProcessor(constraint))
        assert loaded.vocabulary.text(written(loaded, inputs, output)[0]) in TEXTS
    finally:
        half.to(torch.float32)
        build_model.cache_clear()
