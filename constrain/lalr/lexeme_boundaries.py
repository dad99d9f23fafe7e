"""Which lexemes may follow each other: restrictions of the longest-match rule at the boundaries of lexemes.

A lexer takes the longest lexeme, so a text is split at a position only if no preceding lexeme extends to a longer match
over what follows. These *obligations* are scanner states that run over the following bytes and must not accept. A
*context* is what is known of them at the end of a lexeme: the set of obligations after each next byte. Contexts and the
lexemes between them form a finite automaton over terminals, which is built here. Combined with the LALR table it turns
the language of the grammar, including the lexer, into that of one pushdown automaton (`coreachable_stacks`).

Contexts with the same continuations are merged (a bisimulation, by partition refinement), separately for each terminal:
a *letter* is a terminal together with the class of the context that it ends in. If every letter may be followed by all
terminals that the table permits, the lexer adds no restrictions and terminals suffice (`is_free`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..automata.bit_sets import list_members
from ..base.cached_property import cached_property
from ..base.work import spend_work
from .lalr_tables import Lalr
from .productions import propagate_sets
from .scanner_tables import END_OF_TEXT, Scanner

__all__ = ["LexemeBoundaries", "ContextTerminals"]

Context = tuple[bytes, bool]
"""The number of the obligations after each class of bytes (int32; -1: excluded), and whether the text may end here."""

WORK = "the boundaries between terminals"


@dataclass(frozen=True, slots=True)
class ContextTerminals:
    """Letters: terminals, distinguished by the context that their lexemes end in.

    Attributes
    ----------
    terminal : tuple of int
        The terminal of each letter. Letter t is terminal t in one of its contexts; further contexts have letters from
        len(terminals) on.
    following : dict
        For each LALR state and letter that leads to it (or is ignored in it), the letters that may be read next, as
        bits.
    start : int
        The letters that may be read first, as bits.
    ignored : frozenset of int
        Terminals that are not passed to the parser.
    """

    terminal: tuple[int, ...]
    following: dict[tuple[int, int], int]
    start: int
    ignored: frozenset[int]

    @property
    def skipped(self) -> list[int]:
        """The letters of ignored terminals."""
        return [letter for letter, terminal in enumerate(self.terminal) if terminal in self.ignored]


class LexemeBoundaries:
    """The contexts and letters of a scanner, combined with an LALR table.

    `scan` is int32[LALR states], the start states of the scanner, or -1; `ignored` are terminals that are not passed to
    the parser. A set of more than `max_obligations` obligations is treated as unsatisfiable; None for no limit.
    """

    def __init__(
        self,
        scanner: Scanner,
        table: Lalr,
        scan: NDArray[np.int32],
        ignored: frozenset[int],
        *,
        max_obligations: int | None,
    ) -> None:
        self.table, self.scan, self.ignored, self.max_obligations = table, scan, ignored, max_obligations
        self.end = len(table.terminals) - 1
        columns = np.concatenate([scanner.delta, scanner.accept_table[:, :END_OF_TEXT]])
        _, first, self.class_of = np.unique(columns, axis=1, return_index=True, return_inverse=True)
        self.class_of = self.class_of.ravel()
        self.delta = np.ascontiguousarray(scanner.delta[:, first])
        self.accepted = np.ascontiguousarray(scanner.accept_table[scanner.accept][:, first])
        self.at_end = scanner.accept_table[scanner.accept, END_OF_TEXT]
        self.accepts_nothing = ((self.accepted < 0).all(axis=1) & (self.at_end < 0)).tolist()
        spend_work(self.delta.size // 16, WORK)
        self.width = self.delta.shape[1]
        self.obligations: list[tuple[int, ...]] = []
        self.obligation_numbers: dict[tuple[int, ...], int] = {}
        self.advance: list[NDArray[np.int32]] = []
        self.may_end: list[bool] = []
        self.intern_obligations(())
        free = np.zeros(self.width, np.int32)
        self.contexts: list[Context] = [(free.tobytes(), True)]
        self.context_numbers: dict[Context, int] = {self.contexts[0]: 0}
        self.items: list[tuple[int, int]] = []
        self.item_numbers: dict[tuple[int, int], int] = {}
        self.edges: list[list[int]] = []
        self.ends_by_item: list[int] = []  # by item: the letters of lexemes that end there, as bits
        self.letters: list[tuple[int, int]] = []
        self.letter_numbers: dict[tuple[int, int], int] = {}
        self._explore()

    # ---- obligations --------------------------------------------------------------------------------------------

    def intern_obligations(self, states: tuple[int, ...]) -> int:
        """Return the number of a sorted tuple of obligations; -1 if every continuation violates one."""
        number = self.obligation_numbers.get(states)
        if number is None:
            rows = list(states)
            violated = (self.accepted[rows] >= 0).any(axis=0)
            may_end = not (self.at_end[rows] >= 0).any()
            spend_work(50 + len(states) * self.width // 4, WORK)
            if (violated.all() and not may_end) or (
                self.max_obligations is not None and len(states) > self.max_obligations
            ):
                number = -1
            else:
                number = len(self.obligations)
                self.obligations.append(states)
                self.advance.append(np.where(violated, np.int32(-1), np.int32(-2)))
                self.may_end.append(may_end)
            self.obligation_numbers[states] = number
        return number

    def advance_obligations(self, number: int, new_obligation: int = -1) -> NDArray[np.int32]:
        """Return the obligations after each class of bytes, or -1 if one is violated.

        `new_obligation` is a scanner state that becomes an obligation with this byte; it may itself accept, since it is
        checked from the next byte on.
        """
        states = self.obligations[number]
        cached = self.advance[number]
        if new_obligation < 0 and not (cached == -2).any():
            return cached
        moves = self.delta[[*states, *([new_obligation] if new_obligation >= 0 else [])]]
        out = np.full(self.width, -1, np.int32)
        open_ = np.flatnonzero(cached != -1)
        if len(open_):
            columns = [*map(tuple, moves.T[open_].tolist())]  # np.unique takes ten times as long
            numbers = {
                column: self.intern_obligations(tuple(sorted({s for s in column if s >= 0})))
                for column in sorted({*columns})
            }
            out[open_] = [numbers[column] for column in columns]
        spend_work(80 + moves.size, WORK)
        if new_obligation < 0:
            self.advance[number] = out
        return out

    # ---- lexemes ------------------------------------------------------------------------------------------------

    def item(self, obligations: int, state: int) -> int:
        """Return the number of a partial lexeme in scanner state `state` with these obligations."""
        key = obligations, state
        number = self.item_numbers.get(key)
        if number is None:
            number = self.item_numbers[key] = len(self.items)
            self.items.append(key)
        return number

    def letter(self, terminal: int, context: Context) -> int:
        """Return the number of a terminal that ends in a context."""
        number = self.context_numbers.setdefault(context, len(self.contexts))
        if number == len(self.contexts):
            self.contexts.append(context)
        key = terminal, number
        letter = self.letter_numbers.setdefault(key, len(self.letters))
        if letter == len(self.letters):
            self.letters.append(key)
        return letter

    def begin_lexeme(self, start: int, context: int) -> list[int]:
        """Return the items after the first byte of a lexeme."""
        if start < 0:
            return []
        after = np.frombuffer(self.contexts[context][0], np.int32)
        spend_work(80 + self.width // 2, WORK)
        return self.list_items(after, self.delta[start])

    def list_items(self, obligations: NDArray[np.int32], states: NDArray[np.int32]) -> list[int]:
        """Return the items after each class of bytes, each once, in the order of their obligations and states."""
        pairs = {(o, q) for o, q in zip(obligations.tolist(), states.tolist()) if o >= 0 and q >= 0}
        return [self.item(o, q) for o, q in sorted(pairs)]

    def expand(self, item: int) -> None:
        """Compute the successor items of an item and the letters of lexemes that end there."""
        obligations, state = self.items[item]
        if not obligations and self.accepts_nothing[state]:  # The usual case, which must be fast.
            self.edges.append([self.item(0, q) for q in sorted({*self.delta[state].tolist()} - {-1})])
            self.ends_by_item.append(0)
            spend_work(20 + self.width // 8, WORK)
            return
        self.edges.append(self.list_items(self.advance_obligations(obligations), self.delta[state]))
        bits = 0
        accepted, end = self.accepted[state], int(self.at_end[state])
        terminals = {*accepted[self.advance[obligations] != -1].tolist(), end} - {-1}
        if terminals:
            row = self.advance_obligations(obligations, state)
            for t in sorted(terminals):
                context = np.where(accepted == t, row, np.int32(-1))
                may_end = end == t and self.may_end[obligations]
                if may_end or (context >= 0).any():
                    bits |= 1 << self.letter(t, (context.tobytes(), may_end))
        self.ends_by_item.append(bits)
        spend_work(150 + self.width // 2, WORK)

    def _explore(self) -> None:
        """Find all items, contexts and letters."""
        table = self.table
        self.targets: dict[int, list[int]] = {}
        for t in range(len(table.terminals)):
            column = table.action[:, t]
            self.targets[t] = np.unique(column[column > 0] - 1).tolist()
        starts = sorted({int(s) for s in self.scan if s >= 0})
        self.into = [set(states) for states in self.targets.values()]
        self.begins: dict[tuple[int, int], list[int]] = {}
        worklist = [(int(self.scan[table.start]), 0)]
        done = 0
        seen_items = 0
        while worklist or done < len(self.letters) or seen_items < len(self.items):
            for start, context in worklist:
                if (start, context) not in self.begins:
                    self.begins[start, context] = self.begin_lexeme(start, context)
            worklist = []
            while seen_items < len(self.items):
                self.expand(seen_items)
                seen_items += 1
            for t, context in self.letters[done:]:
                next_starts = (
                    starts if t in self.ignored else sorted({int(self.scan[s]) for s in self.targets.get(t, ())})
                )
                worklist += [(start, context) for start in next_starts]
            done = len(self.letters)

    # ---- following letters --------------------------------------------------------------------------------------

    @cached_property
    def reached(self) -> list[int]:
        """For each item, the letters that it or a later item ends in, as bits."""
        sets = list(self.ends_by_item)
        spend_work(len(sets) * (1 + len(self.letters) // 512), WORK)
        propagate_sets(self.edges, sets)
        return sets

    @cached_property
    def next_letters(self) -> dict[tuple[int, int], int]:
        """For each scanner start and context, the letters that may be read next, including ignored ones."""
        out = {}
        for key, items in self.begins.items():
            bits = 0
            for item in items:
                bits |= self.reached[item]
            out[key] = bits
        return out

    @cached_property
    def readable_letters(self) -> dict[tuple[int, int], int]:
        """As `next_letters`, with ignored lexemes skipped; bit len(letters) is set if the text may end here."""
        keys = list(self.next_letters)
        numbers = {key: k for k, key in enumerate(keys)}
        skipped = [k for k, (t, _) in enumerate(self.letters) if t in self.ignored]
        mask = sum(1 << k for k in skipped)
        edges: list[list[int]] = []
        sets: list[int] = []
        for start, context in keys:
            bits = self.next_letters[start, context]
            skippable = [k for k in skipped if bits >> k & 1]
            edges.append(
                [numbers[start, self.letters[k][1]] for k in skippable if (start, self.letters[k][1]) in numbers]
            )
            sets.append(bits & ~mask | self.contexts[context][1] << len(self.letters))
        spend_work(len(keys) * (1 + len(skipped)), WORK)
        propagate_sets(edges, sets)
        return dict(zip(keys, sets))

    @cached_property
    def is_free(self) -> bool:
        """Whether any lexeme may be followed by every terminal that the table permits."""
        permitted = [sum(1 << t for t in np.flatnonzero(row).tolist()) for row in self.table.action]
        readable = {
            key: sum(1 << t for t, bits in enumerate(self._letters_of) if bits & letters)
            for key, letters in self.readable_letters.items()
        }
        spend_work(int((self.table.action != 0).sum()) + len(readable) * len(self._letters_of) // 8, WORK)
        rows, skipped = self._rows(), sum(self._letters_of[t] for t in self.ignored)
        visited: set[tuple[int, int]] = set()
        read = skipped  # letters whose targets are in the worklist, since these do not depend on the state before it
        worklist = [(self.table.start, 0)]
        while worklist:
            state, context = worklist.pop()
            if (state, context) in visited:
                continue
            visited.add((state, context))
            key = int(self.scan[state]), context
            spend_work(5, WORK)
            if permitted[state] & ~readable.get(key, 0):
                return False
            letters = self.next_letters.get(key, 0)
            worklist += [(state, self.letters[k][1]) for k in list_members(letters & skipped)]
            fresh = letters & rows[state] & ~read
            read |= fresh
            for k in list_members(fresh):
                t, after = self.letters[k]
                worklist += [(target, after) for target in self.targets[t]]
        return True

    # ---- letters ------------------------------------------------------------------------------------------------

    def _rows(self) -> list[int]:
        """Return, for each LALR state, the letters with an action (and the end of text), as bits."""
        return [sum(self._letters_of[t] for t in np.flatnonzero(row).tolist()) for row in self.table.action]

    @cached_property
    def _letters_of(self) -> list[int]:
        """The letters of each terminal, and the end of text, as bits."""
        by_terminal = [0] * len(self.table.terminals)
        for k, (t, _) in enumerate(self.letters):
            by_terminal[t] |= 1 << k
        by_terminal[self.end] = 1 << len(self.letters)
        return by_terminal

    @cached_property
    def merged(self) -> tuple[list[int], ContextTerminals]:
        """The class of each letter under the coarsest bisimulation, and the ContextTerminals of the classes.

        By partition refinement (Moore): classes are split by the classes of their followers until nothing changes.
        """
        rows, count = self._rows(), len(self.letters)
        everywhere = {(int(self.scan[s]), row): s for s, row in enumerate(rows)}
        followers: list[list[int]] = []  # the letters that may follow each letter, in each state it can lead to
        for t, context in self.letters:
            states = sorted(everywhere.values()) if t in self.ignored else self.targets[t]
            distinct = dict.fromkeys((int(self.scan[s]), rows[s]) for s in states)
            followers.append([self.readable_letters.get((start, context), 0) & row for start, row in distinct])
        classes = [t for t, _ in self.letters]
        classes.append(self.end)
        while True:
            masks: dict[int, int] = {}
            for k, number in enumerate(classes):
                masks[number] = masks.get(number, 0) | 1 << k
            spend_work(sum(map(len, followers)) * (1 + len(masks) // 8), WORK)
            signatures: dict[tuple[object, ...], int] = {}
            refined = []
            for k in range(count):
                key = (
                    classes[k],
                    *(tuple([n for n, mask in masks.items() if mask & bits]) for bits in followers[k]),
                )
                refined.append(signatures.setdefault(key, len(signatures)))
            refined.append(len(signatures))
            if len(signatures) + 1 == len(masks):
                break
            classes = refined
        return self._number_classes(classes, rows)

    def _number_classes(self, classes: list[int], rows: list[int]) -> tuple[list[int], ContextTerminals]:
        """Number the classes so that letter t is the first class of terminal t."""
        terminal = list(range(self.end + 1))
        numbers: dict[int, int] = {}
        numbered: set[int] = set()
        for k, (t, _) in enumerate(self.letters):
            if classes[k] not in numbers:
                numbers[classes[k]] = t if t not in numbered else len(terminal)
                if t in numbered:
                    terminal.append(t)
                numbered.add(t)
        numbers[classes[-1]] = self.end
        mapped = [numbers[one] for one in classes]

        def map_to_classes(bits: int) -> int:
            classes_found = 0
            for k in list_members(bits):
                classes_found |= 1 << mapped[k]
            return classes_found

        following: dict[tuple[int, int], int] = {}
        readable: dict[int, int] = {}
        for (start, _), bits in self.next_letters.items():
            readable[start] = readable.get(start, 0) | bits
        entered = [s for s in range(len(rows)) if s == self.table.start or any(s in into for into in self.into)]
        for k, (t, context) in enumerate(self.letters):
            for state in entered if t in self.ignored else self.targets[t]:
                if t in self.ignored and not readable.get(int(self.scan[state]), 0) >> k & 1:
                    continue
                if (state, mapped[k]) not in following:
                    spend_work(2 + len(self.letters) // 8, WORK)
                    following[state, mapped[k]] = map_to_classes(
                        self.readable_letters.get((int(self.scan[state]), context), 0) & rows[state]
                    )
        first = map_to_classes(self.readable_letters[int(self.scan[self.table.start]), 0] & rows[self.table.start])
        return mapped, ContextTerminals(tuple(terminal), following, first, self.ignored)

    def possible(self, states: int) -> list[int]:
        """Return, for each scanner state without obligations, the letters that it can still become, as bits."""
        mapped, _ = self.merged
        return [self.ends_of((), state, mapped) for state in range(states)]

    def ends_of(self, obligations: tuple[int, ...], state: int, mapped: list[int]) -> int:
        """Return the letters, as bits, that a lexeme can end in with these obligations; 0 if this never occurs."""
        number = self.item_numbers.get((self.obligation_numbers.get(obligations, -1), state))
        bits = 0 if number is None else self.reached[number]
        ends = 0
        for k in list_members(bits):
            ends |= 1 << mapped[k]
        return ends
