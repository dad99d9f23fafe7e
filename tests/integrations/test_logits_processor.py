"""The processor by itself: what it does to scores, whose position it takes a row for, and what it refuses."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from constrain.base.errors import ConstrainError, UnsupportedError, VocabularyError  # noqa: E402
from constrain.integrations import logits_processor as module  # noqa: E402
from constrain.integrations.logits_processor import ConstraintLogitsProcessor, unpack_masks  # noqa: E402
from constrain.vocabulary.vocabulary import Vocabulary  # noqa: E402
from tests.finite_grammar_factory import FiniteConstraint  # noqa: E402

VOCABULARY = Vocabulary.from_tokens([b"a", b"b", b"ab", b"c", None, None, None], eos_ids=[4])
A, B, AB, C, END, PAD, OTHER = range(7)
CONSTRAINT = FiniteConstraint(VOCABULARY, [b"ab", b"abc", b"b"])
LETTERS = FiniteConstraint(VOCABULARY, [b"c", b"cc"])


def allowed(processor, *rows: list[int], width: int = 9) -> list[set[int]]:
    """What the processor leaves in rows of zeros."""
    out = processor(torch.tensor(rows).reshape(len(rows), -1).long(), torch.zeros(len(rows), width))
    return [set((row > -torch.inf).nonzero().flatten().tolist()) for row in out]


def test_allowed_scores_stay_and_others_are_masked() -> None:
    for kind in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        scores = torch.randn(1, 9).to(kind)
        before = scores.clone()
        out = ConstraintLogitsProcessor(CONSTRAINT)(torch.tensor([[OTHER]]), scores)
        assert out.dtype is kind
        assert torch.equal(scores, before), "a new tensor"
        assert torch.equal(out[0, [A, B, AB]], before[0, [A, B, AB]])
        assert (out[0, [C, END, PAD, OTHER, 7, 8]] == -torch.inf).all(), "logits beyond the vocabulary too"


def test_positions_are_of_tokens_not_of_calls() -> None:
    processor = ConstraintLogitsProcessor(CONSTRAINT)
    assert allowed(processor, [9, 9]) == [{A, B, AB}]
    for _ in range(2):
        assert allowed(processor, [9, 9, AB]) == [{C, END}]
        assert allowed(processor, [9, 9, AB, C]) == [{END}]
        assert allowed(processor, [9, 9, A]) == [{B}]
        assert allowed(processor, [9, 9]) == [{A, B, AB}]
        assert allowed(processor, [9, 9, A, B]) == [{C, END}]
    assert allowed(processor, [9, 9, B], [9, 9, A], [9, 9, AB]) == [{END}, {B}, {C, END}], "rows of one prompt"


def test_finished_rows_take_padding() -> None:
    processor = ConstraintLogitsProcessor(CONSTRAINT)
    allowed(processor, [9], [9])
    allowed(processor, [9, AB], [9, A])
    for tail in ([END], [END, PAD], [END, PAD, OTHER]):
        rows = [[9, AB, *tail], [9, A, B, C, *([END] * (len(tail) - 2))][: 2 + len(tail)]]
        assert allowed(processor, *rows)[0] == {END}
    with pytest.raises(ConstrainError, match="goes on after the end token"):
        allowed(processor, [9, AB, END, PAD, OTHER, END], [9, A, B, C, END, END])
    with pytest.raises(ConstrainError, match="after its end token"):
        allowed(processor, [9, AB, END, A], [9, A, B, C])


def test_a_row_that_was_changed_is_an_error_or_ends() -> None:
    processor = ConstraintLogitsProcessor(CONSTRAINT)
    allowed(processor, [9])
    allowed(processor, [9, A])
    with pytest.raises(ConstrainError, match="token 3 after 'a'"):
        allowed(processor, [9, A, C])
    with pytest.raises(ConstrainError, match="token 4 after 'a'"):
        allowed(processor, [9, A, END])
    assert allowed(processor, [9, A]) == [{B}], "and goes on as if nothing had been"
    lenient = ConstraintLogitsProcessor(CONSTRAINT, on_refused="end")
    allowed(lenient, [9])
    allowed(lenient, [9, A])
    assert allowed(lenient, [9, A, C]) == [{END}]
    assert allowed(lenient, [9, A, C, A]) == [{END}]
    assert allowed(lenient, [9, A, B]) == [{C, END}]


@pytest.mark.parametrize(
    ("config", "hint"),
    [(None, "or give model="), ({"eos_token_id": END}, "or give .* generation_config="),
     ({}, "or set it in the generation config of the model, which names no token")],
)  # fmt: skip
def test_hint_for_ignored_end_token_depends_on_generation_config(config: dict[str, int] | None, hint: str) -> None:
    processor = ConstraintLogitsProcessor(
        CONSTRAINT, generation_config=config if config is None else SimpleNamespace(**config)
    )
    for row in ([9], [9, B], [9, B, END]):
        allowed(processor, row)
    with pytest.raises(ConstrainError, match=rf"goes on after the end token(.|\n)*eos_token_id=\[4\], {hint}"):
        allowed(processor, [9, B, END, END])


def test_a_refused_token_is_an_error_but_in_beams() -> None:
    """Beam search draws candidates of probability 0 where there are no others; their scores stay -inf."""
    logits = torch.zeros(2, 9)
    for scores in (logits.log_softmax(-1), logits.log_softmax(-1) * 1.2):
        processor = ConstraintLogitsProcessor(CONSTRAINT)
        for ids in ([[9], [9]], [[9, A], [9, C]], [[9, A, B], [9, C, A]], [[9, A, B, END], [9, A, B, A]]):
            assert processor(torch.tensor(ids), scores).isfinite().any(-1).all()
        assert processor(torch.tensor([[9, A, B, END, A], [9, A, B, END, END]]), scores).isfinite().any(-1).all()
    for prompts, scores in (([9, 9], logits), ([9, 8], logits.log_softmax(-1))):
        processor = ConstraintLogitsProcessor(CONSTRAINT)
        processor(torch.tensor([[prompt] for prompt in prompts]), scores)
        with pytest.raises(ConstrainError, match="holds token 3 after ''"):
            processor(torch.tensor([[prompts[0], A], [prompts[1], C]]), scores)


def test_new_prompts_are_learnt() -> None:
    processor = ConstraintLogitsProcessor(CONSTRAINT)
    assert allowed(processor, [9, 8]) == [{A, B, AB}]
    assert allowed(processor, [9, 8, AB]) == [{C, END}]
    assert allowed(processor, [7, 8, AB]) == [{A, B, AB}], "another beginning: a prompt"
    assert allowed(processor, [9]) == [{A, B, AB}], "shorter: a prompt"
    assert allowed(processor, []) == [{A, B, AB}], "no ids: embeddings were given"
    assert allowed(processor, [A]) == [{B}]


def test_a_prompt_that_begins_with_the_old_one_is_learnt() -> None:
    """Every position of a text is requested in turn, so a row with more than one new token is a prompt."""
    processor = ConstraintLogitsProcessor(CONSTRAINT)
    assert allowed(processor, [9]) == [{A, B, AB}]
    assert allowed(processor, [9, A]) == [{B}]
    assert allowed(processor, [9, AB, C]) == [{A, B, AB}], "the old prompt and two tokens"
    assert allowed(processor, [9, AB, C, A]) == [{B}]
    assert allowed(processor, [9, AB, C, A, B]) == [{C, END}]
    assert allowed(processor, [9, AB, C, A, B, END, 8]) == [{A, B, AB}], "a conversation"
    assert allowed(processor, [9, 8], [9, 9]) == [{A, B, AB}] * 2
    assert allowed(processor, [9, 8, B], [9, 9, A]) == [{END}, {B}]
    assert allowed(processor, [9, 8], [9, 7]) == [{A, B, AB}] * 2, "one old prompt and a new one"
    assert allowed(processor, [9, 8, A], [9, 7, AB]) == [{B}, {C, END}]
    with pytest.raises(ConstrainError, match=r"row 0 continues .* and row 1 another(.|\n)*prompt_length="):
        allowed(processor, [9, 8, A, B], [9, 7, A, B])


def test_the_length_of_the_prompt_can_be_said() -> None:
    processor = ConstraintLogitsProcessor(CONSTRAINT, prompt_length=1)
    assert allowed(processor, [9, AB]) == [{C, END}]
    assert allowed(processor, [9, A, B, C]) == [{END}], "several tokens at once"
    assert allowed(processor, [8, A], [9, B]) == [{B}, {END}]
    with pytest.raises(ConstrainError, match="fewer than prompt_length"):
        allowed(processor, [])


def test_rows_belong_to_their_constraints() -> None:
    processor = ConstraintLogitsProcessor([CONSTRAINT, LETTERS])
    assert allowed(processor, [9], [8]) == [{A, B, AB}, {C}]
    assert allowed(processor, [9, B], [8, C]) == [{END}, {C, END}]
    assert allowed(processor, [9], [9], [8], [8]) == [{A, B, AB}] * 2 + [{C}] * 2, "neighbours share one"
    with pytest.raises(ConstrainError, match="another order"):
        allowed(processor, [8, C], [9, B])
    with pytest.raises(ConstrainError, match="3 rows cannot be shared out"):
        allowed(processor, [9], [9], [9])
    alike = ConstraintLogitsProcessor([CONSTRAINT, LETTERS])
    assert allowed(alike, [9], [9]) == [{A, B, AB}, {C}], "equal prompts are distinguished by row"
    assert allowed(alike, [9, A], [9, C]) == [{B}, {C, END}]


def test_evicted_states_are_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CAPACITY", 1)
    processor = ConstraintLogitsProcessor(CONSTRAINT, prompt_length=1)
    for _ in range(20):
        assert allowed(processor, [9, A]) == [{B}]
        assert allowed(processor, [9, AB, C]) == [{END}]
        processor.known.clear()
        assert allowed(processor, [9, A, B]) == [{C, END}]
    for length in range(30):
        processor.masks(np.array([[9, B, END, *([PAD] * length)]]), (1, 9))
    assert len(processor.known) <= 8


def test_a_row_without_an_allowed_token_raises() -> None:
    processor = ConstraintLogitsProcessor(CONSTRAINT)
    scores = torch.zeros(1, 7)
    scores[0, [A, B, AB]] = -torch.inf
    with pytest.raises(ConstrainError, match="forbids every token"):
        processor(torch.tensor([[9]]), scores)
    with pytest.raises(ConstrainError, match="NaN"):
        processor(torch.tensor([[9]]), torch.full((1, 7), torch.nan))


def test_invalid_processor_arguments_and_shapes_raise() -> None:
    with pytest.raises(ConstrainError, match="list of constraints is empty"):
        ConstraintLogitsProcessor([])
    with pytest.raises(ConstrainError, match="prompt_length is -1"):
        ConstraintLogitsProcessor(CONSTRAINT, prompt_length=-1)
    with pytest.raises(ConstrainError, match="on_refused"):
        ConstraintLogitsProcessor(CONSTRAINT, on_refused="ignore")
    with pytest.raises(VocabularyError, match="produces 3 logits"):
        ConstraintLogitsProcessor(CONSTRAINT)(torch.tensor([[9]]), torch.zeros(1, 3))
    with pytest.raises(ConstrainError, match="do not match"):
        ConstraintLogitsProcessor(CONSTRAINT)(torch.tensor([[9]]), torch.zeros(2, 7))


def test_continuous_batching_is_refused_not_ignored() -> None:
    """transformers drops a processor that says False, with a warning: the text would be unconstrained."""
    batching = pytest.importorskip("transformers.generation.continuous_batching.cb_logits_processors")
    from transformers import LogitsProcessorList

    with pytest.raises(UnsupportedError, match="continuous batching"):
        batching.ContinuousBatchingLogitsProcessorList(LogitsProcessorList([ConstraintLogitsProcessor(CONSTRAINT)]))


@pytest.mark.parametrize("width", [1, 31, 32, 64, 70, 96, 128])
def test_bits_are_unpacked_to_any_width(width: int) -> None:
    words = torch.randint(-(2**31), 2**31 - 1, (3, 3), dtype=torch.int32)
    bits = unpack_masks(words, width)
    assert bits.shape == (3, width)
    for row in range(3):
        for bit in range(width):
            wanted = bit < 96 and bool((int(words[row, bit // 32]) >> (bit % 32)) & 1)
            assert bool(bits[row, bit]) is wanted
