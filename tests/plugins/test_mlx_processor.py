"""The plug-in for MLX against an engine with its interface; `test_mlx_installed.py` has the package itself."""

from __future__ import annotations

import json
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest

import constrain
from constrain import ArgumentError, ConstrainError, LimitError, UnsupportedError, VocabularyError
from constrain.plugins.mlx_processor import MlxConstraintProcessor, generate_with_mlx, make_mlx_processors
from tests.plugins.engine_fakes import END, TOKENS, VOCABULARY, StuckMatcher, install_mlx

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "number"}}, "required": ["n"]}
TOKENIZER = SimpleNamespace(eos_token_ids={END})


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch):
    return install_mlx(monkeypatch)


@pytest.fixture
def constraint() -> constrain.Constraint:
    return constrain.compile(VOCABULARY, schema=SCHEMA)


def allowed(processor: MlxConstraintProcessor, ids: list[int]) -> list[int]:
    out = processor(np.array(ids), np.zeros((1, len(TOKENS) + 3), np.float32))  # type: ignore[arg-type]
    return np.flatnonzero(np.isfinite(out[0])).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_texts_are_valid_though_the_engine_is_a_step_ahead(constraint, monkeypatch, seed: int) -> None:
    install_mlx(monkeypatch, seed)
    for max_tokens in (12, 40):
        text = generate_with_mlx(None, TOKENIZER, [65], constraint, max_tokens=max_tokens)
        jsonschema.validate(json.loads(text), SCHEMA)


def test_positions_are_of_tokens_not_of_calls(constraint: constrain.Constraint) -> None:
    """Drafts are rejected, and the engine goes back."""
    processor = MlxConstraintProcessor(constraint)
    start = sorted([ord("{"), TOKENS.index(b'{"')])
    assert allowed(processor, [9, 9]) == start
    assert allowed(processor, [9, 9, *b'{"n": 1}']) == [END]
    assert allowed(processor, [9, 9]) == start
    assert allowed(processor, [9, 9, *b'{"n": 1}', END, END]) == [END]


def test_a_shared_processor_is_refused(constraint: constrain.Constraint) -> None:
    processor = MlxConstraintProcessor(constraint)
    allowed(processor, [9, 9])
    with pytest.raises(ConstrainError, match="tokens of another text"):
        allowed(processor, [8, 9])
    with pytest.raises(ConstrainError, match="tokens of another text"):
        allowed(processor, [9])


def test_each_sequence_of_a_batch_has_its_own(constraint: constrain.Constraint) -> None:
    one, none, other = make_mlx_processors([constraint, None, constraint], max_tokens=[12, 5, 40])
    assert none == [] and one[0] is not other[0]
    assert (one[0].request.budget.max_tokens, other[0].request.budget.max_tokens) == (12, 40)  # type: ignore[union-attr]
    assert len(make_mlx_processors([constraint] * 2)) == 2
    with pytest.raises(ArgumentError, match="2 constraints and 1 numbers"):
        make_mlx_processors([constraint] * 2, max_tokens=[5])


def test_a_dead_row_is_an_error(constraint: constrain.Constraint) -> None:
    """mlx-lm reports the exception of a processor, so the text ends with it and is not cut short in silence."""
    processor = MlxConstraintProcessor(constraint)
    processor.request.matcher = StuckMatcher()  # type: ignore[assignment]
    with pytest.raises(LimitError, match="a search gave up"):
        allowed(processor, [9])


def test_invalid_tokens_arguments_and_versions_raise(
    constraint: constrain.Constraint, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = MlxConstraintProcessor(constraint)
    allowed(processor, [9])
    with pytest.raises(ConstrainError, match="token 0 after '' is refused"):
        allowed(processor, [9, 0])
    with pytest.raises(VocabularyError, match="the model has 10 logits"):
        MlxConstraintProcessor(constraint)(np.array([9]), np.zeros((1, 10)))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="logits_processors="):
        generate_with_mlx(None, TOKENIZER, [65], constraint, logits_processors=[])
    with pytest.raises(VocabularyError, match="mlx-lm stops at"):
        generate_with_mlx(None, SimpleNamespace(eos_token_ids={3}), [65], constraint)
    with pytest.raises(LimitError, match="shortest text"):
        generate_with_mlx(None, TOKENIZER, [65], constraint, max_tokens=3)
    install_mlx(monkeypatch, version="0.33.0")
    with pytest.raises(UnsupportedError, match=r"mlx-lm 0\.33\.0"):
        generate_with_mlx(None, TOKENIZER, [65], constraint)
