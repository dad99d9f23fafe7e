"""Draw random texts of a Constraint without a model: test data that resembles real data; drawing always terminates.

The walk follows the nodes of the Grammar, because they carry the meaning of a position (an optional key, a number, a
date), and its choices are weighted. It does not decide validity: every piece goes through a Matcher, a rejected piece
is undone, and once the text is long enough, or no choice is left, `Matcher.shortest_completion` completes it.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...automata.numerals.number_automaton import NumberAutomaton
from ...automata.numerals.number_texts import draw_number
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
    Number,
    Object,
    Property,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Unique,
)
from ...grammar.visitor import NodeVisitor
from .readable_texts import draw_readable_text

if TYPE_CHECKING:
    from ...engine.constraint import Constraint
    from ...engine.matcher import Matcher

__all__ = ["random_text"]

DEEPEST = 120
"""Maximum depth of nodes: a deeper walk is completed at once, before Python's own stack overflows."""
STEPS_PER_BYTE = 40
"""Maximum number of nodes visited per byte of the size, which bounds walks through nodes that add nothing to the
text."""
OPTIONAL, FADING = 0.75, 0.85
"""An optional part is written with probability OPTIONAL, times FADING for each level of brackets."""
MORE = 0.4
"""Probability to end a repetition after each further round: 1.5 rounds beyond the minimum on average."""

DIFFERENT = 12
"""Number of values that are tried for a member that must differ from others."""

BEHIND = (bytearray(b","), bytearray(b":"))
"""Where white space is allowed, one space is written after these."""


class Enough(Exception):
    """The text is long enough: complete it."""


class RepeatedItem(Exception):
    """A member equals an earlier one, and everything that follows up to the end of the `Unique` node has been
    written."""


class Refused(Exception):
    """The Matcher rejected a piece: return to the last choice."""


def random_text(constraint: Constraint, rng: np.random.Generator, *, size: int = 600) -> bytes:
    """Return a random text of the constraint's language; beyond `size` bytes it is completed as soon as possible.

    The vocabulary of the constraint does not affect the text, but must be able to spell it: `Vocabulary.bytes()` can.
    """
    walker = Walker(constraint, rng, size)
    try:
        walker.node(constraint.grammar.start)
    except (Enough, Refused):
        pass
    if not walker.matcher.is_complete:
        closing = walker.matcher.shortest_completion()
        if closing is None:
            raise LimitError("the text cannot be completed within the limit")
        walker.written += closing
    return bytes(walker.written)


class Walker(NodeVisitor[None]):
    """The text so far, the Matcher after it, and the position of the walk: depth counts nodes, level brackets."""

    node_classes = (
        Literal, Strings, Chars, JsonString, Number, Sequence, Choice, Repeat, Unique, Member, Rule, Object,
    )  # fmt: skip

    def __init__(self, constraint: Constraint, rng: np.random.Generator, size: int) -> None:
        self.matcher: Matcher = constraint.matcher()
        self.rules = constraint.grammar.rules
        self.rng, self.size = rng, size
        self.written = bytearray()
        self.depth = self.level = self.steps = 0
        self.members: dict[bytes, Node] = {}  # those of the innermost Unique that may recur, and their nodes

    def node(self, node: Node) -> None:
        """Write a text of the node.

        Raise Enough if the text is long enough, and Refused if the Matcher rejects a piece.
        """
        self.steps += 1
        if self.depth >= DEEPEST or self.steps > STEPS_PER_BYTE * self.size:
            raise Enough
        self.depth += 1
        try:
            self.methods[type(node)](self, node)
        except LimitError:
            raise Refused from None
        finally:
            self.depth -= 1

    def write(self, data: bytes) -> None:
        """Append a piece. Raise Refused if the Matcher rejects it."""
        if len(self.written) >= self.size:
            raise Enough
        try:
            self.matcher.advance_bytes(data)
        except TokenRefused:
            raise Refused from None
        self.written += data

    def attempt(self, *pieces: Node | bytes) -> bool:
        """Write the pieces, or nothing at all if one is rejected. Return whether they were written."""
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

    def visit_literal(self, node: Literal) -> None:
        self.write(node.data)

    def visit_strings(self, node: Strings) -> None:
        self.write(node.options[int(self.rng.integers(len(node.options)))])

    def visit_json_string(self, node: JsonString) -> None:
        self.write(quote_json(draw_readable_text(node.dfa, node.low, node.high, self.rng)))

    def visit_rule(self, node: Rule) -> None:
        self.node(self.rules[node.name])

    def visit_number(self, node: Number) -> None:
        text = draw_number(NumberAutomaton(node.language), lambda n: int(self.rng.integers(n)))
        self.write(text.encode())

    def visit_chars(self, node: Chars) -> None:
        if is_blank(node):
            text = " " if self.written[-1:] in BEHIND and node.high != 0 else ""
        else:
            text = draw_readable_text(node.dfa, node.low, node.high, self.rng)
        self.write(quote_json(text)[1:-1] if node.encoding == "json" else text.encode())

    def visit_sequence(self, node: Sequence) -> None:
        bracket = node.parts[:1] == (OPEN,)
        self.level += bracket
        for part in node.parts:
            self.node(part)
        self.level -= bracket

    def visit_unique(self, node: Unique) -> None:
        """Write its body, up to the end of a repeated member, if repetitions are allowed."""
        outer, self.members = self.members, {}
        depth = self.depth
        try:
            self.node(node.body)
        except RepeatedItem:
            self.depth = depth
        finally:
            self.members = outer

    def visit_member(self, node: Member) -> None:
        """Write a value that has not occurred yet: the Matcher rejects the end of a repeated one, unless repetitions
        are allowed."""
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

    def visit_choice(self, node: Choice) -> None:
        """Write one of the options; brackets are less likely with depth, and the empty text is less likely than
        others."""
        weights = np.array([_OPTION_WEIGHTS.visit(option, self.rules, self.level) for option in node.options])
        order = self.rng.choice(len(weights), len(weights), replace=False, p=weights / weights.sum())
        if not any(self.attempt(node.options[int(k)]) for k in order):
            raise Refused

    def visit_repeat(self, node: Repeat) -> None:
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

    def visit_object(self, node: Object) -> None:
        """Write members in order: the planned ones; where these do not suffice, any that help to close the object."""
        lay, left = node.layout, list(node.properties)
        self.write(lay.opening)
        self.level += 1
        empty = True
        planned = self.plan(node)
        for member in planned:
            if member in left:
                left.remove(member)
            empty &= not self.member(node, member, empty)
        if not self.attempt(lay.empty if empty else lay.close, lay.closing):
            rest: list[Property | NameClass] = [*left, *node.others, *node.others, *node.others]
            for member in rest:
                empty &= not self.member(node, member, empty)
                if self.attempt(lay.empty if empty else lay.close, lay.closing):
                    break
            else:
                raise Enough
        self.level -= 1

    def member(self, node: Object, member: Property | NameClass, first: bool) -> bool:
        """Write one member, if its key is allowed here. Return whether it was written."""
        lay = node.layout
        name = member.name if isinstance(member, Property) else draw_readable_text(member.names, 0, None, self.rng)
        if not self.attempt(lay.open if first else lay.comma, quote_json(name)):
            return False
        self.node(lay.colon)
        self.node(member.value)
        return True

    def plan(self, node: Object) -> list[Property | NameClass]:
        """Return the members to write: the required ones, some others with their dependencies, within the bounds on
        their number."""
        known = {member.name: member for member in node.properties}
        chosen = {member.name for member in node.properties if member.required}
        free = [member.name for member in node.properties if not member.required]
        included = [name for name in free if self.coin()]
        for name in included:
            more = {name, *known[name].needs} - chosen
            if node.high is None or len(chosen) + len(more) <= node.high:
                chosen |= more
        missing = node.low - len(chosen)
        if missing > 0:
            unused = [name for name in free if name not in chosen]
            chosen.update(unused[int(k)] for k in self.rng.permutation(len(unused))[:missing])
        declared: list[Property | NameClass] = [member for member in node.properties if member.name in chosen]
        if node.order == "any":
            declared = [declared[int(k)] for k in self.rng.permutation(len(declared))]
        capacity = len(declared) if node.high is None else node.high - len(declared)
        extra = 0
        if node.others:
            likely = 0.1 if node.properties else OPTIONAL
            extra = max(node.low - len(declared), int(self.rng.binomial(2, likely * FADING**self.level)))
            extra = extra if node.high is None else min(extra, capacity)
        return declared + [node.others[int(self.rng.integers(len(node.others)))] for _ in range(extra)]

    def coin(self) -> bool:
        """Return whether to write an optional part: less likely with depth and with the length of the text."""
        remaining = 1 - len(self.written) / self.size
        return bool(self.rng.random() < OPTIONAL * FADING**self.level * (0.5 + 0.5 * remaining))


OPEN = Literal(b"[")


class _OptionWeights(NodeVisitor[float]):
    """The relative weight of an option, given the rules and the level of brackets."""

    def visit_rule(self, node: Rule, rules: Mapping[Hashable, Node], level: int) -> float:
        body = rules[node.name]
        return 1.0 if isinstance(body, Rule) else self.visit(body, rules, level)

    def visit_literal(self, node: Literal, rules: Mapping[Hashable, Node], level: int) -> float:
        return 1.0 if node.data else 0.3

    def visit_object(self, node: Object, rules: Mapping[Hashable, Node], level: int) -> float:
        return float(max(0.02, 0.5**level))

    def visit_sequence(self, node: Sequence, rules: Mapping[Hashable, Node], level: int) -> float:
        return float(max(0.02, 0.5**level)) if node.parts[:1] == (OPEN,) else 1.0

    def generic_visit(self, node: Node, *context: Any) -> float:
        return 1.0


_OPTION_WEIGHTS = _OptionWeights()


def quote_json(text: str) -> bytes:
    """Return a text as a JSON string."""
    return json.dumps(text, ensure_ascii=False).encode()
