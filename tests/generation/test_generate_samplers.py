"""`generate(sampler=)`: every sampler of the table gives texts with their meaning, and refuses what it cannot take."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from constrain import BeamSearch, Vocabulary, compile, generate, sampling
from constrain.base.errors import ConstrainError, LimitError, UnsupportedError
from constrain.checking import PrefixChecker
from constrain.generation import refusal_counts
from constrain.generation.finished_texts import ATTEMPTS, make_sampler_draw, select_sampler
from constrain.sampling import SAMPLERS, SamplingTarget
from constrain.sampling.core.masked_sampling import allowed_tokens
from constrain.sampling.core.weight_statistics import weight_stats
from constrain.sampling.learned_twist.constraint_tables import take_table
from tests.markov_factory import TWO, Case, ChainModel

LM = ChainModel.random(TWO, 1, 4)
REGEX = "(b*a){3}b"
RARELY_A = ChainModel(np.log(np.tile([1e-5, 0.9, 0.1 - 1e-5], (4, 1))), 1)
REPEATS = 400
FAR = 4.5
"""Standard errors beyond which two means differ."""
GIVEN = {"regex": REGEX, "tokenizer": TWO, "max_tokens": 8, "seed": 3}


@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "markov"])
def test_every_sampler_writes_texts_in_the_form(sampler: str) -> None:
    made = generate(LM, **GIVEN, sampler=sampler, n=4)
    assert len(made) == 4
    for one in made:
        assert one.value == one.text
        assert one.text.count("a") == 3
        assert one.text.endswith("ab")
        assert one.log_weight > -math.inf
        assert one.stats.tokens == len(one.tokens) + 1
    again = generate(LM, **GIVEN, sampler=sampler, n=4)
    assert made == again
    if sampler in ("exact", "without_replacement", "pimh"):
        assert all(one.finish_reason == "complete" for one in made)
        assert made[0].stats.counts["model_calls"] > 0


@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "markov"])
def test_costs_are_json_and_apart_from_the_statistics_of_weights(sampler: str) -> None:
    made = generate(LM, **GIVEN, sampler=sampler, n=np.int64(3))
    counts, weights = made[0].stats.counts, made[0].stats.weights
    assert not set(counts) & set(weights)
    assert json.loads(json.dumps(counts)) == counts


@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "markov"])
def test_every_generation_reports_the_statistics_of_all_weights(sampler: str) -> None:
    """Also where spans are forced: the a's of the texts leave the mask one token, and cost what they cost the model."""
    made = generate(LM, **{**GIVEN, "regex": "(b*aaa){2}b"}, sampler=sampler, n=5)
    weights = made[0].stats.weights
    assert all(one.stats.weights == weights and one.stats.sampler == sampler for one in made)
    unfinished = int(made[0].stats.counts["unfinished"])
    groups = [*(one.stats.group if one.stats.group >= 0 else -i - 2 for i, one in enumerate(made)), *[-1] * unfinished]
    expected = weight_stats(np.array([one.log_weight for one in made] + [-math.inf] * unfinished), groups=groups)
    assert len(set(groups)) == len(made) + min(unfinished, 1) or sampler == "pimh"
    if SAMPLERS[sampler].unit == "draw":  # 5 that ended of as many as it took
        expected["dead_ends"] = 1 - 4 / (4 + unfinished)
        expected["log_z"] += math.log(4 / (4 + unfinished) * (5 + unfinished) / 5)
    judged = dict.fromkeys(("gap", "trusted", "closed", "distinct"), 0.0)
    assert {**expected, **judged} == pytest.approx({**weights, **judged}, nan_ok=True)
    assert weights["distinct"] == len({one.text for one in made})
    if not SAMPLERS[sampler].equal_weights:  # what was drawn and the gap bound the truth
        pattern = re.compile(rb"(b*aaa){2}b")
        case = Case("", LM, compile(TWO, regex="(b*aaa){2}b"), lambda text: pattern.fullmatch(text) is not None, 8)
        found = math.log(math.fsum({one.tokens: math.exp(one.logprob) for one in made}.values()))
        assert found <= math.log(case.z) + 1e-9 <= found + weights["gap"] + 2e-9


def test_the_weight_of_a_masked_text_is_the_product_of_its_allowed_masses() -> None:
    """Computed from the model's rows, forced tokens included."""
    vocabulary = TWO
    constraint = compile(vocabulary, regex="(b*aaa){2}b")
    one = generate(LM, **{**GIVEN, "regex": "(b*aaa){2}b", "max_tokens": 200})
    assert one.finish_reason == "complete"
    assert one.stats.forced_tokens > 0
    matcher, total = constraint.matcher(), 0.0
    for token in [*one.tokens, vocabulary.eos_ids[0]]:
        row = LM.next_logprobs([matcher.tokens])[0]
        total += np.logaddexp.reduce(row[allowed_tokens(matcher.mask())])
        matcher.advance(token)
    assert one.log_weight == pytest.approx(total)
    assert one.stats.log_mass == pytest.approx(total)


def test_weights_that_cannot_be_corrected_are_not_trusted() -> None:
    cold = generate(LM, **GIVEN, n=30, temperature=0.0)[0].stats.weights
    tight = generate(LM, **{**GIVEN, "max_tokens": 5}, n=30)[0].stats.weights
    assert not cold["trusted"]
    assert tight["closed"] > 0
    assert not tight["trusted"]
    assert generate(LM, **GIVEN, n=2, sampler="exact")[0].stats.weights["trusted"]
    assert not generate(LM, **GIVEN, n=2, sampler="smc")[0].stats.weights["trusted"]


def tempered_law(temperature: float, critic: Callable[[str], float]) -> dict[str, float]:
    """p_T(x) exp(critic(x)) of the texts of REGEX in 8 tokens, by brute force."""
    logs = LM.logs / temperature
    lm = ChainModel(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True), LM.order)
    pattern = re.compile(REGEX.encode())
    case = Case("", lm, compile(TWO, regex=REGEX), lambda text: pattern.fullmatch(text) is not None, 8)
    law = {TWO.decode(tokens): p for tokens, p in case.law().items()}
    return {text: p * math.exp(critic(text)) for text, p in law.items()}


def prefer_b(text: str) -> float:
    return 2.0 * text.startswith("b") - 2.0  # at most 0, as "exact" needs it


@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in ("auto", "smc", "pimh") else [])
        for name in ("auto", *SAMPLERS)
        if name != "markov"
    ],
)
def test_a_target_is_what_every_sampler_draws_from(sampler: str) -> None:
    """Temperature and critic at once: shares of the weight of each text, and log Z, are nearer to this law than to
    those where one of the two is left out.
    """
    law = tempered_law(2.0, prefer_b)
    wrong = [tempered_law(1.0, prefer_b), tempered_law(2.0, lambda text: 0.0)]
    target = SamplingTarget(temperature=2.0, critic=prefer_b)
    n = 20 if sampler == "without_replacement" else 1500
    made = generate(LM, **{**GIVEN, "n": n}, sampler=sampler, target=target)
    weights = np.exp([one.log_weight for one in made])
    shares: dict[str, float] = defaultdict(float)
    for one, weight in zip(made, weights / weights.sum()):
        shares[one.text] += weight

    def distance(other: dict[str, float]) -> float:
        z = math.fsum(other.values())
        return sum(abs(shares[text] - p / z) for text, p in other.items()) / 2

    assert distance(law) < min(0.15, *(distance(one) for one in wrong))
    assert made[0].stats.weights["log_z"] == pytest.approx(math.log(math.fsum(law.values())), abs=0.25)
    assert not made[0].stats.weights["trusted"]  # the critic of other texts may be any number


@pytest.mark.parametrize("sampler", ["exact", "smc"])
def test_a_temperature_is_that_of_the_target(sampler: str) -> None:
    cold = generate(LM, **GIVEN, n=20, sampler=sampler, temperature=0.5)
    assert cold == generate(LM, **GIVEN, n=20, sampler=sampler, target=SamplingTarget(0.5))
    assert cold != generate(LM, **GIVEN, n=20, sampler=sampler)


def test_one_text_is_one_generation() -> None:
    one = generate(LM, **GIVEN, sampler="exact")
    assert one.text.endswith("ab")
    assert generate(LM, **GIVEN, sampler="exact", n=0) == []


def test_texts_without_replacement_are_as_many_as_there_are() -> None:
    made = generate(LM, **{**GIVEN, "max_tokens": 6}, sampler="without_replacement", n=100)
    assert sorted(one.text for one in made) == ["aaab", "aabab", "abaab", "baaab"]


@pytest.mark.parametrize("sampler", ["smc", "pimh"])
def test_particles_use_what_earlier_calls_have_learned_unless_there_is_a_seed(sampler: str) -> None:
    constraint = compile(TWO, regex=REGEX)
    given: dict[str, Any] = {"particles": None, "checker": None, "max_tokens": 8, "masked_options": ""}
    chosen = [select_sampler(LM, constraint, sampler, seed=seed, **given) for seed in (None, 3)]
    assert [choice.options["twist"] for choice in chosen] == ["learned", "fresh"]
    runs = [make_sampler_draw(constraint, sampler, 3, 8, choice.options)(LM, 4)[0] for choice in chosen[1:] * 2]
    assert [one.tokens for one in runs[0]] == [one.tokens for one in runs[1]]
    few = take_table(constraint).populations
    make_sampler_draw(constraint, sampler, None, 8, chosen[0].options)(LM, 8)
    many = take_table(constraint).populations
    assert 0 < few < many
    make_sampler_draw(constraint, sampler, 3, 8, chosen[1].options)(LM, 4)
    assert take_table(constraint).populations == many, "a call with a seed does not replace what is known"


def test_particles_are_passed_on() -> None:
    few, many = (generate(LM, **GIVEN, sampler="smc", n=2, particles=k)[0].stats.counts["lines"] for k in (2, 64))
    assert few <= 4 < many


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"sampler": "exact", "temperature": 0.0}, UnsupportedError, "no temperature of 0"),
        ({"sampler": "smc", "top_k": 3}, UnsupportedError, "no top_k"),
        ({"target": SamplingTarget(2.0), "stream": print}, UnsupportedError, "target= was given with stream="),
        ({"target": 2.0}, TypeError, "SamplingTarget"),
        ({"sampler": "exact", "stream": print}, UnsupportedError, "cannot stream"),
        ({"particles": 4}, ConstrainError, "particles is 4, which the sampler 'masked' does not take"),
        ({"sampler": "smc", "particles": 0}, ConstrainError, "particles is 0"),
        ({"sampler": "markov"}, UnsupportedError, "last few tokens"),
    ],
)
def test_options_that_a_sampler_does_not_support_raise(given: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        generate(LM, **GIVEN, **given)


def test_the_command_line_takes_a_sampler() -> None:
    pytest.importorskip("transformers")
    from typer.testing import CliRunner

    from constrain.cli.app import app

    given = ["generate", "--choice", "red", "--choice", "blue", "-n", "5", "--seed", "1", "--stats"]
    done = CliRunner().invoke(app, [*given, "--sampler", "without_replacement"])
    assert sorted(done.stdout.split()) == ["blue", "red"]
    done = CliRunner().invoke(app, [*given, "--sampler", "smc", "--particles", "2"])
    assert len(done.stdout.split()) == 5
    assert "from the model's own distribution among valid texts, in nats" in " ".join(done.stderr.split())
    done = CliRunner().invoke(app, [*given, "--sampler", "exact"])
    assert "the texts follow the model's own distribution" in " ".join(done.stderr.split())
    assert CliRunner().invoke(app, [*given, "--sampler", "magic"]).exit_code != 0


@pytest.mark.parametrize("sampler", ["masked", "awrs", "smc"])
@pytest.mark.parametrize("max_tokens", [7, 8, 10, 14])
def test_unfinished_draws_are_counted_and_no_answers(sampler: str, max_tokens: int) -> None:
    """As many as were drawn are draws or counted; what is left ended; log Z is the mean over all."""
    constraint = compile(TWO, regex=REGEX)
    options = {"particles": 2} if sampler == "smc" else {}
    draws = sampling.draw(
        LM, constraint, sampler=sampler, n=40, rng=np.random.default_rng(1), max_tokens=max_tokens, **options
    )
    assert draws.made == len(draws) + draws.unfinished == 40
    assert draws.stats["unfinished"] == draws.unfinished
    for one in draws:
        assert one.text.count("a") == 3 and one.text.endswith("ab") and len(one.tokens) < max_tokens
    if len(draws):
        assert math.exp(draws.log_z) == pytest.approx(np.exp(draws.log_weights).sum() / 40)


@pytest.mark.parametrize(("n", "max_tokens"), [(1, 5), (2, 5), (3, 9)])
def test_too_few_that_end_are_an_error_that_says_how_many(n: int, max_tokens: int) -> None:
    """A model that nearly never ends within the budget, though a text that does is there."""
    with pytest.raises(
        LimitError, match=rf"^\d of \d+ texts ended within max_tokens = {max_tokens}; {n} were requested"
    ) as e:
        generate(RARELY_A, regex="a{3}|b{60}", tokenizer=TWO, max_tokens=max_tokens, seed=1, sampler="awrs", n=n)
    ended, made = (int(word) for word in str(e.value).split()[:3:2])
    assert ended < n
    assert made - ended >= ATTEMPTS * n


@pytest.mark.parametrize("max_tokens", [8, 512])
@pytest.mark.parametrize(
    "options", [{"sampler": "awrs"}, {"check": PrefixChecker(lambda text: "ok")}], ids=["awrs", "check"]
)
def test_too_few_that_end_in_a_full_context_are_an_error_that_names_it(
    options: dict[str, Any], max_tokens: int
) -> None:
    model = ShortContext(RARELY_A.logs, RARELY_A.order)
    said = r"texts ended within the 8 tokens that the prompt leaves of the model's context; 1 were requested"
    with pytest.raises(LimitError, match=said) as error:
        generate(model, regex="a{3}|b{60}", tokenizer=TWO, max_tokens=max_tokens, seed=1, **options)
    assert "max_tokens" not in str(error.value) and error.value.is_of_context


@pytest.mark.parametrize("sampler", ["exact", "without_replacement", "smc", "pimh", "asap", "awrs", "auto"])
@pytest.mark.parametrize("regex", ["ab{12}", "[ab]{9}a*"])
def test_every_sampler_says_how_many_tokens_are_needed(sampler: str, regex: str) -> None:
    least = {"ab{12}": 14, "[ab]{9}a*": 10}[regex]
    with pytest.raises(LimitError, match=f"max_tokens is 6; the shortest text found takes {least} tokens") as masked:
        generate(LM, regex=regex, tokenizer=TWO, max_tokens=6)
    with pytest.raises(LimitError) as error:
        generate(LM, regex=regex, tokenizer=TWO, max_tokens=6, seed=1, sampler=sampler)
    assert str(error.value) == str(masked.value)


class ShortContext(ChainModel):
    """A model whose prompt leaves 8 tokens of its context."""

    max_new_tokens = 8


@pytest.mark.parametrize("max_tokens", [5, 512])
@pytest.mark.parametrize(
    "options",
    [
        *({"sampler": name} for name in ("masked", "exact", "without_replacement", "smc", "pimh", "asap", "awrs")),
        {"search": BeamSearch(width=2)},
        {"decide": "mbr"},
    ],
    ids=str,
)
def test_a_full_context_is_not_blamed_on_max_tokens(options: dict[str, Any], max_tokens: int) -> None:
    """No max_tokens would help."""
    with pytest.raises(LimitError, match=r"the prompt leaves 8 tokens of the model's context; .* takes 14") as error:
        generate(ShortContext(LM.logs, LM.order), regex="ab{12}", tokenizer=TWO, max_tokens=max_tokens, **options)
    assert "max_tokens" not in str(error.value) and error.value.is_of_context
    with pytest.raises(LimitError, match="max_tokens is 5; the shortest text found takes 7"):
        generate(ShortContext(LM.logs, LM.order), regex="ab{5}", tokenizer=TWO, max_tokens=5, **options)


@pytest.mark.parametrize("seed", range(12))
def test_a_longer_text_of_fewer_tokens_is_found(seed: int) -> None:
    """The text of the fewest bytes does not fit in max_tokens, and a quarter of the draws do not end; another fits.

    All first 8 draws of a seed would not end with probability 2e-5.
    """
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"long", None], eos_ids=(3,))
    lm = ChainModel(np.log(np.tile([0.2, 0.1, 0.6, 0.1], (5, 1))), 1)
    made = generate(lm, regex="a{3}|(long)", tokenizer=vocabulary, max_tokens=3, seed=seed, sampler="awrs")
    assert made.text == "long"


@pytest.mark.parametrize("sampler", ["smc", "pimh", "masked"])
def test_a_critic_that_excludes_everything_is_named(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusal_counts, "MOST_REFUSED", 100)
    nothing = SamplingTarget(critic=lambda text: -math.inf)
    with pytest.raises(LimitError, match=r"the critic excluded all of \d+ texts that ended"):
        generate(LM, regex="[ab]{4,40}", tokenizer=TWO, max_tokens=45, seed=1, sampler=sampler, target=nothing)
    with pytest.raises(LimitError, match=r"max_tokens|at least"):  # none ended, and the critic saw none
        generate(LM, regex="[ab]{40}", tokenizer=TWO, max_tokens=4, seed=1, sampler=sampler, target=nothing)


@pytest.mark.parametrize("sampler", ["smc", "pimh"])
def test_populations_end_where_a_check_refuses_everything(
    sampler: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(refusal_counts, "MOST_REFUSED", 100)
    monkeypatch.setattr(refusal_counts, "REPORTED", 25)
    seen: list[str] = []
    with pytest.raises(LimitError, match="the check refused all of 100 texts"):
        generate(LM, regex="[ab]{4,40}", tokenizer=TWO, max_tokens=45, seed=1, sampler=sampler,
                 check=seen.append)  # type: ignore[arg-type]  # fmt: skip
    assert len(seen) == 100
    said = [record.getMessage() for record in caplog.records if record.name == "constrain.generation"]
    assert said == [f"constrain: the check has refused all of {count} texts so far" for count in (25, 50, 100)]
    seen.clear()
    with pytest.raises(LimitError, match="no text of at most 45 tokens"):  # two texts, and both are refused
        generate(LM, regex="a{5}|b{7}", tokenizer=TWO, max_tokens=45, seed=1, sampler=sampler,
                 check=seen.append)  # type: ignore[arg-type]  # fmt: skip
    assert sorted(seen) == ["aaaaa", "bbbbbbb"]


def test_refusals_are_counted_until_a_text_is_accepted() -> None:
    count = refusal_counts.CountingCheck(lambda text: text == b"yes", 3)
    assert [count(text) for text in (b"no", b"no", b"yes", b"no", b"no", b"no", b"no")] == [
        False, False, True, False, False, False, False,
    ]  # fmt: skip
    never = refusal_counts.CountingCheck(lambda text: False, None)
    assert not any(never(b"no") for _ in range(refusal_counts.REPORTED - 1))


def test_a_text_that_never_passes_the_check_is_an_error() -> None:
    with pytest.raises(LimitError, match=r"^0 of \d+ texts ended .* passed the check.*\n.*check refuses"):
        generate(LM, regex="(a|b){30}b{30}|a{3}", tokenizer=TWO, max_tokens=5, seed=1, sampler="awrs", n=2,
                 check=lambda text: False)  # fmt: skip


def test_log_z_of_resampled_texts_is_that_of_the_exact_distribution() -> None:
    """Drawing until n texts have ended is inverse sampling: n of m ended says (n - 1) / (m - 1), and not n / m."""
    given = {"regex": REGEX, "tokenizer": TWO, "max_tokens": 7, "sampler": "awrs"}
    accepts = re.compile(REGEX.encode()).fullmatch
    true = Case("", LM, compile(TWO, regex=REGEX), lambda text: accepts(text) is not None, 7).z
    ours, naive, redrawn = [], [], 0
    for seed in range(REPEATS):
        made = generate(LM, **given, n=2, seed=seed)
        ours.append(math.exp(made[0].stats.weights["log_z"]))
        unfinished = made[0].stats.counts["unfinished"]
        naive.append(sum(math.exp(one.log_weight) for one in made) / (2 + unfinished))
        redrawn += unfinished > 0
        assert 0 <= made[0].stats.weights["dead_ends"] < 1 or unfinished
    assert redrawn > REPEATS / 10
    assert abs(np.mean(ours) - true) < FAR * np.std(ours) / math.sqrt(REPEATS)
    assert abs(np.mean(naive) - true) > FAR * np.std(naive) / math.sqrt(REPEATS), "the test sees the bias"


def test_one_resampled_text_is_not_trusted() -> None:
    found = [generate(LM, **{**GIVEN, "max_tokens": 7, "seed": seed}, sampler="awrs") for seed in range(30)]
    redrawn = [one.stats for one in found if one.stats.counts["unfinished"]]
    assert redrawn
    for stats in redrawn:
        assert not stats.weights["trusted"]
        assert math.isfinite(stats.weights["log_z"])
