"""Verification of drafted tokens: how the token of one position is drawn, given the draft's tokens there.

The target p is the model's row under the mask and the sampling options, renormalised. Two kinds of drafts:

*Deterministic* (look-ups, forced text, the best tokens of a draft model): the token is drawn from p as without a draft
(`pick_token`), and the draft counts as accepted where it holds this token. The text is the same for the same seed.

*Sampled* from a known distribution q: a token x of the draft is accepted with probability min(1, p(x) / q(x)), which is
the best that any coupling can do; after a rejection, the next sibling is verified in the same way against the residual
distribution

    p' = (p - q)+ / sum (p - q)+        and        q' = q without x, renormalised,

since siblings are drawn without replacement; after the last one the token is drawn from what is left of p. The token
has exactly the distribution p (Leviathan et al. 2023, theorem 1; Chen et al. 2023, theorem 1; for siblings, recursive
rejection sampling: Jeon et al. 2024, section 3.1, and Yang et al. 2024, "Multi-candidate speculative decoding").

The probabilities that are recorded with the token are those of p, whichever way it was drawn. Weights of texts
therefore do not depend on drafts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..sampling.core.language_model import check_mass
from ..sampling.core.masked_sampling import PLAIN, Pick, Proposal, apply_proposal, choose_index, pick_token
from ..sampling.core.results import log_sum

__all__ = ["draw_with_siblings", "pick_drafted"]


def pick_drafted(
    logprobs: NDArray[np.floating[Any]],
    allowed: NDArray[np.int64],
    rng: np.random.Generator,
    proposal: Proposal = PLAIN,
    ends: tuple[int, ...] = (),
    siblings: Sequence[int] = (),
    draft: NDArray[np.float64] | None = None,
) -> Pick:
    """Choose one of `allowed` as `pick_token` does, in distribution; one of `siblings` as often as possible.

    Parameters
    ----------
    logprobs : ndarray of float, shape (V,)
        The model's row, natural logs.
    allowed : ndarray of int64, shape (k,)
        The allowed tokens, ascending, k > 0.
    rng : numpy.random.Generator
        Independent of what the draft was drawn with.
    proposal : Proposal
        The sampling options.
    ends : tuple of int
        The end tokens. They are never accepted from a draft.
    siblings : sequence of int
        The draft's tokens at this position, in the order in which they were drawn.
    draft : ndarray of float64, shape (V,), optional
        The probabilities that the siblings were drawn from, without replacement. None if they are deterministic: then
        the result is that of `pick_token`, with the same random numbers.

    Returns
    -------
    Pick
        With the log-probabilities of `pick_token`.

    Raises
    ------
    ArgumentError
        If `logprobs` has NaN, or sums to more than 1.
    """
    if draft is None or not siblings:
        return pick_token(logprobs, allowed, rng, proposal, ends)
    logs = logprobs[allowed].astype(np.float64)
    if np.isnan(logs).any():
        raise ArgumentError("the model's log-probabilities are not numbers (NaN)")
    logmass = log_sum(logs)
    check_mass(logmass)
    target = apply_proposal(logs if logmass > -np.inf else np.zeros_like(logs), proposal)
    guessed, indices = restrict_draft(draft, siblings, allowed, ends)
    index = draw_with_siblings(target, guessed, indices, rng)
    token = int(allowed[index])
    chosen = np.isin(allowed, ends) if token in ends else slice(index, index + 1)
    return Pick(token, log_sum(logs[chosen]), float(np.log(target[chosen].sum())), logmass)


def restrict_draft(
    draft: NDArray[np.float64], siblings: Sequence[int], allowed: NDArray[np.int64], ends: tuple[int, ...]
) -> tuple[NDArray[np.float64], list[int]]:
    """Return the draft's probabilities of the allowed tokens other than `ends`, and the indices of such siblings.

    Siblings that are not among these are dropped: those that remain are draws without replacement from the restricted
    distribution.
    """
    possible = draft[allowed].astype(np.float64)
    possible[np.isin(allowed, ends)] = 0.0
    tokens = np.asarray(siblings, np.int64)
    places = np.minimum(np.searchsorted(allowed, tokens), len(allowed) - 1)
    fitting = (allowed[places] == tokens) & (possible[places] > 0)
    return possible, places[fitting].tolist()


def draw_with_siblings(
    target: NDArray[np.float64], draft: NDArray[np.float64], siblings: Sequence[int], rng: np.random.Generator
) -> int:
    """Draw an index from `target` by recursive rejection sampling.

    Parameters
    ----------
    target : ndarray of float64, shape (k,)
        Probabilities, summing to 1.
    draft : ndarray of float64, shape (k,)
        Weights that the siblings were drawn in proportion to, one after the other, without replacement.
    siblings : sequence of int
        Their indices, with positive weights.
    rng : numpy.random.Generator
        Gives one uniform number per sibling, and one for the index if all of them are rejected.

    Returns
    -------
    int
        An index with the distribution `target`, if the siblings are random as stated.
    """
    weights = draft.copy()
    for sibling in siblings:
        guessed = weights / weights.sum()
        ratio = float(target[sibling] / guessed[sibling])
        if ratio >= 1 or (ratio > 0 and rng.random() < ratio):
            return int(sibling)
        residual = np.maximum(target - guessed, 0.0)
        total = residual.sum()
        if total > 0:  # otherwise both are equal up to rounding, and a rejection was all but impossible
            target = residual / total
        weights[sibling] = 0.0
    return choose_index(target, rng)
