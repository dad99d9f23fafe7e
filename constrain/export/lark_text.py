"""Export of a Grammar to a Lark grammar for `lark.Lark(text, parser="earley", lexer="dynamic_complete")`.

With that lexer a terminal may end wherever its pattern matches, which is the semantics of a Chars node. Terminals of
Lark cannot be empty, so a leaf that may be empty becomes optional. Patterns prefer the longest match (see
`to_expression`), and Lark finds shorter matches by truncating it.
"""

from __future__ import annotations

from ..automata.dfa import LAST, Dfa
from ..base.errors import UnsupportedError
from ..base.options import Limits
from ..frontends.regex.charset import CharSet, complement_charset, list_ranges
from ..frontends.regex.regex_tree import Alternation, Concatenation, OneOf, Repetition, Term
from ..grammar.grammar_source_type import GrammarSource
from ..grammar.nodes import Chars, Grammar, Token
from .grammar_writer import MOST_COUNT, STEP, GrammarTextWriter, WrittenText
from .regular_expression import to_expression
from .rule_names import RuleNames

__all__ = ["write_lark_pattern", "to_lark"]

SPECIAL = frozenset("\\^$.|?*+()[]{}/-&~#\"' ")


def to_lark(source: Grammar | GrammarSource, *, limits: Limits = Limits()) -> str:
    """Return an equivalent Lark grammar; its start rule is `start`.

    It must be parsed with parser="earley" and lexer="dynamic_complete". Objects and JSON strings are expanded to rules.

    Parameters
    ----------
    source : Grammar or GrammarSource
        The grammar to export.
    limits : Limits
        Bounds on automaton sizes and work.

    Returns
    -------
    str
        The rules and terminals, in ASCII.

    Raises
    ------
    UnsupportedError
        If Lark cannot express the grammar; the message names the construct: tokens, undeclared keys, many keys
        in free order, unique members, counts beyond 2,000.
    LimitError
        If a limit is exceeded.
    """
    return _LarkWriter(source, limits).write("start")


def write_lark_character(point: int) -> str:
    """Return a code point as written in a pattern.

    Lark itself resolves escapes such as `\\\\u`, so they are used only for characters that need no further escaping.
    """
    char = chr(point)
    if char in SPECIAL:
        return "\\" + char
    if 32 <= point < 127:
        return char
    return f"\\x{point:02x}" if point < 256 else f"\\u{point:04x}" if point < 1 << 16 else f"\\U{point:08x}"


def write_lark_class(charset: CharSet) -> str:
    """Return a character class, negated if that is shorter; `str` patterns may contain surrogates."""
    if charset == (0, LAST):
        return r"[\s\S]"
    if len(charset) == 2 and charset[1] == charset[0] + 1:
        return write_lark_character(charset[0])
    rest = complement_charset(charset)
    mark, ranges = ("^", list_ranges(rest)) if len(rest) < len(charset) else ("", list_ranges(charset))
    out = "".join(
        write_lark_character(low)
        + ("" if high == low else ("-" if high > low + 1 else "") + write_lark_character(high))
        for low, high in ranges
    )
    return f"[{mark}{out}]"


def write_lark_pattern(term: Term) -> str:
    """Return an expression as a pattern for `re`; the order of alternatives makes the longest match come first."""
    if isinstance(term, OneOf):
        return write_lark_class(term.charset)
    if isinstance(term, Alternation):
        return "(?:" + "|".join(map(write_lark_pattern, term.options)) + ")"
    if isinstance(term, Concatenation):
        return "".join(map(write_lark_pattern, term.parts))
    assert isinstance(term, Repetition), "expressions have no anchors"
    inner = write_lark_pattern(term.term)
    if not isinstance(term.term, (OneOf, Alternation)):
        inner = f"(?:{inner})"
    marks = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return inner + (marks.get((term.low, term.high)) or write_count(term.low, term.high))


def write_count(low: int, high: int | None) -> str:
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"


class _LarkWriter(GrammarTextWriter):
    language = "Lark"

    def __init__(self, source: Grammar | GrammarSource, limits: Limits) -> None:
        super().__init__(source, limits)
        self.names = RuleNames("a-z0-9_", "_", {"start"})
        self.terminals: dict[str, str] = {}

    def write(self, start: str) -> str:
        rules = super().write(start)
        lines = [f"{name}: /{text}/" for text, name in self.terminals.items()]
        return rules + ("\n" + "\n".join(lines) + "\n" if lines else "")

    def write_literal(self, text: str) -> WrittenText:
        plain = all(32 <= ord(char) < 127 and char not in '"\\' for char in text)
        return (
            f'"{text}"' if plain else self.name_terminal("".join(write_lark_character(ord(char)) for char in text))
        ), STEP

    def write_empty(self) -> WrittenText:
        return "", STEP

    def write_rule(self, name: str, body: str) -> str:
        return f"{name}: {body}".rstrip()

    def write_count(self, low: int, high: int | None) -> str:
        return f"~{low}" if high == low else f"~{low}..{high}" if high is not None else f"~{low}.."

    def visit_token(self, node: Token) -> WrittenText:
        raise UnsupportedError("export to Lark: Lark has no special tokens", hint="Export to GBNF, which has them.")

    def write_repetition(self, body: WrittenText, low: int, high: int | None) -> WrittenText:
        if high is None and low > 1:  # Lark has no ~2.. without an end.
            return self.join_steps([super().write_repetition(body, low, low), super().write_repetition(body, 0, None)])
        return super().write_repetition(body, low, high)

    def join_steps(self, steps: object) -> WrittenText:
        return super().join_steps(step for step in steps if step[0])  # type: ignore[attr-defined]

    def visit_chars(self, node: Chars) -> WrittenText:
        max_states = self.limits.dfa_states
        character = node.dfa.with_length(1, 1, max_states=max_states)
        if not character.is_empty and node.dfa == character.star(max_states=max_states):
            term = to_expression(character)
            if term is not None and max(node.low, node.high or 0) <= MOST_COUNT:
                return self.write_terminal(Repetition(term, max(node.low, 1), node.high), node.low == 0)
        dfa = node.dfa.with_length(node.low, node.high, max_states=max_states)
        non_empty = dfa.subtract(Dfa.from_strings([""]), max_states=max_states)
        if non_empty.is_empty:
            return self.write_empty()
        term = to_expression(non_empty)
        return self.write_terminal(term, dfa.accepts("")) if term is not None else (self.write_states(dfa), STEP)

    def write_class(self, charset: CharSet) -> str:
        return self.name_terminal(write_lark_class(charset))

    def write_terminal(self, term: Term, may_be_empty: bool) -> WrittenText:
        name = self.name_terminal(write_lark_pattern(term))
        return (name + "?", STEP + 1) if may_be_empty else (name, STEP)

    def name_terminal(self, text: str) -> str:
        return self.terminals.setdefault(text, f"T{len(self.terminals)}")
