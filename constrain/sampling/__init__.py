"""Drawing texts from a model under a Constraint: one signature, one sampler a file, weights with every draw.

law says what draws follow before they are weighted: "masked law" (the weights correct it), "consistent" (p given L as
draws or particles grow), "exact" (p given L from the first draw on; of "distinct", without replacement).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..errors import UnsupportedError
from . import asap, awrs, exact, markov, masked, pimh, smc, without_replacement
from .base import Draw, Draws
from .lm import LanguageModel
from .ngram import NGram

if TYPE_CHECKING:
    from ..compile import Constraint

__all__ = ["SAMPLERS", "Draw", "Draws", "LanguageModel", "NGram", "Sampler", "draw"]


class Sampler(NamedTuple):
    """draw: the function, of the signature of `draw` and options of its own. law: what it offers."""

    draw: Callable[..., Draws]
    law: Literal["masked law", "consistent", "exact"]


SAMPLERS: dict[str, Sampler] = {
    "masked": Sampler(masked.draw, "masked law"),
    "awrs": Sampler(awrs.draw, "masked law"),
    "asap": Sampler(asap.draw, "consistent"),
    "exact": Sampler(exact.draw, "exact"),
    "distinct": Sampler(without_replacement.draw, "exact"),
    "smc": Sampler(smc.draw, "consistent"),
    "pimh": Sampler(pimh.draw, "consistent"),
    "markov": Sampler(markov.draw, "exact"),
}


def draw(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    sampler: str = "masked",
    n: int = 1,
    rng: np.random.Generator,
    max_tokens: int,
    **options: Any,
) -> Draws:
    """n weighted draws of at most max_tokens tokens, end token included. sampler: a name of SAMPLERS; options: its own,
    see its file."""
    if sampler not in SAMPLERS:
        raise UnsupportedError(f"there is no sampler {sampler!r}", hint=f"The samplers are {', '.join(SAMPLERS)}.")
    return SAMPLERS[sampler].draw(lm, constraint, n=n, rng=rng, max_tokens=max_tokens, **options)
