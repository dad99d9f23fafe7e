"""A Lark grammar for the peers: its rules as Lark compiles them, its terminals as patterns, in the peer's own dialect.

What Lark's lexer does beyond a grammar cannot be said in either, and is left out; both then accept more than Lark does:
    look-around at the edges of terminals (a keyword may run into a name, a name may be a keyword),
    which terminal wins where two match, and for XGrammar, that has no lexer, the longest match too.
Blocks by indentation cannot be said at all: `Inexpressible`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .languages import Language
from .oracle import build_parser_of

__all__ = ["Inexpressible", "to_ebnf", "to_llguidance"]


class Inexpressible(Exception):
    """The peer's grammars cannot say this; the message says what."""


class _Rules:
    """Rules and terminals under names that every dialect takes: r0, r1, ...; T0, T1, ..."""

    def __init__(self, language: Language) -> None:
        if language.indented:
            raise Inexpressible("blocks by indentation, line ends in brackets")
        lark = build_parser_of(language.text, language.start, language.lexer, indented=False)
        self.terminals = {terminal.name: terminal.pattern for terminal in lark.terminals}
        self.ignored = list(lark.ignore_tokens)
        self.rules: dict[str, list[list[Any]]] = {language.start: []}
        for rule in lark.rules:
            self.rules.setdefault(rule.origin.name, []).append(rule.expansion)
        self.rule_names = {name: f"r{number}" for number, name in enumerate(self.rules)}
        self.terminal_names = {name: f"T{number}" for number, name in enumerate(self.terminals)}
        self.start = self.rule_names[language.start]

    def name(self, symbol: Any) -> str:
        return self.terminal_names[symbol.name] if symbol.is_term else self.rule_names[symbol.name]


def without_looks(pattern: str) -> str:
    """A pattern of Python's `re` without its look-arounds, and with (?a: and (?i) as other dialects spell them."""
    out, position, depth, skipping, in_class = "", 0, 0, 0, False
    while position < len(pattern):
        char = pattern[position]
        step = pattern[position : position + 2] if char == "\\" else char
        if not in_class and char == "(":
            depth += 1
            if not skipping and re.match(r"\(\?<?[=!]", pattern[position:]):
                skipping = depth
        if not skipping:
            out += step
        if not in_class and char == ")":
            skipping = 0 if skipping == depth else skipping
            depth -= 1
        if char == "[" and not in_class:
            in_class = True
        elif char == "]" and in_class:
            in_class = False
        position += len(step)
    return re.sub(r"\(\?a\)|(?<=\(\?)a(?=[i:])", "", out)


def to_llguidance(language: Language) -> str:
    """llguidance's dialect of Lark."""
    rules = _Rules(language)
    lines = [f"start: {rules.start}"]
    for name, expansions in rules.rules.items():
        options = [" ".join(map(rules.name, expansion)) or '""' for expansion in expansions]
        lines.append(f"{rules.rule_names[name]}: {' | '.join(options)}")
    for name, pattern in rules.terminals.items():
        lines.append(f"{rules.terminal_names[name]}: {_regex(pattern)}")
    lines += [f"%ignore {rules.terminal_names[name]}" for name in rules.ignored]
    return "\n".join(lines) + "\n"


def _regex(pattern: Any) -> str:
    if pattern.type == "str" and not pattern.flags:
        return json.dumps(pattern.value)
    text = without_looks(pattern.to_regexp())
    text = re.sub(r"(?<!\\)((?:\\\\)*)/", r"\1\\/", text).replace("\n", "\\n")
    return f"/{text}/"


def to_ebnf(language: Language) -> str:
    """XGrammar's EBNF: a text is characters, so what is ignored stands after each terminal and at the start."""
    from constrain.export import to_gbnf
    from constrain.frontends import regex

    rules = _Rules(language)
    lines = [f"root ::= blank {rules.start}"]
    for name, expansions in rules.rules.items():
        options = [" ".join(map(rules.name, expansion)) or '""' for expansion in expansions]
        lines.append(f"{rules.rule_names[name]} ::= {' | '.join(options)}")
    for name, pattern in rules.terminals.items():
        own = rules.terminal_names[name]
        text = re.escape(pattern.value) if pattern.type == "str" else pattern.value
        flags = "".join(sorted(pattern.flags))
        text = without_looks(f"(?{flags}:{text})" if flags else text)
        made = re.sub(
            r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|\b[A-Za-z_][\w-]*\b',
            _renamed(own),
            to_gbnf(regex.to_grammar(text)),
        )
        lines.append(made.strip())
        if name not in rules.ignored:
            lines[-1] = lines[-1].replace(f"{own} ::= ", f"{own} ::= {own}-text blank\n{own}-text ::= ", 1)
    blanks = " | ".join(rules.terminal_names[name] for name in rules.ignored)
    lines.append(f"blank ::= ({blanks})*" if blanks else 'blank ::= ""')
    return "\n".join(lines) + "\n"


def _renamed(own: str) -> Any:
    """Build a replacement of rule names, outside quotes and brackets: `root` becomes the terminal's name."""

    def replace(found: re.Match[str]) -> str:
        name = found[0]
        return name if name[0] in '"[' else own if name == "root" else f"{own}-{name}"

    return replace
