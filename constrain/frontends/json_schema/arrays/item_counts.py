"""Arrays whose items are counted by set or must differ: an automaton that is built as the text reaches its states.

An `ItemState` is the information about a prefix of the items that still matters: their number, how many satisfied each
contains-constraint (each count capped where more makes no difference), and which of the enumerated values are unused.
An item is one of the unused values, or of an `ItemKind`: a cell of the Venn diagram of the constraints, which is its
set intersected with S or NOT S for each of them. Only steps are written after which the array can be finished
(`ItemAutomaton.can_finish`). That is decided by an integer programme over how many items of each kind are still to come
(`integer_feasibility`), over a prefix by exhaustive search, over enumerated values by bipartite matching. Each state is
a rule of the Grammar that is called in tail position, so neither the stack nor the code grows with the bounds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from ....base.errors import LimitError, UnsupportedError
from ....base.work import spend_work
from ....grammar.nodes import EMPTY, Choice, Member, Node, Repeat, Rule, Sequence
from ..core.json_values import Constant
from ..core.node_building import choice_of
from ..core.schema_sets import SchemaSet
from ..core.whitespace import spacing_at
from ..shapes.array_case import ArrayCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.value_emitter import ValueEmitter
from .integer_feasibility import CountConstraint, is_feasible

__all__ = [
    "CountedItems",
    "ItemKind",
    "ItemAutomaton",
    "ItemState",
    "emit_counted_items",
    "has_matching",
    "emit_next_item",
    "find_pointer",
]

MOST_CONSTRAINTS = 8
"""Most different contains-constraints on one array: each may split a set of items in two."""

MOST_GUESSES = 8
"""Largest lower count up to which an item that satisfies the constraint may also remain uncounted.

This nondeterminism avoids the complement of the set; the engine carries one configuration for each such guess.
"""

CELL = 30
"""Units of work for a cell of a set of items that a constraint may split in two."""

MOST_STATES = 20_000
"""States of a prefix that are searched before the array is refused."""

Counts = tuple[int, ...]


class ItemState(NamedTuple):
    """The state after some items: their number and the counts, both capped; the unused enumerated values, as bits."""

    position: int
    counts: Counts
    unused: int


class ItemKind(NamedTuple):
    """Items of one cell: their set, and what each of them adds to every count."""

    schemas: SchemaSet
    adds: Counts


class ItemStep(NamedTuple):
    """One item: its set, whether the engine must check that it differs from the others, and the state after it."""

    schemas: SchemaSet
    guarded: bool
    after: ItemState


class ItemAutomaton:
    """The automaton of one normalised case.

    values: enumerated values, each of which may occur at most once; other items are guarded by the engine if the case
    is unique. exact: an item that satisfies a constraint is always counted.
    """

    def __init__(self, case: ArrayCase, values: tuple[Constant, ...], exact: bool, algebra: SchemaAlgebra) -> None:
        self.case = case
        self.values = values
        self.exact = exact
        self.algebra = algebra
        self.size = max([len(case.prefix), *(constraint.start for constraint in case.contains)])
        self.start = ItemState(0, (0,) * len(case.contains), (1 << len(values)) - 1)
        self._last = max(self.size, case.low) if case.high is None else case.high
        self._constants = [algebra.table.add_constant(value) for value in values]
        self._kinds: dict[tuple[SchemaSet, tuple[int, ...]], list[ItemKind]] = {}
        self._value_in_set: dict[tuple[int, SchemaSet], bool] = {}
        self._can_finish: dict[Hashable, bool] = {}
        self._later_values = self._find_later_values()
        if len(case.contains) > MOST_CONSTRAINTS:
            raise self._unsupported_error(
                f"More than {MOST_CONSTRAINTS} different `contains` constraints on one array."
            )

    # ---- steps -------------------------------------------------------------------------------------------------

    def steps(self, state: ItemState) -> Iterator[ItemStep]:
        """Yield the items that may come next, such that the array can be finished after them."""
        return (step for step in self._all_steps(state) if self.can_finish(step.after))

    def may_end(self, state: ItemState) -> bool:
        """Return whether the array may end in this state."""
        if state.position < self.case.low:
            return False
        return all(
            constraint.low <= count and (constraint.high is None or count <= constraint.high)
            for constraint, count in zip(self.case.contains, state.counts)
        )

    def uniform_kinds(self, state: ItemState) -> list[ItemKind] | None:
        """Return the kinds of all further items if they are the same for each and change no count; None otherwise."""
        if state.position < self.size or self.case.unique:
            return None
        kinds = [kind for kind in self.kinds(state.position, state.counts) if self._add_counts(state.counts, kind.adds)]
        return kinds if all(self._add_counts(state.counts, kind.adds) == state.counts for kind in kinds) else None

    def kinds(self, position: int, counts: Counts) -> list[ItemKind]:
        """Return the kinds of an item at a position, enumerated values excepted."""
        base, open_constraints = self.case.at(position), self._find_open_constraints(position, counts)
        known = self._kinds.get((base, open_constraints))
        if known is None:
            known = self._kinds[base, open_constraints] = self._split_by_constraints(base, open_constraints)
        return known

    def all_kinds(self) -> Iterator[ItemKind]:
        """Yield the kinds of all positions, with constraints satisfied and not satisfied."""
        contains = self.case.contains
        unbounded = [index for index, constraint in enumerate(contains) if constraint.high is None]
        top = self.size if self.case.high is None else min(self.size, self.case.high - 1)
        for position in range(top + 1):
            for chosen in range(1 << len(unbounded)):
                satisfied = {index for bit, index in enumerate(unbounded) if chosen >> bit & 1}
                yield from self.kinds(position, tuple(d.low if k in satisfied else 0 for k, d in enumerate(contains)))

    @property
    def lists_all(self) -> bool:
        """Whether every item is one of the enumerated values, so that none has to be guarded."""
        return not any(True for _ in self.all_kinds())

    def _find_open_constraints(self, position: int, counts: Counts) -> tuple[int, ...]:
        """Return the constraints, by index, that depend on the item at a position."""
        return tuple(
            index for index, (constraint, count) in enumerate(zip(self.case.contains, counts))
            if constraint.start <= position and (constraint.high is not None or count < constraint.low)
        )  # fmt: skip

    def _split_by_constraints(self, base: SchemaSet, open_constraints: tuple[int, ...]) -> list[ItemKind]:
        """Return the non-empty cells of a set by the open constraints."""
        algebra, no_counts = self.algebra, [0] * len(self.case.contains)
        if self.values:
            base = algebra.intersect(base, algebra.complement(algebra.enum_set(self.values)))
        cells: list[tuple[SchemaSet, list[int]]] = [(base, no_counts)] if algebra.is_satisfiable(base) else []
        for index in open_constraints:
            # Items that are such arrays themselves lead here again, from each cell of each level.
            spend_work(CELL * len(cells), "items that are counted")
            _, schemas, low, high = self.case.contains[index]
            may_guess = high is None and low <= MOST_GUESSES and not self.exact
            divided: list[tuple[SchemaSet, list[int]]] = []
            for cell, adds in cells:
                inside = algebra.intersect(cell, schemas)
                if not algebra.is_satisfiable(inside):
                    divided.append((cell, adds))
                    continue
                divided.append((inside, [int(k == index) or add for k, add in enumerate(adds)]))
                outside = cell if may_guess else algebra.intersect(cell, algebra.complement(schemas))
                if inside != cell and (may_guess or algebra.is_satisfiable(outside)):
                    divided.append((outside, adds))
            cells = divided
        return [ItemKind(cell, tuple(adds)) for cell, adds in cells]

    def _add_counts(self, counts: Counts, adds: Counts) -> Counts | None:
        """Return the counts after an item; None if there are too many of a constraint."""
        out = []
        for constraint, count, add in zip(self.case.contains, counts, adds):
            if constraint.high is not None and count + add > constraint.high:
                return None
            out.append(min(count + add, constraint.low if constraint.high is None else constraint.high))
        return tuple(out)

    def _all_steps(self, state: ItemState) -> Iterator[ItemStep]:
        """Yield the items that may come next, whether or not the array can be finished after them."""
        position, counts, unused = state
        if self.case.high is not None and position >= self.case.high:
            return
        base = self.case.at(position)
        spend_work(3 + 2 * len(self.values), "items that must differ")
        for index, adds in self._list_unused_values(position, counts, unused):
            after = self._add_counts(counts, adds)
            if after is not None:
                schemas = self.algebra.intersect(base, self._constants[index])
                yield ItemStep(schemas, False, self._normal_state(position + 1, after, unused & ~(1 << index)))
        for kind in self.kinds(position, counts):
            after = self._add_counts(counts, kind.adds)
            if after is not None:
                yield ItemStep(kind.schemas, self.case.unique, self._normal_state(position + 1, after, unused))

    def _normal_state(self, position: int, counts: Counts, unused: int) -> ItemState:
        """Return the state at a position in its normal form: capped, without values that cannot occur any more."""
        position = min(position, self._last)
        return ItemState(
            position,
            counts,
            unused & self._later_values[min(position, self.size)] if self._may_continue(position) else 0,
        )

    def _may_continue(self, position: int) -> bool:
        return self.case.high is None or position < self.case.high

    # ---- listed values -----------------------------------------------------------------------------------------

    def _is_value_in(self, index: int, schemas: SchemaSet) -> bool:
        """Return whether an enumerated value is in a set."""
        known = self._value_in_set.get((index, schemas))
        if known is None:
            intersection = self.algebra.intersect(self._constants[index], schemas)
            known = self._value_in_set[index, schemas] = self.algebra.is_satisfiable(intersection)
        return known

    def _list_unused_values(self, position: int, counts: Counts, unused: int) -> Iterator[tuple[int, Counts]]:
        """Yield the enumerated values that may stand at a position, by index, with what they add to the counts."""
        base, open_constraints = self.case.at(position), self._find_open_constraints(position, counts)
        for index in range(len(self.values)):
            if unused >> index & 1 and self._is_value_in(index, base):
                yield (
                    index,
                    tuple(
                        int(k in open_constraints and self._is_value_in(index, constraint.schemas))
                        for k, constraint in enumerate(self.case.contains)
                    ),
                )

    def _find_later_values(self) -> list[int]:
        """Return the enumerated values that may occur at or after each position of the prefix, and after the prefix."""
        out, later = [], 0
        for position in range(self.size, -1, -1):
            base = self.case.at(position)
            later |= sum(1 << index for index in range(len(self.values)) if self._is_value_in(index, base))
            out.append(later)
        return out[::-1]

    # ---- whether an array can be finished ----------------------------------------------------------------------

    def can_finish(self, state: ItemState) -> bool:
        """Return whether an array can be finished from a state (co-reachability)."""
        known = self._can_finish.get(state)
        if known is None:
            if self.may_end(state):
                known = True
            elif not self.case.contains:
                spend_work(10 + 5 * state.unused.bit_count(), "items that must differ")
                known = self._has_matching_values(state)
            elif state.position >= self.size:
                known = self._is_feasible_after_prefix(state)
            else:
                self._search_prefix(state)
                known = self._can_finish[state]
            self._can_finish[state] = known
        return known

    def _is_feasible_after_prefix(self, state: ItemState) -> bool:
        """Decide `can_finish` where all further items have the same set: an integer programme over the kinds."""
        position, counts, unused = state
        case, open_constraints = self.case, self._find_open_constraints(position, counts)
        kinds = self.kinds(position, counts)
        adds, no_bounds = [kind.adds for kind in kinds], [None] * len(kinds)
        value_groups: dict[Counts, int] = {}
        for _, added in self._list_unused_values(position, counts, unused):
            value_groups[added] = value_groups.get(added, 0) + 1
        limits: list[int | None] = [*no_bounds, *value_groups.values()]
        adds += value_groups
        high = None if case.high is None else case.high - position
        totals = [CountConstraint(tuple(range(len(adds))), max(0, case.low - position), high)]
        for index in open_constraints:
            constraint, count = case.contains[index], counts[index]
            chosen = tuple(kind for kind, added in enumerate(adds) if added[index])
            top = None if constraint.high is None else constraint.high - count
            totals.append(CountConstraint(chosen, max(0, constraint.low - count), top))
        key = (tuple(limits), tuple(adds), tuple(totals))
        known = self._can_finish.get(key)
        if known is None:
            try:
                known = self._can_finish[key] = is_feasible(limits, totals)
            except LimitError as error:
                raise self._unsupported_error(error.cause) from None
        return known

    def _search_prefix(self, state: ItemState) -> None:
        """Decide `can_finish` inside the prefix: breadth-first search, then backward propagation by layers."""
        layers: list[dict[ItemState, list[ItemState]]] = []
        frontier, visited = {state}, 0
        for _ in range(state.position, self.size):
            layer = {one: [step.after for step in self._all_steps(one)] for one in frontier}
            layers.append(layer)
            frontier = {after for successors in layer.values() for after in successors}
            visited += len(frontier)
            if visited > MOST_STATES:
                raise self._unsupported_error("Deciding which of these first items are possible takes too long.")
        for layer in reversed(layers):
            for one, successors in layer.items():
                self._can_finish[one] = self.may_end(one) or any(map(self.can_finish, successors))

    def _has_matching_values(self, state: ItemState) -> bool:
        """Decide `can_finish` without constraints: a matching of the required items to different values."""
        accepted = []
        for position in range(state.position, min(self.case.low, self.size)):
            if not self.kinds(position, ()):
                accepted.append([index for index, _ in self._list_unused_values(position, (), state.unused)])
        remaining = self.case.low - max(state.position, self.size)
        if remaining > 0 and not self.kinds(self.size, ()):
            values = [index for index, _ in self._list_unused_values(self.size, (), state.unused)]
            if remaining > len(values):
                return False
            accepted += [values] * remaining
        return has_matching(accepted)

    def _unsupported_error(self, cause: str) -> UnsupportedError:
        field = "contains" if self.case.contains else "uniqueItems"
        cure = "Use smaller bounds, or fewer `contains` on one array."
        return UnsupportedError(cause, pointer=find_pointer(field, self.algebra), hint=cure)


def find_pointer(field: str, algebra: SchemaAlgebra) -> str:
    """Return the JSON pointer of the keyword to name in an error.

    It is the keyword that is being computed, or the nearest one below that pointer.
    """
    pointer = algebra.unsupported("", field).pointer or ""
    candidates = [
        f"{node.pointer}/{field}" for node in algebra.nodes
        if node is not None and node.pointer is not None and field in node.keywords and node.pointer.startswith(pointer)
    ]  # fmt: skip
    return pointer if pointer.endswith(f"/{field}") else min(candidates, key=len, default=pointer)


def has_matching(accepted: list[list[int]]) -> bool:
    """Return whether all positions can have different values: a bipartite matching by augmenting paths.

    accepted: for each position the values that it accepts. Source: H. W. Kuhn, The Hungarian method, 1955.
    """
    owner: dict[int, int] = {}
    for position in range(len(accepted)):
        reached_from: dict[int, int] = {}  # value -> the position from which the path reached it
        worklist, free = [position], None
        while worklist and free is None:
            current = worklist.pop()
            for value in accepted[current]:
                if value not in reached_from:
                    reached_from[value] = current
                    if value not in owner:
                        free = value
                        break
                    worklist.append(owner[value])
        if free is None:
            return False
        while True:
            position_to_move = reached_from[free]
            previous = next(
                (value for value, holder_position in owner.items() if holder_position == position_to_move), None
            )
            owner[free] = position_to_move
            if previous is None:
                break
            free = previous
    return True


# ---- writing ---------------------------------------------------------------------------------------------------


class CountedItems(NamedTuple):
    """The name of a rule: one item or more after a state of a case, at a depth."""

    case: ArrayCase
    state: ItemState
    depth: int


def emit_counted_items(case: ArrayCase, emitter: ValueEmitter, depth: int) -> Node | None:
    """Return the node of one item or more of an array; None if there can be none.

    `contains`, `minContains` and `maxContains` take effect in the states of its `ItemAutomaton`.
    """
    plan = emitter.plan(case)
    return Rule(CountedItems(case, plan.start, depth)) if any(True for _ in plan.steps(plan.start)) else None


def emit_next_item(name: CountedItems, emitter: ValueEmitter) -> Node:
    """Return the node of a rule of this module: an item, and what may come after it."""
    plan = emitter.plan(name.case)
    groups: dict[ItemState, list[Node]] = {}
    for schemas, guarded, after in plan.steps(name.state):
        value = emitter.value(schemas, name.depth)
        groups.setdefault(after, []).append(Member(value) if guarded else value)
    return choice_of(
        [
            _concatenate(choice_of(values), _emit_following_items(plan, after, name, emitter))
            for after, values in groups.items()
        ]
    )


def _emit_following_items(plan: ItemAutomaton, state: ItemState, name: CountedItems, emitter: ValueEmitter) -> Node:
    """Return the node of the remaining items, or the empty one where the array may end."""
    comma = spacing_at(emitter.style, name.depth - 1).comma
    kinds = plan.uniform_kinds(state)
    if kinds is not None:
        low, high = max(0, name.case.low - state.position), name.case.high
        high = None if high is None else high - state.position
        if not kinds or high == 0:
            return EMPTY
        value = choice_of([emitter.value(kind.schemas, name.depth) for kind in kinds])
        return Repeat(_concatenate(comma, value), low, high)
    if not any(True for _ in plan.steps(state)):
        return EMPTY
    tail = _concatenate(comma, Rule(CountedItems(name.case, state, name.depth)))
    return Choice((EMPTY, tail)) if plan.may_end(state) else tail


def _concatenate(one: Node, other: Node) -> Node:
    return one if other is EMPTY else other if one is EMPTY else Sequence((one, other))
