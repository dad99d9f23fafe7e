"""`generate(search=)`: the three searches on the demo model's interface and on small models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import constrain
from constrain import BeamSearch, BestFirst, PhraseBanks, StochasticBeams, generate
from constrain.base.errors import ArgumentError, UnsupportedError
from tests.markov_factory import cases
from tests.model_factory import build_model

FLAT = {"type": "object", "properties": {"a": {"enum": [1, 2, True]}}, "required": ["a"], "additionalProperties": False}


def search(options: Any, n: Any = 4, **more: Any) -> Any:
    """Generate with a Markov model under a regex."""
    case = cases()["pieces"]
    vocabulary = case.constraint.vocabulary
    regex = "(ab|abba|b|bab|aabb)(ab)*"
    return generate(case.lm, tokenizer=vocabulary, regex=regex, search=options, n=n, max_tokens=6, **more)


def test_the_likeliest_texts_with_scores() -> None:
    law = sorted((math.log(p) for p in cases()["pieces"].law().values()), reverse=True)
    for options in (BeamSearch(width=500), BestFirst()):
        found = search(options)
        assert [one.logprob for one in found] == pytest.approx(law[:4])
        assert [one.stats.counts["score"] for one in found] == [one.logprob for one in found]
        assert found[0].stats.counts["optimal"] == isinstance(options, BestFirst)
        assert {one.stats.sampler for one in found} == {type(options).__name__}
        assert search(options, n=None) == found[0]


def test_stochastic_beams_repeat_with_the_seed_and_have_weights() -> None:
    runs = [search(StochasticBeams(), n=3, seed=seed) for seed in range(200)]
    assert runs[5] == search(StochasticBeams(), n=3, seed=5)
    assert all(len({one.tokens for one in run}) == 3 for run in runs)
    means = [np.mean([math.exp(one.log_weight) for one in run]) for run in runs]
    assert abs(np.mean(means) - cases()["pieces"].z) < 5 * np.std(means) / math.sqrt(len(means))


def test_a_check_holds_for_every_text() -> None:
    found = search(BeamSearch(width=9), n=9, check=lambda text: text.count("a") % 2 == 0)
    assert found and all(one.text.count("a") % 2 == 0 for one in found)
    best = search(BestFirst(), n=2, check=lambda text: text.startswith("b"))
    assert [one.text[0] for one in best] == ["b", "b"]


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_models_of_transformers_with_their_caches(family: str) -> None:
    """Every text is valid, and its log-probability is at least that of its likeliest spelling under the model."""
    torch = pytest.importorskip("torch")
    loaded = build_model(family)
    ids = [3, 7, 9]
    found = generate(
        loaded, ids, schema=FLAT, style=constrain.Style(whitespace="compact"), n=3, max_tokens=20,
        search=BeamSearch(width=6, distinct="value"),
    )  # fmt: skip
    assert [type(one.value["a"]) for one in found] and len({str(one.value) for one in found}) == 3
    tokens = [*found[0].tokens]
    with torch.inference_mode():
        logs = torch.log_softmax(loaded.model(torch.tensor([ids + tokens])).logits[0].double(), -1)
    total = sum(float(logs[len(ids) - 1 + i, token]) for i, token in enumerate(tokens))
    end = float(torch.logsumexp(logs[-1, list(loaded.vocabulary.eos_ids)], 0))
    assert total + end <= found[0].logprob + 1e-4, "the value has all its spellings"


def test_each_step_feeds_one_token_per_hypothesis() -> None:
    """The keys and values of the last step are gathered in the order of the new hypotheses."""
    pytest.importorskip("torch")
    loaded = build_model("llama")
    prompted, prompt = loaded.on([3, 7, 9, 11]), 4
    constraint = constrain.compile(loaded.vocabulary, regex="[a-z]{3,8}")
    found = constrain.beam_search(prompted, constraint, BeamSearch(width=5), n=5, max_tokens=10)
    assert prompted.calls == found.stats["model_calls"]
    assert prompted.tokens_fed == prompt - 1 + found.stats["rows"]


def test_lists_of_constraints_are_searched_one_by_one() -> None:
    case = cases()["pieces"]
    found = generate(
        case.lm, tokenizer=case.constraint.vocabulary, regex=["a+b", "b{2}"], search=BestFirst(), max_tokens=6
    )  # fmt: skip
    assert [one.text[-1] for one in found] == ["b", "b"] and found[1].text == "bb"


def test_phrases_through_generate() -> None:
    found = search(BeamSearch(width=8, phrases=PhraseBanks(["ba"])), n=8)
    assert found and all("ba" in one.text for one in found)


@pytest.mark.parametrize(
    "more",
    [{"sampler": "exact"}, {"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.5}, {"stream": print}],
    ids=str,
)
def test_arguments_of_sampling_are_refused_beside_a_search(more: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match=next(iter(more))):
        search(BeamSearch(), **more)


def test_other_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="search is 'beam'"):
        search("beam")
    with pytest.raises(ArgumentError, match="n is 0"):
        search(BeamSearch(), n=0)
