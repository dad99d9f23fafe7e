"""`canonicalize_table` and `product_of_tables` for automata with many states, on arrays instead of lists.

A round of Moore's refinement hashes the block of each state and the blocks of its successors to 64 bits and sorts the
hashes. A collision would merge inequivalent states, so the resulting partition is verified row by row; if it is not a
congruence, the refinement is repeated with other random numbers. The result is therefore exact.

A deep automaton (such as a count of characters) would need as many rounds as it has layers; these are left to the list
implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..base.work import spend_work
from .boolean_operations import PRODUCT, too_many_states

Ints: TypeAlias = NDArray[np.integer[Any]]

__all__ = ["WIDE", "DfaArrays", "canonicalize_arrays", "find_array_distances", "product_of_arrays"]

WIDE = 300
"""Number of states above which arrays are faster than lists."""

LAYERS = 300
"""Maximum distance to acceptance and number of refinement rounds; beyond it, lists are faster."""

MINIMAL = "a minimal automaton"
"""Name of the operation, for messages of the work budget."""

SEEDS = 8
"""Number of attempts; each fails with a probability of about states^2 / 2^64."""


class DfaArrays(NamedTuple):
    """The arrays of an automaton; see `Dfa` for the fields."""

    bounds: NDArray[np.int32]
    classes: NDArray[np.int32]
    delta: NDArray[np.int32]
    accepting: NDArray[np.bool_]


def canonicalize_arrays(
    bounds: list[int], classes: list[int], delta: Ints, accepting: NDArray[np.bool_]
) -> DfaArrays | None:
    """Return the canonical arrays of the same language, numbered as by `canonicalize_table`; None if it is too deep.

    `delta` is int32[n, C] with -1 for dead; the start is state 0. States need not be reachable.
    """
    spend_work(delta.size // 16, MINIMAL)
    distance = find_array_distances(delta, accepting)
    if distance is None:
        return None
    if not len(distance) or distance[0] < 0:
        return _arrays([0], [0], np.zeros((0, 1), dtype=np.int32), accepting[:0])
    alive = np.flatnonzero(distance >= 0)
    names = np.full(len(delta) + 1, -1, dtype=np.int64)
    names[alive] = np.arange(len(alive))
    delta, accepting, distance = names[delta[alive]], accepting[alive], distance[alive]
    for seed in range(SEEDS):
        block = _refined(delta, distance, np.random.default_rng(seed))
        if block is None:
            return None
        kept = np.zeros(int(block.max()) + 1, dtype=np.int64)
        kept[block] = np.arange(len(block))
        after = np.append(block, -1)[delta]
        like = kept[block]
        if np.array_equal(after, after[like]) and np.array_equal(accepting, accepting[like]):
            reached, order = _ordered(after[kept], int(block[0]))
            bounds, classes, quotient = _merged(bounds, classes, reached)
            quotient, again = _ordered(quotient, 0)
            return _arrays(bounds, classes, quotient, accepting[kept[order[again]]])
    raise AssertionError("Distinct states received equal 64-bit random numbers repeatedly.")


def product_of_arrays(
    first: DfaArrays,
    second: DfaArrays,
    columns: Sequence[tuple[int, int]],
    accept: Callable[[bool, bool], bool],
    max_states: int,
) -> tuple[Ints, NDArray[np.bool_]]:
    """Return (delta, accepting) of the product of two automata, restricted to reachable pairs that may reach
    acceptance.

    `columns` lists the pairs of classes that occur (see `merge_ranges`). A pair accepts if `accept` of the two results
    is true; `accept(False, False)` must be False. The start is state 0. Raise LimitError for more than `max_states`
    pairs.
    """
    keep_first, keep_second = accept(True, False), accept(False, True)
    # State s is row s + 1; row 0 is the dead state.
    dead_and_all = [np.vstack([np.full((1, one.delta.shape[1]), -1), one.delta]) for one in (first, second)]
    left, right = (rows[:, list(kinds)] for rows, kinds in zip(dead_and_all, zip(*columns)))
    width = len(second.delta) + 1

    def after(codes: Ints) -> Ints:
        """Return int64[n, C]: the code of the next pair, or -1 if it cannot reach acceptance."""
        a, b = left[codes // width] + 1, right[codes % width] + 1
        dead = (a == 0) & (b == 0)
        if not keep_second:
            dead |= a == 0
        if not keep_first:
            dead |= b == 0
        return np.where(dead, -1, a * width + b)

    start = int(len(first.delta) > 0) * width + int(len(second.delta) > 0)
    known = layer = np.array([start], dtype=np.int64)
    while len(layer):
        codes = np.unique(after(layer))
        places = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        layer = codes[(codes >= 0) & (known[places] != codes)]
        known = np.sort(np.concatenate([known, layer]))
        spend_work(len(known) // 64 + len(layer) * (4 + len(columns)) // 32, PRODUCT)
        if len(known) > max_states:
            raise too_many_states("A combination of automata", max_states)
    order = np.concatenate([[start], known[known != start]])
    names = np.empty(len(known), dtype=np.int64)
    names[np.searchsorted(known, order)] = np.arange(len(order))
    targets = after(order)
    delta = np.where(targets < 0, -1, names[np.minimum(np.searchsorted(known, targets), len(known) - 1)])
    answers = np.array([[accept(a, b) for b in (False, True)] for a in (False, True)])
    accepts_first, accepts_second = (np.append(False, one.accepting).astype(np.int64) for one in (first, second))
    return delta, answers[accepts_first[order // width], accepts_second[order % width]]


def _arrays(bounds: list[int], classes: list[int], delta: Ints, accepting: NDArray[np.bool_]) -> DfaArrays:
    ranges = np.array(bounds, dtype="<i4"), np.array(classes, dtype="<i4")
    return DfaArrays(*ranges, np.ascontiguousarray(delta, dtype="<i4"), np.ascontiguousarray(accepting))


def find_array_distances(delta: Ints, accepting: NDArray[np.bool_]) -> Ints | None:
    """Return int32[n]: the least number of characters from each state to acceptance, or -1; None if it is too deep."""
    states, width = delta.shape
    flat = delta.ravel()
    edges = np.flatnonzero(flat >= 0)
    edges = edges[np.argsort(flat[edges], kind="stable")]
    starts = np.zeros(states + 1, dtype=np.int64)
    np.cumsum(np.bincount(flat[edges], minlength=states), out=starts[1:])
    sources = edges // width
    distance = np.full(states, -1, dtype=np.int32)
    layer, steps = np.flatnonzero(accepting), 0
    while len(layer):
        if steps > LAYERS:
            return None
        distance[layer] = steps
        sizes = starts[layer + 1] - starts[layer]
        ends = np.cumsum(sizes)
        before = sources[np.arange(ends[-1]) + np.repeat(starts[layer] - ends + sizes, sizes)]
        layer = np.unique(before[distance[before] < 0])
        steps += 1
    return distance


def _refined(delta: Ints, distance: Ints, random: np.random.Generator) -> Ints | None:
    """Return int64[n]: the block of each state; None if the refinement needs too many rounds.

    Blocks are never too fine, and too coarse only after a hash collision.
    """
    columns = list({column.tobytes(): column for column in delta.T.copy()}.values())
    weights = random.integers(1 << 63, size=len(columns) + 1, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    fresh = random.integers(1 << 63, size=len(delta) + 1, dtype=np.uint64)
    names, block = np.unique(distance, return_inverse=True)
    for _ in range(LAYERS):
        spend_work(len(delta) * (32 + len(columns)) // 256, MINIMAL)
        numbers = fresh[np.append(block, -1)]  # The last entry belongs to the dead state.
        sums = numbers[:-1] * weights[-1]
        for column, weight in zip(columns, weights):
            sums += numbers[column] * weight
        count = len(names)
        names, block = np.unique(sums, return_inverse=True)
        if len(names) <= count:
            return block
    return None


def _merged(bounds: list[int], classes: list[int], delta: Ints) -> tuple[list[int], list[int], Ints]:
    """Merge classes with equal columns and number the classes by their first code point."""
    columns = delta.T.copy()
    numbers: dict[bytes, int] = {}
    representatives: list[int] = []
    new_bounds: list[int] = []
    new_classes: list[int] = []
    for bound, index in zip(bounds, classes):
        text = columns[index].tobytes()
        if text not in numbers:
            numbers[text] = len(numbers)
            representatives.append(index)
        if not new_classes or new_classes[-1] != numbers[text]:
            new_bounds.append(bound)
            new_classes.append(numbers[text])
    return new_bounds, new_classes, delta[:, representatives]


def _ordered(delta: Ints, start: int) -> tuple[Ints, Ints]:
    """Return delta of the reachable states in breadth-first order, and the old number of each.

    Within a layer, states are ordered by the classes that lead to them.
    """
    names = np.full(len(delta) + 1, -1, dtype=np.int64)
    visited = np.zeros(len(delta) + 1, dtype=np.bool_)
    visited[[start, -1]] = True
    layers = [np.array([start])]
    while len(layers[-1]):
        targets = delta[layers[-1]].ravel()
        targets, first = np.unique(targets[~visited[targets]], return_index=True)
        layers.append(targets[np.argsort(first)])
        visited[targets] = True
    order = np.concatenate(layers)
    names[order] = np.arange(len(order))
    return names[delta[order]], order
