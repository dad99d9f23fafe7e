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
"""Of a block, which has a row to itself: so many fit by their registers. (Threads of the simulator are the host's.)"""


class Sampled(NamedTuple):
    """tokens: int32 [B], -1 where nothing has any mass, or something is no number. Both others float64 [B], nats:
    logprobs of the tokens under the law that they were drawn from; logmasses: what the masks leave of the tempered
    softmax. -inf where nothing has any mass, NaN where something is no number."""

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
    """One token for each row, drawn from its softmax under temperature, mask, top-k, top-p and min-p, in this order.

    logits: float32, bfloat16 or float16 [B, V'] on a card; they are not changed. masks, sources: as of `apply_mask`; no
    masks: everything is allowed. temperature 0 takes the likeliest token; ties go to the smaller id everywhere.
    top_k 0, top_p 1, min_p 0: no cut; top_p is a part of what top_k left. seeds, steps: a draw is a function of its
    row's, so that equal ones draw alike: give rows of a batch different seeds, and one after the other steps 0, 1, ...
    Parameters are numbers for all rows, or tensors [B] on the card; those are read there, and nothing is waited for:
    what makes no sense (a negative temperature) gives token -1 and NaN. out: where to write.

    Raises ArgumentError for tensors that do not fit and numbers that make no sense, LimitError for 2^19 tokens or more.
    """
    found = rows_of(logits)
    bits, words, chosen = flatten_masks(masks, sources, found)
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
    device, count = found.bits.device, found.count
    if out is None:
        out = Sampled(
            torch.empty(count, dtype=torch.int32, device=device),
            torch.empty(count, dtype=torch.float64, device=device),
            torch.empty(count, dtype=torch.float64, device=device),
        )
    launch_kernel(
        sample, count, THREADS, found.bits, found.stride, found.width, found.kind, bits, words, chosen,
        per_row(temperature, torch.float32, found, "temperature"), per_row(top_k, torch.int32, found, "top_k"),
        per_row(top_p, torch.float32, found, "top_p"), per_row(min_p, torch.float32, found, "min_p"),
        per_row(seeds, torch.int64, found, "seeds"), per_row(steps, torch.int64, found, "steps"), *out,
    )  # fmt: skip
    return out
