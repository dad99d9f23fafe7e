"""`draft=` of `generate` and `Engine`: the same texts as without, for every kind of draft and family of models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import constrain
from constrain.base.errors import ConstrainError, UnsupportedError
from constrain.generation.draft_plan import have_same_tokens, plan_drafts
from constrain.integrations.transformers_models import as_loaded
from constrain.sampling.core.masked_sampling import Proposal
from constrain.speculation.combined_drafts import ForcedFirst
from constrain.speculation.draft_source import DraftSource, DraftTree
from constrain.speculation.model_drafts import ModelDrafts
from constrain.speculation.prompt_lookup import PromptLookup
from constrain.speculation.suffix_lookup import SuffixHistory
from constrain.speculation.text_drafts import TextDrafts
from constrain.speculation.token_recycling import SuccessorMatrix
from constrain.vocabulary.vocabulary import Vocabulary
from tests.model_factory import FAMILIES, TableModel, build_model

SCHEMA = {
    "type": "array",
    "minItems": 2,
    "maxItems": 3,
    "items": {
        "type": "object",
        "properties": {"name": {"enum": ["Anna", "Bob", "Zürich"]}, "age": {"type": "integer", "maximum": 99}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
}
PROMPT = 'name [{"name": "Anna", "age": 12}, {"name": "Bob", "age": 34}] age'
STYLE = constrain.Style(whitespace="compact")
OTHERS = {"llama": "gpt2", "gpt2": "llama", "mistral": "llama", "t5": "gpt2"}


def write(loaded: Any, draft: Any, **options: Any) -> constrain.Generation:
    return constrain.generate(loaded, PROMPT, schema=SCHEMA, style=STYLE, draft=draft, max_tokens=60, **options)


def drafts_for(family: str) -> dict[str, Any]:
    return {
        "prompt": "prompt",
        "suffix": "suffix",
        "recycling": "recycling",
        "constraint": "constraint",
        "none": "none",
        "an empty list": [],
        "the same model": build_model(family),
        "another model": build_model(family, 1),
        "another vocabulary": build_model("mistral" if family in ("llama", "gpt2") else "llama"),
        "a list": [PromptLookup(least=1), SuffixHistory(), SuccessorMatrix(build_model(family).vocabulary.size)],
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_the_likeliest_text_is_that_without_drafts(family: str) -> None:
    loaded = build_model(family)
    plain = write(loaded, None, temperature=0)
    for name, draft in drafts_for(family).items():
        drafted = write(loaded, draft, temperature=0)
        assert drafted.tokens == plain.tokens, name
        assert drafted.log_weight == pytest.approx(plain.log_weight, abs=1e-3)


@pytest.mark.parametrize("kind", ["prompt", "suffix", "recycling", "none", "another vocabulary", "a list"])
def test_deterministic_drafts_do_not_change_samples(kind: str) -> None:
    loaded = build_model("llama")
    plain = write(loaded, None, n=3, seed=5)
    drafted = write(loaded, drafts_for("llama")[kind], n=3, seed=5)
    assert [one.text for one in drafted] == [one.text for one in plain]
    assert [one.log_weight for one in drafted] == pytest.approx([one.log_weight for one in plain], abs=1e-3)


def test_sampled_drafts_are_repeatable_and_valid() -> None:
    loaded = build_model("llama")
    texts = [[one.text for one in write(loaded, build_model("llama", 1), n=8, seed=5)] for _ in range(2)]
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 1
    constraint = constrain.compile(loaded.vocabulary, schema=SCHEMA, style=STYLE)
    for text in texts[0]:
        matcher = constraint.matcher()
        matcher.advance_bytes(text.encode())
        assert matcher.is_complete


def test_lists_of_prompts_and_an_engine_take_drafts() -> None:
    loaded = build_model("llama")
    plain = constrain.generate(loaded, ["name", "age"], schema=SCHEMA, temperature=0, max_tokens=60)
    drafted = constrain.generate(loaded, ["name", "age"], schema=SCHEMA, temperature=0, max_tokens=60, draft="suffix")
    assert [one.tokens for one in drafted] == [one.tokens for one in plain]
    with constrain.Engine(loaded, draft="suffix") as engine:
        calls = [engine.generate("name", schema=SCHEMA, temperature=0, max_tokens=60).stats.model_calls for _ in "12"]
        again = engine.generate("name", schema=SCHEMA, temperature=0, max_tokens=60, draft=[])
    assert calls[1] < 0.5 * calls[0], "the second text is that of the history"
    assert again.tokens == plain[0].tokens
    assert again.stats.model_calls >= len(again.tokens)


def test_a_language_model_is_a_draft_of_a_language_model() -> None:
    vocabulary = Vocabulary.bytes()
    lm, draft = TableModel(vocabulary.size, 1), TableModel(vocabulary.size, 2)
    options: dict[str, Any] = {"regex": "[ab]{9}", "tokenizer": vocabulary, "seed": 1}
    plain = constrain.generate(lm, temperature=0, **options)
    assert constrain.generate(lm, temperature=0, draft=draft, **options).tokens == plain.tokens
    drafted = constrain.generate(lm, draft=lm, **options)
    assert drafted.stats.model_calls < 8
    assert drafted.log_weight < 0


def test_a_model_of_the_same_tokens_is_not_asked_for_text() -> None:
    first, second, other = build_model("llama"), build_model("llama", 1), build_model("mistral")
    assert have_same_tokens(first.vocabulary, second.vocabulary)
    padded = as_loaded(second.model, Vocabulary.from_tokenizer(second.tokenizer, size=first.vocabulary.size))
    assert have_same_tokens(first.vocabulary, padded.vocabulary)
    assert not have_same_tokens(first.vocabulary, other.vocabulary)
    for draft, kind in ((second, ModelDrafts), (other, TextDrafts)):
        plan = plan_drafts(draft, first, first.vocabulary)
        source = plan.start_request([5, 6], Proposal(), np.random.SeedSequence(0))()
        assert isinstance(source, ForcedFirst)
        assert isinstance(source, DraftSource)
        assert isinstance(source.source.source, kind)


def test_invalid_draft_raises() -> None:
    loaded = build_model("llama")
    for wrong in (5, True, {"prompt": 1}, object(), [5], [PromptLookup], PromptLookup, lambda: None):
        with pytest.raises(TypeError, match="draft"):
            write(loaded, wrong)
    with pytest.raises(ConstrainError, match="draft model could not be loaded") as caught:
        write(loaded, "/nowhere/at/all")
    assert "'suffix'" in str(caught.value)
    with pytest.raises(UnsupportedError, match="has no drafts"):
        write(loaded, "prompt", sampler="exact")


def test_a_source_that_ignores_constraint_and_limit_does_no_harm() -> None:
    class Wild:
        def propose(self, context, matcher, limit: int) -> DraftTree:
            return DraftTree(tuple(range(40)), tuple(range(-1, 39)))

        def observe(self, tokens) -> None:
            pass

    loaded = build_model("llama")
    assert write(loaded, [Wild()], seed=3).tokens == write(loaded, None, seed=3).tokens
