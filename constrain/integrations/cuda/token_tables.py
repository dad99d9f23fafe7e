"""A regular Constraint as a table over tokens that fits on a GPU: states, transitions and masks.

    explore      breadth-first over the state sets of its Matchers: the allowed tokens of each state, and their targets
    classes      tokens that no state distinguishes share a column; refined state by state, so [states, V] is never held
    pack         the most frequent target of each state as its default, the exceptions in one array by displacement
    rows         masks, each stored once

The table holds allowed tokens only: all others lead to REFUSED, which is absorbing. An end token leads to ENDED, in
which only end tokens are allowed; decoding loops turn them into padding. Kernel and layout:
`kernels/cuda/cuda_automaton.py`. Sources: row displacement, Tarjan and Yao 1979; default entries, as in the tables of
LALR parsers (Dragon book, 4.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError, LimitError, VocabularyError
from ...engine.state_cache import StateCacheEvicted
from ...kernels.cuda.cuda_automaton import BASE, HOME, OTHERWISE, REFUSED, ROW
from ...sampling.core.token_masses import mask_of
from ...sampling.research.token_automaton import TokenAutomaton

if TYPE_CHECKING:
    from ...engine.constraint import Constraint
    from ...vocabulary.vocabulary import Vocabulary

__all__ = ["ENDED", "MOST_BYTES", "MOST_STATES", "TokenTable", "pool_tables", "token_table"]

Ints = NDArray[np.int32]
ENDED, FIRST = 1, 2
"""ENDED is in every table, like REFUSED. FIRST is the first state of a table's own: its start."""
MOST_STATES = 4096
"""Most states of one constraint, by default: building as many takes some seconds."""
MOST_BYTES = 64 << 20
"""Most bytes of one table, by default: a thousandth of a large GPU's memory, and some 4,000 masks of 128k tokens."""
TRIED = 256
"""Displacements tested in one vectorised step."""
TRIES = 16
"""Such steps before a row is placed after all others. This bounds the time of packing, not its correctness."""


@dataclass(frozen=True)
class TokenTable:
    """The table of one Constraint, or of a pool of them, in host arrays laid out as the kernel reads them.

    states: int32 [S, 4]. classes: int32 [V]; of a pool, concatenated. slots: int32 [n, 2]. masks: int32 [R, words].
    starts: the start state of each constraint.
    """

    states: Ints
    classes: Ints
    slots: Ints
    masks: Ints
    starts: tuple[int, ...]
    vocabulary: Vocabulary

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return self.states.nbytes + self.classes.nbytes + self.slots.nbytes + self.masks.nbytes

    def next(self, state: int, token: int) -> int:
        """Return the state after a token, as the kernel computes it."""
        if not 0 <= token < self.vocabulary.size:
            return REFUSED
        record = self.states[state]
        owner, after = self.slots[record[BASE] + self.classes[record[HOME] + token]]
        return int(after if owner == record[BASE] else record[OTHERWISE])

    def mask(self, state: int) -> Ints:
        """Return the mask of a state, int32 [words]."""
        row: Ints = self.masks[self.states[state, ROW]]
        return row


def token_table(constraint: Constraint, *, most_states: int = MOST_STATES, most_bytes: int = MOST_BYTES) -> TokenTable:
    """Return the table of a Constraint.

    Parameters
    ----------
    constraint : Constraint
        A constraint whose token automaton is finite.
    most_states : int
        Most states.
    most_bytes : int
        Most bytes of device memory.

    Returns
    -------
    TokenTable
        The table, in host memory.

    Raises
    ------
    LimitError
        If the constraint has more states, as one that is not regular always has, or its table takes more bytes.
    """
    vocabulary = constraint.vocabulary
    automaton = TokenAutomaton(constraint, most_states)
    columns = Columns(vocabulary)
    masks = MaskRows(vocabulary, most_bytes)
    sources = [masks.add(np.zeros((vocabulary.size + 31) // 32, np.int32)), masks.add(masks.ends)]
    state = 0
    while state < len(automaton):
        try:
            tokens, after = automaton.explore(state)
            sources.append(masks.add(automaton.matcher(state).mask()))
        except StateCacheEvicted:
            raise LimitError(
                "The constraint's states do not fit into Limits.state_cache_bytes.",
                hint="Raise Limits(state_cache_bytes=...).",
            ) from None
        columns.add(tokens, after + FIRST, automaton.accepting[state])
        state += 1
    states, slots = pack_rows(columns.rows())
    states[:, ROW] = sources
    table = TokenTable(states, columns.classes, slots, np.array(masks.rows), (FIRST,), vocabulary)
    if table.nbytes > most_bytes:
        raise too_large(table.nbytes, most_bytes)
    return table


def too_large(count: int, most: int) -> LimitError:
    """Return the error of a table that exceeds its budget."""
    return LimitError(
        f"The constraint's token automaton takes at least {count:,} bytes on the card, more than {most:,}.",
        hint="Raise most_bytes, or compute its masks on the host (integrations.cuda.overlap).",
    )


class MaskRows:
    """Masks, each stored once."""

    def __init__(self, vocabulary: Vocabulary, most_bytes: int) -> None:
        self.most_bytes, self.rows, self.numbers = most_bytes, list[Ints](), dict[bytes, int]()
        self.ends = mask_of(vocabulary.eos_ids, vocabulary.size)

    def add(self, mask: Ints) -> int:
        """Return the index of a mask, adding it if it is new."""
        index = self.numbers.setdefault(mask.tobytes(), len(self.rows))
        if index == len(self.rows):
            self.rows.append(mask.copy())
            if len(self.rows) * mask.nbytes > self.most_bytes:
                raise too_large(len(self.rows) * mask.nbytes, self.most_bytes)
        return index


class Columns:
    """Classes of tokens that no state so far distinguishes, and the rows of the states over these classes.

    When a class is split, one part keeps its number; the other parts become its children, and have its entries in the
    states before the split. Class 0 initially holds all tokens but the end tokens; class 1 always holds the end tokens.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.classes = np.zeros(vocabulary.size, np.int32)
        self.classes[list(vocabulary.eos_ids)] = 1
        self.sizes = np.bincount(self.classes, minlength=2)
        self.parents: list[int] = [0, 1]
        self.known: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []

    def add(self, tokens: NDArray[np.int64], after: Ints, may_end: bool) -> None:
        """Add a state: its tokens, their targets, and whether end tokens lead to ENDED."""
        pairs = self.classes[tokens].astype(np.int64) << 32 | after
        kinds, first, which, sizes = np.unique(pairs, return_index=True, return_inverse=True, return_counts=True)
        owners = kinds >> 32
        # One part keeps the number of the class: the tokens that are not allowed, if there are any, else the first.
        for kind in np.flatnonzero(sizes < self.sizes[owners]).tolist():
            owner = int(owners[kind])
            if self.sizes[owner] == sizes[kind]:
                continue  # all others have left
            number = len(self.parents)
            self.parents.append(owner)
            self.classes[tokens[which == kind]] = number
            self.sizes[owner] -= sizes[kind]
            self.sizes = np.append(self.sizes, sizes[kind])
        named = self.classes[tokens[first]].astype(np.int64)
        ends = [(1, ENDED)] if may_end else []
        self.known.append((
            len(self.parents),
            np.concatenate([named, [one for one, _ in ends]]).astype(np.int64),
            np.concatenate([kinds & 0xFFFFFFFF, [state for _, state in ends]]).astype(np.int64),
        ))  # fmt: skip

    def rows(self) -> list[Ints]:
        """Return the targets of the classes, int32 [classes], for REFUSED, ENDED and each state that was added."""
        count = len(self.parents)
        parents = np.array(self.parents)
        ended = np.full(count, REFUSED, np.int32)
        ended[1] = ENDED
        rows = [np.full(count, REFUSED, np.int32), ended]
        ancestors, upto = np.arange(count), count
        for number, named, after in reversed(self.known):
            if number < upto:
                while len(young := np.flatnonzero(ancestors >= number)):
                    ancestors[young] = parents[ancestors[young]]
                upto = number
            row = np.full(number, REFUSED, np.int32)
            row[named] = after
            rows.append(row[ancestors])
        return rows[:2] + rows[:1:-1]


def pack_rows(rows: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return states (without ROW, and with HOME 0) and slots. Equal rows share a base; different rows never do."""
    states = np.zeros((len(rows), 4), np.int32)
    width = len(rows[0])
    rows_by_content: dict[bytes, list[int]] = {}
    for state, row in enumerate(rows):
        rows_by_content.setdefault(row.tobytes(), []).append(state)
    exceptions = []
    for owners in rows_by_content.values():
        row = rows[owners[0]]
        after, counts = np.unique(row, return_counts=True)
        otherwise = int(after[counts.argmax()])
        exceptions.append((np.flatnonzero(row != otherwise), row, otherwise, owners))
    exceptions.sort(key=lambda one: -len(one[0]))
    owner, target = np.full(4 * width + TRIED, -1, np.int32), np.zeros(4 * width + TRIED, np.int32)
    lowest, end, used = 0, 0, set[int]()
    for classes, row, otherwise, owners in exceptions:
        base = find_displacement(owner, classes, width, lowest, end, used)
        used.add(base)
        owner[base + classes], target[base + classes] = base, row[classes]
        states[owners, BASE], states[owners, OTHERWISE] = base, otherwise
        end = max(end, base + int(classes[-1]) + 1 if len(classes) else base + 1)
        if end + 2 * width + TRIED > len(owner):
            more = len(owner) + width
            owner, target = np.pad(owner, (0, more), constant_values=-1), np.pad(target, (0, more))
        while owner[lowest] >= 0:
            lowest += 1
    last = int(states[:, BASE].max()) + width
    return states, np.ascontiguousarray(np.stack([owner[:last], target[:last]], axis=1))


def find_displacement(
    owner: Ints, classes: NDArray[np.int64], width: int, lowest: int, end: int, used: set[int]
) -> int:
    """Return the first base among those tried that is unused and at which the slots of all classes are free.

    width: length of a whole row. lowest: no slot before it is free. end: all slots from it on are free.
    """
    first = max(0, lowest - int(classes[0])) if len(classes) else 0
    if 2 * len(classes) > width:
        first = end  # only the empty part has enough free slots
    for at in range(first, min(end, first + TRIES * TRIED), TRIED):
        bases = np.arange(at, at + TRIED)
        free = (owner[bases[:, None] + classes[None, :]] < 0).all(axis=1)
        for base in bases[free].tolist():
            if base not in used:
                return int(base)
    return max(end, max(used, default=-1) + 1)


def pool_tables(tables: Sequence[TokenTable]) -> TokenTable:
    """Return several tables of one vocabulary as one table, with renumbered states. REFUSED and ENDED are shared.

    Parameters
    ----------
    tables : sequence of TokenTable
        At least one table.

    Returns
    -------
    TokenTable
        The pool; `starts` has the start states of all constraints, in the order of the tables.

    Raises
    ------
    ArgumentError
        If `tables` is empty.
    VocabularyError
        If the tables have different vocabularies.
    """
    if not tables:
        raise ArgumentError("a pool holds at least one table")
    vocabulary = tables[0].vocabulary
    if any(table.vocabulary.fingerprint != vocabulary.fingerprint for table in tables):
        raise VocabularyError("all constraints of a pool must have one vocabulary")
    parts: list[tuple[Ints, ...]] = []
    starts: list[int] = []
    n_states = n_classes = n_slots = n_masks = 0
    for table in tables:
        own, after = table.states.copy(), table.slots.copy()
        shift = n_states - FIRST if parts else 0
        own[:, HOME] += n_classes
        own[:, BASE] += n_slots
        own[:, ROW] += n_masks
        after[after[:, 0] >= 0, 0] += n_slots
        for column in (own[:, OTHERWISE], after[:, 1]):
            column[column >= FIRST] += shift
        starts += [start + shift for start in table.starts]
        own = own[FIRST:] if parts else own
        parts.append((own, table.classes, after, table.masks))
        n_states, n_classes = n_states + len(own), n_classes + len(table.classes)
        n_slots, n_masks = n_slots + len(after), n_masks + len(table.masks)
    states, classes, slots, masks = (np.concatenate(one) for one in zip(*parts))
    return TokenTable(states, classes, slots, masks, tuple(starts), vocabulary)
