"""Railroad diagrams: shapes that know their size and draw themselves as SVG.

Each shape is entered at the left and left at the right, both on its track: it extends `width` along the track, `up`
above and `down` below it. Options are drawn below each other; a repetition has a track that leads back under it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal, Protocol

__all__ = [
    "Box",
    "ShapeChoice",
    "ShapeLoop",
    "ShapeRow",
    "DiagramShape",
    "Skip",
    "Stack",
    "Remark",
    "count_columns",
    "fold_row",
    "draw_track",
]

LETTER = 7.8
"""Width of a character of the monospaced font."""
BOX = 14
"""Half the height of a box."""
GAP = 10
"""Distance between shapes, and radius of curves."""
WIDEST = 860
"""Maximum width of a row before it is broken."""

Kind = Literal["text", "pattern", "terminal", "rule", "none"]


class DiagramShape(Protocol):
    """A shape that can be drawn."""

    @property
    def width(self) -> float: ...
    @property
    def up(self) -> float: ...
    @property
    def down(self) -> float: ...
    def draw(self, x: float, y: float) -> list[str]:
        """Return SVG elements, entered at (x, y) and left at (x + width, y)."""
        ...


def count_columns(text: str) -> int:
    """Return the number of columns of a text in the monospaced font."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def draw_track(*moves: str) -> str:
    """Return a line along the track."""
    return f'<path d="{" ".join(moves)}"/>'


def draw_piece(x: float, y: float, to: float) -> list[str]:
    """Return a straight piece of track, if it is not empty."""
    return [draw_track(f"M{x:g} {y:g}", f"H{to:g}")] if to > x else []


@dataclass(frozen=True, slots=True)
class Skip:
    """The empty shape."""

    width: float = 0
    up: float = 0
    down: float = 0

    def draw(self, x: float, y: float) -> list[str]:
        return []


@dataclass(frozen=True, slots=True)
class Box:
    """A literal, a pattern, or the name of a terminal or rule; link: the id of what it names, or ""."""

    text: str
    kind: Kind
    link: str = ""

    @property
    def width(self) -> float:
        return count_columns(self.text) * LETTER + 20

    @property
    def up(self) -> float:
        return BOX

    @property
    def down(self) -> float:
        return BOX

    def draw(self, x: float, y: float) -> list[str]:
        round_ = 0 if self.kind == "rule" else BOX
        box = (
            f'<g class="{self.kind}"><rect x="{x:g}" y="{y - BOX:g}" width="{self.width:g}" height="{2 * BOX}" '
            f'rx="{round_}"/><text x="{x + self.width / 2:g}" y="{y + 4.5:g}">{escape(self.text)}</text></g>'
        )
        return [f'<a href="#{escape(self.link)}">{box}</a>' if self.link else box]


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark on the track, such as how often something repeats."""

    text: str

    @property
    def width(self) -> float:
        return count_columns(self.text) * 6.6 + 8

    @property
    def up(self) -> float:
        return 8

    @property
    def down(self) -> float:
        return 8

    def draw(self, x: float, y: float) -> list[str]:
        text = f'<text class="words" x="{x + self.width / 2:g}" y="{y + 4:g}">{escape(self.text)}</text>'
        return [text]


@dataclass(frozen=True)
class ShapeRow:
    """Shapes in sequence."""

    items: Sequence[DiagramShape]
    width: float = field(init=False)
    up: float = field(init=False)
    down: float = field(init=False)

    def __post_init__(self) -> None:
        gaps = GAP * max(0, len(self.items) - 1)
        object.__setattr__(self, "width", sum(item.width for item in self.items) + gaps)
        object.__setattr__(self, "up", max((item.up for item in self.items), default=0))
        object.__setattr__(self, "down", max((item.down for item in self.items), default=0))

    def draw(self, x: float, y: float) -> list[str]:
        out: list[str] = []
        for index, item in enumerate(self.items):
            if index:
                out += draw_piece(x, y, x + GAP)
                x += GAP
            out += item.draw(x, y)
            x += item.width
        return out


@dataclass(frozen=True)
class Stack:
    """A row that was broken: its parts below each other, each led back to the left."""

    rows: Sequence[DiagramShape]
    width: float = field(init=False)
    up: float = field(init=False)
    down: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", max(row.width for row in self.rows) + 6 * GAP)
        object.__setattr__(self, "up", self.rows[0].up)
        object.__setattr__(self, "down", self._tops()[-1] + self.rows[-1].down)

    def _tops(self) -> list[float]:
        """Return the heights of the rows' tracks, relative to the first."""
        tops = [0.0]
        for above, below in zip(self.rows, self.rows[1:]):
            tops.append(tops[-1] + above.down + 3 * GAP + below.up)
        return tops

    def draw(self, x: float, y: float) -> list[str]:
        out: list[str] = []
        left, right = x + 2 * GAP, x + self.width - 2 * GAP
        tops = self._tops()
        out += draw_piece(x, y, left)
        for index, (row, top) in enumerate(zip(self.rows, tops)):
            row_y = y + top
            out += row.draw(left, row_y)
            end = left + row.width
            if index + 1 == len(self.rows):
                # The last row goes up again to the exit of the whole shape.
                out += draw_piece(end, row_y, right)
                out.append(
                    draw_track(f"M{right:g} {row_y:g}", f"a{GAP} {GAP} 0 0 0 {GAP} {-GAP}", f"V{y + GAP:g}",
                          f"a{GAP} {GAP} 0 0 1 {GAP} {-GAP}")
                )  # fmt: skip
            else:
                turn = y + tops[index + 1] - self.rows[index + 1].up - 1.5 * GAP
                out.append(
                    draw_track(f"M{end:g} {row_y:g}", f"a{GAP} {GAP} 0 0 1 {GAP} {GAP}", f"V{turn - GAP:g}",
                          f"a{GAP} {GAP} 0 0 1 {-GAP} {GAP}", f"H{left:g}", f"a{GAP} {GAP} 0 0 0 {-GAP} {GAP}",
                          f"V{y + tops[index + 1] - GAP:g}", f"a{GAP} {GAP} 0 0 0 {GAP} {GAP}")
                )  # fmt: skip
        return out


@dataclass(frozen=True)
class ShapeChoice:
    """Alternatives; `main` is on the track, those before it are above, those after it below."""

    options: Sequence[DiagramShape]
    main: int = 0
    width: float = field(init=False)
    up: float = field(init=False)
    down: float = field(init=False)

    def __post_init__(self) -> None:
        tops = self._tops()
        object.__setattr__(self, "width", max(option.width for option in self.options) + 4 * GAP)
        object.__setattr__(self, "up", self.options[0].up - tops[0])
        object.__setattr__(self, "down", tops[-1] + self.options[-1].down)

    def _tops(self) -> list[float]:
        """Return the heights of the options' tracks, relative to the main one."""
        tops = [0.0]
        for above, below in zip(self.options, self.options[1:]):
            tops.append(tops[-1] + max(2 * GAP, above.down + GAP + below.up))
        return [top - tops[self.main] for top in tops]

    def draw(self, x: float, y: float) -> list[str]:
        out: list[str] = []
        left, right = x + 2 * GAP, x + self.width - 2 * GAP
        for top, option in zip(self._tops(), self.options):
            row_y = y + top
            if top:
                sign = 1 if top > 0 else -1
                turn, back = (1, 0) if top > 0 else (0, 1)
                out.append(
                    draw_track(f"M{x:g} {y:g}", f"a{GAP} {GAP} 0 0 {turn} {GAP} {sign * GAP}",
                               f"V{row_y - sign * GAP:g}",
                          f"a{GAP} {GAP} 0 0 {back} {GAP} {sign * GAP}")
                )  # fmt: skip
                out.append(
                    draw_track(f"M{right:g} {row_y:g}", f"a{GAP} {GAP} 0 0 {back} {GAP} {-sign * GAP}",
                          f"V{y + sign * GAP:g}", f"a{GAP} {GAP} 0 0 {turn} {GAP} {-sign * GAP}")
                )  # fmt: skip
            else:
                out += draw_piece(x, y, left) + draw_piece(right, y, right + 2 * GAP)
            out += option.draw(left, row_y)
            out += draw_piece(left + option.width, row_y, right)
        return out


@dataclass(frozen=True)
class ShapeLoop:
    """One or more of `item`, with `between` on the way back."""

    item: DiagramShape
    between: DiagramShape = Skip()
    width: float = field(init=False)
    up: float = field(init=False)
    down: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", max(self.item.width, self.between.width) + 4 * GAP)
        object.__setattr__(self, "up", self.item.up)
        object.__setattr__(self, "down", self._back() + self.between.down)

    def _back(self) -> float:
        """Return the height of the track that leads back, relative to the main one."""
        return max(2 * GAP, self.item.down + GAP + self.between.up)

    def draw(self, x: float, y: float) -> list[str]:
        left, right, back = x + 2 * GAP, x + self.width - 2 * GAP, y + self._back()
        start = left + (right - left - self.item.width) / 2
        out = (
            draw_piece(x, y, start) + self.item.draw(start, y) + draw_piece(start + self.item.width, y, x + self.width)
        )
        middle = left + (right - left - self.between.width) / 2
        out.append(
            draw_track(f"M{right:g} {y:g}", f"a{GAP} {GAP} 0 0 1 {GAP} {GAP}", f"V{back - GAP:g}",
                  f"a{GAP} {GAP} 0 0 1 {-GAP} {GAP}", f"H{middle + self.between.width:g}")
        )  # fmt: skip
        out += self.between.draw(middle, back)
        out.append(
            draw_track(f"M{middle:g} {back:g}", f"H{left:g}", f"a{GAP} {GAP} 0 0 1 {-GAP} {-GAP}", f"V{y + GAP:g}",
                  f"a{GAP} {GAP} 0 0 1 {GAP} {-GAP}")
        )  # fmt: skip
        out.append(f'<path class="arrow" d="M{left - GAP - 4:g} {(y + back) / 2 + 3:g} l4 -6 l4 6"/>')
        return out


def fold_row(items: Sequence[DiagramShape]) -> DiagramShape:
    """Return a row, broken where it would be too wide."""
    rows: list[list[DiagramShape]] = [[]]
    used = 0.0
    for item in items:
        if rows[-1] and used + item.width > WIDEST:
            rows.append([])
            used = 0.0
        rows[-1].append(item)
        used += item.width + GAP
    rows_made = [ShapeRow(tuple(row)) for row in rows]
    if len(rows_made) > 1:
        return Stack(tuple(rows_made))
    return items[0] if len(items) == 1 else rows_made[0]
