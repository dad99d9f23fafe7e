"""Export of a Grammar to GBNF as llama.cpp accepts it: no left recursion, no repetition counts beyond 2,000."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..automata.dfa import LAST
from ..base.errors import UnsupportedError
from ..base.options import Limits
from ..frontends.regex.charset import CharSet, complement_charset, list_ranges
from ..frontends.regex.regex_tree import Alternation, Concatenation, OneOf, Repetition, Term
from ..grammar.grammar_source_type import GrammarSource
from ..grammar.nodes import Chars, Grammar, Node, Rule, Sequence, Token
from ..grammar.nullable_nodes import NullableNodes
from ..grammar.visitor import NodeVisitor, inner_nodes
from .grammar_writer import MOST_COUNT, OPTION, STEP, STEPS, GrammarTextWriter, WrittenText
from .regular_expression import to_expression
from .rule_names import RuleNames

__all__ = ["to_gbnf"]

ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


def to_gbnf(source: Grammar | GrammarSource, *, limits: Limits = Limits()) -> str:
    """Return an equivalent GBNF grammar; its start rule is `root`.

    Objects and JSON strings are expanded to rules.

    Parameters
    ----------
    source : Grammar or GrammarSource
        The grammar to export.
    limits : Limits
        Bounds on automaton sizes and work.

    Returns
    -------
    str
        The rules, in ASCII.

    Raises
    ------
    UnsupportedError
        If GBNF cannot express the grammar; the message names the construct: undeclared keys, many keys in free
        order, unique members, a lexer, counts beyond 2,000, or left recursion.
    LimitError
        If a limit is exceeded.
    """
    return _GbnfWriter(source, limits).write("root")


def write_gbnf_character(point: int, special: str) -> str:
    """Return a code point as written inside quotes or brackets. `special` are the characters to escape."""
    char = chr(point)
    if char in ESCAPES:
        return ESCAPES[char]
    if char in special:
        return f"\\x{point:02X}" if char == "^" else "\\" + char
    if 32 <= point < 127:
        return char
    return f"\\x{point:02X}" if point < 256 else f"\\u{point:04X}" if point < 1 << 16 else f"\\U{point:08X}"


def write_gbnf_class(charset: CharSet) -> str:
    """Return a character class, negated if that is shorter."""
    if charset == (0, LAST):
        return "."
    complement = complement_charset(charset)
    mark, ranges = ("^", list_ranges(complement)) if len(complement) < len(charset) else ("", list_ranges(charset))
    out = ""
    for low, high in ranges:
        out += write_gbnf_character(low, "[]-^")
        if high > low:
            out += ("-" if high > low + 1 else "") + write_gbnf_character(high, "[]-^")
    return f"[{mark}{out}]"


class _GbnfWriter(GrammarTextWriter):
    language = "GBNF"

    def __init__(self, source: Grammar | GrammarSource, limits: Limits) -> None:
        super().__init__(source, limits)
        self.names = RuleNames("a-z0-9-", "-", {"root"})
        refuse_left_recursion(self.grammar)

    def write_literal(self, text: str) -> WrittenText:
        return '"' + "".join(write_gbnf_character(ord(char), '"') for char in text) + '"', STEP

    def write_empty(self) -> WrittenText:
        return '""', STEP

    def write_rule(self, name: str, body: str) -> str:
        return f"{name} ::= {body}"

    def write_count(self, low: int, high: int | None) -> str:
        return f"{{{low}}}" if high == low else f"{{{low},{'' if high is None else high}}}"

    def visit_token(self, node: Token) -> WrittenText:
        if node.negated and len(node.names) > 1:
            raise UnsupportedError("export to GBNF: a negated set of several tokens", hint="Exclude one.")
        marks = [name if isinstance(name, str) else f"<[{name}]>" for name in node.names]
        for mark in marks:
            if not (mark.startswith("<") and mark.find(">") == len(mark) - 1):
                raise UnsupportedError(
                    f"export to GBNF: a token {mark} has no spelling there", hint="Name it by its id."
                )
        return self.join_options([("!" * node.negated + mark, STEP) for mark in marks])

    def visit_chars(self, node: Chars) -> WrittenText:
        character = node.dfa.with_length(1, 1, max_states=self.limits.dfa_states)
        if not character.is_empty and node.dfa == character.star(max_states=self.limits.dfa_states):
            term = to_expression(character)
            if term is not None and max(node.low, node.high or 0) <= MOST_COUNT:
                return self.write_repetition(self.write_term(term), node.low, node.high)
        dfa = node.dfa.with_length(node.low, node.high, max_states=self.limits.dfa_states)
        term = to_expression(dfa)
        return self.write_term(term) if term is not None else (self.write_states(dfa), STEP)

    def write_class(self, charset: CharSet) -> str:
        return write_gbnf_class(charset)

    def write_term(self, term: Term) -> WrittenText:
        """Write a regular expression; runs of single characters become string literals."""
        if isinstance(term, OneOf):
            if len(term.charset) == 2 and term.charset[1] == term.charset[0] + 1:
                return self.write_literal(chr(term.charset[0]))
            return write_gbnf_class(term.charset), STEP
        if isinstance(term, Repetition):
            return self.write_repetition(self.write_term(term.term), term.low, term.high)
        if isinstance(term, Alternation):
            return " | ".join(self.add_brackets(self.write_term(option), STEPS) for option in term.options), OPTION
        assert isinstance(term, Concatenation)
        out: list[WrittenText] = []
        run = ""
        for part in term.parts:
            if isinstance(part, OneOf) and len(part.charset) == 2 and part.charset[1] == part.charset[0] + 1:
                run += chr(part.charset[0])
                continue
            if run:
                out.append(self.write_literal(run))
                run = ""
            out.append(self.write_term(part))
        if run:
            out.append(self.write_literal(run))
        return self.join_steps(out) if out else self.write_empty()


def refuse_left_recursion(grammar: Grammar) -> None:
    """Raise UnsupportedError if a rule is left-recursive, directly or indirectly: llama.cpp refuses such a grammar."""
    nullable = NullableNodes(grammar)
    leftmost = _LeftmostRules(nullable)
    first = {name: set(leftmost.visit(body)) for name, body in grammar.rules.items()}
    for name in first:
        pending, seen = list(first[name]), set()
        while pending:
            other = pending.pop()
            if other == name:
                raise UnsupportedError(
                    f"export to GBNF: rule {name} begins with itself, which llama.cpp does not take",
                    hint="Write the rule so that what repeats comes last.",
                )
            if other not in seen:
                seen.add(other)
                pending.extend(first.get(other, ()))


class _LeftmostRules(NodeVisitor[list[Hashable]]):
    """The names of the rules that can be at the left end of a node."""

    def __init__(self, nullable: NullableNodes) -> None:
        self.nullable = nullable

    def visit_rule(self, node: Rule) -> list[Hashable]:
        return [node.name]

    def visit_sequence(self, node: Sequence) -> list[Hashable]:
        names: list[Hashable] = []
        for part in node.parts:
            names += self.visit(part)
            if not self.nullable.is_nullable(part):
                break
        return names

    def generic_visit(self, node: Node, *context: Any) -> list[Hashable]:
        return [name for part in inner_nodes(node) for name in self.visit(part)]
