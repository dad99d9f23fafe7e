"""Convert a program to sets of items: the position automaton of a pattern, in which anchors are exact.

An *item* is a character instruction that may read next, with the constraints that the anchors before it put on the
character. A set of items is an int with one bit for each. `PositionItems.after(item)` returns the items that may read
after that item has read. So anchors are exact at any position, also in repetitions and alternatives:

- `^` depends on the last character read (none yet, a line terminator, another one), which is known, because an item
  records whether the character that it reads is a line terminator.
- `$` looks ahead: either the next item reads a line terminator, or the text ends.
- `$` of Python before a final "\\n" requires that exactly this is left. Its items have the mode TAIL: they read "\\n"
  and lead to the mode DONE, in which no item can read.

Patterns with lookarounds are compiled by `lookaround_threads`, which supports arbitrary assertions.
"""

from __future__ import annotations

from ...base.work import spend_work
from .charset import CharSet, partition_charsets
from .regex_program import MATCH, RegexProgram

__all__ = ["ACCEPT", "PositionItems"]

ACCEPT = 1
"""The bit of a set of items that means acceptance: the text may end here."""

PATTERN = "a pattern"
"""Description of this work in errors about the work budget."""

FREE, TAIL, DONE = 0, 1, 2
"""Modes of an item, by the remaining text: anything; exactly one newline; nothing."""

OTHER, LINE, END, BEGIN = 1, 2, 4, 8
"""What is next to a position between two characters: another character, a line terminator, the end, the beginning."""

LINE_ANCHORS = {"line_begin", "line_end", "last_line_end"}


class PositionItems:
    """The items of a program.

    Attributes
    ----------
    bounds, classes : list of int
        The ranges of code points that no item distinguishes, and their classes (see `Dfa`).
    readers : list of int
        For each class, the items that can read it.
    start : int
        The items that can read first.
    everything : int
        The items that together accept any text, or 0.
    work : int
        Number of steps taken so far.
    """

    def __init__(self, program: RegexProgram, newline: CharSet) -> None:
        anchors = program.anchors()
        self.code = program.code
        # Items have two kinds, OTHER and LINE, and two modes only if some anchor distinguishes them.
        self.kinds = 2 if anchors & LINE_ANCHORS else 1
        self.modes = 2 if "last_line_end" in anchors else 1
        self.width = self.kinds * self.modes
        self.pcs = [pc for pc, step in enumerate(self.code) if isinstance(step, int)]
        self.numbers = {pc: number for number, pc in enumerate(self.pcs)}
        self.any_kind = OTHER | LINE if self.kinds == 2 else OTHER
        self._after: dict[int, int] = {}
        self.work = 0
        self.bounds, self.classes, members = partition_charsets(program.sets + ([newline] if self.kinds == 2 else []))
        spend_work(1 + len(members) * len(program.sets) // 16, PATTERN)
        self.readers = self._readers(members, len(program.sets))
        self.start = self._reach(0, BEGIN, FREE)
        # Most items are followed by just the next one: these step together by a shift. One bit for all their kinds.
        self.plain = sum(
            1 << 1 + number * self.width for number, pc in enumerate(self.pcs) if isinstance(self.code[pc + 1], int)
        )
        self.everything = 0
        if program.rest_pc >= 0:
            first = 1 + self.numbers[program.rest_pc] * self.width
            self.everything = sum(1 << first + kind for kind in range(self.kinds))

    def _readers(self, members: list[int], newline: int) -> list[int]:
        """Return the items that can read each class. members: for each class the sets that contain it, as bits."""
        by_set = [0] * newline
        free_kinds = sum(1 << mode * self.kinds for mode in range(self.modes))
        for number, pc in enumerate(self.pcs):
            step = self.code[pc]
            assert isinstance(step, int)
            by_set[step] |= free_kinds << (1 + number * self.width)
        readers = []
        for bits in members:
            # The item of kind LINE is the one after that of kind OTHER.
            shift = bits >> newline & 1
            readers.append(sum_bits(by_set, bits) << shift)
        return readers

    def after_plain(self, items: int) -> tuple[int, int]:
        """Step the plain items of a set together.

        Return the items that can read next, and the items of the set that are not plain.
        """
        plain = items & self.plain * self.any_kind
        first = (plain | plain >> 1) & self.plain if self.kinds == 2 else plain
        return first * self.any_kind << self.width, items ^ plain

    def after(self, item: int) -> int:
        """Return the items that can read after an item, given as a bit position, has read."""
        successors = self._after.get(item)
        if successors is None:
            number, offset = divmod(item - 1, self.width)
            mode, kind = divmod(offset, self.kinds)
            pc = self.pcs[number] + 1
            successors = self._after[item] = self._reach(pc, LINE if kind else OTHER, DONE if mode == TAIL else FREE)
        return successors

    def list_following(self, most: int) -> list[tuple[int, int]] | None:
        """Return for each item those that can read after it, and the steps that finding these took, 0 for plain items.

        Nothing is charged. Return None if there are items of several kinds, or if it takes more than `most` steps.
        """
        if self.width > 1:
            return None
        following: list[tuple[int, int]] = []
        total, plain = 0, self.plain
        for number, pc in enumerate(self.pcs):
            if plain >> number + 1 & 1:
                following.append((1 << number + 2, 0))
                continue
            found = self._find_reach(pc + 1, OTHER, FREE)
            following.append(found)
            total += found[1]
            if total > most:
                return None
        return following

    def _reach(self, pc: int, last: int, mode: int) -> int:
        """Return the items that can read at an address of the code after `last` was read, and charge for it.

        The result has ACCEPT if the text may end.
        """
        result, steps = self._find_reach(pc, last, mode)
        self.work += steps
        spend_work(1 + steps, PATTERN)
        return result

    def _find_reach(self, pc: int, last: int, mode: int) -> tuple[int, int]:
        """Return what `_reach` does, and the number of steps."""
        code, numbers, width = self.code, self.numbers, self.width
        stack = [(pc, mode, END if mode == DONE else END | self.any_kind)]
        visited: dict[tuple[int, int], int] = {}
        result = 0
        while stack:
            pc, mode, next_kinds = stack.pop()
            known = visited.get((pc, mode), 0)
            if not next_kinds & ~known:
                continue
            visited[pc, mode] = known | next_kinds
            step = code[pc]
            if isinstance(step, tuple):
                stack += [(target, mode, next_kinds) for target in step]
            elif isinstance(step, int):
                # OTHER is bit 0 and LINE bit 1, in the order of the items.
                result |= (next_kinds & self.any_kind) << (1 + numbers[pc] * width + mode * self.kinds)
            elif step == MATCH:
                result |= ACCEPT if next_kinds & END else 0
            else:
                assert isinstance(step, str), "lookarounds need `lookaround_threads`"
                mode, next_kinds = self._pass(step, last, mode, next_kinds, stack, pc)
                if next_kinds:
                    stack.append((pc + 1, mode, next_kinds))
        return result, len(visited)

    def _pass(
        self, anchor: str, last: int, mode: int, next_kinds: int, stack: list[tuple[int, int, int]], pc: int
    ) -> tuple[int, int]:
        """Return the mode and the possible next kinds after an anchor; no kinds if the anchor cannot hold."""
        if anchor == "begin":
            return mode, next_kinds if last == BEGIN else 0
        if anchor == "line_begin":
            return mode, next_kinds if last in (BEGIN, LINE) else 0
        if anchor == "end":
            return mode, next_kinds & END
        if anchor == "last_line_end" and mode == FREE and next_kinds & LINE:
            stack.append((pc + 1, TAIL, LINE))
            return mode, next_kinds & END
        return mode, next_kinds & (END | LINE)


def sum_bits(values: list[int], bits: int) -> int:
    """Return the union of the values at the positions of the set bits."""
    result = 0
    for index, value in enumerate(values):
        if bits >> index & 1:
            result |= value
    return result
