"""State cache: one thread's sets and memos for one Constraint, and the loop that serves the requests of kernels.

A kernel that lacks something returns -1 and stores the request in HEAD[STATUS]: memory, rules, leaf states, rows. `run`
serves it and calls the kernel again. Arrays grow by doubling. A state cache that exceeds `Limits.state_cache_bytes` is
evicted: it is emptied and its `epoch` incremented, after which each Matcher replays its tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstrainError, LimitError
from ..base.fork_safety import fork_handlers
from ..base.options import Limits
from ..base.work import WorkBudget, active_budget, confine_budgets, use_budget
from ..kernels import entry_points, layout as at
from ..kernels.entry_points import address_of, rehash_table, start_set
from ..program.least_costs import LeastCosts
from ..program.program import Program
from ..vocabulary.mask_table import TableFull, data_address
from ..vocabulary.mask_table_cache import find_mask_table
from ..vocabulary.vocabulary import Vocabulary
from .memory_block import MemoryBlock, SlotArrays
from .uniqueness import uniqueness_queries
from .uniqueness.guarded_sets import GuardedSets
from .uniqueness.uniqueness_memo import UniquenessMemo

__all__ = ["StateCache", "StateCacheEvicted"]

ROUNDS_BEFORE_AHEAD = 8
"""Rounds of linking in one step after which rules are linked in advance: one, then twice as many each round."""

HASHES = {
    at.SETS: at.SET_HASH, at.NODES: at.NODE_HASH, at.CURSORS: at.CURSOR_HASH,
    at.OBJECTS: at.OBJECT_HASH, at.NAMES: at.NAME_HASH, at.GUARDS: at.GUARD_HASH,
    at.PAIRS: at.PAIR_HASH, at.LISTS: at.LIST_HASH,
}  # fmt: skip
FILLED = {
    at.SETS: (at.N_SETS, at.SET_W), at.CONFIGS: (at.N_CONFIGS, 5), at.WIDE: (at.N_WIDE, 256), at.NODES: (at.N_NODES, 4),
    at.EDGES: (at.N_EDGES, 3), at.CURSORS: (at.N_CURSORS, 5), at.OBJECTS: (at.N_OBJECTS, 1), at.NAMES: (at.N_NAMES, 3),
    at.GUARDS: (at.N_GUARDS, at.GUARD_W), at.PAIRS: (at.N_PAIRS, at.PAIR_W), at.LISTS: (at.N_LISTS, 1),
    at.MASKS: (at.N_MASKS, 1), at.MAY_SHIFT: (at.N_MAY_SHIFT, 1), at.UNIONS: (at.N_UNIONS, at.UNION_W),
}  # fmt: skip
"""Slots that are filled from the front: the field of HEAD with the count, and int32s per entry."""
LEAST_GROWTH = 4
"""Divisor of the length of a slot: the least by which it grows where the memory budget has no room to double it."""
MOST_ITEMS = 1 << 17
"""Most positions of a program that one closure may reach, which takes about 10 ms."""
MOST_STEPS = 1 << 30
MOST_RESTARTS = 3
"""New mask tables that one eviction tries: another thread may have filled one meanwhile."""
SPARES = 4
MOST_AT_ONCE = 64
"""Most bytes of text that a call which makes requests consumes: after each it walks again from the first of them."""


class StateCacheEvicted(Exception):
    """The state cache was evicted; the caller must replay its tokens."""


class StateCache(GuardedSets):
    """Sets of configurations of one Program over one MaskTable, for one thread at a time.

    `context` and `address` are as in MaskTable, with all slots filled. `epoch` is incremented whenever set ids become
    invalid. `start` is the set before any text, `thread` the owning thread. `is_lost` says that the cache must not be
    used any more: it belongs to a thread of the parent process before a fork, or an interrupt left it inconsistent. The
    argument `epoch` is the latest of the state caches that this one replaces, whose epochs it continues.
    """

    program: Program
    _is_block_reusable = False
    _uniqueness: UniquenessMemo | None = None
    _table_budget: WorkBudget | None = None  # of one step, for states of numbers, made when one is missing
    _restarts = 0  # calls of `reset` that are running: one within another where a table is full at the start
    _step_bytes = 0  # of text that the current step consumes

    def __init__(self, program: Program, vocabulary: Vocabulary, limits: Limits, epoch: int = -1) -> None:
        self.program = program
        self.vocabulary = vocabulary
        self.most_bytes, self.work = limits.state_cache_bytes, limits.work
        self.thread, self.is_lost = get_ident(), False
        self.epoch = epoch
        self.derived: dict[type, Any] = {}  # results that other classes derived from the sets, by class
        self.table = find_mask_table(vocabulary)
        try:
            self.block: MemoryBlock = self.table.spare.pop()
        except IndexError:
            self.block = MemoryBlock(self.table)
        self.context, self.address = self.block.context, self.block.address
        self._clear()
        self._is_block_reusable = True
        fork_handlers.add(self)

    def __del__(self) -> None:
        """Store the block for reuse: pages that were accessed before are cheaper than new ones."""
        if self._is_block_reusable and len(self.table.spare) < SPARES:
            self.block.shorten_all()
            self.table.spare.append(self.block)

    def after_fork(self) -> None:
        """Invalidate this cache unless it belongs to the thread that forked: a kernel may have been writing to it."""
        if self.thread != get_ident() or self.table.is_broken:
            self.lose()
            self._is_block_reusable = False

    def lose(self) -> None:
        """Invalidate this state cache and all positions in it. The Constraint creates another one."""
        self.is_lost = True
        self.program.forget_derived()
        self.epoch += 1
        self.arrays[at.HEAD][at.EPOCH] = self.epoch

    def reset(self) -> None:
        """Evict everything and restart with the current mask table of the vocabulary.

        Raise LimitError if the set before any text does not fit into new tables either.
        """
        if self._restarts == MOST_RESTARTS:
            raise LimitError(
                "The automata at the start of this constraint do not fit into one mask table of its vocabulary.",
                hint="Simplify its patterns, or the bounds and multiples of its numbers.",
            )
        self._restarts += 1
        try:
            self.table = find_mask_table(self.vocabulary)
            self.block.initial_context[2 * at.TABLE :] = self.table.context[2 * at.TABLE :]
            self._clear()
        except BaseException:  # `start` is not valid
            self.lose()
            raise
        finally:
            self._restarts -= 1

    def _clear(self) -> None:
        """Make the state cache empty, and find the set before any text."""
        block, program = self.block, self.program
        block.shorten_all()
        block.context_view[:] = block.initial_view
        self.arrays = SlotArrays(block)
        head, empty = block.head, block.image_head
        # Entries of SEEN hold closure numbers: continue them. The worker may be running on this cache.
        empty[at.CLOSURES], empty[at.WORKER] = head[at.CLOSURES], head[at.WORKER]
        empty[at.MOST_STEPS], empty[at.MAY_LACK] = min(self.work, MOST_STEPS), bool(self.vocabulary.missing_bytes)
        block.cleared_view[:] = block.image_view
        if not program.is_started:  # It is needed at once: save the kernel a request.
            program.link_start()
        head[at.ENTRY] = program.entry
        self._generation = program.generation
        self._leaves_started = 0
        self._load_code()
        self.epoch += 1
        head[at.EPOCH] = self.epoch
        self.derived.clear()
        self._uniqueness = None
        self.start = self.run(start_set)

    @property
    def uniqueness(self) -> UniquenessMemo:
        """The memo of uniqueness queries, made when something is missing for the first time."""
        found = self._uniqueness
        if found is None:
            found = self._uniqueness = UniquenessMemo(self.work)
            found.begin_step(self._step_bytes)
        return found

    def _put(self, slot: int, array: NDArray[np.int32]) -> None:
        """Replace the array of a slot."""
        self.arrays[slot] = array
        try:
            address = address_of(array)
        except (BufferError, ValueError):  # The code of a restored program is read-only.
            address = data_address(array)
        context = self.block.context_view
        context[2 * slot], context[2 * slot + 1] = address, len(array)

    def run(self, kernel: Callable[..., int], *arguments: Any, length: int = 0) -> int:
        """Call a kernel on this state cache, serving its requests, and return its result.

        `length` is the number of bytes of text that the call consumes, which raises the work allowed (see
        `UniquenessMemo`).
        """
        result = kernel(self.address, *arguments)
        if result != -1:
            return result
        self._begin_step(length)
        return self._serve(kernel, arguments)

    def advance_bytes(self, state: int, text: bytes) -> int:
        """Return the set after a set and the bytes of `text`, or -2 - i if byte i is refused.

        A text that lacks nothing takes one call of the kernel, any other a call for each part of it, so that the work
        is in proportion to its length. All parts belong to one step.
        """
        octets = np.frombuffer(bytearray(text), np.uint8)
        if len(octets) <= MOST_AT_ONCE:
            return self.run(entry_points.advance_bytes, state, octets, length=len(octets))
        after = entry_points.advance_bytes(self.address, state, octets)
        if after != -1:
            return after
        self._begin_step(len(octets))
        for first in range(0, len(octets), MOST_AT_ONCE):
            part = octets[first : first + MOST_AT_ONCE]
            after = entry_points.advance_bytes(self.address, state, part)
            if after == -1:
                after = self._serve(entry_points.advance_bytes, (state, part))
            if after < 0:
                return after - first
            state = after
        return state

    def _begin_step(self, length: int) -> None:
        """Begin a step that consumes `length` bytes of text, with budgets of its own."""
        if self._uniqueness is not None:
            self._uniqueness.begin_step(length)
        self._step_bytes, self._table_budget = length, None

    def _serve(self, kernel: Callable[..., int], arguments: tuple[Any, ...]) -> int:
        """Serve the request of a kernel, call it again until it has none, and return its result."""
        rounds, head = 0, self.block.head
        while True:
            try:
                while head[at.STATUS] in (at.NEED_READERS, at.NEED_ROOT):
                    result = self._provide_readers(kernel, arguments)
                    if result != -1:
                        return result
                rounds += head[at.STATUS] == at.NEED_RULES
                self._provide(rounds)
            except (StateCacheEvicted, ConstrainError):
                raise
            except BaseException:  # KeyboardInterrupt, MemoryError: the cache may be inconsistent
                self.lose()
                raise
            result = kernel(self.address, *arguments)
            if result != -1:
                return result

    def _provide_readers(self, kernel: Callable[..., int], arguments: tuple[Any, ...]) -> int:
        """Call a kernel that has requested readers again, and return its result.

        The reader of all tokens from a scanner state is read from disk if it is there, otherwise the kernel builds it
        as it builds those of remainders. It requests each of the former, so that each is looked up.
        """
        head, table = self.arrays[at.HEAD], self.table
        parser = self.program.parsers[int(head[at.REQUEST_BLOCK])]
        with table.lock:
            if head[at.STATUS] == at.NEED_READERS:
                head[at.BUILDING] = at.REMAINDERS
            elif not table.lexemes.fetch(parser, int(head[at.ARGUMENT])):
                head[at.BUILDING] = at.REQUESTED
            is_built = bool(head[at.BUILDING])
            result = kernel(self.address, *arguments)
            head[at.BUILDING] = 0
        if is_built:
            table.lexemes.later(parser)
        return result

    def _provide(self, rounds: int) -> None:
        """Serve the request of a kernel. `rounds` is the number of requests for rules so far."""
        head = self.block.head
        status, argument = head[at.STATUS], head[at.ARGUMENT]
        try:
            if status == at.FULL:
                self._grow(argument)
            elif status == at.NEED_RULES:
                self._check_generation()
                missing = self.arrays[at.MISSING][: head[at.N_MISSING]].tolist()
                # A closure restarts for each unlinked rule of a chain of calls, so link further ones ahead.
                self.program.link_following(missing, (1 << min(max(rounds - ROUNDS_BEFORE_AHEAD, 0), 17)) >> 1)
                self._load_code()
            elif status in (at.NEED_START, at.NEED_LEAF, at.NEED_ROW):
                self._extend_table(status, argument)
            elif status == at.NEED_SUFFIXES:
                self.table.build_suffixes(argument)
            elif status == at.NEED_BY_LENGTH:
                self.table.order(argument)
            elif status == at.NEED_SCANNER:
                parser = self.program.parsers[argument]
                self.arrays[at.SCANNERS][list(self.program.parsers).index(argument)] = self.table.lexemes.scanner(
                    parser
                )
            elif status == at.NEED_COREACHABLE:
                self._store_completable_terminals(argument)
            elif status == at.TABLE_FULL:
                raise TableFull
            elif status == at.SPENT:
                raise LimitError(
                    f"A mask would take more than {head[at.MOST_STEPS]:,} steps: too many readings of the text.",
                    hint="Write the grammar so that a text has fewer readings, or raise Limits(work=...).",
                )
            elif status == at.STUCK:
                raise LimitError(
                    "No token is allowed here, though the text is not complete: a search for what may follow gave up.",
                    hint="Roll back, or relax the constraint: members that must differ are searched for up to a limit.",
                )
            elif status == at.NEED_UNION:
                self._store_union(argument)
            elif status == at.NEED_ANSWERS:
                self._answer_all()
            else:
                self._answer(status, argument)
        except TableFull:
            if (
                self.vocabulary.__dict__.get("mask_table") is self.table
            ):  # otherwise another state cache has replaced it
                self.vocabulary.__dict__.pop("mask_table", None)
            self.reset()
            raise StateCacheEvicted from None

    @confine_budgets
    def _extend_table(self, status: int, argument: int) -> None:
        """Serve a request for the start, the transitions or the row of a leaf state."""
        budget = self._table_budget
        if budget is None:
            budget = self._table_budget = active_budget() or WorkBudget(self.work)
        with use_budget(budget):
            if status == at.NEED_START:
                self.arrays[at.STARTS][argument] = self.table.start(*self.program.leaves[argument])
            elif status == at.NEED_LEAF:
                self.table.expand(argument)
            else:
                self.table.row(argument)

    def _answer_all(self) -> None:
        """Answer the deferred uniqueness queries of a mask, each once."""
        head, queries = self.arrays[at.HEAD], self.arrays[at.QUESTIONS]
        words = queries[: at.QUESTION_W * head[at.N_QUESTIONS]].reshape(-1, at.QUESTION_W).tolist()
        for status, argument, text, spelling, state in dict.fromkeys(map(tuple, words)):
            head[at.TEXT], head[at.SPELLING], head[at.NAMED_IN] = text, spelling, state
            self._answer(status, argument)

    def _answer(self, status: int, argument: int) -> None:
        """Answer a uniqueness query. Kernels that run for it belong to the same step."""
        text, nested = int(self.arrays[at.HEAD][at.TEXT]), self.uniqueness.is_answering
        memo = self.uniqueness
        memo.is_answering = True
        try:
            if status == at.NEED_CANDIDATES:
                uniqueness_queries.answer_candidates(self, argument, text)
            elif status == at.NEED_IS_UNIQUE:
                uniqueness_queries.answer_is_unique(self, argument, text)
            elif status == at.NEED_NAME_FREE:
                uniqueness_queries.answer_name_free(self, argument)
            else:
                uniqueness_queries.answer_can_differ(self, argument)
        finally:
            memo.is_answering = nested

    def _check_generation(self) -> None:
        """Evict everything if the program was relinked, since its rule cells were renumbered."""
        self.program.ensure_grammar()
        if self.program.generation != self._generation:
            self.reset()
            raise StateCacheEvicted

    def _store_union(self, count: int) -> None:
        """Store the terminals that the last of `count` lexemes in LISTING can become beyond those of earlier ones."""
        head = self.arrays[at.HEAD]
        block, first = int(head[at.REQUEST_BLOCK]), int(head[at.REQUEST_LIST])
        if at.UNION_W * (head[at.N_UNIONS] + 1) > self.arrays[at.UNIONS].size:
            self._grow(at.UNIONS)
            return
        parser = self.program.parsers[block]
        if head[at.N_MAY_SHIFT] + 2 + parser.words > self.arrays[at.MAY_SHIFT].size:
            self._grow(at.MAY_SHIFT)
            return
        states = self.arrays[at.LISTING][first + 1 : first + at.LEXEME_W * count : at.LEXEME_W]
        offset = int(head[at.N_MAY_SHIFT]) + 2
        self.arrays[at.MAY_SHIFT][offset - 2 : offset] = 0, parser.words
        self.arrays[at.MAY_SHIFT][offset : offset + parser.words] = parser.joint(states.tolist())
        head[at.N_MAY_SHIFT] = offset + parser.words
        record = at.UNION_W * int(head[at.N_UNIONS])
        self.arrays[at.UNIONS][record : record + 2 + count] = [block, count, *states]
        self.arrays[at.UNIONS][record + at.UNION_W - 1] = offset
        head[at.N_UNIONS] += 1

    def _store_completable_terminals(self, stack: int) -> None:
        """Store the terminals by which a parser's stack can eventually be completed."""
        head, pairs = self.arrays[at.HEAD], self.arrays[at.PAIRS]
        parser = self.program.parsers[int(head[at.REQUEST_BLOCK])]
        offset = int(head[at.N_MAY_SHIFT]) + 2
        if offset + parser.words > self.arrays[at.MAY_SHIFT].size:
            self._grow(at.MAY_SHIFT)
            return
        states, below = list[int](), stack
        while pairs[at.PAIR_W * below + at.PAIR_BELOW] >= 0:
            states.append(int(pairs[at.PAIR_W * below]))
            below = int(pairs[at.PAIR_W * below + at.PAIR_BELOW])
        self.arrays[at.MAY_SHIFT][offset - 2 : offset] = stack, parser.words
        self.arrays[at.MAY_SHIFT][offset : offset + parser.words] = parser.leads_on(states[::-1])
        pairs[at.PAIR_W * stack + at.PAIR_SHIFTS] = offset
        head[at.N_MAY_SHIFT] = offset + parser.words

    def _load_code(self) -> None:
        """Use newly linked code, and allocate entries for its leaves and parsers."""
        if self.arrays.get(at.CODE) is not self.program.code:  # otherwise the new code is in the same array
            self._put(at.CODE, self.program.code)
        context = self.block.context_view
        for slot, capacity in ((at.SCANNERS, self.program.parser_capacity), (at.STARTS, self.program.leaf_capacity)):
            length = context[2 * slot + 1]
            if length < capacity:
                self._put(slot, np.concatenate([self.arrays[slot], np.full(capacity - length, -1, np.int32)]))
        # Most leaves have been started for other constraints: kernels need not ask for these.
        number, starts, known_starts = self._leaves_started, self.block.starts_view, self.table.starts
        if number == len(self.program.leaves):
            return
        if context[2 * at.STARTS + 1] > len(starts):
            starts = self.arrays[at.STARTS].data
        for key in self.program.leaf_keys(number)[: len(starts) - number]:
            state = known_starts.get(key)
            if state is not None:
                starts[number] = state
            number += 1
        self._leaves_started = number

    def _grow(self, slot: int) -> None:
        """Double a slot and its hash table. Evict everything if the memory budget is exceeded.

        Where the budget has no room to double a slot without a hash table, the slot takes what room there is.
        """
        if slot == at.LISTING:
            raise LimitError(
                f"More than {at.MOST_LEXEMES - 2} lexemes of the grammar are possible at one position.",
                hint="Some terminal can continue far beyond its shortest match: rewrite it so that it cannot.",
            )
        if slot == at.ITEMS and self.arrays[slot].size >= 5 * MOST_ITEMS:
            raise LimitError(
                f"More than {MOST_ITEMS:,} positions of the grammar are reached at one position of the text.",
                hint="Write the grammar so that a text has fewer readings.",
            )
        if self.bytes_used() > self.most_bytes:
            self.reset()
            raise StateCacheEvicted
        parts = {slot, HASHES.get(slot, slot), at.SEEN if slot == at.ITEMS else slot}
        for part in parts:
            old = self.arrays[part]
            length = self._grown_length(slot) if part == slot else 2 * old.size
            if self._grows_in_place(part, length):
                new = self.block.lengthen(part, length)
            elif part == at.SEEN:
                new = np.zeros(length, np.int32)
            else:
                new = np.empty(length, np.int32)
                new[: old.size] = old
                if part in self.block.grown:
                    self.block.shorten(part)
            self._put(part, new)
        if slot in HASHES:
            rehash_table(self.address, HASHES[slot])

    def _grown_length(self, slot: int) -> int:
        """Return the length that a slot is to have, in int32s."""
        old = self.arrays[slot]
        if slot in HASHES or slot not in FILLED:
            return 2 * old.size
        width = FILLED[slot][1]
        freed = old.size  # or used again, in place
        if old.base is self.block.memory and not self._grows_in_place(slot, 2 * old.size):
            freed -= self.block.view(slot).size  # the block keeps its memory
        room = freed + (self.most_bytes - self.bytes_used()) // old.itemsize
        least = old.size + old.size // LEAST_GROWTH
        return max(min(2 * old.size, room - room % width), least + -least % width)

    def _grows_in_place(self, slot: int, length: int) -> bool:
        """Return whether a slot can have this length where it is in the block."""
        return self.arrays[slot].base is self.block.memory and length <= self.block.capacity(slot)

    def least_costs(self) -> LeastCosts:
        """Return the least costs of the program, after loading all code that they refer to."""
        costs = self.program.costs()
        self._check_generation()
        self._load_code()
        return costs

    def filled(self) -> list[int]:
        """Return the number of used int32s of each slot; hash tables and scratch memory count in full."""
        head: list[int] = self.arrays[at.HEAD].tolist()
        lengths: list[int] = self.context[1 : 2 * at.TABLE : 2].tolist()
        lengths[at.CODE] = 0
        for slot, (count, width) in FILLED.items():
            lengths[slot] = head[count] * width
        return lengths

    def bytes_filled(self) -> int:
        """Return the bytes in use. Reserved memory that has not been written costs nothing."""
        return 4 * sum(self.filled())

    def bytes_used(self) -> int:
        """Return the reserved bytes, without the mask table and what is reserved for growth."""
        block = self.block
        grown = [array.nbytes for array in self.arrays.values() if array.base is not block.memory]
        in_place = [self.arrays[slot].nbytes - block.view(slot).nbytes for slot in block.grown]
        used: int = block.initial_bytes + sum(grown) + sum(in_place) - self.arrays[at.CODE].nbytes
        return used
