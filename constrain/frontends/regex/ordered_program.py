"""Compile the tree of a pattern to an ordered program, whose first thread is the match a backtracking matcher prefers.

Alternatives are tried in written order, repetitions as often (lazy ones: as seldom) as possible. A lookbehind queries
the kinds of the last characters, so sets are split by kind if some lookbehind needs it; word boundaries and anchors are
lookarounds as well. Repetitions are unrolled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Union

from ...automata.thread_steps import BehindStep, DoneStep, EnterStep, LeaveStep, LookStep as Ahead, ReadStep, Step
from ...automata.utf8 import Utf8
from ...base.errors import LimitError, UnsupportedError
from .charset import CharSet, charset_of, contains_point, intersect_charsets, partition_charsets
from .lookaround_threads import MOST_LOOKS, anchor_lookarounds
from .regex_program import expanded_length
from .regex_tree import Alternation, Anchor, Concatenation, Lookaround, OneOf, Repetition, Term, walk_terms

__all__ = ["write_ordered"]

ANCHORS = anchor_lookarounds(charset_of(0x0A))
MOST_OPTIONS = 256
"""Most texts, as sequences of character kinds, of one lookbehind."""


@dataclass(frozen=True, slots=True)
class _LoopBegin:
    """Start of a loop body that can match the empty text."""

    number: int


@dataclass(frozen=True, slots=True)
class _LoopEnd:
    """End of such a loop body, with the labels of the next round and of the exit."""

    number: int
    again: int
    out: int


@dataclass(frozen=True, slots=True)
class _Jump:
    """Jump to one of the labels, in order of preference."""

    labels: tuple[int, ...]


_Task = Union[Term, _Jump, _LoopBegin, _LoopEnd, DoneStep, int]
"""Work item of the compiler: a term, a jump, or the definition of a label."""


@dataclass(slots=True)
class _CharacterKinds:
    """The classes of characters that the lookbehinds of a pattern distinguish."""

    sets: list[CharSet] = field(default_factory=list)

    def of(self, charset: CharSet) -> int:
        """Return the kinds whose union a set is, as bits."""
        return sum(1 << kind for kind, part in enumerate(self.sets) if contains_point(charset, part[0]))


def write_ordered(term: Term, code: list[Step], utf8: Utf8, *, terminal: int, max_places: int) -> int:
    """Append the program of a tree that was parsed with `ordered`; return its place.

    Parameters
    ----------
    term : Term
    code : list of Step
        The code that is extended.
    utf8 : Utf8
        Encodings of the character sets.
    terminal : int
        Number in the final step.
    max_places : int
        Most steps.

    Returns
    -------
    int

    Raises
    ------
    UnsupportedError
        If a lookbehind is other than a set of texts of one length without assertions.
    LimitError
        If the program has more than `max_places` steps.
    """
    if expanded_length(term) > max_places:
        raise _too_long(max_places)
    return _OrderedCompiler(term, code, utf8, max_places).write(term, terminal, 0)


class _OrderedCompiler:
    def __init__(self, term: Term, code: list[Step], utf8: Utf8, max_places: int) -> None:
        self.code = code
        self.utf8 = utf8
        self.most = len(code) + max_places
        self.kinds = _kinds(term)
        self.loops = 0

    def write(self, term: Term, terminal: int, depth: int) -> int:
        """Append the program of a term, followed by those of its lookaheads; return its place."""
        telling = bool(self.kinds.sets) and any(map(_asks_behind, walk_terms(term)))
        if depth > MOST_LOOKS:
            raise LimitError(f"looks are nested deeper than {MOST_LOOKS}", hint="Write the inner ones side by side.")
        code, start = self.code, len(self.code)
        labels: list[int] = []
        work: list[_Task] = [DoneStep(terminal), term]
        jumps: list[tuple[int, _Jump | _LoopEnd]] = []
        looks: list[tuple[int, Lookaround]] = []
        while work:
            task = work.pop()
            if isinstance(task, int):
                labels[task] = len(code)
            elif isinstance(task, _Kinded):
                code.append(ReadStep(self.utf8.root(task.charset), task.kind))
            elif isinstance(task, OneOf):
                if telling:
                    work.extend(reversed(self._by_kind(task.charset, labels)))
                else:
                    code.append(ReadStep(self.utf8.root(task.charset)))
            elif isinstance(task, (_Jump, _LoopEnd)):
                jumps.append((len(code), task))
                code.append(())
            elif isinstance(task, _LoopBegin):
                code.append(EnterStep(task.number))
            elif isinstance(task, DoneStep):
                code.append(task)
            elif isinstance(task, Concatenation):
                work.extend(reversed(task.parts))
            elif isinstance(task, Alternation):
                work.extend(reversed(_branches(task.options, labels)))
            elif isinstance(task, Repetition):
                work.extend(reversed(self._copies(task, labels)))
            else:
                look = _as_look(task)
                assert look is not None
                if look.direction == "ahead":
                    looks.append((len(code), look))
                    code.append(())
                else:
                    code.append(self._behind(look))
            if len(code) > self.most:
                raise _too_long(self.most)
        for place, jump in jumps:
            if isinstance(jump, _Jump):
                code[place] = tuple([labels[label] for label in jump.labels])
            else:
                code[place] = LeaveStep(jump.number, labels[jump.again], labels[jump.out])
        for place, look in looks:
            code[place] = Ahead(self.write(look.term, -1, depth + 1), look.negated)
        return start

    def _by_kind(self, charset: CharSet, labels: list[int]) -> list[_Task]:
        """Return a set split by the kinds of its characters; they are disjoint, so the order does not matter."""
        parts = [(kind, intersect_charsets(charset, part)) for kind, part in enumerate(self.kinds.sets)]
        return _branches([_Kinded(part, kind) for kind, part in parts if part] or [_Kinded((), 0)], labels)

    def _copies(self, term: Repetition, labels: list[int]) -> list[_Task]:
        """Return the tasks of a repetition: its copies one after the other, optional ones each with an exit."""
        inner, tasks, out = term.term, [term.term] * term.low, _label(labels)
        result: list[_Task] = list(tasks)
        idle = _may_be_empty(inner)

        def way(body: int) -> _Jump:
            return _Jump((out, body) if term.lazy else (body, out))

        if term.high is None:
            again, body = _label(labels), _label(labels)
            if term.low and not idle:
                return [*tasks[:-1], body, inner, way(body), out]
            loop = self._loop() if idle else None
            end: list[_Task] = [_LoopEnd(loop.number, again, out)] if loop else [_Jump((again,))]
            return [*result, again, way(body), body, *([loop] if loop else []), inner, *end, out]
        for _ in range(term.high - term.low):
            body, after = _label(labels), _label(labels)
            result += [way(body), body]
            if idle:
                loop = self._loop()
                result += [loop, inner, _LoopEnd(loop.number, after, out)]
            else:
                result.append(inner)
            result.append(after)
        return [*result, out]

    def _loop(self) -> _LoopBegin:
        self.loops += 1
        return _LoopBegin(self.loops)

    def _behind(self, look: Lookaround) -> BehindStep:
        """Return the step of a lookbehind."""
        texts = _texts_behind(look.term)
        if texts is None or len({len(text) for text in texts}) != 1:
            raise UnsupportedError(
                "a look-behind for other than texts of one length without conditions is not supported",
                hint="Write it as a choice between sequences of characters and classes.",
            )
        options = tuple(tuple(self.kinds.of(charset) for charset in text) for text in texts)
        return BehindStep(options, len(texts[0]), look.negated)


@dataclass(frozen=True, slots=True)
class _Kinded(OneOf):
    """One character of a set whose characters are all of one kind."""

    kind: int


def _branches(options: list[OneOf] | tuple[Term, ...] | list[_Kinded], labels: list[int]) -> list[_Task]:
    """Return the tasks of alternatives, in their order."""
    if len(options) == 1:
        return [options[0]]
    end = _label(labels)
    starts = [_label(labels) for _ in options]
    tasks: list[_Task] = [_Jump(tuple(starts))]
    for start, option in zip(starts, options):
        tasks += [start, option, _Jump((end,))]
    tasks[-1] = end  # The last option runs into the end.
    return tasks


def _label(labels: list[int]) -> int:
    labels.append(-1)
    return len(labels) - 1


def _kinds(term: Term) -> _CharacterKinds:
    """Return the character kinds that the lookbehinds of a tree distinguish."""
    sets: list[CharSet] = []
    for item in walk_terms(term):
        look = _as_look(item)
        if look and look.direction == "behind":
            sets += [charset for text in _texts_behind(look.term) or () for charset in text]
    if not sets:
        return _CharacterKinds()
    bounds, classes, _ = partition_charsets([*sets, (0, 0x110000)])
    parts: dict[int, list[int]] = {}
    for low, high, number in zip(bounds, [*bounds[1:], 0x110000], classes):
        parts.setdefault(number, []).extend((low, high))
    # Surrogates form a class of their own; no text contains them.
    return _CharacterKinds([tuple(part) for part in parts.values() if part[0] != 0xD800])


def _as_look(term: Term) -> Lookaround | None:
    """Return an anchor or a lookaround as a lookaround; None for any other term."""
    look = ANCHORS[term.kind] if isinstance(term, Anchor) else term
    return look if isinstance(look, Lookaround) else None


def _asks_behind(term: Term) -> bool:
    look = _as_look(term)
    return look is not None and look.direction == "behind"


def _texts_behind(term: Term) -> list[tuple[CharSet, ...]] | None:
    """Return the texts of a lookbehind as sequences of character sets, or None if it is not a finite union of these."""
    made: dict[int, list[tuple[CharSet, ...]] | None] = {}
    for item in reversed(list(walk_terms(term))):
        found: list[tuple[CharSet, ...]] | None = None
        if isinstance(item, OneOf):
            found = [(item.charset,)]
        elif isinstance(item, Concatenation):
            found = _joined([made[id(part)] for part in item.parts])
        elif isinstance(item, Alternation):
            options = [made[id(option)] for option in item.options]
            found = None if None in options else [text for option in options for text in option or ()]
        elif isinstance(item, Repetition) and item.low == item.high and item.low <= MOST_OPTIONS:
            found = _joined([made[id(item.term)]] * item.low)
        made[id(item)] = found if found is not None and len(found) <= MOST_OPTIONS else None
    return made[id(term)]


def _joined(parts: list[list[tuple[CharSet, ...]] | None]) -> list[tuple[CharSet, ...]] | None:
    """Return all concatenations of one text of each list, or None if there are more than `MOST_OPTIONS`."""
    found: list[tuple[CharSet, ...]] = [()]
    for part in parts:
        if part is None or len(found) * len(part) > MOST_OPTIONS:
            return None
        found = [first + second for first, second in product(found, part)]
    return found


def _may_be_empty(term: Term) -> bool:
    """Return whether a term can match the empty text."""
    made: dict[int, bool] = {}
    for item in reversed(list(walk_terms(term))):
        if isinstance(item, Concatenation):
            made[id(item)] = all(made[id(part)] for part in item.parts)
        elif isinstance(item, Alternation):
            made[id(item)] = any(made[id(option)] for option in item.options)
        elif isinstance(item, Repetition):
            made[id(item)] = item.low == 0 or made[id(item.term)]
        else:
            made[id(item)] = not isinstance(item, OneOf)
    return made[id(term)]


def _too_long(max_places: int) -> LimitError:
    return LimitError(
        f"the terminals, with their repetitions written out, have more than {max_places} characters",
        hint="Repeat less, or raise Limits.dfa_states.",
    )
