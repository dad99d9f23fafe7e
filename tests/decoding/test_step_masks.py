"""The buffer of masks: it is used again, and grows only where more rows are needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain.base.errors import VocabularyError
from constrain.decoding.step_masks import MaskBuffer, compute_step_masks
from constrain.speculation.draft_source import NO_DRAFT, DraftTree
from constrain.vocabulary.vocabulary import Vocabulary
from tests.model_factory import build_model


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
    with constrain.Engine(build_model("llama")) as engine:
        for turn in range(12):
            assert engine.generate("a", regex="[ab]{3}", max_tokens=9, seed=turn).text
            engine.generate("a", max_tokens=2, seed=turn)
        assert len(engine.scheduler.buffer.rows) <= 64


def test_the_mask_of_a_single_text_is_written_to_one_array() -> None:
    """The array stays the same until more rows are needed, and masks are those of the Matcher."""
    buffer, matcher = MaskBuffer(), constrain.compile(Vocabulary.bytes(), regex="[a-c]{2}x|dy").matcher()
    ((first,),) = compute_step_masks([(matcher, NO_DRAFT)], buffer)
    for byte in b"abx":
        ((mask,),) = compute_step_masks([(matcher, NO_DRAFT)], buffer)
        assert mask is first
        assert (np.asarray(mask) == matcher.fork().mask()).all()
        matcher.advance(byte)
    compute_step_masks([(matcher, DraftTree.chain([1]))], buffer)
    ((mask,),) = compute_step_masks([(matcher, NO_DRAFT)], buffer)
    assert (np.asarray(mask) == matcher.fork().mask()).all()
    assert compute_step_masks([(None, NO_DRAFT)], buffer) == [[None]]


def test_an_error_of_the_mask_of_a_single_text_is_returned() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", None], [2])
    matcher = constrain.compile(vocabulary, regex="ab").matcher()
    error = VocabularyError("nothing spells it")

    class Refusing:
        constraint = matcher.constraint

        def mask(self, out: object) -> None:
            raise error

    assert compute_step_masks([(Refusing(), NO_DRAFT)], MaskBuffer()) == [[error]]  # type: ignore[list-item]
