"""Sample tokens from masked logits on a GPU: the torch interface of the kernels in `kernels/cuda/cuda_sample.py`."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch

from ...base.errors import ArgumentError
from ...kernels.cuda.cuda_arguments import (
    MOST_CANDIDATES,
    THREADS,
    Parameters,
    Results,
    Rows,
    Workspace,
    divide_rows,
)  # fmt: skip
from ...kernels.cuda.cuda_cut import cut, gather
from ...kernels.cuda.cuda_sample import add_masses, draw, find_bests_of_chunks, keep_masses
from ...kernels.cuda.cuda_select import BINS
from .tensor_launch import Flat, LogitRows, flatten_masks, launch_kernels, per_row, rows_of

__all__ = ["Sampled", "mask_softmax_sample"]


class Sampled(NamedTuple):
    """Tokens of `mask_softmax_sample` with their log-probabilities.

    tokens: int32 [B]; -1 where no token has any mass, or where a logit or parameter is NaN or invalid.
    logprobs: float64 [B], in nats: log-probability of each token under the distribution that it was drawn from.
    logmasses: float64 [B], in nats: log of the mass of the tempered softmax that the mask allows.
    Where no token has any mass both are -inf; where a logit or parameter is NaN or invalid both are NaN.
    """

    tokens: torch.Tensor
    logprobs: torch.Tensor
    logmasses: torch.Tensor


def mask_softmax_sample(
    logits: torch.Tensor,
    masks: torch.Tensor | None = None,
    *,
    seeds: int | torch.Tensor,
    steps: int | torch.Tensor,
    sources: torch.Tensor | None = None,
    temperature: float | torch.Tensor = 1.0,
    top_k: int | torch.Tensor = 0,
    top_p: float | torch.Tensor = 1.0,
    min_p: float | torch.Tensor = 0.0,
    out: Sampled | None = None,
) -> Sampled:
    """Sample one token for each row from its softmax, after temperature, mask, top-k, top-p and min-p, in this order.

    Parameters are numbers for all rows, or tensors [B] on the device of the logits. Tensors are read by the kernel, so
    the call does not synchronise: an invalid value in one (a negative temperature) gives token -1 and NaN.

    Parameters
    ----------
    logits : Tensor, float32, bfloat16 or float16 [B, V']
        Logits on a GPU. They are not changed.
    masks, sources : Tensor, optional
        As in `apply_mask`. Without masks every token is allowed.
    seeds, steps : int or Tensor, int64 [B]
        A draw is a function of the seed and step of its row. Give the rows of a batch different seeds, and successive
        calls the steps 0, 1, ...
    temperature : float or Tensor
        0 takes the token with the highest logit. Ties go to the smaller token id everywhere.
    top_k : int or Tensor
        Number of most probable tokens to keep; 0 keeps all.
    top_p : float or Tensor
        Fraction, in (0, 1], of the mass left by `top_k` that is kept.
    min_p : float or Tensor
        Smallest probability to keep, in [0, 1], relative to that of the most probable token.
    out : Sampled, optional
        Tensors to write the results to.

    Returns
    -------
    Sampled
        Tokens, log-probabilities and allowed masses.

    Raises
    ------
    ArgumentError
        If tensors do not match, or a number is out of range.
    LimitError
        If a row has 2^19 logits or more.
    """
    rows = rows_of(logits)
    packed = flatten_masks(masks, sources, rows)
    for name, number, ok in (
        ("temperature", temperature, "0 <= it"), ("top_p", top_p, "0 < it <= 1"), ("min_p", min_p, "0 <= it <= 1"),
        ("top_k", top_k, "0 <= it"),
    ):  # fmt: skip
        if not isinstance(number, torch.Tensor):
            least, most = (
                number >= 0 and (name != "top_p" or number > 0),
                name in ("temperature", "top_k") or number <= 1,
            )
            if not (least and most):
                raise ArgumentError(f"{name} is {number!r}: {ok}")
    device, count = rows.device, rows.count
    if out is None:
        out = Sampled(
            torch.empty(count, dtype=torch.int32, device=device),
            torch.empty(count, dtype=torch.float64, device=device),
            torch.empty(count, dtype=torch.float64, device=device),
        )
    parameters = [
        per_row(temperature, torch.float32, rows, "temperature"), per_row(top_k, torch.int32, rows, "top_k"),
        per_row(top_p, torch.float32, rows, "top_p"), per_row(min_p, torch.float32, rows, "min_p"),
        per_row(seeds, torch.int64, rows, "seeds"), per_row(steps, torch.int64, rows, "steps"),
    ]  # fmt: skip
    cuts = not all(isinstance(one, (int, float)) and one == off for one, off in ((top_k, 0), (top_p, 1), (min_p, 0)))
    chunks, parts = divide_rows(count, rows.width)
    arguments = (
        Rows(rows.bits, rows.stride, rows.width, rows.kind, *packed, parts),
        Parameters(*(values for values, _ in parameters), *(one for _, one in parameters)),
        make_workspace(rows, chunks, cuts),
        Results(*out),
    )
    grid, alone = (count, chunks), (count, 1)
    kernels = [(find_bests_of_chunks, grid, THREADS), (add_masses, grid, THREADS)]
    if cuts:
        kernels += [(gather, grid, THREADS), (cut, alone, THREADS), (keep_masses, grid, THREADS)]
    launch_kernels([*kernels, (draw, alone, THREADS)], arguments, types_of=rows.dtype)
    return out


def make_workspace(rows: LogitRows, chunks: int, cuts: bool) -> Workspace:
    """Return memory for the kernels; with cuts for their histograms and candidates too."""
    layout, size = lay_out(rows.count, chunks, cuts)
    memory = torch.empty(size, dtype=torch.int64, device=rows.device)
    return Workspace(*(Flat(memory, dtype, shape, offset) for dtype, shape, offset in layout))


@lru_cache(maxsize=256)
def lay_out(count: int, chunks: int, cuts: bool) -> tuple[list[tuple[torch.dtype, tuple[int, ...], int]], int]:
    """Return (dtype, shape, offset in bytes) of the arrays of a workspace, and how many int64 they take."""
    rows_cut = count if cuts else 0
    wide, narrow = torch.int64, torch.int32
    arrays: list[tuple[torch.dtype, tuple[int, ...]]] = [(wide, (count, chunks))] * 4 + [
        (wide, (rows_cut, chunks)), (narrow, (rows_cut, BINS)), (wide, (rows_cut, BINS)),
        (wide, (rows_cut, MOST_CANDIDATES)), (narrow, (rows_cut,)), (wide, (rows_cut,)),
    ]  # fmt: skip
    layout, size = [], 0
    for dtype, shape in arrays:
        layout.append((dtype, shape, 8 * size))
        size += -(-math.prod(shape) * dtype.itemsize // 8)
    return layout, size
