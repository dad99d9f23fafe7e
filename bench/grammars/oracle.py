"""Lark's verdict on a text, and on many edits of it without parsing the whole text each time.

The position, the parser's stack and the levels of the Indenter are stored before each token of a text. An edited text
is parsed from the last of these states that does not depend on the edit, until position and state equal those of the
unedited text: the verdict on the rest is known. Lexer, Indenter and parse table are Lark's own.
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
"""Lark's own errors, and the two other exceptions of its Indenter."""


def build_parser_of(text: str, start: str, lexer: str, indented: bool) -> Lark:
    """Build Lark's parser of a grammar.

    Without the check for colliding terminals that Lark runs if interegular is installed: it takes minutes and does not
    change verdicts.
    """
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
        """Return whether Lark parses the text; False if it is not UTF-8."""
        try:
            self.lark.parse(text.decode())
        except (UnicodeDecodeError, *REFUSALS):
            return False
        return True

    def trace(self, text: bytes) -> Trace:
        """Return a trace of an accepted text, which judges edits of it."""
        return Trace(self, text)


@dataclass(frozen=True, slots=True)
class LarkState:
    """The state of Lark before a token: position in characters, stack of the parser, open blocks, open brackets."""

    position: int
    stack: tuple[Any, ...]
    levels: tuple[int, ...]
    brackets: int


class _Converged(Exception):
    """Position and state equal those of the unedited text."""


class Trace:
    """The states of Lark along an accepted text, to judge edits of it."""

    def __init__(self, oracle: Oracle, text: bytes) -> None:
        self.text = text
        self.characters = text.decode()
        frontend = oracle.lark.parser
        self.indented = oracle.indented
        self.lexer = frontend.lexer.lexer if self.indented else frontend.lexer
        self.table = ParseConf(frontend.parser._parse_table, {}, oracle.start)  # no callbacks: no tree is built
        self.states: list[LarkState] = []
        self._run(self.characters, None, 0)
        self.positions = [state.position for state in self.states]
        self.known = dict(zip(self.positions, self.states))

    def accepts(self, edit: Edit) -> bool:
        """Return whether Lark accepts the text with this edit."""
        try:
            edited = edit.apply(self.text).decode()
        except UnicodeDecodeError:
            return False
        shift = len(edited) - len(self.characters)
        first = len(self.text[: edit.start].decode(errors="ignore"))
        try:
            self._run(edited, self._find_state_before(first), first + 4, shift)
        except _Converged:
            return True
        except REFUSALS:
            return False
        return True

    def _find_state_before(self, position: int) -> LarkState:
        """Return the last state that does not depend on the text from `position` on.

        For Python: the last state whose tokens all end before the previous line. Patterns of Python that read more than
        they match (of an unterminated string) do so within a line, or from quotes that match in this text. Nothing of
        the kind is known of other languages: the first state.
        """
        if not self.indented:
            return self.states[0]
        line = self.characters.rfind("\n", 0, max(0, self.characters.rfind("\n", 0, position)))
        return self.states[max(0, bisect_right(self.positions, line) - 2)] if line > 0 else self.states[0]

    def _run(self, text: str, origin: LarkState | None, known_from: int, shift: int | None = None) -> None:
        """Parse from a state to the end. Raises what Lark raises. shift: number of characters added by the edit."""
        line = LineCounter("\n")
        line.char_pos = origin.position if origin else 0
        lexing = LexerState(TextSlice.cast_from(text), line)
        stack = list(origin.stack) if origin else [self.table.start_state]
        state = ParserState(self.table, None, stack, [None] * (len(stack) - 1))  # type: ignore[arg-type]
        indenter = PythonIndenter()
        if origin:
            indenter.indent_level, indenter.paren_level = list(origin.levels), origin.brackets

        def copy_state() -> LarkState:
            return LarkState(
                line.char_pos, tuple(state.state_stack), tuple(indenter.indent_level), indenter.paren_level
            )

        def lex_tokens() -> Iterator[Token]:
            """Yield Lark's tokens; store or compare the state before each, after the previous one was parsed."""
            found = self.lexer.lex(lexing, state)
            while True:
                if shift is None:
                    self.states.append(copy_state())
                elif line.char_pos >= known_from:
                    was = self.known.get(line.char_pos - shift)
                    if was is not None and len(was.stack) == len(state.state_stack):
                        now = copy_state()
                        if (was.stack, was.levels, was.brackets) == (now.stack, now.levels, now.brackets):
                            raise _Converged
                token = next(found, None)
                if token is None:
                    return
                yield token

        for token in indenter._process(lex_tokens()) if self.indented else lex_tokens():
            state.feed_token(token)
        state.feed_token(Token("$END", "", 0, 1, 1), True)
