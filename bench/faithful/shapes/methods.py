"""The methods that the AWRS paper compares, with its numbers of particles, and exact sampling.

Each returns the answers that a user would get, one for each call, or none. The target of all of them is p given L and
given that the text ends in time.
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

from .tasks import Task, ValidatedConstraint, compile_any_text

__all__ = ["METHODS", "Answer", "Method"]

Rng = np.random.Generator


@dataclass(frozen=True)
class Answer:
    """text: None if there is no answer. logprob: of the text under the model, nats."""

    text: bytes | None
    logprob: float


NO_ANSWER = Answer(None, -np.inf)


def build_answer(task: Task, draw: Draw | None) -> Answer:
    """Convert a draw to an answer."""
    if draw is None or draw.log_weight == -np.inf:
        return NO_ANSWER
    return Answer(task.mask.vocabulary.text(draw.tokens), draw.logprob)


def get_constraint(task: Task) -> Constraint:
    """Return the constraint with the validators, in the type that samplers declare."""
    return cast(Constraint, task.constraint)


def choose_by_weight(draws: Sequence[Draw], rng: Rng) -> Draw | None:
    """Draw one in proportion to its weight; None if all weights are 0."""
    weights = Draws.of(draws).weights
    return draws[int(rng.choice(len(draws), p=weights))] if weights.any() else None


def answer_without_constraint(task: Task, n: int, rng: Rng) -> list[Answer]:
    """Answer with texts of the unconstrained model."""
    draws = masked_sampling.draw_masked(
        task.lm, compile_any_text(task.mask.vocabulary), n=n, rng=rng, max_tokens=task.max_tokens
    )
    return [build_answer(task, draw) for draw in draws]


def answer_best_of_ten(task: Task, n: int, rng: Rng) -> list[Answer]:
    """Answer by rejection: the first of ten texts of the unconstrained model that is in L."""
    out = []
    for _ in range(n):
        good = [a for a in answer_without_constraint(task, 10, rng) if a.text is not None and task.is_in(a.text)]
        out.append(good[0] if good else NO_ANSWER)
    return out


def answer_locally(task: Task, n: int, rng: Rng) -> list[Answer]:
    """Answer by locally constrained decoding: token by token, weights ignored."""
    return [build_answer(task, draw) for draw in draw_locally(task, n, rng)]


def draw_locally(task: Task, n: int, rng: Rng) -> Draws:
    """Draw by locally constrained decoding: from masks, or by AWRS where validators would have to check every token."""
    if isinstance(task.constraint, ValidatedConstraint):
        return awrs.draw_awrs(task.lm, get_constraint(task), n=n, rng=rng, max_tokens=task.max_tokens)
    return masked_sampling.draw_masked(task.lm, task.mask, n=n, rng=rng, max_tokens=task.max_tokens)


def answer_by_weight(task: Task, n: int, rng: Rng) -> list[Answer]:
    """Answer by importance resampling: one of ten draws of `draw_locally`, in proportion to its weight."""
    draws = draw_locally(task, 10 * n, rng)
    return [build_answer(task, choose_by_weight(draws[10 * i : 10 * i + 10], rng)) for i in range(n)]


def answer_by_unmasked_smc(task: Task, n: int, rng: Rng) -> list[Answer]:
    """Answer with ten particles of the unconstrained model; the constraint is their twist and critic only."""
    vocabulary = task.mask.vocabulary

    def twist(matcher: Matcher, tokens: Sequence[int], left: int) -> float:
        return 0.0 if task.is_viable(vocabulary.text(tokens)) else -np.inf

    def critic(text: str) -> float:
        return 0.0 if task.is_in(text.encode()) else -np.inf

    draws = smc.draw_smc(
        task.lm, compile_any_text(vocabulary), n=n, rng=rng, max_tokens=task.max_tokens, particles=10, threshold=0.9,
        twist=twist, critic=critic,
    )  # fmt: skip
    return [build_answer(task, draw) for draw in draws]


def build_awrs_smc(particles: int, twisted: bool = False) -> Callable[[Task, int, Rng], list[Answer]]:
    """Return the method SMC with AWRS as the move, with the twist of the task or without one."""

    def answers(task: Task, n: int, rng: Rng) -> list[Answer]:
        estimate = task.twist if twisted else None

        def twist(matcher: Matcher, tokens: Sequence[int], left: int) -> float:
            assert estimate is not None
            return estimate(task.mask.vocabulary.text(tokens))

        draws = smc.draw_smc(
            task.lm,
            get_constraint(task),
            n=n,
            rng=rng,
            max_tokens=task.max_tokens,
            particles=particles,
            move=Awrs(),
            twist=None if estimate is None else twist,
        )
        return [build_answer(task, draw) for draw in draws]

    return answers


def answer_exactly(task: Task, n: int, rng: Rng) -> list[Answer]:
    """Answer by trie rejection over the mask, followed by the validators."""
    options: dict[str, Any] = {"trie": SuccessTrie(task.max_tokens), "accepts": task.accepts, "viable": task.viable}
    try:
        draws = trie_rejection.draw_exact(
            task.lm,
            task.mask,
            n=n,
            rng=rng,
            max_tokens=task.max_tokens,
            seconds=EXACT_SECONDS,
            attempts=5000,
            **options,
        )  # fmt: skip
    except LimitError:
        return [NO_ANSWER] * n
    found = [build_answer(task, draw) for draw in draws]
    return found + [NO_ANSWER] * (n - len(found))


EXACT_SECONDS = 30.0
"""Time limit of `exact` for a task; answers that are missing then count as wrong."""


@dataclass(frozen=True)
class Method:
    """answers: function of (task, n, rng) that returns n answers."""

    name: str
    answers: Callable[[Task, int, Rng], list[Answer]]


METHODS = [
    Method("model alone", answer_without_constraint),
    Method("best of 10", answer_best_of_ten),
    Method("masked", answer_locally),
    Method("masked, 1 of 10 by weight", answer_by_weight),
    Method("SMC 10, judged", answer_by_unmasked_smc),
    Method("AWRS-SMC 5", build_awrs_smc(5)),
    Method("AWRS-SMC 32", build_awrs_smc(32)),
    Method("AWRS-SMC 32, twist", build_awrs_smc(32, twisted=True)),
    Method("exact", answer_exactly),
]
