"""The lexical state at the end of the beginning of a Python module: code, a comment, or an open string.

Only what is needed to cut off the last token, which may still grow. From Python 3.12 on, the fields of an f-string may
contain its own quotes (PEP 701); before, an f-string is lexed like any other string.
"""

from __future__ import annotations

import re
import sys
from typing import Literal, NamedTuple

__all__ = ["OPERATORS", "LexicalEnd", "find_lexical_end"]

OPERATORS = (
    "**= //= >>= <<= ... != -> := == <= >= += -= *= /= %= @= &= |= ^= ** // << >> "
    "+ - * / % @ & | ^ ~ < > ( ) [ ] { } , : . ; ="
).split()
"""All operators and delimiters, the longer ones first."""
PREFIXES = frozenset("r u b f t br rb fr rf tr rt".split())
NESTED = sys.version_info >= (3, 12)
TOKEN = re.compile(
    r"""(?P<space>[ \t\f]+)
    |(?P<continued>\\\r?\n)
    |(?P<newline>\r\n|\n|\r)
    |(?P<comment>\#[^\r\n]*)
    |(?P<quote>(?P<prefix>[A-Za-z]{0,2})(?P<mark>\"\"\"|'''|"|'))
    |(?P<number>\.?[0-9](?:[eE][+-]|\.|\w)*)
    |(?P<word>[^\W\d]\w*)
    |(?P<operator>"""
    + "|".join(re.escape(one) for one in OPERATORS)
    + r""")
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


class LexicalEnd(NamedTuple):
    """Where a text ends.

    kind: of the token at the end. "string": not closed; "broken": a line break in a string that cannot contain one;
    "line": at the start of a logical line, white space aside. start: of this token, or of the line.
    """

    kind: Literal["space", "comment", "string", "broken", "line", "number", "word", "operator", "other", "continued"]
    start: int


def find_lexical_end(text: str) -> LexicalEnd:
    """Return where a text ends."""
    at, depth, line, kind = 0, 0, 0, "line"
    fresh, start = True, 0
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match is not None
        kind, start, at = str(match.lastgroup), at, match.end()
        if kind in ("prefix", "mark"):
            kind = "quote"
        if kind == "quote" and match["prefix"].lower() not in PREFIXES | {""}:
            kind, at = "word", match.end("prefix")
        if kind == "quote":
            end = skip_string(text, at, match["mark"], match["prefix"].lower())
            if end < 0:
                return LexicalEnd("string" if end == OPEN else "broken", start)
            at, kind = end, "string"
        if kind == "newline" and not depth:
            fresh, line = True, at
        elif kind not in ("space", "newline"):
            fresh = False
        if kind == "operator":
            depth += (match[0] in "([{") - (match[0] in ")]}")
    if fresh:
        return LexicalEnd("line", line)
    if kind == "string" or kind == "newline":
        return LexicalEnd("space", at)  # a closed string, or a line break within brackets: finished
    return LexicalEnd(kind, start)  # type: ignore[arg-type]


OPEN, BROKEN = -1, -2


def skip_string(text: str, at: int, mark: str, prefix: str) -> int:
    """Return the end of a string whose contents begin at `at`; OPEN, or BROKEN if its line ends."""
    formatted = NESTED and ("f" in prefix or "t" in prefix)
    while at < len(text):
        if text.startswith(mark, at):
            return at + len(mark)
        char = text[at]
        if char == "\\":
            at += escape_length(text, at, prefix) if formatted else 2
        elif char in "\r\n" and len(mark) == 1:
            return BROKEN
        elif char == "{" and formatted and not text.startswith("{{", at):
            at = skip_field(text, at + 1, mark)
            if at < 0:
                return at
        else:
            at += 2 if formatted and text.startswith("{{", at) else 1
    return OPEN


def escape_length(text: str, at: int, prefix: str) -> int:
    """Return the length of a backslash escape in an f-string; a brace after a backslash keeps its meaning."""
    if text[at + 1 : at + 2] in ("{", "}"):
        return 1
    named = "r" not in prefix and text.startswith("N{", at + 1)
    return (text.find("}", at) - at + 1 if "}" in text[at:] else len(text) - at) if named else 2


def skip_field(text: str, at: int, mark: str) -> int:
    """Return the end of a replacement field of an f-string, OPEN or BROKEN."""
    depth = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match is not None
        char, at = text[at], match.end()
        if match["mark"] is not None:
            at = skip_string(text, at, match["mark"], match["prefix"].lower())
            if at < 0:
                return at
        elif char in "([{":
            depth += 1
        elif char in ")]}" and depth:
            depth -= 1
        elif char == "}":
            return at
        elif char == ":" and not depth:
            return skip_format(text, match.start() + 1, mark)
    return OPEN


def skip_format(text: str, at: int, mark: str) -> int:
    """Return the end of the format specification of a replacement field, OPEN or BROKEN."""
    while at < len(text):
        if text[at] == "}":
            return at + 1
        if text[at] == "{":
            at = skip_field(text, at + 1, mark)
            if at < 0:
                return at
        elif text.startswith(mark, at):
            return BROKEN
        else:
            at += 1
    return OPEN
