"""AWRS along a text, checkers without masks, and statistics of weights: against exact distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from constrain import sampling
from constrain.base.errors import ConstrainError, LimitError, TokenRefused
from constrain.compilation.constraint_compiler import compile as compile_constraint
from constrain.sampling import awrs
from constrain.sampling.checkers import BothCheckers, Stepwise, ValidatorChecker
from constrain.sampling.core import masked_sampling
from constrain.sampling.core.weight_statistics import weight_stats
from constrain.sampling.token_rejection import Chunks, DesRaj, HorvitzThompson
from tests.markov_factory import LETTERS, TWO, Case, ChainModel, cases, g_test, regular, resampled

COUNTING = cases()["counting"]


def drawn(case: Case, n: int, **options: object) -> sampling.Draws:
    return awrs.draw_awrs(
        case.lm, options.pop("constraint", case.constraint), n=n, rng=np.random.default_rng(11),
        max_tokens=case.max_tokens, **options,
    )  # fmt: skip


def assert_proper(draws: sampling.Draws, law: dict[tuple[int, ...], float]) -> None:
    """Mean weight is Z, and sum of weights of the likeliest text is its mass: within 5 standard errors."""
    weights = np.exp(draws.log_weights)
    top = max(law, key=lambda tokens: law[tokens])
    for f, exact in ((1.0, math.fsum(law.values())), (np.array([d.tokens == top for d in draws]), law[top])):
        each = weights * f
        assert abs(each.mean() - exact) < 5 * each.std() / math.sqrt(len(each)) + 1e-12
    assert all(d.tokens in law for d in draws if d.log_weight > -np.inf)


OPTIONS = {
    "late masks": {}, "no masks": {"masks": "never"}, "masks first": {"masks": "first"}, "budget": {"budget": 3},
    "chunks": {"method": Chunks(3)}, "one batch": {"method": HorvitzThompson(3)},
}  # fmt: skip
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("traps", "brackets")]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", ["counting", "pieces", "only the end", *SLOW])
def test_weights_along_a_text_are_proper(name: str, options: str) -> None:
    case = cases()[name]
    assert_proper(drawn(case, 700, **OPTIONS[options]), case.law())


def test_logprobs_are_the_models() -> None:
    case = cases()["pieces"]
    law = case.law()
    for one in drawn(case, 100):
        if one.log_weight > -np.inf:
            assert one.logprob == pytest.approx(math.log(law[one.tokens]))


def test_tokens_follow_the_masked_distribution_and_weights_correct_it() -> None:
    """Masking, and AWRS without its weights, fail the G-test that weighted AWRS passes (n = 160, error 1e-6)."""
    case, rng = cases()["pieces"], np.random.default_rng(1)
    law = {tokens: p / case.z for tokens, p in case.law().items()}
    draws = [one for one in drawn(case, 7_500, masks="never") if one.log_weight > -np.inf]
    chosen = [resampled(draws[i : i + 40], rng) for i in range(0, 6_400, 40)]
    plain = [one.tokens for one in draws[:160]]
    counted = [{tokens: texts.count(tokens) for tokens in set(texts)} for texts in (chosen, plain)]
    assert g_test(counted[0], law) > 1e-6
    assert g_test(counted[1], law) < 1e-12


def test_functions_over_bytes_are_checkers() -> None:
    """(b*a)?b+ as a function of all bytes, as a state, as complete texts only, and after a grammar that is wider."""

    def viable(text: bytes) -> bool:
        return text.count(b"a") <= 1

    def accepts(text: bytes) -> bool:
        return text.count(b"a") <= 1 and text.endswith(b"b")

    def feed(state: tuple[int, bytes], more: bytes) -> tuple[int, bytes] | None:
        count = state[0] + more.count(b"a")
        return (count, more[-1:]) if count <= 1 else None

    case, wider = regular("few", TWO, "(b*a)?b+", 6, seed=4), regular("wider", TWO, "(b*a){0,3}b+", 6).constraint
    stepwise = Stepwise(TWO, (0, b""), feed, lambda state: state[0] <= 1 and state[1] == b"b")
    for checker in (ValidatorChecker(TWO, accepts, viable), ValidatorChecker(TWO, accepts), stepwise):
        draws = drawn(case, 700, constraint=checker)
        assert_proper(draws, case.law())
        assert checker.calls < draws.stats["checks"], "a verdict is remembered"
    assert_proper(drawn(case, 700, constraint=wider, accepts=accepts, viable=viable, masks="first"), case.law())


def test_a_late_rejection_is_learnt_once() -> None:
    """Dead prefixes are not visited again: fewer draws fail than in separate calls."""
    rows = np.log(np.array([[0.5, 0.4, 0.1]] * 4))
    late = ValidatorChecker(TWO, lambda text: text == b"bb", lambda text: len(text) < 3)
    options = {"max_tokens": 8, "masks": "never"}
    rng = np.random.default_rng(2)
    together = awrs.draw_awrs(ChainModel(rows, 1), late, n=1, rng=rng, **options)
    dead: set[tuple[int, ...]] = set()
    model = ChainModel(rows, 1)
    outcomes = []
    for _ in range(60):
        position = late.matcher()
        while True:
            found = awrs.draw_token_at(position, model.next_logprobs([position.tokens])[0], rng, ends=(2,), dead=dead)
            if found.token in (None, 2):
                break
            position.advance(found.token)
        outcomes.append(found.token)
    assert together.stats["steps"] <= 3
    assert {(0, 0), (0, 1), (1, 0), (0,)} >= dead
    assert outcomes.count(None) <= 4
    assert outcomes[-1] == 2


def test_checkers_refuse_and_fail_clearly() -> None:
    position = ValidatorChecker(LETTERS, lambda text: text == b"ab", b"ab".startswith).matcher()
    position.advance(0)
    other = position.fork()
    position.advance(1)
    position.advance(3)
    assert position.tokens == [0, 1, 3]
    assert not any(position.allows(token) for token in range(-1, 5))
    assert other.tokens == [0]
    assert [other.allows(token) for token in range(4)] == [False, True, False, False]
    with pytest.raises(TokenRefused):
        other.advance(3)

    def broken(text: bytes) -> bool:
        raise KeyError("x")

    with pytest.raises(ConstrainError, match="the checker failed on b'a'"):
        ValidatorChecker(LETTERS, viable=broken).matcher().allows(0)
    both = BothCheckers(COUNTING.constraint, ValidatorChecker(TWO, viable=lambda text: b"bb" not in text)).matcher()
    both.advance(1)
    with pytest.raises(TokenRefused):
        both.advance(1)
    assert both.tokens == both.fork().tokens == [1]
    with pytest.raises(ValueError, match="one vocabulary"):
        BothCheckers(COUNTING.constraint, ValidatorChecker(LETTERS))


def test_budgets_and_bad_models() -> None:
    with pytest.raises(LimitError, match="max_tokens"):
        awrs.draw_awrs(COUNTING.lm, COUNTING.constraint, n=1, rng=np.random.default_rng(0), max_tokens=0)
    with pytest.raises(LimitError, match="seconds"):
        drawn(COUNTING, 3, seconds=-1.0)

    class Wrong:
        def next_logprobs(self, prefixes: list[list[int]]) -> np.ndarray:
            return np.zeros((len(prefixes), 1))

    for sampler in ("masked", "awrs"):
        with pytest.raises(ValueError, match="at least 3 log-probabilities"):
            sampling.draw(
                Wrong(), COUNTING.constraint, sampler=sampler, n=1, rng=np.random.default_rng(0), max_tokens=5
            )
    nothing = ValidatorChecker(TWO, viable=lambda text: False, accepts=lambda text: False)
    draws = drawn(COUNTING, 5, constraint=nothing)
    assert draws.log_z == -math.inf
    assert draws.stats["dead_ends"] == 1
    assert draws.stats["trusted"] == 0


def test_the_same_seed_draws_the_same() -> None:
    assert list(drawn(COUNTING, 20)) == list(drawn(COUNTING, 20))


# ---- what weights say ----------------------------------------------------------------------------------------------


def masked_law(case: Case) -> dict[tuple[int, ...], float]:
    """Of every text in the language, how likely masking draws it."""
    law = {}
    for tokens, p in case.law().items():
        matcher = case.constraint.matcher()
        for step in range(len(tokens) + 1):
            row = case.lm.next_logprobs([list(tokens[:step])])[0]
            allowed = masked_sampling.allowed_tokens(matcher.mask())
            if step + 1 == case.max_tokens:
                allowed = allowed[np.isin(allowed, case.constraint.vocabulary.eos_ids)]
            p /= float(np.exp(row[allowed]).sum())
            if step < len(tokens):
                matcher.advance(tokens[step])
        law[tokens] = p
    return law


def test_divergences_of_masking_are_those_of_the_exact_distributions() -> None:
    """Where they are trusted, both are within 10 % of the truth; elsewhere within 6 standard errors."""
    trusted = 0
    for case in (cases()[name] for name in ("traps, trigram", "pieces", "bytes", "counting")):
        draws = masked_sampling.draw_masked(
            case.lm, case.constraint, n=2000, rng=np.random.default_rng(3), max_tokens=case.max_tokens
        )
        stats, q = draws.stats, masked_law(case)
        alive = math.fsum(q.values())
        assert stats["dead_ends"] == pytest.approx(1 - alive, abs=0.05)
        truth = {
            "to": math.fsum(q[t] / alive * math.log(q[t] / alive / p * case.z) for t, p in case.law().items()),
            "from": math.fsum(p / case.z * math.log(p / case.z / q[t] * alive) for t, p in case.law().items()),
        }
        for way, exact in truth.items():
            within = 0.1 * exact if stats["steady"] else 6 * stats[f"kl_{way}_error"]
            assert stats[f"kl_{way}_target"] == pytest.approx(exact, abs=within)
        trusted += int(stats["steady"])
    assert trusted >= 3


def test_weights_by_hand() -> None:
    stats = weight_stats(np.log(np.array([1.0, 3.0])))
    assert stats["log_z"] == pytest.approx(math.log(2))
    assert stats["ess"] == pytest.approx(1.6)
    assert stats["kl_to_target"] == pytest.approx(math.log(2) - math.log(3) / 2)
    assert stats["kl_from_target"] == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5))
    assert stats["largest"] == pytest.approx(0.75)
    assert stats["steady"] == 0
    assert weight_stats(np.empty(0)) == {}
    same = weight_stats(np.full(100, -3.0))
    assert (same["kl_to_target"], same["steady"], same["dead_ends"]) == (pytest.approx(0), 1, 0)
    assert drawn(COUNTING, 40, method=DesRaj(2)).stats.keys() >= stats.keys()


def test_weights_count_no_token_that_leads_to_a_dead_prefix() -> None:
    """Check and mask agree: where the second text is known to be dead, both leave it out."""
    rows = np.log(np.array([[0.5, 0.3, 0.2]] * 4))
    constraint = compile_constraint(vocabulary=TWO, regex="[ab]")
    dead = {(1,)}
    drawn = [
        awrs.draw_token_at(constraint.matcher(), rows[0], np.random.default_rng(seed), dead=dead, ends=(2,))
        for seed in range(400)
    ]
    assert {one.token for one in drawn} == {0}
    weights = np.exp([one.log_weight for one in drawn])
    assert abs(weights.mean() - 0.5) < 5 * weights.std() / 20 + 1e-12
