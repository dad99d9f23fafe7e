"""Draw one token from a row of log-probabilities under a mask, without an array of the allowed tokens where possible.

The tokens and the random numbers used are those of `sampling.core.masked_sampling.pick_token`. Sums over the words of
the mask replace lists of tokens (see `sampling.core.token_masses`), so that a choice among 128,000 tokens takes tens of
microseconds, and one among a few takes two kernel calls rather than a score of array operations.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ..engine.batches import apply_mask
from ..sampling.core.language_model import check_mass
from ..sampling.core.masked_sampling import FEW, PLAIN, Pick, Proposal, apply_proposal, choose_index, pick_token
from ..sampling.core.results import log_sum
from ..sampling.core.token_masses import Masses, allowed_tokens, as_kernel_row, enumerate_tokens, mask_of
from .model_runner import LogprobRows

__all__ = ["choose_token", "find_log_proposals", "make_full_mask"]

Mask = NDArray[np.int32]
LISTED = 32
"""Greatest number of allowed tokens that are handled one by one."""
LIKELY = 512
"""How many of the likeliest tokens are looked at first for top_p."""
LOWEST = -1e30
"""Below the logs of all tokens of any probability."""
SLACK = 1e-3
"""Added to a bound that is checked again later."""


@lru_cache(maxsize=16)
def make_full_mask(size: int) -> Mask:
    """Return the read-only Mask of all tokens of a vocabulary of `size` tokens."""
    mask = mask_of(range(size), size)
    mask.flags.writeable = False
    return mask


def choose_token(
    row: LogprobRows, mask: Mask, rng: np.random.Generator, proposal: Proposal = PLAIN, ends: tuple[int, ...] = ()
) -> Pick | None:
    """Choose a token that a mask allows.

    Parameters
    ----------
    row : float32 or float64 [V]
        Log-probabilities of the next token, in nats.
    mask : int32 [ceil(V / 32)]
        The allowed tokens.
    rng : numpy.random.Generator
        One uniform number is drawn, or two, as by `pick_token`.
    proposal : Proposal
        How the token is chosen.
    ends : tuple of int
        The end tokens.

    Returns
    -------
    Pick or None
        None if the mask allows no token.

    Raises
    ------
    ArgumentError
        If the row has NaN among the allowed tokens, or is not a distribution.
    """
    if proposal.defensive:
        allowed = allowed_tokens(mask)
        return pick_token(row, allowed, rng, proposal, ends) if len(allowed) else None
    is_plain = proposal.temperature == 1 and proposal.is_uncut
    if len(row) < LISTED or mask is not make_full_mask(len(row)):
        listed = enumerate_tokens(mask)
        if listed is not None and not len(listed):
            return None
        if listed is not None and is_plain and len(listed) <= LISTED:
            return sample_listed(row, listed, rng, ends)
        if listed is not None and not is_plain:
            return pick_token(row, listed, rng, proposal, ends)
    masses = Masses(row, mask)
    check_mass(masses.logmass)
    if masses.logmass == -np.inf:
        return pick_token(row, allowed_tokens(mask), rng, proposal, ends)
    if is_plain:
        return sample_masses(masses, masses, rng, ends)
    if proposal.temperature == 0:
        return choose_likeliest(masses, ends)
    scaled = masses
    if proposal.temperature != 1:
        scaled = Masses(as_kernel_row(row) / masses.row.dtype.type(proposal.temperature), mask)
    if proposal.is_uncut:
        return sample_masses(masses, scaled, rng, ends)
    return sample_cut(masses, scaled, rng, proposal, ends)


def find_log_proposals(
    row: LogprobRows, mask: Mask, tokens: list[int], proposal: Proposal = PLAIN
) -> tuple[NDArray[np.float64], float]:
    """Return the log-probabilities with which `choose_token` chooses some tokens.

    Parameters
    ----------
    row, mask, proposal
        As for `choose_token`.
    tokens : list of int
        Allowed tokens, k in total, none of them an end token.

    Returns
    -------
    logs : float64 [k]
        In nats.
    logmass : float
        Log of the mass of all allowed tokens.
    """
    if proposal.temperature == 1 and proposal.is_uncut:
        masses = Masses(row, mask)
        if masses.logmass > -np.inf:
            return row[tokens].astype(np.float64) - masses.logmass, masses.logmass
    allowed = allowed_tokens(mask)
    logs = row[allowed].astype(np.float64)
    logmass = log_sum(logs)
    probs = apply_proposal(logs if logmass > -np.inf else np.zeros_like(logs), proposal)
    with np.errstate(divide="ignore"):
        return np.log(probs[np.searchsorted(allowed, tokens)]), logmass


def sample_listed(row: LogprobRows, listed: NDArray[np.int64], rng: np.random.Generator, ends: tuple[int, ...]) -> Pick:
    """Draw one of a few tokens (int64 [k], k > 0), as `pick_token` with a plain Proposal."""
    tokens, logs = listed.tolist(), row[listed].tolist()
    top = max(logs)
    if not -math.inf < top < 1 or any(map(math.isnan, logs)):
        return pick_token(row, listed, rng, PLAIN, ends)
    edges = [*accumulate(math.exp(log - top) for log in logs)]
    logmass = top + math.log(edges[-1])
    check_mass(logmass)
    index = bisect_right(edges, rng.random() * edges[-1])
    while index == len(edges) or logs[index] == -math.inf:  # rounding exceeded the last possible token
        index -= 1
    chosen = logs[index]
    if tokens[index] in ends:
        chosen = log_sum(np.array([log for token, log in zip(tokens, logs) if token in ends]))
    return Pick(tokens[index], chosen, chosen - logmass, logmass)


def choose_likeliest(masses: Masses, ends: tuple[int, ...]) -> Pick:
    """Return the likeliest allowed token, the first of several."""
    token = int(hide_refused(masses).argmax())
    return Pick(token, masses.log_of(ends) if token in ends else float(masses.row[token]), 0.0, masses.logmass)


def sample_masses(masses: Masses, scaled: Masses, rng: np.random.Generator, ends: tuple[int, ...]) -> Pick:
    """Draw a token from `scaled`, whose row is that of `masses` divided by the temperature."""
    token, size = -1, len(masses.row)
    full = make_full_mask(size)
    if masses.mask is not full and 0 < size - count_tokens(masses.mask) <= size // FEW:
        anything = Masses(scaled.row, full).token_at(rng.random())  # as `pick_token`: from the whole row first
        if masses.mask[anything >> 5] >> (anything & 31) & 1:
            token = anything
    if token < 0:
        token = scaled.token_at(rng.random())
    if token in ends:
        return Pick(token, masses.log_of(ends), scaled.log_of(ends) - scaled.logmass, masses.logmass)
    return Pick(token, float(masses.row[token]), float(scaled.row[token]) - scaled.logmass, masses.logmass)


def count_tokens(mask: Mask) -> int:
    """Return the number of tokens that a mask allows."""
    return int(np.bitwise_count(mask.view(np.uint32)).sum())


def hide_refused(masses: Masses) -> LogprobRows:
    """Return the row with every token that is not allowed at minus infinity."""
    row: LogprobRows = masses.row.copy()
    apply_mask(row, masses.mask)
    return row


def sample_cut(
    masses: Masses, scaled: Masses, rng: np.random.Generator, proposal: Proposal, ends: tuple[int, ...]
) -> Pick:
    """Draw a token from `scaled` after top_k, top_p and min_p, which look at the likeliest tokens only."""
    row = hide_refused(scaled)
    tokens = find_likeliest(row, proposal, scaled.logmass)
    logs = row[tokens].astype(np.float64)
    probs = np.exp(logs - logs.max())
    if proposal.top_p is not None and proposal.top_p < 1:
        total = probs.sum() if proposal.top_k is not None else np.exp(scaled.logmass - logs.max())
        order = np.argsort(-probs, kind="stable")
        before = np.cumsum(probs[order]) - probs[order]
        probs[order[before >= proposal.top_p * total]] = 0.0
    if proposal.min_p is not None:
        probs[probs < proposal.min_p * probs.max()] = 0.0
    probs /= probs.sum()
    index = choose_index(probs, rng)
    token = int(tokens[index])
    if token in ends:
        chosen = float(np.log(probs[np.isin(tokens, ends)].sum()))
        return Pick(token, masses.log_of(ends), chosen, masses.logmass)
    return Pick(token, float(masses.row[token]), float(np.log(probs[index])), masses.logmass)


def find_likeliest(row: LogprobRows, proposal: Proposal, logmass: float) -> NDArray[np.int64]:
    """Return tokens, ascending, among which are all that a Proposal leaves; with top_k, exactly these k.

    row: float [V], minus infinity for tokens that are not allowed. logmass: log of the sum of its exponentials.
    """
    if proposal.top_k is not None:
        least = np.partition(row, -proposal.top_k)[-proposal.top_k] if proposal.top_k < len(row) else -np.inf
        if least == -np.inf:
            return np.flatnonzero(row > -np.inf)
        equal = np.flatnonzero(row == least)
        above = np.flatnonzero(row > least)
        return np.sort(np.concatenate([above, equal[: proposal.top_k - len(above)]]))
    top = float(row.max())
    if proposal.min_p:
        return np.flatnonzero(row >= top + np.log(proposal.min_p) - SLACK)
    count = LIKELY
    while count < len(row):
        least = np.partition(row, -count)[-count]
        tokens = np.flatnonzero(row >= max(least, LOWEST))
        if np.exp(row[tokens] - top, dtype=np.float64).sum() >= (proposal.top_p or 1) * np.exp(logmass - top):
            return tokens
        count *= 8
    return np.flatnonzero(row > -np.inf)
