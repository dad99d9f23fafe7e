"""Edits of a text, and the paths of a search from which they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Edit", "count_edits", "list_edits"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One replaced piece of a text.

    Attributes
    ----------
    position : int
        Offset in the original text, in characters.
    removed, inserted : str
        The characters that stood there, and those that now do. One of them is empty for an insertion or a deletion.
    """

    position: int
    removed: str
    inserted: str

    def __str__(self) -> str:
        if not self.removed:
            return f"insert {self.inserted!r} at {self.position}"
        if not self.inserted:
            return f"delete {self.removed!r} at {self.position}"
        return f"replace {self.removed!r} by {self.inserted!r} at {self.position}"


def list_edits(steps: Sequence[tuple[str, str]]) -> tuple[Edit, ...]:
    """Return the edits of an alignment, adjacent ones merged.

    steps: pairs of an original character and the one in its place, in order; "" for none. Equal characters are kept.
    """
    found: list[Edit] = []
    position = 0
    joined = False
    for old, new in steps:
        if old == new:
            joined = False
        elif joined:
            last = found[-1]
            found[-1] = Edit(last.position, last.removed + old, last.inserted + new)
        else:
            found.append(Edit(position, old, new))
            joined = True
        position += len(old)
    return tuple(found)


def count_edits(old: str, new: str) -> int:
    """Return the Levenshtein distance: the least number of characters to insert, delete and replace.

    By the bit-parallel algorithm of Hyyrö (2003), with one number of len(new) bits for a row of the matrix.
    """
    if not new:
        return len(old)
    matches: dict[str, int] = {}
    for place, character in enumerate(new):
        matches[character] = matches.get(character, 0) | 1 << place
    last, full = 1 << (len(new) - 1), (1 << len(new)) - 1
    greater, less, distance = full, 0, len(new)  # where a row grows and falls by one from column to column
    for character in old:
        equal = matches.get(character, 0)
        diagonal = (((equal & greater) + greater) ^ greater) | equal | less
        rises, falls = less | ~(diagonal | greater) & full, greater & diagonal
        distance += bool(rises & last) - bool(falls & last)
        rises, falls = rises << 1 | 1, falls << 1
        greater, less = (falls | ~(diagonal | rises)) & full, rises & diagonal & full
    return distance
