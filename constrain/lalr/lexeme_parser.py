"""Parse a text lexeme by lexeme, as the engine's parser does, to report where and why it stops.

The kernels decide all continuations at once, byte by byte; this module decides one whole text, in plain Python: the
longest lexeme at each position is fed to the table; indentation follows `lark.indenter.Indenter`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .parser_code import Parser

__all__ = ["END_OF_TEXT", "Lexeme", "Reading", "Stack", "list_accepted", "feed_terminal", "parse_text"]

END_OF_TEXT = 256

Stack = tuple[int, ...]
"""States of the table, from the bottom to the top."""


@dataclass(frozen=True, slots=True)
class Lexeme:
    """Bytes `first` to `last` of a text, recognised as a terminal."""

    first: int
    last: int
    terminal: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of parsing a text.

    lexemes: those that the parser accepted, including ignored ones. stopped: start of the first lexeme that it
    rejected, the length of the text if that is its end; None if the text is accepted. terminal: the terminal of that
    lexeme, None if there is none. stack: the stack before it. inside: whether brackets were open. blocks: why the
    indentation is invalid, or "". fed: the terminals that the parser accepted, up to the end of the text, with their
    spans; empty for those of blocks and of the end.
    """

    lexemes: tuple[Lexeme, ...]
    stopped: int | None
    terminal: int | None
    stack: Stack
    inside: bool = False
    blocks: str = ""
    fed: tuple[Lexeme, ...] = ()


def shift_terminal(parser: Parser, stack: Sequence[int], terminal: int) -> tuple[int, list[int]] | None:
    """Return the effect of a terminal on a stack: how many of its states remain, and the states above them.

    Return None if the terminal is rejected, or if a resolved conflict reduces forever.
    """
    table = parser.table
    remaining, above = len(stack), list[int]()
    for _ in range((len(stack) + 1) * (len(table.left) + len(table.action))):
        act = int(table.action[above[-1] if above else stack[remaining - 1], terminal])
        if act >= 0:
            return (remaining, [*above, act - 1]) if act else None
        rule = -act - 1
        length = int(table.length[rule])
        popped = min(length, len(above))
        del above[len(above) - popped :]
        remaining -= length - popped
        above.append(int(table.goto[above[-1] if above else stack[remaining - 1], table.left[rule]]))
    return None


def feed_terminal(parser: Parser, stack: Stack, terminal: int) -> Stack | None:
    """Return the stack after a terminal, None if it is rejected, or if a resolved conflict reduces forever."""
    effect = shift_terminal(parser, stack, terminal)
    return None if effect is None else (*stack[: effect[0]], *effect[1])


class ParseStack:
    """A mutable parser stack: parsing takes time linear in the length of the text, at any depth of nesting."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.states = [parser.table.start]
        self.changes: list[tuple[int, list[int]]] = []  # since `keep`, by terminal: states that remain, states removed

    def feed(self, terminal: int) -> bool:
        """Feed a terminal. Return whether it is accepted; a rejected one changes nothing."""
        effect = shift_terminal(self.parser, self.states, terminal)
        if effect is None:
            return False
        remaining, above = effect
        self.changes.append((remaining, self.states[remaining:]))
        self.states[remaining:] = above
        return True

    def commit(self) -> None:
        """Commit the terminals fed so far."""
        self.changes.clear()

    def undo(self) -> Stack:
        """Undo the terminals since `commit`, and return the stack."""
        while self.changes:
            remaining, removed = self.changes.pop()
            self.states[remaining:] = removed
        return tuple(self.states)


def list_accepted(parser: Parser, stack: Stack) -> list[int]:
    """Return the terminals that the parser accepts with this stack, including the end of the text (the last one)."""
    row = np.flatnonzero(parser.table.action[stack[-1]]).tolist()
    return [terminal for terminal in row if feed_terminal(parser, stack, terminal) is not None]


def scan_lexeme(parser: Parser, state: int, text: bytes, first: int) -> tuple[int, int] | None:
    """Return the end of the longest lexeme from `first`, and its terminal; None if there is none.

    state: the start state of the scanner.
    """
    scanner, lexeme = parser.scanner, None
    position = first
    while state >= 0:
        after = text[position] if position < len(text) else END_OF_TEXT
        terminal = int(scanner.accept_table[scanner.accept[state], after])
        if terminal >= 0:
            lexeme = position, terminal
        if after == END_OF_TEXT:
            break
        state = int(scanner.delta[state, after])
        position += 1
    return lexeme


def parse_text(parser: Parser, text: bytes) -> Reading:
    """Parse a text from its start."""
    stack = ParseStack(parser)
    position, brackets, columns = 0, 0, [0]
    lexemes: list[Lexeme] = []
    fed: list[Lexeme] = []
    layout = parser.layout

    def stopped(terminal: int | None, blocks: str = "") -> Reading:
        return Reading(tuple(lexemes), position, terminal, stack.undo(), brackets > 0, blocks)

    while position < len(text):
        lexeme = scan_lexeme(parser, int(parser.scan[stack.states[-1]]), text, position)
        if lexeme is None:
            return stopped(None)
        end, terminal = lexeme
        newline = layout is not None and terminal == layout.newline
        if terminal not in parser.ignored and not (newline and brackets):
            if not stack.feed(terminal):
                return stopped(terminal)
            fed.append(Lexeme(position, end, terminal))
            if layout is not None and newline:
                last = text[position:end].rpartition(b"\n")
                column = last[2].count(b" ") + layout.tab * last[2].count(b"\t")
                if not last[1]:
                    return stopped(terminal, "a newline lexeme contains no line end")
                moves = []
                if column > columns[-1]:
                    moves = [layout.indent]
                    columns.append(column)
                while column < columns[-1]:
                    columns.pop()
                    moves.append(layout.dedent)
                if column != columns[-1]:
                    return stopped(terminal, f"column {column + 1} matches no open block")
                for move in moves:
                    if not stack.feed(move):
                        return stopped(move, "a block begins here" if move == layout.indent else "a block ends here")
                    fed.append(Lexeme(end, end, move))
            elif layout is not None:
                brackets += (terminal in layout.opening) - (terminal in layout.closing)
                if brackets < 0:
                    return stopped(terminal, "this bracket closes none that is open")
            stack.commit()
        lexemes.append(Lexeme(position, end, terminal))
        position = end
    ends = [parser.terminals - 1]
    if layout is not None:
        ends = [layout.dedent] * (len(columns) - 1) + ends
    if not all(stack.feed(terminal) for terminal in ends):
        return stopped(None)
    fed += [Lexeme(len(text), len(text), terminal) for terminal in ends]
    return Reading(tuple(lexemes), None, None, stack.undo(), fed=tuple(fed))
