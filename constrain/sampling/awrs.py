"""AWRS, adaptive weighted rejection sampling: a few checks of single tokens instead of a mask (Lipkin et al. 2025).

    draw_token(logprobs, check, rng) -> WeightedToken(token, log_weight, checks)

draws one token; `check(token)` returns whether it is valid. Since E[exp(log_weight) 1{token = a}] = p(a) [a valid], the
sums of log-weights over a text weight it properly, as masking does but with more variance; tokens have the same
distribution as under a mask. The better the model fits the constraint, the fewer checks are needed: about exp(KL);
with a mask at hand there is one, and the mask is computed only where that leaves the token or the weight in doubt.
`token_rejection` has the estimators of the weight, `exponential_race` the order in which tokens are tried, `late_mask`
the same for the default on long rows, without a race.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, LimitError
from .checkers import BothCheckers, Checker, CheckerPosition, ValidatorChecker
from .core.language_model import LanguageModel, rows_after
from .core.results import Draw, Draws
from .core.sampler_arguments import check_common_arguments, check_counts, check_seconds, check_validators
from .core.token_masses import allowed_tokens, mask_of, sum_ends
from .core.weight_statistics import weight_stats
from .exponential_race import FAINTEST, ExponentialRace, Row
from .late_mask import SharedRow, draw_late
from .success_walks import Validator
from .token_rejection import CheckBudget, Chunks, DesRaj, ExploreFlip, LateMask, Method

__all__ = ["LATE_MASK", "WeightedToken", "draw_awrs", "draw_token", "draw_token_at"]

LATE_MASK = LateMask()

PATIENCE = 32
"""Number of failed checks after which methods other than `LateMask` use a mask, if there is one."""


class WeightedToken(NamedTuple):
    """One token and its weight.

    token: None if no valid one was found. log_weight: nats, -inf if there is none. checks: number of checks.
    """

    token: int | None
    log_weight: float
    checks: int


def draw_token(
    logprobs: Row,
    check: Callable[[int], bool],
    rng: np.random.Generator,
    *,
    method: Method = LATE_MASK,
    budget: int | None = None,
    allowed: NDArray[np.int64] | None = None,
    mask: Callable[[], NDArray[np.int32]] | None = None,
    check_many: Callable[[list[int]], list[bool]] | None = None,
    ends: tuple[int, ...] = (),
    shared: SharedRow | None = None,
) -> WeightedToken:
    """Draw a token that passes `check`, with its weight.

    Parameters
    ----------
    logprobs : float [V]
        Logs of probabilities that sum to 1.
    check : callable
        Whether a token is valid. Called at most `budget` times, at most once per token; its answers must not depend on
        earlier calls.
    rng : numpy.random.Generator
    method : Method
        The estimator of the weight, see `token_rejection`.
    budget : int, optional
        Maximum number of checks.
    allowed : int64 [k], optional
        The only tokens that are tried: those of a sound mask, whose mass counts into the weight.
    mask : callable, optional
        Returns the results of `check` for all tokens, as an int32 bit mask; used where checks in a row fail, and by
        `LateMask` for the weight.
    check_many : callable, optional
        `check` for several tokens at once, for methods that use it.
    ends : tuple of int
        Tokens that count as one, the first of them, with the sum of their probabilities.
    shared : SharedRow, optional
        Of the same row, if more than one token is drawn with the same `mask`.

    Returns
    -------
    WeightedToken

    Raises
    ------
    ValueError
        If logprobs are not log-probabilities.
    """
    if budget is not None and budget < 1:
        raise ArgumentError(f"budget must be 1 or more, not {budget!r}: without any check there is no weight")
    shared = shared or SharedRow()
    likely = shared.find_likely(logprobs) if allowed is None else None
    if mask is not None and likely is not None and isinstance(method, LateMask) and method.patience == 1:
        token, log_weight, checks = draw_late(logprobs, likely, shared, check, mask, ends, method.slack, rng)
        return WeightedToken(ends[0] if token in ends else token, log_weight, checks)
    if mask is not None and allowed is not None:
        mask = partial(limit_mask, mask, allowed)
    if len(ends) > 1:
        check, check_many = merge_end_tokens(check, check_many, ends)
    patience: float = method.patience if isinstance(method, LateMask) else PATIENCE
    max_checks = math.inf if budget is None else budget
    if mask is None or max_checks <= patience:
        patience = math.inf
    limited_check = CheckBudget(check, check_many, max_checks, patience)
    shift, tokens, logs = 0.0, allowed, logprobs if allowed is None else logprobs[allowed]
    while True:
        if tokens is not None:
            if np.isnan(top := float(logs.max(initial=-np.inf))):
                raise ArgumentError("the model's log-probabilities are not numbers (NaN)")
            if top == -np.inf:
                return WeightedToken(None, -np.inf, limited_check.spent)
            shift += top
            logs = logs.astype(np.float64) - top
            race = ExponentialRace(logs, rng, tokens=tokens, total=float(np.exp(logs).sum()))
        else:
            race = ExponentialRace(logs, rng, likely=likely)
        if mask is not None:
            limited_check.mass = partial(shared.sum_allowed, logprobs, mask, shift)
        token, weight = method(race, limited_check)
        if token is not None:
            return WeightedToken(ends[0] if token in ends else token, math.log(weight) + shift, limited_check.spent)
        if limited_check.lost and mask is not None:
            under_mask = shared.find_allowed(logprobs, mask)
            if under_mask.logmass == -np.inf:
                return WeightedToken(None, -np.inf, limited_check.spent)
            token = under_mask.draw(rng)
            return WeightedToken(ends[0] if token in ends else token, under_mask.logmass, limited_check.spent)
        faint = np.flatnonzero((logs > -np.inf) & (logs <= FAINTEST))
        if not len(faint) or race.left > 0 or limited_check.left < 1:
            return WeightedToken(None, -np.inf, limited_check.spent)
        tokens, logs = faint if tokens is None else tokens[faint], logs[faint]  # all others are known to be invalid


def limit_mask(mask: Callable[[], NDArray[np.int32]], allowed: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return what `mask` returns (int32 [words]), limited to the tokens `allowed` (int64 [k])."""
    out = mask()
    return out & mask_of(allowed, 32 * len(out))


Check = Callable[[int], bool]
Many = Callable[[list[int]], list[bool]]


def merge_end_tokens(check: Check, many: Many | None, ends: tuple[int, ...]) -> tuple[Check, Many | None]:
    """Return checks in which all end tokens are one: the first of them, which is checked once."""
    end_answer: list[bool] = []

    def checked(token: int) -> bool:
        if token not in ends:
            return check(token)
        if not end_answer:
            end_answer.append(check(ends[0]))
        return end_answer[0]

    def checked_all(tokens: list[int]) -> list[bool]:
        assert many is not None
        return many([ends[0] if token in ends else token for token in tokens])

    return checked, None if many is None else checked_all


When = Literal["late", "first", "never"]
Dead = set[tuple[int, ...]]
WITHOUT_REPLACEMENT = (LateMask, DesRaj, ExploreFlip, Chunks)


def draw_token_at(
    position: CheckerPosition,
    logprobs: Row,
    rng: np.random.Generator,
    *,
    method: Method = LATE_MASK,
    budget: int | None = None,
    masks: When = "late",
    ends: tuple[int, ...] = (),
    dead: Dead | None = None,
    shared: SharedRow | None = None,
) -> WeightedToken:
    """Draw a token at a position, with `allows` of the position as the check. The position is not changed.

    masks: as in `draw_awrs`. dead: prefixes that no text of positive probability continues. They are avoided, and this
    prefix is added if all its tokens failed, so that a dead end is explored once rather than by every draw. shared: as
    in `draw_token`; the continuations of this prefix in `dead` must be the same.
    """
    exact = getattr(position, "mask", None)
    sound = getattr(getattr(position, "first", position), "mask", None) if masks == "first" else None
    check = position.allows
    if dead:
        tokens = tuple(position.tokens)

        def check(token: int) -> bool:
            return (*tokens, token) not in dead and position.allows(token)

        exact = None if exact is None else partial(mask_without_dead, exact, tokens, dead)
    drawn = draw_token(
        logprobs, check, rng, method=method, budget=budget, ends=ends,
        allowed=None if sound is None else allowed_tokens(sound()), mask=exact if masks == "late" else None,
        shared=shared,
    )  # fmt: skip
    tried_all = isinstance(method, WITHOUT_REPLACEMENT) and (budget is None or drawn.checks < budget)
    if dead is not None and drawn.token is None and tried_all:
        dead.add(tuple(position.tokens))
    return drawn


def mask_without_dead(mask: Callable[[], NDArray[np.int32]], tokens: tuple[int, ...], dead: Dead) -> NDArray[np.int32]:
    """Return the mask after a prefix without the tokens that lead to dead prefixes, which `check` refuses as well."""
    out = mask()
    lost = [one[-1] for one in dead if one and one[:-1] == tokens]
    return out & ~mask_of(lost, 32 * len(out)) if lost else out


def draw_awrs(
    lm: LanguageModel,
    constraint: Checker,
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int,
    method: Method = LATE_MASK,
    budget: int | None = None,
    masks: When = "late",
    accepts: Validator | None = None,
    viable: Validator | None = None,
    seconds: float | None = None,
) -> Draws:
    """Draw n independent texts by checks of single tokens, with one call of the model for all of them at every step.

    Texts that are equal so far share a row of the model and what is computed of it. A text that cannot end in time, or
    for which no token was found, has weight 0.

    Parameters
    ----------
    lm, constraint, n, rng, max_tokens
        As in `sampling.draw`.
    method : Method
        The estimator of the weight, see `token_rejection`.
    budget : int, optional
        Maximum number of checks per step.
    masks : {"late", "first", "never"}
        When the mask of a Constraint is used: "late", where the first token fails its check or leaves much mass
        undecided (`LateMask`); "first", and checks only of the tokens that it leaves (for slow validators); or "never".
    accepts : callable, optional
        Validator of complete texts, called with their bytes; see `success_walks.Validator`.
    viable : callable, optional
        Validator of prefixes, called with their bytes. It may refuse only prefixes that no accepted text continues.
    seconds : float, optional
        Time limit.

    Returns
    -------
    Draws
        With the stats model_calls, steps, checks, checks_per_token and those of `weight_stats`.

    Raises
    ------
    LimitError
        If max_tokens is less than 1, or more than `seconds` were needed.
    ValueError
        If the model returns no distribution.
    """
    check_common_arguments(lm, constraint, n, rng, max_tokens)
    check_seconds(seconds)
    check_validators(accepts=accepts, viable=viable)
    if budget is not None:
        check_counts(1, budget=budget)
    if masks not in ("late", "first", "never"):
        raise ArgumentError(f"masks is {masks!r}: it is 'late', 'first' or 'never'")
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    vocabulary = constraint.vocabulary
    checker = (
        constraint
        if accepts is viable is None
        else BothCheckers(constraint, ValidatorChecker(vocabulary, accepts, viable))
    )
    ends = tuple(vocabulary.eos_ids)
    positions = [checker.matcher() for _ in range(n)]
    texts: list[tuple[int, ...]] = [()] * n
    logprob, log_weight, dead = [0.0] * n, [0.0] * n, Dead()
    live, calls, checks, steps = list(range(n)), 0, 0, 0
    for left in range(max_tokens, 0, -1):
        if not live:
            break
        prefixes = list(dict.fromkeys(texts[i] for i in live))
        rows = rows_after(lm, list(map(list, prefixes)), vocabulary.size, maxima=left == 1 or masks == "first")
        # `dead` changes no mask after prefixes of this length
        places = {prefix: (row, SharedRow(len(prefix))) for prefix, row in zip(prefixes, rows)}
        calls, unfinished = calls + 1, []
        for i in live:
            row, shared = places[texts[i]]
            if time.monotonic() > deadline:
                raise LimitError(f"{n} draws took more than {seconds} seconds", hint="Raise seconds, or set a budget.")
            if left == 1:
                may_end = positions[i].allows(ends[0])
                drawn = WeightedToken(ends[0], sum_ends(row, ends), 1) if may_end else WeightedToken(None, -np.inf, 1)
            else:
                drawn = draw_token_at(
                    positions[i], row, rng, method=method, budget=budget, masks=masks, ends=ends, dead=dead,
                    shared=shared,
                )  # fmt: skip
            checks, steps = checks + drawn.checks, steps + 1
            log_weight[i] += drawn.log_weight
            if drawn.token is None:
                logprob[i] = -math.inf
            elif drawn.token in ends:
                logprob[i] += sum_ends(row, ends)
            else:
                logprob[i] += float(row[drawn.token])
                positions[i].advance(drawn.token)
                texts[i] = (*texts[i], drawn.token)
                unfinished.append(i)
        live = unfinished
    draws = (Draw(t, vocabulary.decode(t), p, w) for t, p, w in zip(texts, logprob, log_weight))
    costs = {"model_calls": calls, "steps": steps, "checks": checks, "checks_per_token": checks / max(steps, 1)}
    bound = 1.0  # nothing is known, as masks are not computed
    return Draws.of(draws, **costs, bound=bound, **weight_stats(np.array(log_weight)))
