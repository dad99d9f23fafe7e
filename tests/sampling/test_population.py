"""Populations of particles beside a plain account of them: weights as products, lines, and when they are resampled."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from constrain import compile
from constrain.base.errors import ArgumentError, LimitError, UnsupportedError
from constrain.engine.matcher import Matcher
from constrain.sampling import smc
from constrain.sampling.particles import Awrs, Masked, Move, ParticleNode, Prefixes
from constrain.sampling.populations import Population, Settings
from constrain.sampling.smc import grow_population
from constrain.sampling.token_rejection import DesRaj
from constrain.sampling.twists import FAR, Shortest
from tests.markov_factory import LETTERS, ChainModel, outcomes, regular

ANY = compile(vocabulary=LETTERS, regex="[abc]*")
MODEL = ChainModel.random(LETTERS, 1, 0)
END = LETTERS.eos_ids[0]
STEPS = st.tuples(st.sampled_from([0, 1, END, None]), st.sampled_from([0.1, 0.3, 0.7, 1.0, 2.5]))
VALUES = st.dictionaries(st.text("ab", max_size=2), st.sampled_from([0.0, 0.2, 0.5, 3.0]), max_size=3)


class Scripted:
    """A move that says for each depth, call by call, which token comes (None: none) and what it weighs."""

    def __init__(self, script: list[list[tuple[int | None, float]]]) -> None:
        self.script, self.calls = script, [0] * len(script)

    def next(self, depth: int) -> tuple[int | None, float]:
        self.calls[depth] += 1
        return self.script[depth][(self.calls[depth] - 1) % len(self.script[depth])]

    def __call__(self, prefixes: Prefixes, node: ParticleNode, left: int, rng: np.random.Generator) -> Move:
        token, weight = self.next(node.depth)
        return Move(None, -np.inf, -np.inf) if token is None else Move(token, 0.0, math.log(weight))


def in_turn(weights: Sequence[float], n: int) -> list[int]:
    """The ones that weigh anything, one after the other."""
    alive = [i for i, weight in enumerate(weights) if weight > 0]
    return sorted(alive[k % len(alive)] for k in range(n))


def log(value: float) -> float:
    return math.log(value) if value else -math.inf


class Account:
    """A population as its definition says: weights in plain numbers, one particle after the other."""

    def __init__(self, script: Scripted, n: int, threshold: float, twist: dict[str, float], critic: dict[str, float]):
        self.texts, self.ended, self.weights = [""] * n, [False] * n, [1.0] * n
        self.guesses, self.lines, self.resampled = [1.0] * n, list(range(n)), 0
        for depth in range(len(script.script)):
            live = [i for i in range(n) if not self.ended[i] and self.weights[i]]
            for i in live:
                token, weight = script.next(depth)
                if token is None:
                    self.weights[i] = 0.0
                    continue
                self.ended[i] = token == END
                self.texts[i] += "" if token == END else "abc"[token]
                value = (critic if token == END else twist).get(self.texts[i], 1.0)
                self.weights[i] *= weight * value / self.guesses[i]
                self.guesses[i] = 1.0 if token == END else value
            if not live or not any(self.weights):
                break
            size = sum(self.weights) ** 2 / sum(weight**2 for weight in self.weights)
            assume(abs(size - threshold * n) > 1e-9)
            unfinished = any(weight and not ended for weight, ended in zip(self.weights, self.ended))
            if unfinished and size < threshold * n:
                chosen = in_turn(self.weights, n)
                for name in ("texts", "ended", "guesses", "lines"):
                    setattr(self, name, [getattr(self, name)[i] for i in chosen])
                self.weights = [sum(self.weights) / n] * n
                self.resampled += 1


@settings(max_examples=150, deadline=None)
@given(
    script=st.lists(st.lists(STEPS, min_size=1, max_size=5), min_size=1, max_size=4),
    n=st.integers(1, 5), threshold=st.sampled_from([0.0, 0.37, 0.77, 1.0]), twist=VALUES, critic=VALUES,
)  # fmt: skip
def test_populations_are_grown_by_the_book(
    script: list[list[tuple[int | None, float]]], n: int, threshold: float, twist: dict[str, float],
    critic: dict[str, float],
) -> None:  # fmt: skip
    wanted = Account(Scripted(script), n, threshold, twist, critic)
    asked: Counter[str] = Counter()

    def guess(matcher: Matcher, tokens: Sequence[int], left: int) -> float:
        text = "".join("abc"[token] for token in tokens)
        asked[text] += 1
        assert left == len(script) - len(tokens)
        return log(twist.get(text, 1.0))

    def resample(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        assert weights.sum() == pytest.approx(1)
        return np.array(in_turn(weights.tolist(), n))

    how = Settings.of(
        len(script), move=Scripted(script), resample=resample, threshold=threshold, twist=guess,
        critic=lambda text: log(critic.get(text, 1.0)),
    )  # fmt: skip
    with np.errstate(divide="ignore"):
        found = grow_population(Prefixes(MODEL, ANY), n, how, np.random.default_rng(0))
    assert np.exp(found.log_weights) == pytest.approx(np.array(wanted.weights))
    alive = [i for i in range(n) if wanted.weights[i]]
    assert [("".join("abc"[t] for t in node.tokens), node.ended) for node in map(found.nodes.__getitem__, alive)] == [
        (wanted.texts[i], wanted.ended[i]) for i in alive
    ]
    assert found.lines == len({wanted.lines[i] for i in alive})
    assert found.resampled == wanted.resampled
    assert set(asked.values()) <= {1}


@settings(max_examples=40, deadline=None)
@given(raw=st.lists(st.sampled_from([0.0, 0.2, 1.0, 5.0]), min_size=1, max_size=5))
def test_one_is_picked_by_weight(raw: list[float]) -> None:
    root = Prefixes(MODEL, ANY).root
    nodes = [ParticleNode(root, i, root.matcher, 0.0, False) for i in range(len(raw))]
    population = Population(nodes, np.array([log(weight) for weight in raw]), 1, 0)
    assert math.exp(population.log_z) == pytest.approx(sum(raw) / len(raw))
    chances = [0.0] * len(raw)
    for probability, node in outcomes(population.pick):
        if node is not None:
            chances[nodes.index(node)] += probability
    assert chances == pytest.approx([weight / max(sum(raw), 1e-9) for weight in raw])


@pytest.mark.parametrize(
    ("error", "wrong"),
    [
        (LimitError, {"max_tokens": 0}),
        (ArgumentError, {"threshold": -0.1}),
        (ArgumentError, {"threshold": 1.1}),
        (ArgumentError, {"threshold": math.nan}),
        (UnsupportedError, {"resample": "none"}),
        (TypeError, {"resample": 5}),
        (UnsupportedError, {"resample": "without_replacement", "move": Awrs()}),
    ],
)
def test_settings_are_looked_at(error: type[Exception], wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"max_tokens": 1, **wrong}
    with pytest.raises(error):
        Settings.of(given.pop("max_tokens"), **given)


@pytest.mark.parametrize("right", [{"threshold": 0}, {"threshold": 1}, {"resample": "without_replacement"}])
def test_settings_at_their_limits_are_accepted(right: dict[str, Any]) -> None:
    assert isinstance(Settings.of(1, **right).move, Masked)


@pytest.mark.parametrize("n", [0, 1])
def test_no_particles_are_refused_whatever_is_drawn(n: int) -> None:
    with pytest.raises(ArgumentError, match="particles"):
        smc.draw_smc(MODEL, ANY, n=n, rng=np.random.default_rng(0), max_tokens=3, particles=0)


def test_checks_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    case, asked = regular("small", LETTERS, "(ab?)*c|b", 6, seed=2), []
    allows = Matcher.allows

    def counted(matcher: Matcher, token: int) -> bool:
        asked.append(token)
        return allows(matcher, token)

    monkeypatch.setattr(Matcher, "allows", counted)
    found = smc.draw_smc(
        case.lm, case.constraint, n=20, rng=np.random.default_rng(0), max_tokens=6, move=Awrs(DesRaj(), budget=3)
    )
    assert found.stats["checks"] == len(asked) > 20


# ---- twists ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("price", [0.0, 0.5, 2.0])
def test_a_price_for_each_byte_to_come(price: float) -> None:
    matcher, twist = compile(vocabulary=LETTERS, regex="abc|b").matcher(), Shortest(price)
    assert twist(matcher, [], 5) == -price
    matcher.advance(0)
    assert twist(matcher, [0], 4) == -2 * price
    assert 2 * price < FAR
    for wrong in (-0.1, math.inf, math.nan):
        with pytest.raises(ArgumentError, match="price"):
            Shortest(wrong)
