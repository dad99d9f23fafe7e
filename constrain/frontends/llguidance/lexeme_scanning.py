"""The scanner of llguidance: what it sees of lexemes, and how those that may come next compete.

The scanner goes on as long as one of the competitors can; it stops at once where a lazy one matches. All competitors
that match the text so far match together.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from ...automata.dfa import LAST, Dfa, Table
from ...base.options import Limits
from ...base.work import spend_work
from ...grammar.nodes import Node
from ...lalr.parser_product import cut_dfa

__all__ = [
    "NO_BYTES", "NUMBER_BYTES", "SOME_TEXT", "Bytes", "Competition", "Kinds", "Lexeme", "LexemeOverlaps", "first_bytes",
    "lead_byte", "lead_bytes", "ranges_from", "text_before",
]  # fmt: skip

ONE_BYTE = 0x80
"""The first character that takes more than one byte."""
Bytes = frozenset[int]
NO_BYTES: Bytes = frozenset()
NUMBER_BYTES: Bytes = frozenset(b"0123456789.eE+-")
SOME_TEXT = Dfa.any_text().with_length(1, None)
Scanned = tuple["Dfa | Node | None", bool]
"""A lexeme as the scanner sees it: its language, or the part that it stands for, and whether it is lazy."""
Kinds = frozenset[int]


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

    @property
    def scanned(self) -> Scanned:
        """What the scanner sees of the lexeme. It cannot tell apart those for which this is equal."""
        return (self.node if self.dfa is None else self.dfa), self.is_lazy


class Competition:
    """The product of the Dfas of competing lexemes, up to the first lazy match.

    State 0 is the start. later: the states after one character or more. continuing[state]: the first bytes with which
    the scan can go on. after_open: the lexeme before could have been longer, so that the first byte has ended it; the
    scanner does not stop at a lazy match of this byte.
    """

    def __init__(self, dfas: list[Dfa], lazy: list[bool], after_open: bool = False) -> None:
        self.tables, self.lazy, self.after_open = [dfa.table for dfa in dfas], lazy, after_open
        self.bounds = sorted({ONE_BYTE}.union(*(table.bounds for table in self.tables)))
        columns: dict[tuple[bool, tuple[int, ...]], int] = {}
        positions = [0] * len(dfas)
        self.classes = []
        for bound in self.bounds:
            for k, table in enumerate(self.tables):
                while positions[k] + 1 < len(table.bounds) and table.bounds[positions[k] + 1] <= bound:
                    positions[k] += 1
            column = bound < ONE_BYTE, tuple(table.classes[at] for table, at in zip(self.tables, positions))
            self.classes.append(columns.setdefault(column, len(columns)))
        self.columns = [column for _, column in columns]
        self.are_one_byte = [is_one_byte for is_one_byte, _ in columns]
        spans = [*self.bounds[1:], LAST]
        ranges: list[list[tuple[int, int]]] = [[] for _ in columns]
        for kind, low, high in zip(self.classes, self.bounds, spans):
            ranges[kind].append((low, high - 1))
        self.leads = [lead_bytes(one) for one in ranges]
        self.explore()

    def explore(self) -> None:
        begin = tuple(0 if table.rows else -1 for table in self.tables)
        self.members: list[tuple[int, ...]] = [begin]
        ids: dict[tuple[tuple[int, ...], bool], int] = {}
        self.first_byte = set[int]()  # the states after one byte, if the scanner does not stop there
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
                is_first_byte = self.after_open and state == 0 and self.are_one_byte[kind]
                number = ids.setdefault((target, is_first_byte), len(self.members))
                if number == len(self.members):
                    self.members.append(target)
                    if is_first_byte:
                        self.first_byte.add(number)
                row.append(number)
                alive |= self.leads[kind]
            self.rows.append(row)
            self.continuing.append(frozenset(alive))
        self.later = range(1, len(self.members))

    def accepts(self, state: int, k: int) -> bool:
        """Return whether lexeme number k matches the text of a state."""
        at = self.members[state][k]
        return at >= 0 and state > 0 and self.tables[k].accepting[at]

    def is_lazy_match(self, state: int) -> bool:
        return state not in self.first_byte and any(lazy and self.accepts(state, k) for k, lazy in enumerate(self.lazy))

    def matching(self, state: int) -> list[int]:
        """Return the numbers of the lexemes that the text of a state is read as."""
        is_lazy_match = self.is_lazy_match(state)
        lexemes = range(len(self.tables))
        return [k for k in lexemes if self.accepts(state, k) and (self.lazy[k] or not is_lazy_match)]

    def language(self, states: Container[int]) -> Dfa:
        """Return the Dfa of the texts that lead to some states."""
        accepting = [state in states for state in range(len(self.members))]
        return Dfa.from_table(Table(self.bounds, self.classes, self.rows, accepting))


class LexemeOverlaps:
    """Which lexemes may match the same text, and which match it together.

    kinds: for each lexeme, the number of its `Scanned`; those of equal kind match the same texts. examples: a lexeme of
    each kind.
    """

    def __init__(self, lexemes: list[Lexeme]) -> None:
        known: dict[Scanned, int] = {}
        self.kinds = [known.setdefault(lexeme.scanned, len(known)) for lexeme in lexemes]
        examples = dict(zip(reversed(self.kinds), reversed(lexemes)))
        self.examples = [examples[kind] for kind in range(len(known))]
        self._first_bytes = [first_bytes(lexeme) for lexeme in self.examples]
        self._is_one_text = [lexeme.dfa is not None and lexeme.dfa.count(2) == 1 for lexeme in self.examples]
        self._overlaps: dict[tuple[int, int], bool] = {}
        self._matches: dict[Kinds, list[Kinds]] = {}

    def overlap(self, one: int, other: int) -> bool:
        """Return whether lexemes of two kinds may match the same text that is not empty."""
        if one == other:
            return True
        key = (one, other) if one < other else (other, one)
        found = self._overlaps.get(key)
        if found is None:
            found = self._overlaps[key] = self._find_overlap(one, other)
        return found

    def _find_overlap(self, one: int, other: int) -> bool:
        spend_work(1, "lexemes that match the same text")
        if not self._first_bytes[one] & self._first_bytes[other]:
            return False
        first, second = self.examples[one].dfa, self.examples[other].dfa
        if first is None or second is None:
            return first is second  # Two parts, of which the scanner sees how they begin.
        if self._is_one_text[one] and self._is_one_text[other]:
            return first == second
        return first.intersect(SOME_TEXT).meets(second)

    def partners(self, kind: int, others: Kinds) -> Kinds:
        """Return those of some kinds that may match the same text as one."""
        return frozenset(other for other in others if self.overlap(kind, other))

    def list_matches(self, kinds: Kinds) -> list[Kinds]:
        """Return which of some competing kinds match together: a set for each sort of text.

        Parts, whose texts the scanner does not see, are listed alone.
        """
        found = self._matches.get(kinds)
        if found is None:
            found = [match for group in self._list_groups(kinds) for match in self._list_matches(group)]
            self._matches[kinds] = found
        return found

    def _list_groups(self, kinds: Kinds) -> list[list[int]]:
        """Return kinds in groups that have no text in common."""
        left, groups = sorted(kinds), list[list[int]]()
        while left:
            group = [left.pop()]
            for one in group:  # `group` grows during the loop.
                near = [other for other in left if self.overlap(one, other)]
                left = [other for other in left if other not in near]
                group += near
            groups.append(group)
        return groups

    def _list_matches(self, group: list[int]) -> list[Kinds]:
        """Return `list_matches` of kinds that are linked by texts in common."""
        lexemes = [self.examples[kind] for kind in group]
        dfas = [lexeme.dfa for lexeme in lexemes if lexeme.dfa is not None]
        if len(group) == 1 or len(dfas) < len(group):
            return [frozenset({kind}) for kind in group]
        lazy = [lexeme.is_lazy for lexeme in lexemes]
        found = set[Kinds]()
        for after_open in (False, True) if any(lazy) else (False,):
            scan = Competition(dfas, lazy, after_open)
            found.update(frozenset(group[k] for k in scan.matching(state)) for state in scan.later)
        found.discard(frozenset())
        unmatched = set(group).difference(*found)  # A lazy match ends before each of their texts.
        return [*sorted(found, key=sorted), *(frozenset({kind}) for kind in group if kind in unmatched)]


def first_bytes(lexeme: Lexeme) -> Bytes:
    """Return the first bytes of the texts of a lexeme."""
    dfa = lexeme.dfa if lexeme.dfa is not None else lexeme.first
    return NO_BYTES if dfa is None else lead_bytes(ranges_from(dfa.table, 0))


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
    scan = Competition([whole], [True])
    first = scan.language([state for state in scan.later if scan.matching(state)])
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
