"""The buffer of masks: it is used again, and grows only where more rows are needed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain.decoding.step_masks import MaskBuffer
from tests.model_factory import made


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([0, 4, 7])), max_size=60))
@settings(deadline=None)
def test_the_buffer_is_at_most_twice_as_large_as_was_needed(steps: list[tuple[int, int]]) -> None:
    """Steps with and without constraints, or of vocabularies of different sizes, may alternate."""
    buffer, most = MaskBuffer(), 0
    for count, words in steps:
        taken = buffer.take(count, words)
        assert taken.shape == (count, words)
        taken[:] = 1
        most = max(most, count)
        assert len(buffer.rows) <= 2 * most


def test_constrained_and_unconstrained_texts_alternate() -> None:
    """An Engine whose requests alternate keeps its buffer small."""
    pytest.importorskip("transformers")
    with constrain.Engine(made("llama")) as engine:
        for turn in range(12):
            assert engine.generate("a", regex="[ab]{3}", max_tokens=9, seed=turn).text
            engine.generate("a", max_tokens=2, seed=turn)
        assert len(engine.scheduler.buffer.rows) <= 64
