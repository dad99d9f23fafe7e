"""Drawing texts from a model under a Constraint: one signature, one sampler a file, weights with every draw.

law says what draws follow before they are weighted: "masked law" (the weights correct it), "consistent" (p given L as
draws or particles grow), "exact" (p given L from the first draw on; of "without_replacement", each text once).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..base.errors import UnsupportedError, check_choice, check_type
from . import asap, awrs, masked_sampling, pimh, sampler_choice, smc, trie_rejection, without_replacement
from .canonical_tokens import Canonical
from .checkers import Both, Checker, Judged, Stepwise
from .estimation import Estimate, estimate, estimate_from
from .language_model import LanguageModel
from .post_filtering import Guarded, as_checker
from .research import markov_exact
from .research.hidden_markov import Hmm
from .research.ngram import NGram
from .results import Draw, Draws
from .sampler_arguments import check, check_constraint, check_options
from .success_trie import SuccessTrie, trie_key
from .transformers_model import Transformers

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = [
    "SAMPLERS", "Canonical", "Checker", "Draw", "Draws", "Estimate", "Hmm", "Judged", "LanguageModel", "NGram",
    "Sampler", "Stepwise", "SuccessTrie", "Transformers", "draw", "estimate", "estimate_from", "guarded", "trie_key",
]  # fmt: skip


class Sampler(NamedTuple):
    """draw: the function, of the signature of `draw` and options of its own. law: what it offers."""

    draw: Callable[..., Draws]
    law: Literal["masked law", "consistent", "exact"]


SAMPLERS: dict[str, Sampler] = {
    "masked": Sampler(masked_sampling.draw, "masked law"),
    "awrs": Sampler(awrs.draw, "masked law"),
    "asap": Sampler(asap.draw, "consistent"),
    "exact": Sampler(trie_rejection.draw, "exact"),
    "without_replacement": Sampler(without_replacement.draw, "exact"),
    "smc": Sampler(smc.draw, "consistent"),
    "pimh": Sampler(pimh.draw, "consistent"),
    "markov": Sampler(markov_exact.draw, "exact"),
}
SAMPLER_WANTED = f"give one of {', '.join(SAMPLERS)} or 'auto'"
OVER_TRIES = ("asap", "exact", "without_replacement")

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
    **options: Any,
) -> Draws:
    """n weighted draws of at most max_tokens tokens, end token included; fewer where some of them did not end.

    Draws that did not end are no answers: they are left out and counted (`Draws.unfinished`), and all estimates know
    of them.

    sampler: a name of SAMPLERS, with `options` of its own, see its file; or "auto", which chooses (by `auto.rule`; the
    Draws say what and why) and takes repeats="may" or "never" only. checker: what a text must pass besides, late or
    slow: a function of the bytes of complete texts, or one of `checkers`. spellings: "canonical" for the law of
    `canonical`. Raises UnsupportedError, TypeError and ValueError for what is not offered, and what the sampler raises.
    """
    check(lm, constraint, n, rng, max_tokens)
    check_choice("spellings", spellings, ("all", "canonical"))
    check_type("sampler", sampler, str, SAMPLER_WANTED)
    if sampler == "auto":
        if set(options) - {"repeats"}:
            raise TypeError(f'sampler="auto" takes no options but repeats=, not {", ".join(options)}')
        limited = guarded(constraint, sampler, checker, spellings)
        choice = sampler_choice.choose(lm, limited, rng=rng, max_tokens=max_tokens, **options)
        given: dict[str, Any] = {"checker": checker, "spellings": spellings, **choice.options}
        drawn = draw(lm, constraint, sampler=choice.sampler, n=n, rng=rng, max_tokens=max_tokens, **given)
        stats = {**drawn.stats, "pilot_calls": choice.calls}
        return replace(drawn, stats=stats, sampler=choice.sampler, reason=choice.reason)
    if sampler not in SAMPLERS:
        raise UnsupportedError(
            f"there is no sampler {sampler!r}", hint=f"The samplers are {', '.join(SAMPLERS)}, and auto."
        )
    check_options(sampler, SAMPLERS[sampler].draw, options)
    limited = guarded(constraint, sampler, checker, spellings)
    return SAMPLERS[sampler].draw(lm, limited, n=n, rng=rng, max_tokens=max_tokens, **options).without_unfinished()


def guarded(
    constraint: Constraint | Checker,
    sampler: str,
    checker: Checker | Callable[[bytes], bool] | None,
    spellings: Spellings = "all",
) -> Any:
    """The constraint with what stands behind it, as a sampler takes it: a Guarded, or for "awrs" and for what makes no
    masks a Both, whose second checker is asked about each token that the first lets through."""
    check_constraint(constraint)
    check_type("sampler", sampler, str, SAMPLER_WANTED)
    check_choice("spellings", spellings, ("all", "canonical"))
    second = None if checker is None else as_checker(checker, constraint.vocabulary)
    if spellings == "canonical":
        canonical = Canonical(constraint.vocabulary)
        second = canonical if second is None else Both(canonical, second)
    if second is None:
        return constraint
    if sampler == "markov":
        raise UnsupportedError("a checker has no states to compute with", hint='Use sampler="exact".')
    if sampler == "awrs" or not hasattr(constraint.matcher(), "mask"):
        return Both(constraint, second)
    return Guarded(constraint, second, dead=None if sampler in OVER_TRIES else {})  # type: ignore[arg-type]
