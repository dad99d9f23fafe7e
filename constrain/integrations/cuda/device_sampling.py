"""Sample tokens from masked logits on a GPU: the torch interface of the kernels in `kernels/cuda/cuda_sample.py`."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple, cast

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
from ...kernels.cuda.cuda_cut import bound_rows, count_bins, cut, gather
from ...kernels.cuda.cuda_device import LANES, SIMULATED
from ...kernels.cuda.cuda_sample import draw, measure_tiles
from ...kernels.cuda.cuda_select import BINS
from ...kernels.cuda.cuda_tiles import count_tiles
from .tensor_launch import (
    LARGEST,
    Flat,
    LogitRows,
    Masks,
    Plan,
    Plans,
    describe_tensor,
    flatten_masks,
    launch_kernels,
    per_row,
    rows_of,
)  # fmt: skip

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
    numbers: tuple[float | torch.Tensor, ...] = temperature, top_k, top_p, min_p, seeds, steps
    check_numbers(temperature, top_k, top_p, min_p)
    cuts = not all(isinstance(one, (int, float)) and one == off for one, off in ((top_k, 0), (top_p, 1), (min_p, 0)))
    given = () if out is None else (*map(describe_tensor, out),)
    key = (
        describe_tensor(logits), describe_tensor(masks), describe_tensor(sources), cuts, given,
        *[describe_tensor(one) if isinstance(one, torch.Tensor) else None for one in numbers],
    )  # fmt: skip
    plan = PLANS.known.get(key)
    if plan is not None:
        return cast(DrawPlan, plan).draw(logits, masks, sources, numbers, out)
    rows = rows_of(logits)
    packed = flatten_masks(masks, sources, rows)
    if out is None:
        out = make_results(rows.count, rows.device)
    else:
        check_results(out, rows)
    parameters = [per_row(value, dtype, rows, name) for value, (name, dtype) in zip(numbers, NUMBERS.items())]
    launches, arguments, memory = prepare_draw(rows, packed, parameters, out, cuts)
    prepared = launch_kernels(launches, arguments, types_of=rows.dtype)
    is_as_given = all(
        not isinstance(value, torch.Tensor) or (value.dtype == one.dtype and value.is_contiguous())
        for value, (one, _) in zip(numbers, parameters)
    )
    if prepared is not None and is_as_given and (sources is None or sources.is_contiguous()):
        PLANS.add(key, DrawPlan(prepared, rows, memory))
    return out


NUMBERS = {
    "temperature": torch.float32, "top_k": torch.int32, "top_p": torch.float32, "min_p": torch.float32,
    "seeds": torch.int64, "steps": torch.int64,
}  # fmt: skip
"""Parameters of a draw and their types."""
MEASURING, FEW_ROWS = (1 if SIMULATED else 4), 2
"""Warps of a block of `measure_tiles`: one for so few rows, so that they are spread over the whole GPU."""
PLANS = Plans()
"""`DrawPlan` of tensors of the same dtypes, shapes, strides and devices."""


def check_numbers(
    temperature: float | torch.Tensor, top_k: float | torch.Tensor, top_p: float | torch.Tensor,
    min_p: float | torch.Tensor,
) -> None:  # fmt: skip
    """Raise ArgumentError if a number is out of its range; tensors are checked by the kernel."""
    if not isinstance(temperature, torch.Tensor) and not temperature >= 0:
        raise ArgumentError(f"temperature is {temperature!r}: 0 <= it")
    if not isinstance(top_k, torch.Tensor) and not top_k >= 0:
        raise ArgumentError(f"top_k is {top_k!r}: 0 <= it")
    if not isinstance(top_p, torch.Tensor) and not 0 < top_p <= 1:
        raise ArgumentError(f"top_p is {top_p!r}: 0 < it <= 1")
    if not isinstance(min_p, torch.Tensor) and not 0 <= min_p <= 1:
        raise ArgumentError(f"min_p is {min_p!r}: 0 <= it <= 1")


def make_results(count: int, device: torch.device) -> Sampled:
    """Return tensors for the results of `count` rows."""
    return Sampled(
        torch.empty(count, dtype=torch.int32, device=device),
        torch.empty(count, dtype=torch.float64, device=device),
        torch.empty(count, dtype=torch.float64, device=device),
    )


def check_results(out: Sampled, rows: LogitRows) -> None:
    """Raise ArgumentError if results of the rows cannot be written to `out`."""
    for name, one, dtype in zip(Sampled._fields, out, (torch.int32, torch.float64, torch.float64)):
        if one.dtype != dtype or one.shape != (rows.count,) or one.device != rows.device or not one.is_contiguous():
            raise ArgumentError(
                f"out.{name} is {one.dtype} {list(one.shape)} on {one.device}: give {dtype} [{rows.count}], "
                f"contiguous, on {rows.device}"
            )


class Workplace(NamedTuple):
    """Memory of the kernels: int64 elements, and the offsets in bytes of the arrays of `Workspace`."""

    size: int
    offsets: tuple[int, ...]


def prepare_draw(
    rows: LogitRows, packed: Masks, parameters: list[tuple[torch.Tensor, Any]], out: Sampled, cuts: bool
) -> tuple[list[tuple[Any, tuple[int, int], int]], tuple[Any, ...], Workplace]:
    """Return the launches of a draw, their arguments and their memory."""
    tiles = count_tiles(rows.width)
    layout, size = lay_out(rows.count, tiles, cuts)
    memory = torch.empty(size, dtype=torch.int64, device=rows.device)
    blocks, parts = divide_rows(rows.count, tiles)
    arguments = (
        Rows(rows.bits, rows.stride, rows.width, rows.kind, int(is_aligned(rows.bits.tensor)), *packed, parts),
        Parameters(*(values for values, _ in parameters), *(one for _, one in parameters)),
        Workspace(*(Flat(memory, dtype, shape, offset) for dtype, shape, offset in layout)),
        Results(*out),
    )
    warps = 1 if rows.count <= FEW_ROWS else MEASURING
    measure = measure_tiles, (rows.count, -(-tiles // warps)), warps * LANES
    grid, alone = (rows.count, blocks), (rows.count, 1)
    if cuts:
        launches = [
            measure, (bound_rows, alone, THREADS), (count_bins, grid, THREADS), (gather, grid, THREADS),
            (cut, alone, THREADS),
        ]  # fmt: skip
    else:
        launches = [measure, (draw, alone, THREADS)]
    return launches, arguments, Workplace(size, tuple(offset for _, _, offset in layout))


def is_aligned(logits: torch.Tensor) -> bool:
    """Return whether every fourth logit of a row, from its first on, is at a multiple of the size of four."""
    size = logits.element_size()
    return bool(logits.data_ptr() % (4 * size) == 0 and (logits.shape[0] < 2 or logits.stride(0) % 4 == 0))


@lru_cache(maxsize=256)
def lay_out(count: int, tiles: int, cuts: bool) -> tuple[list[tuple[torch.dtype, tuple[int, ...], int]], int]:
    """Return (dtype, shape, offset in bytes) of the arrays of a workspace, and how many int64 they take."""
    rows_cut = count if cuts else 0
    wide, narrow, real = torch.int64, torch.int32, torch.float32
    arrays: list[tuple[torch.dtype, tuple[int, ...]]] = [
        (real, (count, tiles)), (real, (count, tiles)), (wide, (count, tiles)), (wide, (count, tiles)),
        (wide, (rows_cut, tiles)), (narrow, (rows_cut, BINS)), (wide, (rows_cut, BINS)),
        (wide, (rows_cut, MOST_CANDIDATES)), (narrow, (rows_cut,)), (wide, (rows_cut,)), (wide, (rows_cut,)),
        (real, (rows_cut, 3)),
    ]  # fmt: skip
    layout, size = [], 0
    for dtype, shape in arrays:
        layout.append((dtype, shape, 8 * size))
        size += -(-math.prod(shape) * dtype.itemsize // 8)
    return layout, size


FIRST_PARAMETER = len(Rows._fields)
FIRST_NUMBER = FIRST_PARAMETER + len(NUMBERS)
FIRST_ARRAY = FIRST_NUMBER + len(NUMBERS)
FIRST_RESULT = FIRST_ARRAY + len(Workspace._fields)
"""Places of arguments among all: `Rows`, `Parameters`, which are arrays, then numbers, `Workspace`, `Results`."""
LOGITS, ALIGNED, BITS, SOURCES = (Rows._fields.index(name) for name in ("logits", "aligned", "bits", "sources"))


class DrawPlan:
    """The launches of a draw, prepared for tensors of given dtypes, shapes, strides and devices."""

    def __init__(self, plan: Plan, rows: LogitRows, memory: Workplace) -> None:
        self.plan, self.count, self.device, self.size = plan, rows.count, rows.device, memory.size
        places = plan.places
        self.logits, self.aligned, self.bits, self.sources = (
            places[one] for one in (LOGITS, ALIGNED, BITS, SOURCES)
        )  # fmt: skip
        self.parameters = [
            (places[FIRST_PARAMETER + i], places[FIRST_NUMBER + i], name)
            for i, name in enumerate(NUMBERS)
        ]  # fmt: skip
        self.arrays = [(places[FIRST_ARRAY + i], offset) for i, offset in enumerate(memory.offsets)]
        self.results = places[FIRST_RESULT:]

    def draw(
        self, logits: torch.Tensor, masks: torch.Tensor | None, sources: torch.Tensor | None,
        numbers: tuple[float | torch.Tensor, ...], out: Sampled | None,
    ) -> Sampled:  # fmt: skip
        """Launch for such tensors, and these numbers."""
        slots, floats = self.plan.slots, self.plan.floats
        slots[self.logits] = logits.data_ptr()
        slots[self.aligned] = is_aligned(logits)
        if masks is not None:
            slots[self.bits] = masks.data_ptr()
            if sources is not None:
                slots[self.sources] = sources.data_ptr()
        for (array, number, name), value in zip(self.parameters, numbers):
            if isinstance(value, torch.Tensor):
                slots[array] = value.data_ptr()
            elif NUMBERS[name] is torch.float32:
                floats[2 * number] = value
            else:
                slots[number] = min(int(value), LARGEST) if name == "top_k" else int(value)
        memory = torch.empty(self.size, dtype=torch.int64, device=self.device)
        first = memory.data_ptr()
        for place, offset in self.arrays:
            slots[place] = first + offset
        if out is None:
            out = make_results(self.count, self.device)
        for place, one in zip(self.results, out):
            slots[place] = one.data_ptr()
        self.plan.launch()
        return out
