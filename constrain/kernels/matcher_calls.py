"""The calls of a Matcher at every token, for one position or a batch, without the GIL (kernels).

A position is an int64 record that its Matcher owns (`call_layout`): Python passes only its address. These kernels also
check that the position is still valid: it belongs to the state cache of one thread, and to one epoch of that. If the
result is -1, Python takes the slow path.
"""

from __future__ import annotations

from typing import Any, Final

from numba import types

from .automata_records import READ
from .call_layout import (
    AT_CAPACITY,
    AT_CONTEXT,
    AT_EPOCH,
    AT_HISTORY,
    AT_LENGTH,
    AT_OUT,
    AT_OUT_DATA,
    AT_OUT_DIMS,
    AT_OUT_FLAGS,
    AT_OUT_TYPE,
    AT_PLAIN,
    AT_SET,
    AT_THREAD,
    CHANGED,
    HISTORY_ITEM,
    HISTORY_SET,
    HISTORY_W,
)
from .context_layout import EPOCH, HEAD, SETS, T_WORDS, TABLE, WORKER
from .context_views import at, int64s_at, view
from .jit.compilation import entry, inlined
from .masks import fill_mask
from .record_layout import SET_MASK, SET_W
from .token_steps import advance_token

OBJECT: Final = object.__basicsize__ // 8
"""int64s in the head of a Python object; in a numpy array the fields below follow (`PyArrayObject_fields`, its ABI)."""
DATA: Final = OBJECT
DIMS: Final = OBJECT + 1  # int32
SHAPE: Final = OBJECT + 2  # address of int64s
STRIDES: Final = OBJECT + 3  # address of int64s, bytes
TYPE: Final = OBJECT + 5
FLAGS: Final = OBJECT + 6  # int32
LOW: Final = (1 << 32) - 1
WRITEABLE: Final = 0x400  # in FLAGS (`NPY_ARRAY_WRITEABLE`)


@inlined("int64(int64, int64)")
def is_current(position: Any, thread: Any) -> Any:
    """Return whether the set of a position still exists in the state cache of this thread."""
    p = int64s_at(position)
    return 1 if p[AT_THREAD] == thread and view(p[AT_CONTEXT], HEAD)[EPOCH] == p[AT_EPOCH] else 0


@entry([types.int64(READ)], releases_gil=False)
def address_of(array: Any) -> Any:
    """Return the address of the data of an array, in a twentieth of the time that `array.ctypes.data` takes."""
    return array.ctypes.data


@entry("int64(int64, int64)", releases_gil=False)
def note_array(position: Any, array: Any) -> Any:
    """Store in a position the fields of a numpy array, the object at `array`. Return its length; -1 if it has none, or
    more than one dimension.
    """
    p, a = int64s_at(position), int64s_at(array)
    p[AT_OUT], p[AT_OUT_DATA], p[AT_OUT_DIMS] = array, a[DATA], a[DIMS] & LOW
    p[AT_OUT_TYPE], p[AT_OUT_FLAGS] = a[TYPE], a[FLAGS] & LOW
    if p[AT_OUT_DIMS] != 1:  # then the shape may have no address
        return -1
    return int64s_at(a[SHAPE])[0]


@entry("int64(int64, int64)")
def repeat_mask(position: Any, thread: Any) -> Any:
    """Write the mask of a position to the noted array. Return 0, -1 if the mask lacks something, or CHANGED.

    CHANGED: the position is not valid, or the array has changed.

    An array may be resized, made read-only or given another type or shape in place; each of these changes its fields.
    """
    p = int64s_at(position)
    if p[AT_PLAIN] <= 0 or is_current(position, thread) == 0:
        return CHANGED
    a = int64s_at(p[AT_OUT])
    if a[DATA] != p[AT_OUT_DATA] or a[DIMS] & LOW != p[AT_OUT_DIMS] or a[TYPE] != p[AT_OUT_TYPE]:
        return CHANGED
    if a[FLAGS] & LOW != p[AT_OUT_FLAGS] or int64s_at(a[SHAPE])[0] != view(p[AT_CONTEXT], TABLE)[T_WORDS]:
        return CHANGED
    return fill_mask(p[AT_CONTEXT], p[AT_SET], a[DATA])


@entry("int64(int64, int64, int64)")
def mask_at(position: Any, thread: Any, out: Any) -> Any:
    """Write the mask of a position to address `out`. Return 0 or -1."""
    p = int64s_at(position)
    if p[AT_PLAIN] <= 0 or is_current(position, thread) == 0:
        return -1
    return fill_mask(p[AT_CONTEXT], p[AT_SET], out)


@inlined("int64(int64, int64, int64)")
def take_token(position: Any, thread: Any, token: Any) -> Any:
    """Advance a position by a token and append it to the history. Return 0, or -1 with the position unchanged."""
    p = int64s_at(position)
    if token < 0 or token >= p[AT_PLAIN] or is_current(position, thread) == 0 or p[AT_LENGTH] >= p[AT_CAPACITY]:
        return -1
    before = p[AT_SET]
    after = advance_token(p[AT_CONTEXT], before, token)
    if after <= 0:
        return -1
    record = at(p[AT_HISTORY] + 4 * HISTORY_W * p[AT_LENGTH])
    record[HISTORY_SET], record[HISTORY_ITEM] = before, token
    p[AT_LENGTH] += 1
    p[AT_SET] = after
    return 0


@entry("int64(int64, int64, int64)")
def advance_at(position: Any, thread: Any, token: Any) -> Any:
    """Advance a position by a token. Return 0, or -1 with the position unchanged."""
    return take_token(position, thread, token)


@entry("int64(int64, int64, int64, int64, int64)")
def advance_all(positions: Any, tokens: Any, first: Any, last: Any, thread: Any) -> Any:
    """Advance positions first .. last - 1, each by its token. Return `last`, or k if position k was not advanced.

    positions: address of the addresses of positions. tokens: address of int64s.
    """
    for k in range(first, last):
        if take_token(int64s_at(positions)[k], thread, int64s_at(tokens)[k]) < 0:
            return k
    return last


@entry("int64(int64, int64, int64, int64)", releases_gil=False)
def count_positions(positions: Any, count: Any, workers: Any, counts: Any) -> Any:
    """Count in int64s at `counts` the positions that each worker serves. Return the greatest count."""
    served = int64s_at(counts)
    for w in range(workers):
        served[w] = 0
    most = 0
    for k in range(count):
        w = view(int64s_at(int64s_at(positions)[k])[AT_CONTEXT], HEAD)[WORKER] % workers
        served[w] += 1
        most = max(most, served[w])
    return most


@entry("int64(int64, int64, int64, int64)", releases_gil=False)
def count_new(positions: Any, count: Any, thread: Any, most: Any) -> Any:
    """Return how many positions have a mask that was not computed before, counting up to `most`.

    Masks that were computed are copied, which takes as long as memory does, on one thread or on several.
    """
    found = 0
    for k in range(count):
        p = int64s_at(int64s_at(positions)[k])
        if p[AT_PLAIN] < 0:
            continue
        is_stale = is_current(int64s_at(positions)[k], thread) == 0
        if is_stale or view(p[AT_CONTEXT], SETS)[SET_W * p[AT_SET] + SET_MASK] < 0:
            found += 1
            if found == most:
                break
    return found


@entry("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def fill_masks(
    positions: Any, rows: Any, first: Any, last: Any, worker: Any, workers: Any, thread: Any,
    out: Any, stride: Any, words: Any,
) -> Any:  # fmt: skip
    """Write the masks of those positions first .. last - 1 whose state caches belong to a worker.

    positions: address of the addresses of positions. rows: address of the row of each in the output, 0: in order. out:
    address of row 0; rows have `words` words and are `stride` bytes apart.

    Return `last`; or k if position k has made a request of its state cache; or -1 - k if the caller must fill the mask
    of position k itself.
    """
    for k in range(first, last):
        p = int64s_at(int64s_at(positions)[k])
        c = p[AT_CONTEXT]
        owner = view(c, HEAD)[WORKER] % workers if p[AT_THREAD] == thread else 0
        if owner != worker:
            continue
        target = out + (int64s_at(rows)[k] if rows else k) * stride
        written = 0
        if p[AT_PLAIN] >= 0:
            written = view(c, TABLE)[T_WORDS] + 0
            if p[AT_PLAIN] == 0 or written > words or is_current(int64s_at(positions)[k], thread) == 0:
                return -1 - k
            if fill_mask(c, p[AT_SET], target) == -1:
                return k
        mask = at(target)
        for w in range(written, words):
            mask[w] = 0
    return last


@entry("int64(int64, int64, int64, int64, int64)")
def fill_array(positions: Any, count: Any, thread: Any, array: Any, kind: Any) -> Any:
    """Write the masks of all positions to the rows of a numpy array, the object at address `array`.

    kind: address of the dtype int32. Return `count`; -1 if the array does not have a row of consecutive int32s for each
    position, or is read-only; or else what `fill_masks` returns.
    """
    a = int64s_at(array)
    if a[DIMS] & LOW != 2 or a[TYPE] != kind or a[FLAGS] & WRITEABLE == 0:
        return -1
    shape, strides = int64s_at(a[SHAPE]), int64s_at(a[STRIDES])
    if shape[0] < count or strides[1] != 4:
        return -1
    return fill_masks(positions, 0, 0, count, 0, 1, thread, a[DATA], strides[0], shape[1])
