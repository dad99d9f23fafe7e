"""AND, OR and NOT of Shapes, which act on each JSON type by itself.

Three measures limit the size of products of unions: cases that another one contains are dropped (absorption), objects
are split by discriminators (`discriminators`), and a product that is still large becomes one case with clauses
(`ObjectCase.clauses`), which is a conjunctive normal form that is not multiplied out.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ....base.errors import LimitError
from ....base.work import spend_work
from ..arrays import array_cases
from ..core.json_values import ARRAY, OBJECT, Constant
from ..core.schema_sets import NEVER
from ..core.subschema_table import SubschemaTable
from ..numbers import number_sets
from ..objects import object_cases, object_derivatives
from ..shapes.array_case import ArrayCase
from ..shapes.enum_values import EnumValues
from ..shapes.object_case import NO_NAMES, ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.shape import (
    ALL_ARRAYS,
    ALL_NUMBERS,
    ALL_OBJECTS,
    ALL_STRINGS,
    EVERYTHING,
    NOTHING,
    SCALARS,
    Case,
    Shape,
)
from ..strings import string_sets
from ..strings.string_sets import StringCase
from .discriminators import split_by_discriminator

__all__ = [
    "build_exact_array",
    "unite_shapes",
    "unite_overlapping_shapes",
    "intersect_shapes",
    "complement_shape",
    "build_exact_object",
    "expand_enums",
]

MANY = 8
"""Number of cases of a product beyond which redundant ones are searched for."""

MOST_OBJECTS = 32
"""Cases of a product of objects beyond which it is represented by clauses (`ObjectCase.clauses`)."""

MOST_SPLITS = 2
"""Discriminators by which a product is split, one after the other."""


def count_widest_part(shape: Shape) -> int:
    """Return the most cases that a part has: what a product with the Shape costs."""
    return max(len(shape.numbers), len(shape.strings), len(shape.arrays), len(shape.objects))


def intersect_shapes(*shapes: Shape, algebra: SchemaAlgebra) -> Shape:
    """Return the intersection of Shapes."""
    if any(shape is NOTHING for shape in shapes):
        return NOTHING
    constraining = [shape for shape in shapes if shape is not EVERYTHING]
    if len(constraining) < 2:
        return constraining[0] if constraining else EVERYTHING
    enums: tuple[EnumValues, ...] = ()
    if any(shape.enums for shape in constraining):
        enums, constraining = _intersect_enums(constraining, algebra.table)
    scalars = SCALARS
    for shape in constraining:
        scalars &= shape.scalars
    return Shape(
        scalars,
        _intersect_all_unions(
            [shape.numbers for shape in constraining], ALL_NUMBERS, number_sets.intersect_numbers, algebra
        ),
        _intersect_texts([shape.strings for shape in constraining], algebra),
        _intersect_all_unions(
            [shape.arrays for shape in constraining],
            ALL_ARRAYS,
            lambda a, b: array_cases.intersect_arrays(a, b, algebra),
            algebra,
        ),
        _intersect_object_unions([shape.objects for shape in constraining], NO_NAMES, algebra),
        enums,
    )


def expand_enums(shape: Shape, table: SubschemaTable) -> Shape:
    """Return the same Shape with each array or object of an enum as a case."""
    if not shape.enums:
        return shape
    arrays, objects = list(shape.arrays), list(shape.objects)
    for values in (enum.values for enum in shape.enums):
        arrays += [build_exact_array(value, table) for value in values if value[0] == ARRAY]
        objects += [build_exact_object(value, table) for value in values if value[0] == OBJECT]
    return shape._replace(arrays=tuple(dict.fromkeys(arrays)), objects=tuple(dict.fromkeys(objects)), enums=())


def _intersect_enums(shapes: list[Shape], table: SubschemaTable) -> tuple[tuple[EnumValues, ...], list[Shape]]:
    """Return the enums that no other Shape constrains, and the Shapes with all other enums expanded to cases."""
    with_enums = [shape for shape in shapes if shape.enums]
    untouched: list[EnumValues] = []
    if len(with_enums) == 1:
        expanded: list[EnumValues] = []
        others = [shape for shape in shapes if not shape.enums]
        for enum in with_enums[0].enums:
            parts = [shape.arrays if enum.kind == ARRAY else shape.objects for shape in others]
            if all(part is ALL_ARRAYS or part is ALL_OBJECTS for part in parts):
                untouched.append(enum)
            elif () not in parts:
                expanded.append(enum)
        return tuple(untouched), [expand_enums(with_enums[0]._replace(enums=tuple(expanded)), table), *others]
    return (), [expand_enums(shape, table) for shape in shapes]


def build_exact_array(value: Constant, table: SubschemaTable) -> ArrayCase:
    """Return the case of exactly one array."""
    items = tuple(map(table.add_constant, value[1]))
    return ArrayCase(items, NEVER, len(items), len(items))


def build_exact_object(value: Constant, table: SubschemaTable) -> ObjectCase:
    """Return the case of exactly one object."""
    named = tuple((name, table.add_constant(inside)) for name, inside in value[1])
    return ObjectCase(named, frozenset(name for name, _ in named), cells=())


def _intersect_all_unions(
    unions: list[tuple[Case, ...]],
    full: tuple[Case, ...],
    both: Callable[[Case, Case], Case | None],
    algebra: SchemaAlgebra,
    most: int | None = None,
) -> tuple[Case, ...]:
    out = full
    for union in unions:
        out = _intersect_unions(out, union, full, both, algebra, most)
    return out


def _intersect_texts(unions: list[tuple[StringCase, ...]], algebra: SchemaAlgebra) -> tuple[StringCase, ...]:
    """Return the product of unions of texts; where the cases would be too many their automata are united first."""
    languages = algebra.languages

    def both(one: StringCase, other: StringCase) -> StringCase | None:
        return string_sets.intersect_strings(one, other, languages)

    try:
        return _intersect_all_unions(unions, ALL_STRINGS, both, algebra)
    except LimitError:
        merged = [(string_sets.merge_strings(union, languages),) if len(union) > 1 else union for union in unions]
        return _intersect_all_unions(merged, ALL_STRINGS, both, algebra)


def _intersect_object_unions(
    unions: list[tuple[ObjectCase, ...]], used: frozenset[str], algebra: SchemaAlgebra
) -> tuple[ObjectCase, ...]:
    """Return the product of unions of objects. used: discriminators by which it has been split.

    It is multiplied out if it has few cases; otherwise it is one case with clauses.
    """
    if () in unions:
        return ()
    case: ObjectCase | None = None
    if prod(map(len, unions)) > 4 * MANY:
        case = object_cases.factor_unions(unions, algebra)
        if case is None:
            return ()
        unions = object_cases.drop_excluded_cases(unions, case, algebra)
    split = (
        split_by_discriminator(unions, used, algebra)
        if prod(map(len, unions)) > 4 * MANY and len(used) < MOST_SPLITS
        else None
    )
    if split is None:
        return _multiply_objects(unions, case, algebra)
    name, pieces = split
    out: dict[ObjectCase, None] = {}
    for piece in pieces:
        out.update(dict.fromkeys(_intersect_object_unions(piece, used | {name}, algebra)))
        _check_cases(len(out), 4 * algebra.limits.cases, algebra)
    return tuple(out)


def _multiply_objects(
    unions: list[tuple[ObjectCase, ...]], case: ObjectCase | None, algebra: SchemaAlgebra
) -> tuple[ObjectCase, ...]:
    """Return the product multiplied out, or an equal case with clauses if there are many cases."""
    if algebra.style.key_order not in object_derivatives.KEY_ORDERS:
        return _intersect_all_unions(
            unions, ALL_OBJECTS, lambda a, b: object_cases.intersect_objects(a, b, algebra), algebra
        )
    if case is not None and prod(map(len, unions)) > MOST_OBJECTS**2:
        return (case,)
    try:
        return _intersect_all_unions(
            unions, ALL_OBJECTS, lambda a, b: object_cases.intersect_objects(a, b, algebra), algebra, MOST_OBJECTS
        )
    except _TooManyCases:
        case = object_cases.factor_unions(unions, algebra) if case is None else case
        return () if case is None else (case,)


def _intersect_unions(
    one: tuple[Case, ...],
    other: tuple[Case, ...],
    full: tuple[Case, ...],
    both: Callable[[Case, Case], Case | None],
    algebra: SchemaAlgebra,
    limit: int | None = None,
) -> tuple[Case, ...]:
    """Return the product of two unions. limit: cases beyond which to raise _TooMany; None: those of the Limits, and
    LimitError.
    """
    if not one or other is full:
        return one
    if not other or one is full:
        return other
    out: dict[Case, None] = {}
    most = max(algebra.limits.cases if limit is None else limit, len(one), len(other))
    enough = min(len(one), len(other)) + MANY
    for left in one:
        spend_work(20 * len(other), "a product of alternatives")
        for right in other:
            case = both(left, right)
            if case is not None:
                out[case] = None
        if len(out) > enough or len(out) > most:
            before = len(out)
            out = _drop_redundant(out, algebra)
            enough = (2 if len(out) < before else 8) * len(out) + MANY
        if limit is not None and len(out) > most:
            raise _TooManyCases
        _check_cases(len(out), most, algebra)
    return full if full[0] in out else tuple(out)


class _TooManyCases(Exception):
    """A product of objects has too many cases to multiply them out."""


def _check_cases(count: int, most: int, algebra: SchemaAlgebra) -> None:
    if count > most:
        raise LimitError(
            f"This combination of alternatives has more than {algebra.limits.cases} cases.",
            pointer=algebra.unsupported("", "").pointer,
            hint="Raise Limits.cases, or write fewer alternatives side by side.",
        )


def _drop_redundant(cases: dict[Case, None], algebra: SchemaAlgebra) -> dict[Case, None]:
    """Return the same union without cases that another one contains, and, of many, without empty ones."""
    remaining: list[Any] = []
    if all(isinstance(case, ObjectCase) for case in cases):
        remaining = object_cases.drop_subsumed(cases)  # type: ignore[arg-type]
    elif all(isinstance(case, ArrayCase) for case in cases):
        for case in cases:
            spend_work(len(remaining) + 1, "a comparison of alternatives")
            if not any(array_cases.is_array_subset(case, other) for other in remaining):  # type: ignore[arg-type]
                remaining = [other for other in remaining if not array_cases.is_array_subset(other, case)]  # type: ignore[arg-type]
                remaining.append(case)
    else:
        return cases
    if len(remaining) > 4 * MANY:
        remaining = [case for case in remaining if algebra.is_case_possible(case)]
    return dict.fromkeys(remaining)


def unite_overlapping_shapes(shapes: list[Shape], algebra: SchemaAlgebra) -> Shape:
    """Return the union of Shapes that share cases. Raise LimitError if it is too large: it may double at each level."""
    widest = max(map(count_widest_part, shapes), default=0)
    union = unite_shapes(shapes or [NOTHING])
    most = max(widest, 4 * algebra.limits.cases)
    if len(union.objects) > most:
        union = union._replace(objects=tuple(_drop_redundant(dict.fromkeys(union.objects), algebra)))
    _check_cases(count_widest_part(union), most, algebra)
    return union


def unite_shapes(shapes: list[Shape]) -> Shape:
    """Return the union of Shapes."""
    if len(shapes) == 1:
        return shapes[0]
    scalars = 0
    for shape in shapes:
        scalars |= shape.scalars
    return Shape(
        scalars,
        _unite_cases([shape.numbers for shape in shapes], ALL_NUMBERS),
        _unite_cases([shape.strings for shape in shapes], ALL_STRINGS),
        _unite_cases([shape.arrays for shape in shapes], ALL_ARRAYS),
        _unite_cases([shape.objects for shape in shapes], ALL_OBJECTS),
        tuple(dict.fromkeys(enum for shape in shapes for enum in shape.enums)),
    )


def _unite_cases(parts: list[tuple[Case, ...]], full: tuple[Case, ...]) -> tuple[Case, ...]:
    out: dict[Case, None] = {}
    for part in parts:
        if part is full:
            return full
        out.update(dict.fromkeys(part))
    return full if full[0] in out else tuple(out)


def complement_shape(shape: Shape, algebra: SchemaAlgebra) -> Shape:
    """Return all other values: by De Morgan, the product of the complements of all cases."""
    shape = expand_enums(shape, algebra.table)
    return Shape(
        SCALARS & ~shape.scalars,
        _complement_cases(
            shape.numbers, ALL_NUMBERS, number_sets.complement_numbers, number_sets.intersect_numbers, algebra
        ),
        _intersect_texts(
            [tuple(dict.fromkeys(string_sets.complement_strings(case))) for case in shape.strings], algebra
        )
        if shape.strings is not ALL_STRINGS else (),
        _complement_cases(
            shape.arrays, ALL_ARRAYS, lambda case: array_cases.complement_array(case, algebra),
            lambda a, b: array_cases.intersect_arrays(a, b, algebra), algebra,
        ),
        _intersect_object_unions(
            [tuple(dict.fromkeys(object_cases.complement_object(case, algebra))) for case in shape.objects],
            NO_NAMES, algebra,
        )
        if shape.objects is not ALL_OBJECTS else (),
    )  # fmt: skip


def _complement_cases(
    part: tuple[Case, ...],
    full: tuple[Case, ...],
    complement: Callable[[Case], list[Case]],
    both: Callable[[Case, Case], Case | None],
    algebra: SchemaAlgebra,
) -> tuple[Case, ...]:
    if part is full:
        return ()
    out = full
    for case in part:
        violations = tuple(dict.fromkeys(complement(case)))
        out = _intersect_unions(out, full if full[0] in violations else violations, full, both, algebra)
    return out
