"""Preparation: make ahead of time, while a model computes, what the next masks of a text can need.

Rules are linked and rows of leaf states are made when a text first reaches them, which takes most of the time of the
slowest steps. Nearly all of it can be done before, since a program says what can follow a position: this walks it
breadth first from the position on, and does what is missing in units of mostly less than 0.3 ms, nearest first.

    current set -> its leaf states -> the rest of the running rule -> its callers -> rules called there -> ...

Then it makes the masks of the sets that may be next (`next_masks`). All that grows (Program, MaskTable, state cache)
grows by what a mask would add to it as well, so masks are the same with and without preparation. What cannot be
prepared (an error, too much work) is left to the step that needs it. A table that is half full is not filled further,
and work and memory are bounded for each state cache, which is never evicted for this.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from math import inf
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

from ..base.errors import ArgumentError, ConstrainError, describe_value
from ..kernels import layout as at
from ..program.code_reading import list_following
from ..program.program import Program
from ..vocabulary.mask_table import TableFull
from .next_masks import NextMasks
from .state_cache import FILLED

if TYPE_CHECKING:
    from .matcher_position import MatcherPosition
    from .state_cache import StateCache

__all__ = ["Preparation", "check_seconds", "prepare_matchers"]

WORK_SHARE = 8
"""Divisor of Limits.work: the part that preparation may take for one state cache until it is evicted."""
CODE_SHARE = 16
"""Divisor of Limits.state_cache_bytes: the size of the code from which on no rules are linked ahead."""
LINK_UNITS = 20_000
"""Most work of linking one rule (about 20 ms): beyond it, the rule is left to the step that needs it."""
ROW_UNITS = 700
"""Work that a row counts as: it takes about 0.7 ms."""
SCANNED = 200
"""Instructions that are read in one unit; two take about a microsecond."""
MOST_KEYS = 256
"""Keys of an object, nearest first, whose values are looked at from a place within it."""
MOST_ROWS = 8
"""Leaf states, nearest first, whose rows are made for one leaf."""
MOST_STATES = 64
"""Leaf states that are looked at for one leaf: most, such as those inside an escape, need no row."""
COUNTS = {at.LEAVES: (at.N_LEAVES, at.LEAF_W), at.DFAS: (at.N_DFAS, 1), at.ROWS: (at.N_ROWS, 0),
          at.TRIE: (at.N_TRIE, at.TRIE_W), at.TRIE_EDGES: (at.N_TRIE_EDGES, 1),
          at.TRIE_TOKENS: (at.N_TRIE_TOKENS, at.ENTRY_W)}  # fmt: skip
"""Slots of a MaskTable, the field with the number of their records, and int32s of one; 0: of a mask."""


class CodePlace(NamedTuple):
    """A place in the program where a text is or can return to: an instruction, and the register of its rule."""

    pc: int
    register: int


class CodeReferences(NamedTuple):
    """What the code after a place refers to, in the order of the text: rule cells and leaves."""

    cells: dict[int, None]
    leaves: dict[int, None]


def prepare_matchers(matchers: Iterable[MatcherPosition], is_over: Callable[[], bool]) -> bool:
    """Prepare what the next masks of these texts can need, a unit for each in turn, until `is_over`.

    Returns whether something is left. `is_over` is called before each unit. A text whose position raises an error is
    left out: its next step raises it.
    """
    waiting: deque[tuple[StateCache, Iterator[bool]]] = deque()
    for matcher in matchers:
        if not matcher._ended:
            with suppress(ConstrainError):
                state_cache = matcher._valid_state_cache()
                preparation = Preparation(state_cache)
                if matcher._set not in preparation.parts.sets:
                    waiting.append((state_cache, preparation.list_units(matcher._set)))
    while waiting:
        if is_over():
            return True
        state_cache, units = waiting.popleft()
        try:
            if next(units, False):
                waiting.append((state_cache, units))
        except BaseException:  # KeyboardInterrupt: a part may be inconsistent
            state_cache.lose()
            raise
    return False


def check_seconds(seconds: float) -> float:
    """Return a number of seconds as a float. Raise TypeError or ArgumentError unless it is one from 0 on."""
    if isinstance(seconds, bool) or not isinstance(seconds, Real):  # also a scalar of numpy
        raise TypeError(f"seconds is {describe_value(seconds)}: give a number, such as 0.002")
    if not seconds >= 0:
        raise ArgumentError(f"seconds is {describe_value(seconds)}: give a number from 0 on")
    try:
        return float(seconds)
    except OverflowError:  # of an int
        return inf


class PreparedParts:
    """What was prepared for a state cache since it was last evicted. It is kept in `StateCache.derived`.

    Attributes
    ----------
    work_left : int
        Units of work that may still be spent.
    sets, states : set of int
        Sets of configurations and leaf states for which all is prepared that can be.
    finished : set of int
        Rule cells from which nothing can be reached that is not prepared, or was given up.
    references : dict
        What linked rules refer to, by cell.
    entries : list of (int, int)
        Where the code of linked rules begins, ascending, and their cells.
    """

    def __init__(self, work: int, words: int) -> None:
        self.work_left = work // WORK_SHARE
        self.finished: set[int] = set()
        self.references: dict[int, CodeReferences] = {}
        self.sets: set[int] = set()
        self.states: set[int] = set()
        self.entries: list[tuple[int, int]] = []
        self.next_masks = NextMasks(words, work)
        self.known = 0  # how many of the links of the program are in `entries`

    def find_owner(self, program: Program, pc: int) -> int:
        """Return the cell of the rule whose code contains an address."""
        for cell in program.links[self.known :]:
            if program.words[cell] == 0:
                break  # another thread is linking it
            insort(self.entries, (program.words[cell], cell))
            self.known += 1
        return self.entries[bisect_right(self.entries, (pc, len(program.words))) - 1][1]


class Preparation:
    """Prepares for the texts of one state cache, in the thread that owns it."""

    def __init__(self, state_cache: StateCache) -> None:
        self.state_cache, self.program, self.table = state_cache, state_cache.program, state_cache.table
        if PreparedParts not in state_cache.derived:
            state_cache.derived[PreparedParts] = PreparedParts(state_cache.work, self.table.words)
        self.parts: PreparedParts = state_cache.derived[PreparedParts]

    def list_units(self, number: int) -> Iterator[bool]:
        """Do a unit of work for a text at set `number` at each step of the iterator, and yield True."""
        parts = self.parts
        yield from self._grow_slots()
        for state in self._list_leaf_states(number):
            yield from self._prepare_states(state)
        is_done = not (self._may_link() and parts.work_left > 0) or (yield from self._prepare_rules(number))
        # Last: a step that lacks a rule or a row takes ten times as long as one that lacks its mask.
        yield from parts.next_masks.list_units(self.state_cache, number, self._serve)
        if is_done:
            parts.sets.add(number)

    def _grow_slots(self) -> Iterator[bool]:
        """Grow the slots that are nearly full, so that no step has to: copying one takes milliseconds."""
        cache = self.state_cache
        for slot, (count, width) in FILLED.items():
            is_nearly_full = 4 * width * int(cache.arrays[at.HEAD][count]) > 3 * cache.arrays[slot].size
            if slot != at.MASKS and is_nearly_full and 2 * cache.bytes_used() < cache.most_bytes:
                cache._grow(slot)
                yield True

    def _may_link(self) -> bool:
        """Return whether rules can be linked here. A restored program would compile its source for an unlinked rule."""
        return type(self.program) is Program and self.program.generation == self.state_cache._generation

    def _serve(self, status: int, argument: int) -> bool:
        """Serve the request of a mask that is made ahead of time. Return False for one that is left to its step."""
        cache = self.state_cache
        if status == at.FULL:
            has_space = argument not in (at.LISTING, at.ITEMS) and 2 * cache.bytes_used() < cache.most_bytes
            if has_space:
                cache._grow(argument)
            return has_space
        if not self._may_grow():
            return False
        if status == at.NEED_RULES:
            missing = cache.arrays[at.MISSING][: cache.arrays[at.HEAD][at.N_MISSING]].tolist()
            return self._may_link() and all(self._link(cell) and self.program.words[cell] for cell in missing)
        served: dict[int, Callable[[int], None]] = {
            at.NEED_START: self._begin_leaf, at.NEED_LEAF: self.table.expand, at.NEED_ROW: self.table.row,
            at.NEED_SUFFIXES: self.table.build_suffixes, at.NEED_BY_LENGTH: self.table.order,
        }  # fmt: skip
        make = served.get(status)
        if make is None:
            return False
        self._call_table(make, argument)
        return self.parts.work_left > 0

    def _prepare_rules(self, number: int) -> Generator[bool, None, bool]:
        """Link the rules that can be reached from a set, and begin their leaves. Return False if it is to be tried
        again, because another thread was linking.
        """
        program, parts = self.program, self.parts
        queue, seen, owners = deque[int](), set[int](), [program.entry]
        for place in self._list_places(number) if program.entry not in parts.finished else ():
            owner = parts.find_owner(program, place.pc)
            if owner in parts.finished:
                continue
            owners.append(owner)
            references = CodeReferences({}, {})
            yield from self._read_code(place, references)
            yield from self._prepare_leaves(references.leaves)
            queue.extend(references.cells)
        while queue or owners:
            if not queue:  # last what rules call before their place, which other texts can need
                queue.extend(owners)
                owners.clear()
            cell = queue.popleft()
            if cell in seen or cell in parts.finished:
                continue
            if program.words[cell] == 0:
                if not self._may_grow():
                    return True
                if not self._link(cell):
                    return False
                yield True
            seen.add(cell)
            if program.words[cell]:
                references = yield from self._read_rule(cell)
                yield from self._prepare_leaves(references.leaves)
                queue.extend(references.cells)
        parts.finished |= seen
        return True

    def _may_grow(self) -> bool:
        """Return whether the budgets allow more."""
        if self.parts.work_left <= 0 or CODE_SHARE * self.program.code.nbytes > self.state_cache.most_bytes:
            return False
        counts = self.table.arrays[at.TABLE]
        return all(
            2 * int(counts[field]) * (width or self.table.words) < self.table.arrays[slot].size
            for slot, (field, width) in COUNTS.items()
        )

    # ---- the position -------------------------------------------------------------------------------------------

    def _list_configs(self, number: int) -> list[list[int]]:
        """Return the configurations of a set."""
        arrays = self.state_cache.arrays
        first, count = arrays[at.SETS][number * at.SET_W : number * at.SET_W + 2].tolist()
        records = arrays[at.CONFIGS][at.CONFIG_W * first : at.CONFIG_W * (first + count)]
        configs: list[list[int]] = records.reshape(-1, at.CONFIG_W).tolist()
        return configs

    def _list_leaf_states(self, number: int) -> list[int]:
        """Return the leaf states of a set."""
        code = self.state_cache.arrays[at.CODE]
        return [state for pc, state, *_ in self._list_configs(number) if code[pc] in (at.LEAF, at.OTHER) and state >= 0]

    def _list_places(self, number: int) -> list[CodePlace]:
        """Return the places where the configurations of a set are and can return to, innermost first.

        Each stack node is read once, also where stacks have many callers or cycles, as of left recursion.
        """
        nodes, edges = self.state_cache.arrays[at.NODES], self.state_cache.arrays[at.EDGES]
        places, seen = dict[CodePlace, None](), dict[int, None]()
        for pc, _, node, register, _ in self._list_configs(number):
            places[CodePlace(pc, register)] = seen[node] = None
        level = list(seen)
        while level:
            above, level = level, []
            for node in above:
                first, count = nodes[at.NODE_W * node : at.NODE_W * node + 2].tolist()
                callers = edges[at.EDGE_W * first : at.EDGE_W * (first + count)].reshape(-1, at.EDGE_W)
                for pc, register, below in callers.tolist():
                    if pc != at.RETURN:
                        places[CodePlace(pc, register)] = None
                    if below not in seen:
                        seen[below] = None
                        level.append(below)
        return list(places)

    # ---- rules --------------------------------------------------------------------------------------------------

    def _link(self, cell: int) -> bool:
        """Link a rule, unless that takes too much work. Return False, and do nothing, if another thread links."""
        spent = self.program.try_link(cell, min(LINK_UNITS, self.parts.work_left))
        self.parts.work_left -= spent
        self.state_cache._load_code()
        return spent > 0

    def _read_rule(self, cell: int) -> Generator[bool, None, CodeReferences]:
        """Return what a linked rule refers to, after yielding for each unit of reading it."""
        references = self.parts.references.get(cell)
        if references is None:
            references = CodeReferences({}, {})
            yield from self._read_code(CodePlace(self.program.words[cell], 0), references)
            self.parts.references[cell] = references
        return references

    def _read_code(self, place: CodePlace, references: CodeReferences) -> Iterator[bool]:
        """Add what the code after a place refers to, depth first in the order of the text."""
        words = self.program.words
        todo, seen = [place.pc], set[int]()
        while todo:
            pc = todo.pop()
            if pc in seen:
                continue
            seen.add(pc)
            op = words[pc]
            if op in (at.CALL, at.PASS):
                references.cells[words[pc + at.ARG_RULE]] = None
            elif op == at.LEAF:
                references.leaves[words[pc + at.ARG_LEAF]] = None
            elif op == at.OTHER:
                references.leaves[words[pc + at.ARG_NAME]] = None
            if op == at.KEYS and place.register > 0:
                following: Sequence[int] = self._list_open_keys(words[pc + at.ARG_OBJECT], place.register)
            elif op == at.PASS:
                following = ()
            else:
                following = list_following(words, pc)
            todo.extend(reversed(following))
            if len(seen) % SCANNED == 0:
                self.parts.work_left -= SCANNED // 2
                yield True
                if self.parts.work_left <= 0:
                    return

    def _list_open_keys(self, block: int, state: int) -> list[int]:
        """Return where the values of an object's declared keys begin that have not come: first those that may be next,
        then those that may come later.
        """
        words, objects = self.program.words, self.state_cache.arrays[at.OBJECTS]
        count, targets = words[block + at.OBJ_COUNT], words[block + at.OBJ_TARGETS]
        if objects[state + at.O_BLOCK] != block:
            return list(words[targets : targets + min(count, MOST_KEYS)])
        width, ranks = words[block + at.OBJ_WORDS], words[block + at.OBJ_RANKS]
        first = int(objects[state + at.O_NEXT]) if words[block + at.OBJ_ORDER] == 0 else 0
        bits = objects[state + at.O_BITS : state + at.O_BITS + 2 * width].tolist()
        left = (key for key in range(first, count) if not bits[key >> 5] >> (key & 31) & 1)
        nearest = [(key, words[ranks + key]) for key in islice(left, MOST_KEYS)]
        nearest.sort(key=lambda one: not bits[width + (one[1] >> 5)] >> (one[1] & 31) & 1)
        return [words[targets + key] for key, _ in nearest]

    # ---- leaves -------------------------------------------------------------------------------------------------

    def _prepare_leaves(self, leaves: Iterable[int]) -> Iterator[bool]:
        """Begin leaves, and make the rows of their first states."""
        state_cache = self.state_cache
        for leaf in leaves:
            if leaf >= len(state_cache.arrays[at.STARTS]):
                state_cache._load_code()  # another thread has linked more
            if state_cache.arrays[at.STARTS][leaf] < 0:
                if not self._may_grow():
                    return
                self._call_table(self._begin_leaf, leaf)
                yield True
            state = int(state_cache.arrays[at.STARTS][leaf])
            if state >= 0:
                yield from self._prepare_states(state)

    def _begin_leaf(self, leaf: int) -> None:
        """Find the start state of a leaf."""
        self.state_cache.arrays[at.STARTS][leaf] = self.table.start(*self.program.leaves[leaf])

    def _prepare_states(self, first: int) -> Iterator[bool]:
        """Make the transitions and rows of a leaf state and of those nearest to it."""
        if first in self.parts.states:
            return
        following = self.table.arrays[at.LEAF_NEXT]
        todo, seen, rows = deque([first]), {first}, 0
        while todo and rows < MOST_ROWS and len(seen) < MOST_STATES:
            state = todo.popleft()
            yield from self._complete_state(state)
            rows += int(self._read_leaf(state, at.LEAF_ROW) >= 0)
            targets = following[256 * state : 256 * state + 256]
            # Not by np.unique: its first call imports numpy.ma, and a child forked meanwhile waits for ever.
            fresh = sorted(set(targets[targets >= 0].tolist()) - seen)
            # Few tokens end inside a character or an escape, but in most leaves most states are there.
            fresh = [one for one in fresh if self._read_leaf(one, at.LEAF_FLAGS) & at.LEAF_BOUNDARY]
            seen.update(fresh)
            todo.extend(fresh)
        self.parts.states.add(first)

    def _complete_state(self, state: int) -> Iterator[bool]:
        """Make the transitions, the row and the suffix trie of a leaf state."""
        if not self._read_leaf(state, at.LEAF_FLAGS) & at.LEAF_EXPANDED and self._may_grow():
            self._call_table(lambda one: self.table.expand(one, ahead=0), state)
            yield True
        if not self._read_leaf(state, at.LEAF_FLAGS) & at.LEAF_EXPANDED:
            return
        if self._read_leaf(state, at.LEAF_ROW) == -1 and self._may_grow():
            self._call_table(self.table.row, state)
            self.parts.work_left -= ROW_UNITS
            yield True
        has_row = self._read_leaf(state, at.LEAF_ROW) >= 0
        if has_row and self._read_leaf(state, at.LEAF_SUFFIXES) == -1 and self._may_grow():
            self._call_table(self.table.build_suffixes, state)
            self.parts.work_left -= ROW_UNITS
            yield True

    def _read_leaf(self, state: int, field: int) -> int:
        """Return a field of the record of a leaf state."""
        return int(self.table.arrays[at.LEAVES][state * at.LEAF_W + field])

    def _call_table(self, make: Callable[[int], None], number: int) -> None:
        """Let the table make something. After an error, or if the table is full, no more is prepared.

        The step that needs it meets the same.
        """
        try:
            make(number)
        except (ConstrainError, TableFull):
            self.parts.work_left = 0
