"""The captures of rules and terminals of a grammar with a lexer: the spans that its LALR parser reduces."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ..grammar.captured_grammar import count_captures
from ..grammar.nodes import EMPTY, Choice, Node, Rule, Sequence
from ..lalr.lexeme_parser import Lexeme, parse_text
from ..lalr.parser_code import Parser
from .rule_captures import CapturedSpan

__all__ = ["ParserCaptures"]


@dataclass(frozen=True, slots=True)
class ParsedSymbol:
    """A symbol on the parser's stack: its span without ignored text around it, or an empty one, and its captures."""

    start: int
    end: int
    name: str | None = None
    parts: tuple[ParsedSymbol, ...] = ()


class ParserCaptures:
    """A `CaptureFinder` for the texts of a Parser.

    Parameters
    ----------
    parser : Parser
    names : Mapping of int to str
        The name of each symbol to capture: terminal t is t, nonterminal n is ~n.
    """

    def __init__(self, parser: Parser, names: Mapping[int, str]) -> None:
        self.parser, self.names = parser, names
        rules: dict[Hashable, Node] = {}
        for left, right in zip(parser.productions.left, parser.productions.right):
            body = Sequence(tuple(map(Rule, right)))
            rules[~left] = Choice((rules[~left], body)) if ~left in rules else body
        rules |= dict.fromkeys(range(len(parser.productions.terminals)), EMPTY)
        start = Rule(~parser.productions.start)
        self.counts = count_captures(start, rules, {symbol: (name,) for symbol, name in names.items()})

    def find(self, data: bytes) -> list[CapturedSpan]:
        """Return the captures of a text that the parser accepts, outer before inner ones."""
        out, pending = [], self.parse(parse_text(self.parser, data).fed)[::-1]
        while pending:
            one = pending.pop()
            if one.name is not None:
                out.append(CapturedSpan(one.name, one.start, one.end))
            pending.extend(reversed(one.parts))
        return out

    def parse(self, terminals: tuple[Lexeme, ...]) -> list[ParsedSymbol]:
        """Return the symbols from which the parser accepts."""
        table = self.parser.table
        states, symbols, position = [table.start], list[ParsedSymbol](), 0
        for one in terminals:
            while (act := int(table.action[states[-1], one.terminal])) < 0:
                rule = -act - 1
                length, left = int(table.length[rule]), int(table.left[rule])
                parts = symbols[len(symbols) - length :]
                del states[len(states) - length :], symbols[len(symbols) - length :]
                symbols.append(self.reduce(left, parts, position))
                states.append(int(table.goto[states[-1], left]))
            states.append(act - 1)
            symbols.append(ParsedSymbol(one.first, one.last, self.names.get(one.terminal)))
            position = max(position, one.last)
        return symbols

    def reduce(self, left: int, parts: list[ParsedSymbol], position: int) -> ParsedSymbol:
        """Return the symbol of a reduction. An empty one is at `position`, the end of the last lexeme."""
        filled = [part for part in parts if part.start < part.end]
        start, end = (filled[0].start, filled[-1].end) if filled else (position, position)
        kept = tuple(part for part in parts if part.name is not None or part.parts)
        if self.names.get(~left) is None and len(kept) == 1 and kept[0].name is None:
            kept = kept[0].parts
        return ParsedSymbol(start, end, self.names.get(~left), kept)
