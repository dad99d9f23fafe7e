"""Shape: what a schema allows, as six independent parts, one for each JSON type.

A part is a tuple of cases, meaning their union; no case is the empty part, and the one case without any condition is
the full part. Null, false and true are bits. The children of arrays and objects are sets of subschemas, so nothing here
is recursive. Cases may overlap. `algebra.shape_operations` has AND, OR and NOT.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from ..numbers.number_sets import ANY_NUMBER, NumberCase
from ..strings.string_sets import ANY_STRING, StringCase
from .array_case import ANY_ARRAY, ArrayCase
from .enum_values import EnumValues
from .object_case import ANY_OBJECT, ObjectCase

__all__ = [
    "ALL_ARRAYS", "ALL_NUMBERS", "ALL_OBJECTS", "ALL_STRINGS", "EVERYTHING", "FALSE_BIT", "NOTHING", "NULL_BIT",
    "SCALARS", "TRUE_BIT", "Case", "Shape",
]  # fmt: skip

NULL_BIT, FALSE_BIT, TRUE_BIT = 1, 2, 4
SCALARS = NULL_BIT | FALSE_BIT | TRUE_BIT

Case = TypeVar("Case")


class Shape(NamedTuple):
    """What a schema allows: scalars is a set of bits, the others are unions of cases.

    enums: many arrays or objects of one enum and of one type. They are not expanded until they are intersected.
    """

    scalars: int
    numbers: tuple[NumberCase, ...]
    strings: tuple[StringCase, ...]
    arrays: tuple[ArrayCase, ...]
    objects: tuple[ObjectCase, ...]
    enums: tuple[EnumValues, ...] = ()


ALL_NUMBERS, ALL_STRINGS, ALL_ARRAYS, ALL_OBJECTS = (ANY_NUMBER,), (ANY_STRING,), (ANY_ARRAY,), (ANY_OBJECT,)
EVERYTHING = Shape(SCALARS, ALL_NUMBERS, ALL_STRINGS, ALL_ARRAYS, ALL_OBJECTS)
NOTHING = Shape(0, (), (), (), ())
