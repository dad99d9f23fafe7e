"""A schema document becomes numbered nodes: keywords checked and parsed by the table, references resolved.

`Reader.lits(raw, scope, pointer)` gives the literal set of a subschema: ANY for `true`, `{}` and mere annotations,
NEVER for `false`, the target's own set for a pure `$ref`, else one node. Nodes are read off a queue, so that depth
costs no stack. A keyword is looked up in the table of its dialect (`vocabularies`) and dispatched from there:
one that is not in the table of the dialect asserts nothing, and `describe` says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import Any

from ....base.errors import SchemaError
from ....base.options import Limits, Style
from ....base.work import spend
from ..algebra.schema_sets import ANY, NEVER, Lits
from ..fresh_stack import continue_deeper
from .json_values import Constant, kind_of
from .keyword_values import SKIP
from .keywords import Keyword
from .schema_references import Found, Library, Scope, token

__all__ = ["ExactReader", "Node", "Place", "Reader"]


NODE = 16
"""Work that a subschema is counted as."""


class Node:
    """One subschema: `facts` maps the Shape fields that its keywords fill to what they said, in document order.

    pointer: where it stands; None for a constant inside `enum` or `const`.
    """

    __slots__ = ("draft", "facts", "inner", "number", "pointer", "static", "sure", "waiting")

    def __init__(self, number: int, pointer: str | None, draft: int) -> None:
        self.number = number
        self.pointer = pointer
        self.draft = draft
        self.facts: dict[str, Any] = {}
        self.waiting: tuple[list[tuple[Keyword, Any]], Scope] | None = None
        self.static: Any = None
        """What the algebra remembers about it."""
        self.sure: bool | None = None
        """Whether it surely has a value (`plain`), once that was asked."""
        self.inner: tuple[list[Lits] | None] | None = None
        """What a value of it can have inside, if it is plain, once that was asked."""


class Place:
    """Where a keyword is read: what a reader of the table may ask for."""

    __slots__ = ("node", "reader", "scope")

    def __init__(self, reader: Reader, node: Node, scope: Scope) -> None:
        self.reader = reader
        self.node = node
        self.scope = scope

    @property
    def draft(self) -> int:
        """The dialect: 4, 6, 7, 2019 or 2020."""
        return self.scope.draft

    @property
    def style(self) -> Style:
        """The style that was asked for."""
        return self.reader.style

    def pointer(self, *tokens: str | int) -> str:
        """The pointer of something below this subschema."""
        return "/".join((self.node.pointer or "", *map(token, tokens)))

    def lits(self, raw: Any, *tokens: str | int) -> Lits:
        """The literal set of the subschema `raw` that stands below this one at `tokens`."""
        return self.reader.lits(raw, self.scope, self.pointer(*tokens))

    def follow(self, reference: str, *tokens: str | int) -> Lits:
        """The literal set of what a reference names."""
        return self.reader.follow(reference, self.scope, self.pointer(*tokens))

    def follow_dynamically(self, reference: str, *tokens: str | int) -> Lits:
        """The literal set of what a dynamic reference names, seen from here."""
        return self.reader.follow_dynamically(reference, self.scope, self.pointer(*tokens))

    def error(self, cause: str, *tokens: str | int, hint: str = "") -> SchemaError:
        """What to raise if a keyword's value is not what it must be."""
        return SchemaError(cause, pointer=self.pointer(*tokens), hint=hint)


class _Dynamic(Exception):
    """A signal: what a reference names depends on the way to it, so the ways have to be told apart."""


class Reader:
    """Reads what is reachable from the root of one document, and what it refers to in the registry.

    shares: equal plain subschemas are one node, which has the pointer of the first.
    """

    shares = True

    def __init__(self, document: Any, registry: Mapping[str, Any] | None, style: Style, limits: Limits) -> None:
        self.style = style
        self.limits = limits
        self.library = Library(document, registry, limits)
        self._ways = False
        try:
            self._start(document)
        except _Dynamic:  # Rare, and it doubles what is kept, so nobody pays for it before it is needed.
            self._ways = True
            self._start(document)

    def _start(self, document: Any) -> None:
        """Read the document from its root."""
        self.nodes: list[Node | None] = [None]
        self.constants: dict[Constant, int] = {}
        self._at: dict[Hashable, Lits] = {}
        self._shared: dict[Any, Lits] = {}
        self._queue: deque[Node] = deque()
        self._following: dict[Hashable, None] = {}
        self.root = self.lits(document, self.library.main, "")
        self.read()

    def read(self) -> None:
        """Read every node that is waiting, and those that they refer to."""
        queue = self._queue
        while queue:
            node = queue.popleft()
            assert node.waiting is not None
            live, scope = node.waiting
            node.waiting = None
            place = Place(self, node, scope)
            for keyword, value in live:
                found = keyword.read(place, keyword.name, value)
                if found is not SKIP:
                    node.facts[keyword.field] = found

    def lits(self, raw: Any, scope: Scope, pointer: str) -> Lits:
        """The literal set of a subschema."""
        key: Hashable = pointer
        if self._ways:
            scope = self.library.enter_dynamically(raw, scope, pointer)
            key = (pointer, scope.entered)
        known = self._at.get(key)
        if known is None:
            spend(6 + (len(pointer) >> 6) + len(scope.entered), "the reading of a schema")
            known = self._at[key] = self._lits(raw, scope, pointer)
        return known

    def _lits(self, raw: Any, scope: Scope, pointer: str) -> Lits:
        if raw is True:
            return ANY
        if raw is False:
            return NEVER
        if not isinstance(raw, dict):
            raise SchemaError(f"A schema must be an object or a boolean, not {kind_of(raw)}.", pointer=pointer)
        if "$id" in raw or "id" in raw or "$schema" in raw:
            scope = self.library.enter(raw, scope, pointer)
        table = scope.dialect.keywords
        reference = raw.get("$ref")
        if reference is not None and scope.draft <= 7:
            return self.follow(reference, scope, pointer + "/$ref")
        live: list[tuple[Keyword, Any]] = []
        key: list[Any] = [scope.dialect]
        for name, value in raw.items():
            keyword = table.get(name)
            if keyword is not None:
                live.append((keyword, value))
                if (type(value) is str or type(value) is int) and name[0] != "$":
                    key += name, value
        if not live:
            return ANY
        if len(live) == 1 and reference is not None:
            return self.follow(reference, scope, pointer + "/$ref")
        if self.shares and len(key) == 2 * len(live) + 1:
            # Equal plain subschemas (most of them are no more than a type) are one node, looked into once.
            shared = tuple(key)
            known = self._shared.get(shared)
            if known is None:
                known = self._shared[shared] = (self._new(pointer, live, scope).number,)
            return known
        return (self._new(pointer, live, scope).number,)

    def _new(self, pointer: str, live: list[tuple[Keyword, Any]], scope: Scope) -> Node:
        spend(NODE + len(scope.entered), "reading the schema")
        node = Node(len(self.nodes), pointer, scope.draft)
        node.waiting = (live, scope)
        self.nodes.append(node)
        self._queue.append(node)
        return node

    def follow(self, reference: Any, scope: Scope, pointer: str) -> Lits:
        """The literal set of what a reference names; SchemaError if it names nothing, or only itself."""
        if not isinstance(reference, str):
            raise SchemaError(f"$ref must be a string, not {kind_of(reference)}.", pointer=pointer)
        return self._go(self.library.resolve(reference, scope, pointer), scope, pointer)

    def follow_dynamically(self, reference: Any, scope: Scope, pointer: str) -> Lits:
        """The literal set of what `$dynamicRef` or `$recursiveRef` names on the way by which one came here."""
        if not isinstance(reference, str):
            raise SchemaError(f"A reference must be a string, not {kind_of(reference)}.", pointer=pointer)
        found = self.library.resolve(reference, scope, pointer)
        anchor = self.library.dynamic_anchor(reference, found)
        if anchor is not None:
            if not self._ways:
                raise _Dynamic
            found = self.library.outermost(anchor, scope, found)
        return self._go(found, scope, pointer)

    def _go(self, found: Found, scope: Scope, pointer: str) -> Lits:
        """The literal set of what was found from a scope."""
        place = (found.pointer, scope.entered)
        if place in self._following:
            raise SchemaError("This $ref leads back to itself, with no schema in between.", pointer=pointer)
        self._following[place] = None
        try:
            target = found.scope._replace(entered=scope.entered)
            return continue_deeper(len(self._following), self.lits, found.raw, target, found.pointer)
        finally:
            del self._following[place]

    def derived(self, node: Node, facts: dict[str, Any]) -> Node:
        """A new node that stands where another does, and says something else."""
        made = Node(len(self.nodes), node.pointer, node.draft)
        made.facts = facts
        self.nodes.append(made)
        return made

    def constant(self, value: Constant) -> Lits:
        """The literal set of exactly one value."""
        number = self.constants.get(value)
        if number is None:
            node = Node(len(self.nodes), None, 2020)
            node.facts["const"] = (value,)
            self.nodes.append(node)
            number = self.constants[value] = node.number
        return (number,)


class ExactReader(Reader):
    """A Reader of which every subschema is a node of its own, with its own pointer: for messages."""

    shares = False
