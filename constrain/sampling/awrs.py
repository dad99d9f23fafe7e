"""AWRS, adaptive weighted rejection sampling: few checks of a token in place of a mask, and weights along the text.

    step(logprobs, check, rng) -> Step(token, logweight, checks)

is one token: `check(token)` says whether it may come. exp(logweight) 1{token = a} is p(a) [a may come] on average, so
the log-weights of a text's steps add up to a proper weight of it, as those of masking do, only noisier; and the law of
the tokens is masking's. The better the model knows the constraint, the fewer checks: some exp(KL) of them.
Source: Lipkin et al. 2025. How a weight is made: `rejection`; in which order tokens are tried: `race`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .base import log_sum
from .masked import allowed_tokens, pick
from .race import FAINTEST, Race, Row
from .rejection import Ask, DesRaj, Method

__all__ = ["DES_RAJ", "Step", "step"]

DES_RAJ = DesRaj()

PATIENCE = 32
"""Checks without success after which a mask, where there is one, is cheaper than to go on."""


class Step(NamedTuple):
    """One token. token: None if none was found, logweight (nats) being -inf then. checks: how many it took."""

    token: int | None
    logweight: float
    checks: int


def step(
    logprobs: Row,
    check: Callable[[int], bool],
    rng: np.random.Generator,
    *,
    method: Method = DES_RAJ,
    budget: int | None = None,
    allowed: NDArray[np.int64] | None = None,
    mask: Callable[[], NDArray[np.int32]] | None = None,
    many: Callable[[list[int]], list[bool]] | None = None,
    ends: tuple[int, ...] = (),
) -> Step:
    """A token that passes `check`, and its weight.

    logprobs: float [V], logs of probabilities that sum to 1. check: asked at most `budget` times, about no token twice;
    its answers must not depend on what it was asked before. many: the same for several tokens, for methods that ask so.
    allowed: int64 [k], the only tokens that are tried (two stages: what a sound mask leaves; its mass counts).
    mask: gives exactly what `check` does, as a Mask; it is asked instead where many checks in a row fail.
    ends: tokens that count as one, the first of them, with the sum of their probabilities.
    Raises ValueError for log-probabilities that are none.
    """
    if budget is not None and budget < 1:
        raise ValueError(f"budget must be 1 or more, not {budget!r}: without any check there is no weight")
    if len(ends) > 1:
        merged = log_sum(logprobs[list(ends)].astype(np.float64))
        logprobs = logprobs.copy()
        logprobs[list(ends)] = -np.inf
        logprobs[ends[0]] = merged
    most = math.inf if budget is None else budget
    patience = PATIENCE if mask is not None and most > PATIENCE else math.inf
    ask = Ask(check, many, most, patience)
    shift, tokens, logs = 0.0, allowed, logprobs if allowed is None else logprobs[allowed]
    while True:
        if tokens is not None:
            if np.isnan(top := float(logs.max(initial=-np.inf))):
                raise ValueError("the model's log-probabilities are not numbers (NaN)")
            if top == -np.inf:
                return Step(None, -np.inf, ask.spent)
            shift += top
            logs = logs.astype(np.float64) - top
        race = Race(logs, rng, tokens=tokens, total=1.0 if tokens is None else float(np.exp(logs).sum()))
        token, weight = method(race, ask)
        if token is not None:
            return Step(token, math.log(weight) + shift, ask.spent)
        if ask.lost and mask is not None:
            ids = allowed_tokens(mask())
            choice = pick(logprobs, ids if allowed is None else np.intersect1d(ids, allowed), rng)
            return Step(choice.token if choice.logmass > -np.inf else None, choice.logmass, ask.spent)
        faint = np.flatnonzero((logs > -np.inf) & (logs <= FAINTEST))
        if not len(faint) or race.left > 0 or ask.left < 1:
            return Step(None, -np.inf, ask.spent)
        tokens, logs = faint if tokens is None else tokens[faint], logs[faint]  # all others are known to be invalid
