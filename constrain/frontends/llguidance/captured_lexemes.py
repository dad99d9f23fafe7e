"""What the captures of a grammar for llguidance are found with: its rules over lexemes, and where lexemes end."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ...automata.dfa import Dfa
from ...grammar.nodes import Grammar, Node, Token
from .lexeme_scanning import Lexeme

__all__ = ["CapturedLexemes", "RuleCapture", "find_inner_grammar", "make_inner_token"]

INNER = "\0inner "


def make_inner_token(number: int) -> Token:
    """Return the token that stands for inner grammar `number` until it is put in place."""
    return Token((f"{INNER}{number}",))


def find_inner_grammar(node: Token) -> int | None:
    """Return the number of the inner grammar that a token stands for; None for a token of the vocabulary."""
    name = node.names[0] if node.names else ""
    return int(name[len(INNER) :]) if isinstance(name, str) and name.startswith(INNER) else None


@dataclass(frozen=True, slots=True)
class RuleCapture:
    """The captures of a rule: `name` for its text, `stop_name` for the text of its suffix; None for no capture.

    body, suffix: the languages of both parts of a rule with a suffix. The suffix is the shortest text that leaves a
    text of the body.
    """

    name: str | None
    stop_name: str | None = None
    body: Dfa | None = None
    suffix: Dfa | None = None

    def split(self, text: str) -> int:
        """Return where the suffix of a text of the rule begins."""
        if self.body is None or self.suffix is None:
            return len(text)
        ends = range(len(text), -1, -1)
        return next(k for k in ends if self.suffix.accepts(text[k:]) and self.body.accepts(text[:k]))


@dataclass(frozen=True, slots=True, eq=False)
class CapturedLexemes:
    """A grammar whose captures can be found.

    Attributes
    ----------
    lexing : Grammar
        The texts, with each lexeme rewritten to what the scanner takes for it; not simplified.
    start : Node
    rules : Mapping of Hashable to Node
        The rules over lexemes, as written: their leaves are Marks.
    lexemes : list of Lexeme
    numbers : Mapping of str to int
        The lexeme of each Mark.
    names : Mapping of Hashable to RuleCapture
        The captures of rules.
    grammars : Mapping of int to Grammar
        The inner grammars.
    nested : Mapping of int to CapturedLexemes
        Of these, the grammars for llguidance.
    """

    lexing: Grammar
    start: Node
    rules: Mapping[Hashable, Node]
    lexemes: list[Lexeme]
    numbers: Mapping[str, int]
    names: Mapping[Hashable, RuleCapture]
    grammars: Mapping[int, Grammar]
    nested: Mapping[int, CapturedLexemes]
