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
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ...base.errors import ArgumentError, check_count, describe_value
from ...kernels import entry_points, layout as at
from ..state_cache import StateCacheEvicted
from .array_memory import ArrayMemory, as_numpy, check_rows, describe_memory
from .worker_threads import count_cores, run_together

if TYPE_CHECKING:
    from ..matcher import Matcher
    from ..state_cache import StateCache

__all__ = ["fill_masks"]

LEAST_SHARE = 32
"""Rows per thread from which another thread pays off: waking one takes about 40 µs, a mask 0.5 to 10 µs."""


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
        Most threads to use. By default the number of cores, fewer for small batches.

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
    if not isinstance(matchers, Sequence) or not all(hasattr(matcher, "_address") for matcher in matchers):
        raise TypeError(f"matchers is {describe_value(matchers)}: give a list of constrain.Matcher")
    threads = None if threads is None else check_count("threads", threads, 1)
    memory = describe_memory(out, "out")
    if len(memory.shape) != 2 or memory.dtype != "int32" or not memory.has_contiguous_rows():
        raise ArgumentError(f"out is {memory}, strides {memory.strides}: give int32 [rows, words], each row contiguous")
    listed = check_rows(rows, len(matchers), memory.shape[0], "matchers")
    if threads is None:
        threads = min(count_cores(), len(matchers) // LEAST_SHARE) if len(matchers) >= 2 * LEAST_SHARE else 1
    threads = max(1, min(threads, len(matchers)))
    addresses = array("q", [matcher._address for matcher in matchers])
    if threads > 1:
        most_rows = (
            -(-len(matchers) // threads) * 5 // 4
        )  # allow some imbalance: moving a matcher replays all its tokens
        counts = array("q", bytes(8 * threads))
        if (
            entry_points.count_positions(addresses.buffer_info()[0], len(addresses), threads, counts.buffer_info()[0])
            > most_rows
        ):
            _assign_workers(matchers, threads, most_rows)
    unfinished: list[int] = []
    fill_rows = partial(_fill_rows, matchers, addresses, listed, memory, unfinished, get_ident(), threads)
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
    unfinished: list[int], thread: int, threads: int, worker: int,
) -> None:  # fmt: skip
    """Compute the rows of one worker. Append the indices that need `Matcher.mask` to `unfinished`."""
    numbers = array("q", rows) if rows else None
    inputs = addresses.buffer_info()[0], numbers.buffer_info()[0] if numbers else 0
    output = worker, threads, thread, memory.address, memory.stride, memory.shape[1]
    done, last = 0, len(addresses)
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
