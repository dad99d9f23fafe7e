"""Sequential Monte Carlo: a population of weighted texts that grow side by side and are resampled by weight.

Each step extends every particle by one token (`particles`: masked, awrs, twisted), multiplies its weight by that of the
move and by the change of a twist (`twists`), and resamples where few particles hold the weight (`resampling`). Finished
texts stay in the population. For every choice of these, and any number of particles,

    E[sum of w f(x)] / particles = sum over texts of p(x) [x in L, in time] exp(critic(x)) f(x)

so the mean weight is an unbiased estimate of Z, and expectations converge as 1 / particles. Adaptive resampling keeps
this exact (Del Moral, Doucet & Jasra 2006); with exact twists all weights are equal.

By default the twist is a table of values that is learned from the rows of earlier populations and kept with the
Constraint (`learned_twist`): with it, 16 particles are enough where masks alone lose nearly all of Z.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Union

import numpy as np

from ..base.errors import UnsupportedError, describe_value
from .core.language_model import LanguageModel
from .core.results import Draw, Draws, log_sum
from .core.sampler_arguments import check_common_arguments, check_function, check_masks, check_particles
from .distinct_particles import grow_distinct_population
from .enumerated_texts import EnumeratingPopulations, PopulationSource, list_all_texts
from .learned_twist.value_table import ValueTable
from .particle_bounds import bound_by_particles
from .particles import Awrs, Mover, ParticleNode, Prefixes
from .population_schedule import can_learn, open_schedule
from .populations import Critic, Population, Settings, log_potential
from .resampling import Resampler

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from .twists import Twist

__all__ = ["AnyTwist", "as_draw", "draw_smc", "grow_population", "open_populations"]

AnyTwist = Union[Literal["learned", "fresh"], ValueTable, "Twist", None]
"""What `twist=` takes, see `draw_smc`."""


class UnlearnedPopulations:
    """Independent populations of one law, from which nothing is learned."""

    def __init__(self, prefixes: Prefixes, particles: int, settings: Settings) -> None:
        self.prefixes, self.particles, self.settings = prefixes, particles, settings

    def grow(self, rng: np.random.Generator) -> Population:
        """Grow the next population."""
        return grow_population(self.prefixes, self.particles, self.settings, rng)

    def freeze(self) -> None:
        """Do nothing: the law does not change."""

    def finish(self) -> float:
        """Return NaN."""
        return float("nan")


def open_populations(
    prefixes: Prefixes, particles: int, settings: Settings, twist: AnyTwist
) -> PopulationSource | EnumeratingPopulations:
    """Return the populations of a call. Raise UnsupportedError for a table of values where none can be used.

    A critic may give texts any weight, so populations with one go on growing where the language was enumerated.
    """
    source = _open_growing(prefixes, particles, settings, twist)
    return source if settings.critic is not None else EnumeratingPopulations(source, prefixes, particles)


def _open_growing(prefixes: Prefixes, particles: int, settings: Settings, twist: AnyTwist) -> PopulationSource:
    """Return the populations of a call, all of which grow."""
    if twist is None or settings.twist is not None or not can_learn(prefixes.constraint, settings):
        if isinstance(twist, ValueTable):
            raise UnsupportedError(
                "a table of values needs masked moves and a Constraint",
                hint="Leave out move=, or give another twist.",
            )
        return UnlearnedPopulations(prefixes, particles, settings)
    return open_schedule(prefixes, particles, settings, twist if isinstance(twist, ValueTable) else twist == "learned")


def grow_population(prefixes: Prefixes, particles: int, settings: Settings, rng: np.random.Generator) -> Population:
    """Grow one population to its end, with at most max_tokens calls of the model."""
    check_particles(particles)
    if settings.resample is None:
        return grow_distinct_population(prefixes, particles, settings, rng)
    nodes = [prefixes.begin()] * particles
    log_weights, twists = [0.0] * particles, [0.0] * particles  # faster than arrays, as they are used one by one
    lines = np.arange(particles)
    resampled, has_potential = 0, settings.twist is not None or settings.critic is not None
    for left in range(settings.max_tokens, 0, -1):
        live = [i for i in range(particles) if not nodes[i].ended and log_weights[i] > -math.inf]
        if not live:
            break
        before = [nodes[i] for i in live]
        prefixes.fetch_rows(before, maxima=left == 1 or not isinstance(settings.move, Awrs))
        unfinished = False
        for i in live:
            move = settings.move(prefixes, nodes[i], left, rng)
            if move.token is None:
                log_weights[i], twists[i] = -math.inf, 0.0
                continue
            node = nodes[i] = prefixes.child(nodes[i], move)
            value = log_potential(prefixes, node, left - 1, settings) if has_potential else 0.0
            log_weights[i] += move.log_weight - twists[i] + value
            twists[i] = 0.0 if node.ended or value == -math.inf else value
            unfinished = unfinished or (not node.ended and log_weights[i] > -math.inf)
        prefixes.release_rows(before)
        top = max(log_weights)
        if top == -math.inf:
            break
        weights = [math.exp(log_weight - top) for log_weight in log_weights]
        total = math.fsum(weights)
        if unfinished and total * total < settings.threshold * particles * math.fsum(w * w for w in weights):
            ancestors = settings.resample(np.array(weights) / total, particles, rng)
            nodes, twists = [nodes[i] for i in ancestors], [twists[i] for i in ancestors]
            lines = lines[ancestors]
            log_weights = [top + math.log(total / particles)] * particles
            resampled += 1
    final = np.array(log_weights)
    surviving = final > -np.inf
    return Population(nodes, final, len(np.unique(lines[surviving])), resampled, lines)


def draw_smc(
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
    twist: AnyTwist = "learned",
    critic: Critic | None = None,
) -> Draws:
    """Draw n texts from approximately p given L and at most max_tokens tokens; more particles are closer.

    Parameters
    ----------
    lm, constraint, n, rng, max_tokens
        As in `sampling.draw`.
    particles : int, optional
        None for one population of n particles, all of which are returned with their weights. Otherwise n independent
        populations of this size, from each of which one text is drawn by weight; its weight is the population's
        estimate of Z. With a learned twist, up to four times as many texts go on at steps whose values are
        uncertain, at most twice as many in the mean.
    move : Mover, optional
        How a token is chosen; `particles.Masked()` by default.
    resample : str or Resampler
        "systematic", "stratified", "residual", "multinomial", "without_replacement", or a function: how populations
        without a table of values are resampled. With a table, the next tokens of all texts are chosen among without
        replacement (`twisted_populations`), and this only says whether what is returned may have a text twice, which it
        does in place of texts that are missing, unless it is "without_replacement".
    threshold : float
        The population is resampled where its effective size falls below this part of it.
    twist : "learned", "fresh", ValueTable, Twist or None
        Estimates of the mass still to come.

        "learned": a table of values (`learned_twist`), which learns from every population, starts with what the
        constraint has kept from earlier calls, and is kept in turn; so draws of one seed depend on the calls before.
        "fresh": the same, from nothing: the same seed gives the same draws. Both are None where values cannot be
        learned: with another move than masks, or with a constraint that is not a Constraint.
        ValueTable: start with this table, and keep nothing. Twist: see `twists`. None: no twist.
    critic : callable, optional
        Log-weight of a finished text; the target becomes p(x) [x in L] exp(critic(x)).

    Returns
    -------
    Draws
        With the stats model_calls, contexts (distinct texts on which the model was called), checks, resampled, lines
        (how many groups the draws of each population form, see below), log_z, missing (particles that
        resample="without_replacement" did not return, because there were fewer distinct texts), and bound, an upper
        bound of p(L) (see `core.mass_bounds`), unless a critic is given; with the learned twist also value_gap, the
        nats by which states that no text reached could raise log_z (`learned_twist.value_backups.measure_gap`). The
        draws of one population form groups: by their ancestors in the first step, with a table by the first choice that
        was left to chance.
    """
    check_common_arguments(lm, constraint, n, rng, max_tokens)
    check_masks(constraint, "smc")
    check_function("move", move, "a Mover such as particles.Masked(), or None")
    if particles is not None:
        check_particles(particles)
    settings = Settings.of(
        max_tokens, move=move, resample=resample, threshold=threshold, twist=as_function(twist), critic=critic
    )
    prefixes, draws, populations = Prefixes(lm, constraint), list[Draw](), list[Population]()
    prefixes.revisits = particles is not None
    source = open_populations(prefixes, particles or max(n, 1), settings, twist)
    if particles is None and n:
        populations.append(source.grow(rng))
        draws = [as_draw(prefixes, *one) for one in zip(populations[0].nodes, populations[0].log_weights.tolist())]
    elif particles is not None:
        for _ in range(n):
            populations.append(source.grow(rng))
            chosen = populations[-1].pick(rng)
            draws.append(as_draw(prefixes, chosen, populations[-1].log_z))
    log_zs = np.array([population.log_z for population in populations])
    value_gap = source.finish()
    groups = populations[0].ancestors if particles is None and n else None
    counts = {} if critic is not None else {"bound": bound_by_particles(prefixes.root, prefixes.ends).bound}
    if counts and list_all_texts(prefixes.root, prefixes.ends) == []:  # without the rounding of sums
        counts["bound"] = 0.0
    made = Draws.of(
        draws,
        **counts,
        missing=n - len(draws),
        **({"value_gap": value_gap} if value_gap == value_gap else {}),
        model_calls=prefixes.calls,
        contexts=prefixes.contexts,
        checks=prefixes.checks,
        resampled=sum(population.resampled for population in populations),
        lines=sum(population.lines for population in populations),
        log_z=log_sum(log_zs) - float(np.log(max(len(log_zs), 1))),
    )
    return made if groups is None else replace(made, groups=tuple(groups.tolist()))


def as_function(twist: AnyTwist) -> Twist | None:
    """Return a twist that is a function; None for one that is a table. Raise TypeError for anything else."""
    if twist is None or isinstance(twist, ValueTable) or (isinstance(twist, str) and twist in ("learned", "fresh")):
        return None
    if not callable(twist):
        raise TypeError(f'twist is {describe_value(twist)}: give "learned", "fresh", a ValueTable, a Twist or None')
    return twist


def as_draw(prefixes: Prefixes, node: ParticleNode | None, log_weight: float) -> Draw:
    """Convert a particle to a Draw; None, and a particle that did not end, have weight 0."""
    tokens = [] if node is None else node.tokens
    ended = node is not None and node.ended
    text = prefixes.constraint.vocabulary.decode(tokens)
    logprob = node.logprob if node is not None and ended else -np.inf
    return Draw(tuple(tokens), text, logprob, log_weight if ended else -np.inf)
