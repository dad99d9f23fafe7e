"""Lark grammars without a lexer: each terminal is a leaf that is matched only where the rules expect it.

The accepted language is that of lark with parser="earley" and one of these lexers:

    dynamic_complete   a terminal ends wherever its pattern may
    dynamic            a terminal ends only where its preferred match on the rest of the text ends

In both, ignored terminals may occur before, between and after others, and match their preferred match only.
"Preferred" means the longest match that the terminal's own ordered automaton finds. Whether a match is the longest
depends on what follows: if nothing that may follow a terminal can continue its match, any end is the longest one, and
the leaf is exact. `_Follow` decides once whether that is so; if not, the grammar is refused by name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal as OneOf

from ...automata.dfa import Dfa, Table
from ...base.errors import UnsatisfiableError, UnsupportedError
from ...base.options import Limits
from ...grammar.nodes import Chars, Grammar, Literal, Node, Repeat, Rule
from ...grammar.simplification import simplify_grammar
from ...grammar.smart_constructors import make_choice, make_sequence
from .lark_loader import LoadedGrammar
from .lexer_terminals import build_lexers
from .terminal_characters import find_terminal_dfa

__all__ = ["Dynamic", "build_scannerless_rules", "build_terminal_leaves", "to_scannerless_grammar"]

Dynamic = OneOf["dynamic", "dynamic_complete"]


def to_scannerless_grammar(
    loaded: LoadedGrammar, lexer: Dynamic, declared: Mapping[str, tuple[Node, Dfa]] = {}, *, limits: Limits = Limits()
) -> Grammar:
    """Return the Grammar of a Lark grammar without a lexer.

    Parameters
    ----------
    loaded : LoadedGrammar
    lexer : {"dynamic", "dynamic_complete"}
    declared : mapping from str to (Node, Dfa)
        The node of each terminal that the grammar only `%declare`s, and a Dfa of single characters with which its texts
        may begin. Rules that these nodes reference are not part of the result.
    limits : Limits

    Returns
    -------
    Grammar

    Raises
    ------
    UnsupportedError
        If the longest match of a terminal cannot be decided, or a terminal looks beyond its end.
    UnsatisfiableError
        If the language is empty.
    """
    leaves, dfas = build_terminal_leaves(loaded, declared, limits)
    follow = _Follow(loaded, dfas)
    follow.check(range(len(leaves)) if lexer == "dynamic" else loaded.ignored)
    start, rules = build_scannerless_rules(loaded, leaves)
    grammar = simplify_grammar(start, rules)
    if grammar is None:
        raise UnsatisfiableError(
            "the grammar derives no text: every derivation is infinite",
            source=loaded.text,
            position=0,
            hint="Add an option without recursion to one of the rules.",
        )
    return grammar


def build_scannerless_rules(loaded: LoadedGrammar, leaves: Sequence[Node]) -> tuple[Node, dict[Hashable, Node]]:
    """Return the start and the rules of a Lark grammar without a lexer, given the node of each terminal.

    Rule `("rule", n)` is that of nonterminal n, and `"ignored"` that of ignored text, if there is any.
    """
    productions = loaded.productions
    options: dict[Hashable, list[Node]] = {("rule", n): [] for n in range(len(productions.nonterminals))}
    ignored = Repeat(make_choice(leaves[t] for t in loaded.ignored)) if loaded.ignored else None
    for left, right in zip(productions.left, productions.right):
        steps: list[Node] = []
        for symbol in right:
            steps.append(leaves[symbol] if symbol >= 0 else Rule(("rule", ~symbol)))
            if symbol >= 0 and ignored is not None:
                steps.append(Rule("ignored"))
        options["rule", left].append(make_sequence(steps))
    rules: dict[Hashable, Node] = {name: make_choice(alternatives) for name, alternatives in options.items()}
    start: Node = Rule(("rule", productions.start))
    if ignored is not None:
        rules["ignored"] = ignored
        start = make_sequence((Rule("ignored"), start))
    return start, rules


def build_terminal_leaves(
    loaded: LoadedGrammar, declared: Mapping[str, tuple[Node, Dfa]], limits: Limits
) -> tuple[list[Node], list[Dfa]]:
    """Return each terminal as a node and as a Dfa; the Dfa of a declared terminal is a superset of its texts."""
    count = len(loaded.terminals)
    for t in loaded.declared:
        name = loaded.terminals[t].name
        if name not in declared:
            raise UnsupportedError(
                f"terminal {name} is declared and has no text",
                hint=f'Give it one: grammars={{"{name}": ...}}; indentation needs lexer="contextual".',
            )
    leaves: list[Node] = []
    dfas: list[Dfa] = []
    texts = [t for t in range(count) if t not in loaded.declared]
    alone = build_lexers(replace(loaded, ignored=()), [[t] for t in texts], limits=limits) if texts else None
    for t, terminal in enumerate(loaded.terminals):
        if terminal.kind == "declared":
            node, first = declared[terminal.name]
            leaves.append(node)
            dfas.append(first.concatenate(Dfa.any_text()))
            continue
        assert alone is not None
        start = int(alone.starts[texts.index(t)])
        dfa = Dfa.empty() if start < 0 else find_terminal_dfa(alone.scanner, start)
        if dfa is None:
            raise UnsupportedError(
                f"terminal {terminal.name}: its end depends on what follows, which is not supported without a lexer",
                source=loaded.text,
                position=terminal.position or 0,
                hint='Use lexer="contextual", or move the lookahead into a rule.',
            )
        dfas.append(dfa)
        leaves.append(Literal(dfa.shortest().encode()) if dfa.count(2) == 1 else Chars(dfa))
    return leaves, dfas


class _Follow:
    """FOLLOW sets of terminals, compared with the texts that extend their matches."""

    def __init__(self, loaded: LoadedGrammar, dfas: list[Dfa]) -> None:
        self.loaded, self.dfas = loaded, dfas
        self.productions = loaded.productions
        self.after: list[set[int]] = []

    def check(self, terminals: Iterable[int]) -> None:
        """Raise UnsupportedError if one of these terminals may end before its longest match."""
        growing = {t: growth for t in terminals if (growth := self.growth(t)) is not None}
        if not growing:
            return
        follow = self.follow()
        ignored = set(self.loaded.ignored)
        everything = set(range(len(self.dfas)))
        for t, growth in growing.items():
            following = (everything if t in ignored else follow[t]) | ignored
            for other in sorted(following):
                dfa = self.dfas[other]
                if t == other and t in ignored and self.joins(t):
                    continue
                if may_overlap(growth, dfa):
                    raise self.refusal(t, other)

    def growth(self, t: int) -> Dfa | None:
        """Return the Dfa of the texts that extend a match to a longer one; None if there are none."""
        dfa = self.dfas[t]
        if t in self.loaded.declared or dfa.is_empty:
            return None
        table = dfa.table
        parts = []
        for state, accepts in enumerate(table.accepting):
            if accepts and any(target >= 0 for target in table.rows[state]):
                rows = [table.rows[state], *table.rows]
                shifted = [[-1 if target < 0 else target + 1 for target in row] for row in rows]
                parts.append(Dfa.from_table(Table(table.bounds, table.classes, shifted, [False, *table.accepting])))
        return Dfa.union_of(parts) if parts else None

    def joins(self, t: int) -> bool:
        """Return whether two adjacent matches form one; then the end of the first does not matter."""
        dfa = self.dfas[t]
        return dfa.concatenate(dfa).subtract(dfa).is_empty

    def follow(self) -> list[set[int]]:
        """Return the FOLLOW set of each terminal, without ignored terminals."""
        productions = self.productions
        nullable = productions.nullable()
        size = len(productions.nonterminals)
        first: list[set[int]] = [set() for _ in range(size)]
        follow_of_nonterminal: list[set[int]] = [set() for _ in range(size)]
        follow_of_terminal: list[set[int]] = [set() for _ in self.dfas]
        changed = True
        while changed:
            size_before = sum(map(len, [*first, *follow_of_nonterminal, *follow_of_terminal]))
            for left, right in zip(productions.left, productions.right):
                at_beginning = True
                for k, symbol in enumerate(right):
                    if at_beginning:
                        first[left] |= {symbol} if symbol >= 0 else first[~symbol]
                        at_beginning = symbol < 0 and ~symbol in nullable
                    followers = follow_of_terminal[symbol] if symbol >= 0 else follow_of_nonterminal[~symbol]
                    for following in right[k + 1 :]:
                        followers |= {following} if following >= 0 else first[~following]
                        if following >= 0 or ~following not in nullable:
                            break
                    else:
                        followers |= follow_of_nonterminal[left]
            changed = sum(map(len, [*first, *follow_of_nonterminal, *follow_of_terminal])) > size_before
        return follow_of_terminal

    def refusal(self, t: int, other: int) -> UnsupportedError:
        name, other_name = self.loaded.terminals[t].name, self.loaded.terminals[other].name
        return UnsupportedError(
            f"terminal {name} takes its longest match only, and a following {other_name} may extend that match",
            source=self.loaded.text,
            position=self.loaded.terminals[t].position or 0,
            hint='Use lexer="contextual"; or lexer="dynamic_complete", if it is not an ignored terminal.',
        )


def may_overlap(growth: Dfa, following: Dfa) -> bool:
    """Return whether a text of `growth` is a prefix of a text of `following` plus any text, or the other way round."""
    if following.is_empty:
        return False
    table = following.table
    prefixes = Dfa.from_table(table._replace(accepting=[True] * len(table.rows)))
    continued = following.concatenate(Dfa.any_text())
    return not growth.intersect(prefixes.union(continued)).is_empty
