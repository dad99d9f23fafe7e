"""Arrays that callers pass for masks.

An array is checked in Python once. As long as its address, shape, dtype and flags stay the same, a kernel recognises it
from the fields of numpy's array object, whose layout `can_read_arrays` verifies.
"""

from __future__ import annotations

import sys
from array import array
from functools import cache
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, check_type
from ..kernels.call_layout import AT_OUT_DATA, AT_OUT_DIMS, AT_OUT_FLAGS, AT_OUT_TYPE, POSITION_W
from ..kernels.entry_points import fill_array, note_array

__all__ = ["ROW_KIND", "can_read_arrays", "check_mask_array", "note_usual_array"]

ROW_KIND = id(np.dtype(np.int32))
"""Address of the dtype of masks, of which numpy has one object."""

INT32 = np.dtype(np.int32)
USUAL_FLAGS = 0x1 | 0x100 | 0x400
"""C-contiguous, aligned and writeable (`NPY_ARRAY_CARRAY`)."""


@cache
def can_read_arrays() -> bool:
    """Return whether numpy arrays have the memory layout that the kernels read.

    If not, each array is inspected from Python.
    """
    fields, same = array("q", bytes(8 * POSITION_W)), []
    for one in (np.empty(3, np.int32), np.empty(5, np.float64)[::2], np.frombuffer(bytes(8), np.int16)):
        length = note_array(fields.buffer_info()[0], id(one))
        read = fields[AT_OUT_DATA], fields[AT_OUT_DIMS], fields[AT_OUT_TYPE], fields[AT_OUT_FLAGS], length
        same.append(read == (one.ctypes.data, 1, id(one.dtype), one.flags.num, len(one)))
    rows = np.zeros((3, 5), np.int32)
    frozen = rows.copy()
    frozen.flags.writeable = False
    same.append(fill_array(0, 0, 0, id(rows), ROW_KIND) == 0)
    unsuitable = [rows[0], rows[:, ::2], rows.astype(np.int64), frozen]
    same += [fill_array(0, 0, 0, id(other), ROW_KIND) == -1 for other in unsuitable]
    return sys.implementation.name == "cpython" and all(same)


def note_usual_array(position: array[int], address: int, out: Any, words: int) -> bool:
    """Store the fields of a numpy array in a position (its record and its address), if `can_read_arrays`.

    Return whether it is certainly suitable for a mask; `check_mask_array` decides about others.
    """
    return (
        note_array(address, id(out)) == words
        and position[AT_OUT_DIMS] == 1
        and position[AT_OUT_TYPE] == ROW_KIND
        and position[AT_OUT_FLAGS] & USUAL_FLAGS == USUAL_FLAGS
    )


def check_mask_array(out: Any, words: int) -> None:
    """Raise TypeError or ArgumentError unless `out` is a C-contiguous, writeable int32 array of shape (words,)."""
    if type(out) is not np.ndarray:
        check_type("out", out, np.ndarray, "give a numpy array of int32, or None for a new one")
    flags = out.flags
    if out.shape != (words,) or out.dtype != INT32 or not (flags.c_contiguous and flags.writeable):
        raise ArgumentError(
            f"out must be a contiguous, writeable int32[{words}], not {out.dtype}{list(out.shape)}"
            f"{'' if out.flags.writeable else ', read-only'}"
        )
