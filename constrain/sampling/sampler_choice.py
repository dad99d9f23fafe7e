"""Which sampler? A rule over a few facts, of which the last come from a short pilot of masked draws.

    the first row that holds                                              sampler
    --------------------------------------------------------------------  -----------------------------------
    a temperature, top_k, top_p or a stream is wanted                     masked: no other one has them
    no text may come twice                                                without_replacement
    the constraint only checks, it makes no mask                          awrs
    the model is Markov, and few states make it and the constraint        markov: computed, not sampled
    there are at most FEW texts (white space aside)                       exact: they are soon known
    no draw of the pilot ended in time                                    exact: it learns where texts end
    the pilot says masking is off by at most SMALL nats, and is trusted;  masked: as good, and fastest
      all its draws ended in time, and no checker stands behind the mask
    the pilot says p(L) is 1 / ATTEMPTS or more                           exact: an answer takes 1 / p(L) attempts
                                                                          at first, fewer with use
    otherwise                                                             smc, of particles by the pilot's ESS

`apply_rule` is that table, a pure function; `choose_sampler` gathers the facts, each only where the rows above leave it
open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.errors import LimitError, UnsupportedError
from ..engine.text_enumeration import list_texts
from .core import masked_sampling
from .core.language_model import LanguageModel
from .post_filtering import PostFilter
from .research.hidden_markov import Hmm
from .research.hmm_product import HiddenProduct
from .research.markov_exact import Product

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["SamplerChoice", "Facts", "choose_sampler", "apply_rule"]

FEW = 500
"""Texts that `exact` comes to know after some thousand rows of the model."""
SMALL = 0.05
"""Nats of KL(masked law || p given L): less than 0.16 in total variation, by Pinsker's inequality."""
PILOT = 32
"""Draws of a pilot: `stats` trusts no fewer than 20."""
ATTEMPTS = 64
"""Of `exact` for an answer that it knows nothing of: most stop early, so they cost less than as many particles."""
STATES = 20_000
"""Of a product of model and constraint that is made on the way: about a second."""
EFFECTIVE = 8
"""Draws from the right law that the particles should be worth before they are resampled at all."""
FEWEST, MOST = 16, 256
"""Particles of a population."""


@dataclass(frozen=True)
class Facts:
    """What is known. None: not looked at.

    wants: what only "masked" can do, if that was asked for. repeats: whether a text may come twice. masks: whether
    the constraint makes masks. states: of the product with a Markov model; 0: there is none, or too large a one.
    texts: how many there are; 0: more than FEW. pilot: `stats.weight_stats` of so many masked draws (`drawn`). checked:
    whether a checker behind the mask can refuse a text that masking has written.
    """

    wants: str = ""
    repeats: Literal["may", "never"] = "may"
    masks: bool = True
    states: int | None = None
    texts: int | None = None
    pilot: Mapping[str, float] | None = None
    drawn: int = 0
    checked: bool = False


@dataclass(frozen=True)
class SamplerChoice:
    """A sampler, options for it, and why. calls: of the model, by the pilot."""

    sampler: str
    reason: str
    options: dict[str, Any] = field(default_factory=dict)
    calls: int = 0


def apply_rule(facts: Facts) -> SamplerChoice | str:
    """The table above; or the name of the fact that is needed next."""
    if facts.wants:
        return SamplerChoice("masked", f"{facts.wants}: only masking has that")
    if facts.repeats == "never":
        return SamplerChoice("without_replacement", "no text may come twice")
    if not facts.masks:
        return SamplerChoice("awrs", "the constraint only checks tokens, it makes no mask")
    if facts.states is None:
        return "states"
    if facts.states:
        return SamplerChoice(
            "markov", f"the model is Markov: {facts.states} states of it and the constraint give all exactly"
        )
    if facts.texts is None:
        return "texts"
    if facts.texts:
        return SamplerChoice("exact", f"there are few texts ({facts.texts}), which are soon known")
    if facts.pilot is None:
        return "pilot"
    tried = f"{facts.drawn} masked draws"
    if not facts.pilot["ess"]:
        return SamplerChoice("exact", f"none of {tried} ended in time: where texts end has to be learnt")
    off, part = facts.pilot["kl_to_target"], facts.pilot["ess"] / facts.drawn
    if facts.pilot["trusted"] and off <= SMALL and not facts.pilot["dead_ends"] and not facts.checked:
        return SamplerChoice("masked", f"{tried} say that masking is off by {off:.2g} nats only")
    if facts.pilot["log_z"] >= -math.log(ATTEMPTS):
        attempts = math.exp(-facts.pilot["log_z"])
        said = f"{tried} say that the model keeps to the form once in {attempts:.3g} times"
        return SamplerChoice("exact", f"{said} (and that masking is off by some {off:.2g} nats)")
    particles = min(MOST, max(FEWEST, math.ceil(EFFECTIVE / part)))
    said = f"{tried} are worth {facts.pilot['ess']:.1f} of the right law (masking is off by some {off:.2g} nats)"
    return SamplerChoice("smc", f"{said}: {particles} particles", {"particles": particles})


def choose_sampler(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    rng: np.random.Generator,
    max_tokens: int,
    repeats: Literal["may", "never"] = "may",
    wants: str = "",
) -> SamplerChoice:
    """What `apply_rule` says of these. The pilot's draws are not among the answers: they were chosen by."""
    checked = isinstance(constraint, PostFilter)
    facts = Facts(wants=wants, repeats=repeats, masks=hasattr(constraint.matcher(), "mask"), checked=checked)
    if repeats == "never" and not facts.masks:
        raise UnsupportedError(
            "Without a mask no sampler draws without replacement.", hint='Give a Constraint, or repeats="may".'
        )
    calls = 0
    while isinstance(found := apply_rule(facts), str):
        if found == "states":
            facts = replace(facts, states=states_of(lm, constraint, max_tokens))
        elif found == "texts":
            facts = replace(facts, texts=len(list_texts(constraint.grammar, FEW) or ()))
        else:
            pilot = masked_sampling.draw_masked(lm, constraint, n=PILOT, rng=rng, max_tokens=max_tokens)
            calls = int(pilot.stats["model_calls"])
            facts = replace(facts, pilot=pilot.stats, drawn=PILOT)
    return replace(found, calls=calls)


def states_of(lm: LanguageModel, constraint: Constraint, max_tokens: int) -> int:
    """How many states a Markov model and a constraint have together; 0 if it is none, or there are too many."""
    if not hasattr(constraint, "state_cache"):
        return 0
    try:
        if isinstance(lm, Hmm):
            return len(HiddenProduct(lm, constraint, max_tokens=max_tokens, most_states=STATES).arcs)
        if not hasattr(lm, "follow"):
            return 0
        return len(Product.of(lm, constraint, max_tokens=max_tokens, most_states=STATES).end)  # type: ignore[arg-type]
    except LimitError:
        return 0
