"""Compile the tree of a regular expression to a program of reads, jumps and assertions, with repetitions unrolled."""

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
"""One instruction of a program.

An int reads one character of sets[number] and continues at the next instruction; a tuple continues at each of its
addresses; an AnchorKind or a Lookaround continues at the next instruction where it holds; MATCH is the last one.
"""

Search = Literal["full", "search", "ahead", "behind"]
"""Where any text may surround a match: nowhere, on both sides, after it, before it."""

_Task = Union[Term, tuple[int, ...], int]
"""Work item of the compiler: a term, a jump to labels, or the definition of a label."""


@dataclass(frozen=True, slots=True)
class RegexProgram:
    """A compiled pattern; execution starts at address 0.

    Attributes
    ----------
    code : list of Instruction
    sets : list of CharSet
    rest_pc : int
        Address of the instruction that reads any text after a match, or -1 if none may follow.
    chains : list of (list of int, int)
        For each repetition with an upper bound and at least two such copies: the addresses where its copies begin, from
        the first one that need not be followed by another, and the length of a copy. A suffix of the text that is
        accepted after one of these copies is also accepted after each earlier one.
    """

    code: list[Instruction]
    sets: list[CharSet]
    rest_pc: int
    chains: list[tuple[list[int], int]]

    def anchors(self) -> set[str]:
        """Return the kinds of anchors in the program."""
        return {step for step in self.code if isinstance(step, str)} - {MATCH}


def compile_program(term: Term, *, search: Search, max_positions: int) -> RegexProgram:
    """Return the program of a tree; raise LimitError if it has more than `max_positions` instructions."""
    if expanded_length(term) > max_positions:
        raise _too_long(max_positions)
    anything = Repetition(OneOf(ALL), 0, None)
    # A stack, so in reverse order. No prefix is needed if the pattern only matches at the start.
    stack: list[_Task] = [anything, term] if search in ("search", "ahead") else [term]
    if search in ("search", "behind") and not _only_at_begin(term):
        stack.append(anything)
    code: list[Instruction] = []
    sets: dict[CharSet, int] = {}
    addresses: list[int] = []
    chains: list[list[int]] = []
    while stack:
        task = stack.pop()
        if isinstance(task, OneOf):  # as most
            code.append(sets.setdefault(task.charset, len(sets)))
        elif isinstance(task, int):
            addresses[task] = len(code)
        elif isinstance(task, tuple):
            code.append(task)
        elif isinstance(task, Anchor):
            code.append(task.kind)
        elif isinstance(task, Lookaround):
            code.append(task)
        elif isinstance(task, Concatenation):
            stack.extend(reversed(task.parts))
        elif isinstance(task, Alternation):
            stack.extend(reversed(_branches(task, addresses)))
        else:
            stack.extend(reversed(_copies(task, addresses, chains)))
        if len(code) > max_positions:
            raise _too_long(max_positions)
    spend_work(2 * len(code), "a pattern")
    code = [tuple([addresses[label] for label in step]) if isinstance(step, tuple) else step for step in code]
    # The length of a copy is the distance between the starts of two copies, minus the split between them.
    steps = [
        ([addresses[label] for label in labels], addresses[labels[-1]] - addresses[labels[-2]] - 1) for labels in chains
    ]
    # `anything` ends in: split, read, jump back.
    return RegexProgram([*code, MATCH], list(sets), len(code) - 2 if search in ("search", "ahead") else -1, steps)


def expanded_length(term: Term) -> int:
    """Return the number of characters of a tree with its repetitions unrolled, without the terms of lookarounds."""
    total = 0
    work = [(term, 1)]
    while work:
        item, times = work.pop()
        if item.__class__ is OneOf:  # as most
            total += times
        elif isinstance(item, Repetition):
            work.append((item.term, times * max(item.low, item.high or 0, 1)))
        elif isinstance(item, (OneOf, Anchor, Lookaround)):
            total += times
        else:
            total += times if isinstance(item, Alternation) else 0  # So that empty options are not free.
            work += [(part, times) for part in subterms(item)]
    return total


def _branches(term: Alternation, addresses: list[int]) -> list[_Task]:
    """Return the tasks of an alternation."""
    end = _new_label(addresses)
    starts = [_new_label(addresses) for _ in term.options]
    tasks: list[_Task] = [tuple(starts)]
    for start, option in zip(starts, term.options):
        tasks += [start, option, (end,)]
    tasks[-1] = end  # The last option runs into the end.
    return tasks


def _copies(term: Repetition, addresses: list[int], chains: list[list[int]]) -> list[_Task]:
    """Return the tasks of a repetition: its copies one after the other, optional ones each with an exit."""
    out, inner = _new_label(addresses), term.term
    if term.high is None:
        loop = _new_label(addresses)
        if term.low:
            return [*[inner] * (term.low - 1), loop, inner, (loop, out), out]
        body = _new_label(addresses)
        return [loop, (body, out), body, inner, (loop,), out]
    tasks: list[_Task] = [inner] * term.low
    labels: list[int] = []
    if term.low:
        labels.append(_new_label(addresses))
        tasks.insert(-1, labels[0])
    for _ in range(term.high - term.low):
        labels.append(_new_label(addresses))
        tasks += [(labels[-1], out), labels[-1], inner]
    if len(labels) > 1:
        chains.append(labels)
    return [*tasks, out]


def _new_label(addresses: list[int]) -> int:
    addresses.append(-1)
    return len(addresses) - 1


def _only_at_begin(term: Term) -> bool:
    """Return whether the term can only match at the start of the text. False may be wrong; it only costs time."""
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
