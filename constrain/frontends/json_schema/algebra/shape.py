"""Shape: what a schema allows, as six independent parts, one per JSON type. AND, OR and NOT act part by part.

A part is a tuple of cases, meaning their union; no case is the empty part, and the one case without any condition is
the full part. Null, false and true are bits. The children of arrays and objects are literal sets, so nothing here is
recursive. Cases may overlap: a mask does not mind.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ....base.errors import LimitError, UnsupportedError
from ....base.options import Limits, Style
from ....base.work import spend
from ..arrays import array_cases
from ..arrays.array_cases import ANY_ARRAY, ArrayCase
from ..numbers import number_sets
from ..numbers.number_sets import ANY_NUMBER, NumberCase
from ..objects import object_cases, object_derivatives
from ..objects.enum_tries import Listed
from ..objects.object_cases import ANY_OBJECT, NO_NAMES, ObjectCase
from ..reading.json_values import ARRAY, OBJECT, Constant
from ..reading.static_types import Static
from ..strings import string_sets
from ..strings.string_languages import Lang, Languages
from ..strings.string_sets import ANY_STRING, StringCase
from .discriminators import split
from .schema_sets import NEVER, Lits

if TYPE_CHECKING:
    from ..reading.schema_parser import Reader

__all__ = [
    "EVERYTHING", "FALSE_BIT", "NOTHING", "NULL_BIT", "SCALARS", "TRUE_BIT", "Shape",
    "array_of", "join", "join_overlapping", "meet", "negate", "object_of", "spread",
]  # fmt: skip

NULL_BIT, FALSE_BIT, TRUE_BIT = 1, 2, 4
SCALARS = NULL_BIT | FALSE_BIT | TRUE_BIT

MANY = 8
"""Cases of a product beyond which it is worth looking for idle ones."""

MOST_OBJECTS = 32
"""Cases of a product of objects beyond which it is kept as clauses (`ObjectCase.clauses`)."""

MOST_SPLITS = 2
"""Discriminators by which a product is split, one after the other."""

Case = TypeVar("Case")


class Shape(NamedTuple):
    """What a schema allows: scalars is a set of bits, the others are unions of cases.

    listed: many arrays or objects from one enum, of each one type. They stay together until they meet anything.
    """

    scalars: int
    numbers: tuple[NumberCase, ...]
    strings: tuple[StringCase, ...]
    arrays: tuple[ArrayCase, ...]
    objects: tuple[ObjectCase, ...]
    listed: tuple[Listed, ...] = ()


ALL_NUMBERS, ALL_STRINGS, ALL_ARRAYS, ALL_OBJECTS = (ANY_NUMBER,), (ANY_STRING,), (ANY_ARRAY,), (ANY_OBJECT,)
EVERYTHING = Shape(SCALARS, ALL_NUMBERS, ALL_STRINGS, ALL_ARRAYS, ALL_OBJECTS)
NOTHING = Shape(0, (), (), (), ())


class Algebra(Protocol):
    """What combining shapes asks for."""

    languages: Languages
    limits: Limits
    style: Style
    reader: Reader

    def nonempty(self, lits: Lits) -> bool: ...
    def opposite(self, lits: Lits) -> Lits: ...
    def both(self, one: Lits, other: Lits) -> Lits: ...
    def listed(self, lits: Lits) -> bool: ...
    def name_language(self, lits: Lits) -> Lang | None: ...
    def static(self, lits: Lits) -> Static: ...
    def overlap(self, lits: Lits) -> bool: ...
    def any_of(self, values: tuple[Constant, ...]) -> Lits: ...
    def possible(self, case: ArrayCase | ObjectCase) -> bool: ...
    def refuse(self, cause: str, field: str) -> UnsupportedError: ...


def breadth(shape: Shape) -> int:
    """Most cases of a part: what a product with it costs."""
    return max(len(shape.numbers), len(shape.strings), len(shape.arrays), len(shape.objects))


def meet(*shapes: Shape, algebra: Algebra) -> Shape:
    """Values of all."""
    if any(shape is NOTHING for shape in shapes):
        return NOTHING
    telling = [shape for shape in shapes if shape is not EVERYTHING]
    if len(telling) < 2:
        return telling[0] if telling else EVERYTHING
    listed: tuple[Listed, ...] = ()
    if any(shape.listed for shape in telling):
        listed, telling = _meet_listed(telling, algebra.reader)
    scalars = SCALARS
    for shape in telling:
        scalars &= shape.scalars
    return Shape(
        scalars,
        _product([shape.numbers for shape in telling], ALL_NUMBERS, number_sets.meet, algebra),
        _texts([shape.strings for shape in telling], algebra),
        _product(
            [shape.arrays for shape in telling], ALL_ARRAYS, lambda a, b: array_cases.meet(a, b, algebra), algebra
        ),
        _objects([shape.objects for shape in telling], NO_NAMES, algebra),
        listed,
    )


def spread(shape: Shape, reader: Reader) -> Shape:
    """The same with each listed array or object as a case."""
    if not shape.listed:
        return shape
    lists, maps = list(shape.arrays), list(shape.objects)
    for values in (listed.values for listed in shape.listed):
        lists += [array_of(value, reader) for value in values if value[0] == ARRAY]
        maps += [object_of(value, reader) for value in values if value[0] == OBJECT]
    return shape._replace(arrays=tuple(dict.fromkeys(lists)), objects=tuple(dict.fromkeys(maps)), listed=())


def _meet_listed(shapes: list[Shape], reader: Reader) -> tuple[tuple[Listed, ...], list[Shape]]:
    """What is listed in one shape and stays whole beside the others, and the shapes without it."""
    listing = [shape for shape in shapes if shape.listed]
    kept: list[Listed] = []
    if len(listing) == 1:
        rest: list[Listed] = []
        others = [shape for shape in shapes if not shape.listed]
        for listed in listing[0].listed:
            parts = [shape.arrays if listed.kind == ARRAY else shape.objects for shape in others]
            if all(part is ALL_ARRAYS or part is ALL_OBJECTS for part in parts):
                kept.append(listed)
            elif () not in parts:
                rest.append(listed)
        return tuple(kept), [spread(listing[0]._replace(listed=tuple(rest)), reader), *others]
    return (), [spread(shape, reader) for shape in shapes]


def array_of(value: Constant, reader: Reader) -> ArrayCase:
    """The case of exactly one array."""
    items = tuple(map(reader.constant, value[1]))
    return ArrayCase(items, NEVER, len(items), len(items))


def object_of(value: Constant, reader: Reader) -> ObjectCase:
    """The case of exactly one object."""
    named = tuple((name, reader.constant(inside)) for name, inside in value[1])
    return ObjectCase(named, frozenset(name for name, _ in named), cells=())


def _product(
    unions: list[tuple[Case, ...]],
    full: tuple[Case, ...],
    both: Callable[[Case, Case], Case | None],
    algebra: Algebra,
    most: int | None = None,
) -> tuple[Case, ...]:
    out = full
    for union in unions:
        out = _meet(out, union, full, both, algebra, most)
    return out


def _texts(unions: list[tuple[StringCase, ...]], algebra: Algebra) -> tuple[StringCase, ...]:
    """The product of unions of texts: Dfas are united where the cases would be too many."""
    languages = algebra.languages

    def both(one: StringCase, other: StringCase) -> StringCase | None:
        return string_sets.meet(one, other, languages)

    try:
        return _product(unions, ALL_STRINGS, both, algebra)
    except LimitError:
        merged = [(string_sets.merge(union, languages),) if len(union) > 1 else union for union in unions]
        return _product(merged, ALL_STRINGS, both, algebra)


def _objects(unions: list[tuple[ObjectCase, ...]], used: frozenset[str], algebra: Algebra) -> tuple[ObjectCase, ...]:
    """The product of unions of objects. used: discriminators by which it has been split.

    It is multiplied out if it has few cases, else it is one case with clauses.
    """
    if () in unions:
        return ()
    case: ObjectCase | None = None
    if prod(map(len, unions)) > 4 * MANY:
        case = object_cases.factored(unions, algebra)
        if case is None:
            return ()
        unions = object_cases.without_excluded(unions, case, algebra)
    found = split(unions, used, algebra) if prod(map(len, unions)) > 4 * MANY and len(used) < MOST_SPLITS else None
    if found is None:
        return _few_objects(unions, case, algebra)
    name, pieces = found
    out: dict[ObjectCase, None] = {}
    for piece in pieces:
        out.update(dict.fromkeys(_objects(piece, used | {name}, algebra)))
        _within(len(out), 4 * algebra.limits.cases, algebra)
    return tuple(out)


def _few_objects(
    unions: list[tuple[ObjectCase, ...]], case: ObjectCase | None, algebra: Algebra
) -> tuple[ObjectCase, ...]:
    """The product multiplied out; or a case with clauses that is the same, if there is one and the cases are many."""
    if algebra.style.key_order not in object_derivatives.KEY_ORDERS:
        return _product(unions, ALL_OBJECTS, lambda a, b: object_cases.meet(a, b, algebra), algebra)
    if case is not None and prod(map(len, unions)) > MOST_OBJECTS**2:
        return (case,)
    try:
        return _product(unions, ALL_OBJECTS, lambda a, b: object_cases.meet(a, b, algebra), algebra, MOST_OBJECTS)
    except _TooMany:
        case = object_cases.factored(unions, algebra) if case is None else case
        return () if case is None else (case,)


def _meet(
    one: tuple[Case, ...],
    other: tuple[Case, ...],
    full: tuple[Case, ...],
    both: Callable[[Case, Case], Case | None],
    algebra: Algebra,
    limit: int | None = None,
) -> tuple[Case, ...]:
    """The product of two unions. limit: cases beyond which it is _TooMany; None: an error of the caller's Limits."""
    if not one or other is full:
        return one
    if not other or one is full:
        return other
    out: dict[Case, None] = {}
    most = max(algebra.limits.cases if limit is None else limit, len(one), len(other))
    enough = min(len(one), len(other)) + MANY
    for mine in one:
        spend(20 * len(other), "a product of alternatives")
        for yours in other:
            case = both(mine, yours)
            if case is not None:
                out[case] = None
        if len(out) > enough or len(out) > most:
            before = len(out)
            out = _thin(out, algebra)
            enough = (2 if len(out) < before else 8) * len(out) + MANY
        if limit is not None and len(out) > most:
            raise _TooMany
        _within(len(out), most, algebra)
    return full if full[0] in out else tuple(out)


class _TooMany(Exception):
    """A product of objects has too many cases to multiply them out."""


def _within(count: int, most: int, algebra: Algebra) -> None:
    if count > most:
        raise LimitError(
            f"This combination of alternatives has more than {algebra.limits.cases} cases.",
            pointer=algebra.refuse("", "").pointer,
            hint="Raise Limits.cases, or write fewer alternatives side by side.",
        )


def _thin(cases: dict[Case, None], algebra: Algebra) -> dict[Case, None]:
    """The same union without cases that are plainly within another, and, of many, without empty ones."""
    kept: list[Any] = []
    if all(isinstance(case, ObjectCase) for case in cases):
        kept = object_cases.distinct(cases)  # type: ignore[arg-type]
    elif all(isinstance(case, ArrayCase) for case in cases):
        for case in cases:
            spend(len(kept) + 1, "a comparison of alternatives")
            if not any(array_cases.within(case, other) for other in kept):  # type: ignore[arg-type]
                kept = [other for other in kept if not array_cases.within(other, case)]  # type: ignore[arg-type]
                kept.append(case)
    else:
        return cases
    if len(kept) > 4 * MANY:
        kept = [case for case in kept if algebra.possible(case)]
    return dict.fromkeys(kept)


def join_overlapping(shapes: list[Shape], algebra: Algebra) -> Shape:
    """The same for shapes that are made of each other: nested, they may double at each level."""
    alone = max(map(breadth, shapes), default=0)
    whole = join(shapes or [NOTHING])
    most = max(alone, 4 * algebra.limits.cases)
    if len(whole.objects) > most:
        whole = whole._replace(objects=tuple(_thin(dict.fromkeys(whole.objects), algebra)))
    _within(breadth(whole), most, algebra)
    return whole


def join(shapes: list[Shape]) -> Shape:
    """Values of at least one."""
    if len(shapes) == 1:
        return shapes[0]
    scalars = 0
    for shape in shapes:
        scalars |= shape.scalars
    return Shape(
        scalars,
        _join([shape.numbers for shape in shapes], ALL_NUMBERS),
        _join([shape.strings for shape in shapes], ALL_STRINGS),
        _join([shape.arrays for shape in shapes], ALL_ARRAYS),
        _join([shape.objects for shape in shapes], ALL_OBJECTS),
        tuple(dict.fromkeys(listed for shape in shapes for listed in shape.listed)),
    )


def _join(parts: list[tuple[Case, ...]], full: tuple[Case, ...]) -> tuple[Case, ...]:
    out: dict[Case, None] = {}
    for part in parts:
        if part is full:
            return full
        out.update(dict.fromkeys(part))
    return full if full[0] in out else tuple(out)


def negate(shape: Shape, algebra: Algebra) -> Shape:
    """All other values. A union of cases becomes a product of the ways in which each of them fails."""
    shape = spread(shape, algebra.reader)
    return Shape(
        SCALARS & ~shape.scalars,
        _negate(shape.numbers, ALL_NUMBERS, number_sets.complement, number_sets.meet, algebra),
        _texts([tuple(dict.fromkeys(string_sets.complement(case))) for case in shape.strings], algebra)
        if shape.strings is not ALL_STRINGS
        else (),
        _negate(
            shape.arrays, ALL_ARRAYS, lambda case: array_cases.complement(case, algebra),
            lambda a, b: array_cases.meet(a, b, algebra), algebra,
        ),
        _objects([tuple(dict.fromkeys(object_cases.complement(case, algebra))) for case in shape.objects], NO_NAMES, algebra)
        if shape.objects is not ALL_OBJECTS else (),
    )  # fmt: skip


def _negate(
    part: tuple[Case, ...],
    full: tuple[Case, ...],
    complement: Callable[[Case], list[Case]],
    both: Callable[[Case, Case], Case | None],
    algebra: Algebra,
) -> tuple[Case, ...]:
    if part is full:
        return ()
    out = full
    for case in part:
        ways = tuple(dict.fromkeys(complement(case)))
        out = _meet(out, full if full[0] in ways else ways, full, both, algebra)
    return out
