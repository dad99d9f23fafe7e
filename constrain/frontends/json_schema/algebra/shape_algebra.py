"""Computation of Shapes from sets of subschemas, and satisfiability of these sets.

A subschema is a formula over sets and one Shape of its own keywords (`formulas`). `unfold` computes the Shape of a set
with a memo; NOT is pushed down to the leaves of the formula (De Morgan), so that only unions multiply.

JSON values are finite trees, so satisfiability is a least fixpoint: a set that recurs while it is being decided counts
as empty there, and an "empty" that depended on such an assumption is not cached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ....automata.dfa import Dfa
from ....base.errors import LimitError, SchemaError, UnsupportedError
from ....base.options import Limits, Style
from ....base.weak_calls import call_weakly
from ....base.work import spend_work
from ..arrays import array_items
from ..arrays.item_counts import ItemAutomaton
from ..core.fresh_stack import continue_deeper
from ..core.json_values import OBJECT, STRING, Constant
from ..core.schema_sets import ANY, NEVER, SchemaSet, intersect_sets
from ..core.static_types import TYPES, StaticBound, are_disjoint, compute_bound
from ..core.subschema_table import Subschema, SubschemaTable
from ..numbers import number_sets
from ..numbers.number_sets import NumberCase
from ..objects import object_members
from ..objects.normalised_object import NormalisedObject, build_plain_object, normalise_plain_object
from ..objects.object_derivatives import ClausalObject
from ..shapes.array_case import ArrayCase
from ..shapes.enum_values import EnumValues
from ..shapes.object_case import ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.shape import ALL_NUMBERS, ALL_STRINGS, EVERYTHING, NOTHING, Shape
from ..strings import string_sets
from ..strings.schema_patterns import relocate_error
from ..strings.string_languages import Language, LanguageCache
from ..strings.string_sets import StringCase
from .fast_checks import fast_satisfiable, is_fully_satisfiable
from .formulas import Conjunction, Disjunction, ExactlyOneOf, Formula, OwnShape, build_formula
from .one_of import find_one_of, unfold_not_one_of, unfold_one_of
from .shape_operations import (
    complement_shape,
    intersect_shapes,
    unite_shapes,
)
from .string_projection import StringProjection
from .value_keywords import build_value_shape

__all__ = ["ShapeAlgebra", "CircularSchema", "NonEmptyShape"]

A = TypeVar("A")
T = TypeVar("T")


class CircularSchema(Exception):
    """A subschema was unfolded while it is being computed."""

    def __init__(self, node: Subschema) -> None:
        self.node = node


class NonEmptyShape(NamedTuple):
    """A Shape without empty cases; its arrays and objects are normalised."""

    scalars: int
    numbers: tuple[NumberCase, ...]
    strings: tuple[StringCase, ...]
    arrays: tuple[ArrayCase, ...]
    objects: tuple[NormalisedObject | ClausalObject, ...]
    enums: tuple[EnumValues, ...] = ()


ANYTHING = NonEmptyShape(*EVERYTHING[:4], tuple(map(normalise_plain_object, EVERYTHING.objects)))

SATISFIABLE_PARTS = ((), ALL_NUMBERS, ALL_STRINGS)
"""Parts that need no satisfiability test."""


class ShapeAlgebra(SchemaAlgebra):
    """The memo of one schema: Shapes of sets, and which of them are empty."""

    def __init__(self, table: SubschemaTable, style: Style, limits: Limits) -> None:
        self.table = table
        self.nodes = table.nodes
        self.style = style
        self.limits = limits
        self.languages = LanguageCache(limits, call_weakly(self._find_names_dfa), call_weakly(self.unsupported))
        self._shapes: dict[SchemaSet, Shape] = {ANY: EVERYTHING, NEVER: NOTHING}
        self._satisfiable: dict[SchemaSet, bool] = {ANY: True, NEVER: False}
        self._open: dict[SchemaSet, int] = {}
        self._lowest_assumed = 0
        self._unfolding: list[int] = []
        self._unfolding_sets: frozenset[SchemaSet] = frozenset()
        self._probes = 0
        self._complements: dict[SchemaSet, SchemaSet] = {ANY: NEVER, NEVER: ANY}
        self._bounds: dict[SchemaSet, StaticBound] = {}
        self._normalised: dict[SchemaSet, NonEmptyShape] = {ANY: ANYTHING}
        self._intersections: dict[tuple[SchemaSet, SchemaSet], SchemaSet] = {}
        self._enum_sets: dict[tuple[Constant, ...], SchemaSet] = {}
        self._normalising: list[SchemaSet] = []
        self._no_strings: SchemaSet | None = None
        self._projection = StringProjection(table)
        self._level = 0

    # ---- shapes ------------------------------------------------------------------------------------------------

    def unfold(self, schemas: SchemaSet) -> Shape:
        """Return the Shape of a set. Raise CircularSchema if it is being computed already."""
        shape = self._shapes.get(schemas)
        if shape is None:
            spend_work(30 + len(schemas), "a combination of subschemas")
            self._check_progress(schemas)
            outer, self._unfolding_sets = self._unfolding_sets, self._unfolding_sets | {schemas}
            try:
                shape = self._shapes[schemas] = self._recurse(self._unfold, schemas)
            finally:
                self._unfolding_sets = outer
        return shape

    def _check_progress(self, schemas: SchemaSet) -> None:
        """Raise CircularSchema if a probe (`_probe`) asks for the Shape that the probe is to simplify.

        A probe forgets which sets are assumed to be empty, so that nothing else would end such a recursion.
        """
        if self._probes and schemas in self._unfolding_sets:
            node = self.nodes[abs(schemas[0])]
            assert node is not None
            raise CircularSchema(node)

    def _unfold(self, schemas: SchemaSet) -> Shape:
        return self._unfold_one(schemas[0]) if len(schemas) == 1 else self._unfold_set(schemas)

    def _recurse(self, function: Callable[[A], T], argument: A) -> T:
        """Call a function one level further into the recursion of Shapes."""
        self._level += 1
        try:
            return continue_deeper(self._level, function, argument)
        finally:
            self._level -= 1

    def _unfold_set(self, schemas: SchemaSet) -> Shape:
        """Return the Shape of a conjunction: `oneOf` first, because the other literals often make its branches
        disjoint.
        """
        for literal in schemas:
            one_of = find_one_of(literal, self)
            if one_of is not None:
                literal, node, given = one_of
                if literal in self._unfolding:
                    raise CircularSchema(node)
                self._unfolding.append(literal)
                try:
                    formula = build_formula(node, self)
                    assert isinstance(formula, ExactlyOneOf)
                    context = tuple(other for other in schemas if other != given)
                    if literal < 0:
                        return unfold_not_one_of(formula, context, self)
                    return unfold_one_of(ExactlyOneOf(self.intersect(context, formula.context), formula.parts), self)
                finally:
                    self._unfolding.pop()
        return intersect_shapes(*(self.unfold((literal,)) for literal in schemas), algebra=self)

    def _unfold_one(self, literal: int) -> Shape:
        node = self.nodes[abs(literal)]
        assert node is not None
        if literal in self._unfolding:
            raise CircularSchema(node)
        self._unfolding.append(literal)
        try:
            return self._evaluate(build_formula(node, self), literal > 0)
        finally:
            self._unfolding.pop()

    def _evaluate(self, formula: Formula, sign: bool) -> Shape:
        """Return the Shape of a formula, or of its complement."""
        if isinstance(formula, OwnShape):
            return formula.shape if sign else complement_shape(formula.shape, self)
        if isinstance(formula, ExactlyOneOf):
            return unfold_one_of(formula, self) if sign else unfold_not_one_of(formula, ANY, self)
        if isinstance(formula, (Conjunction, Disjunction)):
            if isinstance(formula, Conjunction) == sign:
                return self._intersect_parts(formula.parts, sign)
            return unite_shapes([self._evaluate(part, sign) for part in formula.parts] or [NOTHING])
        return self.unfold(formula if sign else self.complement(formula))

    def _intersect_parts(self, parts: tuple[Formula, ...], sign: bool) -> Shape:
        """Return the Shape of a conjunction: empty if the parts that are not circular have no value in common."""
        shapes: list[Shape] = []
        circular: CircularSchema | None = None
        for part in parts:
            try:
                shapes.append(self._evaluate(part, sign))
            except CircularSchema as signal:  # A branch that is never taken, such as `then` of `"if": false`, may loop.
                circular = signal
        shape = intersect_shapes(*shapes, algebra=self)
        if circular is None:
            return shape
        if self._is_shape_satisfiable(shape):
            raise circular
        return NOTHING

    def non_string_set(self) -> SchemaSet:
        """Return the set of all values but strings."""
        if self._no_strings is None:
            root = next(node for node in self.nodes if node is not None)
            self._no_strings = (self.table.add_derived(root, {"type": TYPES & ~STRING}).number,)
        return self._no_strings

    def is_possible(self, schemas: SchemaSet) -> bool:
        """Return whether some value is in the set, or True where that is not known yet."""
        return self._probe(self.is_satisfiable, schemas)

    def is_case_possible(self, case: ArrayCase | ObjectCase) -> bool:
        """Return whether some value is in the case, or True where that is not known yet."""
        check = self._is_object_satisfiable if isinstance(case, ObjectCase) else self._is_array_satisfiable
        return self._probe(check, case)

    def _probe(self, check: Callable[[A], bool], argument: A) -> bool:
        """Decide a question independently of all sets that are still being decided, so that callers can cache the
        answer. Where it depends on a Shape that is being computed, return True: to keep a case, or to subtract a
        disjoint set, is exact, too.
        """
        opened, self._open, lowest = self._open, {}, self._lowest_assumed
        self._probes += 1
        try:
            return check(argument)
        except CircularSchema:
            return True
        finally:
            self._probes -= 1
            self._open, self._lowest_assumed = opened, lowest

    def normalise(self, schemas: SchemaSet) -> NonEmptyShape:
        """Return the Shape of a satisfiable set without empty cases."""
        shape = self._normalised.get(schemas)
        if shape is None:
            shape = self._normalise_plain(schemas)
            if shape is not None:
                self._normalised[schemas] = shape
        if shape is None:
            unfolded = self.unfold(schemas)
            self._normalising.append(schemas)
            try:
                shape = self._normalised[schemas] = self._recurse(self._normalise_shape, unfolded)
            except LimitError as error:
                raise error if error.pointer is not None else relocate_error(error, self._pointer()) from None
            finally:
                self._normalising.pop()
        return shape

    def _normalise_plain(self, schemas: SchemaSet) -> NonEmptyShape | None:
        """Normalise a plain subschema (`fast_checks`), whose cases are in normal form already; None for any other."""
        node = self.nodes[schemas[0]] if len(schemas) == 1 and schemas[0] > 0 else None
        if node is None or not is_fully_satisfiable(node, self.nodes, self.is_satisfiable):
            return None
        keywords = node.keywords
        if keywords.get("type") == OBJECT and "enum" not in keywords and "const" not in keywords:
            return NonEmptyShape(0, (), (), (), (build_plain_object(keywords),))
        shape = build_value_shape(keywords, node.draft, self)
        normalised = tuple(map(normalise_plain_object, shape.objects))
        return NonEmptyShape(shape.scalars, shape.numbers, shape.strings, shape.arrays, normalised)

    def _normalise_shape(self, shape: Shape) -> NonEmptyShape:
        numbers, texts = shape.numbers, shape.strings
        if numbers not in SATISFIABLE_PARTS:
            for case in numbers:
                if number_sets.may_exceed_states(case, self.style):
                    number_sets.number_case_dfa(case, self.style, self.limits.dfa_states)
            numbers = tuple(filter(self._is_number_satisfiable, numbers))
        if texts not in SATISFIABLE_PARTS:
            texts = tuple(filter(self._is_string_satisfiable, texts))
        if not shape.arrays and not shape.objects:
            return NonEmptyShape(shape.scalars, numbers, texts, (), (), shape.enums)
        return NonEmptyShape(
            shape.scalars,
            numbers,
            texts,
            tuple(normalised for array in shape.arrays for normalised in array_items.normalise_array(array, self)),
            tuple(normalised for case in shape.objects for normalised in object_members.normalise_object(case, self)),
            shape.enums,
        )

    # ---- questions ---------------------------------------------------------------------------------------------

    def item_automata(self, case: ArrayCase) -> list[ItemAutomaton]:
        """Return the automata of the normalised cases of some arrays, as if their items were counted."""
        return [
            array_items.build_item_automaton(normalised, self) for normalised in array_items.normalise_array(case, self)
        ]

    def complement(self, schemas: SchemaSet) -> SchemaSet:
        """Return the complement of a set."""
        known = self._complements.get(schemas)
        if known is None:
            if len(schemas) == 1:
                known = (-schemas[0],)
            else:
                node = self.nodes[abs(schemas[0])]
                assert node is not None
                known = (-self.table.add_derived(node, {"allOf": tuple((literal,) for literal in schemas)}).number,)
            self._complements[schemas] = known
        return known

    def intersect(self, one: SchemaSet, other: SchemaSet) -> SchemaSet:
        """Return the intersection of two sets without literals that bounds show to be redundant; NEVER if they show it
        empty.
        """
        if not one or one == other:
            return other
        if not other:
            return one
        known = self._intersections.get((one, other))
        if known is None:
            known = intersect_sets(one, other)
            if self.has_static_contradiction(known):
                known = NEVER
            elif known[0] < 0 < known[-1]:
                positive = tuple(literal for literal in known if literal > 0)
                bound = self.bound_of(positive)
                # A and not M is A if A and M are disjoint.
                relevant = [m for m in known if m < 0 and not are_disjoint(bound, self.bound_of((-m,)))]
                known = (*relevant, *positive)
            self._intersections[one, other] = known
        return known

    def is_satisfiable(self, schemas: SchemaSet) -> bool:
        """Return whether some finite value is in the set."""
        known = self._satisfiable.get(schemas)
        if known is not None:
            return known
        if fast_satisfiable(schemas, self.nodes):
            self._satisfiable[schemas] = True
            return True
        if schemas in self._open:
            self._lowest_assumed = min(self._lowest_assumed, self._open[schemas])
            return False
        if self.has_static_contradiction(schemas):
            self._satisfiable[schemas] = False
            return False
        depth = len(self._open)
        outer_assumed, self._lowest_assumed = self._lowest_assumed, depth + 1
        self._open[schemas] = depth
        try:
            answer = self._recurse(self._is_unfolded_set_satisfiable, schemas)
            # An "empty" that assumes an earlier open set to be empty is provisional.
            if answer or self._lowest_assumed >= depth:
                self._satisfiable[schemas] = answer
            return answer
        finally:
            del self._open[schemas]
            self._lowest_assumed = (
                min(outer_assumed, self._lowest_assumed) if self._lowest_assumed < depth else outer_assumed
            )

    def _is_unfolded_set_satisfiable(self, schemas: SchemaSet) -> bool:
        """Return whether some case of the unfolded set has a value."""
        return self._is_shape_satisfiable(self.unfold(schemas))

    def _is_shape_satisfiable(self, shape: Shape) -> bool:
        """Return whether some case of the Shape has a value."""
        if shape.scalars or shape.enums:
            return True
        circular: CircularSchema | None = None
        for check, cases in (
            (self._is_number_satisfiable, shape.numbers), (self._is_string_satisfiable, shape.strings),
            (self._is_array_satisfiable, shape.arrays), (self._is_object_satisfiable, shape.objects),
        ):  # fmt: skip
            for case in cases:
                try:
                    if check(case):
                        return True
                except CircularSchema as signal:  # Another case may have a value.
                    circular = signal
        if circular is not None:
            raise circular
        return False

    def _is_number_satisfiable(self, case: Any) -> bool:
        return number_sets.is_number_satisfiable(case, self.style, self.limits)

    def _is_string_satisfiable(self, case: Any) -> bool:
        return string_sets.is_string_satisfiable(case, self.languages)

    def _is_array_satisfiable(self, case: Any) -> bool:
        return array_items.is_array_satisfiable(case, self)

    def _is_object_satisfiable(self, case: Any) -> bool:
        return object_members.is_object_satisfiable(case, self)

    def has_static_contradiction(self, schemas: SchemaSet) -> bool:
        """Return whether bounds show a set to be empty: types or constants that exclude each other."""
        if len(schemas) < 2:
            return schemas == NEVER
        return self.bound_of(schemas).is_never

    def bound_of(self, schemas: SchemaSet) -> StaticBound:
        """Return the upper bound of a set that is known without unfolding it."""
        known = self._bounds.get(schemas)
        if known is None:
            known = self._bounds[schemas] = compute_bound(schemas, self.nodes)
        return known

    def enum_set(self, values: tuple[Constant, ...]) -> SchemaSet:
        """Return the set of exactly these constants, one at least."""
        schemas = self.table.add_constant(values[0])
        if len(values) > 1:
            known = self._enum_sets.get(values)
            if known is None:
                node = self.nodes[schemas[0]]
                assert node is not None
                known = self._enum_sets[values] = (self.table.add_derived(node, {"enum": values}).number,)
            return known
        return schemas

    def is_enumerated(self, schemas: SchemaSet) -> bool:
        """Return whether the bound of a set is a list of values."""
        return self.bound_of(schemas).values is not None

    # ---- errors ------------------------------------------------------------------------------------------------

    def unsupported(self, cause: str, field: str) -> UnsupportedError:
        """Return the error of something that is not enforced, at the keyword `field` that is being computed."""
        return UnsupportedError(cause, pointer=self._pointer(field))

    def circular(self, signal: CircularSchema) -> SchemaError:
        """Return the error of a schema that is applied to the same value within itself (core specification, 9.4.1)."""
        return SchemaError(
            "This schema applies itself to the same value, so it has no meaning.", pointer=signal.node.pointer,
            hint="Refer to it only from subschemas for items or properties.",
        )  # fmt: skip

    def _pointer(self, field: str = "") -> str:
        """Return the pointer of the innermost subschema being computed, of one with the keyword `field` if there is
        one.
        """
        unfolding = [self.nodes[abs(literal)] for literal in reversed(self._unfolding)]
        pending = [*reversed(self._open), *reversed(self._normalising)]
        pending_nodes = [self.nodes[abs(literal)] for schemas in pending for literal in schemas]
        candidates = [node for node in unfolding + pending_nodes if node is not None and node.pointer is not None]
        for node in candidates:
            if field in node.keywords:
                return f"{node.pointer}/{field}"
        return candidates[0].pointer or "" if candidates else ""

    def irregular_names(self, schemas: SchemaSet) -> Language | None:
        """Return the formula of the texts in a set that is not a regular language; None for a regular one."""
        cases = self._find_string_cases(schemas)
        if len(cases) != 1 or not self.languages.irregular(cases[0].lang):
            return None
        _, lang, low, high = cases[0]
        if low or high is not None:
            counted = Dfa.any_text().with_length(low, high, max_states=self.limits.dfa_states)
            lang |= {(True, "dfa", counted)}
        return lang

    def _find_string_cases(self, schemas: SchemaSet) -> tuple[StringCase, ...]:
        try:
            return self.unfold(schemas).strings
        except CircularSchema:
            return self.unfold(self._projection.project(schemas)).strings

    def _find_names_dfa(self, schemas: SchemaSet) -> Dfa:
        """Return the automaton of the texts in a set, for `propertyNames`."""
        cases = self._find_string_cases(schemas)
        if cases is ALL_STRINGS:
            return Dfa.any_text()
        parts = [string_sets.exact_string_dfa(case, self.languages) for case in cases]
        return Dfa.union_of(parts, max_states=self.limits.dfa_states) if parts else Dfa.empty()
