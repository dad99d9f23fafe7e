"""Which lexemes may follow each lexeme: the rows of an Earley parser, found from the rules alone.

After a lexeme the parser has a *row*: the set of lexemes that the rules allow next, with `END` if the text may end. The
row depends on the rules that called the present one, so a lexeme has several rows; `LexemeRows.after` lists them. Where
a parser follows several readings at once, its row is a union of these.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from ...base.errors import LimitError
from ...base.work import spend_work
from ...grammar.nodes import Choice, Literal, Mark, Node, Repeat, Rule, Sequence

__all__ = ["END", "MOST_ROWS", "LexemeRows", "Row", "Rows"]

Row = frozenset[int]
Rows = frozenset[Row]
END = -1
"""In a row: the text may end."""
NO_ROWS: Rows = frozenset()
MOST_ROWS = 500


class LexemeRows:
    """The rows of a grammar whose leaves are the empty text and `Mark`s that `lexeme_of` numbers.

    Attributes
    ----------
    first : Rows
        The row at the start of a text.
    after : dict of int to Rows
        The rows after each lexeme.
    """

    def __init__(self, start: Node, rules: dict[Hashable, Node], lexeme_of: dict[str, int]) -> None:
        self.rules, self.lexeme_of = rules, lexeme_of
        self.nullable: set[Hashable] = set()
        self.firsts: dict[Hashable, Row] = {name: frozenset() for name in rules}
        self.called: dict[Hashable, Rows] = dict.fromkeys(rules, NO_ROWS)
        self.after: dict[int, Rows] = {}
        self._find_firsts()
        ends: Rows = frozenset({frozenset({END})})
        self.first = self._rows_before([start], ends)
        self._changed = True
        while self._changed:
            self._changed = False
            self._visit(start, ends)
            for name, body in rules.items():
                if self.called[name]:
                    self._visit(body, self.called[name])

    def _find_firsts(self) -> None:
        changed = True
        while changed:
            changed = False
            for name, body in reversed(self.rules.items()):
                spend_work(1, "the first lexemes of rules")
                first = self._first(body)
                if self._is_nullable(body) and name not in self.nullable:
                    self.nullable.add(name)
                    changed = True
                if first != self.firsts[name]:
                    self.firsts[name] = first
                    changed = True

    def _is_nullable(self, node: Node) -> bool:
        if isinstance(node, (Literal, Mark)):
            return isinstance(node, Literal)
        if isinstance(node, Rule):
            return node.name in self.nullable
        if isinstance(node, Sequence):
            return all(map(self._is_nullable, node.parts))
        if isinstance(node, Choice):
            return any(map(self._is_nullable, node.options))
        assert isinstance(node, Repeat)
        return not node.low or self._is_nullable(node.node)

    def _first(self, node: Node) -> Row:
        """Return the lexemes that a text of a node may begin with."""
        if isinstance(node, (Literal, Mark)):
            return frozenset({self.lexeme_of[node.text]} if isinstance(node, Mark) else ())
        if isinstance(node, Rule):
            return self.firsts[node.name]
        if isinstance(node, Choice):
            return frozenset().union(*map(self._first, node.options))
        if isinstance(node, Repeat):
            return self._first(node.node)
        assert isinstance(node, Sequence)
        return self._first_of(node.parts)

    def _first_of(self, parts: Iterable[Node]) -> Row:
        found: Row = frozenset()
        for part in parts:
            found |= self._first(part)
            if not self._is_nullable(part):
                break
        return found

    def _rows_before(self, parts: list[Node] | tuple[Node, ...], following: Rows) -> Rows:
        """Return the rows before a sequence of nodes that is followed by one of these rows."""
        first = self._first_of(parts)
        if not all(map(self._is_nullable, parts)):
            return frozenset({first})
        return frozenset(first | row for row in following)

    def _visit(self, node: Node, following: Rows) -> None:
        """Record what follows the lexemes and rules in a node that is followed by one of these rows."""
        spend_work(1 + len(following), "the lexemes that follow each other")
        if len(following) > MOST_ROWS:
            raise LimitError(
                f"a lexeme of the grammar has more than {MOST_ROWS} sets of lexemes that may follow it",
                hint="Simplify the rules.",
            )
        if isinstance(node, Mark):
            lexeme = self.lexeme_of[node.text]
            known = self.after.get(lexeme, NO_ROWS)
            self._changed |= not following <= known
            self.after[lexeme] = known | following
        elif isinstance(node, Rule):
            known = self.called[node.name]
            self._changed |= not following <= known
            self.called[node.name] = known | following
        elif isinstance(node, Choice):
            for option in node.options:
                self._visit(option, following)
        elif isinstance(node, Sequence):
            for k, part in enumerate(node.parts):
                self._visit(part, self._rows_before(node.parts[k + 1 :], following))
        elif isinstance(node, Repeat):
            again = self._first(node.node)
            rows: set[Row] = set()
            if node.low > 1:
                rows.add(again)
            if node.high is None or node.high > max(node.low, 1):
                rows |= {again | row for row in following}
            if node.high is not None:
                rows |= following
            if self._is_nullable(node.node):
                rows |= {again | row for row in following}
            self._visit(node.node, frozenset(rows))
