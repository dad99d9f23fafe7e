"""Many listed arrays and objects: one trie over all of them, made as the text goes.

A `Left` is what still matters after some text: the values that begin so, where in them the text stands, and which keys
each open object has had. Each is a rule that is named in last place, so that only what is reached costs anything, in
every order of keys. What stands next is a word (a key, a constant) or a bracket; of many words those with the same
beginning share a rule too (`words`), and so do numbers that may be spelled in every way (`digits`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from functools import partial
from typing import NamedTuple, Protocol

from ...grammar.nodes import EMPTY, Chars, Choice, Literal, Node, Rule, Sequence
from ...style import Limits, Style
from .constants import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Constant
from .digits import Digits, Number, decimals
from .literals import Lits
from .numbers import constant_dfa
from .spacing import spacing
from .strings import quoted
from .words import FEW, Prefix, Word, spelled

__all__ = ["MANY", "Left", "Listed", "Made", "write"]

MANY = 100
"""Arrays, or objects, in one enum beyond which they are a trie: of fewer the algebra knows more as cases."""

Path = tuple[str | int, ...]
Seen = tuple[frozenset[str], ...]
NONE: frozenset[str] = frozenset()


class Listed:
    """Different constants, all arrays or all objects. Equal only to itself, so that nobody hashes them all."""

    def __init__(self, kind: int, values: Iterable[Constant]) -> None:
        self.kind = kind
        self.values = tuple(values)
        self._sets: dict[tuple[int, ...], tuple[int, ...]] = {}

    def some(self, numbers: list[int]) -> tuple[int, ...]:
        """Values by number: equal sets are one tuple."""
        chosen = tuple(numbers)
        return self._sets.setdefault(chosen, chosen)


class Left(NamedTuple):
    """The name of a rule: what may come after some text.

    numbers: the values that are left. path: keys and positions that lead to the value that comes next, or, if `after`,
    that was there last. seen: of each array or object on the way, the keys that it has had (of arrays none).
    """

    listed: Listed
    numbers: tuple[int, ...]
    path: Path
    seen: Seen
    after: bool
    depth: int


Made = (Left, Prefix, Digits)
"""Names of rules that are made here and below."""


class Writer(Protocol):
    """What is asked of the writer of values."""

    style: Style
    limits: Limits

    def value(self, lits: Lits, depth: int) -> Node: ...
    def constant(self, value: Constant) -> Lits: ...


def write(name: Hashable, writer: Writer) -> Node:
    """What a rule of a trie stands for."""
    if isinstance(name, (Prefix, Digits)):
        return name.node()
    assert isinstance(name, Left)
    return _Text(name, writer).node()


class _Text:
    """Writes what comes next after a text."""

    def __init__(self, name: Left, writer: Writer) -> None:
        self.listed, self.numbers, self.path, self.seen, self.is_after, self.depth = name
        self.writer = writer
        self.style = writer.style

    def node(self) -> Node:
        """What may come."""
        return self.after() if self.is_after else self.value()

    def rule(self, numbers: list[int], path: Path, seen: Seen, after: bool) -> Node:
        """What comes then, for those values."""
        if after and not path:
            return EMPTY
        return Rule(Left(self.listed, self.listed.some(numbers), path, seen, after, self.depth))

    def at(self, number: int, path: Path) -> Constant:
        """What a value holds at the end of a path."""
        value = self.listed.values[number]
        for step in path:
            inside = value[1]
            value = inside[step] if isinstance(step, int) else next(item for name, item in inside if name == step)
        return value

    def value(self) -> Node:
        """The value at the path."""
        groups: dict[Constant, list[int]] = {}
        brackets: dict[int, list[int]] = {ARRAY: [], OBJECT: []}
        few = len(self.numbers) <= FEW and bool(self.path)
        for number in self.numbers:
            value = self.at(number, self.path)
            if few or value[0] not in brackets:
                groups.setdefault(value, []).append(number)
            else:
                brackets[value[0]].append(number)
        words: list[Word] = []
        options: list[Node] = []
        others: list[Number] = []
        for value, numbers in groups.items():
            then = partial(self.rule, numbers, self.path, self.seen, True)
            kind = value[0]
            if kind in brackets:
                whole = self.writer.value(self.writer.constant(value), self.depth + len(self.path))
                options.append(_then(whole, then()))
            elif kind == STRING:
                words.append((value[1], then))
            elif kind == NUMBER:
                others.append((value[1], then))
            else:
                options.append(_then(Literal(WORDS[value]), then()))
        options += self.texts(words)
        options += self.figures(others)
        options += [self.bracket(kind, numbers) for kind, numbers in brackets.items() if numbers]
        return _choice(options)

    def texts(self, words: list[Word]) -> list[Node]:
        """Strings, each with what follows it."""
        if not words:
            return []
        if self.style.escapes == "canonical":
            return [spelled([(quoted(text).decode(), then) for text, then in words], escapes=False)]
        return [_then(QUOTE, spelled([(text, partial(_after_quote, then)) for text, then in words], escapes=True))]

    def figures(self, numbers: list[Number]) -> list[Node]:
        """Numbers, each with what follows it."""
        style = self.style
        if style.numbers == "plain":
            words = [(text, then) for value, then in numbers for text in _plain(value, style)]
            return [spelled(words, escapes=False)] if words else []
        if style.digits is None and len(numbers) > 1:
            return [decimals(numbers, style)]
        return [_then(Chars(constant_dfa(value, style)), then()) for value, then in numbers]

    def bracket(self, kind: int, numbers: list[int]) -> Node:
        """An array or an object: its bracket, and what comes inside."""
        lay = spacing(self.style, self.depth + len(self.path))
        filled = [number for number in numbers if self.at(number, self.path)[1]]
        empty = [number for number in numbers if not self.at(number, self.path)[1]]
        left, right = (b"[", b"]") if kind == ARRAY else (b"{", b"}")
        options: list[Node] = []
        if empty:
            options.append(_then(lay.empty, Literal(right), self.rule(empty, self.path, self.seen, True)))
        if filled:
            inside = self.item(filled, self.path, 0) if kind == ARRAY else self.keys(filled, self.path, NONE)
            options.append(_then(lay.open, inside))
        return _then(Literal(left), _choice(options))

    def after(self) -> Node:
        """After a value inside an array or object: its end, or the next one."""
        path, last = self.path[:-1], self.path[-1]
        lay = spacing(self.style, self.depth + len(path))
        is_array, seen = isinstance(last, int), self.seen[-1]
        had = last + 1 if isinstance(last, int) else len(seen)
        done: list[int] = []
        more: list[int] = []
        for number in self.numbers:
            (done if len(self.at(number, path)[1]) == had else more).append(number)
        options: list[Node] = []
        if done:
            end = Literal(b"]" if is_array else b"}")
            options.append(_then(lay.close, end, self.rule(done, path, self.seen[:-1], True)))
        if more:
            inside = self.item(more, path, had) if is_array else self.keys(more, path, seen)
            options.append(_then(lay.comma, inside))
        return _choice(options)

    def item(self, numbers: list[int], path: Path, position: int) -> Node:
        """The next item of an array."""
        return self.rule(numbers, (*path, position), (*self.seen[: len(path)], NONE), False)

    def keys(self, numbers: list[int], path: Path, seen: frozenset[str]) -> Node:
        """A key of an object that has not been there, and its value."""
        groups: dict[str, list[int]] = {}
        for number in numbers:
            names = [name for name, _ in self.at(number, path)[1]]
            chosen = names if self.style.key_order == "any" else [names[len(seen)]]
            for name in chosen:
                if name not in seen:
                    groups.setdefault(name, []).append(number)
        return _choice(
            self.texts([(name, partial(self.member, name, held, path, seen)) for name, held in groups.items()])
        )

    def member(self, name: str, numbers: list[int], path: Path, seen: frozenset[str]) -> Node:
        """What follows a key."""
        colon = spacing(self.style, self.depth + len(path)).layout.colon
        return _then(colon, self.rule(numbers, (*path, name), (*self.seen[: len(path)], seen | {name}), False))


QUOTE = Literal(b'"')
WORDS: dict[Constant, bytes] = {(NULL,): b"null", (BOOLEAN, False): b"false", (BOOLEAN, True): b"true"}


def _after_quote(then: Callable[[], Node]) -> Node:
    return _then(QUOTE, then())


def _plain(value: Fraction, style: Style) -> list[str]:
    """How a number is spelled in plain style."""
    return [str(value.numerator)] if value.denominator == 1 else constant_dfa(value, style).enumerate(FEW)


def _choice(options: list[Node]) -> Node:
    return options[0] if len(options) == 1 else Choice(tuple(options))


def _then(*parts: Node) -> Node:
    kept = tuple(part for part in parts if part is not EMPTY)
    return kept[0] if len(kept) == 1 else Sequence(kept)
