"""From a program to sets of items: the automaton of a pattern before it is determinised, with anchors made exact.

An *item* is a character instruction that may read next, with what the anchors on the way to it demand of the
character. A set of items is an int, one bit for each. `Items.after(item)` are those that may read once that item
has read. Anchors are thereby exact wherever they stand, also in stars and alternatives:

- `^` looks back. What was read last (nothing yet, a line terminator, another character) is known, because an item
  says whether the character that it reads is a line terminator.
- `$` looks ahead: what follows is an item that reads a line terminator, or none, and the text ends.
- `$` of Python before a last "\\n" demands that exactly this is left. Its items have the mode TAIL: they read "\\n"
  and lead to the mode DONE, in which nothing reads any more.

Patterns that look around are for `threads`, where anything may be demanded of what is left and of what was read.
"""

from __future__ import annotations

from ...base.work import spend_work
from .charset import CharSet, partition_charsets
from .regex_program import MATCH, RegexProgram

__all__ = ["ACCEPT", "PositionItems"]

ACCEPT = 1
"""The bit of a set that says: the text may end here."""

PATTERN = "a pattern"
"""What work is spent on."""

FREE, TAIL, DONE = 0, 1, 2
"""Modes: what is left of the text is anything; exactly one newline; nothing."""

OTHER, LINE, END, BEGIN = 1, 2, 4, 8
"""What stands beside a place between two characters: another character, a line terminator, the end, the beginning."""

LINE_ANCHORS = {"line_begin", "line_end", "last_line_end"}


class PositionItems:
    """The items of a program.

    bounds, classes: ranges of code points that all items treat alike, and their classes (see Dfa).
    readers: for each class, the items that may read it.
    start: the items that may read first. everything: the items that, together, take any text from here on, or 0.
    work: steps taken so far to find all that.
    """

    def __init__(self, program: RegexProgram, newline: CharSet) -> None:
        anchors = program.anchors()
        self.code = program.code
        # Two kinds of items, for OTHER and for LINE, only if some anchor tells them apart; likewise two modes.
        self.kinds = 2 if anchors & LINE_ANCHORS else 1
        self.modes = 2 if "last_line_end" in anchors else 1
        self.width = self.kinds * self.modes
        self.places = [place for place, step in enumerate(self.code) if isinstance(step, int)]
        self.numbers = {place: number for number, place in enumerate(self.places)}
        self.any_kind = OTHER | LINE if self.kinds == 2 else OTHER
        self._after: dict[int, int] = {}
        self.work = 0
        self.bounds, self.classes, members = partition_charsets(program.sets + ([newline] if self.kinds == 2 else []))
        spend_work(1 + len(members) * len(program.sets) // 16, PATTERN)
        self.readers = self._readers(members, len(program.sets))
        self.start = self._reach(0, BEGIN, FREE)
        # Most items are followed by the next one, plainly: these are stepped all at once. One bit for their kinds.
        self.plain = sum(
            1 << 1 + number * self.width
            for number, place in enumerate(self.places)
            if isinstance(self.code[place + 1], int)
        )
        self.everything = 0
        if program.rest >= 0:
            first = 1 + self.numbers[program.rest] * self.width
            self.everything = sum(1 << first + kind for kind in range(self.kinds))

    def _readers(self, members: list[int], newline: int) -> list[int]:
        """For each class, given the sets that it is in as bits, the items that may read it."""
        by_set = [0] * newline
        free = sum(1 << mode * self.kinds for mode in range(self.modes))
        for number, place in enumerate(self.places):
            step = self.code[place]
            assert isinstance(step, int)
            by_set[step] |= free << (1 + number * self.width)
        readers = []
        for bits in members:
            # The item of kind LINE is the one after that of kind OTHER.
            shift = bits >> newline & 1
            readers.append(sum_bits(by_set, bits) << shift)
        return readers

    def after_plain(self, items: int) -> tuple[int, int]:
        """The items that may read once a plain one of these has read, and those of these that are not plain."""
        plain = items & self.plain * self.any_kind
        first = (plain | plain >> 1) & self.plain if self.kinds == 2 else plain
        return first * self.any_kind << self.width, items ^ plain

    def after(self, item: int) -> int:
        """The items that may read once this one (a bit position) has read."""
        found = self._after.get(item)
        if found is None:
            number, rest = divmod(item - 1, self.width)
            mode, kind = divmod(rest, self.kinds)
            place = self.places[number] + 1
            found = self._after[item] = self._reach(place, LINE if kind else OTHER, DONE if mode == TAIL else FREE)
        return found

    def _reach(self, place: int, last: int, mode: int) -> int:
        """The items that may read at this place of the code, when `last` was read; with ACCEPT if the text may end."""
        code, numbers, width = self.code, self.numbers, self.width
        work = [(place, mode, END if mode == DONE else END | self.any_kind)]
        seen: dict[tuple[int, int], int] = {}
        result = 0
        while work:
            place, mode, ahead = work.pop()
            known = seen.get((place, mode), 0)
            if not ahead & ~known:
                continue
            seen[place, mode] = known | ahead
            step = code[place]
            if isinstance(step, tuple):
                work += [(target, mode, ahead) for target in step]
            elif isinstance(step, int):
                # OTHER is bit 0 and LINE bit 1, as the items lie.
                result |= (ahead & self.any_kind) << (1 + numbers[place] * width + mode * self.kinds)
            elif step == MATCH:
                result |= ACCEPT if ahead & END else 0
            else:
                assert isinstance(step, str), "looks are for `threads`"
                mode, ahead = self._pass(step, last, mode, ahead, work, place)
                if ahead:
                    work.append((place + 1, mode, ahead))
        self.work += len(seen)
        spend_work(1 + len(seen), PATTERN)
        return result

    def _pass(
        self, anchor: str, last: int, mode: int, ahead: int, work: list[tuple[int, int, int]], place: int
    ) -> tuple[int, int]:
        """Mode and what may be ahead after an anchor; nothing if it does not hold."""
        if anchor == "begin":
            return mode, ahead if last == BEGIN else 0
        if anchor == "line_begin":
            return mode, ahead if last in (BEGIN, LINE) else 0
        if anchor == "end":
            return mode, ahead & END
        if anchor == "last_line_end" and mode == FREE and ahead & LINE:
            work.append((place + 1, TAIL, LINE))
            return mode, ahead & END
        return mode, ahead & (END | LINE)


def sum_bits(values: list[int], bits: int) -> int:
    """The values at the positions of these bits, united."""
    result = 0
    for index, value in enumerate(values):
        if bits >> index & 1:
            result |= value
    return result
