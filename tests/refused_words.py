"""Build a pattern of names except some words, with a lookahead of one character only.

The words form a trie; at each node a name ends (if the node is not a word), leaves the trie, or continues in it. The
name must not be followed by a letter of a name, else the pattern would match `i` in `if`, hence the lookahead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["names_except"]


def names_except(words: Iterable[str], *, first: str, rest: str) -> str:
    """Return a pattern of [first][rest]* except `words`. first, rest: content of the brackets; `\\w` or
    ASCII ranges.
    """
    trie: dict[str, Any] = {}
    for word in words:
        node = trie
        for char in word:
            node = node.setdefault(char, {})
        node[""] = {}
    return f"(?:{_branches(trie, first, rest)})(?![{rest}])"


def _branches(node: dict[str, Any], letters: str, rest: str) -> str:
    inside = sorted(char for char in node if char)
    ways = [f"[{_less(letters, inside)}][{rest}]*"]
    for char in inside:
        child = node[char]
        if set(child) == {""}:
            ways.append(f"{char}[{rest}]+")
        else:
            end = "" if "" in child else "?"
            ways.append(f"{char}(?:{_branches(child, rest, rest)}){end}")
    return "|".join(ways)


def _less(letters: str, gone: list[str]) -> str:
    r"""`letters` without some: `\w` becomes `^\W...`, ranges of ASCII are cut."""
    if "\\w" in letters or "\\W" in letters:
        return ("^\\W" if letters == "\\w" else letters) + "".join(gone)
    chars: set[int] = set()
    place = 0
    while place < len(letters):
        if letters[place + 1 : place + 2] == "-" and place + 2 < len(letters):
            chars |= set(range(ord(letters[place]), ord(letters[place + 2]) + 1))
            place += 3
        else:
            chars.add(ord(letters[place]))
            place += 1
    kept = sorted(chars - {ord(char) for char in gone})
    out = ""
    for code in kept:
        if code - 1 in kept and code + 1 in kept:
            continue
        out += ("-" if code - 1 in kept and code - 2 in kept else "") + chr(code)
    return out
