"""`generate(decide=, target=)`: decision rules and critics with models of transformers and models of our own."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import constrain
from constrain import AStarDecoding, BeamSearch, BestFirst, MinimumBayesRisk, PhiDecoding, PlanningGuided, generate
from constrain.base.errors import ArgumentError, LimitError, UnsupportedError
from constrain.sampling import Guide, SamplingTarget
from tests.markov_factory import cases
from tests.model_factory import build_model

FLAT = {"type": "object", "properties": {"a": {"enum": [1, 2, True]}}, "required": ["a"], "additionalProperties": False}
REGEX = "(ab|abba|b|bab|aabb)(ab)*"


def run(**more: Any) -> Any:
    """Generate with a Markov model under a regex."""
    case = cases()["pieces"]
    return generate(case.lm, tokenizer=case.constraint.vocabulary, regex=REGEX, max_tokens=6, **more)


RULES = ["mbr", "phi", "astar", PlanningGuided(lambda text: text.count("a") / 4, rollouts=12)]


@pytest.mark.parametrize("rule", RULES, ids=["mbr", "phi", "astar", "planned"])
def test_rules_by_name_and_by_options(rule: Any) -> None:
    law = cases()["pieces"].law()
    found = run(decide=rule, n=2, seed=4)
    assert 1 <= len(found) <= 2
    assert found == run(decide=rule, n=2, seed=4), "the same seed, the same answers"
    for one in found:
        assert one.tokens in law
        assert one.log_weight == 0
        assert "score" in one.stats.counts
    assert run(decide=rule, seed=4) == found[0]


def test_names_are_rules_with_defaults() -> None:
    for name, options in (("mbr", MinimumBayesRisk()), ("phi", PhiDecoding()), ("astar", AStarDecoding())):
        assert run(decide=name, seed=1) == run(decide=options, seed=1)
        assert run(decide=name, seed=1).stats.sampler == type(options).__name__


def test_a_check_and_validators_hold() -> None:
    for rule in RULES:
        one = run(decide=rule, check=lambda text: text.startswith("b"), seed=2)
        assert one.text.startswith("b")


LONG = SamplingTarget(critic=len)


def test_wrong_combinations_are_refused() -> None:
    for more, words in (
        ({"decide": "mbr", "search": BestFirst()}, "both"), ({"decide": "mbr", "temperature": 0.5}, "temperature="),
        ({"decide": "mbr", "sampler": "exact"}, "sampler="), ({"decide": "best"}, "no decision rule"),
        ({"decide": "pgtd"}, "reward"), ({"decide": 3}, "decide is 3"), ({"decide": "phi", "target": LONG}, "decide="),
        ({"search": BestFirst(), "target": LONG}, "search="), ({"target": len}, "target"),
        ({"decide": "superposed"}, "mixtures"),
    ):  # fmt: skip
        with pytest.raises((UnsupportedError, ArgumentError, TypeError), match=words):
            run(**more)


@pytest.mark.slow
def test_engines_decide_too() -> None:
    pytest.importorskip("torch")
    with constrain.Engine(build_model("llama")) as engine:
        found = engine.generate([3, 7, 9], schema=FLAT, decide="mbr", n=2, max_tokens=20, seed=1)
        assert all(one.value["a"] in (1, 2, True) for one in found)
        with pytest.raises(UnsupportedError, match="mixtures"):
            engine.generate([3, 7, 9], schema=FLAT, decide="superposed", max_tokens=20)


@pytest.mark.parametrize("most", [1, 2, 4])
def test_too_few_tokens_for_any_superposed_draft_are_a_limit(most: int) -> None:
    pytest.importorskip("torch")
    with pytest.raises(LimitError, match=f"max_tokens is {most}"):
        generate(build_model("llama"), [3, 7, 9], schema=FLAT, decide="superposed", max_tokens=most)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_superposed_drafts_of_models_of_transformers(family: str) -> None:
    """Valid, different, with the model's own log-probabilities, and one pass per token."""
    torch = pytest.importorskip("torch")
    loaded, ids = build_model(family), [3, 7, 9]
    found = generate(loaded, ids, schema=FLAT, decide=constrain.Superposed(drafts=3), n=3, max_tokens=20)
    assert len({one.tokens for one in found}) == len(found) > 1
    longest = max(len(one.tokens) for one in found)
    for one in found:
        assert one.value["a"] in (1, 2, True)
        assert longest + 1 <= one.stats.counts["superposed_calls"] <= 20
        with torch.inference_mode():
            logits = loaded.model(torch.tensor([[*ids, *one.tokens]])).logits[0].double()
        rows = torch.log_softmax(logits, -1)
        steps = [float(rows[len(ids) - 1 + k, token]) for k, token in enumerate(one.tokens)]
        ends = list(loaded.vocabulary.eos_ids)
        total = sum(steps) + float(torch.logsumexp(rows[-1][ends], 0))
        assert one.logprob == pytest.approx(total, abs=2e-3)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_mixtures_of_one_token_are_that_token(family: str) -> None:
    pytest.importorskip("torch")
    from constrain.integrations.superposed_model import SuperposedModel

    loaded, tokens = build_model(family), [5, 8, 2]
    model = SuperposedModel(loaded.on([3, 7, 9]))
    for k in (0, 1, 3, 2):
        row = model.next_superposed([{token: 1.0} for token in tokens[:k]])
        assert row == pytest.approx(model.next_logprobs([tokens[:k]])[0], abs=1e-4)
    halves = model.next_superposed([{5: 0.5, 6: 0.5}])
    assert not np.allclose(halves, model.next_logprobs([[5]])[0], atol=1e-3)
    model.close()


def prefer_b(text: str) -> float:
    return -2.0 * text.count("a")


@pytest.mark.parametrize("sampler", ["exact", "smc", "pimh", "auto"])
def test_a_critic_tilts_what_is_drawn(sampler: str) -> None:
    case = cases()["pieces"]
    decode = case.constraint.vocabulary.decode
    law = Counter[str]()
    for tokens, p in case.law().items():
        law[decode(tokens)] += p * math.exp(prefer_b(decode(tokens)))
    z = math.fsum(law.values())
    found = run(sampler=sampler, target=SamplingTarget(critic=Guide(prefer_b, prefer_b)), n=200, seed=3)
    shares = Counter(one.text for one in found)
    assert sum(abs(shares[text] / 200 - p / z) for text, p in law.items()) / 2 < 0.2
    assert np.mean([one.text.count("a") for one in found]) < 1.2
    weights = found[0].stats.weights
    assert weights["log_z"] == pytest.approx(math.log(z), abs=0.5)


def test_a_model_judges_its_own_text() -> None:
    """Self-evaluation: the log of the share that the model gives the first answer after the question."""
    pytest.importorskip("torch")
    from constrain.generation.self_evaluation import SelfEvaluation

    loaded = build_model("llama")
    judge = SelfEvaluation(loaded, "{text}", answers=("a", "b"), weight=2.0)
    shares = constrain.choose(loaded, "xyz", ["a", "b"], ends="prefix").probabilities
    assert judge("xyz") == pytest.approx(2 * math.log(shares["a"]))
    assert SelfEvaluation(loaded, lambda text: text.upper(), answers=("a", "b"))("xyz") != judge("xyz")
    guide = Guide(judge, judge)
    found = generate(loaded, [3, 7, 9], regex="[ab]{2}", search=BeamSearch(width=3, critic=guide), max_tokens=8)
    assert found.stats.counts["score"] == pytest.approx(found.logprob + judge(found.text))


def test_a_critic_ranks_beams() -> None:
    plain, ranked = run(search=BeamSearch(width=50)), run(search=BeamSearch(width=50, critic=prefer_b))
    assert ranked.text.count("a") <= plain.text.count("a")
    assert ranked.stats.counts["score"] == pytest.approx(ranked.logprob + prefer_b(ranked.text))
