"""GBNF as numbered rules over disjoint sets of characters: there is no lexer, each character is a terminal.

All literals and classes of the grammar are split into the coarsest partition of the characters that distinguishes them;
each block is one terminal. So two derivations are always derivations of a text, and not of different names for its
parts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from ...automata.dfa import LAST, Dfa
from ...base.cached_property import cached_property
from ...base.errors import GrammarError, LimitError
from ...base.options import Limits
from ...frontends.gbnf import to_grammar
from ...frontends.gbnf.gbnf_parser import GbnfParser
from ...grammar.nodes import Chars, Choice, Literal, Node, Repeat, Rule, Sequence, Token
from ...grammar.visitor import NodeVisitor, walk_nodes
from ...lalr.lalr_tables import Lalr
from ...lalr.productions import Productions
from ...lalr.shortest_suffix import ShortestSuffixes
from .derivations import compute_least_costs

__all__ = ["GBNF_CLASSES", "CharacterEndings", "Ranges", "build_productions", "format_characters", "find_rule_position"]

Ranges = tuple[tuple[int, int], ...]
GBNF_CLASSES = (Literal, Chars, Token, Sequence, Choice, Repeat, Rule)
"""The classes of nodes that the GBNF parser creates."""
MOST_COPIES = 2_000
"""Maximum number of copies to which a counted repetition is expanded: llama.cpp's own limit."""


def find_rule_position(text: str, name: str) -> int | None:
    """Return the position of the rule from which a nonterminal comes."""
    match = re.search(rf"^[ \t]*({re.escape(rule_of(name))})[ \t]*::=", text, re.M)
    return match.start(1) if match else None


def rule_of(name: str) -> str:
    """Return the name of the rule for which a nonterminal was made."""
    return name.partition("\0")[0]


def build_productions(text: str, start: str) -> tuple[Productions, tuple[Ranges, ...], tuple[str, ...]]:
    """Return the rules, the characters of each terminal, and the names of special tokens.

    The terminals of special tokens come after the others.
    """
    reader = GbnfParser(text, Limits().nesting)
    reader.read()
    for name, position in reader.uses.items():
        if name not in reader.rules:
            to_grammar(text, start=name if start not in reader.rules else start)  # raises the error, with a hint
            raise GrammarError(f"rule {name} is used but not defined", source=text, position=position)
    if start not in reader.rules:
        to_grammar(text, start=start)
    return _ProductionBuilder(reader.rules).productions(start)


class _ProductionBuilder(NodeVisitor[list[int]]):
    """The rules as productions; `visit(node, rule)` returns the symbols of a node inside a rule."""

    node_classes = GBNF_CLASSES

    def __init__(self, rules: dict[Hashable, Node]) -> None:
        self.rules = rules
        self.names: dict[str, int] = {}
        self.tokens: dict[str, int] = {}
        self.left: list[int] = []
        self.right: list[tuple[int, ...]] = []
        self.shown: dict[int, str] = {}
        self.classes: dict[Ranges, int] = {}
        sets_of = _CharacterSets().visit
        sets = [ranges for node in walk_nodes(*rules.values()) for ranges in sets_of(node)]
        self.cuts = sorted({0, *(edge for ranges in sets for low, high in ranges for edge in (low, high + 1))})
        self.sets = sorted(set(sets))
        self.signature = self._signatures()
        order = sorted({sign for sign in self.signature if sign})
        self.terminal = {sign: t for t, sign in enumerate(order)}
        alphabet: list[list[tuple[int, int]]] = [[] for _ in order]
        for interval, sign in enumerate(self.signature):
            if sign:
                high = self.cuts[interval + 1] - 1 if interval + 1 < len(self.cuts) else LAST - 1
                alphabet[self.terminal[sign]].append((self.cuts[interval], high))
        self.alphabet = tuple(tuple(ranges) for ranges in alphabet)

    def _signatures(self) -> list[int]:
        """Return, for each interval between cuts, the sets that contain it, as a bit mask."""
        signs = [0] * len(self.cuts)
        for bit, ranges in enumerate(self.sets):
            for low, high in ranges:
                for interval in range(bisect_right(self.cuts, low) - 1, bisect_right(self.cuts, high)):
                    signs[interval] |= 1 << bit
        return signs

    def productions(self, start: str) -> tuple[Productions, tuple[Ranges, ...], tuple[str, ...]]:
        for name in self.rules:
            self.names[self.name(name)] = len(self.names)
        for name, body in self.rules.items():
            self.define(self.names[self.name(name)], body, self.name(name))
        nonterminals = tuple(self.names)
        terminals = [_format_ranges(ranges) for ranges in self.alphabet]
        self.shown |= {
            ~n: rule_of(name) for n, name in enumerate(nonterminals) if "\0" in name and ~n not in self.shown
        }
        productions = Productions(
            terminals=(*terminals, *self.tokens),
            nonterminals=nonterminals,
            left=tuple(self.left),
            right=tuple(self.right),
            priority=(0,) * len(self.left),
            start=self.names[start],
            display_names=self.shown,
        )
        return productions, self.alphabet, tuple(self.tokens)

    @staticmethod
    def name(name: Hashable) -> str:
        return name if isinstance(name, str) else f"group {name!r}\0"

    def define(self, nonterminal: int, body: Node, inside: str) -> None:
        for option in body.options if isinstance(body, Choice) else (body,):
            self.rule(nonterminal, self.sequence(option, inside))

    def rule(self, left: int, right: Iterable[int]) -> None:
        self.left.append(left)
        self.right.append(tuple(right))

    def new_nonterminal(self, inside: str, words: str) -> int:
        """Return a new nonterminal."""
        number = self.names.setdefault(f"{rule_of(inside)}\0{len(self.names)}", len(self.names))
        self.shown[~number] = words
        return number

    def sequence(self, node: Node, inside: str) -> list[int]:
        parts = node.parts if isinstance(node, Sequence) else (node,)
        return [symbol for part in parts for symbol in self.visit(part, inside)]

    def visit_literal(self, node: Literal, inside: str) -> list[int]:
        return [self.of_set(((ord(char), ord(char)),)) for char in node.data.decode()]

    def visit_chars(self, node: Chars, inside: str) -> list[int]:
        return [self.of_set(_ranges(node.dfa))]

    def visit_rule(self, node: Rule, inside: str) -> list[int]:
        return [~self.names[self.name(node.name)]]

    def visit_token(self, node: Token, inside: str) -> list[int]:
        name = ("!" if node.negated else "") + "".join(map(str, node.names))
        return [len(self.alphabet) + self.tokens.setdefault(name, len(self.tokens))]

    def visit_sequence(self, node: Sequence, inside: str) -> list[int]:
        return self.sequence(node, inside)

    def visit_choice(self, node: Choice, inside: str) -> list[int]:
        nonterminal = self.new_nonterminal(inside, f"(a choice in {rule_of(inside)})")
        self.define(nonterminal, node, inside)
        return [~nonterminal]

    def of_set(self, ranges: Ranges) -> int:
        """Return the terminal of a set of characters, or the nonterminal that derives its terminals."""
        bit = 1 << self.sets.index(ranges)
        terminals = sorted({self.terminal[sign] for sign in self.signature if sign & bit})
        if len(terminals) == 1:
            return terminals[0]
        known = self.classes.get(ranges)
        if known is None:
            known = self.classes[ranges] = self.new_nonterminal("characters", _format_ranges(ranges))
            for terminal in terminals:
                self.rule(known, [terminal])
        return ~known

    def visit_repeat(self, node: Repeat, inside: str) -> list[int]:
        """Return `low` copies, then either an unbounded repetition or nested optional copies up to `high`."""
        if max(node.low, node.high or 0) > MOST_COPIES:
            raise LimitError(
                f"a repetition in {rule_of(inside)} has more than {MOST_COPIES:,} copies, too many to analyse",
                hint="Use a smaller bound for the analysis, or none.",
            )
        body = self.visit(node.node, inside)
        if len(body) != 1:
            one = self.new_nonterminal(inside, f"(a step in {rule_of(inside)})")
            self.rule(one, body)
            body = [~one]
        words = f"(a repetition in {rule_of(inside)})"
        if node.high is None:
            more = self.new_nonterminal(inside, words)
            self.rule(more, [])
            self.rule(more, [~more, *body])
            return [*body * node.low, ~more]
        rest: list[int] = []
        for _ in range(node.high - node.low):
            more = self.new_nonterminal(inside, words)
            self.rule(more, [])
            self.rule(more, [*body, *rest])
            rest = [~more]
        return body * node.low + rest


class _CharacterSets(NodeVisitor[list[Ranges]]):
    """The sets of characters of a leaf."""

    def visit_literal(self, node: Literal) -> list[Ranges]:
        return [((ord(char), ord(char)),) for char in node.data.decode()]

    def visit_chars(self, node: Chars) -> list[Ranges]:
        return [_ranges(node.dfa)]

    def generic_visit(self, node: Node, *context: Any) -> list[Ranges]:
        return []


def _ranges(dfa: Dfa) -> Ranges:
    """Return the characters that a Dfa of single characters accepts."""
    ends = [*dfa.bounds[1:].tolist(), LAST]
    accepted = dfa.delta[0] >= 0
    return tuple(
        (low, end - 1) for low, end, kind in zip(dfa.bounds.tolist(), ends, dfa.classes.tolist()) if accepted[kind]
    )


def _format_ranges(ranges: Ranges) -> str:
    """Return a set of characters in the notation of classes."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return '"' + _char(ranges[0][0], '"') + '"'
    if ranges[-1][1] == LAST - 1 and ranges[0][0] == 0:
        gaps = tuple((a[1] + 1, b[0] - 1) for a, b in zip(ranges, ranges[1:]) if (a[1], b[0]) != (0xD7FF, 0xE000))
        return "[^" + _members(gaps) + "]" if gaps else "."
    return "[" + _members(ranges) + "]"


def format_characters(dfa: Dfa) -> str:
    """Return the characters of a Dfa of single characters in the notation of classes."""
    return _format_ranges(_ranges(dfa))


def _members(ranges: Ranges) -> str:
    return "".join(_char(a, "]-^") if a == b else f"{_char(a, ']-^')}-{_char(b, ']-^')}" for a, b in ranges)


def _char(code: int, special: str) -> str:
    char = chr(code)
    if char in special or char == "\\":
        return "\\" + char
    return char if char.isprintable() else {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, f"\\u{code:04X}")


@dataclass(frozen=True)
class Characters:
    """The attributes of a parser that `ShortestSuffixes` uses."""

    table: Lalr
    productions: Productions
    terminals: int
    product: None = None


class CharacterEndings(ShortestSuffixes):
    """Shortest suffixes where each terminal is one character."""

    def __init__(self, productions: Productions, table: Lalr) -> None:
        super().__init__(Characters(table, productions, len(table.terminals)))  # type: ignore[arg-type]

    @cached_property
    def symbols(self) -> tuple[list[int], list[int]]:
        """The least number of characters of each terminal and of each nonterminal."""

        terminals = [1] * (len(self.parser.table.terminals) - 1) + [0]
        return terminals, compute_least_costs(self.parser.productions, terminals)
