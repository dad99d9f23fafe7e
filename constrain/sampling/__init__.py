"""Drawing texts from a model under a Constraint: one signature, one sampler a file, weights with every draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from ..errors import UnsupportedError
from . import masked
from .base import Draw, Draws
from .lm import LanguageModel

if TYPE_CHECKING:
    from ..compile import Constraint

__all__ = ["SAMPLERS", "Draw", "Draws", "LanguageModel", "draw"]

SAMPLERS = ("masked",)


def draw(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    sampler: Literal["masked"] = "masked",
    n: int = 1,
    rng: np.random.Generator,
    max_tokens: int,
) -> Draws:
    """n weighted draws of at most max_tokens tokens, end token included. sampler: "masked", see `sampling.masked`."""
    if sampler not in SAMPLERS:
        raise UnsupportedError(f"there is no sampler {sampler!r}", hint=f"The samplers are {', '.join(SAMPLERS)}.")
    return masked.draw(lm, constraint, n=n, rng=rng, max_tokens=max_tokens)
