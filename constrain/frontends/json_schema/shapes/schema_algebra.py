"""The interface of the algebra of sets of subschemas, for the packages that it is built from.

Whether an array has a value depends on its items, whose sets only the algebra can decide. So `arrays` and `objects`
import this abstract class, and `algebra.shape_algebra` implements it on top of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ....base.errors import UnsupportedError
from ....base.options import Limits, Style
from ..core.json_values import Constant
from ..core.schema_sets import SchemaSet
from ..core.static_types import StaticBound
from ..core.subschema_table import Subschema, SubschemaTable
from ..strings.string_languages import Language, LanguageCache
from .array_case import ArrayCase
from .object_case import ObjectCase
from .shape import Shape

__all__ = ["SchemaAlgebra"]


class SchemaAlgebra(ABC):
    """Operations on sets of subschemas. Every one may raise UnsupportedError and LimitError."""

    table: SubschemaTable
    nodes: list[Subschema | None]
    languages: LanguageCache
    style: Style
    limits: Limits

    @abstractmethod
    def unfold(self, schemas: SchemaSet) -> Shape:
        """Return the Shape of a set."""

    @abstractmethod
    def is_satisfiable(self, schemas: SchemaSet) -> bool:
        """Return whether some finite value is in the set."""

    @abstractmethod
    def is_possible(self, schemas: SchemaSet) -> bool:
        """Return whether some value is in the set, or True if that is not known yet."""

    @abstractmethod
    def is_case_possible(self, case: ArrayCase | ObjectCase) -> bool:
        """Return whether some value is in the case, or True if that is not known yet."""

    @abstractmethod
    def intersect(self, one: SchemaSet, other: SchemaSet) -> SchemaSet:
        """Return the intersection of two sets, simplified by static bounds."""

    @abstractmethod
    def complement(self, schemas: SchemaSet) -> SchemaSet:
        """Return the complement of a set."""

    @abstractmethod
    def enum_set(self, values: tuple[Constant, ...]) -> SchemaSet:
        """Return the set of exactly these values, one at least."""

    @abstractmethod
    def non_string_set(self) -> SchemaSet:
        """Return the set of all values but strings."""

    @abstractmethod
    def bound_of(self, schemas: SchemaSet) -> StaticBound:
        """Return an upper bound of a set that is known without unfolding it."""

    @abstractmethod
    def is_enumerated(self, schemas: SchemaSet) -> bool:
        """Return whether the static bound enumerates the values of the set."""

    @abstractmethod
    def irregular_names(self, schemas: SchemaSet) -> Language | None:
        """Return the formula of the texts in a set that is not a regular language; None for a regular one."""

    @abstractmethod
    def item_automata(self, case: ArrayCase) -> list[Any]:
        """Return the `arrays.item_counts.ItemAutomaton` of every normalised case of some arrays."""

    @abstractmethod
    def unsupported(self, cause: str, field: str) -> UnsupportedError:
        """Return the error of something that is not enforced, at the keyword `field` that is being computed."""
