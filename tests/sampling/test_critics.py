"""Critics: every sampler is properly weighted for p(x) [x in L] exp(critic(x)), by playing all outcomes."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from constrain import sampling
from constrain.base.errors import ArgumentError, ConstrainError
from constrain.deciding import RolloutValue
from constrain.sampling import Guide
from constrain.sampling.critics import PrefixTwist, grade_texts
from constrain.sampling.guided_particles import Guided, guide_particles
from constrain.sampling.particles import Prefixes
from constrain.sampling.populations import Settings
from constrain.sampling.smc import grow_population
from constrain.sampling.success_trie import SuccessTrie
from constrain.sampling.success_walks import DistributionSource, Walk
from constrain.search import BeamSearch, beam_search
from tests.markov_factory import LETTERS, Case, Script, Tokens, cases, g_test, outcomes, regular

SMALL = regular("small", LETTERS, "ab|ba?c|c", 4, seed=3)


def energy(text: str) -> float:
    """A soft constraint as an energy: about as many a as b (COLD: the critic is minus the energy)."""
    return 1.5 * abs(text.count("a") - text.count("b")) + 0.2 * len(text)


def soft(text: str) -> float:
    return -energy(text)


def hint(text: str) -> float:
    """What a text so far looks like; wrong about most, which must not matter."""
    return 0.8 * math.sin(len(text) + text.count("b"))


def tilted(case: Case, critic: Any = soft) -> dict[Tokens, float]:
    """p(x) [x in L] exp(critic(x)) of every text."""
    decode = case.constraint.vocabulary.decode
    return {x: p * math.exp(critic(decode(x))) for x, p in case.law().items() if p > 0}


def close(found: dict[Any, float], wanted: dict[Any, float]) -> bool:
    return all(abs(found.get(x, 0.0) - wanted.get(x, 0.0)) < 1e-12 for x in {*found, *wanted})


@pytest.mark.parametrize("tokens", [1, 2, 8])
@pytest.mark.parametrize("particles", [1, 2])
def test_guided_populations_are_unbiased(particles: int, tokens: int) -> None:
    """Proposal and twist by a hint that is wrong: E[Z-hat] and E[w 1{x}] are exact."""
    guide = Guide(soft, hint, tokens=tokens)
    options = guide_particles(guide, LETTERS, {"threshold": 0.9})
    assert isinstance(options["move"], Guided) and isinstance(options["twist"], PrefixTwist)
    settings, prefixes = Settings.of(SMALL.max_tokens, **options), Prefixes(SMALL.lm, SMALL.constraint)
    z, mass = 0.0, defaultdict[Tokens, float](float)
    for probability, population in outcomes(lambda rng: grow_population(prefixes, particles, settings, rng)):
        z += probability * math.exp(population.log_z)
        for node, log_weight in zip(population.nodes, population.log_weights):
            mass[tuple(node.tokens)] += probability * math.exp(log_weight) / particles
    wanted = tilted(SMALL)
    assert z == pytest.approx(math.fsum(wanted.values()), abs=1e-12)
    assert close({x: m for x, m in mass.items() if m}, wanted)


@pytest.mark.parametrize("known", [0, 1, 5])
def test_an_attempt_of_exact_takes_each_text_with_its_share(known: int) -> None:
    """P(takes x and is accepted) = p(x) [x in L] exp(critic(x) - bound) / m(root), whatever the trie has learnt."""
    guide = Guide(soft, bound=0.5)
    grade, seen, mass = grade_texts(guide, None), defaultdict[Tokens | None, float](float), 1.0

    def attempt(rng: Any) -> Tokens | None:
        nonlocal mass
        trie = SuccessTrie(SMALL.max_tokens)
        source = DistributionSource(SMALL.lm, SMALL.constraint, trie, SMALL.max_tokens, grade)
        for seed in range(known):
            walk_once(source, np.random.default_rng(seed))
        (law,) = source.distributions_at([(trie.root, SMALL.constraint.matcher())])
        mass = float(trie.weights(trie.root, law).sum())
        return walk_once(source, rng)

    for probability, text in outcomes(attempt):
        seen[text] += probability
    rejected = seen.pop(None, 0.0)
    wanted = {x: g * math.exp(-guide.bound) / mass for x, g in tilted(SMALL).items()}
    assert close(seen, wanted)
    assert rejected == pytest.approx(1 - math.fsum(wanted.values()), abs=1e-12)


def walk_once(source: DistributionSource, rng: Any) -> Tokens | None:
    walk, success = Walk(source), None
    while success is None:
        (law,) = source.distributions_at([(walk.node, walk.matcher)])
        ratio = walk.visit(law)
        alive = walk.node.parent is None or rng.random() < ratio
        success = walk.choose(law, rng) if alive else False
    return tuple(walk.matcher.tokens) if success else None


@pytest.mark.parametrize("sampler", ["masked", "asap", "markov", "awrs"])
def test_other_samplers_weigh_their_draws(sampler: str) -> None:
    """E[w f] over every outcome of a single draw."""
    lm = SMALL.lm.as_ngram() if sampler == "markov" else SMALL.lm
    options = {"masks": "first"} if sampler == "awrs" else {}
    mass = defaultdict[Tokens, float](float)
    if sampler == "awrs":  # its clocks cannot be played: two laws that must agree with the weights, at random
        draws = sampling.draw(
            lm, SMALL.constraint, sampler=sampler, n=4000, rng=np.random.default_rng(0), max_tokens=SMALL.max_tokens,
            target=sampling.SamplingTarget(critic=soft), **options,
        )  # fmt: skip
        for x, g in tilted(SMALL).items():
            each = np.array([math.exp(one.log_weight) * (one.tokens == x) for one in draws] + [0.0] * draws.unfinished)
            assert abs(each.mean() - g) < 5 * each.std() / math.sqrt(len(each)) + 1e-12
        return

    def run(rng: Script) -> sampling.Draws:
        return sampling.draw(
            lm, SMALL.constraint, sampler=sampler, n=1, rng=rng, max_tokens=SMALL.max_tokens,
            target=sampling.SamplingTarget(critic=soft),
        )  # fmt: skip

    for probability, draws in outcomes(run):
        for one in draws:
            mass[one.tokens] += probability * math.exp(one.log_weight)
    assert close(mass, tilted(SMALL))


@pytest.mark.parametrize("sampler", ["exact", "pimh"])
def test_draws_have_the_tilted_law(sampler: str) -> None:
    case = THREE
    wanted = tilted(case)
    z = math.fsum(wanted.values())
    law = {x: g / z for x, g in wanted.items()}
    options: dict[str, Any] = {"particles": 16, "thin": 3} if sampler == "pimh" else {}
    draws = sampling.draw(
        case.lm, case.constraint, sampler=sampler, n=1500, rng=np.random.default_rng(3), max_tokens=case.max_tokens,
        target=sampling.SamplingTarget(critic=Guide(soft, hint)), **options,
    )  # fmt: skip
    counts = Counter(one.tokens for one in draws)
    assert len({one.log_weight for one in draws}) == 1
    assert draws.log_z == pytest.approx(math.log(z), abs=0.2)
    assert sum(abs(counts[x] / 1500 - p) for x, p in law.items()) / 2 < 0.1
    if sampler == "exact":
        assert g_test(counts, law) > 1e-6
        assert g_test(counts, case.exact()) < 1e-6


THREE = regular("three", LETTERS, "[abc]{3}", 5, seed=1)


def test_without_replacement_and_exact_agree_about_the_tilted_mass() -> None:
    """All texts drawn: their weights are gamma itself."""
    draws = sampling.draw(
        SMALL.lm, SMALL.constraint, sampler="without_replacement", n=50, rng=np.random.default_rng(0),
        max_tokens=SMALL.max_tokens, target=sampling.SamplingTarget(critic=soft),
    )  # fmt: skip
    z = math.fsum(tilted(SMALL).values())
    assert draws.log_z == pytest.approx(math.log(z), abs=1e-9)


@pytest.mark.parametrize("twist", [None, "learned", "fresh"])
def test_a_guide_takes_the_place_of_learned_values(twist: str | None) -> None:
    judged: list[str] = []

    def prefix(text: str) -> float:
        judged.append(text)
        return 0.0

    target = sampling.SamplingTarget(critic=Guide(soft, prefix))
    sampling.draw(
        SMALL.lm, SMALL.constraint, sampler="smc", n=4, rng=np.random.default_rng(0), max_tokens=SMALL.max_tokens,
        target=target, twist=twist,
    )  # fmt: skip
    assert judged


def test_a_guide_that_is_right_saves_particles() -> None:
    """Transfer Q*: values by roll-outs make Z-hat of one population steadier than a critic alone, without learning."""
    case = regular("letters", LETTERS, "[abc]{6}", 8, seed=1)

    def reward(text: str) -> float:
        return 3.0 * text.count("b") - 18

    value = RolloutValue(case.lm, case.constraint, reward, max_tokens=case.max_tokens, rollouts=32)
    spread, z = {}, math.fsum(tilted(case, reward).values())
    for name, critic in (("alone", Guide(reward)), ("guided", Guide(reward, value))):
        runs = [
            sampling.draw(
                case.lm, case.constraint, sampler="smc", n=8, rng=np.random.default_rng(seed),
                max_tokens=case.max_tokens, target=sampling.SamplingTarget(critic=critic), twist=None,
            ).log_z
            for seed in range(60)
        ]  # fmt: skip
        ratios = np.exp(runs) / z
        assert abs(ratios.mean() - 1) < 5 * ratios.std() / math.sqrt(60)
        spread[name] = ratios.std()
    assert 3 * spread["guided"] < spread["alone"]


def test_a_roll_out_value_is_the_mean_over_completions() -> None:
    """Of a text with one completion it is the score; of a text that the constraint refuses the floor."""
    value = RolloutValue(SMALL.lm, SMALL.constraint, soft, max_tokens=SMALL.max_tokens, rollouts=3, floor=-9.0)
    assert value("ab") == pytest.approx(soft("ab"))
    assert value("ba") == pytest.approx(soft("bac"))
    assert value("aa") == value("x") == -9
    assert value("") == value("") < 1e-9 + max(map(soft, ("ab", "bc", "bac", "c")))


# ---- beams -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["counting", "pieces", "sums"])
def test_a_wide_beam_ranks_by_probability_and_critic(name: str) -> None:
    case = cases()[name]
    decode = case.constraint.vocabulary.decode
    best = sorted((math.log(p) + soft(decode(x)) for x, p in case.law().items() if p > 0), reverse=True)[:5]
    for critic in (soft, Guide(soft, hint)):
        options = BeamSearch(width=2000, critic=critic)
        found = beam_search(case.lm, case.constraint, options, n=5, max_tokens=case.max_tokens)
        assert [one.score for one in found] == pytest.approx(best)
        for one in found:
            assert one.score == pytest.approx(one.logprob + soft(one.text))


def test_a_judgement_of_prefixes_guides_a_narrow_beam() -> None:
    """ARGS with a width of 1, self-evaluation with more: the beam keeps what the critic likes, unlikely as it is."""
    case = regular("letters", LETTERS, "[abc]{6}", 8, seed=1)
    guide = Guide(lambda text: 4.0 * text.count("c") - 24, lambda text: 4.0 * text.count("c") - 24)
    for width in (1, 3):
        plain = beam_search(case.lm, case.constraint, BeamSearch(width=width), max_tokens=8)[0]
        guided = beam_search(case.lm, case.constraint, BeamSearch(width=width, critic=guide), max_tokens=8)[0]
        assert guided.text.count("c") > plain.text.count("c")


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_wrong_critics_are_named() -> None:
    def run(critic: Any, sampler: str = "smc") -> None:
        sampling.draw(
            SMALL.lm, SMALL.constraint, sampler=sampler, n=3, rng=np.random.default_rng(0), max_tokens=4,
            target=sampling.SamplingTarget(critic=critic),
        )  # fmt: skip

    for critic, words in (
        (3, "critic is 3"), (lambda text: math.nan, "nan"), (lambda text: math.inf, "below infinity"),
        (Guide(soft, lambda text: -math.inf), "finite"), (lambda text: None, "gives .* None: give numbers"),
        (lambda text: "1.5", "'1.5': give numbers"), (Guide(soft, lambda text: None), "so far .* None: give finite"),
    ):  # fmt: skip
        with pytest.raises((ArgumentError, TypeError), match=words):
            run(critic)
    with pytest.raises(ArgumentError, match=r"^the critic gives .* more than its bound 0"):
        run(lambda text: 1.0, "exact")
    with pytest.raises(ArgumentError, match=r"^the critic gives .* None: give numbers"):
        run(lambda text: None, "exact")
    numbers = Guide(soft, bound=np.float32(0.5), tokens=np.int64(3))
    assert (numbers.bound, numbers.tokens) == (0.5, 3) and type(numbers.tokens) is int
    run(Guide(lambda text: 1.0, bound=1.0), "exact")
    for make, words in (
        (lambda: Guide(None), "score"), (lambda: Guide(soft, 3), "prefix"),
        (lambda: Guide(soft, bound=math.inf), "bound"),
        (lambda: Guide(soft, tokens=0), "tokens"), (lambda: BeamSearch(critic=3), "critic"),
    ):  # fmt: skip
        with pytest.raises((ArgumentError, TypeError), match=words):
            make()


def test_a_validator_may_return_a_probability() -> None:
    """`accepts` of exact: 0.25 for half of the texts; and another number is refused."""

    def grade(text: bytes) -> float:
        return 0.25 if text.startswith(b"b") else 1.0

    options = {"n": 2000, "rng": np.random.default_rng(1), "max_tokens": SMALL.max_tokens, "sampler": "exact"}
    draws = sampling.draw(SMALL.lm, SMALL.constraint, accepts=grade, **options)
    wanted = tilted(SMALL, lambda text: math.log(grade(text.encode())))
    z = math.fsum(wanted.values())
    assert g_test(Counter(one.tokens for one in draws), {x: g / z for x, g in wanted.items()}) > 1e-6
    with pytest.raises(ConstrainError, match="not a probability"):
        sampling.draw(SMALL.lm, SMALL.constraint, accepts=lambda text: 2.0, **options)


def test_energies_of_json_values() -> None:
    """A critic sees the text as the user does."""
    import constrain

    vocabulary = constrain.Vocabulary.bytes()
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
    constraint = constrain.compile(vocabulary, schema=schema, style=constrain.Style(whitespace="compact"))
    flat = sampling.NGram([()], np.log(np.full((1, vocabulary.size), 1 / vocabulary.size)))
    draws = sampling.draw(
        flat, constraint, sampler="exact", n=400, rng=np.random.default_rng(0), max_tokens=20,
        target=sampling.SamplingTarget(critic=lambda text: -math.log(3.0) * (json.loads(text)["n"] == 1)),
    )  # fmt: skip
    shares = Counter(json.loads(one.text)["n"] for one in draws)
    assert shares[1] / 400 == pytest.approx(0.25, abs=5 * math.sqrt(0.25 * 0.75 / 400))
