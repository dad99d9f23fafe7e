"""Draw the automaton of a lexer: states in columns by their distance from the start.

A state that accepts a terminal has a second ring, with the name of the terminal under it. Bytes between the same states
are one arrow, labelled as a character class; a multi-byte character is one arrow too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from ...lalr.parser_code import Parser
from ..explanations import format_ranges
from .railroad_shapes import count_columns

__all__ = ["MOST_STATES", "Automaton", "draw_automaton"]

MOST_STATES = 40
"""Maximum number of states of a drawn automaton: larger ones are unreadable."""
ACROSS, DOWN, CLOSE, RADIUS = 150, 84, 56, 17
LONGEST = 18
"""Maximum number of characters of a label."""


@dataclass(frozen=True, slots=True)
class Automaton:
    """SVG elements and their total size."""

    parts: list[str]
    width: float
    height: float


def draw_automaton(parser: Parser, name: dict[int, str]) -> Automaton | None:
    """Return the picture; None if there are too many states. name: names of terminals by number."""
    scanner = parser.scanner
    starts = sorted({int(start) for start in parser.scan.tolist() if start >= 0})
    edges = _edges(parser, starts)
    if edges is None:
        return None
    layers = _layers(starts, edges)
    going = {a for a, _ in edges}  # states without outgoing edges are drawn closer together, below
    layers = [sorted(layer, key=lambda state: state not in going) for layer in layers]
    tall = max(sum(DOWN if state in going else CLOSE for state in layer) for layer in layers)
    coordinates: dict[int, tuple[float, float]] = {}
    for column, layer in enumerate(layers):
        top = 56 + (tall - sum(DOWN if state in going else CLOSE for state in layer)) / 2
        for state in layer:
            coordinates[state] = 70.0 + ACROSS * column, top
            top += DOWN if state in going else CLOSE
    depth = {state: x for x, layer in enumerate(layers) for state in layer}
    parts = [
        part for (a, b), edge_bytes in edges.items() for part in _edge(coordinates, depth, a, b, _label(edge_bytes))
    ]
    for number, start in enumerate(starts):
        x, y = coordinates[start]
        parts.append(f'<path class="edge" d="M{x - 48:g} {y:g} H{x - RADIUS - 2:g}" marker-end="url(#tip)"/>')
        if len(starts) > 1:
            parts.append(f'<text class="label" x="{x - 44:g}" y="{y - 6:g}" text-anchor="start">{number + 1}</text>')
    for state, (x, y) in coordinates.items():
        terminals = sorted({int(t) for t in scanner.accept_table[scanner.accept[state]].tolist() if t >= 0})
        parts.append(f'<circle class="state" cx="{x:g}" cy="{y:g}" r="{RADIUS}"/>')
        if terminals:
            label_text = " / ".join(name[t] for t in terminals)
            parts.append(f'<circle class="accepts" cx="{x:g}" cy="{y:g}" r="{RADIUS - 4}"/>')
            label = label_text if len(label_text) <= LONGEST else label_text[: LONGEST - 1] + "…"
            parts.append(f'<text class="terminal" x="{x:g}" y="{y + RADIUS + 13:g}">{escape(label)}</text>')
        parts.append(f'<text class="number" x="{x:g}" y="{y + 4:g}">{state}</text>')
    return Automaton(parts, 70 + ACROSS * len(layers), 66 + tall)


def _edges(parser: Parser, starts: list[int]) -> dict[tuple[int, int], list[int]] | None:
    """Return the bytes between states, from the start states on; None if there are too many states.

    A character beyond ASCII leads directly to the target of its last byte, as byte 0x80, because nothing is decided
    within it.
    """
    delta = parser.scanner.delta.tolist()
    edges: dict[tuple[int, int], list[int]] = {}
    todo, seen = list(starts), set(starts)
    while todo:
        state = todo.pop(0)
        follow = [(byte, {target}) for byte, target in enumerate(delta[state][:0x80]) if target >= 0]
        for low, high, more in ((0xC2, 0xE0, 1), (0xE0, 0xF0, 2), (0xF0, 0xF5, 3)):
            ends = {target for target in delta[state][low:high] if target >= 0}
            for _ in range(more):
                ends = {target for end in ends for target in delta[end][0x80:0xC0] if target >= 0}
            follow.append((0x80, ends))
        for byte, targets in follow:
            for target in sorted(targets):
                labels = edges.setdefault((state, target), [])
                if byte not in labels:
                    labels.append(byte)
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        if len(seen) > MOST_STATES:
            return None
    return edges


def _layers(starts: list[int], edges: dict[tuple[int, int], list[int]]) -> list[list[int]]:
    """Return the states grouped by their distance from the start in bytes."""
    follow: dict[int, list[int]] = {}
    for a, b in edges:
        follow.setdefault(a, []).append(b)
    layers, seen = [starts], set(starts)
    while True:
        layer = list(dict.fromkeys(b for a in layers[-1] for b in follow.get(a, ()) if b not in seen))
        if not layer:
            return layers
        seen.update(layer)
        layers.append(layer)


def _label(byte_values: list[int]) -> str:
    """Return a label for a set of bytes, in the notation of character classes."""
    printable = [byte for byte in byte_values if 0x20 < byte < 0x7F]
    parts = [format_ranges(printable) if len(printable) < 94 else "any"] if printable else []
    named = {0x20: "space", 0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x0C: "\\f"}
    parts += [part for byte, part in named.items() if byte in byte_values]
    if any(byte >= 0x80 for byte in byte_values):
        parts.append("beyond ASCII")
    if any((byte < 0x20 and byte not in named) or byte == 0x7F for byte in byte_values):
        parts.append("controls")
    text = " ".join(parts)
    if {"space", "\\t", "\\n"} <= set(parts):
        text = " ".join(["blanks", *(part for part in parts if part != "space" and not part.startswith("\\"))])
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _edge(
    coordinates: Mapping[int, tuple[float, float]], depth: dict[int, int], a: int, b: int, label: str
) -> list[str]:
    """Return an arrow: straight to the next column, curved to other columns, a loop to the same state."""
    (x1, y1), (x2, y2) = coordinates[a], coordinates[b]
    if a == b:
        path = f"M{x1 - 8:g} {y1 - RADIUS + 2:g} c-14 -30 30 -30 18 -1"
        at = x1 + 1, y1 - RADIUS - 24
    elif depth[b] == depth[a] + 1:
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        path = (
            f"M{x1 + dx * RADIUS:.1f} {y1 + dy * RADIUS:.1f} L{x2 - dx * (RADIUS + 3):.1f} {y2 - dy * (RADIUS + 3):.1f}"
        )
        at = x1 + (x2 - x1) * 0.56, y1 + (y2 - y1) * 0.56 - 5
    else:
        bow = 26 + 9 * abs(depth[b] - depth[a])
        middle = (x1 + x2) / 2, min(y1, y2) - bow if depth[b] > depth[a] else max(y1, y2) + bow
        side = -1 if depth[b] > depth[a] else 1
        if depth[a] == depth[b]:
            middle, side = (x1 + 46, (y1 + y2) / 2), 0
        path = (
            f"M{x1 + (RADIUS if not side else 0):g} {y1 + side * RADIUS:g} Q{middle[0]:g} {middle[1]:g} "
            f"{x2 + (RADIUS + 2 if not side else 0):g} {y2 + side * (RADIUS + 3):g}"
        )
        at = (middle[0] + (x1 + x2) / 2) / 2, (middle[1] + (y1 + y2) / 2) / 2 + side * 10
    halo = count_columns(label) * 6.2
    return [
        f'<path class="edge" d="{path}" marker-end="url(#tip)"/>',
        f'<rect class="halo" x="{at[0] - halo / 2:.1f}" y="{at[1] - 10:.1f}" width="{halo:.1f}" height="13"/>',
        f'<text class="label" x="{at[0]:.1f}" y="{at[1]:.1f}">{escape(label)}</text>',
    ]
