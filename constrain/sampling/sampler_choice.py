"""The rule by which ``sampler="auto"`` selects a sampler, from the request and a short pilot of masked draws.

    the first row that holds                                              sampler
    --------------------------------------------------------------------  -----------------------------------
    temperature, top_k, top_p or streaming is requested                   masked: no other one supports them
    texts must be distinct                                                without_replacement
    the constraint makes no masks                                         awrs
    the model is Markov and its product with the constraint is small      markov: computed, not sampled
    the texts are short and have at most FEW prefixes (white space        exact: soon all are known
      aside) in tokens
    no draw of the pilot ended in time, but a text of small populations   smc: it learns where texts end
      did
    none of these did either                                              exact: it rules out what has no end
    the pilot's estimate of masking's divergence is at most SMALL nats    masked: as good, and fastest
      and steady; all its draws ended; no checker follows the mask
    the pilot's estimate of p(L) is at least 1 / ATTEMPTS                 exact: a text takes 1 / p(L) attempts
                                                                          at first, fewer with use
    otherwise                                                             smc, with particles by the pilot's ESS

`apply_rule` implements the table as a pure function; `choose_sampler` determines its inputs, each only when needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..base.errors import LimitError, UnsupportedError, check_choice
from ..engine.text_enumeration import list_texts
from ..vocabulary.vocabulary import Vocabulary
from .core import masked_sampling
from .core.language_model import LanguageModel, rows_after
from .post_filtering import PostFilter
from .research.hidden_markov import Hmm
from .research.hmm_product import HiddenProduct
from .research.markov_exact import Product
from .smc import draw_smc

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["SamplerChoice", "ChoiceInputs", "choose_sampler", "count_token_prefixes", "apply_rule"]

FEW = 500
"""Number of token sequences that begin texts, of which `exact` learns one or more with every attempt that fails."""
SHORT = 32
"""Bytes of a text so short that `exact` can tell its probability from 0 (`success_trie.SMALLEST`) by far, whatever the
model."""
SMALL = 0.05
"""Nats of KL(masked distribution || p given L): less than 0.16 in total variation, by Pinsker's inequality."""
PILOT = 32
"""Draws of a pilot; `weight_stats` calls no fewer than 20 steady."""
ATTEMPTS = 64
"""Attempts of `exact` per text before anything is learnt. Most stop early, so they cost less than as many particles."""
STATES = 20_000
"""Maximum size of the product of model and constraint that is built for the choice: about a second."""
EFFECTIVE = 8
"""Effective sample size that the particles should have before they are first resampled."""
FEWEST, MOST = 16, 256
"""Smallest and largest number of particles of a population."""
TRIALS = 4
"""Populations of FEWEST particles that are grown where no draw of the pilot ended; each learns from those before."""


@dataclass(frozen=True)
class ChoiceInputs:
    """The values that the choice depends on. None: not determined yet.

    wants: requested options that only "masked" supports. repeats: whether texts may repeat. masks: whether the
    constraint makes masks. states: size of the product with a Markov model; 0 if there is none or it is too large.
    texts: number of texts; 0 if some are longer than SHORT, or they have more than FEW prefixes. pilot: `weight_stats`
    of `drawn` masked draws. ended: whether a text of some small populations ended. checked: whether a checker after
    the mask can reject a text that masking has generated.
    """

    wants: str = ""
    repeats: Literal["may", "never"] = "may"
    masks: bool = True
    states: int | None = None
    texts: int | None = None
    pilot: Mapping[str, float] | None = None
    drawn: int = 0
    ended: bool | None = None
    checked: bool = False


@dataclass(frozen=True)
class SamplerChoice:
    """A sampler, its options, and the reason for the choice. calls: calls of the model by the pilot."""

    sampler: str
    reason: str
    options: dict[str, Any] = field(default_factory=dict)
    calls: int = 0


def apply_rule(inputs: ChoiceInputs) -> SamplerChoice | str:
    """Return the choice by the table above, or the name of the input that is needed next."""
    if inputs.wants:
        return SamplerChoice("masked", f"{inputs.wants}: supported by masking only")
    if inputs.repeats == "never":
        return SamplerChoice("without_replacement", "texts must not repeat")
    if not inputs.masks:
        return SamplerChoice("awrs", "the constraint checks single tokens and computes no masks")
    if inputs.states is None:
        return "states"
    if inputs.states:
        return SamplerChoice(
            "markov", f"the model is Markov, and its product with the constraint has only {inputs.states} states"
        )
    if inputs.texts is None:
        return "texts"
    if inputs.texts:
        texts = "one text, which is" if inputs.texts == 1 else f"{inputs.texts} texts, which are"
        return SamplerChoice("exact", f"the constraint has only {texts} learnt quickly")
    if inputs.pilot is None:
        return "pilot"
    pilot = f"{inputs.drawn} masked draws"
    if not inputs.pilot["ess"]:
        if inputs.ended is None:
            return "ended"
        failed = f"none of {pilot} ended in time: where texts end has to be learnt"
        return SamplerChoice("smc", failed, {"particles": FEWEST}) if inputs.ended else SamplerChoice("exact", failed)
    divergence, ess_share = inputs.pilot["kl_to_target"], inputs.pilot["ess"] / inputs.drawn
    if inputs.pilot["steady"] and divergence <= SMALL and not inputs.pilot["dead_ends"] and not inputs.checked:
        return SamplerChoice("masked", f"{pilot} show that masking diverges by only {divergence:.2g} nats")
    if inputs.pilot["log_z"] >= -math.log(ATTEMPTS):
        attempts = math.exp(-inputs.pilot["log_z"])
        evidence = f"{pilot} show that the model satisfies the constraint once in {attempts:.3g} texts"
        return SamplerChoice("exact", f"{evidence} (and that masking diverges by about {divergence:.2g} nats)")
    particles = min(MOST, max(FEWEST, math.ceil(EFFECTIVE / ess_share)))
    evidence = (
        f"{pilot} have an effective sample size of {inputs.pilot['ess']:.1f} "
        f"(masking diverges by about {divergence:.2g} nats)"
    )
    return SamplerChoice("smc", f"{evidence}: {particles} particles", {"particles": particles})


def choose_sampler(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    rng: np.random.Generator,
    max_tokens: int,
    repeats: Literal["may", "never"] = "may",
    wants: str = "",
) -> SamplerChoice:
    """Determine inputs until `apply_rule` returns a choice.

    The draws of the pilot are not reused: the choice depends on them.
    """
    check_choice("repeats", repeats, ("may", "never"))
    checked = isinstance(constraint, PostFilter)
    inputs = ChoiceInputs(wants=wants, repeats=repeats, masks=hasattr(constraint.matcher(), "mask"), checked=checked)
    if repeats == "never" and not inputs.masks:
        raise UnsupportedError(
            "sampling without replacement needs masks, which this constraint does not compute",
            hint='Give a Constraint, or repeats="may".',
        )
    calls = 0
    while isinstance(choice := apply_rule(inputs), str):
        if choice == "states":
            inputs = replace(inputs, states=count_product_states(lm, constraint, max_tokens))
        elif choice == "texts":
            inputs = replace(inputs, texts=count_few_texts(constraint))
        elif choice == "ended":
            trials = draw_smc(lm, constraint, n=TRIALS, particles=FEWEST, rng=rng, max_tokens=max_tokens, twist="fresh")
            calls += int(trials.stats["model_calls"])
            inputs = replace(inputs, ended=trials.stats["log_z"] > -math.inf)
        else:
            pilot = masked_sampling.draw_masked(
                SharedRows(lm, constraint.vocabulary.size), constraint, n=PILOT, rng=rng, max_tokens=max_tokens
            )
            calls += int(pilot.stats["model_calls"])
            inputs = replace(inputs, pilot=pilot.stats, drawn=PILOT)
    return replace(choice, calls=calls)


class SharedRows:
    """A LanguageModel that asks another one only once for equal prefixes of a call. size: V of the vocabulary."""

    def __init__(self, lm: LanguageModel, size: int) -> None:
        self.lm, self.size = lm, size

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.floating[Any]]:
        """As every LanguageModel."""
        keys = [tuple(prefix) for prefix in prefixes]
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        rows = rows_after(self.lm, [list(key) for key in places], self.size)
        shared: NDArray[np.floating[Any]] = rows[[places[key] for key in keys]]
        return shared


def count_few_texts(constraint: Constraint) -> int:
    """Return the number of texts of a constraint, if all are short and `exact` soon knows their prefixes; 0 if not."""
    texts = list_texts(constraint.grammar, FEW) or []
    if not texts or len(texts[-1]) > SHORT or count_token_prefixes(texts, constraint.vocabulary) > FEW:
        return 0
    return len(texts)


def count_token_prefixes(texts: Sequence[bytes], vocabulary: Vocabulary) -> int:
    """Return how many sequences of tokens begin one of some texts, and spell it as far as they go.

    Tokens with equal bytes count as one.
    """
    tokens, lengths = vocabulary.by_bytes
    counts = {b"": 1}  # sequences that spell each prefix
    for text in texts:
        for end in range(1, len(text) + 1):
            if text[:end] not in counts:
                counts[text[:end]] = sum(
                    counts[text[: end - length]]
                    for length in lengths
                    if length <= end and text[end - length : end] in tokens
                )
    return sum(counts.values())


def count_product_states(lm: LanguageModel, constraint: Constraint, max_tokens: int) -> int:
    """Return the number of states of the product of a Markov model and a constraint; 0 if the model is not Markov or
    the product is too large.
    """
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
