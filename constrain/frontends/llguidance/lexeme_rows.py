"""Which lexemes may follow each lexeme: the rows of an Earley parser, found from the rules alone.

After a lexeme the parser has a *row*: the set of lexemes that the rules allow next, with `END` if the text may end. The
row depends on the rules that called the present one, so a lexeme has several rows; `LexemeRows.after` lists them.

The parser follows all readings of a text at once. So where a rule is called from several places of one position, as in
`e: "x" | e "+" e`, what may follow it is the union of what may follow each of them. The positions are those of an LR(0)
automaton: a `Context` holds the readings that go on together, each as the nodes that are still to come in its rule. Of
the calls below a rule a context knows only the row that they lead to, so that there are finitely many.

Source: D. E. Knuth, "On the translation of languages from left to right" (1965), section II, for the sets of readings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import product

from ...base.errors import LimitError
from ...base.work import spend_work
from ...grammar.nodes import Choice, Literal, Mark, Node, Repeat, Rule, Sequence

__all__ = ["END", "MOST_ROWS", "LexemeRows", "Row", "Rows"]

Row = frozenset[int]
Rows = frozenset[Row]
Parts = tuple[Node, ...]
Reading = tuple[Parts, Rows]
"""The nodes that are still to come, and the rows that may follow them."""
Context = frozenset[Reading]
"""Readings that go on together."""
END = -1
"""In a row: the text may end."""
NO_ROWS: Rows = frozenset()
MOST_ROWS = 500
MOST_CONTEXTS = 20_000
READING = 20
"""Units of work of a reading that is one of several."""
CONTEXT = object()
"""In place of a rule: the context itself."""


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
        self.after: dict[int, Rows] = {}
        self._find_firsts()
        ends: Rows = frozenset({frozenset({END})})
        self.first = self.rows_before([start], ends)
        todo: list[Context] = [frozenset({((start,), ends)})]
        seen = set(todo)
        while todo:
            found = _Position(self, todo.pop())
            for lexeme, rows in found.rows_after_lexemes().items():
                self.after[lexeme] = check_count(self.after.get(lexeme, NO_ROWS) | rows)
            fresh = [context for context in found.contexts() if context not in seen]
            seen.update(fresh)
            todo += fresh
            if len(seen) > MOST_CONTEXTS:
                raise LimitError(
                    f"the rules of the grammar have more than {MOST_CONTEXTS:,} sets of readings",
                    hint="Simplify the rules.",
                )

    def _find_firsts(self) -> None:
        changed = True
        while changed:
            changed = False
            for name, body in reversed(self.rules.items()):
                spend_work(1, "the first lexemes of rules")
                first = self.first_lexemes(body)
                if self.is_nullable(body) and name not in self.nullable:
                    self.nullable.add(name)
                    changed = True
                if first != self.firsts[name]:
                    self.firsts[name] = first
                    changed = True

    def is_nullable(self, node: Node) -> bool:
        if isinstance(node, (Literal, Mark)):
            return isinstance(node, Literal)
        if isinstance(node, Rule):
            return node.name in self.nullable
        if isinstance(node, Sequence):
            return all(map(self.is_nullable, node.parts))
        if isinstance(node, Choice):
            return any(map(self.is_nullable, node.options))
        assert isinstance(node, Repeat)
        return not node.low or self.is_nullable(node.node)

    def first_lexemes(self, node: Node) -> Row:
        """Return the lexemes that a text of a node may begin with."""
        if isinstance(node, (Literal, Mark)):
            return frozenset({self.lexeme_of[node.text]} if isinstance(node, Mark) else ())
        if isinstance(node, Rule):
            return self.firsts[node.name]
        if isinstance(node, Choice):
            return frozenset().union(*map(self.first_lexemes, node.options))
        if isinstance(node, Repeat):
            return self.first_lexemes(node.node)
        assert isinstance(node, Sequence)
        return self._first_of(node.parts)

    def _first_of(self, parts: Iterable[Node]) -> Row:
        found: Row = frozenset()
        for part in parts:
            found |= self.first_lexemes(part)
            if not self.is_nullable(part):
                break
        return found

    def rows_before(self, parts: list[Node] | tuple[Node, ...], following: Rows) -> Rows:
        """Return the rows before a sequence of nodes that is followed by one of these rows."""
        first = self._first_of(parts)
        if not all(map(self.is_nullable, parts)):
            return frozenset({first})
        return frozenset(first | row for row in following)


class _Position:
    """A position of a text: the readings of a context, those of the rules that they call, and what comes after each.

    following: the rows after each rule that is called here, the unions over all calls.
    """

    def __init__(self, rows: LexemeRows, context: Context) -> None:
        self.rows = rows
        self.following: dict[Hashable, Rows] = {}
        self._begun: dict[Hashable, _Beginnings] = {CONTEXT: self._list_beginnings(context)}
        self._callers: dict[Hashable, list[Hashable]] = {}
        todo: list[Hashable] = [CONTEXT]
        while todo:
            caller = todo.pop()
            for name in self._begun[caller].calls:
                callers = self._callers.setdefault(name, [])
                if caller not in callers:
                    callers.append(caller)
                entries = (entry for one in callers for entry in self._begun[one].calls.get(name, ()))
                following = unite_rows([after for after, _ in entries])
                if self.following.get(name) != following:
                    self.following[name] = following
                    self._begun[name] = self._list_beginnings([((rows.rules[name],), following)])
                    todo.append(name)

    def rows_after_lexemes(self) -> dict[int, Rows]:
        """Return the rows after each lexeme that may come next."""
        found: dict[int, list[Rows]] = {}
        for begun in self._begun.values():
            for lexeme, entries in begun.lexemes.items():
                found.setdefault(lexeme, []).extend(after for after, _ in entries)
        return {lexeme: unite_rows(rows) for lexeme, rows in found.items()}

    def contexts(self) -> set[Context]:
        """Return the contexts after each lexeme and rule."""
        after: dict[tuple[bool, Hashable], dict[tuple[Reading, ...], None]] = {}
        for begun in self._begun.values():
            for is_rule, found in ((False, begun.lexemes), (True, begun.calls)):
                for name, entries in found.items():
                    after.setdefault((is_rule, name), {}).update(dict.fromkeys(readings for _, readings in entries))
        contexts = set[Context]()
        for distinct in after.values():
            for chosen in product(*distinct):
                spend_work(READING * len(chosen), "the readings of a grammar")
                contexts.add(frozenset(reading for reading in chosen if reading[0]))
        return contexts - {frozenset()}

    def _list_beginnings(self, readings: Iterable[Reading]) -> _Beginnings:
        """Return what readings begin with."""
        begun = _Beginnings(self.rows)
        for parts, following in readings:
            begun.enter_parts(parts, following, (((), following),))
        return begun


class _Beginnings:
    """What some readings begin with.

    lexemes, calls: for each lexeme and rule that may come next, one entry for each place of it: the rows after it, and
    how the reading goes on, as alternatives of which one holds.
    """

    def __init__(self, rows: LexemeRows) -> None:
        self.rows = rows
        self.lexemes: dict[int, list[tuple[Rows, tuple[Reading, ...]]]] = {}
        self.calls: dict[Hashable, list[tuple[Rows, tuple[Reading, ...]]]] = {}

    def enter_parts(self, parts: Parts, after: Rows, readings: tuple[Reading, ...]) -> None:
        """Enter what a sequence of nodes begins with; see `_enter`."""
        spend_work(1 + len(parts) + len(after), "the lexemes that follow each other")
        for k, part in enumerate(parts):
            rest = parts[k + 1 :]
            going_on = tuple((rest + others, following) for others, following in readings)
            self._enter(part, self.rows.rows_before(rest, after), going_on)
            if not self.rows.is_nullable(part):
                break

    def _enter(self, node: Node, after: Rows, readings: tuple[Reading, ...]) -> None:
        """Enter what a node begins with. after: the rows after it. readings: how the reading goes on after it."""
        if isinstance(node, Mark):
            self.lexemes.setdefault(self.rows.lexeme_of[node.text], []).append((after, readings))
        elif isinstance(node, Rule):
            self.calls.setdefault(node.name, []).append((after, readings))
        elif isinstance(node, Choice):
            for option in node.options:
                self._enter(option, after, readings)
        elif isinstance(node, Sequence):
            self.enter_parts(node.parts, after, readings)
        elif isinstance(node, Repeat):
            self._enter_repeat(node, after, readings)

    def _enter_repeat(self, node: Repeat, after: Rows, readings: tuple[Reading, ...]) -> None:
        """Enter what a Repeat begins with. How often it has been read is not known, only what may follow."""
        again = self.rows.first_lexemes(node.node)
        must, may, done = Repeat(node.node, 1, None), Repeat(node.node, 0, None), node.high is not None
        goes_on = node.high is None or node.high > max(node.low, 1) or self.rows.is_nullable(node.node)
        rows, going_on = set[Row](), list[Reading]()
        if node.low > 1:
            rows.add(again)
            going_on += [((must, *parts), following) for parts, following in readings]
        if goes_on:
            rows |= {again | row for row in after}
            going_on += [((may, *parts), following) for parts, following in readings]
        if done:
            rows |= after
            going_on += readings
        spend_work(READING * len(going_on), "the readings of a grammar")
        self._enter(node.node, frozenset(rows), tuple(going_on))


def unite_rows(alternatives: Iterable[Rows]) -> Rows:
    """Return the unions of one row of each, where any of its rows may hold for each."""
    found: Rows = frozenset({frozenset()})
    for rows in set(alternatives):
        spend_work(len(rows) * len(found), "the lexemes that follow each other")
        found = check_count(frozenset(one | other for one in found for other in rows))
    return found


def check_count(rows: Rows) -> Rows:
    """Return rows. Raise LimitError if they are too many."""
    if len(rows) > MOST_ROWS:
        raise LimitError(
            f"a lexeme of the grammar has more than {MOST_ROWS} sets of lexemes that may follow it",
            hint="Simplify the rules.",
        )
    return rows
