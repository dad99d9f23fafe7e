"""A plain pattern for names that are not certain words: what a look-ahead says shortly, without one.

The words are a trie; at each of its nodes a name ends (if that is no word), leaves the trie, or goes on in it. What
follows must be no letter of a name, else the pattern would find `i` in `if`: that is the one look-ahead, one character.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["names_except"]


def names_except(words: Iterable[str], *, first: str, rest: str) -> str:
    """A pattern for [first][rest]* without `words`. first, rest: the content of the brackets; `\\w` or ASCII ranges."""
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
