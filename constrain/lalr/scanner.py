"""Construction of a scanner, a DFA over bytes: the terminal that a lexer which tries them in order would match.

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

from ..automata.bit_sets import list_members
from ..automata.ordered_threads import EVERY, NOTHING, BehindStart, ThreadStates
from ..automata.thread_steps import DoneStep, TerminalPrograms
from ..base.errors import LimitError, UnsupportedError
from ..base.work import spend_work
from .dominated_matches import is_dominated
from .scanner_tables import END_OF_TEXT, Scanner

__all__ = ["TerminalList", "build_scanner"]

WORK = 64
"""Listed threads allowed per state of the limit, as in the regex front end."""

MOST_REFINED_MOVES = 24
"""Most moves of a state with which byte classes are refined move by move; with more, each byte is handled alone."""

LOOKBEHIND_HINT = "A match may depend on the text of the terminal alone: include the preceding character in it."
LOOKAHEAD_HINT = (
    "At the end of a terminal a lookahead may depend on the next byte: (?![a-z]), (?a:\\b) and (?=[^,]) can be "
    "enforced; (?!end), \\b for all scripts, and $ without flag m cannot."
)

_T = TypeVar("_T")
_N = TypeVar("_N", bound=np.generic)

_Match = tuple[int, int, bool]
"""The terminal, the next bytes under which it is accepted, and whether it is accepted at the end of the text."""

_CUT = -1
"""Instead of successor threads: the threads after this one are superseded."""

_OPEN, _MATCHED, _WAITING, _KEYWORD, _KEYWORD_END = range(5)
"""Kinds of threads: within a terminal; at its end; at its end with pending lookaheads; within a keyword; at its end."""


@dataclass(frozen=True, slots=True)
class TerminalList:
    """The terminals that a lexer tries, in order, and the keywords that only rename matches, in order."""

    terminals: tuple[int, ...]
    keywords: tuple[int, ...] = ()


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
            raise ValueError("a terminal matches the empty text")
        rows: dict[tuple[_Match, ...], int] = {(): 0}
        accept = [rows.setdefault(match, len(rows)) for match in matches]
        tags = [sum({1 << tag for tag, mask, at_end in match if mask or at_end}) for match in matches]
        return _to_scanner(
            starts, edges, accept, list(rows), _propagate_terminals(tags, edges), len(self.programs.names)
        )

    # ---- threads ------------------------------------------------------------------------------------------------

    def start(self, item: TerminalList) -> int:
        """Return the start state of a list."""
        programs = self.programs
        places = [programs.keywords[t] for t in item.keywords] + [programs.starts[t] for t in item.terminals]
        return self.intern_threads(
            tuple([self.bundle(self.convert_lookbehind_error(pc, self.threads.start, pc)) for pc in places])
        )

    def convert_lookbehind_error(self, pc: int, function: Callable[[int], _T], number: int) -> _T:
        """Return `function(number)`; convert BehindStart to an UnsupportedError that names the terminal of `pc`."""
        try:
            return function(number)
        except BehindStart:
            pass
        raise self.unsupported(pc, "an anchor or lookbehind depends on the text before it", LOOKBEHIND_HINT)

    def unsupported(self, pc: int, problem: str, hint: str) -> UnsupportedError:
        owner = self.owner(pc)
        source, position = self.programs.source(owner)
        cause = f"terminal {self.programs.names[owner]}: {problem}, which is not supported"
        return UnsupportedError(cause, source=source, position=position, hint=hint)

    def owner(self, pc: int) -> int:
        """Return the terminal that an address belongs to."""
        owner = self.programs.owners[pc]
        return owner if owner >= 0 else ~owner

    def kind(self, number: int) -> int:
        kind = self.kinds.get(number)
        if kind is None:
            thread = self.threads.threads[number]
            done = isinstance(self.programs.code[thread.pc], DoneStep)
            if self.programs.owners[thread.pc] < 0:
                kind = _KEYWORD_END if done else _KEYWORD
            else:
                kind = _OPEN if not done else _WAITING if thread.pending else _MATCHED
            self.kinds[number] = kind
        return kind

    def bundle(self, threads: tuple[int, ...]) -> int:
        number = self.bundle_numbers.setdefault(threads, len(self.bundles))
        if number == len(self.bundles):
            self.bundles.append(threads)
        return number

    def moves_of(self, number: int) -> list[tuple[int, int]]:
        """Return (bytes, bundle of successor threads or _CUT) for disjoint byte sets."""
        moves = self.moves.get(number)
        if moves is None:
            if self.kind(number) == _WAITING:
                satisfying = self.satisfying_bytes(number)
                moves = [(satisfying, _CUT)] if satisfying else []
            else:
                pc = self.threads.threads[number].pc
                successors = self.convert_lookbehind_error(pc, self.threads.moves, number)
                moves = [(mask, self.bundle(threads)) for mask, threads in successors if threads]
            self.moves[number] = moves
        return moves

    def satisfying_bytes(self, number: int) -> int:
        """Return the next bytes that satisfy the pending lookaheads of a match."""
        pending = self.threads.threads[number].pending
        return sum(mask for mask, remaining in self.threads.advance_lookaheads(pending) if remaining == NOTHING)

    def check_one_byte_decides(self, number: int, preferred: tuple[int, ...]) -> None:
        """Raise UnsupportedError if a match needs more than the next byte and is not dominated by preferred threads."""
        thread = self.threads.threads[number]
        for mask, remaining in self.threads.advance_lookaheads(thread.pending):
            if remaining and not self.convert_lookbehind_error(
                thread.pc, partial(is_dominated, self.threads, preferred, thread.pending), mask
            ):
                raise self.unsupported(thread.pc, "a lookahead depends on more than the next byte", LOOKAHEAD_HINT)

    # ---- states -------------------------------------------------------------------------------------------------

    def intern_threads(self, seq: tuple[int, ...]) -> int:
        """Return the state of the concatenated bundles; -1 if nothing can match any more."""
        known = self.interned.get(seq)
        if known is not None:
            return known
        state = self.drop_ineffective(self.truncate(seq))
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

    def truncate(self, seq: tuple[int, ...]) -> list[int]:
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

    def drop_ineffective(self, numbers: list[int]) -> tuple[int, ...]:
        """Drop ineffective threads: keywords of terminals that cannot match, and threads subsumed by an earlier one."""
        kinds = [self.kind(number) for number in numbers]
        threads = [self.threads.threads[number] for number in numbers]
        active = {self.owner(t.pc) for t, kind in zip(threads, kinds) if kind < _KEYWORD}
        if not active:
            return ()
        remaining = numbers
        if kinds[0] >= _KEYWORD:
            matched = {self.owner(t.pc) for t, kind in zip(threads, kinds) if kind in (_MATCHED, _WAITING)}
            renames = self.programs.renames
            remaining = []
            for number, kind, thread in zip(numbers, kinds, threads):
                if kind >= _KEYWORD:
                    keyword = self.owner(thread.pc)
                    if not any(keyword in renames[t] for t in (matched if kind == _KEYWORD_END else active)):
                        continue
                remaining.append(number)
        if any(thread.pending for thread in threads):
            remaining = self.drop_subsumed(remaining)
        return tuple(remaining)

    def drop_subsumed(self, numbers: list[int]) -> list[int]:
        """Drop each thread after one in the same state with fewer conditions (a subset of its pending lookaheads)."""
        remaining = []
        pending_by_state: dict[tuple[int, int, tuple[int, ...]], list[frozenset[tuple[int, bool]]]] = {}
        for number in numbers:
            thread = self.threads.threads[number]
            pending = pending_by_state.setdefault((thread.pc, thread.node, thread.lookbehind), [])
            if not any(smaller <= thread.pending for smaller in pending):
                pending.append(thread.pending)
                remaining.append(number)
        return remaining

    def edges(self, state: tuple[int, ...]) -> dict[int, int]:
        """Return the bytes that lead to each next state, as bits."""
        moves = [move for number in state for move in (self.moves_of(number),) if move]
        result: dict[int, int] = {}
        if sum(map(len, moves)) <= MOST_REFINED_MOVES:
            groups: list[tuple[int, tuple[int, ...]]] = [(EVERY, ())]
            for move in moves:
                for mask, bundle in move:
                    groups = [
                        (part, bundles)
                        for old, so_far in groups
                        for part, bundles in ((old & mask, (*so_far, bundle)), (old & ~mask, so_far))
                        if part
                    ]
        else:
            columns: list[list[int]] = [[] for _ in range(256)]
            for move in moves:
                for mask, bundle in move:
                    for byte in self.bytes.get(mask) or self.bytes.setdefault(mask, list_members(mask)):
                        columns[byte].append(bundle)
            groups = [(1 << byte, tuple(column)) for byte, column in enumerate(columns) if column]
        for mask, bundles in groups:
            target = self.intern_threads(bundles)
            if target >= 0:
                result[target] = result.get(target, 0) | mask
        return result

    def matches(self, state: tuple[int, ...]) -> tuple[_Match, ...]:
        """Return the matches of a state in order of preference."""
        matches = []
        undecided, undecided_at_end = EVERY, True
        keywords = [
            self.owner(self.threads.threads[number].pc) for number in state if self.kind(number) == _KEYWORD_END
        ]
        for position, number in enumerate(state):
            kind = self.kind(number)
            if kind in (_MATCHED, _WAITING):
                terminal = self.owner(self.threads.threads[number].pc)
                renames = self.programs.renames[terminal]
                tag = next((renames[keyword] for keyword in keywords if keyword in renames), terminal)
                satisfying, at_end = EVERY, True
                if kind == _WAITING:
                    preferred = [other for other in state[:position] if self.kind(other) < _KEYWORD]
                    self.check_one_byte_decides(number, tuple(preferred))
                    satisfying = self.satisfying_bytes(number)
                    at_end = self.threads.are_satisfied_at_end(self.threads.threads[number].pending)
                matches.append((tag, satisfying & undecided, at_end and undecided_at_end))
                undecided &= ~satisfying
                undecided_at_end = undecided_at_end and not at_end
        return tuple(matches)


def _propagate_terminals(tags: list[int], edges: list[dict[int, int]]) -> list[int]:
    """Return the terminals that each state or a later one accepts, as bits."""
    possible = list(tags)
    changed = True
    while changed:
        changed = False
        for state in range(len(edges) - 1, -1, -1):
            terminals = possible[state]
            for target in edges[state]:
                terminals |= possible[target]
            if terminals != possible[state]:
                possible[state] = terminals
                changed = True
    return possible


def _to_scanner(
    starts: list[int],
    edges: list[dict[int, int]],
    accept: list[int],
    rows: list[tuple[_Match, ...]],
    possible: list[int],
    terminals: int,
) -> Scanner:
    """Return the Scanner, restricted to co-reachable states."""
    coreachable = [state for state, matches in enumerate(possible) if matches]
    numbers = dict(zip(coreachable, range(len(coreachable))))
    columns: dict[int, NDArray[np.intp]] = {}
    delta = np.full((len(coreachable), 256), -1, dtype=np.int32)
    for state, row in zip(coreachable, delta):
        for target, mask in edges[state].items():
            if target in numbers:
                if mask not in columns:
                    columns[mask] = np.array(list_members(mask), dtype=np.intp)
                row[columns[mask]] = numbers[target]
    accept_table = np.full((len(rows), END_OF_TEXT + 1), -1, dtype=np.int32)
    for row, matches in zip(accept_table, rows):
        for tag, mask, at_end in reversed(matches):
            row[list_members(mask) + [END_OF_TEXT] * at_end] = tag
    words = -(-terminals // 64)
    bits = b"".join([possible[state].to_bytes(8 * words, "little") for state in coreachable])
    possible_bits = np.frombuffer(bits, dtype="<u8").astype(np.uint64).reshape(len(coreachable), words)
    return Scanner(
        delta=_read_only(delta),
        accept=_read_only(np.array([accept[state] for state in coreachable], dtype=np.int32)),
        accept_table=_read_only(accept_table),
        possible=_read_only(possible_bits),
        starts=_read_only(np.array([numbers.get(start, -1) for start in starts], dtype=np.int32)),
    )


def _read_only(array: NDArray[_N]) -> NDArray[_N]:
    array.flags.writeable = False
    return array
