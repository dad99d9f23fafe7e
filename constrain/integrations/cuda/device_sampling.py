"""Sample tokens from masked logits on a GPU: the torch interface of the kernel in `kernels/cuda/cuda_sample.py`."""

from __future__ import annotations

from typing import NamedTuple

import torch

from ...base.errors import ArgumentError
from ...kernels.cuda.cuda_device import SIMULATED
from ...kernels.cuda.cuda_sample import sample
from .tensor_launch import flatten_masks, launch_kernel, per_row, rows_of

__all__ = ["Sampled", "mask_softmax_sample"]

THREADS = 4 if SIMULATED else 512
"""Threads of a block; each block has one row. Register use allows no more. In the simulator threads run on the host, so
there are few.
"""


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
    device, count = rows.bits.device, rows.count
    if out is None:
        out = Sampled(
            torch.empty(count, dtype=torch.int32, device=device),
            torch.empty(count, dtype=torch.float64, device=device),
            torch.empty(count, dtype=torch.float64, device=device),
        )
    values, common = zip(*(
        per_row(temperature, torch.float32, rows, "temperature"), per_row(top_k, torch.int32, rows, "top_k"),
        per_row(top_p, torch.float32, rows, "top_p"), per_row(min_p, torch.float32, rows, "min_p"),
        per_row(seeds, torch.int64, rows, "seeds"), per_row(steps, torch.int64, rows, "steps"),
    ))  # fmt: skip
    launch_kernel(
        sample, count, THREADS, rows.bits, rows.stride, rows.width, rows.kind, *packed,
        *values, *common, *out,
    )  # fmt: skip
    return out
