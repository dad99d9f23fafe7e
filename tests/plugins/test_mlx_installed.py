"""The plug-in in mlx-lm itself, with the embedded model; runs where the package is: `make plugins`."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest

mx = pytest.importorskip("mlx.core", reason="mlx is not installed: make plugins")
mlx_lm = pytest.importorskip("mlx_lm", reason="mlx-lm is not installed: make plugins")

import constrain  # noqa: E402
from constrain.demo import compose_prompt, model_folder  # noqa: E402
from constrain.plugins.mlx_processor import (  # noqa: E402
    MlxConstraintProcessor,
    generate_with_mlx,
    make_mlx_processors,
    read_mlx_vocabulary,
)

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def loaded() -> Any:
    return mlx_lm.load(str(model_folder()))


@pytest.fixture(scope="module")
def constraint(loaded: Any) -> constrain.Constraint:
    return constrain.compile(read_mlx_vocabulary(*loaded), schema=SCHEMA)


def test_the_vocabulary_is_that_of_the_tokenizer(loaded: Any) -> None:
    assert read_mlx_vocabulary(*loaded) == constrain.Vocabulary.from_pretrained(model_folder())


def test_the_package_shows_the_prompt_to_processors_and_is_a_step_ahead(loaded: Any) -> None:
    model, tokenizer = loaded
    prompt, sizes = tokenizer.encode("A person"), []

    def look(tokens: Any, logits: Any) -> Any:
        sizes.append(tokens.size)
        return logits

    steps = list(mlx_lm.stream_generate(model, tokenizer, prompt, max_tokens=3, logits_processors=[look]))
    assert len(steps) == 3 and sizes == [len(prompt) + count for count in range(4)]


@pytest.mark.parametrize("max_tokens", [14, 30, 120])
def test_sampled_texts_are_valid_and_complete(loaded: Any, constraint: constrain.Constraint, max_tokens: int) -> None:
    from mlx_lm.sample_utils import make_sampler

    prompt = compose_prompt("Describe a person.", SCHEMA)
    for seed in range(4):
        mx.random.seed(seed)
        text = generate_with_mlx(*loaded, prompt, constraint, max_tokens=max_tokens, sampler=make_sampler(temp=1.5))
        jsonschema.validate(json.loads(text), SCHEMA)


def test_a_draft_model_changes_nothing(loaded: Any, constraint: constrain.Constraint) -> None:
    prompt = compose_prompt("Describe a person.", SCHEMA)
    draft, _ = mlx_lm.load(str(model_folder()))
    for drafts in (1, 3):
        drafted = generate_with_mlx(
            *loaded, prompt, constraint, max_tokens=60, draft_model=draft, num_draft_tokens=drafts
        )
        assert drafted == generate_with_mlx(*loaded, prompt, constraint, max_tokens=60)


def test_sequences_of_a_batch_have_their_own_constraints(loaded: Any, constraint: constrain.Constraint) -> None:
    from mlx_lm.generate import BatchGenerator

    model, tokenizer = loaded
    letters = constrain.compile(constraint.vocabulary, regex="[a-c]{2,8}")
    constraints = [constraint, letters, None, letters, constraint]
    prompts = [tokenizer.encode(text) for text in ("A person", "Letters", "Hello", "More letters please", "Another")]
    generator = BatchGenerator(model, stop_tokens=[[end] for end in tokenizer.eos_token_ids], completion_batch_size=3)
    uids = generator.insert(
        prompts, max_tokens=[40] * 5, logits_processors=make_mlx_processors(constraints, max_tokens=40)
    )
    texts: dict[int, list[int]] = {uid: [] for uid in uids}
    finished: set[int] = set()
    while len(finished) < len(uids):
        for response in generator.next()[1]:
            texts[response.uid].append(response.token)
            if response.finish_reason:
                finished.add(response.uid)
    decoded = [constraint.vocabulary.decode(texts[uid]) for uid in uids]
    for text, one in zip(decoded, constraints):
        if one is constraint:
            jsonschema.validate(json.loads(text), SCHEMA)
        elif one is letters:
            assert re.fullmatch("[a-c]{2,8}", text)


def test_one_processor_for_a_whole_batch_is_refused(loaded: Any, constraint: constrain.Constraint) -> None:
    from mlx_lm.generate import BatchGenerator

    model, tokenizer = loaded
    generator = BatchGenerator(model, logits_processors=[MlxConstraintProcessor(constraint)])
    generator.insert([tokenizer.encode("One"), tokenizer.encode("Two and more")])
    with pytest.raises(constrain.ConstrainError, match="tokens of another text"):
        for _ in range(10):
            generator.next()
