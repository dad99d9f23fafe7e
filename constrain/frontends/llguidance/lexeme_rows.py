"""Which lexemes may follow each lexeme: the rows of an Earley parser, found from the rules alone.

After a lexeme the parser has a *row*: the set of lexemes that the rules allow next, with `END` if the text may end. The
row depends on the rules that called the present one, so a lexeme has several rows; `LexemeRows.after` lists them.

The parser follows all readings of a text at once. So where a rule is called from several places of one position, as in
`e: "x" | e "+" e`, what may follow it is the union of what may follow each of them. The positions are those of an LR(0)
automaton: a `Context` holds the readings that go on together, each as the nodes that are still to come in its rule. Of
the calls below a rule a context knows only the row that they lead to, so that there are finitely many. For the same
reason large counted repetitions are not counted: after each repetition, more may follow or none.

Where several lexemes of one position match the text, it is read as each of them: what follows is the union for those
that match, found for each set of lexemes that may match together (`Match`). Lexemes that a rule and its callers allow
at once belong to different contexts; for these the unions of any two of their rows are added.

Source: D. E. Knuth, "On the translation of languages from left to right" (1965), section II, for the sets of readings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import combinations, product
from typing import NamedTuple

from ...base.errors import LimitError
from ...base.work import spend_work
from ...grammar.nodes import Choice, Literal, Mark, Node, Repeat, Rule, Sequence
from .lexeme_scanning import Kinds, LexemeOverlaps

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
PAIRS = 8
"""Pairs of kinds that are compared per unit of work."""
MOST_COUNTED = 8
"""Largest bound of a Repeat whose repetitions are counted."""
MANY = MOST_COUNTED + 1
"""A bound that stands for any number, in a Repeat whose repetitions are not counted."""
CONTEXT = object()
"""In place of a rule: the context itself."""


class Match(NamedTuple):
    """What a text of a lexeme says about those that compete with it: the kinds that match it, and that do not.

    Of the latter, those that have some text in common with the lexeme.
    """

    matching: Kinds
    failing: Kinds

    def unite(self, other: Match) -> Match | None:
        """Return what is known of a text that two lexemes match. None: they cannot."""
        if self.matching & other.failing or self.failing & other.matching:
            return None
        return Match(self.matching | other.matching, self.failing | other.failing)


class LexemeRows:
    """The rows of a grammar whose leaves are the empty text and `Mark`s that `lexeme_of` numbers.

    Attributes
    ----------
    first : Rows
        The row at the start of a text.
    after : dict of int to dict of Match to Rows
        The rows after each lexeme, by what its text may match besides.
    """

    def __init__(
        self, start: Node, rules: dict[Hashable, Node], lexeme_of: dict[str, int], overlaps: LexemeOverlaps
    ) -> None:
        self.rules, self.lexeme_of, self.overlaps = rules, lexeme_of, overlaps
        self.nullable: set[Hashable] = set()
        self.firsts: dict[Hashable, Row] = {name: frozenset() for name in rules}
        self.after: dict[int, dict[Match, Rows]] = {}
        self._find_firsts()
        ends: Rows = frozenset({frozenset({END})})
        self.first = self.rows_before([start], ends)
        todo: list[Context] = [frozenset({((start,), ends)})]
        seen = set(todo)
        crossing = set[tuple[int, int]]()
        while todo:
            found = _Position(self, todo.pop())
            for lexeme, by_match in found.rows_after_lexemes().items():
                for match, rows in by_match.items():
                    self._add(lexeme, match, rows)
            crossing |= found.crossing
            fresh = [context for context in found.contexts() if context not in seen]
            seen.update(fresh)
            todo += fresh
            if len(seen) > MOST_CONTEXTS:
                raise LimitError(
                    f"the rules of the grammar have more than {MOST_CONTEXTS:,} sets of readings",
                    hint="Simplify the rules.",
                )
        self._unite_crossing(crossing)

    def find_crossing(self, first: Row, following: Row) -> set[tuple[int, int]]:
        """Return the pairs of a lexeme of `first` and another of `following` that may match the same text."""
        kinds, overlap = self.overlaps.kinds, self.overlaps.overlap
        by_kind: dict[int, list[int]] = {}
        for number in following - {END}:
            by_kind.setdefault(kinds[number], []).append(number)
        spend_work(1 + len(first) * len(by_kind) // PAIRS, "lexemes that match the same text")
        found = set[tuple[int, int]]()
        for one in first - {END}:
            for kind, numbers in by_kind.items():
                if overlap(kinds[one], kind):
                    found.update((min(one, other), max(one, other)) for other in numbers if other != one)
        return found

    def _add(self, lexeme: int, match: Match, rows: Rows) -> bool:
        """Add rows after a lexeme. Return whether some are new."""
        after = self.after.setdefault(lexeme, {})
        known = after.get(match, NO_ROWS)
        if rows <= known:
            return False
        after[match] = known | rows
        if sum(map(len, after.values())) > MOST_ROWS:
            raise too_many_rows()
        return True

    def _narrow(self, match: Match, lexeme: int) -> Match:
        """Return a Match without the kinds that a lexeme has no text in common with."""
        return match._replace(failing=self.overlaps.partners(self.overlaps.kinds[lexeme], match.failing))

    def _unite_crossing(self, crossing: set[tuple[int, int]]) -> None:
        """Add the unions of the rows after each of two lexemes of different contexts that may match the same text."""
        changed = True
        while changed:
            changed = False
            for one, other in sorted(crossing):
                entries = [list(self.after.get(lexeme, {}).items()) for lexeme in (one, other)]
                for (match, after), (other_match, other_after) in product(*entries):
                    spend_work(1 + len(after) * len(other_after), "lexemes that match the same text")
                    both = match.unite(other_match)
                    if both is None:
                        continue
                    for first, second in product(after, other_after):
                        crossing |= self.find_crossing(first, second)
                    rows = frozenset(first | second for first, second in product(after, other_after))
                    changed |= self._add(one, self._narrow(both, one), rows)
                    changed |= self._add(other, self._narrow(both, other), rows)

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
        return self.first_lexemes_of(node.parts)

    def first_lexemes_of(self, parts: Iterable[Node]) -> Row:
        """Return the lexemes that a text of a sequence of nodes may begin with."""
        found: Row = frozenset()
        for part in parts:
            found |= self.first_lexemes(part)
            if not self.is_nullable(part):
                break
        return found

    def rows_before(self, parts: list[Node] | tuple[Node, ...], following: Rows) -> Rows:
        """Return the rows before a sequence of nodes that is followed by one of these rows."""
        first = self.first_lexemes_of(parts)
        if not all(map(self.is_nullable, parts)):
            return frozenset({first})
        return frozenset(first | row for row in following)


class _Position:
    """A position of a text: the readings of a context, those of the rules that they call, and what comes after each.

    following: the rows after each rule that is called here, the unions over all calls. crossing: pairs of lexemes that
    may match the same text, of this position and of one that this is within.
    """

    def __init__(self, rows: LexemeRows, context: Context) -> None:
        self.rows = rows
        self.following: dict[Hashable, Rows] = {}
        self.crossing = set[tuple[int, int]]()
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

    def rows_after_lexemes(self) -> dict[int, dict[Match, Rows]]:
        """Return the rows after each lexeme that may come next."""
        overlaps = self.rows.overlaps
        places: dict[int, set[int]] = {}
        entries: dict[int, list[Rows]] = {}
        for begun in self._begun.values():
            for lexeme, going_on in begun.lexemes.items():
                kind = overlaps.kinds[lexeme]
                places.setdefault(kind, set()).add(lexeme)
                entries.setdefault(kind, []).extend(after for after, _ in going_on)
        found: dict[int, dict[Match, Rows]] = {lexeme: {} for some in places.values() for lexeme in some}
        kinds = frozenset(places)
        parts = {kind for kind in kinds if overlaps.examples[kind].dfa is None}
        for one, other in combinations(sorted(parts), 2):  # Which of their texts are equal is not known.
            self.crossing |= self.rows.find_crossing(frozenset(places[one]), frozenset(places[other]))
        for matching in overlaps.list_matches(kinds):
            rows = unite_rows([after for kind in matching for after in entries[kind]])
            for kind in matching:
                match = Match(matching, overlaps.partners(kind, kinds - matching))
                for lexeme in places[kind]:
                    found[lexeme][match] = rows
        return found

    def contexts(self) -> set[Context]:
        """Return the contexts after each set of lexemes that match together, and after each rule."""
        kinds = self.rows.overlaps.kinds
        places: dict[int, dict[tuple[Reading, ...], None]] = {}
        calls: dict[Hashable, dict[tuple[Reading, ...], None]] = {}
        for begun in self._begun.values():
            for lexeme, entries in begun.lexemes.items():
                places.setdefault(kinds[lexeme], {}).update(dict.fromkeys(readings for _, readings in entries))
            for name, entries in begun.calls.items():
                calls.setdefault(name, {}).update(dict.fromkeys(readings for _, readings in entries))
        matches = self.rows.overlaps.list_matches(frozenset(places))
        together = [dict.fromkeys(readings for kind in match for readings in places[kind]) for match in matches]
        contexts = set[Context]()
        for distinct in (*together, *calls.values()):
            for chosen in product(*distinct):
                spend_work(READING * len(chosen), "the readings of a grammar")
                self._cross(chosen)
                contexts.add(frozenset(reading for reading in chosen if reading[0]))
        return contexts - {frozenset()}

    def _cross(self, readings: Iterable[Reading]) -> None:
        """Find what crosses where readings may go on in their rule, or after it."""
        going_on, after = set[int](), set[int]()
        for parts, following in readings:
            going_on |= self.rows.first_lexemes_of(parts)
            if all(map(self.rows.is_nullable, parts)):
                after.update(*following)
        if going_on and after:
            self.crossing |= self.rows.find_crossing(frozenset(going_on), frozenset(after))

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
        """Enter what a Repeat begins with. How often a large one has been read is not known, only what may follow."""
        if node.low <= 1 and node.high is None:
            ways: list[Parts] = [(Repeat(node.node, 0, None),)]
        elif (node.high or node.low) <= MOST_COUNTED and not has_counts(node.node):
            high = None if node.high is None else node.high - 1
            ways = [() if high == 0 else (Repeat(node.node, max(node.low - 1, 0), high),)]
        else:
            # What is left: at least one repetition, any number, or none.
            more, some = (None, None) if node.high is None else (MANY + 1, MANY)
            ways = [(Repeat(node.node, MANY, more),)] if node.low > 1 else []
            if node.high is None or node.high > max(node.low, 1) or self.rows.is_nullable(node.node):
                ways.append((Repeat(node.node, 0, some),))
            if node.high is not None:
                ways.append(())
        rows = frozenset().union(*(self.rows.rows_before(way, after) for way in ways))
        going_on = [((*way, *parts), following) for way in ways for parts, following in readings]
        if len(ways) > 1:
            spend_work(READING * len(going_on), "the readings of a grammar")
        self._enter(node.node, rows, tuple(going_on))


def has_counts(node: Node) -> bool:
    """Return whether a node has a repetition that is counted, not counting those in rules that it calls."""
    if isinstance(node, Repeat):
        return node.low > 1 or node.high not in (None, 1) or has_counts(node.node)
    return any(map(has_counts, node.parts if isinstance(node, Sequence) else getattr(node, "options", ())))


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
        raise too_many_rows()
    return rows


def too_many_rows() -> LimitError:
    """Return the error for more than MOST_ROWS rows after a lexeme."""
    return LimitError(
        f"a lexeme of the grammar has more than {MOST_ROWS} sets of lexemes that may follow it",
        hint="Simplify the rules.",
    )
