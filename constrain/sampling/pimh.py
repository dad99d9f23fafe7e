"""PIMH, particle independent Metropolis-Hastings: a chain of SMC populations whose law is exact for any size of them.

A text x drawn from a population by weight, together with the population's estimate of Z, stands for the target times
Z-hat / Z. So with (x, Z-hat) in hand and a fresh (x', Z-hat'), going over with probability min(1, Z-hat' / Z-hat)
leaves p given L invariant (Andrieu, Doucet & Holenstein 2010), with one particle as with a thousand: more of them only
make the chain forget its start sooner, and neighbours less alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..base.errors import LimitError
from .language_model import LanguageModel
from .particles import Mover, Node, Prefixes
from .populations import Critic, Population, Settings
from .resampling import Resampler
from .results import Draw, Draws, log_sum
from .sampler_arguments import check, check_counts, check_masks
from .smc import draw_of, populate

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from .twists import Twist

__all__ = ["State", "draw", "step"]

ATTEMPTS = 1000
"""Populations that may die before the chain has a first text."""


class State(NamedTuple):
    """Where a chain is: a finished text (None: none yet) and the log of its population's estimate of Z."""

    node: Node | None
    log_z: float


def step(state: State, population: Population, rng: np.random.Generator) -> State:
    """The next state, given a fresh population."""
    if population.log_z == -np.inf:
        return state
    other = State(population.pick(rng), population.log_z)
    ratio = float(np.exp(min(other.log_z - state.log_z, 0.0)))
    return other if ratio >= 1 or rng.random() < ratio else state


def settled_at(log_zs: list[float], planned: int) -> int | None:
    """How many of the estimates of Z, from the first on, have Z as their mean; None: not yet known.

    Those that were planned, whatever they are. But a chain whose first populations die goes on until it has a text, and
    what was seen until then is no longer fair: so where fewer than two of the planned ones live, all before the second
    one that does, as a count until a second success gives an unbiased rate (Haldane 1945).
    """
    alive = [number for number, log_z in enumerate(log_zs) if log_z > -np.inf]
    if len(log_zs) >= planned and sum(number < planned for number in alive) >= 2:
        return planned
    return alive[1] if len(alive) >= 2 and len(log_zs) >= planned else None


def draw(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int,
    particles: int = 16,
    burn: int = 10,
    thin: int = 1,
    attempts: int = ATTEMPTS,
    move: Mover | None = None,
    resample: str | Resampler = "systematic",
    threshold: float = 0.5,
    twist: Twist | None = None,
    critic: Critic | None = None,
) -> Draws:
    """n texts of one chain, every `thin`-th after the first `burn`: the next may be the same as the one before.

    particles, move ...: as of `smc.draw`. Each draw weighs a mean of estimates of Z that is unbiased (`settled_at`);
    the law is exact as the chain goes on, after a start that it forgets at a rate of (1 - acceptance). stats:
    acceptance, populations, model_calls, contexts, checks. Raises LimitError if `attempts` populations died at the
    start.
    """
    check(lm, constraint, n, rng, max_tokens)
    check_masks(constraint, "pimh")
    check_counts(1, particles=particles, thin=thin, attempts=attempts)
    check_counts(0, burn=burn)
    settings = Settings.of(max_tokens, move=move, resample=resample, threshold=threshold, twist=twist, critic=critic)
    prefixes = Prefixes(lm, constraint)
    state, log_zs, kept, moved = State(None, -np.inf), list[float](), list[State](), 0
    planned = burn + 1 + (n - 1) * thin
    while len(kept) < n or (n and settled_at(log_zs, planned) is None and len(log_zs) < planned + attempts):
        population = populate(prefixes, particles, settings, rng)
        log_zs.append(population.log_z)
        before, state = state, step(state, population, rng)
        moved += state is not before
        if state.node is None:
            if len(log_zs) >= attempts:
                raise LimitError(
                    f"no text was found: all of {attempts} populations of {particles} particles died",
                    hint="Raise particles or max_tokens, or give a twist.",
                )
            continue
        if len(kept) < n and len(log_zs) > burn and (len(log_zs) - burn - 1) % thin == 0:
            kept.append(state)
    used = settled_at(log_zs, planned) or len(log_zs)
    weight = log_sum(np.array(log_zs[:used])) - float(np.log(max(used, 1)))
    draws: list[Draw] = [draw_of(prefixes, state.node, weight) for state in kept]
    return Draws.of(
        draws,
        acceptance=moved / max(len(log_zs), 1),
        populations=len(log_zs),
        model_calls=prefixes.calls,
        contexts=prefixes.contexts,
        checks=prefixes.checks,
    )
