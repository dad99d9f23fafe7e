"""Constraints in continuous batching of transformers, through private parts that are pinned to one version."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import constrain  # noqa: E402
from constrain import ArgumentError, LimitError, UnsupportedError  # noqa: E402
from constrain.demo import model_folder  # noqa: E402
from constrain.sampling.core.masked_sampling import allowed_tokens  # noqa: E402
from tests.plugins.engine_fakes import StuckMatcher, make_batches_stuck, pretend_versions  # noqa: E402

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
          "required": ["age"], "additionalProperties": False}  # fmt: skip


@pytest.fixture(scope="module")
def plugin() -> Any:
    try:
        return importlib.import_module("constrain.plugins.continuous_batching")
    except UnsupportedError as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.fixture(scope="module")
def loaded() -> Any:
    model = transformers.AutoModelForCausalLM.from_pretrained(model_folder(), dtype=torch.float32)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(model_folder())


@pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="takes much memory; `make plugins` runs it by itself")
def test_requests_of_one_batch_have_their_own_constraints(plugin: Any, loaded: Any, monkeypatch: Any) -> None:
    model, tokenizer = loaded
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer)
    person, letters = constrain.compile(vocabulary, schema=SCHEMA), constrain.compile(vocabulary, regex="[a-c]{2,8}")
    constraints = [person, letters, None, letters, person, person]
    prompts = [tokenizer(text)["input_ids"] for text in ("A person", "Letters", "Hi", "More", "Another one", "Bob")]
    rows = []
    original = plugin.BatchMasks.__call__

    def look(self: Any, scores: Any, tensor_arg: Any) -> Any:
        out = original(self, scores, tensor_arg)
        rows.append((len(self.rows), int(np.isfinite(out[self.rows].numpy()).all(axis=1).sum())))
        return out

    monkeypatch.setattr(plugin.BatchMasks, "__call__", look)
    found = plugin.generate_batch_constrained(model, prompts, constraints, max_new_tokens=40)
    for tokens, constraint in zip(found, constraints):
        text = vocabulary.decode(tokens)
        if constraint is person:
            jsonschema.validate(json.loads(text), SCHEMA)
        elif constraint is letters:
            assert re.fullmatch("[a-c]{2,8}", text)
    assert max(count for count, _ in rows) > 1, "several constrained rows in one step"
    assert not any(free for _, free in rows), "every constrained row was masked"
    assert (
        "_get_logits_processor" not in vars(model) and plugin.Marker not in plugin.private.CLASSIC_TO_CB_PROCESSORS_MAP
    )


def test_the_text_of_a_request_survives_a_move_to_its_prompt(plugin: Any) -> None:
    state = SimpleNamespace(initial_tokens=[1, 2, 3], generated_tokens=[4, 5], _true_initial_tokens=0)
    assert plugin.read_text(state) == [4, 5]
    state = SimpleNamespace(initial_tokens=[1, 2, 3, 4, 5], generated_tokens=[6], _true_initial_tokens=3)
    assert plugin.read_text(state) == [4, 5, 6]


def test_a_processor_that_was_not_converted_is_an_error(plugin: Any) -> None:
    with pytest.raises(constrain.ConstrainError, match="did not convert"):
        plugin.Marker([])(None, None)


def test_a_dead_row_ends_its_text_alone(plugin: Any, loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make_batches_stuck(monkeypatch)
    vocabulary = constrain.Vocabulary.from_tokenizer(loaded[1])
    constraint = constrain.compile(vocabulary, regex="[a-c]{2,8}")
    marker = plugin.Marker([plugin.RequestMatcher(constraint) for _ in range(2)])
    marker.requests[1].matcher = StuckMatcher()
    masks = plugin.BatchMasks(marker)
    states = [
        SimpleNamespace(
            initial_tokens=[5], generated_tokens=[], _true_initial_tokens=0,
            logit_processor_kwargs={plugin.FIELD: number},
        )
        for number in range(2)
    ]  # fmt: skip
    numbers = masks.prepare_tensor_args([SimpleNamespace(state=one) for one in states])
    out = np.isfinite(masks(torch.zeros(2, vocabulary.size), numbers).numpy())
    assert np.flatnonzero(out[0]).tolist() == allowed_tokens(constraint.matcher().mask()).tolist()
    assert np.flatnonzero(out[1]).tolist() == list(vocabulary.eos_ids)
    assert isinstance(marker.requests[1].error, LimitError) and marker.requests[0].error is None


def test_a_failed_text_is_an_error_of_the_call(plugin: Any, loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch goes on without it; its error is raised at the end instead of a text that was cut short."""
    model, tokenizer = loaded
    constraint = constrain.compile(constrain.Vocabulary.from_tokenizer(tokenizer), regex="[a-c]{2,8}")

    def run_stuck(model: Any, *_: Any) -> list[list[int]]:
        requests = model._get_logits_processor()[-1].requests
        requests[0].matcher = StuckMatcher()
        assert requests[0].mask().any()
        return [[], []]

    monkeypatch.setattr(plugin, "run_manager", run_stuck)
    monkeypatch.setattr(type(model), "_get_logits_processor", lambda self: [])
    with pytest.raises(LimitError, match="a search gave up"):
        plugin.generate_batch_constrained(model, [[5], [6]], [constraint, None], max_new_tokens=9)


def test_storage_is_counted_for_converted_processors_only(plugin: Any) -> None:
    """The reason for the Marker: a processor of continuous batching that is appended itself has no room."""
    from transformers import LogitsProcessorList

    marker = plugin.Marker([])
    kinds = plugin.private.ContinuousBatchingLogitsProcessorList
    appended = kinds(LogitsProcessorList([plugin.BatchMasks(marker)]), per_request_processors=True)
    assert appended.tensors_required == 0
    with pytest.raises(IndexError):
        appended.fill_defaults(torch.zeros(appended.tensors_required, 4, dtype=torch.int32))
    plugin.private.CLASSIC_TO_CB_PROCESSORS_MAP[plugin.Marker] = plugin.BatchMasks
    try:
        converted = kinds(LogitsProcessorList([marker]), per_request_processors=True)
    finally:
        del plugin.private.CLASSIC_TO_CB_PROCESSORS_MAP[plugin.Marker]
    assert converted.tensors_required == 1 and isinstance(converted.logits_processor[0], plugin.BatchMasks)


def test_unsupported_batch_arguments_raise(plugin: Any, loaded: Any) -> None:
    model, tokenizer = loaded
    constraint = constrain.compile(constrain.Vocabulary.from_tokenizer(tokenizer), schema=SCHEMA)
    with pytest.raises(ArgumentError, match="2 prompts and 1 constraints"):
        plugin.generate_batch_constrained(model, [[5], [6]], [constraint], max_new_tokens=9)
    with pytest.raises(LimitError, match="shortest text"):
        plugin.generate_batch_constrained(model, [[5]], [constraint], max_new_tokens=2)
    several = transformers.GenerationConfig(num_return_sequences=2, do_sample=True)
    with pytest.raises(ArgumentError, match="num_return_sequences"):
        plugin.generate_batch_constrained(model, [[5]], [constraint], max_new_tokens=9, generation_config=several)


def test_other_versions_are_refused_when_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "constrain.plugins.continuous_batching"
    monkeypatch.delitem(sys.modules, name, raising=False)
    pretend_versions(monkeypatch, transformers="5.24.0")
    with pytest.raises(UnsupportedError, match=r"transformers 5\.24\.0 has not been tested"):
        importlib.import_module(name)
