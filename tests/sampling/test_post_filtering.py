"""A checker after the mask, for every sampler: the distribution is p(x) [x in L] [accepted]; canonical spellings;
merging.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict

import numpy as np
import pytest

from constrain import compile, generate
from constrain.base.errors import ConstrainError, LimitError, TokenRefused, UnsupportedError
from constrain.sampling import SAMPLERS, Canonical, Stepwise, ValidatorChecker, draw
from constrain.sampling.core.results import Draw, Draws
from constrain.sampling.post_filtering import PostFilter
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import PASS_ABOVE, PIECES, TWO, ChainModel, cases, g_test

CASE = cases()["counting"]
SPELLED = cases()["pieces"]
Tokens = tuple[int, ...]


def accepts(text: bytes) -> bool:
    """No text with three or more b in a row, and none that ends in a single one."""
    return b"bbb" not in text and not text.endswith(b"ab")


def viable(text: bytes) -> bool:
    return b"bbb" not in text


CHECKERS = {
    "late": lambda: accepts,
    "early": lambda: ValidatorChecker(TWO, accepts, viable),
    "by steps": lambda: Stepwise(
        TWO, b"", lambda text, more: text + more if viable(text + more) else None, accepts
    ),
}  # fmt: skip


def limited(law: dict[Tokens, float], check: object) -> dict[Tokens, float]:
    kept = {x: p for x, p in law.items() if check(b"".join(TWO.tokens[t] or b"" for t in x))}  # type: ignore[operator]
    z = math.fsum(kept.values())
    return {x: p / z for x, p in kept.items()}


EXPECTED = limited(CASE.law(), accepts)
Z = sum(p for x, p in CASE.law().items() if accepts(b"".join(TWO.tokens[t] or b"" for t in x)))


def drawn(sampler: str, n: int, check: object, seed: int = 0, **more: object) -> Draws:
    return draw(
        CASE.lm, CASE.constraint, sampler=sampler, n=n, rng=np.random.default_rng(seed), max_tokens=CASE.max_tokens,
        checker=check, **more,  # type: ignore[arg-type]
    )  # fmt: skip


LONG = (("pimh", "late"), ("without_replacement", "late"))
CHECKED = [
    pytest.param(name, kind, marks=[pytest.mark.slow] if name in ("smc", "exact") or (name, kind) in LONG else [])
    for name in SAMPLERS
    if name != "markov"
    for kind in CHECKERS
]
"""The weights of smc vary most, so its case takes 300 calls."""


@pytest.mark.parametrize(("sampler", "kind"), CHECKED)
def test_weights_are_proper_for_what_the_checker_accepts(sampler: str, kind: str) -> None:
    """By independent calls: their mean weights of an event have the mean p(event, L, accepted)."""
    more = {"particles": 4, "burn": 0} if sampler == "pimh" else {"particles": 4} if sampler == "smc" else {}
    calls, size = (30, 8) if sampler != "pimh" else (60, 2)
    if (
        sampler == "smc"
    ):  # twists that learn a constraint without its checker are right on average, by rare large weights
        calls = 300
    totals, events = [], []
    for seed in range(calls):
        made = drawn(sampler, size, CHECKERS[kind](), seed, **more)
        assert all(one.tokens in EXPECTED for one in made if one.log_weight > -math.inf)
        weights = np.exp(made.log_weights)
        totals.append(float(weights.sum()) / made.made)  # those that did not end weigh nothing
        events.append(sum(w * (len(one.tokens) < 7) for one, w in zip(made, weights)) / made.made)
    truth = Z * sum(p for x, p in EXPECTED.items() if len(x) < 7)
    means = [(totals, Z)] if sampler == "pimh" else [(totals, Z), (events, truth)]
    for values, expected in means:
        assert abs(np.mean(values) - expected) < 4.5 * np.std(values) / math.sqrt(calls) + 1e-12


def test_exact_draws_have_the_target_distribution_and_masked_ones_not() -> None:
    for kind, make in CHECKERS.items():
        assert g_test(Counter(one.tokens for one in drawn("exact", 800, make())), EXPECTED) > PASS_ABOVE, kind
    masked = drawn("masked", 2500, CHECKERS["early"]())
    assert g_test(Counter(one.tokens for one in masked if one.log_weight > -math.inf), EXPECTED) < PASS_ABOVE


def test_dead_ends_are_found_once() -> None:
    """With a memory of it, later draws do not go where the checker has refused; the first ones had to."""
    guarded = PostFilter(CASE.constraint, ValidatorChecker(TWO, accepts, viable), dead={})
    given = {"n": 60, "max_tokens": CASE.max_tokens}
    from constrain.sampling.core import masked_sampling

    first = masked_sampling.draw_masked(CASE.lm, guarded, rng=np.random.default_rng(0), **given)  # type: ignore[arg-type]
    for seed in range(1, 12):
        masked_sampling.draw_masked(CASE.lm, guarded, rng=np.random.default_rng(seed), **given)  # type: ignore[arg-type]
    last = masked_sampling.draw_masked(CASE.lm, guarded, rng=np.random.default_rng(20), **given)  # type: ignore[arg-type]
    assert first.stats["dead_ends"] > 0.2
    assert last.stats["dead_ends"] < first.stats["dead_ends"] / 2
    asked = guarded.second.calls  # type: ignore[attr-defined]
    masked_sampling.draw_masked(CASE.lm, guarded, rng=np.random.default_rng(20), **given)  # type: ignore[arg-type]
    assert guarded.second.calls == asked  # type: ignore[attr-defined]


def test_its_mask_and_its_answers_agree() -> None:
    guarded = PostFilter(CASE.constraint, ValidatorChecker(TWO, accepts, viable), dead={})
    at = guarded.matcher()
    for token in (1, 1):
        at.advance(token)
    other = at.fork()
    other.advance(1)  # bbb: allowed by the mask, refused by the checker
    assert not other.mask().any()
    assert not other.is_complete
    assert not other.allows(0)
    assert at.mask()[0] == 0b001  # and now the mask knows
    assert not at.allows(1)
    with pytest.raises(TokenRefused):
        at.advance(1)
    assert at.tokens == [1, 1]


def test_a_checker_that_refuses_everything_and_an_invalid_checker() -> None:
    with pytest.raises(LimitError):
        drawn("exact", 1, lambda text: False)
    assert drawn("masked", 5, lambda text: False).ess == 0
    with pytest.raises(ConstrainError, match="is not a checker"):
        drawn("masked", 1, 3)
    with pytest.raises(ConstrainError, match="different vocabularies"):
        drawn("masked", 1, ValidatorChecker(PIECES))
    with pytest.raises(UnsupportedError, match="does not support checkers"):
        drawn("markov", 1, accepts)
    with pytest.raises(ConstrainError, match="failed on"):
        drawn("exact", 1, lambda text: 1 / 0)


def test_generate_takes_a_check() -> None:
    given = {"regex": "(b*a){3}b+", "tokenizer": TWO, "max_tokens": 10, "seed": 1}
    for sampler in ("exact", "auto", "without_replacement"):
        made = generate(CASE.lm, **given, sampler=sampler, n=6, check=lambda text: text.endswith("bb"))
        assert all(one.text.endswith("bb") for one in made if one.finish_reason == "complete")
        assert any(one.finish_reason == "complete" for one in made)
    assert generate(CASE.lm, **given, sampler="exact", check=ValidatorChecker(TWO, accepts, viable)).text
    assert generate(CASE.lm, **given, check=lambda text: text.endswith("bb"), retries=100).text.endswith("bb")
    with pytest.raises(ConstrainError, match="check is 3"):
        generate(CASE.lm, **given, sampler="exact", check=3)


# ---- canonical spellings ------------------------------------------------------------------------------------------

MERGES = [(b"a", b"b"), (b"b", b"a"), (b"ab", b"b")]


def merged(data: bytes) -> list[int]:
    """Byte pair encoding by MERGES: the earliest merge first, from the left."""
    parts = [bytes([byte]) for byte in data]
    for pair in MERGES:
        i = 0
        while i + 1 < len(parts):
            if (parts[i], parts[i + 1]) == pair:
                parts[i : i + 2] = [pair[0] + pair[1]]
            i += 1
    return [PIECES.tokens.index(part) for part in parts]


@pytest.mark.parametrize("checked", ["end", "pairs"])
@pytest.mark.parametrize("sampler", ["exact", "masked", "smc", "awrs"])
def test_canonical_spellings_have_the_distribution_of_enumeration(sampler: str, checked: str) -> None:
    law = {x: p for x, p in SPELLED.law().items() if merged(b"".join(PIECES.tokens[t] or b"" for t in x)) == list(x)}
    z = math.fsum(law.values())
    assert 0 < len(law) < len(SPELLED.law())
    made = draw(
        SPELLED.lm, SPELLED.constraint, sampler=sampler, n=1200, rng=np.random.default_rng(0),
        max_tokens=SPELLED.max_tokens, checker=Canonical(PIECES, respell=merged, checked=checked),
    )  # fmt: skip
    alive = [one for one in made if one.log_weight > -math.inf]
    assert {one.tokens for one in alive} <= set(law)
    assert len({one.text for one in alive}) == len({one.tokens for one in alive})
    weights = np.concatenate([np.exp(made.log_weights), np.zeros(made.unfinished)])  # those weigh nothing
    if sampler == "exact":
        assert g_test(Counter(one.tokens for one in made), {x: p / z for x, p in law.items()}) > PASS_ABOVE
    elif sampler != "smc":  # whose weights are not independent
        assert abs(weights.mean() - z) < 4.5 * weights.std() / math.sqrt(len(weights))


def test_canonical_by_the_tokenizer_at_hand() -> None:
    """Without an encoder, a Vocabulary chooses the fewest tokens; `spellings` is the short form."""
    made = draw(
        SPELLED.lm, SPELLED.constraint, sampler="exact", n=50, rng=np.random.default_rng(0),
        max_tokens=SPELLED.max_tokens, spellings="canonical",
    )  # fmt: skip
    for one in made:
        assert list(one.tokens) == PIECES.tokenize(one.text.encode())
    with pytest.raises(ValueError, match="spellings"):
        draw(SPELLED.lm, SPELLED.constraint, rng=np.random.default_rng(0), max_tokens=6, spellings="all of them")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="checked"):
        Canonical(PIECES, checked="never")


# ---- merging -------------------------------------------------------------------------------------------------------


def test_spellings_of_a_text_are_added_up() -> None:
    """All texts, each with its mass: the sums are the distribution of texts itself."""
    made = draw(
        SPELLED.lm, SPELLED.constraint, sampler="masked", n=2000, rng=np.random.default_rng(0),
        max_tokens=SPELLED.max_tokens,
    )  # fmt: skip
    law: dict[str, float] = defaultdict(float)
    spellings: Counter[str] = Counter()
    for x, p in SPELLED.exact().items():
        law[PIECES.decode(x)] += p
        spellings[PIECES.decode(x)] += 1
    assert max(spellings.values()) > 2
    found = made.by_text()
    assert sum(found.values()) == pytest.approx(1)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert sum(abs(found.get(text, 0.0) - p) for text, p in law.items()) / 2 < 0.1
    best = max(law, key=lambda text: law[text])
    assert next(iter(found)) == best


def test_spellings_of_a_value_are_added_up() -> None:
    draws = Draws.of(
        Draw((), text, 0.0, math.log(weight))
        for text, weight in [('{"a":1,"b":2}', 1), ('{"b": 2.0, "a": 1}', 2), ("1", 1.5), ("true", 1), ("no", 0.5)]
    )
    assert draws.by_value() == [
        ({"a": 1, "b": 2}, 0.5),
        (1, 0.25),
        (True, pytest.approx(1 / 6)),
        ("no", pytest.approx(1 / 12)),
    ]
    dead = Draws.of([Draw((), "1", 0.0, -math.inf)])
    assert dead.by_text() == {}
    assert dead.by_value() == []


def test_real_json() -> None:
    vocabulary = Vocabulary.bytes()
    lm = ChainModel(np.log(np.full((vocabulary.size + 1, vocabulary.size), 1 / vocabulary.size)), 1)
    constraint = compile(vocabulary, schema={"enum": [1, True]})
    made = draw(lm, constraint, sampler="exact", n=30, rng=np.random.default_rng(0), max_tokens=5)
    assert {json.dumps(value) for value, _ in made.by_value()} <= {"1", "true"}


def test_the_oldest_dead_ends_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is on prefixes: further tokens after a stored one are free; an end token is never dead."""
    monkeypatch.setattr(sys.modules[PostFilter.__module__], "REMEMBERED", 3)
    dead: dict[Tokens, set[int]] = {}
    guarded = PostFilter(CASE.constraint, ValidatorChecker(TWO, accepts, viable), dead=dead)
    for prefix in ((), (0,), (1, 0), (0, 0, 0), (1, 1), (0, 0, 1), (0, TWO.eos_ids[0])):
        guarded.mark_dead(prefix)
        assert len(dead) <= 3
    assert dead == {(): {0}, (1,): {0, 1}, (0, 0): {0, 1}}
    guarded.mark_dead((0, 1, 0))
    assert dead == {(1,): {0, 1}, (0, 0): {0, 1}, (0, 1): {0}}
    PostFilter(CASE.constraint, ValidatorChecker(TWO, accepts, viable)).mark_dead((0,))


def test_the_shortest_completion_is_that_of_the_constraint() -> None:
    matcher, plain = (
        PostFilter(CASE.constraint, ValidatorChecker(TWO, accepts, viable)).matcher(),
        CASE.constraint.matcher(),
    )
    for token in (0, 1, 0, 0):
        assert matcher.shortest_completion() == plain.shortest_completion() is not None
        assert matcher.shortest_completion(1) == plain.shortest_completion(1)
        assert matcher.state == plain.state
        if not plain.allows(token):
            break
        matcher.advance(token)
        plain.advance(token)
