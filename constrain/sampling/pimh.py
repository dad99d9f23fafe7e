"""Particle independent Metropolis-Hastings: a chain of SMC populations that is exact for any number of particles.

A text x drawn from a population by weight, together with the population's estimate of Z, represents the target times
Z-hat / Z. So with (x, Z-hat) and a fresh (x', Z-hat'), moving with probability min(1, Z-hat' / Z-hat) leaves p given L
invariant (Andrieu, Doucet & Holenstein 2010). More particles only make the chain mix faster.

That holds if all populations have one law. The learned twist therefore learns during the first half of the states that
are discarded at the start, and stays as it is from then on. If the language is enumerated by then, all further states
are exact draws (`enumerated_texts`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..base.errors import LimitError
from ..engine.length_limits import explain_short_limit
from .core.language_model import LanguageModel
from .core.results import Draw, Draws, log_sum
from .core.sampler_arguments import check_common_arguments, check_counts, check_function, check_masks, check_particles
from .enumerated_texts import EnumeratingPopulations
from .particle_bounds import bound_by_particles
from .particles import Mover, ParticleNode, Prefixes
from .populations import Critic, Population, Settings
from .resampling import Resampler
from .smc import AnyTwist, as_draw, as_function, open_populations
from .success_walks import make_no_text_error

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["ChainState", "bound_start_bias", "draw_pimh", "step_chain"]

ATTEMPTS = 1000
"""Maximum number of populations that may die before the chain has a first text."""


class ChainState(NamedTuple):
    """State of the chain: a finished text (None before the first), the log of its population's estimate of Z, and the
    number of that population.
    """

    node: ParticleNode | None
    log_z: float
    number: int = 0


def step_chain(state: ChainState, population: Population, rng: np.random.Generator, number: int = 0) -> ChainState:
    """Return the next state, given a fresh population and its number."""
    if population.log_z == -np.inf:
        return state
    proposed = ChainState(population.pick(rng), population.log_z, number)
    ratio = float(np.exp(min(proposed.log_z - state.log_z, 0.0)))
    return proposed if ratio >= 1 or rng.random() < ratio else state


def count_unbiased_estimates(log_zs: list[float], planned: int) -> int | None:
    """Return how many of the estimates of Z, counted from the first, have mean Z; None if that is not known yet.

    Usually these are the planned ones. But a chain whose first populations die continues until it has a text, which
    would bias the mean: if fewer than two of the planned populations survive, the estimates before the second survivor
    are used, as a count until a second success gives an unbiased rate (Haldane 1945).
    """
    alive = [number for number, log_z in enumerate(log_zs) if log_z > -np.inf]
    if len(log_zs) >= planned and sum(number < planned for number in alive) >= 2:
        return planned
    return alive[1] if len(alive) >= 2 and len(log_zs) >= planned else None


def bound_start_bias(log_zs: list[float], steps: list[int]) -> float:
    """Return how far in total variation the states after `steps` populations are from p given L, on average.

    An independence sampler whose weights are at most w times their mean forgets its start at the rate 1 - 1 / w
    (Mengersen & Tweedie 1996). w is taken from the estimates of Z seen (log_zs), so it is an estimate, too.
    """
    logs = np.array(log_zs)
    top = float(logs.max(initial=-np.inf))
    if top == -np.inf or not steps:
        return 1.0
    shrink = 1 - float(np.exp(log_sum(logs) - np.log(len(logs)) - top))
    return float((shrink ** np.array(steps, np.float64)).mean())


def draw_pimh(
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
    twist: AnyTwist = "learned",
    critic: Critic | None = None,
) -> Draws:
    """Return n texts of one chain: every `thin`-th state after the first `burn`. Successive texts may be equal.

    All draws have the same weight, an unbiased mean of estimates of Z (`count_unbiased_estimates`). States between two
    moves are one and form a group, so that `Draws.ess` counts the autocorrelation. How much of the initial state is
    left is estimated by ``stats["start_bias"]``, see `bound_start_bias`.

    Parameters
    ----------
    lm, constraint, n, rng, max_tokens
        As in `sampling.draw`.
    particles : int
        Size of each population.
    burn : int
        Number of states discarded at the start.
    thin : int
        Distance between the states returned.
    attempts : int
        Maximum number of populations that may die before the first text.
    move, resample, threshold, twist, critic
        As in `draw_smc`.

    Returns
    -------
    Draws
        With the stats acceptance, start_bias, populations, model_calls, contexts and checks, and bound, an upper bound
        of p(L) (`core.mass_bounds`), unless a critic is given; and value_gap
        as in `draw_smc`.

    Raises
    ------
    LimitError
        If `attempts` populations died at the start, or fewer that have shown that there is no text.
    """
    check_common_arguments(lm, constraint, n, rng, max_tokens)
    check_masks(constraint, "pimh")
    check_function("move", move, "a Mover such as particles.Masked(), or None")
    check_particles(particles)
    check_counts(1, thin=thin, attempts=attempts)
    check_counts(0, burn=burn)
    settings = Settings.of(
        max_tokens, move=move, resample=resample, threshold=threshold, twist=as_function(twist), critic=critic
    )
    prefixes = Prefixes(lm, constraint)
    source = open_populations(prefixes, particles, settings, twist)
    state, log_zs, returned, moved = ChainState(None, -np.inf), list[float](), list[ChainState](), 0
    enumerating = source if isinstance(source, EnumeratingPopulations) else None
    steps: list[int] = []  # populations before each state returned
    planned = burn + 1 + (n - 1) * thin
    while len(returned) < n or (
        n and count_unbiased_estimates(log_zs, planned) is None and len(log_zs) < planned + attempts
    ):
        if len(log_zs) == burn // 2:
            source.freeze()
        population = source.grow(rng)
        log_zs.append(population.log_z)
        if enumerating is not None and enumerating.texts:
            state = state._replace(log_z=-np.inf)  # an exact draw does not depend on the state before it
        before, state = state, step_chain(state, population, rng, len(log_zs))
        moved += state is not before
        if state.node is None:
            if enumerating is not None and enumerating.list_texts() == []:
                raise make_no_text_error(constraint, max_tokens)
            if len(log_zs) >= attempts:
                raise explain_short_limit(constraint, max_tokens) or LimitError(
                    f"no text was found: all of {attempts} populations of {particles} particles died",
                    hint="Raise particles or max_tokens, give a twist, or see what the validator and critic reject.",
                )
            continue
        if len(returned) < n and len(log_zs) > burn and (len(log_zs) - burn - 1) % thin == 0:
            returned.append(state)
            steps.append(len(log_zs) - 1)
    counted = count_unbiased_estimates(log_zs, planned) or len(log_zs)
    weight = log_sum(np.array(log_zs[:counted])) - float(np.log(max(counted, 1)))
    value_gap = source.finish()
    draws: list[Draw] = [as_draw(prefixes, state.node, weight) for state in returned]
    counts = {} if critic is not None else {"bound": bound_by_particles(prefixes.root, prefixes.ends).bound}
    made = Draws.of(
        draws,
        **counts,
        **({"value_gap": value_gap} if value_gap == value_gap else {}),
        acceptance=moved / max(len(log_zs), 1),
        start_bias=0.0 if enumerating is not None and enumerating.texts else bound_start_bias(log_zs, steps),
        populations=len(log_zs),
        model_calls=prefixes.calls,
        contexts=prefixes.contexts,
        checks=prefixes.checks,
    )
    return replace(made, groups=tuple(state.number for state in returned))
