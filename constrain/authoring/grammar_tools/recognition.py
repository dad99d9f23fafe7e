"""Decide with the engine, byte by byte, whether a text belongs to a grammar.

If it does not, report where and why in terms of terminals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...compilation.constraint_compiler import compile_grammar
from ...engine.constraint import Constraint
from ...lalr.lexeme_parser import Reading, list_accepted, parse_text
from ...lalr.parser_code import Parser
from ...vocabulary.vocabulary import Vocabulary
from ..explanations import ByteRefusal, first_refusal
from .written_grammar import WrittenGrammar

__all__ = ["Rejection", "Recogniser"]

END = "the end of the text"


@dataclass(frozen=True, slots=True)
class Rejection:
    """Where a text is rejected.

    refusal: the first byte that is rejected, and what is expected there: terminals by name or as written, characters
    for GBNF. lexeme: the terminals that the text up to there, from `since` (line, column) on, is a prefix of; begun:
    that text. preceding: the last lexemes before it.
    """

    refusal: ByteRefusal
    begun: str = ""
    since: tuple[int, int] | None = None
    lexeme: tuple[str, ...] = ()
    why: str = ""
    preceding: tuple[str, ...] = ()


class Recogniser:
    """Checks texts against one grammar."""

    def __init__(self, written: WrittenGrammar) -> None:
        self.written = written
        self.constraint: Constraint = compile_grammar(written.grammar, Vocabulary.bytes())
        self.parser: Parser | None = written.parser if written.has_lexer else None

    def accepts(self, text: bytes) -> bool:
        """Return whether it is a complete text of the grammar."""
        return first_refusal(self.constraint, text) is None

    def find_rejection(self, text: bytes) -> Rejection | None:
        """Return where it is rejected; None if it is accepted."""
        refusal = first_refusal(self.constraint, text)
        if refusal is None or self.parser is None:
            return None if refusal is None else Rejection(refusal)
        reading = parse_text(self.parser, text[: refusal.offset])
        # Everything before the rejected byte is a valid prefix; the terminal of its last lexeme may be undetermined.
        since = reading.stopped
        if since is None or since >= refusal.offset:
            since = refusal.offset
            if refusal.offset < len(text) and reading.lexemes and reading.stopped is None:
                full_reading = parse_text(self.parser, text)
                if full_reading.stopped is not None and full_reading.stopped < refusal.offset:
                    reading, since = full_reading, full_reading.stopped
        expected = self.list_expected(self.parser, reading, text[since : refusal.offset])
        begun = text[since : refusal.offset].decode("utf-8", "replace")
        before = text[:since].decode("utf-8", "replace")
        location = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        lexemes = tuple(self.format_lexeme(self.parser, text, one) for one in reading.lexemes[-4:])
        if begun:
            return Rejection(refusal, begun, location, expected, reading.blocks, lexemes)
        return Rejection(replace(refusal, expected=expected or refusal.expected), why=reading.blocks, preceding=lexemes)

    def list_expected(self, parser: Parser, reading: Reading, begun: bytes) -> tuple[str, ...]:
        """Return the terminals that are allowed where parsing stopped and that begin with `begun`, literals first."""
        names = []
        layout = parser.layout
        state = int(parser.scan[reading.stack[-1]])
        for byte in begun:
            state = int(parser.scanner.delta[state, byte]) if state >= 0 else -1
        for terminal in list_accepted(parser, reading.stack):
            if begun and state >= 0 and not parser.possible[state, terminal // 32] >> terminal % 32 & 1:
                continue
            if terminal == parser.terminals - 1:
                names.append((2, END))
            elif layout is not None and terminal in (layout.indent, layout.dedent):
                names.append((1, "the beginning of a block" if terminal == layout.indent else "the end of a block"))
            else:
                written = self.name(terminal)
                names.append((0 if written.startswith('"') else 1, written))
        return tuple(written for _, written in sorted(dict.fromkeys(names)))

    def name(self, terminal: int) -> str:
        """Return a terminal as it is written in the source: a literal, a name, or the pattern of an unnamed one."""
        productions, loaded = self.written.productions, self.written.loaded
        if loaded is None or terminal >= len(loaded.terminals):
            return productions.name(terminal) if terminal < len(productions.terminals) else "an ignored terminal"
        one = loaded.terminals[terminal]
        if one.kind == "text" and (one.written or one.name.isalpha()) and one.text.isprintable():
            return f'"{one.text}"'
        return one.written or one.name

    def format_lexeme(self, parser: Parser, text: bytes, lexeme: object) -> str:
        """Return a lexeme that was read: its text and its terminal."""
        first, last, terminal = lexeme.first, lexeme.last, lexeme.terminal  # type: ignore[attr-defined]
        text_read = text[first:last].decode("utf-8", "replace")
        name = "(ignored)" if terminal in parser.ignored else self.name(terminal)
        return f"{text_read!r}" if name == f'"{text_read}"' else f"{text_read!r} {name}"
