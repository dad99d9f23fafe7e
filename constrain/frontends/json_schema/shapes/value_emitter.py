"""The interface of the emitter, for the packages that write arrays, objects and enums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ....base.options import Limits, Style
from ....grammar.nodes import Node
from ..core.json_values import Constant
from ..core.schema_sets import SchemaSet
from ..core.whitespace import Spacing
from ..strings.string_languages import LanguageCache
from .array_case import ArrayCase

__all__ = ["ValueEmitter"]


class ValueEmitter(ABC):
    """Emits the values inside arrays, objects and enums."""

    style: Style
    limits: Limits
    languages: LanguageCache

    @abstractmethod
    def value(self, schemas: SchemaSet, depth: int) -> Node:
        """Return the node of a non-empty set at a depth (0: the root)."""

    @abstractmethod
    def member_values(self, sets: list[SchemaSet], depth: int) -> list[Node]:
        """Return the nodes of non-empty sets as the values of members of an object."""

    @abstractmethod
    def spacing(self, depth: int) -> Spacing:
        """Return the white space and punctuation of an array or object at a depth."""

    @abstractmethod
    def constant_set(self, value: Constant) -> SchemaSet:
        """Return the set of exactly one value."""

    @abstractmethod
    def plan(self, case: ArrayCase) -> Any:
        """Return the `arrays.item_counts.ItemAutomaton` of a normalised case whose items are counted or must differ."""
