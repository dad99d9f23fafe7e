"""Count the values of a set, and enumerate a small set; both are needed for `uniqueItems`.

Values are compared as JSON Schema compares them: numbers by value, texts decoded, objects without the order of keys. A
set that can hold a value of itself is infinite, since it holds a larger value for each one that it holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, NamedTuple

from ....automata.dfa import Dfa
from ....base.work import spend_work
from ..core.json_values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Constant
from ..core.schema_sets import SchemaSet
from ..numbers import number_sets
from ..numbers.number_sets import NumberCase
from ..objects import object_members
from ..shapes.array_case import ArrayCase, ContainsConstraint
from ..shapes.object_case import ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.shape import FALSE_BIT, NULL_BIT, TRUE_BIT
from ..strings import string_sets
from ..strings.nested_regex_format import NestedTexts
from ..strings.string_languages import ALL
from ..strings.string_sets import StringCase
from .array_cases import compute_max_items
from .item_counts import ItemAutomaton

__all__ = ["MOST_VALUES", "ValueCount", "list_values", "count_values"]

MOST_VALUES = 500
"""Most values of a set that is enumerated: an array of such items has a rule for each reached set of unused values."""

MOST_CANDIDATES = 2_000
"""Most arrays or objects that are generated to find those of an enumerated set."""

CANDIDATE = 30
"""Units of work for one of them."""

MOST_LENGTH = 32
"""Greatest length of texts that are counted exactly beside a pattern."""

MOST_SEARCHED_STATES = 64
"""States of an automaton that are searched for a cycle or for a sufficiently large set of values."""


class ValueCount(NamedTuple):
    """At least `least` values, and at most `most` (None: no bound is known)."""

    least: int
    most: int | None


def count_values(schemas: SchemaSet, cap: int, algebra: SchemaAlgebra) -> ValueCount:
    """Return how many values a set has. `least` is at most `cap`, which also represents an infinite set."""
    return _ValueCounter(algebra, cap).count_set(schemas)


class _ValueCounter:
    """Counts the values of sets that may refer to each other."""

    def __init__(self, algebra: SchemaAlgebra, cap: int) -> None:
        self.algebra = algebra
        self.cap = cap
        self.assumed_infinite = cap  # the count of a set that recurs within itself
        self.in_progress: set[SchemaSet] = set()
        self.known: dict[SchemaSet, ValueCount] = {}

    def count_set(self, schemas: SchemaSet) -> ValueCount:
        """Return the count of a set.

        A set that recurs within itself is infinite: each of its values is a proper part of a larger one.
        """
        if schemas in self.in_progress:
            return ValueCount(self.assumed_infinite, None)
        known = self.known.get(schemas)
        if known is None:
            if not self.algebra.is_satisfiable(schemas):
                return ValueCount(0, 0)
            self.in_progress.add(schemas)
            known = self.known[schemas] = self._count_shape(schemas)
            self.in_progress.discard(schemas)
        return known

    def _count_shape(self, schemas: SchemaSet) -> ValueCount:
        cap, shape = self.cap, self.algebra.unfold(schemas)
        total = ValueCount(shape.scalars.bit_count(), shape.scalars.bit_count())
        total = add_counts(total, self._count_numbers(shape.numbers), cap)
        if total.least < cap:
            total = add_counts(total, self._count_texts(shape.strings), cap)
        if total.least < cap:
            found = [ValueCount(len(one.values), len(one.values)) for one in shape.enums if one.kind == ARRAY]
            total = add_counts(total, unite_counts([*map(self._count_arrays, shape.arrays), *found]), cap)
        if total.least < cap:
            found = [ValueCount(len(one.values), len(one.values)) for one in shape.enums if one.kind == OBJECT]
            total = add_counts(total, unite_counts([*map(self._count_objects, shape.objects), *found]), cap)
        return total if total.least < cap else ValueCount(cap, None)

    def _count_numbers(self, cases: tuple[NumberCase, ...]) -> ValueCount:
        listed = [list_numbers(case, MOST_CANDIDATES) for case in cases]
        if None not in listed:
            count = len({value for values in listed for value in values or ()})
            return ValueCount(min(count, self.cap), count)
        return unite_counts(map(self._count_interval, cases))

    def _count_interval(self, case: NumberCase) -> ValueCount:
        style = self.algebra.style
        if not number_sets.is_number_satisfiable(case, style, self.algebra.limits):
            return ValueCount(0, 0)
        if case.values is not None:
            return ValueCount(len(case.values), len(case.values))
        if case.multiple is None or case.low is None or case.high is None:
            return ValueCount(self.cap if style.digits is None else min(self.cap, 10 ** min(style.digits, 10)), None)
        first, last = find_multiple_range(case)
        return ValueCount(1 if case.not_multiples else min(last - first + 1, self.cap), last - first + 1)

    def _count_texts(self, cases: tuple[StringCase, ...]) -> ValueCount:
        """Count the texts of all cases together; of long ones beside a pattern only the shorter ones."""
        if not cases:
            return ValueCount(0, 0)
        known = self.algebra.languages.text_counts
        key = (cases, self.cap)
        if key not in known:
            known[key] = self._count_new_texts(cases)
        count: ValueCount = known[key]
        return count

    def _count_new_texts(self, cases: tuple[StringCase, ...]) -> ValueCount:
        if all(case.values is not None for case in cases):
            listed = len({text for case in cases for text in case.values or ()})
            return ValueCount(min(listed, self.cap), listed if listed < self.cap else None)
        parts, exact = [], True
        for case in cases:
            if case.values is None and case.lang == ALL and case.high not in (0, 1):
                return ValueCount(self.cap, None)
            nested = self.algebra.languages.nested(case.lang, case.low, case.high) if case.values is None else None
            if isinstance(nested, NestedTexts):
                return ValueCount(self.cap if nested.is_endless() else 0, None)
            dfa, low, high = string_sets.string_dfa(case, self.algebra.languages)
            exact = exact and (high is None or high <= MOST_LENGTH)
            if low or high is not None:
                top = None if high is None else min(high, max(low, MOST_LENGTH))
                dfa = dfa.with_length(low, top, max_states=self.algebra.limits.dfa_states)
            parts.append(dfa)
        count = Dfa.union_of(parts, max_states=self.algebra.limits.dfa_states).count(self.cap)
        return ValueCount(count, count if exact and count < self.cap else None)

    def _count_arrays(self, case: ArrayCase) -> ValueCount:
        algebra, cap = self.algebra, self.cap
        most = compute_max_items(case, algebra)
        if most is not None and case.low > most:
            return ValueCount(0, 0)
        if most == 0:
            return (
                ValueCount(0, 0)
                if any(constraint.low for constraint in case.contains) or case.has_duplicates
                else ValueCount(1, 1)
            )
        if case.has_duplicates:  # An array without a bound can always be longer.
            return ValueCount(cap if most is None and not case.contains and not case.unique else 0, None)
        if case.unique:
            return self._count_distinct_items(case)
        if case.contains:
            return ValueCount(
                max((self._count_with_automaton(plan) for plan in algebra.item_automata(case)), default=0), None
            )
        if most is None or most - case.low >= cap:
            return ValueCount(cap, None)
        total, sequences = ValueCount(0, 0), ValueCount(1, 1)
        for length in range(most + 1):
            if length:
                sequences = multiply_counts(sequences, self.count_set(case.at(length - 1)), cap)
            if length >= case.low:
                total = add_counts(total, sequences, cap)
            if min(sequences.least, total.least) >= cap or total.least >= cap:
                return ValueCount(cap, None)
            if length >= len(case.prefix) and sequences == multiply_counts(sequences, self.count_set(case.items), cap):
                more_lengths = most - max(length, case.low - 1)  # One value again and again: a length for each array.
                return add_counts(
                    total, multiply_counts(sequences, ValueCount(min(cap, more_lengths), more_lengths), cap), cap
                )
        return total

    def _count_distinct_items(self, case: ArrayCase) -> ValueCount:
        """Count arrays of different items: at least one for each first item, if the other sets are infinite."""
        if case.contains or (case.low > 1 and not self._are_all_infinite({case.at(k) for k in range(case.low)})):
            return ValueCount(0, None)
        return ValueCount(max(self.count_set(case.at(0)).least, int(case.low == 0)), None)

    def _are_all_infinite(self, sets: set[SchemaSet]) -> bool:
        """Return whether all sets are infinite without assuming that those being counted are."""
        assumed_infinite, self.assumed_infinite = self.assumed_infinite, 0
        try:
            return all(self.count_set(schemas).least >= self.cap for schemas in sets)
        finally:
            self.assumed_infinite = assumed_infinite

    def _count_with_automaton(self, plan: ItemAutomaton) -> int:
        """Return a lower bound for an automaton: one array for each value of an item, and infinitely many if it has a
        cycle.
        """
        least, visited, worklist = int(plan.can_finish(plan.start)), {plan.start}, [plan.start]
        while worklist and len(visited) < MOST_SEARCHED_STATES:
            state = worklist.pop()
            for schemas, _, after in plan.steps(state):
                if least >= self.cap or after == state:
                    return self.cap
                least = max(least, self.count_set(schemas).least)
                if after not in visited:
                    visited.add(after)
                    worklist.append(after)
        return least

    def _count_objects(self, case: ObjectCase) -> ValueCount:
        algebra, cap = self.algebra, self.cap
        if not object_members.is_object_satisfiable(case, algebra):
            return ValueCount(0, 0)
        if case != ObjectCase(case.names, case.required, case.mentioned, case.cells, case.low, case.high):
            return ValueCount(1, None)
        if case.high is not None and case.high < len(case.names):
            return ValueCount(1, None)
        for lang, schemas in case.cells:
            has_slot = case.high is None or case.high > len(case.names)
            if has_slot and algebra.is_satisfiable(schemas):
                if algebra.languages.dfa(lang).count(cap + len(case.names)) >= cap + len(case.names):
                    return ValueCount(cap, None)
                return ValueCount(1, None)
        if case.low > len(case.required):
            return ValueCount(1, None)
        total = ValueCount(1, 1)
        for name, schemas in case.names:
            count = self.count_set(schemas)
            total = multiply_counts(
                total, count if name in case.required else add_counts(count, ValueCount(1, 1), cap), cap
            )
        return total


def unite_counts(sizes: Iterable[ValueCount]) -> ValueCount:
    """Return the count of a union of sets that may overlap."""
    counts = list(sizes)
    most = None if any(one.most is None for one in counts) else sum(one.most or 0 for one in counts)
    return ValueCount(max((one.least for one in counts), default=0), most)


def add_counts(one: ValueCount, other: ValueCount, cap: int) -> ValueCount:
    """Return the count of a union of disjoint sets."""
    most = None if one.most is None or other.most is None else one.most + other.most
    return ValueCount(min(cap, one.least + other.least), most)


def multiply_counts(one: ValueCount, other: ValueCount, cap: int) -> ValueCount:
    """Return the count of a product of sets. An upper bound beyond the cap becomes None."""
    most = None if one.most is None or other.most is None else one.most * other.most
    return ValueCount(min(cap, one.least * other.least), None if most is not None and most > cap else most)


def find_multiple_range(case: NumberCase) -> tuple[int, int]:
    """Return the first and the last k with k * multiple between the bounds of a case."""
    assert case.multiple is not None and case.low is not None and case.high is not None
    first, last = -(-case.low // case.multiple), case.high // case.multiple
    first += case.low_open and first * case.multiple == case.low
    last -= case.high_open and last * case.multiple == case.high
    return int(first), int(last)


def list_numbers(case: NumberCase, most: int) -> list[Any] | None:
    """Return the values of a case if they are no more than `most`, else None."""
    if case.values is not None:
        return [value for value in case.values if case.spelling != "integer" or value.denominator == 1]
    if case.low is None or case.high is None:
        return None
    if case.multiple is None:
        single = case.low == case.high and number_sets.contains_number(case, case.low)
        return [case.low] if single else [] if case.low >= case.high else None
    first, last = find_multiple_range(case)
    if last - first >= most:
        return None
    values = (step * case.multiple for step in range(first, last + 1))
    return [value for value in values if number_sets.contains_number(case, value)]


# ---- enumeration -----------------------------------------------------------------------------------------------


def list_values(schemas: SchemaSet, algebra: SchemaAlgebra) -> tuple[Constant, ...] | None:
    """Return the values of a set if there are at most MOST_VALUES, else None."""
    return _ValueLister(algebra).list_set(schemas)


class _ValueLister:
    """Enumerates sets that may hold values of themselves: a least fixpoint, computed from the empty set on."""

    def __init__(self, algebra: SchemaAlgebra) -> None:
        self.algebra = algebra
        self.provisional: dict[SchemaSet, tuple[Constant, ...]] = {}
        self.recurred_sets: set[SchemaSet] = set()

    def list_set(self, schemas: SchemaSet) -> tuple[Constant, ...] | None:
        """Return the values of a set; of one that is being enumerated, those that are known so far."""
        if schemas in self.provisional:
            self.recurred_sets.add(schemas)
            return self.provisional[schemas]
        if not self.algebra.is_satisfiable(schemas):
            return ()
        self.provisional[schemas] = ()
        try:
            while True:
                self.recurred_sets.discard(schemas)
                found = self._list_shape(schemas)
                if found is None or schemas not in self.recurred_sets or len(found) == len(self.provisional[schemas]):
                    return found
                self.provisional[schemas] = found
        finally:
            del self.provisional[schemas]

    def _list_shape(self, schemas: SchemaSet) -> tuple[Constant, ...] | None:
        shape = self.algebra.unfold(schemas)
        if shape.enums:  # EnumValues hold more values than are enumerated here.
            return None
        out: dict[Constant, None] = {}
        for bit, word in ((NULL_BIT, (NULL,)), (FALSE_BIT, (BOOLEAN, False)), (TRUE_BIT, (BOOLEAN, True))):
            if shape.scalars & bit:
                out[word] = None
        for number in shape.numbers:
            numbers = list_numbers(number, MOST_VALUES)
            if numbers is None:
                return None
            out.update(((NUMBER, value), None) for value in numbers)
        for text in shape.strings:
            words = _list_texts(text, self.algebra)
            if words is None:
                return None
            out.update(((STRING, word), None) for word in words)
        for array in shape.arrays:
            lists = self._list_arrays(array)
            if lists is None:
                return None
            out.update(dict.fromkeys(lists))
        for case in shape.objects:
            maps = self._list_objects(case, schemas)
            if maps is None:
                return None
            out.update(dict.fromkeys(maps))
        return tuple(out) if len(out) <= MOST_VALUES else None

    def _list_arrays(self, case: ArrayCase) -> list[Constant] | None:
        most = compute_max_items(case, self.algebra)
        if most is None and case.unique:
            items_values = self.list_set(case.items)
            most = None if items_values is None else len(case.prefix) + len(items_values)
        if most is None or (most > MOST_CANDIDATES and case.low <= most):
            return None
        if case.low > most:
            return []
        sets: dict[SchemaSet, tuple[Constant, ...]] = {}
        for schemas in {case.at(position): None for position in range(most)}:
            found = self.list_set(schemas)
            if found is None:
                return None
            sets[schemas] = found
        out: list[Constant] = []
        candidates = 0
        for length in range(case.low, most + 1):
            before = candidates
            for values in product(*(sets[case.at(position)] for position in range(length))):
                candidates += 1
                if candidates > MOST_CANDIDATES:
                    break
                distinct = len(set(values)) == length
                if (case.unique and not distinct) or (case.has_duplicates and distinct):
                    continue
                if all(self._satisfies(values, constraint) for constraint in case.contains):
                    out.append((ARRAY, values))
            spend_work(CANDIDATE * (candidates - before), "values that are listed")
            if candidates > MOST_CANDIDATES:
                return None
        return out

    def _satisfies(self, values: tuple[Constant, ...], constraint: ContainsConstraint) -> bool:
        count = sum(self._is_in(value, constraint.schemas) for value in values[constraint.start :])
        return constraint.low <= count and (constraint.high is None or count <= constraint.high)

    def _list_objects(self, case: ObjectCase, schemas: SchemaSet) -> list[Constant] | None:
        if not object_members.is_object_satisfiable(case, self.algebra):
            return []
        has_slot = case.high is None or case.high > len(case.required)
        if has_slot and any(self.algebra.is_satisfiable(inside) for _, inside in case.cells):
            return None
        choices: list[tuple[Any, ...]] = []
        candidates = 1
        for name, inside in case.names:
            listed = self.list_set(inside)
            if listed is None:
                return None
            choices.append(tuple((name, value) for value in listed) + (() if name in case.required else (None,)))
            candidates *= len(choices[-1])
            if candidates > MOST_CANDIDATES:
                return None
        plain = case == ObjectCase(case.names, case.required, case.mentioned, case.cells)
        values = ((OBJECT, tuple(sorted(pair for pair in chosen if pair))) for chosen in product(*choices))
        return [value for value in values if plain or self._is_in(value, schemas)]

    def _is_in(self, value: Constant, schemas: SchemaSet) -> bool:
        return self.algebra.is_satisfiable(self.algebra.intersect(self.algebra.table.add_constant(value), schemas))


def _list_texts(case: StringCase, algebra: SchemaAlgebra) -> tuple[str, ...] | None:
    if case.values is not None:
        return case.values
    if case.lang == ALL and case.high != 0:
        return None
    if isinstance(algebra.languages.nested(case.lang, case.low, case.high), NestedTexts):
        return None
    dfa, low, high = string_sets.string_dfa(case, algebra.languages)
    longest = dfa.lengths()[1]
    if high is not None and (longest is None or longest > high):
        if high > MOST_LENGTH:
            return None
        longest = high
    if longest is None:
        return None
    if low or high is not None:
        dfa = dfa.with_length(low, high, max_states=algebra.limits.dfa_states)
    texts = dfa.list_texts(MOST_VALUES)
    return None if texts is None else tuple(texts)
