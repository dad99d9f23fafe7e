"""The captures of rules of a grammar for llguidance.

The scanner decides where lexemes end, whatever the rules do with them. So the ends are found first, from any derivation
by the rules in which each lexeme is rewritten to what the scanner takes for it; then the rules as written divide the
lexemes among them, see `derivation_search`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from ..automata.dfa import Dfa
from ..base.options import Limits
from ..compilation.constraint_compiler import compile_grammar
from ..engine.constraint import Constraint
from ..frontends.llguidance import CapturedLexemes, find_inner_grammar
from ..grammar.captured_grammar import count_captures
from ..grammar.nodes import Chars, Grammar, Mark, Node, Rule, Token
from ..grammar.visitor import NodeRebuilder, fold_node
from ..vocabulary.vocabulary import Vocabulary
from .derivation_search import find_derivation
from .rule_captures import CapturedSpan, walk_bytes

__all__ = ["LexemeCaptures"]


class NestedRule(NamedTuple):
    """The name of the rule that stands for a nested grammar."""

    grammar: int


class LexemeCaptures:
    """A `CaptureFinder` for the texts of a grammar for llguidance."""

    def __init__(self, captured: CapturedLexemes, vocabulary: Vocabulary, limits: Limits) -> None:
        self.captured, self.vocabulary, self.limits = captured, vocabulary, limits
        self.nested = {k: LexemeCaptures(one, vocabulary, limits) for k, one in captured.nested.items()}
        self.constraints: dict[Token, Constraint] = {}
        cutter = LeafCutter()
        lexing = {name: fold_node(body, cutter.visit) for name, body in captured.lexing.rules.items()}
        self.lexing = Grammar(fold_node(captured.lexing.start, cutter.visit), lexing)
        self.parts = cutter.leaves
        wrapper = NestedWrapper(captured)
        rules: dict[Hashable, Node] = {name: fold_node(body, wrapper.visit) for name, body in captured.rules.items()}
        self.rules = Grammar(captured.start, rules | wrapper.rules)
        self.counts = self.count_names()

    def count_names(self) -> dict[str, int]:
        """Return the most captures of each name that one text may have; 2 stands for several."""
        names = dict[Hashable, list[str]]()
        for rule, one in self.captured.names.items():
            names[rule] = [name for name in (one.name, one.stop_name) if name is not None]
        for number, inner in self.nested.items():
            names[NestedRule(number)] = [name for name, count in inner.counts.items() for _ in range(count)]
        return count_captures(self.rules.start, self.rules.rules, names)

    def find(self, data: bytes) -> list[CapturedSpan]:
        """Return the captures of a text that the grammar derives, outer before inner ones."""
        if not self.counts:
            return []
        text = TextCharacters(data)
        lexed = find_derivation(self.lexing, lambda mark, p: self.part_ends(mark, p, text), len(data))
        ends = {one.start: one.end for one in lexed or () if isinstance(one.symbol, Mark) and one.start < one.end}
        derived = find_derivation(self.rules, lambda mark, p: self.lexeme_ends(mark, p, ends, text), len(data))
        out: list[CapturedSpan] = []
        for one in derived or ():
            if isinstance(one.symbol, NestedRule):
                inner = self.nested[one.symbol.grammar].find(data[one.start : one.end])
                out += [CapturedSpan(name, one.start + start, one.start + end) for name, start, end in inner]
            elif one.symbol in self.captured.names:
                out += self.rule_captures(one.symbol, one.start, data[one.start : one.end].decode("utf-8", "replace"))
        return out

    def rule_captures(self, rule: Hashable, start: int, text: str) -> list[CapturedSpan]:
        """Return the captures of a rule with a text that begins at byte `start`."""
        capture = self.captured.names[rule]
        at = capture.split(text)
        middle, end = start + len(text[:at].encode()), start + len(text.encode())
        named = [(capture.name, start, middle), (capture.stop_name, middle, end)]
        return [CapturedSpan(name, first, last) for name, first, last in named if name is not None]

    def part_ends(self, mark: str, start: int, text: TextCharacters) -> Iterable[int]:
        """Return where the texts of what a lexeme was rewritten to may end if they begin at a position."""
        node = self.parts[int(mark)]
        return self.token_ends(node, start, text) if isinstance(node, Token) else text.list_ends(node.dfa, start)

    def lexeme_ends(self, mark: str, start: int, ends: dict[int, int], text: TextCharacters) -> Iterable[int]:
        """Return where a lexeme that begins at a position ends, if it matches up to where the scanner ended it."""
        lexeme = self.captured.lexemes[self.captured.numbers[mark]]
        either = {start, ends.get(start, start)}  # A part may be empty; other lexemes never are.
        if isinstance(lexeme.node, Token):
            return either.intersection(self.token_ends(lexeme.node, start, text))
        if isinstance(lexeme.node, Chars):
            return either.intersection(text.list_ends(lexeme.node.dfa, start))
        assert lexeme.dfa is not None
        return (either - {start}).intersection(text.list_ends(lexeme.dfa, start))

    def token_ends(self, node: Token, start: int, text: TextCharacters) -> list[int]:
        """Return where the texts of an inner grammar, or a token, that begin at a position may end."""
        if node not in self.constraints:
            number = find_inner_grammar(node)
            grammar = Grammar(node, {}) if number is None else self.captured.grammars[number]
            self.constraints[node] = compile_grammar(grammar, self.vocabulary, self.limits)
        return [end for end, one in walk_bytes(self.constraints[node], text.data, start) if one.is_complete]


class TextCharacters:
    """A text as characters, by their positions in bytes. Bytes that are not UTF-8, such as tokens, match no Dfa."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.characters: dict[int, tuple[str, int]] = {}  # by start: the character, and where it ends
        position = 0
        for character in data.decode("utf-8", "surrogateescape"):
            end = position + len(character.encode("utf-8", "surrogateescape"))
            if not "\udc80" <= character <= "\udcff":
                self.characters[position] = character, end
            position = end
        self.known: dict[tuple[Dfa, int], list[int]] = {}

    def list_ends(self, dfa: Dfa, start: int) -> list[int]:
        """Return where texts of a Dfa that begin at a position end."""
        key = dfa, start
        if key not in self.known:
            state, position, accepting = 0 if dfa.table.rows else -1, start, dfa.table.accepting
            ends = self.known[key] = []
            while state >= 0:
                if accepting[state]:
                    ends.append(position)
                character, position = self.characters.get(position, ("", position))
                state = dfa.step(state, character) if character else -1
        return self.known[key]


class LeafCutter(NodeRebuilder):
    """A fold that puts a Mark with the number of a leaf in its place."""

    def __init__(self) -> None:
        self.leaves: list[Chars | Token] = []
        self.numbers: dict[Node, int] = {}

    def visit_chars(self, node: Chars | Token, parts: list[Node]) -> Node:
        if node not in self.numbers:
            self.numbers[node] = len(self.leaves)
            self.leaves.append(node)
        return Mark(str(self.numbers[node]))

    visit_token = visit_chars


class NestedWrapper(NodeRebuilder):
    """A fold that puts the lexemes of nested grammars into rules of their own."""

    def __init__(self, captured: CapturedLexemes) -> None:
        self.captured = captured
        self.rules: dict[Hashable, Node] = {}

    def visit_mark(self, node: Mark, parts: list[Node]) -> Node:
        token = self.captured.lexemes[self.captured.numbers[node.text]].node
        number = find_inner_grammar(token) if isinstance(token, Token) else None
        if number is None or number not in self.captured.nested:
            return node
        name = NestedRule(number)
        self.rules[name] = node
        return Rule(name)
