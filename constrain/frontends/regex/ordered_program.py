"""Compile the tree of a pattern to an ordered program, whose first thread is the match a backtracking matcher prefers.

Alternatives are tried in written order; greedy repetitions try another round first, lazy ones last. A lookbehind
queries the kinds of the last characters, so sets are split by kind if some lookbehind needs it; word boundaries and
anchors are lookarounds as well. Repetitions are unrolled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Union

from ...automata.thread_steps import BehindStep, DoneStep, EnterStep, LeaveStep, LookStep, ReadStep, Step
from ...automata.utf8 import Utf8
from ...base.errors import LimitError, UnsupportedError
from .charset import CharSet, charset_of, contains_point, intersect_charsets, partition_charsets
from .lookaround_threads import MOST_NESTED_LOOKAROUNDS, anchor_lookarounds
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


def write_ordered(term: Term, code: list[Step], utf8: Utf8, *, terminal: int, max_steps: int) -> int:
    """Append the program of a tree that was parsed with `ordered`; return its address.

    Parameters
    ----------
    term : Term
    code : list of Step
        The code that is extended.
    utf8 : Utf8
        Encodings of the character sets.
    terminal : int
        Number in the final step.
    max_steps : int
        Most steps.

    Returns
    -------
    int

    Raises
    ------
    UnsupportedError
        If a lookbehind is other than a set of texts of one length without assertions.
    LimitError
        If the program has more than `max_steps` steps.
    """
    if expanded_length(term) > max_steps:
        raise _too_long(max_steps)
    return _OrderedCompiler(term, code, utf8, max_steps).write(term, terminal, 0)


class _OrderedCompiler:
    def __init__(self, term: Term, code: list[Step], utf8: Utf8, max_steps: int) -> None:
        self.code = code
        self.utf8 = utf8
        self.max_length = len(code) + max_steps
        self.kinds = _kinds(term)
        self.loops = 0

    def write(self, term: Term, terminal: int, depth: int) -> int:
        """Append the program of a term, followed by those of its lookaheads; return its address."""
        needs_kinds = bool(self.kinds.sets) and any(map(_is_lookbehind, walk_terms(term)))
        if depth > MOST_NESTED_LOOKAROUNDS:
            raise LimitError(
                f"lookarounds are nested deeper than {MOST_NESTED_LOOKAROUNDS}",
                hint="Write the inner ones side by side.",
            )
        code, start = self.code, len(self.code)
        labels: list[int] = []
        work: list[_Task] = [DoneStep(terminal), term]
        jumps: list[tuple[int, _Jump | _LoopEnd]] = []
        lookaheads: list[tuple[int, Lookaround]] = []
        while work:
            task = work.pop()
            if isinstance(task, int):
                labels[task] = len(code)
            elif isinstance(task, _CharacterOfKind):
                code.append(ReadStep(self.utf8.root(task.charset), task.kind))
            elif isinstance(task, OneOf):
                if needs_kinds:
                    work.extend(reversed(self._split_by_kind(task.charset, labels)))
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
                look = _as_lookaround(task)
                assert look is not None
                if look.direction == "ahead":
                    lookaheads.append((len(code), look))
                    code.append(())
                else:
                    code.append(self._compile_lookbehind(look))
            if len(code) > self.max_length:
                raise _too_long(self.max_length)
        for pc, jump in jumps:
            if isinstance(jump, _Jump):
                code[pc] = tuple([labels[label] for label in jump.labels])
            else:
                code[pc] = LeaveStep(jump.number, labels[jump.again], labels[jump.out])
        for pc, look in lookaheads:
            code[pc] = LookStep(self.write(look.term, -1, depth + 1), look.negated)
        return start

    def _split_by_kind(self, charset: CharSet, labels: list[int]) -> list[_Task]:
        """Return a set split by the kinds of its characters; they are disjoint, so the order does not matter."""
        parts = [(kind, intersect_charsets(charset, part)) for kind, part in enumerate(self.kinds.sets)]
        return _branches(
            [_CharacterOfKind(part, kind) for kind, part in parts if part] or [_CharacterOfKind((), 0)], labels
        )

    def _copies(self, term: Repetition, labels: list[int]) -> list[_Task]:
        """Return the tasks of a repetition: its copies one after the other, optional ones each with an exit."""
        inner, tasks, out = term.term, [term.term] * term.low, _new_label(labels)
        result: list[_Task] = list(tasks)
        may_be_empty = _may_be_empty(inner)

        def jump(body: int) -> _Jump:
            return _Jump((out, body) if term.lazy else (body, out))

        if term.high is None:
            next_round, body = _new_label(labels), _new_label(labels)
            if term.low and not may_be_empty:
                return [*tasks[:-1], body, inner, jump(body), out]
            loop = self._begin_loop() if may_be_empty else None
            exit_tasks: list[_Task] = [_LoopEnd(loop.number, next_round, out)] if loop else [_Jump((next_round,))]
            return [*result, next_round, jump(body), body, *([loop] if loop else []), inner, *exit_tasks, out]
        for _ in range(term.high - term.low):
            body, after = _new_label(labels), _new_label(labels)
            result += [jump(body), body]
            if may_be_empty:
                loop = self._begin_loop()
                result += [loop, inner, _LoopEnd(loop.number, after, out)]
            else:
                result.append(inner)
            result.append(after)
        return [*result, out]

    def _begin_loop(self) -> _LoopBegin:
        self.loops += 1
        return _LoopBegin(self.loops)

    def _compile_lookbehind(self, look: Lookaround) -> BehindStep:
        """Return the step of a lookbehind."""
        texts = _list_lookbehind_texts(look.term)
        if texts is None or len({len(text) for text in texts}) != 1:
            raise UnsupportedError(
                "a lookbehind for texts of several lengths, or with assertions, is not supported",
                hint="Write it as a choice between sequences of characters and classes.",
            )
        options = tuple(tuple(self.kinds.of(charset) for charset in text) for text in texts)
        return BehindStep(options, len(texts[0]), look.negated)


@dataclass(frozen=True, slots=True)
class _CharacterOfKind(OneOf):
    """One character of a set whose characters are all of one kind."""

    kind: int


def _branches(options: list[OneOf] | tuple[Term, ...] | list[_CharacterOfKind], labels: list[int]) -> list[_Task]:
    """Return the tasks of alternatives, in their order."""
    if len(options) == 1:
        return [options[0]]
    end = _new_label(labels)
    starts = [_new_label(labels) for _ in options]
    tasks: list[_Task] = [_Jump(tuple(starts))]
    for start, option in zip(starts, options):
        tasks += [start, option, _Jump((end,))]
    tasks[-1] = end  # The last option runs into the end.
    return tasks


def _new_label(labels: list[int]) -> int:
    labels.append(-1)
    return len(labels) - 1


def _kinds(term: Term) -> _CharacterKinds:
    """Return the character kinds that the lookbehinds of a tree distinguish."""
    sets: list[CharSet] = []
    for item in walk_terms(term):
        lookaround = _as_lookaround(item)
        if lookaround and lookaround.direction == "behind":
            sets += [charset for text in _list_lookbehind_texts(lookaround.term) or () for charset in text]
    if not sets:
        return _CharacterKinds()
    bounds, classes, _ = partition_charsets([*sets, (0, 0x110000)])
    parts: dict[int, list[int]] = {}
    for low, high, number in zip(bounds, [*bounds[1:], 0x110000], classes):
        parts.setdefault(number, []).extend((low, high))
    # Surrogates form a class of their own; no text contains them.
    return _CharacterKinds([tuple(part) for part in parts.values() if part[0] != 0xD800])


def _as_lookaround(term: Term) -> Lookaround | None:
    """Return an anchor or a lookaround as a lookaround; None for any other term."""
    lookaround = ANCHORS[term.kind] if isinstance(term, Anchor) else term
    return lookaround if isinstance(lookaround, Lookaround) else None


def _is_lookbehind(term: Term) -> bool:
    lookaround = _as_lookaround(term)
    return lookaround is not None and lookaround.direction == "behind"


def _list_lookbehind_texts(term: Term) -> list[tuple[CharSet, ...]] | None:
    """Return the texts of a lookbehind as sequences of character sets, or None if it is not a finite union of these."""
    made: dict[int, list[tuple[CharSet, ...]] | None] = {}
    for item in reversed(list(walk_terms(term))):
        texts: list[tuple[CharSet, ...]] | None = None
        if isinstance(item, OneOf):
            texts = [(item.charset,)]
        elif isinstance(item, Concatenation):
            texts = _concatenate_texts([made[id(part)] for part in item.parts])
        elif isinstance(item, Alternation):
            options = [made[id(option)] for option in item.options]
            texts = None if None in options else [text for option in options for text in option or ()]
        elif isinstance(item, Repetition) and item.low == item.high and item.low <= MOST_OPTIONS:
            texts = _concatenate_texts([made[id(item.term)]] * item.low)
        made[id(item)] = texts if texts is not None and len(texts) <= MOST_OPTIONS else None
    return made[id(term)]


def _concatenate_texts(parts: list[list[tuple[CharSet, ...]] | None]) -> list[tuple[CharSet, ...]] | None:
    """Return all concatenations of one text of each list, or None if there are more than `MOST_OPTIONS`."""
    texts: list[tuple[CharSet, ...]] = [()]
    for part in parts:
        if part is None or len(texts) * len(part) > MOST_OPTIONS:
            return None
        texts = [first + second for first, second in product(texts, part)]
    return texts


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


def _too_long(max_steps: int) -> LimitError:
    return LimitError(
        f"the terminals, with their repetitions written out, have more than {max_steps} characters",
        hint="Repeat less, or raise Limits.dfa_states.",
    )
