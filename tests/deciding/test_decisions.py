"""Decision rules: each against its definition on small models, and the claim of its paper in small."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from constrain import compile as compile_constraint, deciding, sampling
from constrain.base.errors import ArgumentError, LimitError, UnsupportedError
from constrain.deciding import AStarDecoding, MinimumBayesRisk, PhiDecoding, PlanningGuided, Superposed
from constrain.deciding.rollouts import continue_branches, open_space, start_branch
from constrain.sampling import NGram
from constrain.sampling.checkers import BothCheckers, ValidatorChecker
from constrain.search import BeamSearch, BestFirst, FoundAnswers, beam_search, best_first_search
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import LETTERS, Case, cases, g_test

RULES = {
    "mbr": MinimumBayesRisk(samples=12), "phi": PhiDecoding(block=2, foresight=2), "astar": AStarDecoding(block=2),
    "pgtd": PlanningGuided(reward=lambda text: float(len(text) % 3 == 0), rollouts=10),
}  # fmt: skip


class WrittenModel:
    """A model whose law over texts of bytes is given: a token is a byte, the last token ends."""

    def __init__(self, law: Mapping[str, float]) -> None:
        letters = sorted({letter for text in law for letter in text})
        self.vocabulary = Vocabulary.from_tokens([*(letter.encode() for letter in letters), None], [len(letters)])
        self.letters, self.law, self.rows = letters, law, 0
        self.texts = compile_constraint(self.vocabulary, choices=sorted(law))

    def mass(self, prefix: str) -> float:
        return math.fsum(p for text, p in self.law.items() if text.startswith(prefix))

    def next_logprobs(self, prefixes: list[list[int]]) -> np.ndarray:
        out = np.full((len(prefixes), len(self.letters) + 1), -np.inf)
        for row, tokens in zip(out, prefixes):
            self.rows += 1
            prefix = "".join(self.letters[token] for token in tokens)
            total = self.mass(prefix)
            with np.errstate(divide="ignore"):
                row[:-1] = np.log([self.mass(prefix + letter) / total for letter in self.letters])
                row[-1] = np.log(self.law.get(prefix, 0.0) / total)
        return out


def decide(model: WrittenModel, options: Any, n: int = 1, seed: int = 0, max_tokens: int = 40) -> FoundAnswers:
    rng = np.random.default_rng(seed)
    return deciding.decide_answers(model, model.texts, options, n=n, rng=rng, max_tokens=max_tokens)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["counting", "pieces", "brackets"])
def test_every_answer_is_valid_and_scored_by_the_model(rule: str, name: str) -> None:
    case = cases()[name]
    law = case.law()
    for seed in range(4):
        found = deciding.decide_answers(
            case.lm, case.constraint, RULES[rule], n=2, rng=np.random.default_rng(seed), max_tokens=case.max_tokens
        )
        assert 1 <= len(found) <= 2
        assert found.stats["model_calls"] > 0
        for answer in found:
            assert answer.tokens in law
            assert answer.logprob == pytest.approx(math.log(math.fsum(law[one.tokens] for one in answer.spellings)))


@pytest.mark.parametrize("rule", RULES)
def test_a_checker_holds_for_every_answer(rule: str) -> None:
    case = cases()["pieces"]
    checker = ValidatorChecker(case.constraint.vocabulary, lambda text: text.startswith(b"ab"))
    both = BothCheckers(case.constraint, checker)
    found = deciding.decide_answers(
        case.lm, both, RULES[rule], n=2, rng=np.random.default_rng(1), max_tokens=case.max_tokens
    )
    assert all(answer.text.startswith("ab") for answer in found)


def test_draws_of_branches_have_the_law_of_masking() -> None:
    """A continuation is a draw from the model under the mask, token by token."""
    case = cases()["counting"]
    space, rng = open_space(case.lm, case.constraint, case.max_tokens), np.random.default_rng(5)
    found = continue_branches(space, [start_branch(space)] * 3000, case.max_tokens, rng)
    counts = Counter(one.head.tokens for one in found if one.end is not None)
    masked = masked_law(case)
    assert g_test(counts, masked) > 1e-6
    assert g_test(counts, case.exact()) < 1e-6


def masked_law(case: Case) -> dict[tuple[int, ...], float]:
    """q of every text, where masks leave out what cannot end in time."""
    law, out = case.law(), dict[tuple[int, ...], float]()
    prefixes = {tokens[:k] for tokens in law for k in range(len(tokens) + 1)}
    ends = list(case.constraint.vocabulary.eos_ids)
    stack = [((), 1.0)]
    while stack:
        tokens, q = stack.pop()
        row = np.exp(case.lm.next_logprobs([list(tokens)])[0])
        steps = {token: row[token] for token in range(len(row)) if (*tokens, token) in prefixes}
        end = float(row[ends].sum()) if tokens in law else 0.0
        total = math.fsum(steps.values()) + end
        if end:
            out[tokens] = q * end / total
        stack += [((*tokens, token), q * p / total) for token, p in steps.items()]
    return out


# ---- minimum Bayes risk ----------------------------------------------------------------------------------------------


def test_minimum_risk_returns_the_answer_of_largest_expected_utility() -> None:
    """From many draws, the answer is the maximum of the exact expectation, whatever the sampler."""
    case = cases()["traps"]
    exact = Counter[str]()
    for tokens, p in case.exact().items():
        exact[case.constraint.vocabulary.decode(tokens)] += p
    expected = {
        text: math.fsum(p * deciding.compare_characters(text, other) for other, p in exact.items()) for text in exact
    }
    best = max(expected, key=expected.__getitem__)
    for sampler in ("exact", "masked"):
        options = MinimumBayesRisk(samples=3000, utility="characters", sampler=sampler)
        found = deciding.decide_by_risk(
            case.lm, case.constraint, options, rng=np.random.default_rng(0), max_tokens=case.max_tokens
        )
        assert expected[found[0].text] == pytest.approx(expected[best], abs=0.01)
        assert found[0].score == pytest.approx(expected[best], abs=0.03)


def test_minimum_risk_prefers_what_the_others_support_to_the_mode() -> None:
    """Eikema & Aziz 2020: the likeliest answer may be unlike all others; beams find it, minimum risk does not."""
    law = {"no": 0.22, **{f"the answer is {k}" + "." * (k % 3): 0.078 for k in range(10)}}
    model = WrittenModel(law)
    assert beam_search(model, model.texts, BeamSearch(width=20), max_tokens=40)[0].text == "no"
    options = MinimumBayesRisk(samples=200, utility="characters", sampler="exact")
    assert all(decide(model, options, seed=seed)[0].text.startswith("the answer is") for seed in range(5))


def test_minimum_risk_by_fields_is_a_vote() -> None:
    """Equal values are one answer, whatever their spelling; the value with the most mass wins (self-consistency)."""
    law = {'{"a":1}': 0.24, '{"a":2}': 0.2, '{"a": 2}': 0.2, '{"a":2.0}': 0.2, '{"a":3}': 0.16}
    model = WrittenModel(law)
    assert best_first_search(model, model.texts, BestFirst(), max_tokens=40)[0].text == '{"a":1}'
    found = decide(model, MinimumBayesRisk(samples=300, sampler="exact"))
    assert found[0].value == {"a": 2}
    assert found[0].score == pytest.approx(0.6, abs=0.1)


def test_utilities() -> None:
    fields, characters = deciding.compare_fields, deciding.compare_characters
    assert fields('{"a":1,"b":[1,2]}', '{"b":[2,1],"a":1.0}') == 1
    assert fields('{"a":1}', '{"a":1,"b":2}') == pytest.approx(2 / 3)
    assert fields('{"a":true}', '{"a":1}') == fields('{"a":1}', '{"b":1}') == fields("x", "y") == 0
    assert fields("{}", "{}") == fields("[]", "[]") == fields("x", "x") == 1
    assert fields("{}", "[]") == 0
    assert characters("", "") == characters("abc", "abc") == 1
    assert characters("abc", "xyz") == characters("", "a") == 0
    assert 0 < characters("abcd", "abce") < 1


# ---- φ-decoding ------------------------------------------------------------------------------------------------------


def test_foresight_avoids_a_likely_start_that_leads_nowhere() -> None:
    """Xu et al. 2025: a greedy choice is likely at first and unlikely later; foresight sees it."""
    law = {"a" + letter * 3: 0.06 for letter in "bcdefghij"} | {"kkkk": 0.46}
    model = WrittenModel(law)
    greedy = beam_search(model, model.texts, BeamSearch(width=1), max_tokens=10)[0]
    assert greedy.text.startswith("a")
    options = PhiDecoding(width=1, rollouts=8, block=1, foresight=3, temperature=0.0)
    assert all(decide(model, options, seed=seed)[0].text == "kkkk" for seed in range(5))
    without = PhiDecoding(width=1, rollouts=8, block=1, foresight=0, temperature=0.0)
    assert any(decide(model, without, seed=seed)[0].text != "kkkk" for seed in range(5))


# ---- A*-decoding -----------------------------------------------------------------------------------------------------


def test_a_perfect_score_needs_one_path() -> None:
    """With the exact future mass of right answers as score, only texts on the way to the best answer are continued."""
    law = {f"{a}{b}{c}": 1 / 64 for a in "abcd" for b in "abcd" for c in "abcd"}
    model, right = WrittenModel(law), "dab"

    def score(text: str) -> float:
        return 0.0 if right.startswith(text) else -50.0

    guided = decide(model, AStarDecoding(score=score, branches=12, block=1), seed=2)
    assert guided[0].text == right
    assert guided.stats["expansions"] <= 5
    rows, model.rows = model.rows, 0
    best_first_search(model, model.texts, BestFirst(max_calls=200, beam=0, together=1), n=64, max_tokens=10)
    assert rows < model.rows


def test_answers_come_in_the_order_of_their_sums() -> None:
    law = {"ab": 0.4, "ac": 0.3, "b": 0.2, "c": 0.1}
    model = WrittenModel(law)
    plain = decide(model, AStarDecoding(branches=20, block=1), n=4)
    assert [one.text for one in plain] == ["ab", "ac", "b", "c"]
    assert [one.score for one in plain] == pytest.approx([math.log(p) for p in law.values()])
    rewarded = decide(model, AStarDecoding(score=lambda text: 3.0 * text.startswith("c"), branches=20, block=1), n=2)
    assert [one.text for one in rewarded] == ["c", "ab"]
    assert rewarded[0].score == pytest.approx(math.log(0.1) + 3)
    with pytest.raises(ArgumentError, match="below infinity"):
        decide(model, AStarDecoding(score=lambda text: math.nan))
    last = decide(model, AStarDecoding(expansions=1, branches=1, block=1))
    assert last[0].text == "ab", "completed greedily when the expansions are used up"


# ---- planning --------------------------------------------------------------------------------------------------------


def test_planning_finds_rewards_that_samples_miss() -> None:
    """Zhang et al. 2023: with as many complete texts, tree search finds better ones than the best of samples."""
    letters, rng = "abcd", np.random.default_rng(0)
    texts = [f"{a}{b}{c}{d}" for a in letters for b in letters for c in letters for d in letters]
    law = dict(zip(texts, rng.dirichlet(np.full(len(texts), 5.0)).tolist()))
    model, right = WrittenModel(law), "dcba"

    def reward(text: str) -> float:
        return sum(a == b for a, b in zip(text, right)) / 4

    planned = decide(model, PlanningGuided(reward, rollouts=40, branches=4, exploration=1.0), n=3)
    assert planned[0].text == right and planned[0].score == 1
    assert [one.score for one in planned] == sorted((one.score for one in planned), reverse=True)
    assert planned.stats["rewards"] <= 40
    sampled = []
    for seed in range(30):
        drawn = sampling.draw(model, model.texts, n=40, rng=np.random.default_rng(seed), max_tokens=40)
        sampled.append(max(reward(one.text) for one in drawn))
    assert np.mean(sampled) < 0.95


def test_planning_ends_when_everything_was_tried() -> None:
    model = WrittenModel({"a": 0.7, "b": 0.2, "ba": 0.1})
    found = decide(model, PlanningGuided(lambda text: 1.0 * (text == "ba"), rollouts=1000, branches=5), n=5)
    assert [one.text for one in found] == ["ba", "a", "b"]
    assert found.stats["rollouts"] < 1000
    with pytest.raises(ArgumentError, match="a finite number"):
        decide(model, PlanningGuided(lambda text: math.nan))


# ---- superposed decoding ---------------------------------------------------------------------------------------------


class MixingModel:
    """A model that reads mixtures: its logits are linear in what it reads, and see the last position only."""

    def __init__(self, logits: np.ndarray) -> None:
        self.logits, self.calls, self.prompt_ids = logits, 0, [0, 1, 0, 1, 2]

    def row(self, mixture: Mapping[int, float]) -> np.ndarray:
        mixed = sum(share * self.logits[token] for token, share in mixture.items())
        return mixed - np.logaddexp.reduce(mixed)

    def next_logprobs(self, prefixes: list[list[int]]) -> np.ndarray:
        return np.array([self.row({(prefix or self.prompt_ids)[-1]: 1.0}) for prefix in prefixes])

    def next_superposed(self, mixtures: Sequence[Mapping[int, float]]) -> np.ndarray:
        self.calls += 1
        return self.row(mixtures[-1] if mixtures else {self.prompt_ids[-1]: 1.0})


LOGITS = np.random.default_rng(4).normal(0, 1.5, (4, 4))


def test_one_draft_is_greedy_search() -> None:
    model = MixingModel(LOGITS)
    constraint = compile_constraint(LETTERS, regex="[abc]{5}")
    found = deciding.decide_by_superposition(model, constraint, Superposed(drafts=1, bigrams=0.0), max_tokens=8)
    greedy = beam_search(model, constraint, BeamSearch(width=1), max_tokens=8)
    assert found[0].text == greedy[0].text
    assert found[0].logprob == pytest.approx(greedy[0].logprob)


@pytest.mark.parametrize("bigrams", [0.0, 0.5])
def test_drafts_share_one_row_per_token(bigrams: float) -> None:
    """Shen et al. 2024: k different valid drafts for the passes of one, each a plain rule says which."""
    model = MixingModel(LOGITS)
    constraint = compile_constraint(LETTERS, regex="[abc]{5}")
    options = Superposed(drafts=3, bigrams=bigrams)
    found = deciding.decide_by_superposition(model, constraint, options, n=3, max_tokens=8)
    assert model.calls == found.stats["superposed_calls"] == 6
    assert len({one.text for one in found}) == 3
    assert {one.tokens for one in found} == set(superpose_plainly(model, options, 5))
    for one in found:
        rows = model.next_logprobs([list(one.tokens[:k]) for k in range(6)])
        steps = [rows[k][token] for k, token in enumerate([*one.tokens, 3])]
        assert one.logprob == pytest.approx(sum(steps))


def superpose_plainly(model: MixingModel, options: Superposed, length: int) -> list[tuple[int, ...]]:
    """The rule of the paper in its simplest form, for texts of three letters and a fixed length."""
    pairs = Counter(zip(model.prompt_ids, model.prompt_ids[1:]))
    drafts, mixture = [((), 0.0)], {model.prompt_ids[-1]: 1.0}
    for _ in range(length):
        row, following = model.row(mixture)[:3], []
        for tokens, total in drafts:
            seen = [1 + pairs[tokens[-1], token] if tokens else 1 for token in range(3)]
            rated = (1 - options.bigrams) * row + options.bigrams * np.log(seen)
            rated -= np.logaddexp.reduce(rated)
            following += [((*tokens, token), total + rated[token]) for token in range(3)]
        drafts = sorted(following, key=lambda one: -one[1])[: options.drafts]
        shares = np.exp([total for _, total in drafts])
        mixture = dict.fromkeys(range(3), 0.0)
        for (tokens, _), share in zip(drafts, shares / shares.sum()):
            mixture[tokens[-1]] += share
    return [tokens for tokens, _ in drafts]


def test_superposition_needs_a_model_that_mixes() -> None:
    case = cases()["counting"]
    with pytest.raises(UnsupportedError, match="mixtures of embeddings"):
        deciding.decide_by_superposition(case.lm, case.constraint, max_tokens=8)


# ---- options ---------------------------------------------------------------------------------------------------------


def test_wrong_options_are_named() -> None:
    for make, words in (
        (lambda: MinimumBayesRisk(samples=0), "samples"), (lambda: MinimumBayesRisk(utility="bleu"), "utility"),
        (lambda: MinimumBayesRisk(sampler="best"), "sampler"), (lambda: PhiDecoding(width=0), "width"),
        (lambda: PhiDecoding(foresight=-1), "foresight"), (lambda: PhiDecoding(temperature=-1.0), "temperature"),
        (lambda: AStarDecoding(score=3), "score"), (lambda: AStarDecoding(expansions=0), "expansions"),
        (lambda: PlanningGuided(None), "reward"), (lambda: PlanningGuided(len, base=0.5), "base"),
        (lambda: Superposed(bigrams=2.0), "bigrams"), (lambda: Superposed(drafts=True), "drafts"),
        (lambda: deciding.find_decision("pgtd"), "reward"), (lambda: deciding.find_decision("vote"), "vote"),
        (lambda: deciding.find_decision(3), "decide is 3"),
    ):  # fmt: skip
        with pytest.raises((ArgumentError, TypeError, UnsupportedError), match=words):
            make()


@pytest.mark.parametrize("result", [None, "1", math.nan, ZeroDivisionError()])
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("utility", lambda given: MinimumBayesRisk(utility=lambda text, other: given())),
        ("score", lambda given: AStarDecoding(score=lambda text: given())),
        ("reward", lambda given: PlanningGuided(reward=lambda text: given())),
    ],
)
def test_functions_that_return_no_number_are_named_with_their_text(name: str, rule: Any, result: Any) -> None:
    model = WrittenModel({"a": 0.5, "b": 0.5})

    def given() -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    words = "failed on '.'.*: ZeroDivisionError" if isinstance(result, Exception) else f"of '.'.* is {result!r}"
    with pytest.raises(ArgumentError, match=f"^the {name} {words}"):
        deciding.decide_answers(model, model.texts, rule(given), n=1, rng=np.random.default_rng(1), max_tokens=4)


def test_names_stand_for_rules_with_their_defaults() -> None:
    assert deciding.find_decision(None) is None
    for name, kind in deciding.DECISIONS.items():
        if name != "pgtd":
            assert deciding.find_decision(name) == kind()


@pytest.mark.parametrize("rule", RULES)
def test_rules_without_a_text_in_time_raise_limit_error(rule: str) -> None:
    model = NGram.of_texts([[0, 0, 0]], end=3, size=4)
    constraint = compile_constraint(LETTERS, regex="a{9}")
    with pytest.raises(LimitError):
        deciding.decide_answers(model, constraint, RULES[rule], n=1, rng=np.random.default_rng(0), max_tokens=5)
