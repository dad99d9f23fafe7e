"""Find the captures of a finished text: depth-first search through the configurations of a capture program.

A configuration is an address, a position in the text, and the frames of the loops and guards around it. The search
tries them in order of preference and visits none twice: a configuration visited before has failed, whatever was
captured on the way to it (memoised backtracking; Davis, Servant and Lee 2021, "Using Selective Memoization to Defeat
Regular Expression Denial of Service"). A leaf is walked by one Matcher from the position where it starts, and left at
each position where its text is complete, the longest first. Walks that meet in the same state of the same leaf have the
same future, so the second one stops there. Where the form is unambiguous, the search is linear in the text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from ..forms.form import Form
from ..vocabulary.token_names import FIRST, NAME
from ..vocabulary.vocabulary import Vocabulary
from .capture_program import (
    CaptureProgram,
    Edge,
    EnterGuard,
    EnterLoop,
    Fork,
    Jump,
    Leaf,
    LeaveGuard,
    NextIteration,
    TestLoop,
)
from .rule_captures import CapturedSpan, walk_bytes

__all__ = ["Capture", "find_captures", "show_tokens"]

SPECIAL = re.compile(rb"\xff[^\xff]{%d}" % (NAME - 1))
Frames = tuple[tuple[int, int], ...]
"""Of the enclosing loops (repetitions, whether the last was not empty) and guards (start, 0), the innermost last."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A part of a text that a named form matched.

    Attributes
    ----------
    name : str
    form : Form
        What the name was given to; for a group of a regular expression, the form of the whole expression.
    start, end : int
        The span in bytes of the text, special tokens by their names in the tokenizer. For a capture inside a `quoted`
        form: of the decoded text of that form.
    text : str
        The text of the span.
    """

    name: str
    form: Form
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a derivation that matters to captures: an edge of a name, or a leaf with names inside."""

    instruction: Edge | Leaf
    start: int
    end: int
    before: Event | None


@dataclass(frozen=True, slots=True)
class Configuration:
    """A place of the search: address, position in the text, frames, and the events on the way to it, latest first."""

    address: int
    position: int
    frames: Frames
    events: Event | None


def find_captures(program: CaptureProgram, data: bytes) -> list[Capture] | None:
    """Return the captures of a text, ordered by their starts, outer before inner ones.

    Parameters
    ----------
    program : CaptureProgram
        Of the form that the text matches.
    data : bytes
        The text, with special tokens spelled by their names in bytes (`Vocabulary.spelled`).

    Returns
    -------
    list of Capture, or None
        None if the form does not match the text.
    """
    events = CaptureSearch(program, data).run()
    return None if events is None else list_captures(events, program, data)


class CaptureSearch:
    """The state of one search."""

    def __init__(self, program: CaptureProgram, data: bytes) -> None:
        self.program, self.data = program, data
        self.visited: set[tuple[int, int, Frames]] = set()
        self.walked: set[tuple[int, Frames, int, tuple[int, int]]] = set()
        self.guards: dict[tuple[int, int], frozenset[int]] = {}

    def run(self) -> list[Event] | None:
        """Return the events of the preferred derivation, in order; None if there is none."""
        todo = [Configuration(0, 0, (), None)]
        accepting = len(self.program.instructions)
        while todo:
            one = todo.pop()
            if one.address == accepting:
                if one.position == len(self.data):
                    return list_events(one.events)
                continue
            key = one.address, one.position, one.frames
            if key not in self.visited:
                self.visited.add(key)
                todo.extend(reversed(self.step(one)))
        return None

    def step(self, at: Configuration) -> list[Configuration]:
        """Return the configurations after one instruction, in order of preference."""
        instruction = self.program.instructions[at.address]
        if isinstance(instruction, Leaf):
            return self.walk_leaf(at, instruction)
        if isinstance(instruction, Edge):
            event = Event(instruction, at.position, at.position, at.events)
            return [replace(at, address=at.address + 1, events=event)]
        if isinstance(instruction, Fork):
            return [replace(at, address=at.address + target) for target in instruction.targets]
        if isinstance(instruction, Jump):
            return [replace(at, address=at.address + instruction.target)]
        if isinstance(instruction, EnterLoop):
            return [replace(at, address=at.address + 1, frames=(*at.frames, (0, 1)))]
        if isinstance(instruction, TestLoop):
            return test_loop(at, instruction)
        if isinstance(instruction, NextIteration):
            return [replace(at, address=at.address + instruction.test)]
        if isinstance(instruction, EnterGuard):
            return [replace(at, address=at.address + 1, frames=(*at.frames, (at.position, 0)))]
        return self.leave_guard(at, instruction)

    def walk_leaf(self, at: Configuration, leaf: Leaf) -> list[Configuration]:
        """Return the configurations after a leaf, the longest text first."""
        if leaf.constraint is None:
            return []
        ends, known = [], (at.address, at.frames)
        for end, matcher in walk_bytes(leaf.constraint, self.data, at.position):
            key = (*known, end, matcher.state)
            if key in self.walked:
                break
            self.walked.add(key)
            if matcher.is_complete:
                ends.append(end)
        return [self.leave_leaf(at, leaf, end) for end in reversed(ends)]

    def leave_leaf(self, at: Configuration, leaf: Leaf, end: int) -> Configuration:
        """Return the configuration after a leaf whose text ends at `end`."""
        events = at.events if leaf.inner is None else Event(leaf, at.position, end, at.events)
        frames = at.frames if end == at.position else self.mark_frames(at)
        return Configuration(at.address + 1, end, frames, events)

    def mark_frames(self, at: Configuration) -> Frames:
        """Return the frames with the repetitions under way marked as not empty. Frames of guards do not change: their
        second number is never read.
        """
        return tuple((first, 1) for first, _ in at.frames)

    def leave_guard(self, at: Configuration, instruction: LeaveGuard) -> list[Configuration]:
        """Return the configuration after a guard, if its Constraint accepts the guarded text."""
        start = at.frames[-1][0]
        key = at.address, start
        if key not in self.guards:
            walk = walk_bytes(instruction.constraint, self.data, start)
            self.guards[key] = frozenset(end for end, matcher in walk if matcher.is_complete)
        if at.position not in self.guards[key]:
            return []
        return [replace(at, address=at.address + 1, frames=at.frames[:-1])]


def test_loop(at: Configuration, loop: TestLoop) -> list[Configuration]:
    """Return the configurations after the test of a loop: its body, then its end.

    A repetition beyond `low` that was empty fails: leaving the loop before it leads to the same place. Without an upper
    bound, repetitions beyond `low` are not counted further.
    """
    count, moved = at.frames[-1]
    if count > loop.low and not moved:
        return []
    out = []
    if loop.high is None or count < loop.high:
        after = min(count + 1, loop.low + 1) if loop.high is None else count + 1
        out.append(replace(at, address=at.address + 1, frames=(*at.frames[:-1], (after, 0))))
    if count >= loop.low:
        out.append(replace(at, address=at.address + loop.end, frames=at.frames[:-1]))
    return out


def list_events(last: Event | None) -> list[Event]:
    """Return a linked list of events, the first event first."""
    out = []
    while last is not None:
        out.append(last)
        last = last.before
    return out[::-1]


def list_captures(events: list[Event], program: CaptureProgram, data: bytes) -> list[Capture]:
    """Return the captures of a derivation, in the order in which they are opened."""
    found: list[Capture] = []
    opened: list[int] = []
    for event in events:
        instruction = event.instruction
        if isinstance(instruction, Leaf):
            found += capture_inner(instruction, program.vocabulary, data, event.start, event.end)
        elif instruction.opens:
            opened.append(len(found))
            found.append(Capture(instruction.form.name, instruction.form.form, event.start, event.start, ""))
        else:
            index = opened.pop()
            found[index] = make_capture(found[index], program.vocabulary, data, event.end)
    return found


def make_capture(begun: Capture, vocabulary: Vocabulary, data: bytes, end: int) -> Capture:
    """Return a capture that ends at byte `end` of `data`, its span and text with special tokens by name."""
    before = show_tokens(vocabulary, data[: begun.start])
    text = show_tokens(vocabulary, data[begun.start : end])
    return replace(begun, start=len(before), end=len(before) + len(text), text=text.decode("utf-8", "replace"))


def capture_inner(leaf: Leaf, vocabulary: Vocabulary, data: bytes, start: int, end: int) -> list[Capture]:
    """Return the captures within the text of a leaf: those of a quoted form, or the groups of a regular expression."""
    if isinstance(leaf.inner, CaptureProgram):
        decoded = json.loads(data[start:end]).encode("utf-8", "replace")
        return find_captures(leaf.inner, decoded) or []
    if leaf.inner is None:
        return []
    if not isinstance(leaf.inner, re.Pattern):
        return [rule_capture(leaf.form, one, vocabulary, data, start) for one in leaf.inner.find(data[start:end])]
    match = leaf.inner.fullmatch(data[start:end].decode("utf-8", "replace"))
    if match is None:
        return []
    spans = sorted((match.span(name), name) for name in match.re.groupindex if match[name] is not None)
    before = len(show_tokens(vocabulary, data[:start]))
    out = []
    for (first, last), name in spans:
        offset = before + len(match.string[:first].encode())
        text = match.string[first:last]
        out.append(Capture(name, leaf.form, offset, offset + len(text.encode()), text))
    return out


def rule_capture(form: Form, span: CapturedSpan, vocabulary: Vocabulary, data: bytes, at: int) -> Capture:
    """Return the capture of a rule of a grammar whose text begins at byte `at`."""
    begun = Capture(span.name, form, at + span.start, at + span.start, "")
    return make_capture(begun, vocabulary, data, at + span.end)


def show_tokens(vocabulary: Vocabulary, data: bytes) -> bytes:
    """Return bytes with the names in bytes of special tokens replaced by their names in the tokenizer."""
    if FIRST not in data:
        return data
    names = {name: vocabulary.original_names[index] for index, name in vocabulary.names.items()}
    return SPECIAL.sub(lambda match: names.get(match[0], match[0]), data)
