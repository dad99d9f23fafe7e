"""List all texts of a Grammar with a small language, and compare texts as JSON values.

The texts of a node are products and unions of the texts of its parts. Optional white space is left out and keys are in
the order of the schema, so that each value has few texts. The listing stops as soon as there are too many.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain, combinations, product
from typing import Any

from ..base.errors import ConstrainError
from ..base.json_documents import parse_json
from ..frontends.json_schema.core.json_values import to_constant
from ..grammar.nodes import (
    Chars,
    Choice,
    Grammar,
    JsonString,
    Literal,
    Member,
    Node,
    Object,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Unique,
)
from ..grammar.visitor import NodeVisitor

__all__ = ["hashable_json", "is_blank", "list_texts"]

WHITE = frozenset(" \t\n\r")
MOST_SUBSETS = 12
"""Most optional members of an object: more than 12 have more than 2^12 subsets, too many texts to list."""

Texts = frozenset[bytes]


class TooManyTexts(Exception):
    """There are more texts than requested, or counting them would take as long as listing them."""


def list_texts(grammar: Grammar, most: int) -> list[bytes] | None:
    """Return all texts, shorter ones first, or None if a node that they are made of has more than `most` texts.

    Optional white space is left out, and keys are in the order of the schema.
    """
    try:
        return sorted(_TextLister(grammar, most).visit(grammar.start), key=lambda text: (len(text), text))
    except (TooManyTexts, RecursionError):
        return None


class _TextLister(NodeVisitor[Texts]):
    """The texts of a node. `visit` raises TooManyTexts if there are more than `most`, or possibly more."""

    def __init__(self, grammar: Grammar, most: int) -> None:
        self.rules, self.most = grammar.rules, most
        self.done: dict[Hashable, Texts] = {}
        self.open: set[Hashable] = set()

    def gather(self, texts: Iterable[bytes]) -> Texts:
        """Return the set of the texts. Raise TooManyTexts if there are more than `most`."""
        distinct: set[bytes] = set()
        for text in texts:
            distinct.add(text)
            if len(distinct) > self.most:
                raise TooManyTexts
        return frozenset(distinct)

    def visit_literal(self, node: Literal) -> Texts:
        return frozenset((node.data,))

    def visit_strings(self, node: Strings) -> Texts:
        return self.gather(node.options)

    def visit_chars(self, node: Chars) -> Texts:
        if is_blank(node):
            return frozenset((b"",))
        if node.encoding == "utf8":
            return self.gather(text.encode() for text in self.enumerate(node))
        return self.gather(quoted[1:-1] for quoted in map(_quote, self.enumerate(node)))

    def visit_json_string(self, node: JsonString) -> Texts:
        return self.gather(map(_quote, self.enumerate(node)))

    def visit_sequence(self, node: Sequence) -> Texts:
        return self.concatenate([self.visit(part) for part in node.parts])

    def visit_choice(self, node: Choice) -> Texts:
        return self.gather(chain.from_iterable(map(self.visit, node.options)))

    def visit_member(self, node: Member) -> Texts:
        return self.visit(node.node) if node.again is None else self.generic_visit(node)

    def visit_unique(self, node: Unique) -> Texts:
        return frozenset(filter(are_distinct, self.visit(node.body)))

    def visit_object(self, node: Object) -> Texts:
        return self.gather(self.enumerate_object(node))

    def generic_visit(self, node: Node, *context: Any) -> Texts:
        raise TooManyTexts  # parsers, special tokens and members that must be equal are not supported

    def concatenate(self, parts: list[Texts]) -> Texts:
        """Return all concatenations of one text of each part."""
        return self.gather(map(b"".join, product(*parts)))

    def enumerate(self, node: Chars | JsonString) -> Iterator[str]:
        """Yield the texts of a Dfa. Raise TooManyTexts if there are more than `most`."""
        dfa = node.dfa.with_length(node.low, node.high) if node.low or node.high is not None else node.dfa
        if dfa.count(self.most + 1) > self.most:
            raise TooManyTexts
        yield from dfa.enumerate(self.most)

    def visit_repeat(self, node: Repeat) -> Texts:
        if node.high == 0:
            return frozenset((b"",))
        body = self.visit(node.node)
        if body <= {b""}:
            return body | ({b""} if node.low == 0 else set())
        if node.high is None or node.high > self.most:
            raise TooManyTexts
        power, texts = frozenset((b"",)), set[bytes]()
        for count in range(node.high + 1):
            texts |= power if count >= node.low else frozenset()
            power = self.concatenate([power, body]) if count < node.high else power
        return self.gather(texts)

    def visit_rule(self, node: Rule) -> Texts:
        name = node.name
        if name not in self.done:
            if name in self.open:  # a recursive rule has infinitely many texts, or nearly always too many
                raise TooManyTexts
            self.open.add(name)
            self.done[name] = self.visit(self.rules[name])
            self.open.discard(name)
        return self.done[name]

    def enumerate_object(self, node: Object) -> Iterator[bytes]:
        """Yield the texts of an object: for each subset of its optional members, those in the order of the schema."""
        if node.others and (node.high is None or node.high > 0):
            raise TooManyTexts
        free = [item.name for item in node.properties if not item.required]
        if len(free) > MOST_SUBSETS:
            raise TooManyTexts
        lay = node.layout
        for size in range(len(free) + 1):
            for chosen in combinations(free, size):
                members = [item for item in node.properties if item.required or item.name in chosen]
                names = {item.name for item in members}
                fits = len(members) >= node.low and (node.high is None or len(members) <= node.high)
                if not fits or not all(item.needs <= names for item in members):
                    continue
                parts: list[Node] = []
                for item in members:
                    name = Literal(json.dumps(item.name, ensure_ascii=False).encode())
                    parts += [lay.comma if parts else lay.open, name, lay.colon, item.value]
                inside = [*parts, lay.close] if parts else [lay.empty]
                yield from self.visit(Sequence((Literal(lay.opening), *inside, Literal(lay.closing))))


def _quote(text: str) -> bytes:
    """Return the JSON string of a text."""
    return json.dumps(text, ensure_ascii=False).encode()


def are_distinct(items: bytes) -> bool:
    """Return whether the items of an array, given as its text without brackets, are distinct JSON values."""
    _, values = to_constant(parse_json(f"[{items.decode()}]"), "")
    return len(set(values)) == len(values)


def is_blank(node: Chars) -> bool:
    """Return whether a node matches only white space or nothing, as JSON allows between its tokens."""
    dfa = node.dfa
    return node.low == 0 and bool(dfa.accepting.all()) and _only_white(node)


def _only_white(node: Chars) -> bool:
    """Return whether no character but white space has a transition in the Dfa of a node."""
    table = node.dfa.table
    ends = [*table.bounds[1:], 0x110000]
    kinds = {kind for kind in set(table.classes) if any(row[kind] >= 0 for row in table.rows)}
    alive = [(a, b) for a, b, kind in zip(table.bounds, ends, table.classes) if kind in kinds]
    return all(b - a <= len(WHITE) and all(chr(code) in WHITE for code in range(a, b)) for a, b in alive)


def hashable_json(text: bytes) -> object:
    """Return the JSON value of a text, hashable and with exact numbers; the text itself if it is not JSON.

    Two values are equal if JSON Schema says so (2020-12, core, section 4.2.2).
    """
    try:
        return to_constant(parse_json(text.decode()), "")
    except ConstrainError:
        return text
