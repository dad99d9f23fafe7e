"""Strategies that edit well-formed texts and bytes, which reach more code than random characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

__all__ = ["damage_text", "edit_text", "nest_text"]

Data = TypeVar("Data", str, bytes)
ODD = [
    "",
    "\0",
    "\ud800",
    "\u2028",
    "é",
    "😀",
    "0",
    "9" * 30,
    "-",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    '"',
    "\\",
    "\n",
    ",",
    ":",
]


@st.composite
def edit_text(draw: st.DrawFn, whole: st.SearchStrategy[str], pieces: Sequence[str], most: int = 4) -> str:
    """Draw a text with up to `most` spans deleted, doubled, moved, or replaced by one of `pieces` or an
    odd character.
    """
    text = draw(whole)
    for _ in range(draw(st.integers(0, most))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 8)))
        piece = draw(st.sampled_from([*pieces, *ODD]))
        how = draw(st.sampled_from(["delete", "replace", "insert", "double", "move"]))
        if how == "delete":
            text = text[:start] + text[end:]
        elif how == "replace":
            text = text[:start] + piece + text[end:]
        elif how == "insert":
            text = text[:start] + piece + text[start:]
        elif how == "double":
            text = text[:end] + text[start:end] * draw(st.sampled_from([1, 2, 40])) + text[end:]
        else:
            place = draw(st.integers(0, len(text)))
            text = text[:place] + text[start:end] + text[place:]
    return text


@st.composite
def damage_text(draw: st.DrawFn, whole: st.SearchStrategy[bytes], most: int = 4) -> bytes:
    """Draw bytes with up to `most` bytes changed or spans deleted, doubled or cut off."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, most))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(1, 16)))
        how = draw(st.sampled_from(["change", "delete", "double", "cut"]))
        if how == "change":
            data[start:end] = draw(st.binary(min_size=end - start, max_size=end - start))
        elif how == "delete":
            del data[start:end]
        elif how == "double":
            data[end:end] = data[start:end]
        else:
            del data[start:]
    return bytes(data)


def nest_text(opening: str, closing: str, middle: str) -> st.SearchStrategy[str]:
    """Return a strategy of `middle` in a few or very many nested brackets, sometimes without closing ones."""
    depths = st.sampled_from([1, 5, 100, 255, 256, 257, 300, 1_000, 10_000, 100_000])
    return st.builds(
        lambda depth, closed: opening * depth + middle + closing * (depth * closed), depths, st.sampled_from([1, 1, 0])
    )
