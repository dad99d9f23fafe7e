"""Partial values: the largest valid prefix of a JSON text as Python objects, while the text is being written.

    ["ab", {"x": 12, "y": [tru      ->      ["ab", {"x": 12, "y": []}]

The parser is a pushdown automaton that is fed with pieces of the text, however they are cut. A piece costs time in
proportion to its length, so a whole stream takes linear time, and nothing recurses, whatever the nesting. It shows:

- arrays and objects from their opening bracket on;
- strings as far as they are written, but never a part of an escape, nor the first half of a surrogate pair, which the
  second half may still complete;
- numbers once a character after them shows that they are complete, or `finish` says so;
- true, false and null when they are complete;
- a member of an object once there is something to show of its value.

A later value of an equal key replaces the earlier one, as in `json.loads`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, ClassVar

from ..base.errors import ArgumentError, check_type
from ..base.json_numbers import parse_finite, parse_integer

__all__ = ["NOTHING", "PartialJson"]


class Nothing(Enum):
    """The type of NOTHING."""

    NOTHING = auto()

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = Nothing.NOTHING
"""What a text shows of which no value has begun."""


class Expected(Enum):
    """What comes next in the text."""

    VALUE = "a value"
    ITEM_OR_END = "an item or ]"
    KEY_OR_END = "a key or }"
    KEY = "a key"
    COLON = ":"
    COMMA_OR_END = ", or a closing bracket"
    STRING = "a character of a string"
    NUMBER = "a character of a number"
    LITERAL = "true, false or null"
    END = "the end"


SPACE = re.compile(r"[ \t\n\r]*")
PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
DIGITS = re.compile(r"[-+0-9.eE]*")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
LITERALS = {"true": True, "false": False, "null": None}
ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
HEX = re.compile(r"\\u[0-9a-fA-F]*")


class PartialJson:
    """A JSON text that is being written, and what it shows so far.

    Parameters
    ----------
    parse_fraction : callable
        Converts numbers with a fraction or exponent; by default to floats, or Decimals beyond the range of float.
        Integers are ints of any length.

    Attributes
    ----------
    is_finished : bool
        Whether the value is complete. A number that is the whole text is complete only after `finish`.
    changes : int
        How often what is shown has changed.
    completed : int
        How many strings that are values have ended. The closing quote changes nothing that is shown.
    """

    def __init__(self, parse_fraction: Callable[[str], Any] = parse_finite) -> None:
        self.parse_fraction = parse_fraction
        self.changes = self.completed = 0
        self._root: Any = NOTHING
        self._open: list[Any] = []  # the open arrays and objects, outermost first
        self._keys: list[str] = []  # of each open object, the key of its last member
        self._expected = Expected.VALUE
        self._is_key = False  # whether the open string is a key
        self._token = ""  # the number, literal or escape that is not complete
        self._high = ""  # the first half of a surrogate pair
        self._parts: list[str] = []  # the open string
        self._position = 0

    @property
    def is_finished(self) -> bool:
        """Whether the value is complete."""
        return self._expected is Expected.END

    @property
    def value(self) -> Any:
        """What the text shows so far; NOTHING if no value has begun.

        Its open arrays and objects are those that the parser extends when it is fed: copy them, or take `snapshot`, to
        keep what they show now. The time is proportional to the length of an open string, and otherwise constant.
        """
        if self._expected is Expected.STRING and not self._is_key:
            self._replace("".join(self._parts))
        return self._root

    def snapshot(self) -> Any:
        """Return what the text shows so far, independent of the parser: open arrays and objects are copied, finished
        parts shared. The time is proportional to the number of items of the open arrays and objects.
        """
        copied, inner = self.value, None
        for container, part in zip(reversed(self._open), reversed([*self._path_parts(), None])):
            fresh = container.copy()
            if inner is not None:
                fresh[part] = inner
            copied = inner = fresh
        return copied

    def open_path(self) -> tuple[str | int, ...] | None:
        """Return the path, by keys and indices, to the innermost value that is shown and not finished; None if there is
        none. Every shown value that is not on the path is finished. The time is proportional to the nesting.
        """
        if self.is_finished or self._root is NOTHING:
            return None
        within_string = self._expected is Expected.STRING and not self._is_key
        parts = self._path_parts() if self._open else []
        if within_string and self._open:
            parts.append(self._last_part(self._open[-1], self._keys[-1] if self._keys else ""))
        return tuple(parts)

    def feed(self, text: str) -> None:
        """Append a piece of the text.

        Raises
        ------
        TypeError
            If it is not a str.
        ArgumentError
            If the text is not the beginning of a JSON text; the parser is of no use afterwards.
        """
        check_type("text", text, str, "give a piece of a JSON text")
        at = 0
        while at < len(text):
            before = at
            at = self._STEPS[self._expected](self, text, at)
            self._position += at - before

    def finish(self) -> None:
        """Declare that the text has ended, which completes a number that is all of it.

        Raises
        ------
        ArgumentError
            If the text is not complete.
        """
        if self._expected is Expected.NUMBER and not self._open:
            self._end_number()
        if not self.is_finished:
            raise self._fault("the text ends")

    # ---- places

    def _path_parts(self) -> list[str | int]:
        """Return the key or index by which each open array or object but the innermost holds the next one."""
        keys, parts = iter(self._keys), list[str | int]()
        for container in self._open:
            key = next(keys) if isinstance(container, dict) else ""
            parts.append(self._last_part(container, key))
        return parts[:-1]

    @staticmethod
    def _last_part(container: Any, key: str) -> str | int:
        """Return the key or index of the last item of a container."""
        return key if isinstance(container, dict) else len(container) - 1

    def _place(self, value: Any) -> None:
        """Show a new value at the current place."""
        self.changes += 1
        if not self._open:
            self._root = value
        elif isinstance(self._open[-1], list):
            self._open[-1].append(value)
        else:
            self._open[-1][self._keys[-1]] = value

    def _replace(self, value: Any) -> None:
        """Replace the value that was shown last at the current place."""
        if not self._open:
            self._root = value
        elif isinstance(self._open[-1], list):
            self._open[-1][-1] = value
        else:
            self._open[-1][self._keys[-1]] = value

    def _end_value(self) -> None:
        self._expected = Expected.COMMA_OR_END if self._open else Expected.END

    def _fault(self, what: str) -> ArgumentError:
        return ArgumentError(
            f"this is not JSON: at character {self._position} {what} instead of {self._expected.value}"
        )

    # ---- steps: each consumes at least one character from `at` on, and returns the index of the next one

    def _step_structure(self, text: str, at: int) -> int:
        """Consume white space and one character outside of strings, numbers and literals."""
        at = SPACE.match(text, at).end()  # type: ignore[union-attr]
        if at < len(text):
            expected, char = self._expected, text[at]
            if expected in (Expected.VALUE, Expected.ITEM_OR_END) and char != "]":
                return self._begin_value(text, at)
            if expected in (Expected.KEY, Expected.KEY_OR_END) and char == '"':
                self._is_key, self._parts, self._expected = True, [], Expected.STRING
            elif expected is Expected.COLON and char == ":":
                self._expected = Expected.VALUE
            elif expected is Expected.COMMA_OR_END and char == ",":
                self._expected = Expected.VALUE if isinstance(self._open[-1], list) else Expected.KEY
            else:
                self._close(char)
            at += 1
        return at

    def _close(self, char: str) -> None:
        """Close the innermost array or object."""
        after_item = self._expected is Expected.COMMA_OR_END
        if char == "]" and (after_item or self._expected is Expected.ITEM_OR_END) and isinstance(self._open[-1], list):
            self._open.pop()
        elif char == "}" and (after_item or self._expected is Expected.KEY_OR_END) and isinstance(self._open[-1], dict):
            self._open.pop()
            self._keys.pop()
        else:
            raise self._fault(f"is {char!r}")
        self._end_value()

    def _begin_value(self, text: str, at: int) -> int:
        """Begin a value. A number or literal consumes nothing yet but is begun."""
        char = text[at]
        if char == '"':
            self._place("")
            self._is_key, self._parts, self._expected = False, [], Expected.STRING
        elif char == "[":
            self._begin_container([], Expected.ITEM_OR_END)
        elif char == "{":
            self._begin_container({}, Expected.KEY_OR_END)
            self._keys.append("")
        elif char in "-0123456789":
            self._token, self._expected = char, Expected.NUMBER
        elif char in "tfn":
            self._token, self._expected = char, Expected.LITERAL
        else:
            raise self._fault(f"is {char!r}")
        return at + 1

    def _begin_container(self, container: Any, expected: Expected) -> None:
        self._place(container)
        self._open.append(container)
        self._expected = expected

    def _step_number(self, text: str, at: int) -> int:
        """Consume the characters of a number; the first other one completes it."""
        end = DIGITS.match(text, at).end()  # type: ignore[union-attr]
        self._token += text[at:end]
        if end < len(text):
            self._end_number()
        return end

    def _end_number(self) -> None:
        """Show the number that is complete."""
        match = NUMBER.fullmatch(self._token)
        if match is None:
            raise self._fault(f"is {self._token[:40]!r}")
        is_integer = match[1] is None and match[2] is None
        self._place(parse_integer(self._token) if is_integer else self.parse_fraction(self._token))
        self._token = ""
        self._end_value()

    def _step_literal(self, text: str, at: int) -> int:
        """Consume one character of true, false or null."""
        self._token += text[at]
        if self._token in LITERALS:
            self._place(LITERALS[self._token])
            self._token = ""
            self._end_value()
        elif not any(word.startswith(self._token) for word in LITERALS):
            raise self._fault(f"is {self._token!r}")
        return at + 1

    def _step_string(self, text: str, at: int) -> int:
        """Consume characters of a string, a character of an escape, or the closing quote."""
        if self._token:
            return self._step_escape(text[at], at)
        end = PLAIN.match(text, at).end()  # type: ignore[union-attr]
        if end > at:
            self._write(text[at:end])
        if end == len(text):
            return end
        if text[end] == "\\":
            self._token = "\\"
        elif text[end] == '"':
            self._end_string()
        else:
            raise self._fault(f"is the control character {text[end]!r}")
        return end + 1

    def _write(self, text: str) -> None:
        """Append characters to the open string, and the half of a pair before them, which stays alone."""
        self._parts.append(self._high + text)
        self._high = ""
        self.changes += not self._is_key

    def _step_escape(self, char: str, at: int) -> int:
        """Consume a character of an escape."""
        self._token += char
        if self._token[1] in ESCAPES:
            self._write(ESCAPES[char])
            self._token = ""
        elif HEX.fullmatch(self._token) is None:
            raise self._fault(f"is {self._token!r}")
        elif len(self._token) == 6:
            code, self._token = int(self._token[2:], 16), ""
            if self._high and 0xDC00 <= code < 0xE000:
                pair = 0x10000 + (ord(self._high) - 0xD800 << 10) + (code - 0xDC00)
                self._high = ""
                self._write(chr(pair))
            elif 0xD800 <= code < 0xDC00:
                if self._high:
                    self._write("")
                self._high = chr(code)
            else:
                self._write(chr(code))
        return at + 1

    def _end_string(self) -> None:
        """Complete the open string, which is a key or a value."""
        if self._high:
            self._write("")
        text, self._parts = "".join(self._parts), []
        if self._is_key:
            self._keys[-1], self._expected = text, Expected.COLON
            self._is_key = False
        else:
            self._replace(text)
            self.completed += 1
            self._end_value()

    _STEPS: ClassVar[dict[Expected, Callable[[PartialJson, str, int], int]]] = {
        **dict.fromkeys(Expected, _step_structure), Expected.NUMBER: _step_number, Expected.LITERAL: _step_literal,
        Expected.STRING: _step_string,
    }  # fmt: skip
