"""Properties of every sampler of the table, on small models whose exact distribution is enumerated (`markov_factory`).

Proper weights, on vocabularies and languages that are odd; the same draws however the model is asked and whatever is
remembered; the same law where what is remembered changes the draws; the same draws for the same seed.

What can be played through is exact to 1e-12. The rest are z-tests that fail at |z| > 5.5 (4e-8 each, some 500 of
them: 2e-5 for a new choice of seeds) and G-tests that fail below 1e-6; all seeds are fixed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import constrain
from constrain import sampling
from constrain.base.errors import LimitError
from constrain.decoding import generation_loop
from constrain.sampling import SAMPLERS, Draws, asap, awrs, checkers, particles, smc
from constrain.sampling.canonical_tokens import Canonical
from constrain.sampling.core import masked_sampling
from constrain.sampling.core.masked_sampling import PLAIN, Proposal
from constrain.sampling.particles import Awrs, Masked, Prefixes, Twisted
from constrain.sampling.populations import Settings
from constrain.sampling.research.markov_exact import Product
from constrain.sampling.success_trie import SuccessTrie
from constrain.sampling.twists import Future, Shortest
from constrain.speculation.draft_source import NO_DRAFT
from constrain.speculation.forced_drafts import ForcedDrafts
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import LETTERS, PASS_ABOVE, TWO, Case, ChainModel, Script, cases, g_test, outcomes, regular
from tests.sampling.test_awrs import Played, PlayedRace

FAR = 5.5
"""Standard errors."""
PROPER = [name for name in SAMPLERS if name != "pimh"]
"""Whose draws are properly weighted one by one; a chain's are in the long run."""


# ---- odd vocabularies ------------------------------------------------------------------------------------------------

ENDS = Vocabulary.from_tokens([None, b"a", b"b", None, b"ab", None], eos_ids=[0, 3, 5])
TWINS = Vocabulary.from_tokens([b"a", b"a", b"", b"b", b"ab", b"ab", None, None], eos_ids=[7], special={"<s>": 6})
SPLIT = Vocabulary.from_tokens([b"\xc3", b"\xa9", None, b"\xc3\xa9", b"a\xc3", b"\xa9a", b"a"], eos_ids=[2])


def without(case: Case, name: str, nowhere: list[int], *, after: dict[int, list[int]] | None = None) -> Case:
    """The case, with tokens to which the model gives no probability: anywhere, or after some other token."""
    rows = np.exp(case.lm.logs)
    rows[:, nowhere] = 0.0
    for token, none in (after or {}).items():
        rows[token, none] = 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(rows / rows.sum(axis=1, keepdims=True))
    return replace(case, name=name, lm=ChainModel(logs, 1))


def mild(name: str, vocabulary: Vocabulary, pattern: str, max_tokens: int, seed: int) -> Case:
    """With rows that are nearly flat: weights then vary little enough for a mean of some hundred to be normal."""
    lm = ChainModel.random(vocabulary, 1, seed, peaked=6.0, end=6.0)
    return replace(regular(name, vocabulary, pattern, max_tokens), lm=lm)


@lru_cache(maxsize=1)
def odd() -> dict[str, Case]:
    ends = mild("three ends", ENDS, "(ab?)*b?", 4, 11)
    twins = mild("twins", TWINS, "(a|b)(ab|b)*", 4, 12)
    split = mild("split", SPLIT, "(a|(é))*", 4, 13)
    made = [
        ends, twins, split,
        without(ends, "tokens that never come", [1, 3], after={4: [0, 5], 2: [2, 4]}),
        replace(ends, name="nothing or one token", max_tokens=2),
        replace(ends, name="only the end fits", max_tokens=1),
        mild("the last token must be the end", LETTERS, "(a|bc|cb)c", 4, 14),
    ]  # fmt: skip
    return {case.name: case for case in made}


def model_of(sampler: str, case: Case) -> Any:
    return case.lm.as_ngram() if sampler == "markov" else case.lm


def by_text(case: Case, law: dict[tuple[int, ...], float]) -> dict[bytes, float]:
    """What tokens have, as what their bytes have."""
    out: dict[bytes, float] = defaultdict(float)
    for tokens, p in law.items():
        out[case.constraint.vocabulary.text(tokens)] += p
    return dict(out)


def drawn(sampler: str, case: Case, seed: int, n: int, **options: Any) -> Draws:
    given = {"rng": np.random.default_rng(seed), "max_tokens": case.max_tokens, **options}
    if sampler in ("smc", "pimh"):  # by default, draws depend on the calls before
        given.setdefault("twist", "fresh")
    return sampling.draw(
        given.pop("lm", None) or model_of(sampler, case), case.constraint, sampler=sampler, n=n, **given
    )


def assert_proper(case: Case, runs: list[Draws], wanted: dict[bytes, float] | None = None) -> None:
    """The mean over runs of each text's share of (mean w) is its p(x), and that of all is Z; logprobs are log p(x)."""
    law = case.law()
    wanted = by_text(case, law) if wanted is None else wanted
    found = np.zeros((len(runs), len(wanted) + 1))
    column = {text: i for i, text in enumerate(wanted)}
    for row, draws in zip(found, runs):
        for one in draws:
            if one.log_weight > -math.inf:
                assert one.logprob == pytest.approx(math.log(law[one.tokens]))
                row[column[case.constraint.vocabulary.text(one.tokens)]] += math.exp(one.log_weight) / draws.made
    found[:, -1] = found[:, :-1].sum(axis=1)
    exact_values = np.array([*wanted.values(), math.fsum(wanted.values())])
    error = found.std(axis=0) / math.sqrt(len(runs)) + 1e-9 * exact_values
    seen = (found > 0).sum(axis=0) >= 20  # fewer say nothing by their spread
    far = np.abs(found.mean(axis=0) - exact_values)[seen] / error[seen]
    assert seen.any() or not wanted
    assert far.max(initial=0) < FAR, far


@pytest.mark.parametrize("name", list(odd()))
@pytest.mark.parametrize("sampler", PROPER)
def test_weights_are_proper_on_odd_vocabularies(sampler: str, name: str) -> None:
    case = odd()[name]
    assert_proper(case, [drawn(sampler, case, seed, 3) for seed in range(1000, 1100)])


@pytest.mark.parametrize("name", list(odd()))
def test_the_chain_converges_to_the_exact_distribution_on_unusual_vocabularies(name: str) -> None:
    case = odd()[name]
    draws = drawn("pimh", case, 1, 120, particles=8, thin=3, burn=20)
    counts = Counter(one.tokens for one in draws)
    assert g_test(counts, case.exact()) > PASS_ABOVE
    assert all(one.logprob == pytest.approx(math.log(case.law()[one.tokens])) for one in draws)


@pytest.mark.slow
def test_the_chain_knows_z_without_bias_where_most_populations_die() -> None:
    """One population of one particle: half of them are dead, and how many are needed depends on that."""
    case = mild("dying", LETTERS, "(a|bbb)c", 3, 4)
    z = [math.exp(drawn("pimh", case, seed, 1, particles=1, burn=seed % 2).log_z) for seed in range(600)]
    error = np.std(z) / math.sqrt(len(z))
    assert abs(np.mean(z) - case.z) < FAR * error


def odd_checkers() -> dict[str, tuple[Callable[[Vocabulary], Any], Callable[[Case, tuple[int, ...]], bool]]]:
    """Return a checker, and the same condition on complete texts: late; step by step; of spellings."""

    def few(state: int, more: bytes) -> int | None:
        count = state + more.count(b"a")
        return count if count < 3 else None

    def fewest(case: Case, tokens: tuple[int, ...]) -> bool:
        return tuple(case.constraint.vocabulary.fewest(case.constraint.vocabulary.text(tokens))) == tokens

    return {
        "late": (
            lambda vocabulary: lambda text: len(text) % 2 == 0,
            lambda case, tokens: len(case.constraint.vocabulary.text(tokens)) % 2 == 0,
        ),
        "stepwise": (
            lambda vocabulary: checkers.Stepwise(vocabulary, 0, few, lambda state: state > 0),
            lambda case, tokens: 0 < case.constraint.vocabulary.text(tokens).count(b"a") < 3,
        ),
        "spellings": (lambda vocabulary: Canonical(vocabulary, respell=vocabulary.fewest), fewest),
    }


@pytest.mark.parametrize("kind", list(odd_checkers()))
@pytest.mark.parametrize("name", ["twins", pytest.param("tokens that never come", marks=pytest.mark.slow)])
@pytest.mark.parametrize("sampler", [name for name in PROPER if name != "markov"])
def test_weights_are_proper_with_a_checker(sampler: str, name: str, kind: str) -> None:
    """E[w 1{x}] = p(x) [x in L] [the checker accepts x]; draws of one call share the dead ends found."""
    case, (make, right) = odd()[name], odd_checkers()[kind]
    law = {tokens: p for tokens, p in case.law().items() if right(case, tokens)}
    options = {"checker": make(case.constraint.vocabulary)}
    n = 3 if SAMPLERS[sampler].uses_trie else 16  # many masked draws end nowhere
    assert_proper(case, [drawn(sampler, case, seed, n, **options) for seed in range(40)], by_text(case, law))


@pytest.mark.parametrize("name", ["ends", "twins", "edge"])
@pytest.mark.parametrize("sampler", ["masked", "asap", "smc"])
def test_draws_share_the_dead_ends_that_they_find(sampler: str, name: str) -> None:
    """Two draws with a checker that rejects late, over every outcome."""
    case = TINY[name] if name == "edge" else replace(TINY[name], max_tokens=2)

    def right(text: bytes) -> bool:
        return text in (b"ab", b"ba", b"b")

    options: dict[str, Any] = {"threshold": 1.0} if sampler == "smc" else {}

    def run(rng: Any) -> Draws:
        return sampling.draw(
            case.lm,
            case.constraint,
            sampler=sampler,
            n=2,
            rng=rng,
            max_tokens=case.max_tokens,
            checker=right,
            **options,
        )

    text = case.constraint.vocabulary.text
    assert_same(mean_of(run), {x: p for x, p in case.law().items() if right(text(x))})


def test_twists_know_the_constraint_under_a_checker() -> None:
    case = odd()["three ends"]
    future = Future(Product.of(case.lm.as_ngram(), case.constraint, max_tokens=case.max_tokens))
    law = {tokens: p for tokens, p in case.law().items() if len(case.constraint.vocabulary.text(tokens)) != 1}
    for twist in (future, "learned", Shortest(), None):
        options = {"checker": lambda text: len(text) != 1, "twist": twist}
        # Two particles for three texts: with more, the learned twist leaves nothing to chance.
        assert_proper(case, [drawn("smc", case, seed, 2, **options) for seed in range(60)], by_text(case, law))


@pytest.mark.parametrize(("length", "p"), [(12, 1e-3), (40, 1e-3), (150, 1e-4)])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_however_little_a_language_has_it_is_not_nothing(sampler: str, length: int, p: float) -> None:
    """Down to p(L) = e^-1391, far below the smallest float: weights are right, or it is said that it is too little."""
    constraint = constrain.compile(LETTERS, regex=f"a{{{length}}}b?")
    lm = ChainModel(np.log(np.tile([p, p, 1 - 3 * p, p], (5, 1))), 1)
    case = Case("long", lm, constraint, lambda text: False, length + 2)
    log_z = (length + 1) * math.log(p) + math.log1p(p)
    if sampler == "exact" and length == 150:
        with pytest.raises(LimitError, match=r"p\(L\) is about exp\(-1391\).*stopped early.*\n.*smc"):
            drawn(sampler, case, 1, 4, attempts=50)
        return
    draws = drawn(sampler, case, 1, 40)
    assert {one.text for one in draws} <= {"a" * length, "a" * length + "b"}
    assert draws.log_z == pytest.approx(log_z, abs=1.0)


# ---- played through: exact -------------------------------------------------------------------------------------------


def tiny_cases() -> dict[str, Case]:
    """Cases small enough to enumerate complete runs."""
    ends = regular("ends", ENDS, "(ab|b)?a?", 3, seed=21)
    return {
        "ends": ends,
        "twins": regular("twins", TWINS, "ab?|ba", 3, seed=22),
        "split": regular("split", SPLIT, "(é)|a(é)?", 3, seed=23),
        "impossible": without(ends, "impossible", [1, 5], after={2: [0, 3]}),
        "edge": regular("edge", ENDS, "(ab|b)?a?", 2, seed=24),
    }


TINY = tiny_cases()


def mean_of(run: Callable[[Any], Draws]) -> dict[tuple[int, ...], float]:
    """Return E[mean of w 1{x}] over every outcome of a run."""
    out: dict[tuple[int, ...], float] = defaultdict(float)
    total = 0.0
    for probability, draws in outcomes(run):
        total += probability
        for one in draws:
            if one.log_weight > -math.inf:
                out[one.tokens] += probability * math.exp(one.log_weight) / draws.made
    assert total == pytest.approx(1, abs=1e-12)
    return out


def assert_same(found: dict[Any, float], wanted: dict[Any, float]) -> None:
    assert max((abs(found.get(x, 0.0) - wanted.get(x, 0.0)) for x in {*found, *wanted}), default=0) < 1e-12


PROPOSALS = [
    PLAIN, Proposal(temperature=0.5), Proposal(temperature=3.0), Proposal(top_p=1.0), Proposal(top_k=99),
    Proposal(defensive=0.2), Proposal(0, defensive=0.5), Proposal(top_k=1, defensive=0.1), Proposal(defensive=1),
]  # fmt: skip
CUT = [Proposal(temperature=0), Proposal(top_k=1), Proposal(top_k=2), Proposal(top_p=0.5), Proposal(2.0, 3, 0.7)]


@pytest.mark.parametrize("name", TINY)
def test_masked_draws_are_proper_under_every_proposal(name: str) -> None:
    """Where every token stays possible, E[w 1{x}] = p(x) [x in L]; where the proposal cuts some off, that for the texts
    that are left, and nothing for the others: never something in between."""
    case = TINY[name]

    def under(proposal: Proposal) -> dict[tuple[int, ...], float]:
        more = {"max_tokens": case.max_tokens, "proposal": proposal}
        return mean_of(lambda rng: masked_sampling.draw_masked(case.lm, case.constraint, n=1, rng=rng, **more))

    for proposal in PROPOSALS:
        assert_same(under(proposal), case.law())
    for proposal in CUT:
        found = under(proposal)
        assert_same(found, {x: p for x, p in case.law().items() if x in found})


@pytest.mark.parametrize("name", TINY)
def test_draws_one_after_the_other_are_proper_though_each_learns_from_the_one_before(name: str) -> None:
    """ASAp, two draws: the second one's distribution depends on the first, its weight corrects that."""
    case = TINY[name]
    more = {"n": 2, "max_tokens": case.max_tokens}
    assert_same(mean_of(lambda rng: asap.draw_asap(case.lm, case.constraint, rng=rng, **more)), case.law())


MOVES: dict[str, Callable[[Case], dict[str, Any]]] = {
    "masked": lambda case: {"move": Masked()},
    "at another temperature": lambda case: {"move": Masked(Proposal(temperature=2.0))},
    "cut and defensive": lambda case: {"move": Masked(Proposal(top_k=1, defensive=0.3))},
    "twisted by a model that is wrong": lambda case: twisted(case, 5),
    "twisted by the right model": lambda case: twisted(case, None),
}


def twisted(case: Case, seed: int | None) -> dict[str, Any]:
    """Move and twist by the backward values of a Markov model: the case's own, or another one."""
    lm = case.lm if seed is None else ChainModel.random(case.constraint.vocabulary, 1, seed)
    twist = Future(Product.of(lm.as_ngram(), case.constraint, max_tokens=case.max_tokens))
    return {"move": Twisted(twist), "twist": twist}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("resample", ["systematic", "multinomial"])
@pytest.mark.parametrize("name", ["ends", "twins", "impossible", "edge"])
def test_moves_twists_and_resampling_compose(name: str, resample: str, move: str) -> None:
    """E[mean of w 1{x}] = p(x) [x in L] of whole populations that are resampled at every step."""
    case = TINY[name] if name == "edge" else replace(TINY[name], max_tokens=min(TINY[name].max_tokens, 2))
    options = MOVES[move](case)

    def run(rng: Any) -> Draws:
        given = {"n": 2, "max_tokens": case.max_tokens, "resample": resample, "threshold": 1.0, "twist": "fresh"}
        return smc.draw_smc(case.lm, case.constraint, rng=rng, **{**given, **options})

    assert_same(mean_of(run), case.law())


def played_race(
    logs: NDArray[Any], rng: Script, *, tokens: Any = None, total: float = 1.0, likely: Any = None
) -> PlayedRace:
    """Replace `awrs.ExponentialRace` by a race whose order is enumerated."""
    named = range(len(logs)) if tokens is None else tokens.tolist()
    race = PlayedRace([], Played(rng))
    race.rest = {int(token): math.exp(log) for token, log in zip(named, logs) if log > -math.inf}
    race.total = math.fsum(race.rest.values())
    return race


@pytest.mark.parametrize(
    "options", [{"masks": "never"}, {"masks": "first"}, {"budget": 2}, {"method": "chunks"}], ids=str
)
@pytest.mark.parametrize("name", ["ends", "twins", "edge"])
def test_rejection_composes_along_a_text(name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """AWRS along whole texts, all orders of all steps: E[w 1{x}] = p(x) [x in L], also with a validator."""
    case = TINY[name] if name == "edge" else replace(TINY[name], max_tokens=2)
    given = {**options, "method": {"chunks": awrs.Chunks(2)}.get(options.get("method", ""), awrs.DesRaj(terms=1))}
    monkeypatch.setattr(awrs, "ExponentialRace", played_race)
    text = case.constraint.vocabulary.text
    for accepts in (None, lambda data: data != b"a"):

        def run(rng: Any, accepts: Any = accepts) -> Draws:
            more = {"n": 1, "max_tokens": case.max_tokens, "accepts": accepts}
            return awrs.draw_awrs(case.lm, case.constraint, rng=rng, **more, **given)

        assert_same(mean_of(run), {x: p for x, p in case.law().items() if accepts is None or accepts(text(x))})


def test_rejection_as_a_move_composes_with_resampling(monkeypatch: pytest.MonkeyPatch) -> None:
    case = regular("small", TWO, "a?b?", 2, seed=3)
    monkeypatch.setattr(awrs, "ExponentialRace", played_race)
    more = {"n": 2, "max_tokens": 2, "threshold": 1.0, "move": Awrs(awrs.DesRaj(terms=1))}
    assert_same(mean_of(lambda rng: smc.draw_smc(case.lm, case.constraint, rng=rng, **more)), case.law())


# ---- the same draws, however the model is asked ----------------------------------------------------------------------


class OneByOne:
    """A model that looks at one prefix at a time, in its own order."""

    def __init__(self, lm: Any) -> None:
        self.lm, self.logs, self.start, self.follow, self.state = lm, *(getattr(lm, name, None) for name in MARKOV)

    def next_logprobs(self, prefixes: list[list[int]]) -> Any:
        rows = [self.lm.next_logprobs([prefix])[0] for prefix in reversed(prefixes)]
        return np.array(rows[::-1])


MARKOV = ("logs", "start", "follow", "state")


class Single(OneByOne):
    """A model that answers in float32."""

    def next_logprobs(self, prefixes: list[list[int]]) -> Any:
        return self.lm.next_logprobs(prefixes).astype(np.float32)


@pytest.mark.parametrize("name", ["counting", "pieces", "sums"])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_batches_and_precision_change_nothing(sampler: str, name: str) -> None:
    """One prefix at a time: the same draws to the last bit. float32: the same texts, weights within 1e-4."""
    case = cases()[name]
    plain = drawn(sampler, case, 7, 12)
    lm = model_of(sampler, case)
    assert list(drawn(sampler, case, 7, 12, lm=OneByOne(lm))) == list(plain)
    single = drawn(sampler, case, 7, 12, lm=Single(lm))
    assert [one.tokens for one in single] == [one.tokens for one in plain]
    for one, two in zip(single, plain):
        assert one.logprob == pytest.approx(two.logprob, abs=1e-4)
        assert one.log_weight == pytest.approx(two.log_weight, abs=1e-4)


class Unshared(Prefixes):
    """Every particle at a separate node: a node knows only its own checks."""

    def child(self, node: Any, move: Any) -> Any:
        node.children.clear()
        return super().child(node, move)


@pytest.mark.parametrize(
    "options", [{}, {"move": Awrs()}, {"threshold": 1.0, "resample": "residual"}], ids=["masked", "awrs", "resampled"]
)
@pytest.mark.parametrize("name", ["counting", "pieces", "sums"])
def test_shared_nodes_change_nothing(name: str, options: dict[str, Any]) -> None:
    """Populations on one trie, each on a separate trie, and on tries where no two particles share a node."""
    case = cases()[name]
    chosen = Settings.of(case.max_tokens, **options)

    def populations(make: Callable[[], Prefixes]) -> list[Any]:
        rng, out = np.random.default_rng(3), []
        for _ in range(4):
            found = smc.grow_population(make(), 6, chosen, rng)
            out.append([(node.tokens, node.logprob, w) for node, w in zip(found.nodes, found.log_weights.tolist())])
        return out

    together = Prefixes(case.lm, case.constraint)
    shared = populations(lambda: together)
    assert populations(lambda: Prefixes(case.lm, case.constraint)) == shared
    assert populations(lambda: Unshared(case.lm, case.constraint)) == shared


# ---- the same law, whatever is remembered ----------------------------------------------------------------------------


def test_eviction_does_not_change_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and distributions of particles, results of checkers, distributions of a trie: all are computed again."""
    case = cases()["pieces"]

    def all_draws() -> list[list[Any]]:
        judged = {"accepts": lambda text: len(text) != 4, "viable": lambda text: b"bbb" not in text}
        return [
            list(drawn("smc", case, 5, 4, particles=6)), list(drawn("pimh", case, 5, 6, particles=4)),
            list(drawn("awrs", case, 5, 20, **judged)), list(drawn("exact", case, 5, 20, **judged)),
            list(drawn("asap", case, 5, 20, **judged)),
        ]  # fmt: skip

    before = all_draws()
    case_of_race = odd()["three ends"]
    monkeypatch.setattr(particles, "MOST_BYTES", -1)
    monkeypatch.setattr(checkers, "REMEMBERED", 1)
    monkeypatch.setattr(SuccessTrie, "cache_distribution", lambda self, node, law: None)
    assert all_draws() == before
    # A race without replacement asks for several laws at once where one is missing, so its order is another one.
    assert_proper(case_of_race, [drawn("without_replacement", case_of_race, seed, 3) for seed in range(100)])


@pytest.mark.parametrize("taught", ["nothing", "by some draws", "by all"])
@pytest.mark.parametrize("sampler", ["asap", "exact", "without_replacement"])
def test_a_trained_trie_keeps_weights_proper(sampler: str, taught: str) -> None:
    case = odd()["three ends"]

    def trie(seed: int) -> SuccessTrie:
        out = SuccessTrie(case.max_tokens)
        n = {"nothing": 0, "by some draws": 3, "by all": 60}[taught]
        asap.draw_asap(
            case.lm, case.constraint, n=n, rng=np.random.default_rng(seed), max_tokens=case.max_tokens, trie=out
        )
        return out

    assert_proper(case, [drawn(sampler, case, seed, 3, trie=trie(seed + 5000)) for seed in range(40)])


@pytest.mark.parametrize("together", [1, 3, 40])
@pytest.mark.parametrize("max_bytes", [1 << 16, 256 << 20])
def test_the_exact_distribution_with_parallel_attempts_and_an_evicting_trie(max_bytes: int, together: int) -> None:
    case = cases()["traps"]
    trie = SuccessTrie(case.max_tokens, max_bytes=max_bytes)
    draws = drawn("exact", case, 1, 1200, trie=trie, together=together)
    assert g_test(Counter(one.tokens for one in draws), case.exact()) > PASS_ABOVE
    if max_bytes == 1 << 16:
        assert trie.nbytes < 4 * max_bytes


@pytest.mark.parametrize("name", ["ends", "twins", "split", "impossible"])
def test_forced_spans_do_not_change_the_distribution(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generation loop with drafts of forced text and without: the distribution of its texts, over every
    outcome, is that of masking, and so are the weights.
    """
    case = replace(TINY[name], max_tokens=6)

    def law_of() -> tuple[dict[tuple[int, ...], float], dict[tuple[int, ...], float]]:
        law: dict[tuple[int, ...], float] = defaultdict(float)
        mass: dict[tuple[int, ...], float] = defaultdict(float)
        for probability, out in outcomes(
            lambda rng: generation_loop.generate_text(case.lm, case.constraint, rng=rng, max_tokens=case.max_tokens)
        ):
            assert out.finish_reason == "complete"
            law[tuple(out.tokens)] += probability
            mass[tuple(out.tokens)] += probability * math.exp(out.log_weight)
        return law, mass

    drafted = law_of()
    assert_same(drafted[1], case.law())
    monkeypatch.setattr(ForcedDrafts, "propose", lambda *_: NO_DRAFT)
    plain = law_of()
    assert_same(drafted[0], plain[0])
    assert_same(drafted[1], plain[1])


def test_forced_spans_change_no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on a text with long forced spans, draw by draw: drafts are made, and accepted or dropped."""
    constraint = constrain.compile(Vocabulary.bytes(), regex='\\{"name": "[ab]{1,3}", "kind": (null|true)\\}')
    rows = np.random.default_rng(2).dirichlet(np.full(257, 0.3), 258)
    lm = ChainModel(np.log(np.maximum(rows, 1e-9) / np.maximum(rows, 1e-9).sum(axis=1, keepdims=True)), 1)

    def texts() -> list[Any]:
        runs = [
            generation_loop.generate_text(lm, constraint, rng=np.random.default_rng(seed), max_tokens=60)
            for seed in range(20)
        ]
        assert (sum(out.stats.forced_tokens for out in runs) > 0) == drafts
        return [(out.tokens, out.logprob, out.log_weight) for out in runs]

    drafts = True
    before = texts()
    drafts = False
    monkeypatch.setattr(ForcedDrafts, "propose", lambda *_: NO_DRAFT)
    assert texts() == before
    plain = masked_sampling.draw_masked(lm, constraint, n=1, rng=np.random.default_rng(0), max_tokens=60)[0]
    assert (list(plain.tokens), pytest.approx(plain.logprob), pytest.approx(plain.log_weight)) == before[0]


# ---- the same draws for the same seed --------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", [*SAMPLERS, "auto"])
def test_the_same_seed_gives_the_same_draws(sampler: str) -> None:
    """From a Constraint that was used before and from one that is fresh; another seed gives others."""
    used = cases()["pieces"]
    vocabulary = used.constraint.vocabulary
    fresh = replace(used, constraint=constrain.compile(vocabulary, regex="(ab|abba|b|bab|aabb)(ab)*"))
    one, two, other = drawn(sampler, used, 3, 15), drawn(sampler, fresh, 3, 15), drawn(sampler, used, 4, 15)
    assert list(one) == list(two)
    assert [draw.tokens for draw in one] != [draw.tokens for draw in other]
    assert {k: v for k, v in one.stats.items() if k != "trie_bytes"} == pytest.approx(
        {k: v for k, v in two.stats.items() if k != "trie_bytes"}, nan_ok=True
    )


@pytest.mark.parametrize("sampler", [*SAMPLERS, "auto"])
def test_the_same_seed_generates_the_same(sampler: str) -> None:
    case = cases()["pieces"]
    given = {
        "regex": "(ab|abba|b|bab|aabb)(ab)*", "tokenizer": case.constraint.vocabulary, "max_tokens": 6,
        "sampler": sampler, "n": 8,
    }  # fmt: skip
    lm = model_of(sampler, case)
    one, two, other = (constrain.generate(lm, **given, seed=seed) for seed in (3, 3, 4))
    assert one == two
    assert [text.tokens for text in one] != [text.tokens for text in other]
