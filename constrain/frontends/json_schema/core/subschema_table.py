"""Subschemas: the numbered nodes of a schema document, each with its parsed keywords.

A `SubschemaTable` owns the nodes. The parser fills it from a document; the algebra adds derived nodes, such as a
constant of `enum` or a conjunction that needs a complement.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from .schema_sets import SchemaSet

__all__ = ["PlainSubschema", "Subschema", "SubschemaTable"]


class Subschema:
    """One subschema: `keywords` maps the keywords that assert something to their parsed values, in document order.

    number: its index in the table, from 1 on. pointer: its JSON pointer in the document; None for a
    constant inside `enum` or `const`. draft: 4, 6, 7, 2019 or 2020.
    """

    __slots__ = ("bound", "children", "draft", "keywords", "number", "pointer", "satisfiable", "unparsed")
    keywords: dict[str, Any]
    is_plain = False
    """Whether the document is known to be plain (`reading.document_inspection`), and so all subschemas inside."""

    def __init__(self, number: int, pointer: str | None, draft: int) -> None:
        self.number = number
        self.pointer = pointer
        self.draft = draft
        self.keywords = {}
        self.unparsed: Any = None
        """The keywords that have not been parsed yet, with their scope; None after they have been."""
        self.bound: Any = None
        """The cached result of `static_types.compute_bound`."""
        self.satisfiable: bool | None = None
        """The cached result of `fast_checks.fast_satisfiable`."""
        self.children: tuple[list[SchemaSet] | None] | None = None
        """The cached result of `fast_checks.find_children`, in a tuple because None is a result, too."""

    def may_be_types_alone(self) -> bool:
        """Return whether `type` may be all that it asserts; False is certain, and parses nothing."""
        return True


class PlainSubschema(Subschema):
    """A subschema that is certainly satisfiable, and whose keywords, all valid, are parsed when they are first read.

    parse: returns the parsed keywords, given the node. source: what it parses, pairs of a row of the table of keywords
    and a value; their scope; whether `type` may be all that is asserted; and the raw subschema.
    """

    __slots__ = ("parse", "source")
    is_plain = True

    def __init__(
        self, number: int, pointer: str, draft: int, parse: Callable[[PlainSubschema], dict[str, Any]], source: Any
    ) -> None:
        self.number = number
        self.pointer = pointer
        self.draft = draft
        self.parse = parse
        self.source = source
        self.unparsed = self.bound = self.children = None
        self.satisfiable = True

    def __getattr__(self, name: str) -> Any:
        """Parse the keywords. Python calls this for an attribute that is not set."""
        if name != "keywords":
            raise AttributeError(name)
        self.keywords = keywords = self.parse(self)
        return keywords

    def may_be_types_alone(self) -> bool:
        return bool(self.source[2])


class SubschemaTable:
    """The nodes of one document by number; there is no node 0.

    Threads that share the Grammar of a document may add nodes at the same time: numbers are drawn from an iterator, a
    step that the interpreter does not interrupt. A number whose node is not stored yet has None.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Delete all nodes."""
        self.nodes: list[Subschema | None] = [None]
        self._numbers = count(1)
        self.constants: dict[Any, int] = {}

    def add(self, pointer: str | None, draft: int) -> Subschema:
        """Return a new node without keywords."""
        node = Subschema(next(self._numbers), pointer, draft)
        self._store(node)
        return node

    def add_plain(
        self, pointer: str, draft: int, parse: Callable[[PlainSubschema], dict[str, Any]], source: Any
    ) -> PlainSubschema:
        """Return a new node whose keywords are parsed when they are first read."""
        node = PlainSubschema(next(self._numbers), pointer, draft, parse, source)
        self._store(node)
        return node

    def _store(self, node: Subschema) -> None:
        nodes, number = self.nodes, node.number
        if len(nodes) == number:
            nodes.append(node)
            return
        while len(nodes) <= number:
            nodes.append(None)
        nodes[number] = node

    def add_derived(self, node: Subschema, keywords: dict[str, Any]) -> Subschema:
        """Return a new node with the pointer and draft of an existing one, and other keywords."""
        made = self.add(node.pointer, node.draft)
        made.keywords = keywords
        return made

    def add_constant(self, value: tuple[Any, ...]) -> SchemaSet:
        """Return the set of exactly one value, in the form of `json_values.to_constant`."""
        number = self.constants.get(value)
        if number is None:
            node = self.add(None, 2020)
            node.keywords["const"] = (value,)
            number = self.constants[value] = node.number
        return (number,)
