"""Random sentences of a Lark grammar, drawn from the rules and terminals that Lark compiled.

A derivation is drawn rule by rule; beyond a depth only rules with the shortest derivations are used. A terminal is a
random text of its pattern. Ignored blanks are written between tokens. Texts that Lark tokenises differently (two names
that became one) and refuses are discarded, so Lark accepts every sentence.
"""

from __future__ import annotations

import logging
import random
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any
from unittest.mock import patch

from lark import Lark, logger
from lark.exceptions import LarkError
from lark.indenter import PythonIndenter

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_constants
    import sre_parse

from constrain.grammars import Ready

__all__ = ["Maker", "build_parser", "spelling"]

Spell = Callable[[random.Random], str]
PRINTABLE = [chr(code) for code in range(32, 127)]
OTHERS = ["é", "\n", "\t", "漢", "\u00a0", "\U0001f600"]
CLASSES = {
    "CATEGORY_DIGIT": "0123456789",
    "CATEGORY_WORD": "abcxyzABC_019é",
    "CATEGORY_SPACE": " \t\n",
}


class Messages(logging.Handler):
    """A handler that stores the logged messages."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record.getMessage())


@cache
def build_parser(ready: Ready) -> tuple[Lark, list[str]]:
    """Build Lark's parser of a grammar of the library, with the options in its file. Return it and the
    logged messages.
    """
    postlex = PythonIndenter() if ready.indented else None
    messages, level = Messages(), logger.level
    logger.addHandler(messages)
    logger.setLevel(logging.DEBUG)
    try:
        # If interegular is installed, Lark compares all terminals for its warnings, which takes up to half a minute.
        with patch("lark.lexer.has_interegular", False):
            lark = Lark(ready.text, parser="lalr", lexer=ready.lexer, postlex=postlex, debug=True)
    finally:
        logger.removeHandler(messages)
        logger.setLevel(level)
    return lark, messages.kept


class _Texts:
    """Random texts of a pattern of `re`; lookaround is ignored and must be checked by the caller."""

    def __init__(self, pattern: str, flags: frozenset[str]) -> None:
        self.compiled = re.compile(pattern, sum(getattr(re, flag.upper()) for flag in flags))
        self.tree = sre_parse.parse(pattern, self.compiled.flags)

    def draw(self, rng: random.Random) -> str:
        for _ in range(2000):
            text = "".join(self._sequence(self.tree, rng))
            if self.compiled.fullmatch(text):
                return text
        raise AssertionError(f"no text found for {self.compiled.pattern}")

    def _sequence(self, items: Any, rng: random.Random) -> Iterator[str]:
        for op, value in items:
            yield from self._item(op, value, rng)

    def _item(self, op: Any, value: Any, rng: random.Random) -> Iterator[str]:
        name = str(op)
        if name == "LITERAL":
            yield chr(value)
        elif name == "NOT_LITERAL":
            yield rng.choice([char for char in self._alphabet(rng) if ord(char) != value])
        elif name == "ANY":
            yield rng.choice(PRINTABLE)
        elif name == "IN":
            yield self._one_of(value, rng)
        elif name == "BRANCH":
            yield from self._sequence(rng.choice(value[1]), rng)
        elif name == "SUBPATTERN":
            yield from self._sequence(value[3], rng)
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, items = value
            most = low + 4 if high == sre_constants.MAXREPEAT else int(high)
            for _ in range(min(most, low + int(rng.expovariate(0.8)))):
                yield from self._sequence(items, rng)
        else:
            assert name in ("ASSERT", "ASSERT_NOT", "AT"), name

    def _alphabet(self, rng: random.Random) -> list[str]:
        return OTHERS if rng.random() < 0.05 else PRINTABLE

    def _one_of(self, members: Any, rng: random.Random) -> str:
        if str(members[0][0]) == "NEGATE":
            wrong = re.compile("[" + "".join(_spelled(member) for member in members[1:]) + "]")
            for _ in range(200):
                char = rng.choice(self._alphabet(rng))
                if not wrong.match(char):
                    return char
        op, value = rng.choice(members)
        if str(op) == "RANGE":
            low, high = value
            return chr(rng.randint(low, min(high, max(low, 0x2FF))))
        if str(op) == "CATEGORY":
            return rng.choice(CLASSES[str(value)])
        return chr(value)


def _spelled(member: Any) -> str:
    op, value = member
    if str(op) == "RANGE":
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    if str(op) == "CATEGORY":
        return {
            "DIGIT": r"\d",
            "WORD": r"\w",
            "SPACE": r"\s",
            "NOT_DIGIT": r"\D",
            "NOT_WORD": r"\W",
            "NOT_SPACE": r"\S",
        }[str(value).removeprefix("CATEGORY_")]
    return re.escape(chr(value))


def spelling(*words: str) -> Spell:
    """Return a function that draws one of these words, for names that only a schema defines."""
    return lambda rng: rng.choice(words)


class Maker:
    """Draws sentences. spell: functions that write certain terminals, instead of a random text of their pattern."""

    def __init__(self, ready: Ready, spell: Mapping[str, Spell] = {}, depth: int = 12) -> None:
        self.lark, _ = build_parser(ready)
        self.depth = depth
        self.indented = ready.indented
        self.rules: dict[str, list[Any]] = {}
        for rule in self.lark.rules:
            self.rules.setdefault(rule.origin.name, []).append(rule)
        ignored = set(self.lark.ignore_tokens)
        self.spell: dict[str, Spell] = {}
        for terminal in self.lark.terminals:
            pattern = terminal.pattern
            if terminal.name in spell:
                self.spell[terminal.name] = spell[terminal.name]
            elif pattern.type == "str":
                self.spell[terminal.name] = spelling(pattern.value)
            else:
                self.spell[terminal.name] = _Texts(pattern.value, pattern.flags).draw
        blank = [name for name in ignored if any(self._is(name, text) for text in (" ",))]
        self.between = " " if blank else ""
        self.heights = self._heights()
        self.lowest = {name: self._lowest(rules) for name, rules in self.rules.items()}

    def _is(self, name: str, text: str) -> bool:
        pattern = next(terminal.pattern for terminal in self.lark.terminals if terminal.name == name)
        return re.fullmatch(pattern.to_regexp(), text) is not None

    def _heights(self) -> dict[str, int]:
        """Compute the minimum depth of a derivation of each rule; every rule must have one."""
        heights: dict[str, int] = {}
        grown = True
        while grown:
            grown = False
            for name, rules in self.rules.items():
                best = min((self._height(rule, heights) for rule in rules), default=10**9)
                if best < heights.get(name, 10**9):
                    heights[name] = best
                    grown = True
        return heights

    @staticmethod
    def _height(rule: Any, heights: Mapping[str, int]) -> int:
        return 1 + max(
            (0 if symbol.is_term else heights.get(symbol.name, 10**9) for symbol in rule.expansion), default=0
        )

    def _lowest(self, rules: list[Any]) -> list[Any]:
        """Return the rules with derivations of the minimum depth."""
        heights = [self._height(rule, self.heights) for rule in rules]
        return [rule for rule, height in zip(rules, heights) if height == min(heights)]

    def unproductive(self) -> list[str]:
        """Return the rules without a text."""
        return sorted(set(self.rules) - set(self.heights))

    def types(self, rng: random.Random) -> list[str]:
        """Return the names of the terminals of a random derivation."""
        stack: list[tuple[Any, int]] = [("start", 0)]
        out: list[str] = []
        while stack:
            symbol, depth = stack.pop()
            if isinstance(symbol, str):
                rules = self.lowest if depth > self.depth or len(stack) > 60 else self.rules
                rule = rng.choice(rules[symbol])
                for child in reversed(rule.expansion):
                    stack.append((child if child.is_term else child.name, depth + 1))
            else:
                out.append(symbol.name)
        return out

    def made(self, rng: random.Random) -> str:
        """Return the text of a random derivation, which Lark may refuse."""
        indent, out = 0, []
        types = self.types(rng)
        for place, name in enumerate(types):
            if name == "_INDENT":
                indent += 1
                out.append("  ")
            elif name == "_DEDENT":
                indent -= 1
                out.append(f"\n{'  ' * indent}")
            elif name == "_NEWLINE" and self.indented:
                # The following dedents write the indentation of the next line.
                if place + 1 < len(types) and types[place + 1] == "_DEDENT":
                    continue
                out.append("\n" + "  " * indent)
            else:
                out.append(self.spell[name](rng))
                out.append(self.between if rng.random() < 0.9 else "")
        return "".join(out)

    def draw(self, rng: random.Random, count: int, tries: int = 40) -> list[str]:
        """Return `count` sentences that Lark accepts; raise AssertionError if fewer than one in `tries`
        texts is accepted.
        """
        found: list[str] = []
        for _ in range(count * tries):
            text = self.made(rng)
            try:
                self.lark.parse(text)
            except (LarkError, AssertionError, IndexError):  # the Indenter's ways to refuse
                continue
            found.append(text)
            if len(found) == count:
                return found
        raise AssertionError(f"{len(found)} of {count * tries} random texts are sentences; the last was {text!r}")
