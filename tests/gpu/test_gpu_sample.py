"""mask_softmax_sample: its distribution against exact sums, its draws against a reference implementation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numba import cuda

from constrain.base.errors import LimitError
from constrain.integrations.cuda import mask_softmax_sample
from constrain.kernels.cuda.cuda_device import SIMULATED, kernel
from constrain.kernels.cuda.philox_generator import philox, scale_to_total
from tests.gpu_oracle import (
    UNIT,
    bits_allowed,
    cut_law,
    draw,
    exact_law,
    masses,
    philox as slow_philox,
    probabilities,
    uniform,
)

TYPES = [torch.float32, torch.bfloat16, torch.float16]


@kernel
def words(given, out):  # type: ignore[no-untyped-def]
    """Philox, and a number scaled by it, as the kernels call them."""
    i = cuda.grid(1)
    if i < len(out):
        a, b, c, d = philox(given[i, 0], given[i, 1], given[i, 2], given[i, 3], given[i, 4], given[i, 5])
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = a, b, c, d
        out[i, 4] = scale_to_total(a, b, given[i, 6])


def test_philox_gives_its_known_answers() -> None:
    """Those of Random123's kat_vectors (Salmon et al. 2011) and of the reference; `scale_to_total` is exact."""
    known = {
        (0,) * 6: (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
        (0xFFFFFFFF,) * 6: (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0): (
            0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1,
        ),
    }  # fmt: skip
    rng = np.random.default_rng(0)
    given = np.array([*known, *rng.integers(0, 2**32, (9, 6))], np.uint64)
    totals = np.array([1, 2, 3, 2**44, 2**63 - 1, *rng.integers(1, 2**62, 7)], np.uint64)
    out = np.zeros((12, 5), np.uint64)
    words[1, 16](np.column_stack([given, totals]), out)
    for row, (words_given, total) in enumerate(zip(given.tolist(), totals.tolist())):
        want = slow_philox(tuple(words_given[:4]), tuple(words_given[4:]))
        assert known.get(tuple(words_given), want) == want == tuple(out[row, :4].tolist())
        assert int(out[row, 4]) == (want[0] * 2**32 + want[1]) * total >> 64


def batch(rng: np.random.Generator, width: int, dtype: torch.dtype, rows: int) -> tuple[torch.Tensor, np.ndarray]:
    """Rows with ties, with wide and narrow laws; as float32 too."""
    x = rng.normal(size=(rows, width)) * rng.choice([0.1, 3, 15], (rows, 1))
    x[::2] = np.round(x[::2])
    x[-1, 0] = -np.inf
    logits = torch.from_numpy(x.astype(np.float32)).to(dtype)
    return logits, logits.float().numpy()


@pytest.mark.parametrize(
    ("width", "dtype"), [(7, TYPES[0]), (40, TYPES[1]), (40, TYPES[2]), (100, TYPES[0]), (700, TYPES[0])]
)
def test_draws_are_those_of_the_reference(width: int, dtype: torch.dtype, device: str) -> None:
    """For given seeds and steps the very same token, its log-probability and the mask's mass; ties by token id."""
    rng = np.random.default_rng(width)
    rows = 5
    logits, x = batch(rng, width, dtype, rows)
    masks = rng.integers(-(2**31), 2**31, (2, (width + 31) // 32)).astype(np.int32)
    sources = rng.integers(-1, 2, rows).astype(np.int32)
    given = {
        "temperature": rng.choice([0, 0.5, 1, 2.5], rows).astype(np.float32),
        "top_k": rng.choice([0, 1, 3, 20], rows).astype(np.int32),
        "top_p": rng.choice([1, 0.9, 0.5, 0.01], rows).astype(np.float32),
        "min_p": rng.choice([0, 0.05, 0.5], rows).astype(np.float32),
    }
    seeds, steps = rng.integers(0, 2**62, rows), rng.integers(0, 2**40, rows)
    there = {
        name: torch.from_numpy(one).to(device) for name, one in (*given.items(), ("seeds", seeds), ("steps", steps))
    }
    found = mask_softmax_sample(
        logits.to(device), torch.from_numpy(masks).to(device), sources=torch.from_numpy(sources).to(device), **there
    )
    for row in range(rows):
        cut = {name: one[row].item() for name, one in given.items()}
        allowed = bits_allowed(masks[sources[row]], width) if sources[row] >= 0 else np.ones(width, bool)
        law = cut_law(x[row], allowed, **cut)
        token, logprob, logmass = (one[row].item() for one in found)
        assert law and token == draw(law, int(seeds[row]), int(steps[row])), cut
        exact = 1e-12 if SIMULATED else 1e-5  # a card's exp is off by an ulp or two
        assert logprob == pytest.approx(math.log(probabilities(law)[token]), abs=exact)
        z = x[row].astype(np.float64) / (cut["temperature"] or 1)
        z = np.exp(z - z.max())
        assert logmass == pytest.approx(math.log(z[allowed].sum() / z.sum()), rel=1e-5, abs=1e-5)


WIDTHS = (700,) if SIMULATED else (3000, 70_000)
"""Of rows of several tiles, the last one not whole, in the simulator and on a card."""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("cut", "gap"),
    [
        ({}, 0), ({}, 1), ({"top_k": 2}, 0), ({"top_k": 500}, 1), ({"top_p": 0.9}, 0), ({"top_p": 0.99999}, 1),
        ({"min_p": 0.01}, 0), ({"top_k": 90, "top_p": 0.8}, 1),
    ],
)  # fmt: skip
def test_rows_of_several_tiles(width: int, gap: int, cut: dict, device: str) -> None:
    """Draws are those of the reference, of rows that cannot be loaded four tokens at a time too."""
    rng = np.random.default_rng(width + gap)
    x = (rng.normal(size=(4, width + gap)) * np.array([[0.2], [3], [3], [9]])).astype(np.float32)
    x[1, ::5] = -np.inf
    masks = rng.integers(-(2**31), 2**31, (4, (width + 31) // 32)).astype(np.int32)
    masks[2] = 0
    masks[2, [3, 20]] = 0x10010
    masks[3] = -1
    view = torch.from_numpy(x).to(device)[:, gap:]
    found = mask_softmax_sample(view, torch.from_numpy(masks).to(device), seeds=11, steps=12, temperature=0.8, **cut)
    for row in range(4):
        law = cut_law(x[row, gap:], bits_allowed(masks[row], width), 0.8, **cut)
        token = int(found.tokens[row])
        assert token == draw(law, 11, 12)
        exact = 1e-12 if SIMULATED else 1e-5
        assert found.logprobs[row].item() == pytest.approx(math.log(probabilities(law)[token]), abs=exact)


def test_a_prepared_draw_is_the_first_one(device: str) -> None:
    """Calls with other tensors and numbers of the same shapes: what is kept of a launch is only what they share."""
    rng = np.random.default_rng(8)
    seeds = torch.arange(3, device=device)
    for step, heat in ((0, 0.5), (1, 1.0), (1, 3.0), (2, 0.0)):
        x = rng.normal(size=(3, 90)).astype(np.float32) * 4
        bits = rng.integers(-(2**31), 2**31, (3, 3)).astype(np.int32)
        for cut in ({}, {"top_k": 4 + step}):
            found = mask_softmax_sample(
                torch.from_numpy(x).to(device), torch.from_numpy(bits).to(device), seeds=seeds, steps=step,
                temperature=heat, **cut,
            )  # fmt: skip
            laws = [cut_law(x[row], bits_allowed(bits[row], 90), heat, **cut) for row in range(3)]
            assert found.tokens.tolist() == [draw(law, row, step) for row, law in enumerate(laws)]


@pytest.mark.parametrize("name", ["tokens", "logprobs", "logmasses"])
def test_results_are_written_where_they_fit_only(name: str, device: str) -> None:
    x = torch.zeros((2, 40), device=device)
    out = mask_softmax_sample(x, seeds=1, steps=0)
    other = mask_softmax_sample(x, seeds=1, steps=3, out=out)
    assert other is out and out.tokens.tolist() == mask_softmax_sample(x, seeds=1, steps=3).tokens.tolist()
    with pytest.raises(ValueError, match=f"out.{name}"):
        mask_softmax_sample(x, seeds=1, steps=0, out=out._replace(**{name: torch.zeros(3, device=device)}))


def test_cuts_go_through_ties_by_token_id(device: str) -> None:
    """Where hundreds of tokens are equal, a cutoff is found pass by pass down to one of them."""
    width = 600
    x = np.stack([np.zeros(width), np.arange(width) % 2 * 1.0]).astype(np.float32)
    k, p = np.array([77, 0], np.int32), np.array([1, 0.4], np.float32)
    found = mask_softmax_sample(
        torch.from_numpy(x).to(device), seeds=5, steps=6,
        top_k=torch.from_numpy(k).to(device), top_p=torch.from_numpy(p).to(device),
    )  # fmt: skip
    for row in range(2):
        law = cut_law(x[row], np.ones(width, bool), 1.0, int(k[row]), float(p[row]))
        tokens = set(probabilities(law))
        assert tokens == set(range(77)) if row == 0 else tokens == set(range(1, 2 * len(tokens), 2))
        assert found.tokens[row] == draw(law, 5, 6)
        assert found.logprobs[row].item() == pytest.approx(-math.log(len(tokens)), abs=1e-9)


def test_every_token_has_its_probability(device: str) -> None:
    """Draw until all tokens were seen: the probabilities that the kernel reports are the expected ones and sum to 1."""
    x = torch.tensor([1.0, 0.5, -9.0, 0.5, 2.0, 0.25], device=device).expand(6, 6).contiguous()
    mask = torch.tensor([0b011011], dtype=torch.int32, device=device)
    seen: dict[int, float] = {}
    for step in (1, 2):
        found = mask_softmax_sample(x, mask, seeds=torch.arange(6, device=device), steps=step, temperature=2.0)
        seen.update(zip(found.tokens.tolist(), found.logprobs.tolist()))
        assert found.logmasses.tolist() == pytest.approx([found.logmasses[0].item()] * 6)
    want = exact_law(x[0].cpu().numpy(), np.array([1, 1, 0, 1, 1, 0], bool), 2.0)
    assert {token: math.exp(logprob) for token, logprob in seen.items()} == pytest.approx(
        {token: p for token, p in enumerate(want.tolist()) if p}, rel=1e-6
    )


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    "cut", [{}, {"top_k": 5}, {"top_p": 0.7}, {"min_p": 0.02}, {"top_k": 20, "top_p": 0.6, "min_p": 0.1}]
)
def test_the_distribution_is_the_exact_one_within_its_bound(temperature: float, cut: dict) -> None:
    """Integer masses beside float64: |P - p| <= p (|z| + 6) 2^-23 + V 2^-44, as `kernels.cuda.cuda_sample` has it."""
    rng = np.random.default_rng(3)
    for scale in (0.5, 5.0):
        x = (rng.normal(size=300) * scale).astype(np.float32)
        allowed = rng.random(300) < 0.5
        law = probabilities(cut_law(x, allowed, temperature, **cut))
        got = np.zeros(300)
        got[list(law)] = list(law.values())
        want = exact_law(x, allowed, temperature, **cut)
        assert not got[want == 0].any() and got[want > 1e-12].all(), "no other support, but for what is next to nothing"
        z = (x[allowed].max() - x.astype(np.float64)) / temperature
        assert (np.abs(got - want) <= want * (np.abs(z) + 6) * 2.0**-23 + 300 * 2.0**-44).all()


def test_draws_of_the_reference_follow_its_distribution() -> None:
    """Over 20,000 steps: a chi-square of 7 degrees of freedom below its 1 - 1e-6 quantile."""
    x = np.log(np.array([0.3, 0.05, 0.1, 0.2, 0.05, 0.1, 0.15, 0.05], np.float32))
    law = cut_law(x, np.ones(8, bool), 1.0)
    counts = np.bincount([draw(law, 77, step) for step in range(20_000)], minlength=8)
    want = 20_000 * np.array([probabilities(law)[token] for token in range(8)])
    assert ((counts - want) ** 2 / want).sum() < 40.5
    assert all(len({uniform(1, step)[i] >> 48 for step in range(1000)}) > 950 for i in range(2))


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # of a NaN, whose mass is not used
def test_rows_without_a_token_report_it(device: str) -> None:
    """-inf where nothing has any mass, NaN where a value is NaN."""
    x = torch.zeros((6, 40), device=device)
    x[1] = -torch.inf
    x[2, 39] = torch.nan
    x[3, 0] = torch.inf
    masks = torch.full((6, 2), -1, dtype=torch.int32, device=device)
    masks[0] = 0
    heat = torch.tensor([1.0, 1, 1, 1, -1, 1], device=device)
    share = torch.tensor([1.0, 1, 1, 1, 1, torch.nan], device=device)
    found = mask_softmax_sample(x, masks, seeds=1, steps=2, temperature=heat, top_p=share)
    assert found.tokens.tolist() == [-1] * 6
    assert found.logprobs.tolist()[:2] == found.logmasses.tolist()[:2] == [-math.inf] * 2
    assert torch.isnan(found.logprobs[2:]).all() and torch.isnan(found.logmasses[2:]).all()


def test_a_draw_does_not_depend_on_its_row(device: str) -> None:
    """The same row, seed and step give the same token at any row of a batch."""
    x = torch.from_numpy(np.random.default_rng(9).normal(size=(3, 50)).astype(np.float32)).to(device)
    seeds, steps = torch.tensor([4, 5, 6], device=device), torch.tensor([7, 8, 9], device=device)
    one = mask_softmax_sample(x, seeds=seeds, steps=steps)
    other = mask_softmax_sample(x.flip(0).contiguous(), seeds=seeds.flip(0), steps=steps.flip(0))
    assert all(torch.equal(a, b.flip(0)) for a, b in zip(one, other))


def test_masses_of_a_row_never_reach_2_to_the_63(device: str) -> None:
    assert (
        sum(masses(np.zeros(4, np.float32), 1.0, 0.0)) * 2**17 == 4 * UNIT * 2**17 == 2**63
    )  # 4 * 2^17 = 2^19: the most tokens, and one less
    with pytest.raises(LimitError, match="524,287"):
        mask_softmax_sample(torch.zeros((1, 2**19), device=device), seeds=0, steps=0)


@pytest.mark.parametrize("given", [{"temperature": -1}, {"top_p": 0}, {"min_p": 2}, {"top_k": -1}])
def test_numbers_that_make_no_sense(given: dict, device: str) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        mask_softmax_sample(torch.zeros((1, 4), device=device), seeds=0, steps=0, **given)
