"""A text read lexeme by lexeme, as the machine's parser does it, to say where and why it stops.

What the kernels decide byte by byte for all continuations at once is here decided for one whole text, in plain Python:
the longest lexeme from each place, fed to the table; indentation as `lark.indenter.Indenter`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..automata.parser import Parser

__all__ = ["END_OF_TEXT", "Lexeme", "Reading", "Stack", "accepted", "fed", "parse"]

END_OF_TEXT = 256

Stack = tuple[int, ...]
"""States of the table, the first at the bottom."""


@dataclass(frozen=True, slots=True)
class Lexeme:
    """Bytes first to last of a text, taken for a terminal."""

    first: int
    last: int
    terminal: int


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a text was read.

    lexemes: those that the parser took, ignored ones too. stopped: where the first begins that it did not take, the
    text's length if it is its end; None: the text is accepted. terminal: what that was taken for, None if for nothing.
    stack: before it. inside: whether brackets were open. blocks: why the layout stopped it, or "".
    """

    lexemes: tuple[Lexeme, ...]
    stopped: int | None
    terminal: int | None
    stack: Stack
    inside: bool = False
    blocks: str = ""


def fed(parser: Parser, stack: Stack, terminal: int) -> Stack | None:
    """The stack after a terminal, None if it is refused; also where a resolved conflict reduces without end."""
    table = parser.table
    for _ in range((len(stack) + 1) * (len(table.left) + len(table.action))):
        act = int(table.action[stack[-1], terminal])
        if act >= 0:
            return (*stack, act - 1) if act else None
        rule = -act - 1
        stack = stack[: len(stack) - int(table.length[rule])]
        stack = (*stack, int(table.goto[stack[-1], table.left[rule]]))
    return None


def accepted(parser: Parser, stack: Stack) -> list[int]:
    """The terminals that the parser takes with this stack, the end of the text (the last one) among them."""
    row = np.flatnonzero(parser.table.action[stack[-1]]).tolist()
    return [terminal for terminal in row if fed(parser, stack, terminal) is not None]


def lexeme(parser: Parser, state: int, text: bytes, first: int) -> tuple[int, int] | None:
    """Where the longest lexeme from `first` ends, and its terminal, for a scanner that starts in `state`."""
    scanner, found = parser.scanner, None
    place = first
    while state >= 0:
        after = text[place] if place < len(text) else END_OF_TEXT
        terminal = int(scanner.verdicts[scanner.accept[state], after])
        if terminal >= 0:
            found = place, terminal
        if after == END_OF_TEXT:
            break
        state = int(scanner.delta[state, after])
        place += 1
    return found


def parse(parser: Parser, text: bytes) -> Reading:
    """Reads a text from its start."""
    stack: Stack = (parser.table.start,)
    place, brackets, columns = 0, 0, [0]
    lexemes: list[Lexeme] = []
    layout = parser.layout

    def stopped(terminal: int | None, blocks: str = "") -> Reading:
        return Reading(tuple(lexemes), place, terminal, stack, brackets > 0, blocks)

    while place < len(text):
        found = lexeme(parser, int(parser.scan[stack[-1]]), text, place)
        if found is None:
            return stopped(None)
        end, terminal = found
        newline = layout is not None and terminal == layout.newline
        if terminal not in parser.ignored and not (newline and brackets):
            after = fed(parser, stack, terminal)
            if after is None:
                return stopped(terminal)
            if layout is not None and newline:
                last = text[place:end].rpartition(b"\n")
                column = last[2].count(b" ") + layout.tab * last[2].count(b"\t")
                if not last[1]:
                    return stopped(terminal, "a lexeme that ends a line has no end of a line in it")
                moves = []
                if column > columns[-1]:
                    moves = [layout.indent]
                    columns.append(column)
                while column < columns[-1]:
                    columns.pop()
                    moves.append(layout.dedent)
                if column != columns[-1]:
                    return stopped(terminal, f"column {column + 1} is that of no block that is open")
                for move in moves:
                    moved = fed(parser, after, move)
                    if moved is None:
                        return stopped(move, "a block begins here" if move == layout.indent else "a block ends here")
                    after = moved
            elif layout is not None:
                brackets += (terminal in layout.opening) - (terminal in layout.closing)
                if brackets < 0:
                    return stopped(terminal, "this bracket was never opened")
            stack = after
        lexemes.append(Lexeme(place, end, terminal))
        place = end
    ended: Stack | None = stack
    for _ in columns[1:]:
        assert layout is not None
        ended = fed(parser, ended, layout.dedent) if ended is not None else None
    if ended is None or fed(parser, ended, parser.terminals - 1) is None:
        return stopped(None)
    return Reading(tuple(lexemes), None, None, stack)
