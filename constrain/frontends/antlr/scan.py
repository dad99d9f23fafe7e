"""The tokens of an ANTLR 4 grammar, with their places; comments and white space are left out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import GrammarError

__all__ = ["Word", "scan"]

PARTS = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<text>'(?:\\.|[^'\\\n])*')
    |(?P<set>\[(?:\\.|[^\]\\])*\])
    |(?P<name>[^\W\d]\w*)
    |(?P<mark>->|\.\.|\+=|::|[:;|()?*+~.=,@{}\#<>])
    |(?P<number>\d+)""",
    re.X | re.S,
)


@dataclass(frozen=True, slots=True)
class Word:
    """kind: name, text ('...'), set ([...]), mark, number, block ({...}), end. place: offset in the grammar."""

    kind: str
    text: str
    place: int


def scan(source: str) -> list[Word]:
    """All tokens and an end. GrammarError where no token begins."""
    out: list[Word] = []
    place = 0
    while place < len(source):
        found = PARTS.match(source, place)
        if found is None:
            raise GrammarError(f"{source[place]!r} begins nothing in an ANTLR grammar", source=source, position=place)
        kind = found.lastgroup or ""
        end = found.end()
        if found[0] == "{":
            kind, end = "block", block_end(source, place)
        if kind != "space":
            out.append(Word(kind, source[place:end], place))
        place = end
    return [*out, Word("end", "", len(source))]


def block_end(source: str, place: int) -> int:
    """Where what { opens is closed, whatever strings are inside."""
    depth = 0
    for found in re.compile(r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|[{}]""", re.S).finditer(
        source, place
    ):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    raise GrammarError("this { is never closed", source=source, position=place, hint="Close it with }.")
