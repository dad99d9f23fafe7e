"""AWRS, adaptive weighted rejection sampling: few checks of a token in place of a mask, and weights along the text.

    step(logprobs, check, rng) -> Step(token, logweight, checks)

is one token: `check(token)` says whether it may come. exp(logweight) 1{token = a} is p(a) [a may come] on average, so
the log-weights of a text's steps add up to a proper weight of it, as those of masking do, only noisier; and the law of
the tokens is masking's. The better the model knows the constraint, the fewer checks: some exp(KL) of them.
Source: Lipkin et al. 2025. How a weight is made: `rejection`; in which order tokens are tried: `race`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, LimitError
from .checkers import Both, Checker, Judged, Position
from .exponential_race import FAINTEST, Race, Row
from .language_model import LanguageModel, rows_after
from .masked_sampling import pick_under
from .results import Draw, Draws, log_sum
from .sampler_arguments import check, check_counts, check_judges, check_seconds
from .success_walks import Judge
from .token_masses import allowed_tokens, mask_of
from .token_rejection import Ask, Chunks, DesRaj, ExploreFlip, Method
from .weight_statistics import weight_stats

__all__ = ["DES_RAJ", "Step", "draw", "step", "step_at"]

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
        raise ArgumentError(f"budget must be 1 or more, not {budget!r}: without any check there is no weight")
    most = math.inf if budget is None else budget
    patience = PATIENCE if mask is not None and most > PATIENCE else math.inf
    if len(ends) > 1:
        check, many = one_end(check, many, ends)
    ask = Ask(check, many, most, patience)
    shift, tokens, logs = 0.0, allowed, logprobs if allowed is None else logprobs[allowed]
    while True:
        if tokens is not None:
            if np.isnan(top := float(logs.max(initial=-np.inf))):
                raise ArgumentError("the model's log-probabilities are not numbers (NaN)")
            if top == -np.inf:
                return Step(None, -np.inf, ask.spent)
            shift += top
            logs = logs.astype(np.float64) - top
        race = Race(logs, rng, tokens=tokens, total=1.0 if tokens is None else float(np.exp(logs).sum()))
        token, weight = method(race, ask)
        if token is not None:
            return Step(ends[0] if token in ends else token, math.log(weight) + shift, ask.spent)
        if ask.lost and mask is not None:
            both = mask()
            if allowed is not None:
                both = both & mask_of(allowed, 32 * len(both))
            choice = pick_under(logprobs, both, rng)
            if choice is None or choice.logmass == -np.inf:
                return Step(None, -np.inf, ask.spent)
            return Step(ends[0] if choice.token in ends else choice.token, choice.logmass, ask.spent)
        faint = np.flatnonzero((logs > -np.inf) & (logs <= FAINTEST))
        if not len(faint) or race.left > 0 or ask.left < 1:
            return Step(None, -np.inf, ask.spent)
        tokens, logs = faint if tokens is None else tokens[faint], logs[faint]  # all others are known to be invalid


Check = Callable[[int], bool]
Many = Callable[[list[int]], list[bool]]


def one_end(check: Check, many: Many | None, ends: tuple[int, ...]) -> tuple[Check, Many | None]:
    """Checks that are about the first end token, and once, where any of them is meant."""
    known: list[bool] = []

    def checked(token: int) -> bool:
        if token not in ends:
            return check(token)
        if not known:
            known.append(check(ends[0]))
        return known[0]

    def checked_all(tokens: list[int]) -> list[bool]:
        assert many is not None
        return many([ends[0] if token in ends else token for token in tokens])

    return checked, None if many is None else checked_all


When = Literal["late", "first", "never"]
Dead = set[tuple[int, ...]]
WITHOUT_REPLACEMENT = (DesRaj, ExploreFlip, Chunks)


def step_at(
    position: Position,
    logprobs: Row,
    rng: np.random.Generator,
    *,
    method: Method = DES_RAJ,
    budget: int | None = None,
    masks: When = "late",
    ends: tuple[int, ...] = (),
    dead: Dead | None = None,
) -> Step:
    """`step` with what a position allows as the check; it is not moved. masks: as of `draw`.

    dead: prefixes from which nothing of any probability leads on. They are not gone to, and this one is added if all
    its tokens were tried in vain: so a validator that is late is found out once, not by every draw.
    """
    exact = getattr(position, "mask", None)
    sound = getattr(getattr(position, "first", position), "mask", None) if masks == "first" else None
    check = position.allows
    if dead:
        tokens = tuple(position.tokens)

        def check(token: int) -> bool:
            return (*tokens, token) not in dead and position.allows(token)

    found = step(
        logprobs, check, rng, method=method, budget=budget, ends=ends,
        allowed=None if sound is None else allowed_tokens(sound()), mask=exact if masks == "late" else None,
    )  # fmt: skip
    tried_all = isinstance(method, WITHOUT_REPLACEMENT) and (budget is None or found.checks < budget)
    if dead is not None and found.token is None and tried_all:
        dead.add(tuple(position.tokens))
    return found


def draw(
    lm: LanguageModel,
    constraint: Checker,
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int,
    method: Method = DES_RAJ,
    budget: int | None = None,
    masks: When = "late",
    accepts: Judge | None = None,
    viable: Judge | None = None,
    seconds: float | None = None,
) -> Draws:
    """n independent draws, one call of the model for all of them at every step.

    constraint: a Constraint or any `checkers.Checker`. accepts, viable: validators behind it (`checkers.Judged`).
    method, budget: how weights are made, and most checks of a step. masks: "late", where many checks of a Constraint
    fail; "first", and checks only of what it leaves (worth it for slow validators); or "never".
    max_tokens counts the end token; a text that cannot end in time, or for which no token was found, weighs nothing.
    Raises LimitError if max_tokens < 1 or more than `seconds` were needed; ValueError for rows that are no law.
    """
    check(lm, constraint, n, rng, max_tokens)
    check_seconds(seconds)
    check_judges(accepts=accepts, viable=viable)
    if budget is not None:
        check_counts(1, budget=budget)
    if masks not in ("late", "first", "never"):
        raise ArgumentError(f"masks is {masks!r}: it is 'late', 'first' or 'never'")
    until = math.inf if seconds is None else time.monotonic() + seconds
    vocabulary = constraint.vocabulary
    checker = constraint if accepts is viable is None else Both(constraint, Judged(vocabulary, accepts, viable))
    ends = tuple(vocabulary.eos_ids)
    positions = [checker.matcher() for _ in range(n)]
    logprob, logweight, dead = np.zeros(n), np.zeros(n), Dead()
    live, calls, checks, steps = list(range(n)), 0, 0, 0
    for left in range(max_tokens, 0, -1):
        if not live:
            break
        rows, calls = rows_after(lm, [positions[i].tokens for i in live], vocabulary.size), calls + 1
        still = []
        for i, row in zip(live, rows):
            if time.monotonic() > until:
                raise LimitError(f"{n} draws took more than {seconds} seconds", hint="Raise seconds, or set a budget.")
            if left == 1:
                ok = positions[i].allows(ends[0])
                found = Step(ends[0], log_sum(row[list(ends)].astype(np.float64)), 1) if ok else Step(None, -np.inf, 1)
            else:
                found = step_at(positions[i], row, rng, method=method, budget=budget, masks=masks, ends=ends, dead=dead)
            checks, steps = checks + found.checks, steps + 1
            logweight[i] += found.logweight
            if found.token is None:
                logprob[i] = -np.inf
            elif found.token in ends:
                logprob[i] += log_sum(row[list(ends)].astype(np.float64))
            else:
                logprob[i] += float(row[found.token])
                positions[i].advance(found.token)
                still.append(i)
        live = still
    texts = [tuple(position.tokens) for position in positions]
    draws = (Draw(t, vocabulary.decode(t), float(p), float(w)) for t, p, w in zip(texts, logprob, logweight))
    costs = {"model_calls": calls, "steps": steps, "checks": checks, "checks_per_token": checks / max(steps, 1)}
    return Draws.of(draws, **costs, **weight_stats(logweight))
