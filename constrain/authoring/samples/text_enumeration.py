"""All texts of a Grammar, where there are few of them: how many instances a schema can have at all.

A node's texts are the products and unions of its parts' texts. White space counts as none, keys come in the order of
the schema, so that a value has few texts; what is endless, or more than asked for, is not begun.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain, combinations, product

from ...base.json_documents import parse_json
from ...frontends.json_schema.core.json_values import to_constant
from ...grammar.nodes import (  # fmt: skip
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
from .random_instances import is_blank

__all__ = ["few_texts"]

MOST_SUBSETS = 12
"""Optional members beyond which an object surely has too many texts to be listed: 2^12."""

Texts = frozenset[bytes]


class Many(Exception):
    """There are more than asked for, or it would take as much to know."""


def few_texts(grammar: Grammar, most: int) -> list[bytes] | None:
    """All texts, shorter ones first, if the nodes that they are made of have no more than `most` texts each; else None.

    White space that may be left out is left out, and keys stand in the order of the schema.
    """
    try:
        return sorted(_Lister(grammar, most).texts(grammar.start), key=lambda text: (len(text), text))
    except (Many, RecursionError):
        return None


class _Lister:
    def __init__(self, grammar: Grammar, most: int) -> None:
        self.rules, self.most = grammar.rules, most
        self.done: dict[Hashable, Texts] = {}
        self.open: set[Hashable] = set()

    def gather(self, texts: Iterable[bytes]) -> Texts:
        """A set of them, as long as they are few."""
        found: set[bytes] = set()
        for text in texts:
            found.add(text)
            if len(found) > self.most:
                raise Many
        return frozenset(found)

    def texts(self, node: Node) -> Texts:
        """Of a node. Many: as it says."""
        if isinstance(node, Literal):
            return frozenset((node.data,))
        if isinstance(node, Strings):
            return self.gather(node.options)
        if isinstance(node, (Chars, JsonString)):
            return self.gather(self.leaf(node))
        if isinstance(node, Sequence):
            return self.joined([self.texts(part) for part in node.parts])
        if isinstance(node, Choice):
            return self.gather(chain.from_iterable(map(self.texts, node.options)))
        if isinstance(node, Repeat):
            return self.repeat(node)
        if isinstance(node, Rule):
            return self.rule(node.name)
        if isinstance(node, Member) and node.again is None:
            return self.texts(node.node)
        if isinstance(node, Unique):
            return frozenset(filter(differ, self.texts(node.body)))
        if not isinstance(node, Object):  # Texts of a parser, of tokens, with equal members: not counted.
            raise Many
        return self.gather(self.object(node))

    def joined(self, parts: list[Texts]) -> Texts:
        """One of each, one after the other."""
        return self.gather(map(b"".join, product(*parts)))

    def leaf(self, node: Chars | JsonString) -> Iterator[bytes]:
        if isinstance(node, Chars) and is_blank(node):
            yield b""
            return
        dfa = node.dfa.with_length(node.low, node.high) if node.low or node.high is not None else node.dfa
        if dfa.count(self.most + 1) > self.most:
            raise Many
        for text in dfa.enumerate(self.most):
            quoted = json.dumps(text, ensure_ascii=False)
            plain = isinstance(node, Chars) and node.encoding == "utf8"
            yield (text if plain else quoted if isinstance(node, JsonString) else quoted[1:-1]).encode()

    def repeat(self, node: Repeat) -> Texts:
        if node.high == 0:
            return frozenset((b"",))
        one = self.texts(node.node)
        if one <= {b""}:
            return one | ({b""} if node.low == 0 else set())
        if node.high is None or node.high > self.most:
            raise Many
        found, texts = frozenset((b"",)), set[bytes]()
        for count in range(node.high + 1):
            texts |= found if count >= node.low else frozenset()
            found = self.joined([found, one]) if count < node.high else found
        return self.gather(texts)

    def rule(self, name: Hashable) -> Texts:
        if name not in self.done:
            if name in self.open:  # recursion: endless, or as good as that
                raise Many
            self.open.add(name)
            self.done[name] = self.texts(self.rules[name])
            self.open.discard(name)
        return self.done[name]

    def object(self, node: Object) -> Iterator[bytes]:
        if node.others and (node.high is None or node.high > 0):
            raise Many
        free = [item.name for item in node.properties if not item.required]
        if len(free) > MOST_SUBSETS:
            raise Many
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
                yield from self.texts(Sequence((Literal(b"{"), *inside, Literal(b"}"))))


def differ(items: bytes) -> bool:
    """Whether items with commas between, as they stand in an array, are different JSON values."""
    _, values = to_constant(parse_json(f"[{items.decode()}]"), "")
    return len(set(values)) == len(values)
