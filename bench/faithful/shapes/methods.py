"""The methods that the AWRS paper compares, with its numbers of particles, and exact draws beside them.

Each gives one answer at a time, as a user would get it, or None. All are after the same thing: p given L, in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from constrain.base.errors import LimitError
from constrain.engine.constraint import Constraint
from constrain.engine.matcher import Matcher
from constrain.sampling import Draw, Draws, awrs, smc, trie_rejection
from constrain.sampling.core import masked_sampling
from constrain.sampling.particles import Awrs
from constrain.sampling.success_trie import SuccessTrie

from .tasks import Guarded, Task, allow_any_text

__all__ = ["METHODS", "Answer", "Method"]

Rng = np.random.Generator


@dataclass(frozen=True)
class Answer:
    """text: what a user gets, None for nothing; logprob: of it under the model, nats."""

    text: bytes | None
    logprob: float


NONE = Answer(None, -np.inf)


def build_answer(task: Task, draw: Draw | None) -> Answer:
    """Convert a draw to an answer."""
    if draw is None or draw.log_weight == -np.inf:
        return NONE
    vocabulary = task.mask.vocabulary
    return Answer(b"".join(vocabulary.tokens[token] or b"" for token in draw.tokens), draw.logprob)


def get_constraint(task: Task) -> Constraint:
    """Mask and judges, as what samplers take."""
    return cast(Constraint, task.guarded)


def choose_by_weight(draws: Sequence[Draw], rng: Rng) -> Draw | None:
    """One, in proportion to its weight."""
    weights = Draws.of(draws).weights
    return draws[int(rng.choice(len(draws), p=weights))] if weights.any() else None


def answer_without_constraint(task: Task, n: int, rng: Rng) -> list[Answer]:
    """Answer with texts of the unconstrained model."""
    draws = masked_sampling.draw_masked(
        task.lm, allow_any_text(task.mask.vocabulary), n=n, rng=rng, max_tokens=task.max_tokens
    )
    return [build_answer(task, draw) for draw in draws]


def answer_best_of_ten(task: Task, n: int, rng: Rng) -> list[Answer]:
    """Ten texts of the model alone, the first that is in L: rejection with some patience."""
    out = []
    for _ in range(n):
        good = [a for a in answer_without_constraint(task, 10, rng) if a.text is not None and task.is_in(a.text)]
        out.append(good[0] if good else NONE)
    return out


def answer_locally(task: Task, n: int, rng: Rng) -> list[Answer]:
    """Locally constrained decoding: token by token, weights thrown away."""
    return [build_answer(task, draw) for draw in draw_locally(task, n, rng)]


def draw_locally(task: Task, n: int, rng: Rng) -> Draws:
    """By first accept where judges are asked, whose law is the mask's."""
    if isinstance(task.guarded, Guarded):
        return awrs.draw_awrs(task.lm, get_constraint(task), n=n, rng=rng, max_tokens=task.max_tokens)
    return masked_sampling.draw_masked(task.lm, task.mask, n=n, rng=rng, max_tokens=task.max_tokens)


def answer_by_weight(task: Task, n: int, rng: Rng) -> list[Answer]:
    """Ten of those, one by weight: importance resampling."""
    draws = draw_locally(task, 10 * n, rng)
    return [build_answer(task, choose_by_weight(draws[10 * i : 10 * i + 10], rng)) for i in range(n)]


def answer_by_judged_smc(task: Task, n: int, rng: Rng) -> list[Answer]:
    """Ten particles of the model alone; the constraint only judges them, as twist and critic."""
    vocabulary = task.mask.vocabulary

    def text_of(tokens: Sequence[int]) -> bytes:
        return b"".join(vocabulary.tokens[token] or b"" for token in tokens)

    def twist(matcher: Matcher, tokens: Sequence[int], left: int) -> float:
        return 0.0 if task.may_become(text_of(tokens)) else -np.inf

    def critic(text: str) -> float:
        return 0.0 if task.is_in(text.encode()) else -np.inf

    draws = smc.draw_smc(
        task.lm, allow_any_text(vocabulary), n=n, rng=rng, max_tokens=task.max_tokens, particles=10, threshold=0.9,
        twist=twist, critic=critic,
    )  # fmt: skip
    return [build_answer(task, draw) for draw in draws]


def build_awrs_smc(particles: int, guessing: bool = False) -> Callable[[Task, int, Rng], list[Answer]]:
    """AWRS as the move; with the task's guess as twist, or without."""

    def answers(task: Task, n: int, rng: Rng) -> list[Answer]:
        guess, vocabulary = task.guess if guessing else None, task.mask.vocabulary

        def twist(matcher: Matcher, tokens: Sequence[int], left: int) -> float:
            assert guess is not None
            return guess(b"".join(vocabulary.tokens[token] or b"" for token in tokens))

        draws = smc.draw_smc(
            task.lm,
            get_constraint(task),
            n=n,
            rng=rng,
            max_tokens=task.max_tokens,
            particles=particles,
            move=Awrs(),
            twist=None if guess is None else twist,
        )
        return [build_answer(task, draw) for draw in draws]

    return answers


def answer_exactly(task: Task, n: int, rng: Rng) -> list[Answer]:
    """Trie rejection over the mask, judges behind it."""
    options: dict[str, Any] = {"trie": SuccessTrie(task.max_tokens), "accepts": task.accepts, "viable": task.viable}
    try:
        draws = trie_rejection.draw_exact(
            task.lm, task.mask, n=n, rng=rng, max_tokens=task.max_tokens, seconds=TIME, attempts=5000, **options
        )
    except LimitError:
        return [NONE] * n
    found = [build_answer(task, draw) for draw in draws]
    return found + [NONE] * (n - len(found))


TIME = 30.0
"""Seconds that `exact` has for a task: beyond, what is missing counts as wrong."""


@dataclass(frozen=True)
class Method:
    """answers: n of them to a task."""

    name: str
    answers: Callable[[Task, int, Rng], list[Answer]]


METHODS = [
    Method("model alone", answer_without_constraint),
    Method("best of 10", answer_best_of_ten),
    Method("masked", answer_locally),
    Method("masked, 1 of 10 by weight", answer_by_weight),
    Method("SMC 10, judged", answer_by_judged_smc),
    Method("AWRS-SMC 5", build_awrs_smc(5)),
    Method("AWRS-SMC 32", build_awrs_smc(32)),
    Method("AWRS-SMC 32, twist", build_awrs_smc(32, guessing=True)),
    Method("exact", answer_exactly),
]
