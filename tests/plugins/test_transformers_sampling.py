"""Our samplers inside `model.generate`: the draws are those of `draw`, and what cannot be followed is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import constrain  # noqa: E402
from constrain import LimitError, UnsupportedError, VocabularyError, sampling  # noqa: E402
from constrain.demo import model_folder  # noqa: E402
from constrain.integrations.transformers_language_model import TransformersModel  # noqa: E402
from constrain.plugins.transformers_sampling import ConstrainedSampling  # noqa: E402

SAMPLE: dict[str, Any] = {"do_sample": True, "top_k": 0}
PATTERN = "(red|green|blue|dark blue)( and (red|green))?"


@pytest.fixture(scope="module")
def model() -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(model_folder(), dtype=torch.float32)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(model_folder(), padding_side="left")


@pytest.fixture(scope="module")
def constraint(tokenizer: Any) -> constrain.Constraint:
    return constrain.compile(constrain.Vocabulary.from_tokenizer(tokenizer), regex=PATTERN)


def decode(constraint: constrain.Constraint, row: Any, start: int) -> str:
    return constraint.vocabulary.decode(row[start:].tolist())


@pytest.mark.parametrize("sampler", ["masked", "awrs", "smc", "asap"])
def test_rows_are_the_draws_of_the_sampler(model: Any, tokenizer: Any, constraint: Any, sampler: str) -> None:
    inputs = tokenizer("A colour:", return_tensors="pt")
    options = {"twist": "fresh"} if sampler == "smc" else {}
    custom = ConstrainedSampling(constraint, sampler=sampler, rng=np.random.default_rng(3), **options)
    out = model.generate(**inputs, max_new_tokens=20, num_return_sequences=4, custom_generate=custom, **SAMPLE)
    start = inputs["input_ids"].shape[1]
    expected = sampling.draw(
        TransformersModel(model, constraint.vocabulary, inputs["input_ids"][0].tolist()), constraint, sampler=sampler,
        n=4, rng=np.random.default_rng(3), max_tokens=20, **options,
    )  # fmt: skip
    assert [decode(constraint, row, start) for row in out] == [one.text for one in expected]
    assert [one.log_weight for one in custom.draws[0]] == pytest.approx([one.log_weight for one in expected], abs=1e-4)
    assert all(re.fullmatch(PATTERN, decode(constraint, row, start)) for row in out)
    assert torch.equal(out[:, :start], inputs["input_ids"].repeat(4, 1))


def test_prompts_of_a_batch_are_padded_on_the_left_and_texts_on_the_right(
    model: Any, tokenizer: Any, constraint: Any
) -> None:
    inputs = tokenizer(["A colour:", "Name one of the colours that you like:"], return_tensors="pt", padding=True)
    custom = ConstrainedSampling(constraint, sampler="masked")
    torch.manual_seed(5)
    out = model.generate(**inputs, max_new_tokens=20, num_return_sequences=2, custom_generate=custom, **SAMPLE)
    torch.manual_seed(5)
    again = model.generate(**inputs, max_new_tokens=20, num_return_sequences=2, custom_generate=custom, **SAMPLE)
    assert torch.equal(out, again) and len(out) == 4 and len(custom.draws) == 2
    assert all(re.fullmatch(PATTERN, decode(constraint, row, inputs["input_ids"].shape[1])) for row in out)
    ends = {constraint.vocabulary.eos_ids[0], tokenizer.pad_token_id}
    assert set(out[:, -1].tolist()) <= ends


def test_the_model_is_the_one_that_the_generation_config_describes(model: Any, tokenizer: Any, constraint: Any) -> None:
    inputs = tokenizer("A colour:", return_tensors="pt")
    logprobs = []
    for temperature in (1.0, 0.25):
        custom = ConstrainedSampling(constraint, sampler="masked", rng=np.random.default_rng(0))
        model.generate(
            **inputs, max_new_tokens=20, do_sample=True, top_k=0, temperature=temperature, custom_generate=custom
        )
        one = custom.draws[0][0]
        ids, total = inputs["input_ids"], 0.0
        for token in (*one.tokens, constraint.vocabulary.eos_ids[0]):
            with torch.no_grad():
                total += float((model(ids).logits[0, -1].double() / temperature).log_softmax(-1)[token])
            ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
        assert one.logprob == pytest.approx(total, abs=1e-3)
        logprobs.append(one.logprob)
    assert logprobs[0] != logprobs[1]


def test_unsupported_generate_options_raise(model: Any, tokenizer: Any, constraint: Any) -> None:
    inputs = tokenizer("A colour:", return_tensors="pt")
    custom = ConstrainedSampling(constraint, sampler="masked")
    for more, cause in (
        ({"num_beams": 2}, "num_beams"),
        ({"do_sample": False}, "do_sample=False"),
        ({"max_time": 100.0}, "MaxTimeCriteria"),
        ({"return_dict_in_generate": True}, "return_dict_in_generate"),
    ):
        with pytest.raises(UnsupportedError, match=cause):
            model.generate(**inputs, max_new_tokens=20, custom_generate=custom, **{**SAMPLE, **more})
    with pytest.raises(LimitError):
        model.generate(**inputs, max_new_tokens=1, custom_generate=custom, **SAMPLE)
    other = constrain.compile(constrain.Vocabulary.bytes(), regex="a")
    with pytest.raises(VocabularyError):
        model.generate(**inputs, max_new_tokens=9, custom_generate=ConstrainedSampling(other), **SAMPLE)
    with pytest.raises(TypeError, match=r"constrain\.compile"):
        ConstrainedSampling("red|green")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="there is no sampler"):
        unknown = ConstrainedSampling(constraint, sampler="best")
        model.generate(**inputs, max_new_tokens=9, custom_generate=unknown, **SAMPLE)
