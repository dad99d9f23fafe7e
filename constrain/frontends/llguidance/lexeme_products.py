"""The lexing decisions of llguidance, written into a Grammar.

Among the lexemes that may come next, the scanner goes on as long as one of them can; it stops at once where a lazy one
matches. So a text w is a lexeme T exactly if w is in T, no shorter prefix of w and no other reading of w is a lazy
match, and the next byte cannot continue w in any competitor. `LexemeTransitions` is a transducer that says so: its
states are the rows after the previous lexeme with the bytes that must not come next, and it rewrites each lexeme to the
part of its language for each state that follows.

The parser goes on with each lexeme that matches the text. So the part of a name that is also a keyword has other rows
after it than the rest; `Part`s are as few as these rows allow.

The rows come from the rules alone (see `lexeme_rows`), so it can be unknown whether two lexemes compete at a place. A
grammar in which that makes a difference is refused.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce
from typing import NamedTuple, NoReturn

from ...automata.dfa import LAST, Dfa
from ...base.errors import UnsupportedError
from ...base.options import Limits
from ...grammar.nodes import EMPTY, Chars, Choice, Literal, Mark, Node
from .lexeme_rows import END, LexemeRows, Row, Rows
from .lexeme_scanning import (
    NO_BYTES,
    SOME_TEXT,
    Bytes,
    Competition,
    Kinds,
    Lexeme,
    first_bytes,
    lead_byte,
    lead_bytes,
    ranges_from,
)

__all__ = ["SKIP_AT_END", "LexemeTransitions"]

SKIP_AT_END = "skip at the end"
INITIAL = 0
"""The state at the start of a text."""
NO_ROWS: Rows = frozenset()


class Part(NamedTuple):
    """A part of a lexeme's language: the rows after it, and the first bytes that could continue the scan."""

    after: Rows
    continuing: Bytes
    dfa: Dfa


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
        self.overlaps = rows.overlaps
        self.after = {
            number: {match: self.with_skip(found) for match, found in by_match.items()}
            for number, by_match in rows.after.items()
        }
        self.check_skip(initial.union(*(found for by_match in self.after.values() for found in by_match.values())))
        self.states: list[tuple[Rows, Bytes]] = []
        self.ids: dict[tuple[Rows, Bytes], int] = {}
        self._single: dict[Hashable, Rows] = {}
        self._scans: dict[tuple[Kinds, bool], Competition] = {}
        self._parts: dict[tuple[frozenset[Kinds], bool, int], list[Part]] = {}
        self._checked: set[tuple[Rows, bool, int]] = set()
        self._known: dict[tuple[str, int], dict[int, Node]] = {}
        self.state(initial, NO_BYTES)

    def state(self, rows: Rows, forbidden: Bytes) -> int:
        """Return the number of a state: the possible rows, and the first bytes that must not come next."""
        key = self.merge_rows(rows), forbidden
        if key not in self.ids:
            self.ids[key] = len(self.states)
            self.states.append(key)
        return self.ids[key]

    def merge_rows(self, rows: Rows) -> Rows:
        """Return rows of which no two have lexemes of the same kinds, since the scanner cannot tell these apart.

        Where one is left it stands for all of these kinds, whatever lexemes are in it.
        """
        merged: dict[Hashable, Row] = {}
        for row in rows:
            kinds = frozenset(self.overlaps.kinds[number] for number in row - {END})
            key: Hashable = (kinds, END in row, self.skip in row)
            merged[key] = merged.get(key, row) | row
        if len(merged) != 1:
            return frozenset(merged.values())
        ((key, row),) = merged.items()
        return self._single.setdefault(key, frozenset({row}))

    def rows_with(self, rows: Rows, number: int) -> Rows:
        """Return those of some merged rows in which a lexeme may come next."""
        found = frozenset(row for row in rows if number in row)
        if found or len(rows) != 1 or number == self.skip:
            return found
        kinds = self.overlaps.kinds
        is_alike = any(kinds[other] == kinds[number] for row in rows for other in row - {END, self.skip})
        return rows if is_alike else found

    def check_skip(self, rows: Rows) -> None:
        """Refuse rows in which ignored text and another lexeme may match the same text."""
        if self.skip is None:
            return
        kinds = self.overlaps.kinds
        for number in sorted(frozenset().union(*(row for row in rows if self.skip in row)) - {END, self.skip}):
            if self.overlaps.overlap(kinds[number], kinds[self.skip]):
                self.refuse(self.lexemes[number].at, "ignored text and this lexeme may match the same text")

    def rows_after(self, lexeme: int) -> Rows:
        """Return the rows after a lexeme."""
        return NO_ROWS.union(*self.after.get(lexeme, {}).values())

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
        if not self.rows_with(rows, number) or (name == SKIP_AT_END and not self.may_skip_at_end(rows)):
            return {}
        lexeme = self.lexemes[number]
        following = self.rows_after_skip(rows) if number == self.skip else self.rows_after(number)
        self.check_competitors(rows, bool(forbidden), number)
        if lexeme.node is not None:
            after = self.state(following, NO_BYTES)
            if isinstance(lexeme.node, Chars):
                allowed = texts_without_first(forbidden).union(Dfa.from_strings([""]))
                dfa = lexeme.node.dfa.intersect(allowed, max_states=self.limits.dfa_states)
                return {} if dfa.is_empty else {after: Chars(dfa)}
            if forbidden & first_bytes(lexeme):
                self.refuse(lexeme.at, "this part may begin with what continues the lexeme before it")
            return {after: lexeme.node}
        made: dict[int, Node] = {}
        competitions = self.competitions(rows, number)
        if p == INITIAL and self.begins_empty(rows, lexeme):
            kinds = frozenset.intersection(*competitions)
            empty = frozenset(kind for kind in kinds if self.begins_empty(rows, self.overlaps.examples[kind]))
            after_empty = self.rows_after_match(number, competitions, empty)
            made[self.state(after_empty, self.first_bytes_of(rows))] = EMPTY
        for after_part, continuing, dfa in self.parts(competitions, bool(forbidden), number):
            if forbidden:
                dfa = dfa.intersect(texts_without_first(forbidden), max_states=self.limits.dfa_states)
            if not dfa.is_empty:
                target = self.state(following if number == self.skip else after_part, continuing)
                made[target] = Choice((Chars(dfa), EMPTY)) if target in made else Chars(dfa)
        return made

    def begins_empty(self, rows: Rows, lexeme: Lexeme) -> bool:
        """Return whether the scanner may match a lexeme as the empty text at the start, where no text is ignored.

        Ignored text may follow it. Elsewhere that makes no difference, as a lexeme that may be empty is optional.
        """
        is_skipping = self.skip is None or any(self.skip in row for row in rows)
        return not is_skipping and lexeme.dfa is not None and lexeme.dfa.accepts("") and not lexeme.is_lazy

    # ---- competition

    def competitions(self, rows: Rows, number: int) -> frozenset[Kinds]:
        """Return the kinds of lexemes with a text that compete with a lexeme: in each row that it is in."""
        return frozenset(self.competing(row) for row in self.rows_with(rows, number))

    def competing(self, row: Row) -> Kinds:
        """Return the kinds of lexemes with a text in a row."""
        return frozenset(self.overlaps.kinds[one] for one in row if one != END and self.lexemes[one].dfa is not None)

    def check_competitors(self, rows: Rows, after_open: bool, number: int) -> None:
        """Refuse a lexeme whose competitors are uncertain where that makes a difference."""
        if (rows, after_open, number) in self._checked:
            return
        self._checked.add((rows, after_open, number))
        lexeme = self.lexemes[number]
        possible = frozenset().union(*self.rows_with(rows, number)) - {END, number}
        competitions = self.competitions(rows, number)
        sure = frozenset.intersection(*competitions)
        if lexeme.tail & self.first_bytes_of(self.rows_after(number)):
            self.refuse(lexeme.at, "what follows this part could also continue it")
        for other in sorted(possible):
            rival = self.lexemes[other]
            if lexeme.dfa is None or rival.dfa is None:
                begins_same = first_bytes(lexeme) & first_bytes(rival)
                if begins_same and (lexeme.dfa is None) != (rival.dfa is None):
                    self.refuse(lexeme.at, "this and another lexeme that may stand here begin alike", rival.at)
            elif self.overlaps.kinds[other] not in sure:
                for after, _, dfa in self.parts(competitions, after_open, number):
                    following = self.rows_after_skip(rows) if number == self.skip else after
                    if self.interferes(dfa, rival, self.first_bytes_of(following)):
                        self.refuse(lexeme.at, "it depends on the rules in use where this lexeme ends", rival.at)

    def refuse(self, at: int, cause: str, other: int | None = None) -> NoReturn:
        also = "" if other is None else f" (the other one is at line {self.source.count(chr(10), 0, other) + 1})"
        raise UnsupportedError(
            f"{cause}{also}",
            source=self.source,
            position=at,
            hint="Begin what follows with a character that cannot continue it, or make one terminal of both.",
        )

    def interferes(self, part: Dfa, rival: Lexeme, following: Bytes) -> bool:
        """Return whether a competitor changes where texts of a part of a lexeme end, before these bytes."""
        assert rival.dfa is not None
        most = self.limits.dfa_states
        if rival.is_lazy:
            begun = rival.dfa.intersect(SOME_TEXT, max_states=most).concatenate(Dfa.any_text(), max_states=most)
            if begun.meets(part):
                return True
        both = Competition([part, rival.dfa], [False, False])
        ends = (both.members[state][1] for state in both.later if both.accepts(state, 0))
        return any(at >= 0 and lead_bytes(ranges_from(rival.dfa.table, at)) & following for at in ends)

    def first_bytes_of(self, rows: Rows) -> Bytes:
        found = frozenset().union(*rows) - {END}
        return reduce(Bytes.union, (first_bytes(self.lexemes[number]) for number in found), NO_BYTES)

    def parts(self, competitions: frozenset[Kinds], after_open: bool, number: int) -> list[Part]:
        """Return the parts of a lexeme's language under what surely competes. after_open: see `Competition`."""
        key = competitions, after_open, number
        if key not in self._parts:
            self._parts[key] = self._find_parts(competitions, after_open, number)
        return self._parts[key]

    def _find_parts(self, competitions: frozenset[Kinds], after_open: bool, number: int) -> list[Part]:
        sure = frozenset.intersection(*competitions)
        order, key = sorted(sure), (sure, after_open)
        if key not in self._scans:
            lexemes = [self.overlaps.examples[kind] for kind in order]
            dfas = [lexeme.dfa for lexeme in lexemes if lexeme.dfa is not None]
            self._scans[key] = Competition(dfas, [lexeme.is_lazy for lexeme in lexemes], after_open)
        scan, own = self._scans[key], order.index(self.overlaps.kinds[number])
        states: dict[tuple[Rows, Bytes], set[int]] = {}
        for state in scan.later:
            matching = scan.matching(state)
            if own in matching:
                after = self.rows_after_match(number, competitions, frozenset(order[k] for k in matching))
                after = self.merge_rows(after)
                states.setdefault((after, scan.continuing[state]), set()).add(state)
        return [Part(after, continuing, scan.language(some)) for (after, continuing), some in states.items()]

    def rows_after_match(self, number: int, competitions: frozenset[Kinds], matching: Kinds) -> Rows:
        """Return the rows after a text of a lexeme. matching: which of those that surely compete match it."""
        sure = frozenset.intersection(*competitions)
        agreeing = [
            rows
            for match, rows in self.after.get(number, {}).items()
            if match.matching & sure <= matching
            and not match.failing & matching
            and any(match.matching | match.failing <= competing for competing in competitions)
        ]
        return NO_ROWS.union(*agreeing)


def texts_without_first(forbidden: Bytes) -> Dfa:
    """Return the Dfa of the texts whose encoding does not begin with one of these bytes."""
    spans: list[tuple[int, int]] = [(byte, byte) for byte in range(0x80)]
    spans += [(k << 6, (k << 6) + 0x3F) for k in range(2, 32)]
    spans += [(max(k << 12, 0x800), (k << 12) + 0xFFF) for k in range(16)]
    spans += [(max(k << 18, 0x10000), min((k << 18) + 0x3FFFF, LAST - 1)) for k in range(5)]
    allowed = [span for span in spans if lead_byte(span[0]) not in forbidden]
    return Dfa.from_ranges(allowed).concatenate(Dfa.any_text()) if allowed else Dfa.empty()
