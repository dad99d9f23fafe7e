"""fill_masks: compute the masks of many matchers in one call, distributed over the cores.

Computing a mask extends a state cache, which only one thread may use at a time. So the unit of distribution is the
state cache: each one is assigned to one worker while the caller waits, and no lock is needed. Matchers of one
Constraint start in one state cache. Where it holds more matchers than a worker's share, some of them move to another
state cache of the calling thread (another *worker slot*), which requires replaying their tokens once; they stay there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import partial
from operator import attrgetter
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import ArgumentError, check_count, describe_value
from ...kernels import entry_points, layout as at
from ...kernels.call_layout import AT_SELF
from ..mask_arrays import ROW_KIND, can_read_arrays
from ..state_cache import StateCacheEvicted
from .array_memory import ArrayMemory, as_numpy, check_rows, describe_memory
from .worker_threads import count_cores, run_together

if TYPE_CHECKING:
    from ..matcher import Matcher
    from ..state_cache import StateCache

__all__ = ["fill_masks"]

LEAST_SHARE = 32
"""New masks per thread from which another thread pays off: waking one takes about 40 µs, a new mask 2 to 10 µs.

Masks that were computed before are copies of 16 KB each. Two threads do not copy faster than one, so they do not count.
"""
ADDRESS = attrgetter("_address")
BATCH_OF_ONE = 8 * AT_SELF
"""Bytes from the position of a matcher to the list of addresses for a batch of it alone."""


def fill_masks(
    matchers: Sequence[Matcher], out: Any, *, rows: Iterable[int] | None = None, threads: int | None = None
) -> Any:
    """Compute the mask of each matcher, as `Matcher.mask` does, and write it to a row of `out`.

    The GIL is released while masks are computed.

    Parameters
    ----------
    matchers : sequence of Matcher
        Matchers of one or several Constraints, none of them in use by another thread during the call. A matcher that
        has accepted an end token gets a row of zeros.
    out : ndarray or torch.Tensor of int32, shape (R, W)
        Array in CPU memory with contiguous rows. W is at least ceil(V / 32); words beyond that are set to 0.
    rows : iterable of int, optional
        The row of `out` for each matcher, all distinct. By default 0, 1, 2, ... Other rows are unchanged.
    threads : int, optional
        Most threads to use, by default the number of cores. Fewer are used where few masks are new.

    Returns
    -------
    ndarray or torch.Tensor
        `out`.

    Raises
    ------
    TypeError, ValueError
        If `out` or `rows` do not match the matchers.
    LimitError, VocabularyError
        As `Matcher.mask` does.
    """
    thread = get_ident()
    if type(matchers) is list and len(matchers) == 1 and rows is None and type(out) is np.ndarray and can_read_arrays():
        address = getattr(matchers[0], "_address", 0)
        if address and entry_points.fill_array(address + BATCH_OF_ONE, 1, thread, id(out), ROW_KIND) == 1:
            return out
    addresses = list_positions(matchers)
    positions, count = addresses.buffer_info()
    if threads is not None:
        threads = check_count("threads", threads, 1)
    threads = 1 if count < 2 * LEAST_SHARE else choose_threads(positions, count, thread, threads)
    done = 0
    if threads == 1 and rows is None and type(out) is np.ndarray and can_read_arrays():
        done = entry_points.fill_array(positions, count, thread, id(out), ROW_KIND)
        if done == count:
            return out
    memory = describe_memory(out, "out")
    if len(memory.shape) != 2 or memory.dtype != "int32" or not memory.has_contiguous_rows():
        raise ArgumentError(f"out is {memory}, strides {memory.strides}: give int32 [rows, words], each row contiguous")
    listed = check_rows(rows, len(matchers), memory.shape[0], "matchers")
    if threads > 1:
        most_rows = -(-count // threads) * 5 // 4  # allow some imbalance: moving a matcher replays all its tokens
        counts = array("q", bytes(8 * threads))
        if entry_points.count_positions(positions, count, threads, counts.buffer_info()[0]) > most_rows:
            _assign_workers(matchers, threads, most_rows)
    unfinished: list[int] = []
    first = max(done, -1 - done)  # all rows before it are filled
    fill_rows = partial(_fill_rows, matchers, addresses, listed, memory, unfinished, thread, threads, first)
    if threads == 1:
        fill_rows(0)
    else:
        run_together([partial(fill_rows, worker) for worker in range(threads)])
    for index in unfinished:
        mask, row = matchers[index].mask(), index if listed is None else listed[index]
        if len(mask) > memory.shape[1]:
            raise ArgumentError(
                f"out has {memory.shape[1]} words a row, a mask has {len(mask)}: give int32 [rows, words]"
            )
        as_numpy(out)[row, : len(mask)], as_numpy(out)[row, len(mask) :] = mask, 0
    return out


def list_positions(matchers: Sequence[Matcher]) -> array[int]:
    """Return the addresses of the positions of matchers. Raise TypeError if they are something else."""
    try:
        if type(matchers) is list or isinstance(matchers, Sequence):
            return array("q", map(ADDRESS, matchers))
    except AttributeError:
        pass
    raise TypeError(f"matchers is {describe_value(matchers)}: give a list of constrain.Matcher")


def choose_threads(positions: int, count: int, thread: int, most: int | None) -> int:
    """Return how many threads fill the masks of positions fastest: as many as have LEAST_SHARE new masks each."""
    most = count_cores() if most is None else most
    return max(1, min(most, entry_points.count_new(positions, count, thread, most * LEAST_SHARE) // LEAST_SHARE))


def _assign_workers(matchers: Sequence[Matcher], threads: int, most: int) -> None:
    """Assign each state cache to a worker, largest first.

    Where a state cache exceeds the share of a worker, move some of its matchers to another one.
    """
    groups: dict[StateCache, list[Matcher]] = {}
    for matcher in matchers:
        groups.setdefault(matcher._valid_state_cache(), []).append(matcher)
    assigned: set[StateCache] = set()
    loads = [0] * threads
    share = -(-len(matchers) // threads)
    while groups:
        state_cache = max(groups, key=lambda one: len(groups[one]))
        group = groups.pop(state_cache)
        worker = min(range(threads), key=loads.__getitem__)
        state_cache.arrays[at.HEAD][at.WORKER] = worker
        assigned.add(state_cache)
        if loads[worker] + len(group) > most:
            group.sort(key=lambda matcher: len(matcher._accepted), reverse=True)
            worker_slot, constraint = 0, group[0].constraint
            while constraint.state_cache(worker_slot) in assigned:
                worker_slot += 1
            for matcher in group[share - loads[worker] :]:
                matcher._move_to_slot(worker_slot)
                groups.setdefault(matcher._state_cache, []).append(matcher)
            del group[share - loads[worker] :]
        loads[worker] += len(group)


def _fill_rows(
    matchers: Sequence[Matcher], addresses: array[int], rows: list[int] | None, memory: ArrayMemory,
    unfinished: list[int], thread: int, threads: int, first: int, worker: int,
) -> None:  # fmt: skip
    """Compute the rows of one worker from `first` on. Append the indices that need `Matcher.mask` to `unfinished`."""
    numbers = array("q", rows) if rows else None
    inputs = addresses.buffer_info()[0], numbers.buffer_info()[0] if numbers else 0
    output = worker, threads, thread, memory.address, memory.stride, memory.shape[1]
    done, last = first, len(addresses)
    while (done := entry_points.fill_masks(*inputs, done, last, *output)) != last:
        if done < 0:
            unfinished.append(-1 - done)
            done = -done
            continue
        matcher = matchers[done]
        try:
            matcher._state_cache.run(
                entry_points.fill_mask, matcher._set, memory.address + memory.stride * (rows[done] if rows else done)
            )
        except StateCacheEvicted:
            pass  # the eviction invalidated this position, and others of this state cache
