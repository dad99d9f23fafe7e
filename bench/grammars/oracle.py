"""Lark's verdict on a text, and on many edits of it without reading all of it again.

Before each lexeme of a text the place, the parser's stack and the Indenter's levels are noted. After an edit Lark goes
on from the last note that the edit cannot have changed, and stops where place and state are those of the unedited text
again: from there on its verdict is known. Lexer, Indenter and table are Lark's own, driven as Lark drives them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import lark.lexer
from lark import Lark, Token
from lark.exceptions import LarkError
from lark.indenter import PythonIndenter
from lark.lexer import LexerState, LineCounter, TextSlice
from lark.parsers.lalr_parser_state import ParseConf, ParserState

from .edits import Edit

__all__ = ["REFUSALS", "Oracle", "Trace", "build_parser_of"]

REFUSALS = (LarkError, AssertionError, IndexError)
"""Lark's own errors, and the two other ways in which its Indenter refuses."""


def build_parser_of(text: str, start: str, lexer: str, indented: bool) -> Lark:
    """Lark's parser. Where interegular is installed Lark looks for terminals that collide: minutes, and no verdict."""
    found, lark.lexer.has_interegular = lark.lexer.has_interegular, False
    try:
        indenter = PythonIndenter() if indented else None
        return Lark(text, parser="lalr", start=start, lexer=lexer, postlex=indenter)  # type: ignore[arg-type]
    finally:
        lark.lexer.has_interegular = found


class Oracle:
    """Lark's LALR parser of a grammar. indented: with its PythonIndenter."""

    def __init__(self, text: str, start: str, lexer: str, indented: bool) -> None:
        self.lark = build_parser_of(text, start, lexer, indented)
        self.start = start
        self.indented = indented

    def accepts(self, text: bytes) -> bool:
        """Return whether Lark parses the text; one that is not UTF-8 is no text."""
        try:
            self.lark.parse(text.decode())
        except (UnicodeDecodeError, *REFUSALS):
            return False
        return True

    def trace(self, text: bytes) -> Trace:
        """Return a trace of a text that Lark accepts, which judges edits of it."""
        return Trace(self, text)


@dataclass(frozen=True, slots=True)
class Note:
    """Where Lark was before a lexeme: the character, the parser's stack, the open blocks, the open brackets."""

    position: int
    stack: tuple[Any, ...]
    levels: tuple[int, ...]
    brackets: int


class _Known(Exception):
    """Place and state are those of the unedited text."""


class Trace:
    """Notes on a text that Lark accepts."""

    def __init__(self, oracle: Oracle, text: bytes) -> None:
        self.text = text
        self.characters = text.decode()
        frontend = oracle.lark.parser
        self.indented = oracle.indented
        self.lexer = frontend.lexer.lexer if self.indented else frontend.lexer
        self.table = ParseConf(frontend.parser._parse_table, {}, oracle.start)  # no callbacks: no tree is built
        self.notes: list[Note] = []
        self._run(self.characters, None, 0)
        self.positions = [note.position for note in self.notes]
        self.known = dict(zip(self.positions, self.notes))

    def accepts(self, edit: Edit) -> bool:
        """Return whether Lark accepts the text with this edit."""
        try:
            edited = edit.of(self.text).decode()
        except UnicodeDecodeError:
            return False
        shift = len(edited) - len(self.characters)
        first = len(self.text[: edit.start].decode(errors="ignore"))
        try:
            self._run(edited, self._note_before(first), first + 4, shift)
        except _Known:
            return True
        except REFUSALS:
            return False
        return True

    def _note_before(self, position: int) -> Note:
        """The last note all of whose lexemes end before the line above: Python's patterns that look at more of a text
        than they match (a string without its end) do so within a line, or from quotes that match in this text. Of other
        languages nothing of the kind is known: the first note."""
        if not self.indented:
            return self.notes[0]
        line = self.characters.rfind("\n", 0, max(0, self.characters.rfind("\n", 0, position)))
        return self.notes[max(0, bisect_right(self.positions, line) - 2)] if line > 0 else self.notes[0]

    def _run(self, text: str, note: Note | None, known_from: int, shift: int | None = None) -> None:
        """Parse from a note to the end; raises what Lark raises. shift: how much longer than the unedited text."""
        line = LineCounter("\n")
        line.char_pos = note.position if note else 0
        lexing = LexerState(TextSlice.cast_from(text), line)
        stack = list(note.stack) if note else [self.table.start_state]
        state = ParserState(self.table, None, stack, [None] * (len(stack) - 1))  # type: ignore[arg-type]
        indenter = PythonIndenter()
        if note:
            indenter.indent_level, indenter.paren_level = list(note.levels), note.brackets

        def here() -> Note:
            return Note(line.char_pos, tuple(state.state_stack), tuple(indenter.indent_level), indenter.paren_level)

        def lexemes() -> Iterator[Token]:
            """Lark's, with a stop before each: the lexeme before has been taken by then."""
            found = self.lexer.lex(lexing, state)
            while True:
                if shift is None:
                    self.notes.append(here())
                elif line.char_pos >= known_from:
                    was = self.known.get(line.char_pos - shift)
                    if was is not None and len(was.stack) == len(state.state_stack):
                        now = here()
                        if (was.stack, was.levels, was.brackets) == (now.stack, now.levels, now.brackets):
                            raise _Known
                lexeme = next(found, None)
                if lexeme is None:
                    return
                yield lexeme

        for token in indenter._process(lexemes()) if self.indented else lexemes():
            state.feed_token(token)
        state.feed_token(Token("$END", "", 0, 1, 1), True)
