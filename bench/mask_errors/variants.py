"""Change valid instances at random: other strings, numbers and keys. Only changes that are still valid are used.

    source = Variants(schema, instances, judge, rng)
    source.draw(narrow=False)    a valid text, at first the given ones; None if none is found

A random value that is known to be valid, preferably a small one, is changed at a random position. Changed values that
are valid are changed further: for a restrictive schema the judge rejects most changes.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from .judge import Judge
from .ordering import Order
from .spelling import respell_number, spell_canonically, spell_freely
from .values import DuplicateKey, Number, Value, build_number, parse_exactly

__all__ = ["Variants", "change_value"]

TRIES = 12
"""Number of successive rejected changes after which `draw` gives up."""
KEPT = 60
"""Maximum number of values that are changed further."""
CHARS = ["a", "Z", "0", " ", "-", "\x7f", "é", "ß", "€", "語", "\u2028", "\ufeff", "😀", "🇺", "\U0010ffff", "\x00",
         "\x1f", "\n", "\t", '"', "\\", "/", "'", "\u0661", "\u00a0", "<", "{", "\x80", "\ud7ff", "\ue000", "\uffff",
         "\udead"]  # fmt: skip
STRINGS = ["", "a", "\x7f", "😀", 'say "no"', "C:\\dir\\", "null", "0", "{}", "ünïcödé", "line\nline", "true", "日本語",
           "  ", "\x00", "2020-02-29", "a@b.cd", "http://a.b/c?d#e", "x" * 40, "👩\u200d👩\u200d👧"]  # fmt: skip
NUMBERS = ["0", "-0", "1", "-1", "2", "10", "100", "0.5", "-0.5", "1.5", "3.14159", "1000000", "9007199254740993",
           "1e3", "1E-3", "2.5e+10", "1e21", "12345678901234567890", "0.1", "0.10", "255", "65536", "1.0"]  # fmt: skip
KEYS = ["extra", "", "x-y", "\x7f", "ключ", "😀", 'a"b', "a\\b", "__proto__", "0", " ", "$ref", "a/b", "Name", "_", "é"]
OTHERS = [None, True, False, "text", "", Number("0"), Number("-1.5e3"), [], {}, [None, ["a"]], {"k": {"": Number("1")}}]


class Variants:
    """Valid texts of one schema. counts: changes "tried" and "kept", verdicts that "differ". differ:
    examples of these.
    """

    def __init__(self, schema: str, instances: Iterable[str], judge: Judge, rng: random.Random) -> None:
        self.judge, self.rng = judge, rng
        self.counts: Counter[str] = Counter()
        self.differ: list[str] = []
        self.values: list[Value] = []
        document = json.loads(schema)
        self.order = Order(document)
        self.names = list(list_declared_names(document))
        self.constants = list(list_constants(parse_constants(schema)))
        self.texts: list[str] = []
        for text in instances:
            if self.valid(text):
                try:
                    self.values.append(parse_exactly(text))
                    self.texts.append(text)
                except (ValueError, DuplicateKey):
                    self.counts["unread"] += 1

    def valid(self, text: str) -> bool:
        """Return whether both verdicts are valid; where they differ, count it and store an example."""
        verdict = self.judge(text)
        if verdict.differ and len(self.differ) < 3:
            self.differ.append(text[:300])
        self.counts["differ"] += verdict.differ
        return verdict.valid

    def draw(self, *, narrow: bool) -> str | None:
        """Return a valid text, canonically spelled if narrow; None if none is found."""
        if not self.values:
            return None
        if self.counts["drawn"] < len(self.values):
            self.counts["drawn"] += 1
            text = self.spell(self.values[self.counts["drawn"] - 1], narrow)
            # Judged again, since in draft 4 the spelling of an integer matters.
            return text if text is not None and self.valid(text) else None
        for _ in range(TRIES):
            size = [1 / (10 + len(repr(value))) for value in self.values]
            value: Value = copy.deepcopy(self.rng.choices(self.values, size)[0])
            for _ in range(self.rng.choice((1, 1, 2, 3))):
                value = change_value(value, self.rng, self.names, self.constants)
            text = self.spell(value, narrow)
            self.counts["tried"] += 1
            if text is None or len(text) > 20_000 or not self.valid(text):
                continue
            self.counts["kept"] += 1
            if len(self.values) < KEPT:
                self.values.append(value)
                self.counts["drawn"] += 1
            return text
        return None

    def spell(self, value: Value, narrow: bool) -> str | None:
        """Return a text of the value."""
        return spell_canonically(self.order(value), self.rng) if narrow else spell_freely(value, self.rng)


def parse_constants(schema: str) -> Any:
    """Parse a schema; numbers are `Number`."""
    try:
        return parse_exactly(schema)
    except (ValueError, DuplicateKey):
        return {}


def list_constants(schema: Any) -> Iterator[Value]:
    """Yield the values of enum, const, default and examples anywhere in a schema."""
    if isinstance(schema, list):
        for item in schema:
            yield from list_constants(item)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("enum", "examples") and isinstance(value, list):
                yield from value[:50]
            elif key in ("const", "default", "example"):
                yield value
            elif key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
                if isinstance(value, Number):
                    yield value
            else:
                yield from list_constants(value)


def list_declared_names(schema: Any) -> dict[str, None]:
    """Return the names in all `properties` of a schema."""
    found: dict[str, None] = {}

    def visit(part: Any) -> None:
        if isinstance(part, list):
            for item in part:
                visit(item)
        elif isinstance(part, dict):
            names = part.get("properties")
            if isinstance(names, dict):
                found.update(dict.fromkeys(names))
            for item in part.values():
                visit(item)

    visit(schema)
    return found


def list_places(value: Value) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of every part of a value."""
    if isinstance(value, list | dict):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, key
            yield from list_places(item)


def change_value(value: Value, rng: random.Random, known: list[str], named: list[Value]) -> Value:
    """Return the value with one change at a random position."""
    inside: list[tuple[Any, Any]] = [(None, None), *list_places(value)]
    container, key = rng.choice(inside)
    old = value if container is None else container[key]
    new = draw_replacement(old, rng, known, named, [c[k] for c, k in inside if c is not None])
    if container is None:
        return new
    container[key] = new
    return value


def draw_replacement(
    old: Value, rng: random.Random, known: list[str], named: list[Value], around: list[Value]
) -> Value:
    """Return a replacement of a value, usually of the same type."""
    chance = rng.random()
    if chance < 0.06 and named:
        return copy.deepcopy(rng.choice(named))
    if chance < 0.12:
        return copy.deepcopy(rng.choice(OTHERS))
    if isinstance(old, str):
        return change_text(old, rng)
    if isinstance(old, Number):
        return change_number(old, rng)
    if isinstance(old, list):
        return change_list(old, rng, around)
    if isinstance(old, dict):
        return change_object(old, rng, known, around)
    return rng.choice((True, False, None))


def change_text(old: str, rng: random.Random) -> str:
    """Insert, remove or replace a character, or return another text."""
    kind, position = rng.randrange(5), rng.randint(0, len(old))
    if kind == 0:
        return old[:position] + rng.choice(CHARS) + old[position:]
    if kind == 1:
        return old[:position] + rng.choice(CHARS) + old[position + 1 :]
    if kind == 2:
        return old[:position] + old[position + 1 :]
    if kind == 3:
        return old[:position] + old[max(0, position - 3) :]
    return rng.choice(STRINGS)


def change_number(old: Number, rng: random.Random) -> Number:
    """Return a near number, a distant one, or another spelling."""
    kind = rng.randrange(6)
    if kind < 2 or len(old.text) > 50 or abs(old.value) > 10**50:
        return respell_number(old, rng)
    if kind == 2:
        return Number(rng.choice(NUMBERS))
    if kind == 3:
        return build_number(old.value + rng.choice((1, -1, 2, 10, -10, 1000, Fraction(1, 10), Fraction(-1, 100))))
    if kind == 4:
        return build_number(old.value * rng.choice((-1, 2, 10, 100, Fraction(1, 10), Fraction(1, 2))))
    return Number(("-" if rng.random() < 0.3 else "") + str(rng.randrange(10 ** rng.randint(1, 18))))


def change_list(old: list[Any], rng: random.Random, around: list[Value]) -> list[Any]:
    """Remove, insert or move an item."""
    new, position = list(old), rng.randint(0, len(old))
    kind = rng.randrange(5)
    if kind == 0:
        del new[position : position + 1]
    elif kind == 1 and old:
        new.insert(position, copy.deepcopy(rng.choice(old)))
    elif kind == 2:
        new.insert(position, copy.deepcopy(rng.choice([*OTHERS, *around[:20]])))
    elif kind == 3:
        rng.shuffle(new)
    else:
        del new[position:]
    return new


def change_object(old: dict[str, Any], rng: random.Random, known: list[str], around: list[Value]) -> dict[str, Any]:
    """Remove or insert a member, declared or not, or shuffle the members."""
    new, kind = dict(old), rng.randrange(5)
    if kind < 2 and new:
        for name in rng.sample(list(new), rng.randint(1, min(len(new), 3))):
            del new[name]
    elif kind == 2:
        return dict(rng.sample(list(new.items()), len(new)))
    else:
        names = [name for name in known if name not in new] if kind == 3 else KEYS
        name = rng.choice(names or KEYS)
        value: Value = copy.deepcopy(rng.choice([*OTHERS, "a", Number("1"), *around[:20]]))
        items = list(new.items())
        items.insert(rng.randint(0, len(items)), (name, value))
        new = dict(items)
    return new
