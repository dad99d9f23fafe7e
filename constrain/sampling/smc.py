"""SMC, sequential Monte Carlo: a population of weighted texts that grow side by side, the promising ones copied.

Each step moves every particle by one token (`particles`: masked, awrs, twisted), multiplies its weight by the move's
and by the change of a twist (`twists`), and where few particles hold the weight, resamples them (`resampling`).
Finished texts stay in the population. For every choice of these, and any number of particles,

    E[sum of w f(x)] / particles = sum over texts of p(x) [x in L, in time] exp(critic(x)) f(x)

so the mean weight is an unbiased estimate of Z, and expectations come closer as 1 / particles. Resampling by what is
known so far costs no exactness (Del Moral, Doucet & Jasra 2006); with exact twists all weights are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import ArgumentError
from .distinct_particles import populate_distinct
from .language_model import LanguageModel
from .particles import Mover, Node, Prefixes
from .populations import Critic, Population, Settings, value_of
from .resampling import Resampler
from .results import Draw, Draws, log_sum
from .sampler_arguments import check, check_counts, check_masks

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from .twists import Twist

__all__ = ["draw", "draw_of", "populate"]


def populate(prefixes: Prefixes, particles: int, settings: Settings, rng: np.random.Generator) -> Population:
    """One population, grown to its end. At most max_tokens calls of the model."""
    if particles < 1:
        raise ArgumentError(f"particles must be 1 or more, not {particles!r}")
    if settings.resample is None:
        return populate_distinct(prefixes, particles, settings, rng)
    nodes = [prefixes.begin()] * particles
    logweights, twists = np.zeros(particles), np.zeros(particles)
    lines = np.arange(particles)
    resampled = 0
    for left in range(settings.max_tokens, 0, -1):
        live = [i for i in range(particles) if not nodes[i].ended and logweights[i] > -np.inf]
        if not live:
            break
        before = [nodes[i] for i in live]
        prefixes.ask(before)
        for i in live:
            made = settings.move(prefixes, nodes[i], left, rng)
            if made.token is None:
                logweights[i], twists[i] = -np.inf, 0.0
                continue
            node = nodes[i] = prefixes.child(nodes[i], made)
            value = value_of(prefixes, node, left - 1, settings)
            logweights[i] += made.logweight - twists[i] + value
            twists[i] = 0.0 if node.ended or value == -np.inf else value
        prefixes.let_go(before)
        total = log_sum(logweights)
        if total == -np.inf:
            break
        unfinished = any(not nodes[i].ended and logweights[i] > -np.inf for i in live)
        if unfinished and 2 * total - log_sum(2 * logweights) < np.log(settings.threshold * particles):
            ancestors = settings.resample(np.exp(logweights - total), particles, rng)
            nodes = [nodes[i] for i in ancestors]
            twists, lines = twists[ancestors], lines[ancestors]
            logweights = np.full(particles, total - np.log(particles))
            resampled += 1
    alive = logweights > -np.inf
    return Population(nodes, logweights, len(np.unique(lines[alive])), resampled)


def draw(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int,
    particles: int | None = None,
    move: Mover | None = None,
    resample: str | Resampler = "systematic",
    threshold: float = 0.5,
    twist: Twist | None = None,
    critic: Critic | None = None,
) -> Draws:
    """n draws from about p given L and at most max_tokens tokens, the better the more particles.

    particles: None for one population of n, all of which are returned with their weights; else n independent
    populations of so many, from each of which one is drawn by weight, and weighs the population's estimate of Z.
    move: how a token is chosen, `particles.Masked()` unless said otherwise. resample: "systematic", "stratified",
    "residual", "multinomial", "without_replacement", or a Resampler. The rest: see Settings; a critic changes what is
    drawn from to p(x) [x in L] exp(critic(x)). stats: model_calls, contexts (distinct texts that the model was
    asked about), checks, resampled, lines (first particles with offspring), log_z.
    """
    check(lm, constraint, n, rng, max_tokens)
    check_masks(constraint, "smc")
    if particles is not None:
        check_counts(1, particles=particles)
    settings = Settings.of(max_tokens, move=move, resample=resample, threshold=threshold, twist=twist, critic=critic)
    prefixes, draws, populations = Prefixes(lm, constraint), list[Draw](), list[Population]()
    if particles is None and n:
        populations.append(populate(prefixes, n, settings, rng))
        draws = [draw_of(prefixes, *one) for one in zip(populations[0].nodes, populations[0].logweights.tolist())]
    elif particles is not None:
        for _ in range(n):
            populations.append(populate(prefixes, particles, settings, rng))
            chosen = populations[-1].pick(rng)
            draws.append(draw_of(prefixes, chosen, populations[-1].log_z))
    log_zs = np.array([population.log_z for population in populations])
    return Draws.of(
        draws,
        model_calls=prefixes.calls,
        contexts=prefixes.contexts,
        checks=prefixes.checks,
        resampled=sum(population.resampled for population in populations),
        lines=sum(population.lines for population in populations),
        log_z=log_sum(log_zs) - float(np.log(max(len(log_zs), 1))),
    )


def draw_of(prefixes: Prefixes, node: Node | None, logweight: float) -> Draw:
    """A particle as a Draw; None, and one that did not end, weigh nothing."""
    tokens = [] if node is None else node.tokens
    ended = node is not None and node.ended
    text = prefixes.constraint.vocabulary.decode(tokens)
    logprob = node.logprob if node is not None and ended else -np.inf
    return Draw(tuple(tokens), text, logprob, logweight if ended else -np.inf)
