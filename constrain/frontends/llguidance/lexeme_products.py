"""The lexing decisions of llguidance, written into a Grammar.

Among the lexemes that may come next, the scanner goes on as long as one of them can; it stops at once where a lazy one
matches. So a text w is a lexeme T exactly if w is in T, no shorter prefix of w and no other reading of w is a lazy
match, and the next byte cannot continue w in any competitor. `LexemeTransitions` is a transducer that says so: its
states are the rows after the previous lexeme with the bytes that must not come next, and it rewrites each lexeme to the
part of its language for each state that follows.

The rows come from the rules alone (see `lexeme_rows`), so it can be unknown whether two lexemes compete at a place. A
grammar in which that makes a difference is refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from typing import NoReturn

from ...automata.dfa import LAST, Dfa, Table
from ...base.errors import UnsupportedError
from ...base.options import Limits
from ...base.work import spend_work
from ...grammar.nodes import EMPTY, Chars, Choice, Literal, Mark, Node
from ...lalr.parser_product import cut_dfa
from .lexeme_rows import END, MOST_ROWS, LexemeRows, Row, Rows

__all__ = [
    "NUMBER_BYTES", "SKIP_AT_END", "Bytes", "Lexeme", "LexemeTransitions", "lead_bytes", "ranges_from", "text_before",
]  # fmt: skip

Bytes = frozenset[int]
NO_BYTES: Bytes = frozenset()
NUMBER_BYTES: Bytes = frozenset(b"0123456789.eE+-")
SKIP_AT_END = "skip at the end"
INITIAL = 0
"""The state at the start of a text."""
SOME_TEXT = Dfa.any_text().with_length(1, None)
Scanned = tuple["Dfa | Node | None", bool]
"""A lexeme as the scanner sees it: its language, or the part that it stands for, and whether it is lazy."""


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A lexeme: a text of `dfa`, or a part with a lexer of its own or a special token, which `node` stands for.

    first: the characters that a part begins with. tail: the first bytes that could continue it. at: its offset.
    """

    at: int
    dfa: Dfa | None = None
    is_lazy: bool = False
    node: Node | None = None
    first: Dfa | None = None
    tail: Bytes = NO_BYTES


class LexemeTransitions:
    """The transducer; see the module.

    `skip` is the number of the ignored lexeme, or None. skips: "once" if it may not be repeated. unspaced: lexemes
    before which no text is ignored, since they are grammars that ignore other text.
    """

    def __init__(
        self, lexemes: list[Lexeme], numbers: dict[str, int], rows: LexemeRows, skip: int | None, initial: Rows,
        source: str, limits: Limits, skips: str = "", unspaced: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        self.skips, self.unspaced = skips, unspaced
        self.lexemes, self.numbers, self.skip, self.source, self.limits = lexemes, numbers, skip, source, limits
        self._overlaps: dict[tuple[Hashable, Hashable], bool] = {}
        self._single: dict[Dfa, bool] = {}
        self.after = self.close_rows(rows, initial)
        self.states: list[tuple[Rows, Bytes]] = []
        self.ids: dict[tuple[Rows, Bytes], int] = {}
        self._parts: dict[tuple[frozenset[Scanned], Scanned], list[tuple[Bytes, Dfa]]] = {}
        self._checked: set[tuple[Rows, int]] = set()
        self._known: dict[tuple[str, int], dict[int, Node]] = {}
        self.state(initial, NO_BYTES)

    def state(self, rows: Rows, forbidden: Bytes) -> int:
        """Return the number of a state: the possible rows, and the first bytes that must not come next."""
        key = rows, forbidden
        if key not in self.ids:
            self.ids[key] = len(self.states)
            self.states.append(key)
        return self.ids[key]

    def close_rows(self, rows: LexemeRows, initial: Rows) -> dict[int, Rows]:
        """Return the rows after each lexeme, with the unions where lexemes in one row may match the same text."""
        after = {number: self.with_skip(found) for number, found in rows.after.items()}
        changed = True
        while changed:
            changed = False
            for row in frozenset().union(initial, *after.values()):
                pairs = [pair for pair in self.comparable(row) if after.get(pair[0]) != after.get(pair[1])]
                for one, other in pairs:
                    spend_work(1, "lexemes that match the same text")
                    if not self.overlap(one, other):
                        continue
                    if self.skip in (one, other):
                        self.refuse(self.lexemes[one].at, "ignored text and this lexeme may match the same text")
                    both = frozenset(first | second for first in after[one] for second in after[other])
                    changed |= not both <= after[one] or not both <= after[other]
                    after[one], after[other] = after[one] | both, after[other] | both
                    if len(after[one]) > MOST_ROWS:
                        self.refuse(self.lexemes[one].at, "too many lexemes match the same text here")
        return after

    def comparable(self, row: Row) -> Iterator[tuple[int, int]]:
        """Iterate over the pairs of lexemes in a row that may overlap: not those of two different single texts."""
        others, texts = list[int](), dict[Dfa, list[int]]()
        for number in sorted(row - {END}):
            dfa = self.lexemes[number].dfa
            if dfa is not None and self.is_one_text(dfa):
                texts.setdefault(dfa, []).append(number)
            else:
                others.append(number)
        yield from combinations(others, 2)
        for group in texts.values():
            yield from combinations(group, 2)
            yield from product(others, group)

    def scanned(self, number: int) -> Scanned:
        """Return what the scanner sees of a lexeme: two lexemes that it cannot tell apart are equal."""
        lexeme = self.lexemes[number]
        return (lexeme.node if lexeme.dfa is None else lexeme.dfa), lexeme.is_lazy

    def overlap(self, one: int, other: int) -> bool:
        """Return whether two lexemes may match the same text."""
        key = self.scanned(one), self.scanned(other)
        if key not in self._overlaps:
            first, second = self.lexemes[one].dfa, self.lexemes[other].dfa
            if first is None or second is None:
                are_parts = first is None and second is None
                self._overlaps[key] = are_parts and bool(
                    key[0] == key[1] or self.first_bytes(one) & self.first_bytes(other)
                )
            else:
                self._overlaps[key] = first == second or (
                    not (self.is_one_text(first) and self.is_one_text(second))
                    and first.intersect(SOME_TEXT).meets(second)
                )
        return self._overlaps[key]

    def is_one_text(self, dfa: Dfa) -> bool:
        """Return whether a language has one text only."""
        if dfa not in self._single:
            self._single[dfa] = dfa.count(2) == 1
        return self._single[dfa]

    def rows_after(self, lexeme: int) -> Rows:
        """Return the rows after a lexeme."""
        return self.after[lexeme]

    def rows_after_skip(self, rows: Rows) -> Rows:
        """Return the rows after ignored text, which may be followed by more of it unless `skips` is "once"."""
        return rows if self.skips != "once" else frozenset(row - {self.skip} for row in rows)

    def with_skip(self, rows: Rows) -> Rows:
        """Return rows with the ignored lexeme, but for those of nothing that it may stand before."""
        if self.skip is None:
            return rows
        return frozenset(row | {self.skip} if row - {END} - self.unspaced else row for row in rows)

    def may_skip_at_end(self, rows: Rows) -> bool:
        """Return whether ignored text may stand at the end, where the row is one of these that have `END`."""
        ending = [row for row in rows if END in row]
        with_more = [row for row in ending if self.skip in row]
        if with_more and len(with_more) < len(ending):
            self.refuse(0, "whether ignored text may end the text depends on the rules in use")
        return bool(with_more)

    def products(self, node: Node, p: int) -> dict[int, Node]:
        """Return what a lexeme is rewritten to in a state, by the state that follows it."""
        if isinstance(node, Literal):  # the empty text
            return {p: node}
        assert isinstance(node, Mark)
        key = node.text, p
        if key not in self._known:
            self._known[key] = self._products(node.text, p)
        return self._known[key]

    def _products(self, name: str, p: int) -> dict[int, Node]:
        number, (rows, forbidden) = self.numbers[name], self.states[p]
        if not any(number in row for row in rows) or (name == SKIP_AT_END and not self.may_skip_at_end(rows)):
            return {}
        lexeme = self.lexemes[number]
        following = self.rows_after_skip(rows) if number == self.skip else self.rows_after(number)
        self.check_competitors(rows, number)
        if lexeme.node is not None:
            after = self.state(following, NO_BYTES)
            if isinstance(lexeme.node, Chars):
                allowed = texts_without_first(forbidden).union(Dfa.from_strings([""]))
                dfa = lexeme.node.dfa.intersect(allowed, max_states=self.limits.dfa_states)
                return {} if dfa.is_empty else {after: Chars(dfa)}
            if forbidden & self.first_bytes(number):
                self.refuse(lexeme.at, "this part may begin with what continues the lexeme before it")
            return {after: lexeme.node}
        made: dict[int, Node] = {}
        if p == INITIAL and self.begins_empty(rows, lexeme):
            made[self.state(following, self.first_bytes_of(rows))] = EMPTY
        for continuing, dfa in self.parts(self.surely_competing(rows, number), self.scanned(number)):
            if forbidden:
                dfa = dfa.intersect(texts_without_first(forbidden), max_states=self.limits.dfa_states)
            if not dfa.is_empty:
                target = self.state(following, continuing)
                made[target] = Choice((Chars(dfa), EMPTY)) if target in made else Chars(dfa)
        return made

    def begins_empty(self, rows: Rows, lexeme: Lexeme) -> bool:
        """Return whether the scanner may match a lexeme as the empty text at the start, where no text is ignored.

        Ignored text may follow it. Elsewhere that makes no difference, as a lexeme that may be empty is optional.
        """
        is_skipping = self.skip is None or any(self.skip in row for row in rows)
        return not is_skipping and lexeme.dfa is not None and lexeme.dfa.accepts("") and not lexeme.is_lazy

    # ---- competition

    def surely_competing(self, rows: Rows, number: int) -> frozenset[Scanned]:
        """Return the lexemes with a text that compete with a lexeme, in all rows that it is in."""
        return frozenset.intersection(*(self.competing(row) for row in rows if number in row))

    def competing(self, row: Row) -> frozenset[Scanned]:
        """Return the lexemes with a text of a row."""
        return frozenset(self.scanned(one) for one in row if one != END and self.lexemes[one].dfa is not None)

    def check_competitors(self, rows: Rows, number: int) -> None:
        """Refuse a lexeme whose competitors are uncertain where that makes a difference."""
        if (rows, number) in self._checked:
            return
        self._checked.add((rows, number))
        lexeme = self.lexemes[number]
        possible = frozenset().union(*(row for row in rows if number in row)) - {END, number}
        sure = self.surely_competing(rows, number)
        following = self.first_bytes_of(self.rows_after_skip(rows) if number == self.skip else self.rows_after(number))
        if lexeme.tail & following:
            self.refuse(lexeme.at, "what follows this part could also continue it")
        for other in sorted(possible):
            rival = self.lexemes[other]
            if lexeme.dfa is None or rival.dfa is None:
                begins_same = self.first_bytes(number) & self.first_bytes(other)
                if begins_same and (lexeme.dfa is None) != (rival.dfa is None):
                    self.refuse(lexeme.at, "this and another lexeme that may stand here begin alike", rival.at)
            elif self.scanned(other) not in sure and self.interferes(number, other, following):
                self.refuse(lexeme.at, "it depends on the rules in use where this lexeme ends", rival.at)

    def refuse(self, at: int, cause: str, other: int | None = None) -> NoReturn:
        also = "" if other is None else f" (the other one is at line {self.source.count(chr(10), 0, other) + 1})"
        raise UnsupportedError(
            f"{cause}{also}",
            source=self.source,
            position=at,
            hint="Begin what follows with a character that cannot continue it, or make one terminal of both.",
        )

    def interferes(self, number: int, other: int, following: Bytes) -> bool:
        """Return whether a competitor changes where a lexeme ends."""
        lexeme, rival = self.lexemes[number].dfa, self.lexemes[other].dfa
        assert lexeme is not None and rival is not None
        most = self.limits.dfa_states
        if self.lexemes[other].is_lazy:
            if rival.intersect(SOME_TEXT, max_states=most).concatenate(Dfa.any_text(), max_states=most).meets(lexeme):
                return True
        both = Competition([lexeme, rival], [False, False])
        ends = (both.members[state][1] for state in both.later if both.accepts(state, 0))
        return any(at >= 0 and lead_bytes(ranges_from(rival.table, at)) & following for at in ends)

    def first_bytes(self, number: int) -> Bytes:
        """Return the first bytes of the texts of a lexeme."""
        lexeme = self.lexemes[number]
        dfa = lexeme.dfa if lexeme.dfa is not None else lexeme.first
        if dfa is None:
            return NO_BYTES
        return lead_bytes(ranges_from(dfa.table, 0))

    def first_bytes_of(self, rows: Rows) -> Bytes:
        found = frozenset().union(*rows) - {END}
        return reduce(Bytes.union, map(self.first_bytes, found), NO_BYTES)

    def parts(self, competing: frozenset[Scanned], lexeme: Scanned) -> list[tuple[Bytes, Dfa]]:
        """Return the parts of a lexeme's language, each with the first bytes that could continue the scan."""
        key = competing, lexeme
        if key not in self._parts:
            order = list(competing)
            scan = Competition([dfa for dfa, _ in order if isinstance(dfa, Dfa)], [lazy for _, lazy in order])
            for one in order:
                self._parts[competing, one] = scan.parts(order.index(one))
        return self._parts[key]


class Competition:
    """The product of the Dfas of competing lexemes, up to the first lazy match.

    State 0 is the start. later: the states after one character or more. continuing[state]: the first bytes with which
    the scan can go on.
    """

    def __init__(self, dfas: list[Dfa], lazy: list[bool]) -> None:
        self.tables, self.lazy = [dfa.table for dfa in dfas], lazy
        self.bounds = sorted(set().union(*(table.bounds for table in self.tables)))
        columns: dict[tuple[int, ...], int] = {}
        positions = [0] * len(dfas)
        self.classes = []
        for bound in self.bounds:
            for k, table in enumerate(self.tables):
                while positions[k] + 1 < len(table.bounds) and table.bounds[positions[k] + 1] <= bound:
                    positions[k] += 1
            column = tuple(table.classes[at] for table, at in zip(self.tables, positions))
            self.classes.append(columns.setdefault(column, len(columns)))
        self.columns = list(columns)
        spans = [*self.bounds[1:], LAST]
        ranges: list[list[tuple[int, int]]] = [[] for _ in columns]
        for kind, low, high in zip(self.classes, self.bounds, spans):
            ranges[kind].append((low, high - 1))
        self.leads = [lead_bytes(one) for one in ranges]
        self.explore()

    def explore(self) -> None:
        begin = tuple(0 if table.rows else -1 for table in self.tables)
        self.members: list[tuple[int, ...]] = [begin]
        ids: dict[tuple[int, ...], int] = {}
        self.rows: list[list[int]] = []
        self.continuing: list[Bytes] = []
        for state, member in enumerate(self.members):  # `members` grows during the loop.
            spend_work(1 + len(self.columns) * len(self.tables) // 8, "the lexemes of a grammar")
            row = []
            alive: set[int] = set()
            for kind, column in enumerate(self.columns):
                target = tuple(
                    -1 if at < 0 else table.rows[at][one] for table, at, one in zip(self.tables, member, column)
                )
                if self.is_lazy_match(state) or max(target) < 0:
                    row.append(-1)
                    continue
                if target not in ids:
                    ids[target] = len(self.members)
                    self.members.append(target)
                row.append(ids[target])
                alive |= self.leads[kind]
            self.rows.append(row)
            self.continuing.append(frozenset(alive))
        self.later = range(1, len(self.members))

    def accepts(self, state: int, k: int) -> bool:
        """Return whether lexeme number k matches the text of a state."""
        at = self.members[state][k]
        return at >= 0 and state > 0 and self.tables[k].accepting[at]

    def is_lazy_match(self, state: int) -> bool:
        return any(lazy and self.accepts(state, k) for k, lazy in enumerate(self.lazy))

    def parts(self, k: int) -> list[tuple[Bytes, Dfa]]:
        """Return the parts of the language of lexeme number k by the bytes that could continue the scan."""
        matches = [
            self.accepts(state, k) and (self.lazy[k] or not self.is_lazy_match(state))
            for state in range(len(self.members))
        ]
        found = []
        for continuing in dict.fromkeys(self.continuing[state] for state in self.later if matches[state]):
            accepting = [match and self.continuing[state] == continuing for state, match in enumerate(matches)]
            found.append((continuing, Dfa.from_table(Table(self.bounds, self.classes, self.rows, accepting))))
        return found


def ranges_from(table: Table, state: int) -> list[tuple[int, int]]:
    """Return the characters that a state of an automaton goes on with, as inclusive ranges."""
    if not table.rows:
        return []
    spans = zip(table.bounds, [*table.bounds[1:], LAST], table.classes)
    return [(low, high - 1) for low, high, kind in spans if table.rows[state][kind] >= 0]


def text_before(whole: Dfa, body: Dfa, suffix: Dfa, limits: Limits) -> Dfa:
    """Return the texts of `body` that precede the first match of a suffix.

    `whole` is `body` followed by `suffix`. A text w of `body` is one of them if w and some suffix are a text of
    `whole`, and no shorter text that is not empty is one.
    """
    first = Dfa.union_of([dfa for _, dfa in Competition([whole], [True]).parts(0)], max_states=limits.dfa_states)
    table = first.table
    ends = [state for state, accepts in enumerate(table.accepting) if accepts]
    stops = [cut_dfa(first, state, ends).meets(suffix) for state in range(len(table.rows))]
    before = Dfa.from_table(Table(table.bounds, table.classes, table.rows, stops))
    return before.intersect(body, max_states=limits.dfa_states)


def lead_bytes(ranges: list[tuple[int, int]]) -> Bytes:
    """Return the first bytes of the UTF-8 encodings of characters."""
    found: set[int] = set()
    for low, high in ranges:
        found.update(range(lead_byte(low), lead_byte(high) + 1))
    return frozenset(found)


def lead_byte(point: int) -> int:
    """Return the first byte of the UTF-8 encoding of a code point, surrogates included."""
    if point < 0x80:
        return point
    if point < 0x800:
        return 0xC0 | point >> 6
    return 0xE0 | point >> 12 if point < 0x10000 else 0xF0 | point >> 18


def texts_without_first(forbidden: Bytes) -> Dfa:
    """Return the Dfa of the texts whose encoding does not begin with one of these bytes."""
    spans: list[tuple[int, int]] = [(byte, byte) for byte in range(0x80)]
    spans += [(k << 6, (k << 6) + 0x3F) for k in range(2, 32)]
    spans += [(max(k << 12, 0x800), (k << 12) + 0xFFF) for k in range(16)]
    spans += [(max(k << 18, 0x10000), min((k << 18) + 0x3FFFF, LAST - 1)) for k in range(5)]
    allowed = [span for span in spans if lead_byte(span[0]) not in forbidden]
    return Dfa.from_ranges(allowed).concatenate(Dfa.any_text()) if allowed else Dfa.empty()
