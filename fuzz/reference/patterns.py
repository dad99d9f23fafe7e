"""Search for ECMA 262 patterns with Python's `regex`, by code points, as JSON Schema requires."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import regex

__all__ = ["NotPortable", "search"]

SPACE = "\\t\\n\\v\\f\\r \\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
CLASSES = {
    "d": "0-9", "w": "A-Za-z0-9_", "s": SPACE,
}  # fmt: skip
SECONDS = 2.0
"""Time limit of a backtracking search; beyond it the verdict is undecided."""


class NotPortable(ValueError):
    """A pattern that this translation does not cover, or a search that takes too long."""


def search(pattern: str, text: str) -> bool:
    """Return whether the pattern is found in the text."""
    try:
        return compiled(pattern).search(text, timeout=SECONDS) is not None
    except TimeoutError:
        raise NotPortable(f"{pattern[:80]} backtracks") from None


@lru_cache(maxsize=1_000)
def compiled(pattern: str) -> Any:
    """Compile a pattern with `regex`."""
    try:
        return regex.compile(translate(pattern), regex.V0)
    except regex.error as error:
        raise NotPortable(f"{pattern[:80]}: {error}") from None


def translate(pattern: str) -> str:
    """Translate escapes and classes of ECMA 262 (with the flag `u`) to the syntax of `regex`."""
    out, at, inside = [], 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            if at + 1 == len(pattern):
                raise NotPortable("a backslash at the end")
            piece, at = escape(pattern, at + 1, inside)
            out.append(piece)
            continue
        if inside:
            inside = char != "]"
            out.append(
                "\\[" if char == "[" else "\\" + char if char in "&~|-" and pattern[at + 1 : at + 2] == char else char
            )
        elif char == "[":
            inside = True
            if pattern.startswith("[]", at):
                raise NotPortable("an empty class")
            if pattern.startswith("[^]", at):
                out.append("[\\s\\S]")
                at, inside = at + 3, False
                continue
            out.append(char)
        else:
            out.append({"$": "\\Z", ".": "[^\\n\\r\\u2028\\u2029]"}.get(char, char))
        at += 1
    return "".join(out)


def escape(pattern: str, at: int, inside: bool) -> tuple[str, int]:
    """Return the translation of the escape whose letter is at index `at`, and its end."""
    char = pattern[at]
    lower = char.lower()
    if lower in CLASSES:
        if char.islower():
            return (CLASSES[lower] if inside else f"[{CLASSES[lower]}]"), at + 1
        if inside:
            return {"D": "\\x00-/:-\\U0010ffff", "W": "\\x00-/:-@\\[-\\^`{-\\U0010ffff"}.get(
                char
            ) or not_space(), at + 1
        return f"[^{CLASSES[lower]}]", at + 1
    if char == "c":
        return f"\\x{ord(pattern[at + 1]) % 32:02x}", at + 2
    if char == "u" and pattern.startswith("{", at + 1):
        end = pattern.index("}", at)
        return f"\\U{int(pattern[at + 2 : end], 16):08x}", end + 1
    if char == "u":
        return f"\\u{pattern[at + 1 : at + 5]}", at + 5
    if lower == "p":
        end = pattern.index("}", at)
        return "\\" + pattern[at : end + 1], end + 1
    if char == "0":
        return "\\x00", at + 1
    if char in "bBfnrtvx" or char in "123456789k":
        return ("\\x08" if char == "b" and inside else "\\" + char), at + 1
    if char.isalpha():
        raise NotPortable(f"\\{char} is not an escape")
    return "\\" + char, at + 1


def not_space() -> str:
    raise NotPortable("\\S within a class")
