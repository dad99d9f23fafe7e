"""Base class of grammar exporters: operator precedence, repetition and traversal, independent of the notation.

A subclass defines how literals, character sets, rules and repetition counts are spelled. Precedence levels: an
alternation is 0 (`OPTION`), a sequence 1 (`STEPS`), an operand of a repetition 2 (`STEP`), a repetition 3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from ..automata.dfa import Dfa
from ..base.errors import UnsupportedError
from ..base.options import Limits
from ..frontends.regex.charset import CharSet
from ..grammar.grammar_source_type import GrammarSource
from ..grammar.nodes import EMPTY, Chars, Choice, Grammar, Literal, Repeat, Rule, Sequence, Strings, Token
from ..grammar.object_expansion import expand_objects
from ..grammar.smart_constructors import flatten_choice
from ..grammar.visitor import PLAIN_CLASSES, NodeVisitor, reached_rules
from .regular_expression import find_charsets
from .rule_names import RuleNames

__all__ = ["MOST_COUNT", "OPTION", "STEP", "STEPS", "GrammarTextWriter"]

OPTION, STEPS, STEP = 0, 1, 2
MOST_COUNT = 2_000
"""Largest repetition count that is exported: llama.cpp takes {0,2001} for {0,}, and other tools unroll counts."""

WrittenText = tuple[str, int]


class GrammarTextWriter(NodeVisitor[WrittenText], ABC):
    """Writer of the rules of one Grammar. `rules` holds the lines in the order of the grammar, the start rule first."""

    node_classes = PLAIN_CLASSES
    language: str
    names: RuleNames

    def __init__(self, source: Grammar | GrammarSource, limits: Limits) -> None:
        self.limits = limits
        grammar = source if isinstance(source, Grammar) else source.grammar(limits)
        self.grammar = expand_objects(grammar, f"export to {self.language}", limits=limits)
        self.rules: list[str] = []
        self.leaves: dict[Dfa, str] = {}

    @abstractmethod
    def write_literal(self, text: str) -> WrittenText:
        """Write a non-empty literal."""

    @abstractmethod
    def visit_chars(self, node: Chars) -> WrittenText:
        """Write a Chars node."""

    @abstractmethod
    def write_class(self, charset: CharSet) -> str:
        """Write one character of a set."""

    @abstractmethod
    def visit_token(self, node: Token) -> WrittenText:
        """Write a Token node."""

    @abstractmethod
    def write_count(self, low: int, high: int | None) -> str:
        """Write the suffix of a repetition other than *, + and ?."""

    @abstractmethod
    def write_rule(self, name: str, body: str) -> str:
        """Write the definition of a rule."""

    @abstractmethod
    def write_empty(self) -> WrittenText:
        """Write the empty text."""

    def write(self, start: str) -> str:
        """Return the text of the grammar, with `start` as the name of its start rule."""
        rules = self.grammar.rules
        if isinstance(self.grammar.start, Rule):
            self.names.known[self.grammar.start.name] = start
        else:
            self.rules.append(self.write_rule(start, self.visit(self.grammar.start)[0]))
        for name in reversed(reached_rules(self.grammar.start, rules)):
            self.rules.append(self.write_rule(self.names.of(name), self.visit(rules[name])[0]))
        return "\n".join(self.rules) + "\n"

    def visit_rule(self, node: Rule) -> WrittenText:
        return self.names.of(node.name), STEP

    def visit_literal(self, node: Literal) -> WrittenText:
        return self.write_literal(self.decode(node.data)) if node.data else self.write_empty()

    def visit_strings(self, node: Strings) -> WrittenText:
        return self.join_options(
            [self.visit(Literal(option)) for option in node.options if option], b"" in node.options
        )

    def visit_choice(self, node: Choice) -> WrittenText:
        options = flatten_choice(node)
        texts = list(map(self.visit, [option for option in options if option != EMPTY]))
        return self.join_options(texts, EMPTY in options)

    def visit_sequence(self, node: Sequence) -> WrittenText:
        return self.join_steps(map(self.visit, node.parts))

    def visit_repeat(self, node: Repeat) -> WrittenText:
        return self.write_repetition(self.visit(node.node), node.low, node.high)

    def write_states(self, dfa: Dfa) -> str:
        """Write one rule per state of a Dfa whose regular expression is too large; return the start state's rule."""
        if dfa not in self.leaves:
            names = [self.names.fresh("state") for _ in range(len(dfa.table.rows))]
            self.leaves[dfa] = names[0]
            for state, targets in enumerate(find_charsets(dfa)):
                options = [(f"{self.write_class(chars)} {names[target]}", STEPS) for target, chars in targets.items()]
                self.rules.append(
                    self.write_rule(names[state], self.join_options(options, dfa.table.accepting[state])[0])
                )
        return self.leaves[dfa]

    def decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise UnsupportedError(
                f"export to {self.language}: {data!r} is not UTF-8", hint="Write whole characters."
            ) from None

    def join_options(self, options: list[WrittenText], may_be_empty: bool = False) -> WrittenText:
        if not options:
            return self.write_empty()
        one = options[0] if len(options) == 1 else (" | ".join(text for text, _ in options), OPTION)
        return (self.add_brackets(one, STEP) + "?", STEP + 1) if may_be_empty else one

    def join_steps(self, steps: Iterable[WrittenText]) -> WrittenText:
        written = list(steps)
        return (
            written[0] if len(written) == 1 else (" ".join(self.add_brackets(step, STEPS) for step in written), STEPS)
        )

    def write_repetition(self, body: WrittenText, low: int, high: int | None) -> WrittenText:
        if high == 0:
            return self.write_empty()
        if (low, high) == (1, 1):
            return body
        count = max(low, high or 0)
        if count > MOST_COUNT:
            raise UnsupportedError(
                f"export to {self.language}: a repetition counts to {count:,}, beyond {MOST_COUNT:,}",
                hint="Use smaller bounds, or none.",
            )
        simple = {(0, None): "*", (1, None): "+", (0, 1): "?"}
        mark = simple.get((low, high)) or self.write_count(low, high)
        return self.add_brackets(body, STEP) + mark, STEP + 1

    def add_brackets(self, written: WrittenText, least: int) -> str:
        """Add parentheses if the precedence is below `least`, or if a repetition would be repeated."""
        text, level = written
        return f"({text})" if level < least or (least == STEP and level > STEP) else text
