"""The plug-in for llama-cpp-python against an engine with its interface and its traps.

`test_llama_cpp_installed.py` has the package itself.
"""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest

import constrain
from constrain import ArgumentError, ConstrainError, LimitError, UnsupportedError
from constrain.plugins.llama_cpp_processor import (
    REFUSED_OPTIONS,
    LlamaConstraintProcessor,
    chat_with_llama,
    generate_with_llama,
    read_llama_vocabulary,
    read_piece,
)
from tests.plugins.engine_fakes import END, TOKENS, UNUSED, VOCABULARY, FakeLlama, StuckMatcher, install_llama

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "number"}}, "required": ["n"]}


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch):
    return install_llama(monkeypatch)


@pytest.fixture
def constraint() -> constrain.Constraint:
    return constrain.compile(VOCABULARY, schema=SCHEMA)


def test_the_vocabulary_is_read_by_functions_of_llama_h(monkeypatch: pytest.MonkeyPatch) -> None:
    module = install_llama(monkeypatch, tokens=[*TOKENS[:97], b"b", b"x" * 100, *TOKENS[99:]])
    assert read_piece(module, "handle", 98) == b"x" * 100, "longer than the first buffer"
    with pytest.raises(constrain.VocabularyError, match="do not spell"):
        read_llama_vocabulary(FakeLlama())
    install_llama(monkeypatch)
    vocabulary = read_llama_vocabulary(FakeLlama())
    assert vocabulary.tokens == VOCABULARY.tokens and vocabulary.eos_ids == (END,)
    assert vocabulary.tokens[UNUSED] is None
    with pytest.raises(TypeError, match=r"give a llama_cpp\.Llama"):
        read_llama_vocabulary("model.gguf")  # type: ignore[arg-type]
    hidden = FakeLlama()
    hidden._model.vocab = None
    with pytest.raises(UnsupportedError, match="does not show its vocabulary"):
        read_llama_vocabulary(hidden)


@pytest.mark.parametrize("seed", range(4))
def test_texts_are_valid_and_complete_within_the_budget(constraint: constrain.Constraint, seed: int) -> None:
    for max_tokens in (12, 40):
        answer = generate_with_llama(FakeLlama(seed), "A number:", constraint, max_tokens=max_tokens)
        jsonschema.validate(json.loads(answer["choices"][0]["text"].encode("latin-1")), SCHEMA)
    pieces = generate_with_llama(FakeLlama(seed), [65, 66], constraint, max_tokens=40, stream=True)
    jsonschema.validate(json.loads("".join(p["choices"][0]["text"] for p in pieces).encode("latin-1")), SCHEMA)
    answer = chat_with_llama(FakeLlama(seed), [{"role": "user", "content": "?"}], constraint, max_tokens=40)
    jsonschema.validate(json.loads(answer["choices"][0]["text"].encode("latin-1")), SCHEMA)


def test_the_context_bounds_the_budget(constraint: constrain.Constraint) -> None:
    answer = generate_with_llama(FakeLlama(n_ctx=20), "x" * 8, constraint)
    json.loads(answer["choices"][0]["text"].encode("latin-1"))
    with pytest.raises(LimitError, match="shortest text"):
        generate_with_llama(FakeLlama(n_ctx=20), "x" * 18, constraint)
    with pytest.raises(ArgumentError, match="the prompt has 20 tokens"):
        generate_with_llama(FakeLlama(n_ctx=20), "x" * 20, constraint)


def test_an_exception_closes_the_text_and_is_raised_after_the_call(
    constraint: constrain.Constraint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine swallows exceptions and goes on unconstrained."""

    class Naive:
        def __call__(self, ids: object, scores: object) -> object:
            raise ValueError("mine")

    llama = FakeLlama()
    llama.create_completion([65], max_tokens=3, logits_processor=[Naive()])
    assert [str(one) for one in llama.swallowed] == ["mine"] * 3, "the trap is there"

    for error in (ValueError("mine"), KeyboardInterrupt(), MemoryError()):
        calls: list[int] = []

        def fail(
            self: object, ids: object, scores: object, error: BaseException = error, calls: list[int] = calls
        ) -> object:
            calls.append(1)
            raise error

        monkeypatch.setattr(LlamaConstraintProcessor, "_mask_scores", fail)
        llama = FakeLlama()
        with pytest.raises(type(error)):
            generate_with_llama(llama, "A", constraint, max_tokens=30)
        with pytest.raises(type(error)):
            list(generate_with_llama(llama, "A", constraint, max_tokens=30, stream=True))
        assert not llama.swallowed and len(calls) == 2, "closed: the text ended at once"


def test_strided_scores_are_copied(constraint: constrain.Constraint) -> None:
    records = np.zeros(len(TOKENS), np.dtype([("id", np.intc), ("logit", np.single), ("p", np.single)]))
    scores = records["logit"]
    assert scores.strides == (12,)
    with pytest.raises(ValueError):
        constrain.apply_mask(scores, constraint.matcher().mask())
    out = LlamaConstraintProcessor(constraint)(np.array([65], np.intc), scores)
    assert out.flags.c_contiguous and not scores.any(), "a copy"
    assert np.flatnonzero(out == 0).tolist() == sorted([ord("{"), TOKENS.index(b'{"')])


@pytest.mark.parametrize("name", sorted(REFUSED_OPTIONS))
def test_options_that_break_a_constraint_are_refused(constraint: constrain.Constraint, name: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name}= cannot be combined"):
        generate_with_llama(FakeLlama(), "A", constraint, max_tokens=30, **{name: {}})


def test_a_processor_that_was_never_called_is_an_error(constraint: constrain.Constraint) -> None:
    processor = LlamaConstraintProcessor(constraint, max_tokens=30)
    FakeLlama().create_completion([65], max_tokens=3, logits_processor=[processor], logit_bias={5: 1.0})
    assert processor.calls == 0
    with pytest.raises(ConstrainError, match="did not call"):
        processor.check()


def test_a_processor_serves_one_text(constraint: constrain.Constraint) -> None:
    processor, scores = LlamaConstraintProcessor(constraint), np.zeros(len(TOKENS), np.float32)
    processor(np.array([65, 66]), scores)
    out = processor(np.array([65, 67]), scores)
    assert np.flatnonzero(np.isfinite(out)).tolist() == [END]
    with pytest.raises(ConstrainError, match="serves one text"):
        processor.check()


@pytest.mark.parametrize(
    ("ids", "scores", "cause"),
    [
        ([65, 0], np.zeros(len(TOKENS)), "token 0 after '' is refused"),
        ([65], np.full(len(TOKENS), np.nan), "infinite or not numbers"),
        ([65], np.zeros(10), "the model has 10 scores"),
    ],
)
def test_invalid_tokens_or_scores_end_the_text(constraint, ids, scores, cause) -> None:
    processor = LlamaConstraintProcessor(constraint)
    if len(ids) > 1:
        processor(np.array(ids[:1]), scores)
    out = processor(np.array(ids), scores)
    assert set(np.flatnonzero(np.isfinite(out)).tolist()) <= {END}
    with pytest.raises(ConstrainError, match=cause):
        processor.check()


def test_a_dead_row_closes_the_text(constraint: constrain.Constraint) -> None:
    processor = LlamaConstraintProcessor(constraint)
    processor.request.matcher = StuckMatcher()  # type: ignore[assignment]
    for _ in range(2):
        out = processor(np.array([65]), np.zeros(len(TOKENS), np.float32))
        assert np.flatnonzero(np.isfinite(out)).tolist() == [END]
    with pytest.raises(LimitError, match="a search gave up"):
        processor.check()


def test_other_versions_are_refused(constraint: constrain.Constraint, monkeypatch: pytest.MonkeyPatch) -> None:
    install_llama(monkeypatch, "0.4.0")
    for call in (
        lambda: generate_with_llama(FakeLlama(), "A", constraint, max_tokens=30),
        lambda: read_llama_vocabulary(FakeLlama()),
    ):
        with pytest.raises(UnsupportedError, match=r"llama-cpp-python 0\.4\.0 has not been tested"):
            call()
