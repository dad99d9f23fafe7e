"""From the tree of a regular expression to a program: characters, jumps, assertions, a match; repetitions unrolled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Union

from ...base.errors import LimitError
from ...base.work import spend_work
from .charset import ALL, CharSet
from .regex_tree import Alternation, Anchor, AnchorKind, Concatenation, Lookaround, OneOf, Repetition, Term, subterms

__all__ = ["MATCH", "Instruction", "RegexProgram", "Search", "compile_program", "expanded_length"]

MATCH = "match"
Instruction = Union[int, tuple[int, ...], str, Lookaround]
"""A number reads one character of sets[number] and goes on with the next instruction; a tuple goes on at each of its
places; an AnchorKind or a Look goes on with the next one where it holds; MATCH is the last instruction."""

Search = Literal["full", "search", "ahead", "behind"]
"""Where any text may stand beside a match: nowhere, on both sides, after it, before it."""

_Task = Union[Term, tuple[int, ...], int]
"""What is still to be written: a term, a jump to labels, or the place of a label."""


@dataclass(frozen=True, slots=True)
class RegexProgram:
    """code starts at 0. rest: place of the instruction that reads any text after a match, or -1 if none may follow.

    ladders: for each repetition with an upper bound the places where its copies begin, from the first one that need
    not be followed by another (what may be left after a copy, may also be left after each one before it), and their
    length. Only those with at least two copies.
    """

    code: list[Instruction]
    sets: list[CharSet]
    rest: int
    ladders: list[tuple[list[int], int]]

    def anchors(self) -> set[str]:
        """The kinds of anchors in it."""
        return {step for step in self.code if isinstance(step, str)} - {MATCH}


def compile_program(term: Term, *, search: Search, max_positions: int) -> RegexProgram:
    """The program of a tree. LimitError if it gets too long."""
    if expanded_length(term) > max_positions:
        raise _too_long(max_positions)
    anything = Repetition(OneOf(ALL), 0, None)
    # Last first. Where the pattern only matches at the start, nothing may stand in front of it.
    work: list[_Task] = [anything, term] if search in ("search", "ahead") else [term]
    if search in ("search", "behind") and not _only_at_begin(term):
        work.append(anything)
    code: list[Instruction] = []
    sets: dict[CharSet, int] = {}
    places: list[int] = []
    ladders: list[list[int]] = []
    while work:
        task = work.pop()
        if isinstance(task, int):
            places[task] = len(code)
        elif isinstance(task, tuple):
            code.append(task)
        elif isinstance(task, OneOf):
            code.append(sets.setdefault(task.charset, len(sets)))
        elif isinstance(task, Anchor):
            code.append(task.kind)
        elif isinstance(task, Lookaround):
            code.append(task)
        elif isinstance(task, Concatenation):
            work.extend(reversed(task.parts))
        elif isinstance(task, Alternation):
            work.extend(reversed(_branches(task, places)))
        else:
            work.extend(reversed(_copies(task, places, ladders)))
        if len(code) > max_positions:
            raise _too_long(max_positions)
    spend_work(2 * len(code), "a pattern")
    code = [tuple([places[label] for label in step]) if isinstance(step, tuple) else step for step in code]
    # A copy is as long as from its beginning to that of the next one, but for the split in between.
    steps = [([places[label] for label in labels], places[labels[-1]] - places[labels[-2]] - 1) for labels in ladders]
    # `anything` ends in: split, read, jump back.
    return RegexProgram([*code, MATCH], list(sets), len(code) - 2 if search in ("search", "ahead") else -1, steps)


def expanded_length(term: Term) -> int:
    """Characters of a tree, without what it looks around for, once its repetitions are written out."""
    total = 0
    work = [(term, 1)]
    while work:
        item, times = work.pop()
        if isinstance(item, Repetition):
            work.append((item.term, times * max(item.low, item.high or 0, 1)))
        elif isinstance(item, (OneOf, Anchor, Lookaround)):
            total += times
        else:
            total += times if isinstance(item, Alternation) else 0  # Of nothing, it would count for nothing.
            work.extend((part, times) for part in subterms(item))
    return total


def _branches(term: Alternation, places: list[int]) -> list[_Task]:
    """Tasks of alternatives."""
    end = _label(places)
    starts = [_label(places) for _ in term.options]
    tasks: list[_Task] = [tuple(starts)]
    for start, option in zip(starts, term.options):
        tasks += [start, option, (end,)]
    tasks[-1] = end  # The last option runs into the end.
    return tasks


def _copies(term: Repetition, places: list[int], ladders: list[list[int]]) -> list[_Task]:
    """Tasks of a repetition: its copies one after the other, optional ones each with a way out."""
    out, inner = _label(places), term.term
    if term.high is None:
        loop = _label(places)
        if term.low:
            return [*[inner] * (term.low - 1), loop, inner, (loop, out), out]
        body = _label(places)
        return [loop, (body, out), body, inner, (loop,), out]
    tasks: list[_Task] = [inner] * term.low
    labels: list[int] = []
    if term.low:
        labels.append(_label(places))
        tasks.insert(-1, labels[0])
    for _ in range(term.high - term.low):
        labels.append(_label(places))
        tasks += [(labels[-1], out), labels[-1], inner]
    if len(labels) > 1:
        ladders.append(labels)
    return [*tasks, out]


def _label(places: list[int]) -> int:
    places.append(-1)
    return len(places) - 1


def _only_at_begin(term: Term) -> bool:
    """Whether the term can only match at the start of the text. (False may be wrong and only costs time.)"""
    work = [term]
    while work:
        item = work.pop()
        if isinstance(item, Concatenation) and item.parts:
            work.append(item.parts[0])
        elif isinstance(item, Alternation):
            work.extend(item.options)
        elif isinstance(item, Repetition) and item.low > 0:
            work.append(item.term)
        elif not (isinstance(item, Anchor) and item.kind == _BEGIN):
            return False
    return True


_BEGIN: AnchorKind = "begin"


def _too_long(max_positions: int) -> LimitError:
    return LimitError(
        f"the pattern, with its repetitions written out, has more than {max_positions} characters (max_states)",
        hint="Repeat less, or raise Limits.dfa_states.",
    )
