"""The states of a constraint as a graph whose edges are characters.

Positions of a Matcher with equal states have the same future, so a search over texts needs one representative of each
state. From a state, a character is followed directly; and all characters together lead to few different states, which
are found by asking for the states after each byte and descending into the continuation bytes of UTF-8 (RFC 3629,
section 4).

In some states nearly every character leads to a state of its own, since what was written must be known later: a key of
an object may not occur twice. There a few characters stand for all (`CharacterGraph.is_partial`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..base.errors import TokenRefused
from ..base.work import spend_work
from ..engine.constraint import Constraint
from ..engine.matcher import Matcher

__all__ = ["CharacterGraph"]

PREFERRED = "a0 \"'"
"""Characters that stand for all those that lead to the same state, the first that is among them; else the lowest."""
LOWEST_CONTINUATION = {0xE0: 0xA0, 0xF0: 0x90}
"""The lowest second byte after these first bytes; after others 0x80."""
HIGHEST_CONTINUATION = {0xED: 0x9F, 0xF4: 0x8F}
"""The highest second byte after these first bytes; after others 0xBF."""
MOST_ALTERNATIVES = 64
"""A state from which single characters lead to more states than this is partial."""
FEW_ALTERNATIVES = 8
"""The characters that are followed from a partial state."""
STEP_WORK = 25
STATE_WORK = 50
LISTING_WORK = 500
"""Units of work of a step of a Matcher, of a state that is met for the first time, and of the list of the characters
that may follow it (`constrain.base.work`)."""
LENGTH = 25
"""Characters of the text of a state for each further unit: its Matcher holds them, in about 8 bytes each."""
FIRST_BYTES = [*(ord(one) for one in PREFERRED), *range(0x80), *range(0xC2, 0xF5)]


@dataclass(slots=True)
class GraphState:
    """A state: a Matcher in it, the characters that it has read, and its edges as far as they have been computed."""

    matcher: Matcher
    length: int
    steps: dict[str, int | None] = field(default_factory=dict)
    alternatives: list[tuple[str, int]] | None = None
    is_partial: bool = False
    completion: str | None = None


class CharacterGraph:
    """The graph of a Constraint over `Vocabulary.bytes`. States are numbered from 0, the start, as they are met.

    A Matcher whose state cache was evicted in between gets other numbers, so that a state may then have two; searches
    remain right, and look at it twice.
    """

    def __init__(self, constraint: Constraint) -> None:
        self.states: list[GraphState] = []
        self.numbers: dict[tuple[int, int], int] = {}
        self.add(constraint.matcher(), 0)

    def __len__(self) -> int:
        return len(self.states)

    def add(self, matcher: Matcher, length: int) -> int:
        """Return the number of the state of a Matcher that has read so many characters."""
        key = matcher.state
        if key not in self.numbers:
            spend_work(STATE_WORK + length // LENGTH, "the repair of a text")
            self.numbers[key] = len(self.states)
            self.states.append(GraphState(matcher, length))
        return self.numbers[key]

    def is_final(self, state: int) -> bool:
        """Return whether a text may end in a state."""
        return self.states[state].matcher.is_complete

    def follow(self, state: int, character: str) -> int | None:
        """Return the state after a character, or None if it is refused."""
        steps = self.states[state].steps
        if character not in steps:
            length = self.states[state].length + 1
            spend_work(STEP_WORK + length // LENGTH, "the repair of a text")
            after = self.states[state].matcher.fork()
            try:
                after.advance_bytes(character.encode())
            except TokenRefused:
                steps[character] = None
            else:
                steps[character] = self.add(after, length)
        return steps[character]

    def list_alternatives(self, state: int) -> list[tuple[str, int]]:
        """Return the different states that one character leads to, each with a character that does; of a partial state
        some of them.
        """
        known = self.states[state]
        if known.alternatives is None:
            spend_work(LISTING_WORK, "the repair of a text")
            found: dict[int, str] = {}
            characters = list_characters(known.matcher, MOST_ALTERNATIVES + 1)
            known.is_partial = len(characters) > MOST_ALTERNATIVES
            for character in characters[:FEW_ALTERNATIVES] if known.is_partial else characters:
                after = self.follow(state, character)
                if after is not None:
                    found.setdefault(after, character)
            known.alternatives = [(character, after) for after, character in found.items()]
        return known.alternatives

    def is_partial(self, state: int) -> bool:
        """Return whether `list_alternatives` gave some of the states only."""
        return self.states[state].is_partial

    def complete(self, state: int) -> str:
        """Return a shortest, or nearly shortest, text that completes a text in this state."""
        known = self.states[state]
        if known.completion is None:
            spend_work(STATE_WORK, "the repair of a text")
            data = known.matcher.shortest_completion(None)
            assert data is not None  # without a limit there is one: every state can be completed
            known.completion = data.decode("utf-8", "replace")
        return known.completion


def list_characters(matcher: Matcher, most: int, prefix: bytes = b"") -> list[str]:
    """Return one character for each state that a character leads to, at most so many of them.

    prefix: the first bytes of the character.
    """
    candidates = list_continuations(prefix) if prefix else FIRST_BYTES
    found: list[str] = []
    seen: set[int] = set()
    for byte, number in zip(candidates, matcher.states_after(candidates).tolist()):
        if len(found) >= most:
            break
        if number <= 0 or number in seen:
            continue
        seen.add(number)
        data = prefix + bytes([byte])
        if len(data) == count_bytes(data[0]):
            found.append(data.decode())
        else:
            after = matcher.fork()
            after.advance_bytes(bytes([byte]))
            found += list_characters(after, most - len(found), data)
    return found


def list_continuations(prefix: bytes) -> list[int]:
    """Return the bytes that may follow the first bytes of a character in UTF-8."""
    if len(prefix) > 1:
        return list(range(0x80, 0xC0))
    return list(range(LOWEST_CONTINUATION.get(prefix[0], 0x80), HIGHEST_CONTINUATION.get(prefix[0], 0xBF) + 1))


def count_bytes(first: int) -> int:
    """Return the number of bytes of a character with this first byte."""
    return 1 + (first >= 0xC2) + (first >= 0xE0) + (first >= 0xF0)
