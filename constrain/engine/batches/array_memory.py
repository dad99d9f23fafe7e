"""Arrays of numpy and tensors of torch as what kernels take: an address, lengths and strides. torch is not imported.

A tensor says where it lies by its own methods; that also does for bfloat16, which numpy does not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import addressof, c_char
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import ArgumentError, check_count, describe_value

__all__ = ["ArrayMemory", "as_numpy", "describe_memory", "check_rows"]

NAMES = {np.dtype(name): name for name in ("int32", "float16", "float32", "float64")}
"""What numpy's own `dtype.name` takes 3 µs to say."""


class ArrayMemory(NamedTuple):
    """address: of the first element. shape: its lengths. strides, size of an element: in bytes. dtype: its name."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype} [{', '.join(map(str, self.shape))}]"

    @property
    def stride(self) -> int:
        """From row to row."""
        return self.strides[0] if len(self.shape) > 1 else 0

    def has_whole_rows(self) -> bool:
        """Whether the elements of a row stand side by side: one or two dimensions, of which the last has no gaps."""
        if len(self.shape) not in (1, 2):
            return False
        return self.strides[-1] == self.size or self.shape[-1] <= 1 or self.shape[0] == 0


def describe_memory(array: Any, name: str, *, written: bool = True) -> ArrayMemory:
    """Where an array or tensor lies, which is to be written or else read. TypeError or ValueError if that cannot be."""
    if isinstance(array, np.ndarray):
        if written and not array.flags.writeable:
            raise ArgumentError(f"{name} is read-only, and is written in place: give a copy")
        kind = NAMES.get(array.dtype) or array.dtype.name
        return ArrayMemory(_begin(array), array.shape, array.strides, array.itemsize, kind)
    if not hasattr(array, "data_ptr"):
        raise TypeError(f"{name} is a {type(array).__name__}: give a numpy array or a torch tensor")
    if not array.is_cpu:
        raise ArgumentError(
            f"{name} is on {array.device}: give a tensor on the CPU, or see constrain.integrations.cuda"
        )
    if written and array.requires_grad:
        raise ArgumentError(f"{name} keeps gradients, which writing in place would make wrong: give {name}.detach()")
    size = array.element_size()
    strides = tuple(size * stride for stride in array.stride())
    return ArrayMemory(array.data_ptr(), tuple(array.shape), strides, size, str(array.dtype).removeprefix("torch."))


def _begin(array: Any) -> int:
    """Where the first element lies, in a quarter of the time of `array.ctypes.data` where that is possible."""
    try:
        return addressof(c_char.from_buffer(array))
    except (TypeError, ValueError):  # read-only, with gaps or empty
        return int(array.ctypes.data)


def as_numpy(array: Any) -> Any:
    """The same memory as an array of numpy."""
    return array if isinstance(array, np.ndarray) else array.detach().numpy()


def check_rows(rows: Iterable[int] | None, count: int, most: int, what: str) -> list[int] | None:
    """`rows` as a list, None if they are 0 .. count: ValueError unless there is one of `most` for each, no two the
    same."""
    if rows is None:
        if count > most:
            raise ArgumentError(f"there is room for {most} rows, and there are {count} {what}: give a row to each")
        return None
    if not isinstance(rows, Iterable) or isinstance(rows, (str, bytes)):
        raise TypeError(f"rows is {describe_value(rows)}: give a list of whole numbers")
    listed = [check_count("a row", row) for row in rows]
    if len(listed) != count:
        raise ArgumentError(f"there are {len(listed)} rows for {count} {what}: give one row for each")
    if listed and (min(listed) < 0 or max(listed) >= most or len(set(listed)) < count):
        raise ArgumentError(f"the rows of {count} {what} must be different ones of 0 .. {most - 1}, not {listed[:20]}")
    return listed
