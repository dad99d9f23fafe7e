"""Random texts of a Constraint with no model at all: test data that looks like data, and that always ends.

The walk follows the nodes of the Grammar, because they know what a place means (an optional key, a number, a date), and
chooses with some taste. It decides nothing about validity: every piece goes through a Matcher, what that refuses is
taken back, and once the text is long enough, or the walk is at a loss, `Matcher.shortest_completion` closes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...base.errors import LimitError, TokenRefused
from ...engine.text_enumeration import is_blank
from ...grammar.nodes import (  # fmt: skip
    Chars,
    Choice,
    JsonString,
    Literal,
    Member,
    NameClass,
    Node,
    Object,
    Property,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Unique,
)
from .readable_texts import draw_readable_text

if TYPE_CHECKING:
    from ...engine.constraint import Constraint
    from ...engine.matcher import Matcher

__all__ = ["random_text"]

DEEPEST = 120
"""Nodes within nodes: a walk deeper than that is closed, before Python's own stack is at its end."""
STEPS_PER_BYTE = 40
"""Nodes visited per byte of the size: what adds nothing to the text must not go on for ever either."""
OPTIONAL, FADING = 0.75, 0.85
"""An optional part is written with this probability, times the fading for each level of brackets."""
MORE = 0.4
"""A repetition ends after each further round with this probability: 1.5 rounds beyond the least, on average."""

DIFFERENT = 12
"""Values that are tried for a member that must differ from others."""

BEHIND = (bytearray(b","), bytearray(b":"))
"""Where white space is allowed, one space is written behind these."""


class Enough(Exception):
    """The text is long enough: close it."""


class RepeatedItem(Exception):
    """A member equals an earlier one, and all that follows up to the end of the `Unique` has been written."""


class Refused(Exception):
    """The Matcher refused a piece: go back to the last choice."""


def random_text(constraint: Constraint, rng: np.random.Generator, *, size: int = 600) -> bytes:
    """A text of the constraint's language; beyond `size` bytes it is closed as soon as it can be.

    The vocabulary of the constraint plays no role, but it must be able to spell the text: `Vocabulary.bytes()` can.
    """
    walker = Walker(constraint, rng, size)
    try:
        walker.node(constraint.grammar.start)
    except (Enough, Refused):
        pass
    if not walker.matcher.is_complete:
        closing = walker.matcher.shortest_completion()
        if closing is None:
            raise LimitError("the text cannot be closed")
        walker.written += closing
    return bytes(walker.written)


class Walker:
    """The text so far, the Matcher after it, and where the walk is: depth counts nodes, level brackets."""

    def __init__(self, constraint: Constraint, rng: np.random.Generator, size: int) -> None:
        self.matcher: Matcher = constraint.matcher()
        self.rules = constraint.grammar.rules
        self.rng, self.size = rng, size
        self.written = bytearray()
        self.depth = self.level = self.steps = 0
        self.members: dict[bytes, Node] = {}  # those of the innermost Unique that may come again, and their nodes
        self.visit: dict[type, Callable[..., None]] = {
            Literal: lambda node: self.write(node.data),
            Strings: lambda node: self.write(node.options[int(rng.integers(len(node.options)))]),
            Chars: self.chars,
            JsonString: lambda node: self.write(quote_json(draw_readable_text(node.dfa, node.low, node.high, rng))),
            Sequence: self.sequence, Choice: self.choice, Repeat: self.repeat, Object: self.object,
            Rule: lambda node: self.node(self.rules[node.name]),
            Unique: self.unique, Member: self.unique_member,
        }  # fmt: skip

    def node(self, node: Node) -> None:
        """Writes a text of the node. Enough, Refused: as the classes say."""
        self.steps += 1
        if self.depth >= DEEPEST or self.steps > STEPS_PER_BYTE * self.size:
            raise Enough
        self.depth += 1
        try:
            self.visit[type(node)](node)
        except LimitError:
            raise Refused from None
        finally:
            self.depth -= 1

    def write(self, data: bytes) -> None:
        """Adds a piece, if the Matcher takes it."""
        if len(self.written) >= self.size:
            raise Enough
        try:
            self.matcher.advance_bytes(data)
        except TokenRefused:
            raise Refused from None
        self.written += data

    def attempt(self, *pieces: Node | bytes) -> bool:
        """Writes the pieces, or nothing at all if one is refused."""
        length, matcher, level = len(self.written), self.matcher.fork(), self.level
        try:
            for piece in pieces:
                self.write(piece) if isinstance(piece, bytes) else self.node(piece)
        except Refused:
            del self.written[length:]
            self.matcher, self.level = matcher, level
            return False
        return True

    # ---- one kind of node each ------------------------------------------------------------------------------

    def chars(self, node: Chars) -> None:
        if is_blank(node):
            text = " " if self.written[-1:] in BEHIND and node.high != 0 else ""
        else:
            text = draw_readable_text(node.dfa, node.low, node.high, self.rng)
        self.write(quote_json(text)[1:-1] if node.encoding == "json" else text.encode())

    def sequence(self, node: Sequence) -> None:
        bracket = node.parts[:1] == (OPEN,)
        self.level += bracket
        for part in node.parts:
            self.node(part)
        self.level -= bracket

    def unique(self, node: Unique) -> None:
        """Its body, up to the end of a member that was there, if one may come."""
        outer, self.members = self.members, {}
        depth = self.depth
        try:
            self.node(node.body)
        except RepeatedItem:
            self.depth = depth
        finally:
            self.members = outer

    def unique_member(self, node: Member) -> None:
        """A value that was not there yet: the Matcher refuses one that was when it ends, unless it may come again."""
        if node.again is None:
            if not any(self.attempt(node.node) for _ in range(DIFFERENT)):
                raise Refused
            return
        start = len(self.written)
        earlier = [text for text, of in self.members.items() if of == node.node]
        if not (earlier and self.rng.random() < 0.5 and self.attempt(earlier[int(self.rng.integers(len(earlier)))])):
            self.node(node.node)
        text = bytes(self.written[start:])
        if any(json.loads(text) == json.loads(other) for other in self.members):
            self.node(node.again)
            raise RepeatedItem
        self.members[text] = node.node

    def choice(self, node: Choice) -> None:
        """One of the options, brackets the less likely the deeper; nothing at all less likely than something."""
        weights = np.array([self.liking(option) for option in node.options])
        order = self.rng.choice(len(weights), len(weights), replace=False, p=weights / weights.sum())
        if not any(self.attempt(node.options[int(k)]) for k in order):
            raise Refused

    def liking(self, node: Node) -> float:
        """How likely an option is taken."""
        if isinstance(node, Rule):
            node = self.rules[node.name]
        if isinstance(node, Literal) and not node.data:
            return 0.3
        if isinstance(node, Object) or (isinstance(node, Sequence) and node.parts[:1] == (OPEN,)):
            return max(0.02, 0.5**self.level)
        return 1.0

    def repeat(self, node: Repeat) -> None:
        more = int(self.rng.geometric(1 - (1 - MORE) * FADING**self.level)) - 1
        if node.high is not None:
            more = min(more, node.high - node.low)
            if node.high == 1 and node.low == 0:
                more = int(self.coin())
        for _ in range(node.low):
            self.node(node.node)
        for _ in range(more):
            if not self.attempt(node.node):
                return

    def object(self, node: Object) -> None:
        """Members in order: those that were planned; where they do not suffice, whatever else helps to close it."""
        self.write(b"{")
        self.level += 1
        lay, left = node.layout, list(node.properties)
        empty = True
        planned = self.plan(node)
        for member in planned:
            if member in left:
                left.remove(member)
            empty &= not self.member(node, member, empty)
        if not self.attempt(lay.empty if empty else lay.close, b"}"):
            rest: list[Property | NameClass] = [*left, *node.others, *node.others, *node.others]
            for member in rest:
                empty &= not self.member(node, member, empty)
                if self.attempt(lay.empty if empty else lay.close, b"}"):
                    break
            else:
                raise Enough
        self.level -= 1

    def member(self, node: Object, member: Property | NameClass, first: bool) -> bool:
        """Writes one member, if its key may come here."""
        lay = node.layout
        name = member.name if isinstance(member, Property) else draw_readable_text(member.names, 0, None, self.rng)
        if not self.attempt(lay.open if first else lay.comma, quote_json(name)):
            return False
        self.node(lay.colon)
        self.node(member.value)
        return True

    def plan(self, node: Object) -> list[Property | NameClass]:
        """Which members to write: the required ones, some others, what those need, and as many as counts allow."""
        known = {member.name: member for member in node.properties}
        chosen = {member.name for member in node.properties if member.required}
        free = [member.name for member in node.properties if not member.required]
        wanted = [name for name in free if self.coin()]
        for name in wanted:
            more = {name, *known[name].needs} - chosen
            if node.high is None or len(chosen) + len(more) <= node.high:
                chosen |= more
        missing = node.low - len(chosen)
        if missing > 0:
            rest = [name for name in free if name not in chosen]
            chosen.update(rest[int(k)] for k in self.rng.permutation(len(rest))[:missing])
        declared: list[Property | NameClass] = [member for member in node.properties if member.name in chosen]
        if node.order == "any":
            declared = [declared[int(k)] for k in self.rng.permutation(len(declared))]
        room = len(declared) if node.high is None else node.high - len(declared)
        extra = 0
        if node.others:
            likely = 0.1 if node.properties else OPTIONAL
            extra = max(node.low - len(declared), int(self.rng.binomial(2, likely * FADING**self.level)))
            extra = extra if node.high is None else min(extra, room)
        return declared + [node.others[int(self.rng.integers(len(node.others)))] for _ in range(extra)]

    def coin(self) -> bool:
        """Whether to write something that may be left out: the deeper, and the longer the text, the less likely."""
        room = 1 - len(self.written) / self.size
        return bool(self.rng.random() < OPTIONAL * FADING**self.level * (0.5 + 0.5 * room))


OPEN = Literal(b"[")


def quote_json(text: str) -> bytes:
    """A text as a JSON string."""
    return json.dumps(text, ensure_ascii=False).encode()
