"""Draw one token from a row of log-probabilities under a mask, without an array of the allowed tokens where possible.

The tokens and the random numbers used are those of `sampling.core.masked_sampling.pick_token`. Where many tokens are
allowed, sums over the words of the mask replace lists of tokens (see `sampling.core.token_masses`), so that a choice
among 128,000 tokens takes tens of microseconds.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..engine.batches import apply_mask
from ..sampling.core.language_model import check_mass
from ..sampling.core.masked_sampling import FEW, PLAIN, Pick, Proposal, pick_token
from ..sampling.core.token_masses import Masses, allowed_tokens, as_kernel_row, enumerate_tokens, mask_of
from .model_runner import LogprobRows

__all__ = ["choose_token", "make_full_mask"]

Mask = NDArray[np.int32]


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
    listed = enumerate_tokens(mask)
    if listed is not None:
        return pick_token(row, listed, rng, proposal, ends) if len(listed) else None
    if not proposal.is_uncut:
        return pick_token(row, allowed_tokens(mask), rng, proposal, ends)
    masses = Masses(row, mask)
    check_mass(masses.logmass)
    if masses.logmass == -np.inf:
        return pick_token(row, allowed_tokens(mask), rng, proposal, ends)
    if proposal.temperature == 0:
        return choose_likeliest(masses, ends)
    if proposal.temperature == 1:
        return sample_masses(masses, masses, rng, ends)
    scaled = Masses(as_kernel_row(row) / masses.row.dtype.type(proposal.temperature), mask)
    return sample_masses(masses, scaled, rng, ends)


def choose_likeliest(masses: Masses, ends: tuple[int, ...]) -> Pick:
    """Return the likeliest allowed token, the first of several."""
    row = masses.row.copy()
    apply_mask(row, masses.mask)
    token = int(row.argmax())
    return Pick(token, masses.log_of(ends) if token in ends else float(masses.row[token]), 0.0, masses.logmass)


def sample_masses(masses: Masses, scaled: Masses, rng: np.random.Generator, ends: tuple[int, ...]) -> Pick:
    """Draw a token from `scaled`, whose row is that of `masses` divided by the temperature."""
    token = -1
    size = len(masses.row)
    missing = size - int(np.bitwise_count(masses.mask.view(np.uint32)).sum())
    if 0 < missing <= size // FEW:  # as `pick_token`: from the whole row first
        anything = Masses(scaled.row, make_full_mask(size)).token_at(rng.random())
        if masses.mask[anything >> 5] >> (anything & 31) & 1:
            token = anything
    if token < 0:
        token = scaled.token_at(rng.random())
    if token in ends:
        return Pick(token, masses.log_of(ends), scaled.log_of(ends) - scaled.logmass, masses.logmass)
    return Pick(token, float(masses.row[token]), float(scaled.row[token]) - scaled.logmass, masses.logmass)
