"""The plug-in in llama-cpp-python itself, with the embedded model as GGUF; runs where it is: `make plugins`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: make plugins")
pytest.importorskip("gguf", reason="gguf is not installed: make plugins")

import constrain  # noqa: E402
from constrain.demo import compose_prompt, model_folder  # noqa: E402
from constrain.plugins.llama_cpp_processor import (  # noqa: E402
    LlamaConstraintProcessor,
    chat_with_llama,
    generate_with_llama,
    read_llama_vocabulary,
)
from training.export_gguf import export_gguf  # noqa: E402

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = export_gguf(Path(tmp_path_factory.mktemp("gguf")) / "demo.gguf")
    return llama_cpp.Llama(str(path), n_ctx=512, logits_all=True, verbose=False)


@pytest.fixture(scope="module")
def constraint(llama: Any) -> constrain.Constraint:
    return constrain.compile(read_llama_vocabulary(llama), schema=SCHEMA)


def test_the_vocabulary_is_that_of_the_tokenizer(llama: Any) -> None:
    pytest.importorskip("tokenizers")
    assert read_llama_vocabulary(llama) == constrain.Vocabulary.from_pretrained(model_folder())


def test_logits_are_those_of_transformers(llama: Any) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(model_folder(), dtype=torch.float32)
    ids = llama.tokenize(compose_prompt("Describe a person.", SCHEMA).encode())
    llama.reset()
    llama.eval(ids)
    with torch.no_grad():
        theirs = model(torch.tensor([ids])).logits[0].numpy()
    ours = np.array(llama.scores[: len(ids)])
    assert np.abs(ours - theirs).max() < 0.02 and (ours.argmax(1) == theirs.argmax(1)).all()


@pytest.mark.parametrize("max_tokens", [14, 30, 120])
def test_sampled_texts_are_valid_and_complete(llama: Any, constraint: constrain.Constraint, max_tokens: int) -> None:
    prompt = compose_prompt("Describe a person.", SCHEMA)
    for seed in range(5):
        answer = generate_with_llama(llama, prompt, constraint, max_tokens=max_tokens, temperature=1.5, seed=seed)
        choice = answer["choices"][0]
        jsonschema.validate(json.loads(choice["text"]), SCHEMA)
        assert choice["finish_reason"] == "stop"


def test_streams_and_chats(llama: Any, constraint: constrain.Constraint) -> None:
    pieces = generate_with_llama(llama, "x", constraint, max_tokens=60, stream=True, temperature=0.0)
    jsonschema.validate(json.loads("".join(one["choices"][0]["text"] for one in pieces)), SCHEMA)
    answer = chat_with_llama(llama, [{"role": "user", "content": "A person."}], constraint, max_tokens=60)
    jsonschema.validate(json.loads(answer["choices"][0]["message"]["content"]), SCHEMA)


def test_the_package_swallows_exceptions_and_the_plug_in_does_not(
    llama: Any, constraint: constrain.Constraint, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    def naive(ids: Any, scores: Any) -> Any:
        raise ValueError("mine")

    answer = llama.create_completion(
        "Hello", max_tokens=4, temperature=0.0, logits_processor=llama_cpp.LogitsProcessorList([naive])
    )
    assert answer["choices"][0]["text"], "the trap: a text in spite of the exception"

    def fail(self: Any, ids: Any, scores: Any) -> Any:
        raise ValueError("mine")

    monkeypatch.setattr(LlamaConstraintProcessor, "_mask_scores", fail)
    with pytest.raises(ValueError, match="mine"):
        generate_with_llama(llama, "Hello", constraint, max_tokens=30)


def test_scores_are_strided_and_the_copy_is_not(llama: Any, constraint: constrain.Constraint) -> None:
    strides = []

    def look(ids: Any, scores: Any) -> Any:
        strides.append(scores.strides)
        return scores

    llama.create_completion("Hello", max_tokens=2, logits_processor=llama_cpp.LogitsProcessorList([look]))
    assert strides[0] == (12,)


def test_beside_logit_bias_the_package_calls_no_processor(llama: Any, constraint: constrain.Constraint) -> None:
    processor = LlamaConstraintProcessor(constraint)
    llama.create_completion(
        "Hello", max_tokens=3, logits_processor=llama_cpp.LogitsProcessorList([processor]), logit_bias={"5": 1.0}
    )
    assert processor.calls == 0
    with pytest.raises(constrain.ConstrainError, match="did not call"):
        processor.check()
    with pytest.raises(constrain.ArgumentError, match="logit_bias= cannot be combined"):
        generate_with_llama(llama, "Hello", constraint, max_tokens=30, logit_bias={"5": 1.0})
