"""One token under a checker: tokens are drawn under the mask, in the order of a proposal, until one passes.

    masks="first"    row -> mask -> temperature, top-k, top-p -> tokens, each checked until one passes
    masks="after"    row -> temperature, top-k, top-p -> tokens, each checked, then looked up in the mask

With top-k, at most k tokens are checked at a step: the decoding of PICARD (Scholak et al. 2021, section 3), which has
no mask, is masks="after". A token that is rejected is not drawn again at this step (adaptive rejection, Lipkin et al.
2025), so the accepted one has the distribution of the proposal over all tokens that would pass, though most of them are
never checked. The weight of a text multiplies unbiased estimates of the mass of these (`sampling.token_rejection`).

The mask is cheap and rejects most tokens, so masks="first" needs far fewer checks. The texts are those of the decoding
loop (`decoding.checked_position`).
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..sampling.awrs import draw_token
from ..sampling.core.masked_sampling import Pick, Proposal, apply_proposal
from ..sampling.core.results import log_sum
from ..sampling.token_rejection import RECURSIVE

if TYPE_CHECKING:
    from ..sampling.checkers import Checker

__all__ = ["DeadPrefixes", "MaskOrder", "TokenCheck", "pick_checked"]

MaskOrder = Literal["first", "after"]
DeadPrefixes = Set[tuple[int, ...]]
"""Prefixes after which no token passed. They are avoided in later draws."""


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """What the tokens of a text must pass besides the mask.

    Attributes
    ----------
    checker : Checker
        Such as a `VerdictChecker`.
    masks : {"first", "after"}
        Whether the mask is applied before the proposal, or to single tokens after the checker.
    dead : set of tuple of int
        Prefixes to avoid.
    """

    checker: Checker
    masks: MaskOrder = "first"
    dead: DeadPrefixes = field(default=frozenset(), repr=False)


def pick_checked(
    row: NDArray[np.floating[Any]],
    tokens: NDArray[np.int64],
    passes: Callable[[int], bool],
    rng: np.random.Generator,
    proposal: Proposal,
    ends: tuple[int, ...],
) -> Pick | None:
    """Draw one of some tokens that passes a check.

    Parameters
    ----------
    row : float [V]
        Log-probabilities of the next token, in nats.
    tokens : int64 [k]
        The tokens that the proposal is applied to, ascending.
    passes : callable
        Whether a token may be taken; called for one after the other until one may.
    rng : numpy.random.Generator
    proposal : Proposal
        How tokens are chosen; with temperature 0, the likeliest one that passes, of the top_k likeliest.
    ends : tuple of int
        The end tokens, which count as one.

    Returns
    -------
    Pick or None
        None if no token passes. `logproposal` is that among the tokens that pass, whose mass is estimated: the
        expectation of exp(-logproposal) is right. `logmass` is that of `tokens`.
    """
    logs = row[tokens].astype(np.float64)
    if not len(tokens) or logs.max() == -np.inf:
        return None
    logmass = log_sum(logs)
    if proposal.temperature == 0:
        order = np.argsort(-logs, kind="stable")[: proposal.top_k]
        token = next((int(tokens[k]) for k in order if logs[k] > -np.inf and passes(int(tokens[k]))), None)
        return None if token is None else Pick(token, log_of_token(row, token, ends), 0.0, logmass)
    with np.errstate(divide="ignore"):
        proposed = np.log(apply_proposal(logs, proposal))
    full = np.full(len(row), -np.inf)
    full[tokens] = proposed
    drawn = draw_token(full, passes, rng, method=RECURSIVE, allowed=tokens[proposed > -np.inf], ends=ends)
    if drawn.token is None:
        return None
    logproposal = log_of_token(full, drawn.token, ends) - drawn.log_weight
    return Pick(drawn.token, log_of_token(row, drawn.token, ends), logproposal, logmass)


def log_of_token(row: NDArray[np.floating[Any]], token: int, ends: tuple[int, ...]) -> float:
    """Return the log-probability of a token; of an end token, that of all end tokens together."""
    return log_sum(row[list(ends)].astype(np.float64)) if token in ends else float(row[token])
