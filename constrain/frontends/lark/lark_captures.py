"""Captures of the rules and terminals of a Lark grammar: which symbols have a name, and its rules as written."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from difflib import get_close_matches

from ...automata.dfa import Dfa
from ...base.errors import GrammarError
from ...base.options import Limits
from ...grammar.captured_grammar import CapturedGrammar
from ...grammar.nodes import Choice, Node, Repeat, Rule, Sequence
from ...grammar.smart_constructors import make_choice, make_sequence
from ...lalr.productions import Productions
from .lark_loader import MADE, LoadedGrammar
from .scannerless_grammar import build_scannerless_rules, build_terminal_leaves

__all__ = ["capture_scannerless_rules", "find_captured_symbols"]


def find_captured_symbols(productions: Productions, captures: Iterable[str], source: str) -> dict[int, str]:
    """Return the name of each symbol to capture: terminal t is t, nonterminal n is ~n.

    Raise GrammarError for a name that is neither that of a rule nor that of a terminal.
    """
    symbols = {name: t for t, name in enumerate(productions.terminals)}
    symbols |= {name: ~n for n, name in enumerate(productions.nonterminals)}
    for name in captures:
        if name not in symbols:
            close = get_close_matches(name, symbols, 1)
            hint = (
                f"Did you mean {close[0]}?" if close else "Give names of rules or terminals that the start rule uses."
            )
            raise GrammarError(f"captures: there is no rule {name}", source=source, position=0, hint=hint)
    return {symbols[name]: name for name in captures}


def capture_scannerless_rules(
    loaded: LoadedGrammar,
    declared: Mapping[str, tuple[Node, Dfa]],
    inner: Mapping[Hashable, Node],
    captures: Iterable[str],
    limits: Limits = Limits(),
) -> CapturedGrammar:
    """Return the rules of a Lark grammar without a lexer, with captures of the rules and terminals of these names.

    `declared` is as for `to_scannerless_grammar`; `inner` are the rules that its nodes reference.
    """
    productions = loaded.productions
    symbols = find_captured_symbols(productions, captures, loaded.text)
    leaves, _ = build_terminal_leaves(loaded, declared, limits)
    terminals: dict[Hashable, Node] = {("terminal", t): leaves[t] for t in symbols if t >= 0}
    for t in (t for t in symbols if t >= 0):
        leaves[t] = Rule(("terminal", t))
    start, rules = build_scannerless_rules(loaded, leaves)
    for n, name in enumerate(productions.nonterminals):
        if MADE.fullmatch(name):
            rules["rule", n] = restore_repetition(rules["rule", n], Rule(("rule", n)))
    names: dict[Hashable, str] = {
        ("terminal", symbol) if symbol >= 0 else ("rule", ~symbol): name for symbol, name in symbols.items()
    }
    return CapturedGrammar(start, {**rules, **terminals}, names, inner, frozenset({"ignored"}.intersection(rules)))


def restore_repetition(body: Node, itself: Rule) -> Node:
    """Return the body of a rule that lark made of a repetition, `r: a | r a`, as that repetition again.

    So captures prefer the longest text for the first round, as they do elsewhere.
    """
    options = body.options if isinstance(body, Choice) else (body,)
    again = [one for one in options if isinstance(one, Sequence) and one.parts[0] == itself]
    rounds = [one for one in options if one not in again]
    if not again or {make_sequence(one.parts[1:]) for one in again} != set(rounds):
        return body
    return Repeat(make_choice(rounds), 1, None)
