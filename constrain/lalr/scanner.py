"""The scanner of a grammar, as a DFA over bytes: which terminal a lexer that tries them in order finds.

A state is the ordered list of threads (`ordered_threads`) of the terminals tried, without repeats, truncated after the
first one that has matched: earlier threads win if they match later, and later ones never can. The lexeme that a
backtracking matcher prefers is therefore the longest prefix that this DFA accepts, and order, laziness and alternation
have no cost at run time.

There are two refinements. A match whose lookaheads depend on the next byte accepts, and truncates the list, under that
byte only. And a string that also matches a pattern (a keyword) is a thread at the front of the list that neither
matches nor truncates: if it ends together with a match of that pattern, it renames the terminal.

Source: threads with priorities are those of Cox, "Regular Expression Matching: the Virtual Machine Approach" (2009).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..automata.ordered_threads import EVERY, NOTHING, BehindStart, ThreadStates
from ..automata.thread_steps import DoneStep, TerminalPrograms
from ..automata.utf8 import list_bytes
from ..base.errors import LimitError, UnsupportedError
from ..base.work import spend_work
from .dominated_matches import is_dominated

__all__ = ["END_OF_TEXT", "Scanner", "TerminalList", "build_scanner"]

END_OF_TEXT = 256
"""Column of `verdicts` for the end of the text."""

WORK = 64
"""Listed threads allowed per state of the limit, as in the regex front end."""

FEW = 24
"""Number of moves of a state up to which byte classes are refined move by move; beyond it, each byte
is handled singly.
"""

BEHIND = "Where it matches must depend on the text of the terminal alone: take a character before it into the terminal."
AHEAD = (
    "What decides may be one ASCII character, or any other one as a whole: (?![a-z]), (?a:\\b) and (?=[^,]) can be "
    "enforced at the end of a terminal, (?!end), \\b for all scripts, and $ without flag m can not."
)

_T = TypeVar("_T")
_N = TypeVar("_N", bound=np.generic)

_Match = tuple[int, int, bool]
"""The terminal, the next bytes under which it is accepted, and whether it is accepted at the end of the text."""

_CUT = -1
"""In place of successor threads: the threads after this one are superseded."""

_OPEN, _MATCHED, _WAITING, _KEYWORD, _KEYWORD_END = range(5)
"""Kinds of threads: within a terminal; at its end; at its end with pending lookaheads; within a keyword; at its end."""


@dataclass(frozen=True, slots=True)
class TerminalList:
    """The terminals that a lexer tries, in order, and the keywords that only rename matches, in order."""

    terminals: tuple[int, ...]
    keywords: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Scanner:
    """The tables of a scanner; a co-reachable DFA over bytes with read-only arrays.

    Attributes
    ----------
    delta : int32[n, 256]
        Next state, or -1 (dead).
    accept : int32[n]
        Row of `verdicts`; row 0 is all -1, for a state that accepts nothing.
    verdicts : int32[k, 257]
        The terminal accepted given the next byte (256: end of text), or -1.
    possible : uint64[n, words]
        The terminals that the state or a later one accepts, bit t % 64 of word t // 64.
    starts : int32[lists]
        Start state of each list, which accepts nothing; -1 if it never matches.
    """

    delta: NDArray[np.int32]
    accept: NDArray[np.int32]
    verdicts: NDArray[np.int32]
    possible: NDArray[np.uint64]
    starts: NDArray[np.int32]


def build_scanner(programs: TerminalPrograms, lists: Sequence[TerminalList], *, max_states: int) -> Scanner:
    """Return the scanner of several terminal lists, which share states.

    Raises
    ------
    UnsupportedError
        If a lookahead is not decided by the next byte, or a lookbehind inspects text before the lexeme; `cause` names
        the terminal.
    LimitError
        If there are more than `max_states` states.
    ValueError
        If a terminal matches the empty text.
    """
    return _ScannerBuilder(programs, max_states).scanner(lists)


class _ScannerBuilder:
    """The subset construction over ordered lists of threads."""

    def __init__(self, programs: TerminalPrograms, max_states: int) -> None:
        self.programs = programs
        self.max_states = max_states
        self.work = WORK * max_states
        self.threads = ThreadStates(programs.code, programs.utf8)
        self.kinds: dict[int, int] = {}
        self.bundles: list[tuple[int, ...]] = []  # Threads that follow one thread, in order.
        self.bundle_numbers: dict[tuple[int, ...], int] = {}
        self.moves: dict[int, list[tuple[int, int]]] = {}
        self.bytes: dict[int, list[int]] = {}
        self.interned: dict[tuple[int, ...], int] = {}
        self.numbers: dict[tuple[int, ...], int] = {}
        self.states: list[tuple[int, ...]] = []

    def scanner(self, lists: Sequence[TerminalList]) -> Scanner:
        starts = [self.start(item) for item in lists]
        edges: list[dict[int, int]] = []
        for state in self.states:  # `states` grows during the loop.
            edges.append(self.edges(state))
        matches = [self.matches(state) for state in self.states]
        if any(matches[start] for start in starts if start >= 0):
            raise ValueError("a terminal takes the empty text")
        rows: dict[tuple[_Match, ...], int] = {(): 0}
        accept = [rows.setdefault(found, len(rows)) for found in matches]
        tags = [sum({1 << tag for tag, mask, at_end in found if mask or at_end}) for found in matches]
        return _arrays(starts, edges, accept, list(rows), _possible(tags, edges), len(self.programs.names))

    # ---- threads ------------------------------------------------------------------------------------------------

    def start(self, item: TerminalList) -> int:
        """Return the start state of a list."""
        programs = self.programs
        places = [programs.keywords[t] for t in item.keywords] + [programs.starts[t] for t in item.terminals]
        return self.intern_threads(
            tuple([self.bundle(self.guarded(place, self.threads.start, place)) for place in places])
        )

    def guarded(self, place: int, function: Callable[[int], _T], number: int) -> _T:
        """Return `function(number)`; convert BehindStart to an UnsupportedError that names the terminal of `place`."""
        try:
            return function(number)
        except BehindStart:
            pass
        raise self.refused(place, "an anchor or look-behind asks what stands before the text", BEHIND)

    def refused(self, place: int, what: str, hint: str) -> UnsupportedError:
        owner = self.owner(place)
        source, position = self.programs.source(owner)
        cause = f"terminal {self.programs.names[owner]}: {what} that it matches, which is not supported"
        return UnsupportedError(cause, source=source, position=position, hint=hint)

    def owner(self, place: int) -> int:
        """Return the terminal that a place belongs to."""
        owner = self.programs.owners[place]
        return owner if owner >= 0 else ~owner

    def kind(self, number: int) -> int:
        found = self.kinds.get(number)
        if found is None:
            thread = self.threads.threads[number]
            done = isinstance(self.programs.code[thread.place], DoneStep)
            if self.programs.owners[thread.place] < 0:
                found = _KEYWORD_END if done else _KEYWORD
            else:
                found = _OPEN if not done else _WAITING if thread.pending else _MATCHED
            self.kinds[number] = found
        return found

    def bundle(self, threads: tuple[int, ...]) -> int:
        number = self.bundle_numbers.setdefault(threads, len(self.bundles))
        if number == len(self.bundles):
            self.bundles.append(threads)
        return number

    def moves_of(self, number: int) -> list[tuple[int, int]]:
        """Return (bytes, bundle of successor threads or _CUT) for disjoint byte sets."""
        found = self.moves.get(number)
        if found is None:
            if self.kind(number) == _WAITING:
                sure = self.sure(number)
                found = [(sure, _CUT)] if sure else []
            else:
                place = self.threads.threads[number].place
                after = self.guarded(place, self.threads.moves, number)
                found = [(mask, self.bundle(threads)) for mask, threads in after if threads]
            self.moves[number] = found
        return found

    def sure(self, number: int) -> int:
        """Return the next bytes that satisfy the pending lookaheads of a match."""
        pending = self.threads.threads[number].pending
        return sum(mask for mask, owed in self.threads.owing(pending) if owed == NOTHING)

    def check_decided(self, number: int, ahead: tuple[int, ...]) -> None:
        """Raise UnsupportedError if a match needs more than the next byte and is not dominated by preferred threads."""
        thread = self.threads.threads[number]
        for mask, owed in self.threads.owing(thread.pending):
            if owed and not self.guarded(
                thread.place, partial(is_dominated, self.threads, ahead, thread.pending), mask
            ):
                raise self.refused(thread.place, "a look needs more than the one byte behind the text", AHEAD)

    # ---- states -------------------------------------------------------------------------------------------------

    def intern_threads(self, seq: tuple[int, ...]) -> int:
        """Return the state of the concatenated bundles; -1 if nothing can match any more."""
        known = self.interned.get(seq)
        if known is not None:
            return known
        state = self.without_idle(self.cut(seq))
        self.work -= len(state)
        spend_work(150 + 4 * len(state), "the scanner of the terminals")
        number = self.numbers.setdefault(state, len(self.states)) if state else -1
        if number == len(self.states):
            self.states.append(state)
            if number >= self.max_states or self.work < 0:
                raise LimitError(
                    f"the scanner of the grammar needs more than {self.max_states} states, or as much work",
                    hint="Simplify the terminals (counted repetitions cost most), or raise Limits.dfa_states.",
                )
        self.interned[seq] = number
        return number

    def cut(self, seq: tuple[int, ...]) -> list[int]:
        """Return the distinct threads of bundles in order, up to the first unconditional match."""
        threads: dict[int, None] = {}
        for bundle in seq:
            if bundle == _CUT:
                break
            for number in self.bundles[bundle]:
                threads[number] = None
                if self.kind(number) == _MATCHED:
                    return list(threads)
        return list(threads)

    def without_idle(self, numbers: list[int]) -> tuple[int, ...]:
        """Drop threads without effect: keywords whose terminals are gone, and threads dominated by an earlier one."""
        kinds = [self.kind(number) for number in numbers]
        threads = [self.threads.threads[number] for number in numbers]
        alive = {self.owner(t.place) for t, kind in zip(threads, kinds) if kind < _KEYWORD}
        if not alive:
            return ()
        kept = numbers
        if kinds[0] >= _KEYWORD:
            ended = {self.owner(t.place) for t, kind in zip(threads, kinds) if kind in (_MATCHED, _WAITING)}
            renames = self.programs.renames
            kept = []
            for number, kind, thread in zip(numbers, kinds, threads):
                if kind >= _KEYWORD:
                    keyword = self.owner(thread.place)
                    if not any(keyword in renames[t] for t in (ended if kind == _KEYWORD_END else alive)):
                        continue
                kept.append(number)
        if any(thread.pending for thread in threads):
            kept = self.least_owing(kept)
        return tuple(kept)

    def least_owing(self, numbers: list[int]) -> list[int]:
        """Drop threads after one at the same place whose pending lookaheads are a subset of theirs."""
        kept = []
        before: dict[tuple[int, int, tuple[int, ...]], list[frozenset[tuple[int, bool]]]] = {}
        for number in numbers:
            thread = self.threads.threads[number]
            pending = before.setdefault((thread.place, thread.node, thread.past), [])
            if not any(less <= thread.pending for less in pending):
                pending.append(thread.pending)
                kept.append(number)
        return kept

    def edges(self, state: tuple[int, ...]) -> dict[int, int]:
        """Return the bytes that lead to each next state, as bits."""
        moves = [move for number in state for move in (self.moves_of(number),) if move]
        result: dict[int, int] = {}
        if sum(map(len, moves)) <= FEW:
            groups: list[tuple[int, tuple[int, ...]]] = [(EVERY, ())]
            for move in moves:
                for mask, bundle in move:
                    groups = [
                        (part, seq)
                        for old, before in groups
                        for part, seq in ((old & mask, (*before, bundle)), (old & ~mask, before))
                        if part
                    ]
        else:
            columns: list[list[int]] = [[] for _ in range(256)]
            for move in moves:
                for mask, bundle in move:
                    for byte in self.bytes.get(mask) or self.bytes.setdefault(mask, list_bytes(mask)):
                        columns[byte].append(bundle)
            groups = [(1 << byte, tuple(column)) for byte, column in enumerate(columns) if column]
        for mask, seq in groups:
            target = self.intern_threads(seq)
            if target >= 0:
                result[target] = result.get(target, 0) | mask
        return result

    def matches(self, state: tuple[int, ...]) -> tuple[_Match, ...]:
        """Return the matches of a state in order of preference."""
        found = []
        left, left_at_end = EVERY, True
        ended = [
            self.owner(self.threads.threads[number].place) for number in state if self.kind(number) == _KEYWORD_END
        ]
        for place, number in enumerate(state):
            kind = self.kind(number)
            if kind in (_MATCHED, _WAITING):
                terminal = self.owner(self.threads.threads[number].place)
                renames = self.programs.renames[terminal]
                tag = next((renames[keyword] for keyword in ended if keyword in renames), terminal)
                sure, at_end = EVERY, True
                if kind == _WAITING:
                    ahead = [other for other in state[:place] if self.kind(other) < _KEYWORD]
                    self.check_decided(number, tuple(ahead))
                    sure = self.sure(number)
                    at_end = self.threads.kept_at_end(self.threads.threads[number].pending)
                found.append((tag, sure & left, at_end and left_at_end))
                left &= ~sure
                left_at_end = left_at_end and not at_end
        return tuple(found)


def _possible(tags: list[int], edges: list[dict[int, int]]) -> list[int]:
    """Return the terminals that each state or a later one accepts, as bits."""
    possible = list(tags)
    changed = True
    while changed:
        changed = False
        for state in range(len(edges) - 1, -1, -1):
            found = possible[state]
            for target in edges[state]:
                found |= possible[target]
            if found != possible[state]:
                possible[state] = found
                changed = True
    return possible


def _arrays(
    starts: list[int],
    edges: list[dict[int, int]],
    accept: list[int],
    rows: list[tuple[_Match, ...]],
    possible: list[int],
    terminals: int,
) -> Scanner:
    """Return the Scanner, restricted to co-reachable states."""
    kept = [state for state, found in enumerate(possible) if found]
    numbers = dict(zip(kept, range(len(kept))))
    columns: dict[int, NDArray[np.intp]] = {}
    delta = np.full((len(kept), 256), -1, dtype=np.int32)
    for state, row in zip(kept, delta):
        for target, mask in edges[state].items():
            if target in numbers:
                if mask not in columns:
                    columns[mask] = np.array(list_bytes(mask), dtype=np.intp)
                row[columns[mask]] = numbers[target]
    verdicts = np.full((len(rows), END_OF_TEXT + 1), -1, dtype=np.int32)
    for verdict, found in zip(verdicts, rows):
        for tag, mask, at_end in reversed(found):
            verdict[list_bytes(mask) + [END_OF_TEXT] * at_end] = tag
    words = -(-terminals // 64)
    bits = b"".join([possible[state].to_bytes(8 * words, "little") for state in kept])
    possible_bits = np.frombuffer(bits, dtype="<u8").astype(np.uint64).reshape(len(kept), words)
    return Scanner(
        delta=_sealed(delta),
        accept=_sealed(np.array([accept[state] for state in kept], dtype=np.int32)),
        verdicts=_sealed(verdicts),
        possible=_sealed(possible_bits),
        starts=_sealed(np.array([numbers.get(start, -1) for start in starts], dtype=np.int32)),
    )


def _sealed(array: NDArray[_N]) -> NDArray[_N]:
    array.flags.writeable = False
    return array
