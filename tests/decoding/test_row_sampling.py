"""A token drawn from sums over a mask is the token drawn from a list of the allowed ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain.base.errors import ArgumentError
from constrain.decoding.row_sampling import choose_token, make_full_mask
from constrain.sampling.core.masked_sampling import Proposal, pick_token
from constrain.sampling.core.token_masses import allowed_tokens, mask_of

PROPOSALS = [
    Proposal(), Proposal(temperature=0), Proposal(temperature=0.7), Proposal(top_k=5), Proposal(top_k=900, top_p=0.9),
    Proposal(top_p=0.99), Proposal(temperature=3, min_p=0.01), Proposal(top_k=50, min_p=0.1),
    Proposal(temperature=2, top_p=0.5),
]  # fmt: skip


def normalised(rng: np.random.Generator, size: int, dtype: type) -> np.ndarray:
    logits = rng.normal(0, 3, size)
    return (logits - np.logaddexp.reduce(logits)).astype(dtype)


@given(
    seed=st.integers(0, 10_000), size=st.sampled_from([40, 1000, 3001]), share=st.sampled_from([0.01, 0.5, 0.995, 1.0]),
    proposal=st.sampled_from(PROPOSALS), dtype=st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
@settings(max_examples=180)
def test_the_choice_is_that_of_a_list_of_tokens(
    seed: int, size: int, share: float, proposal: Proposal, dtype: type
) -> None:
    rng = np.random.default_rng(seed)
    row = normalised(rng, size, dtype)
    mask = mask_of(np.flatnonzero(rng.random(size) < share), size)
    ends = tuple(rng.choice(size, 3, replace=False).tolist())
    if seed % 3 == 0:
        row = np.round(row).astype(dtype)  # ties
        row -= np.logaddexp.reduce(row.astype(np.float64)).astype(dtype)
    one, other = np.random.default_rng(seed), np.random.default_rng(seed)
    found = choose_token(row, mask, one, proposal, ends)
    allowed = allowed_tokens(mask)
    if not len(allowed):
        assert found is None
        return
    wanted = pick_token(row, allowed, other, proposal, ends)
    assert found is not None
    assert found.token == wanted.token
    assert (found.logprob, found.logproposal, found.logmass) == pytest.approx(
        (wanted.logprob, wanted.logproposal, wanted.logmass), abs=1e-5
    )
    assert proposal.temperature == 0 or one.random() == other.random(), "as many random numbers"


def test_a_row_that_is_no_distribution_is_refused() -> None:
    rng = np.random.default_rng(0)
    for row in (np.full(1000, np.nan, np.float32), np.zeros(1000, np.float32)):
        with pytest.raises(ArgumentError):
            choose_token(row, make_full_mask(1000), rng)


def test_without_mass_all_allowed_tokens_are_equally_likely() -> None:
    row = np.full(1000, -np.inf, np.float32)
    row[7] = 0
    mask = mask_of(range(8, 1000), 1000)
    drawn = {choose_token(row, mask, np.random.default_rng(seed)).token for seed in range(50)}  # type: ignore[union-attr]
    assert len(drawn) > 40
