"""Describe numpy arrays and torch tensors for the kernels: address, shape and strides. torch is not imported.

Tensors are described by their own methods, which also works for bfloat16, a dtype that numpy lacks.
"""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import addressof, c_char
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import ArgumentError, check_count, describe_value

__all__ = ["ArrayMemory", "as_numpy", "describe_memory", "check_rows"]

NAMES = {np.dtype(name): name for name in ("int32", "float16", "float32", "float64")}
"""Names of common dtypes; numpy's own `dtype.name` takes 3 µs."""


class ArrayMemory(NamedTuple):
    """The memory of an array.

    `address` is that of the first element, `shape` the lengths, `strides` the distances and `size` the size of an
    element, both in bytes, and `dtype` the name of the element type.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype} [{', '.join(map(str, self.shape))}]"

    @property
    def stride(self) -> int:
        """Bytes between consecutive rows; 0 for one dimension."""
        return self.strides[0] if len(self.shape) > 1 else 0

    def has_contiguous_rows(self) -> bool:
        """Return whether the array has one or two dimensions and contiguous elements within each row."""
        if len(self.shape) not in (1, 2):
            return False
        return self.strides[-1] == self.size or self.shape[-1] <= 1 or self.shape[0] == 0


def describe_memory(array: Any, name: str, *, written: bool = True) -> ArrayMemory:
    """Return the memory of an array or tensor.

    `written` says whether the array is an output. Raise TypeError if it is not an array, ArgumentError if it is not in
    CPU memory, or is an output that is read-only or requires gradients.
    """
    if isinstance(array, np.ndarray):
        if written and not array.flags.writeable:
            raise ArgumentError(f"{name} is read-only, and is written in place: give a copy")
        # Other byte orders have the same `name`, but not the same bytes.
        kind = NAMES.get(array.dtype) or (array.dtype.name if array.dtype.isnative else array.dtype.str)
        return ArrayMemory(_data_address(array), array.shape, array.strides, array.itemsize, kind)
    if not hasattr(array, "data_ptr"):
        raise TypeError(f"{name} is a {type(array).__name__}: give a numpy array or a torch tensor")
    if not array.is_cpu:
        raise ArgumentError(
            f"{name} is on {array.device}: give a tensor on the CPU, or see constrain.integrations.cuda"
        )
    if written and array.requires_grad:
        raise ArgumentError(f"{name} requires gradients, which writing in place would invalidate: give {name}.detach()")
    size = array.element_size()
    strides = tuple(size * stride for stride in array.stride())
    return ArrayMemory(array.data_ptr(), tuple(array.shape), strides, size, str(array.dtype).removeprefix("torch."))


def _data_address(array: Any) -> int:
    """Return the address of the first element, where possible in a quarter of the time of `array.ctypes.data`."""
    try:
        return addressof(c_char.from_buffer(array))
    except (TypeError, ValueError):  # read-only, with gaps or empty
        return int(array.ctypes.data)


def as_numpy(array: Any) -> Any:
    """Return a numpy array that shares the memory of an array or tensor."""
    return array if isinstance(array, np.ndarray) else array.detach().numpy()


def check_rows(rows: Iterable[int] | None, count: int, most: int, what: str) -> list[int] | None:
    """Return `rows` as a list, or None if no rows are given.

    Raise ArgumentError unless there is one row below `most` for each of `count` items, all distinct.
    """
    if rows is None:
        if count > most:
            raise ArgumentError(f"there are {count} {what} for {most} rows: give a row to each")
        return None
    if not isinstance(rows, Iterable) or isinstance(rows, (str, bytes)):
        raise TypeError(f"rows is {describe_value(rows)}: give a list of whole numbers")
    listed = [check_count("a row", row) for row in rows]
    if len(listed) != count:
        raise ArgumentError(f"there are {len(listed)} rows for {count} {what}: give one row for each")
    if listed and (min(listed) < 0 or max(listed) >= most or len(set(listed)) < count):
        raise ArgumentError(f"the rows of {count} {what} must be different ones of 0 .. {most - 1}, not {listed[:20]}")
    return listed
