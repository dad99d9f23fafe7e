"""The context in which the value of a keyword is parsed: the interface between the parser and the keyword groups.

A function that parses a keyword is called with the `KeywordContext` of the subschema, the keyword's name and its raw
value. It raises SchemaError with a JSON pointer if the value is not valid for the keyword, and returns `SKIP` if the
keyword, with this value, asserts nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ....base.errors import SchemaError
from ....base.json_documents import pointer_token
from ....base.options import Limits, Style
from .dialects import Scope
from .schema_sets import SchemaSet
from .subschema_table import Subschema, SubschemaTable

__all__ = ["SKIP", "KeywordContext", "SubschemaParser"]

SKIP = object()
"""The result of parsing a keyword that asserts nothing."""


class SubschemaParser(SubschemaTable, ABC):
    """A table of subschemas that grows as raw schemas and references are parsed."""

    style: Style
    limits: Limits

    @abstractmethod
    def parse_subschema(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set of a raw subschema; its keywords are parsed later."""

    @abstractmethod
    def follow_reference(self, reference: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set of the subschema that `$ref` names. Raise SchemaError if there is none."""

    @abstractmethod
    def follow_dynamic_reference(self, reference: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set of the subschema that `$dynamicRef` or `$recursiveRef` names in a dynamic scope."""


class KeywordContext:
    """The subschema that contains a keyword: its node, its scope, and the parser for its subschemas."""

    __slots__ = ("node", "parser", "scope")

    def __init__(self, parser: SubschemaParser, node: Subschema, scope: Scope) -> None:
        self.parser = parser
        self.node = node
        self.scope = scope

    @property
    def draft(self) -> int:
        """The dialect: 4, 6, 7, 2019 or 2020."""
        return self.scope.dialect.draft

    @property
    def style(self) -> Style:
        """The style of the Grammar."""
        return self.parser.style

    def pointer(self, *tokens: str | int) -> str:
        """Return the JSON pointer of a descendant of this subschema, given by reference tokens."""
        pointer = self.node.pointer or ""
        for token in tokens:
            pointer = f"{pointer}/{pointer_token(token)}"
        return pointer

    def parse(self, raw: Any, *tokens: str | int) -> SchemaSet:
        """Return the set of the subschema `raw`, which is at `tokens` below this one."""
        return self.parser.parse_subschema(raw, self.scope, self.pointer(*tokens))

    def error(self, cause: str, *tokens: str | int, hint: str = "") -> SchemaError:
        """Return the error of a keyword with an invalid value."""
        return SchemaError(cause, pointer=self.pointer(*tokens), hint=hint)
