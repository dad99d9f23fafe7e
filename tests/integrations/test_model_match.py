"""Vocabulary and model belong together: widths, bytes of tokens, and the tokens at which `generate` stops."""

from __future__ import annotations

import json
import warnings

import pytest

transformers = pytest.importorskip("transformers")
import torch  # noqa: E402

import constrain  # noqa: E402
from constrain import ConstraintLogitsProcessor, LimitError, Vocabulary, VocabularyError  # noqa: E402
from constrain.integrations.vocabulary_match import check_logits, check_tokenizer, most_padding  # noqa: E402
from constrain.sampling.core.token_masses import allowed_tokens  # noqa: E402
from tests import tokenizer_factory  # noqa: E402
from tests.integrations.test_transformers import inputs_for  # noqa: E402
from tests.model_factory import FAMILIES, build_configured_model, build_model  # noqa: E402

REAL = {
    "Llama 3": (128_256, 128_256), "Qwen2.5 0.5B": (151_665, 151_936), "Qwen2.5 7B": (151_665, 152_064),
    "Phi-2": (50_295, 51_200), "Phi-3": (32_011, 32_064), "Gemma": (256_000, 256_000), "GPT-2": (50_257, 50_257),
    "T5": (32_100, 32_128), "DeepSeek V3": (128_815, 129_280), "gpt-oss": (200_019, 201_088),
    "Pythia 12B": (50_277, 50_688), "Command R": (255_029, 256_000), "ByT5": (259, 384),
}  # fmt: skip
"""(tokens of the tokenizer, logits) of real models."""
SCHEMAS = [
    {"type": "string", "maxLength": 30},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "boolean"}}}, "required": ["a"]},
    {"type": "array", "items": {"$ref": "#"}},
    {"enum": ["yes", "no", "perhaps"]},
    {"type": "object", "properties": {f"k{i}": {"type": "integer"} for i in range(4)}, "required": ["k3"]},
]


def vocabulary_of(size: int) -> Vocabulary:
    return Vocabulary.from_tokens([b"x"] * (size - 1) + [None], [size - 1])


@pytest.mark.parametrize("name", REAL)
def test_real_models_match_their_tokenizers(name: str) -> None:
    tokens, logits = REAL[name]
    assert logits - tokens <= most_padding(tokens)


@pytest.mark.parametrize(("tokens", "logits"), [(257, 128_069), (498, 1024), (32_000, 50_257), (50_257, 128_256)])
def test_widths_of_different_models_do_not_match(tokens: int, logits: int) -> None:
    for size, width in ((tokens, logits), (logits, tokens)):
        with pytest.raises(VocabularyError, match="logits"):
            check_logits(vocabulary_of(size), width)
    processor = ConstraintLogitsProcessor(constrain.compile(Vocabulary.bytes(), regex="a"))
    with pytest.raises(VocabularyError, match="128,069 logits"):
        processor(torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 128_069))


def test_special_tokens_may_be_beyond_the_logits() -> None:
    tokens = [b"a", None, None, None]
    check_logits(Vocabulary.from_tokens(tokens, [1], special={"<x>": 3}), 2)
    with pytest.raises(VocabularyError):
        check_logits(Vocabulary.from_tokens(tokens, [1, 3]), 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_are_compared_with_the_tokenizer(family: str) -> None:
    loaded = build_model(family)
    check_tokenizer(loaded.vocabulary, loaded.tokenizer)
    tokens = list(loaded.vocabulary.tokens)
    shifted = [None if token is None else token + b"!" for token in tokens]
    wrong = Vocabulary.from_tokens(shifted, loaded.vocabulary.eos_ids)
    with pytest.raises(VocabularyError, match="in the vocabulary"):
        ConstraintLogitsProcessor(constrain.compile(wrong, regex="a*"), tokenizer=loaded.tokenizer)
    with pytest.raises(VocabularyError, match="in the vocabulary"):
        constrain.generate(loaded, "x", regex="a!", tokenizer=wrong)
    with pytest.raises(VocabularyError, match=r"in the vocabulary|logits"):
        ConstraintLogitsProcessor(constrain.compile(Vocabulary.bytes(), regex="a"), tokenizer=loaded.tokenizer)


def test_a_tokenizer_of_another_size_is_refused() -> None:
    loaded = build_model("llama")
    wide = build_configured_model("llama", 5000, 0)
    with pytest.raises(VocabularyError, match="5,000 logits"):
        constrain.generate(wide, "x", regex="a", tokenizer=loaded.tokenizer)
    narrow = build_configured_model("llama", 300, 0)
    with pytest.raises(VocabularyError, match="300 logits"):
        constrain.generate(narrow, "x", regex="a", tokenizer=loaded.tokenizer)


# ---- end tokens


def other_end(loaded) -> int:
    """An end token that the model's generation config does not name."""
    return next(i for i in loaded.vocabulary.special.values() if i not in loaded.vocabulary.eos_ids)


@pytest.mark.parametrize("family", ["llama", "mistral"])
@pytest.mark.parametrize("rows", [1, 3])
def test_only_what_generate_stops_at_ends_a_text(family: str, rows: int) -> None:
    """A Vocabulary with one end token more than the model stops at: the text ends with the model's own."""
    loaded = build_model(family)
    ends = [*loaded.vocabulary.eos_ids, other_end(loaded)]
    vocabulary = Vocabulary.from_tokenizer(loaded.tokenizer, size=loaded.vocabulary.size, eos_ids=ends)
    constraint = constrain.compile(vocabulary, choices=["yes"])
    inputs = inputs_for(loaded, *["name", "a longer prompt", "x"][:rows])
    more = {"max_new_tokens": 29, "do_sample": False, "pad_token_id": loaded.tokenizer.bos_token_id}
    processor = ConstraintLogitsProcessor(constraint, model=loaded.model)
    out = loaded.model.generate(**inputs, logits_processor=[processor], **more)
    start = inputs["input_ids"].shape[1]
    for row in out[:, start:].tolist():
        place = row.index(loaded.vocabulary.eos_ids[0])
        assert vocabulary.text(row[:place]) == b"yes" and other_end(loaded) not in row[: place + 1]
        assert set(row[place + 1 :]) <= {more["pad_token_id"]}


@pytest.mark.parametrize("rows", [1, 2])
def test_a_generate_that_does_not_stop_is_an_error_not_a_row_of_end_tokens(rows: int) -> None:
    loaded = build_model("llama")
    vocabulary = Vocabulary.from_tokenizer(loaded.tokenizer, size=loaded.vocabulary.size, eos_ids=[other_end(loaded)])
    constraint = constrain.compile(vocabulary, choices=["yes"])
    inputs = inputs_for(loaded, *["name", "city"][:rows])
    with pytest.raises(constrain.ConstrainError, match="goes on after the end token"):
        loaded.model.generate(
            **inputs, logits_processor=[ConstraintLogitsProcessor(constraint)], max_new_tokens=29, do_sample=False
        )
    with pytest.raises(VocabularyError, match="no text would ever end"):
        ConstraintLogitsProcessor(constraint, model=loaded.model)


def test_generate_must_not_stop_inside_a_text() -> None:
    loaded = build_model("llama")
    vocabulary = loaded.vocabulary
    text = next(index for index, token in enumerate(vocabulary.tokens) if token)
    config = transformers.GenerationConfig(eos_token_id=[vocabulary.eos_ids[0], text])
    constraint = constrain.compile(vocabulary, choices=["yes"])
    with pytest.raises(VocabularyError, match="cut texts short"):
        ConstraintLogitsProcessor(constraint, generation_config=config)


# ---- max_new_tokens


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("more", [{}, {"do_sample": True, "num_return_sequences": 4, "top_k": 0}, {"num_beams": 3}],
                         ids=["greedy", "sampled", "beams"])  # fmt: skip
def test_every_row_is_complete_in_max_new_tokens(family: str, more: dict[str, object]) -> None:
    loaded = build_model(family)
    start = 1 if family == "t5" else None
    torch.manual_seed(0)
    for schema in SCHEMAS:
        constraint = constrain.compile(loaded.vocabulary, schema=schema)
        inputs = inputs_for(loaded, "name", "order of people")
        for tokens in (40, 12):
            try:
                processor = ConstraintLogitsProcessor(constraint, model=loaded.model, max_new_tokens=tokens)
            except LimitError as error:
                assert int(str(error).split("takes ")[1].split()[0]) > tokens
                continue
            options = {"do_sample": False, "pad_token_id": loaded.tokenizer.bos_token_id, **more}
            out = loaded.model.generate(**inputs, logits_processor=[processor], max_new_tokens=tokens, **options)
            for row in out[:, start or inputs["input_ids"].shape[1] :].tolist():
                end = next(i for i, token in enumerate(row) if token in loaded.vocabulary.eos_ids)
                json.loads(loaded.vocabulary.text(row[:end]))


def test_the_budget_refuses_only_what_cannot_be_completed() -> None:
    """Against the definition: a token is in the mask if a completion after it fits."""
    loaded = build_model("llama")
    vocabulary = loaded.vocabulary
    constraint = constrain.compile(vocabulary, schema=SCHEMAS[2])
    for tokens in range(3, 9):
        processor = ConstraintLogitsProcessor(constraint, max_new_tokens=tokens)
        row = [0]
        for step in range(tokens - 1):
            words = processor.masks(torch.tensor([row]).numpy(), (1, vocabulary.size))[0]
            matcher = constraint.matcher()
            for token in row[1:]:
                matcher.advance(token)
            found = set(allowed_tokens(words).tolist())
            wanted = set()
            for token in allowed_tokens(matcher.mask()).tolist():
                if token in vocabulary.eos_ids:
                    wanted.add(token)
                    continue
                after = matcher.fork()
                after.advance(token)
                if len(vocabulary.fewest(after.shortest_completion() or b"")) + 1 <= tokens - step - 1:
                    wanted.add(token)
            assert found == wanted
            opening = [token for token in sorted(found) if vocabulary.tokens[token] == b"["]
            if not opening:
                break
            row.append(opening[0])


def test_no_warning_where_the_model_declares_its_end_tokens() -> None:
    tokenizer = tokenizer_factory.wrapped(tokenizer_factory.MADE["sentencepiece_unigram"][0](), "<eos>")
    model = build_configured_model("t5", len(tokenizer), 1)
    model.generation_config.eos_token_id = [tokenizer.eos_token_id]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = constrain.integrations.transformers_models.as_loaded(model, tokenizer)
    assert loaded.vocabulary.eos_ids == (tokenizer.eos_token_id,)
