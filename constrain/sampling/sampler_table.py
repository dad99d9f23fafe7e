"""The table of samplers, and `draw`, which looks one up, checks its options and runs it.

Everything that the rest of the library needs to know about a sampler is a field of its row. Only the selection rule
(`sampler_choice`) and the output of the command line refer to samplers by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..base.errors import UnsupportedError, check_choice, check_type
from . import asap, awrs, pimh, sampler_choice, smc, trie_rejection, without_replacement
from .canonical_tokens import Canonical
from .checkers import BothCheckers, Checker
from .core import masked_sampling
from .core.language_model import LanguageModel
from .core.results import Draws
from .core.sampler_arguments import check_common_arguments, check_constraint, check_options, options_of
from .critics import grade_texts, restore_bound, reweigh_draws
from .guided_particles import guide_particles
from .post_filtering import PostFilter, as_checker
from .research import markov_exact
from .sampling_target import MODEL_TARGET, SamplingTarget

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["SAMPLERS", "Sampler", "Spellings", "draw", "add_post_filter"]


class Sampler(NamedTuple):
    """One sampler: its function, and what the rest of the library has to know about it.

    Attributes
    ----------
    draw
        The function. It has the signature of `draw`, and further options.
    target
        Distribution of the draws before weighting. "masked": that of masking, which the weights correct;
        "consistent": p given L in the limit of many draws or particles; "exact": p given L from the first draw on.
    unit
        What the standard error of an estimate is computed from, see `estimation`. "draw": draws are independent;
        "call": only calls are; "equal call": calls are, and all draws of a call have the same weight.
    uses_trie
        Whether it learns success masses in a SuccessTrie, which further calls can reuse as `trie=`.
    equal_weights
        Whether all draws have the same weight, so that nothing needs to be corrected.
    known_proposal
        Whether logprob - log_weight of a text is the log of the probability with which it was drawn (with the plain
        proposal).
    post_filter
        How a checker is applied in addition to the constraint. "mask": the mask is empty after a rejected token;
        "token": each token is checked; "none": the sampler does not support checkers.
    critic
        How a critic is applied, see `critics`. "target": the sampler has an option of this name; "accept": by the
        probability with which a text is accepted; "weight": by the weights of the draws.
    """

    draw: Callable[..., Draws]
    target: Literal["masked", "consistent", "exact"]
    unit: Literal["draw", "call", "equal call"]
    uses_trie: bool = False
    equal_weights: bool = False
    known_proposal: bool = False
    post_filter: Literal["mask", "token", "none"] = "mask"
    critic: Literal["target", "accept", "weight"] = "weight"

    @property
    def takes_particles(self) -> bool:
        """Whether it draws from populations whose size is the option `particles`."""
        return "particles" in options_of(self.draw)


SAMPLERS: dict[str, Sampler] = {
    "masked": Sampler(masked_sampling.draw_masked, "masked", "draw", known_proposal=True),
    "awrs": Sampler(awrs.draw_awrs, "masked", "draw", post_filter="token"),
    "asap": Sampler(asap.draw_asap, "consistent", "call", uses_trie=True),
    "exact": Sampler(
        trie_rejection.draw_exact, "exact", "equal call", uses_trie=True, equal_weights=True, critic="accept"
    ),
    "without_replacement": Sampler(without_replacement.draw_without_replacement, "exact", "call", uses_trie=True),
    "smc": Sampler(smc.draw_smc, "consistent", "call", critic="target"),
    "pimh": Sampler(pimh.draw_pimh, "consistent", "equal call", critic="target"),
    "markov": Sampler(markov_exact.draw_markov, "exact", "draw", equal_weights=True, post_filter="none"),
}
SAMPLER_WANTED = f"give one of {', '.join(SAMPLERS)} or 'auto'"

Spellings = Literal["all", "canonical"]


def draw(
    lm: LanguageModel,
    constraint: Constraint | Checker,
    *,
    sampler: str = "masked",
    n: int = 1,
    rng: np.random.Generator,
    max_tokens: int,
    checker: Checker | Callable[[bytes], bool] | None = None,
    spellings: Spellings = "all",
    target: SamplingTarget = MODEL_TARGET,
    **options: Any,
) -> Draws:
    """Draw n weighted texts from a model under a constraint.

    Texts that did not end within max_tokens are left out and counted (`Draws.unfinished`); all estimates take them into
    account.

    Parameters
    ----------
    lm : LanguageModel
        The model, after its prompt.
    constraint : Constraint or Checker
        What the texts must satisfy. A Checker makes no masks, and only "awrs" works without them.
    sampler : str
        A name in SAMPLERS, or "auto": chosen by the rule in `sampler_choice`, and named in the result with the reason.
    n : int
        Number of draws.
    rng : numpy.random.Generator
        The only source of randomness.
    max_tokens : int
        Maximum number of tokens of a text, end token included.
    checker : callable or Checker, optional
        A further requirement, which may be slow: a function of the bytes of complete texts, or a Checker.
    spellings : {"all", "canonical"}
        "canonical" draws only the tokenisation that the tokenizer itself chooses for each text, see `Canonical`.
    target : SamplingTarget
        Temperature, critic and wrapper of the model: they change what is drawn from, for every sampler.
    **options
        Options of the sampler, see its function; "auto" takes repeats="may" or "never" only.

    Returns
    -------
    Draws

    Raises
    ------
    UnsupportedError
        For a sampler that does not exist, or that the model, the constraint or the checker does not allow.
    TypeError, ValueError, LimitError
        For arguments of the wrong kind or beyond a limit, and for models that return no distribution.
    """
    check_common_arguments(lm, constraint, n, rng, max_tokens)
    n, max_tokens = int(n), int(max_tokens)  # those of numpy would be in the statistics
    check_choice("spellings", spellings, ("all", "canonical"))
    check_type("sampler", sampler, str, SAMPLER_WANTED)
    check_type("target", target, SamplingTarget, "give a sampling.SamplingTarget")
    lm, target = target.change_model(lm), SamplingTarget(critic=target.critic)
    if sampler == "auto":
        if set(options) - {"repeats"}:
            raise TypeError(f'sampler="auto" takes no options but repeats=, not {", ".join(options)}')
        limited = add_post_filter(constraint, sampler, checker, spellings)
        choice = sampler_choice.choose_sampler(lm, limited, rng=rng, max_tokens=max_tokens, **options)
        given: dict[str, Any] = {"checker": checker, "spellings": spellings, "target": target, **choice.options}
        drawn = draw(lm, constraint, sampler=choice.sampler, n=n, rng=rng, max_tokens=max_tokens, **given)
        stats = {**drawn.stats, "pilot_calls": choice.calls}
        return replace(drawn, stats=stats, sampler=choice.sampler, reason=choice.reason)
    if sampler not in SAMPLERS:
        raise UnsupportedError(
            f"there is no sampler {sampler!r}", hint=f"The samplers are {', '.join(SAMPLERS)}, and auto."
        )
    check_options(sampler, SAMPLERS[sampler].draw, options)
    limited = add_post_filter(constraint, sampler, checker, spellings)
    row, guide = SAMPLERS[sampler], target.guide
    if guide is not None and row.critic == "target":
        options = guide_particles(guide, constraint.vocabulary, options)
    if guide is not None and row.critic == "accept":
        options["accepts"] = grade_texts(guide, options.get("accepts"))
    drawn = row.draw(lm, limited, n=n, rng=rng, max_tokens=max_tokens, **options)
    drawn = replace(drawn.without_unfinished(), exact=row.target == "exact" and row.equal_weights)
    if guide is None or row.critic == "target":
        return drawn
    change = restore_bound if row.critic == "accept" else reweigh_draws
    return change(drawn, guide).without_unfinished()


def add_post_filter(
    constraint: Constraint | Checker,
    sampler: str,
    checker: Checker | Callable[[bytes], bool] | None,
    spellings: Spellings = "all",
) -> Any:
    """Combine a constraint with a checker that is applied after it, in the form that a sampler takes.

    Returns the constraint itself if there is nothing to add; a PostFilter, which still makes masks; or, for samplers
    that check single tokens and for constraints without masks, a BothCheckers, whose second checker sees the tokens
    that the first one allows.
    """
    check_constraint(constraint)
    check_type("sampler", sampler, str, SAMPLER_WANTED)
    check_choice("spellings", spellings, ("all", "canonical"))
    second = None if checker is None else as_checker(checker, constraint.vocabulary)
    if spellings == "canonical":
        canonical = Canonical(constraint.vocabulary)
        second = canonical if second is None else BothCheckers(canonical, second)
    if second is None:
        return constraint
    row = SAMPLERS.get(sampler)
    if row is not None and row.post_filter == "none":
        raise UnsupportedError("sampler 'markov' does not support checkers", hint='Use sampler="exact".')
    if (row is not None and row.post_filter == "token") or not hasattr(constraint.matcher(), "mask"):
        return BothCheckers(constraint, second)
    return PostFilter(constraint, second, dead=None if row is not None and row.uses_trie else {})  # type: ignore[arg-type]
