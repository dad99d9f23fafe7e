"""Long enums of arrays and objects: one trie over all of them, built as the text reaches its states.

An `EnumTrieState` is the information about a text that still matters: the values with this prefix, the path that the
text has reached in them, and the keys that each open object has had. Each state is a rule that is called in tail
position, so only states that are reached cost anything, in any order of keys. The next token is a word (a key, a
constant) or a bracket; many words with a common prefix share a rule too (`strings.enum_words`), and so do numbers that
may have any spelling (`numbers.digit_rules`).
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any, NamedTuple

from ....base.options import Style
from ....grammar.nodes import EMPTY, Literal, Node, Rule, Sequence
from ..core.json_values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Constant
from ..core.node_building import choice_of
from ..core.whitespace import spacing_at
from ..numbers.digit_rules import DecimalSuffix, emit_decimals
from ..numbers.number_parts import plain_texts
from ..numbers.number_sets import NumberCase, emit_any_spelling
from ..shapes.enum_values import EnumValues
from ..shapes.value_emitter import ValueEmitter
from ..strings.enum_words import SMALL_SET, Follow, WordPrefix, emit_words
from ..strings.string_sets import quote_texts

__all__ = ["EnumTrieState", "ENUM_RULES", "emit_enum_rule"]

Path = tuple[str | int, ...]
Seen = tuple[frozenset[str], ...]
NONE: frozenset[str] = frozenset()


class EnumTrieState(NamedTuple):
    """The name of a rule: what may come after some text.

    numbers: the values that have the text as a prefix, by index. path: keys and positions that lead to the value that
    comes next, or, if `after` is set, to the one that has ended. seen: for each array or object on the path the keys
    that it has had (none for arrays).
    """

    listed: EnumValues
    numbers: tuple[int, ...]
    path: Path
    seen: Seen
    after: bool
    depth: int


ENUM_RULES = (EnumTrieState, WordPrefix, DecimalSuffix)
"""Names of the rules that `emit_enum_rule` knows."""


def emit_enum_rule(name: Hashable, emitter: ValueEmitter) -> Node:
    """Return the node of a rule of a trie."""
    if isinstance(name, (WordPrefix, DecimalSuffix)):
        return name.node()
    assert isinstance(name, EnumTrieState)
    return _TrieEmitter(name, emitter).node()


class _TrieEmitter:
    """Writes the node of one state of a trie."""

    def __init__(self, name: EnumTrieState, emitter: ValueEmitter) -> None:
        self.listed, self.numbers, self.path, self.seen, self.is_after, self.depth = name
        self.emitter = emitter
        self.style = emitter.style

    def node(self) -> Node:
        """Return what may come next."""
        return self.after() if self.is_after else self.value()

    def rule(self, numbers: list[int], path: Path, seen: Seen, after: bool) -> Node:
        """Return the node of the next state, for the values that it retains."""
        if after and not path:
            return EMPTY
        return Rule(EnumTrieState(self.listed, self.listed.subset(numbers), path, seen, after, self.depth))

    def at(self, number: int, path: Path) -> Constant:
        """Return the part of a value at the end of a path."""
        value = self.listed.values[number]
        for step in path:
            inside = value[1]
            value = inside[step] if isinstance(step, int) else next(item for name, item in inside if name == step)
        return value

    def value(self) -> Node:
        """Return the node of the value at the path."""
        values: dict[Constant, list[int]] = {}
        scalars: dict[int, tuple[list[Any], list[int]]] = {STRING: ([], []), NUMBER: ([], [])}
        containers: dict[int, list[int]] = {ARRAY: [], OBJECT: []}
        is_small = len(self.numbers) <= SMALL_SET and bool(self.path)
        for number in self.numbers:
            value = self.at(number, self.path)
            kind = value[0]
            if kind in scalars:
                scalars[kind][0].append(value[1])
                scalars[kind][1].append(number)
            elif kind in containers and not is_small:
                containers[kind].append(number)
            else:
                values.setdefault(value, []).append(number)
        options = [self.emit_value(value, numbers) for value, numbers in values.items()]
        options += self.texts(*scalars[STRING], self.then)
        options += self.figures(*scalars[NUMBER])
        options += [self.bracket(kind, numbers) for kind, numbers in containers.items() if numbers]
        return choice_of(options)

    def then(self, numbers: list[int]) -> Node:
        """Return what follows the value at the path."""
        return self.rule(numbers, self.path, self.seen, True)

    def emit_value(self, value: Constant, numbers: list[int]) -> Node:
        """Return the node of one value and of what follows it."""
        word = WORDS.get(value)
        if word is not None:
            return _concatenate(Literal(word), self.then(numbers))
        node = self.emitter.value(self.emitter.constant_set(value), self.depth + len(self.path))
        return _concatenate(node, self.then(numbers))

    def texts(self, texts: list[str], numbers: list[int], follow: Follow) -> list[Node]:
        """Return the nodes of strings, each with what follows it."""
        if not texts:
            return []
        if self.style.escapes == "canonical":
            return [emit_words(quote_texts(texts), numbers, follow, escapes=False)]
        return [
            _concatenate(
                QUOTE, emit_words(texts, numbers, lambda subset: _concatenate(QUOTE, follow(subset)), escapes=True)
            )
        ]

    def figures(self, values: list[Fraction], numbers: list[int]) -> list[Node]:
        """Return the nodes of numbers, each with what follows it."""
        if not values:
            return []
        style = self.style
        if style.numbers == "plain":
            words = [(text, number) for value, number in zip(values, numbers) for text in _plain(value, style)]
            return [emit_words([text for text, _ in words], [number for _, number in words], self.then, escapes=False)]
        if len(values) > 1:
            return [emit_decimals(values, numbers, self.then, style)]
        groups: dict[Fraction, list[int]] = {}
        for value, number in zip(values, numbers):
            groups.setdefault(value, []).append(number)
        return [
            _concatenate(*emit_any_spelling((NumberCase((value,)),), style), self.then(subset))
            for value, subset in groups.items()
        ]

    def bracket(self, kind: int, numbers: list[int]) -> Node:
        """Return the node of an array or object: its bracket and what comes inside."""
        spacing = spacing_at(self.style, self.depth + len(self.path))
        filled = [number for number in numbers if self.at(number, self.path)[1]]
        empty = [number for number in numbers if not self.at(number, self.path)[1]]
        opening, closing = (b"[", b"]") if kind == ARRAY else (b"{", b"}")
        options: list[Node] = []
        if empty:
            options.append(_concatenate(spacing.empty, Literal(closing), self.rule(empty, self.path, self.seen, True)))
        if filled:
            inside = self.item(filled, self.path, 0) if kind == ARRAY else self.keys(filled, self.path, NONE)
            options.append(_concatenate(spacing.open, inside))
        return _concatenate(Literal(opening), choice_of(options))

    def after(self) -> Node:
        """Return what follows a value inside an array or object: its end or the next member."""
        path, last = self.path[:-1], self.path[-1]
        spacing = spacing_at(self.style, self.depth + len(path))
        is_array, seen = isinstance(last, int), self.seen[-1]
        written = last + 1 if isinstance(last, int) else len(seen)
        ended: list[int] = []
        continued: list[int] = []
        for number in self.numbers:
            (ended if len(self.at(number, path)[1]) == written else continued).append(number)
        options: list[Node] = []
        if ended:
            end = Literal(b"]" if is_array else b"}")
            options.append(_concatenate(spacing.close, end, self.rule(ended, path, self.seen[:-1], True)))
        if continued:
            inside = self.item(continued, path, written) if is_array else self.keys(continued, path, seen)
            options.append(_concatenate(spacing.comma, inside))
        return choice_of(options)

    def item(self, numbers: list[int], path: Path, position: int) -> Node:
        """Return the next item of an array."""
        return self.rule(numbers, (*path, position), (*self.seen[: len(path)], NONE), False)

    def keys(self, numbers: list[int], path: Path, seen: frozenset[str]) -> Node:
        """Return a key that an object has not had yet, and its value."""
        groups: dict[str, list[int]] = {}
        for number in numbers:
            names = [name for name, _ in self.at(number, path)[1]]
            for name in names if self.style.key_order == "any" else names[len(seen) : len(seen) + 1]:
                if name not in seen:
                    groups.setdefault(name, []).append(number)
        words, subsets = list(groups), list(groups.values())

        def follow(positions: list[int]) -> Node:
            return self.member(words[positions[0]], subsets[positions[0]], path, seen)

        return choice_of(self.texts(words, list(range(len(words))), follow))

    def member(self, name: str, numbers: list[int], path: Path, seen: frozenset[str]) -> Node:
        """Return what follows a key."""
        colon = spacing_at(self.style, self.depth + len(path)).layout.colon
        return _concatenate(colon, self.rule(numbers, (*path, name), (*self.seen[: len(path)], seen | {name}), False))


QUOTE = Literal(b'"')
WORDS: dict[Constant, bytes] = {(NULL,): b"null", (BOOLEAN, False): b"false", (BOOLEAN, True): b"true"}


def _plain(value: Fraction, style: Style) -> list[str]:
    """Return the spellings of a number in plain style."""
    return [str(value.numerator)] if value.denominator == 1 else plain_texts(value)


def _concatenate(*parts: Node) -> Node:
    nonempty = tuple(part for part in parts if part is not EMPTY)
    return nonempty[0] if len(nonempty) == 1 else Sequence(nonempty)
