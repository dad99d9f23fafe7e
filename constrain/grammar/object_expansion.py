"""Expansion of objects and JSON strings to plain context-free rules, for operations that do not know these nodes.

An object becomes one rule per relevant state of the members so far: their number, and the declared keys that others
depend on. In free order this is every subset of the keys, so only few keys are expanded and larger objects are rejected
with an error. Also rejected is what context-free rules cannot express: that undeclared keys or members of a Unique
differ.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from json.encoder import encode_basestring

from ..automata.dfa import Dfa
from ..base.errors import LimitError, UnsupportedError
from ..base.options import Limits
from .json_spelling import spell_as_json
from .nodes import (
    Chars,
    Free,
    Grammar,
    JsonString,
    Literal,
    Mark,
    Member,
    NameClass,
    Node,
    Object,
    Parsed,
    Property,
    Repeat,
    Rule,
    Unique,
)
from .simplification import simplify_grammar
from .visitor import make_choice, make_sequence, rebuild_node

__all__ = ["expand_objects"]

MOST_FREE_KEYS = 8
"""Maximum number of keys of an object in free order that is expanded; each further key doubles the rules."""

QUOTE = Literal(b'"')


def expand_objects(grammar: Grammar, what: str, *, limits: Limits = Limits()) -> Grammar:
    """Return an equivalent Grammar of literals, strings, UTF-8 Chars, tokens, sequences, choices, repetitions and
    rules.

    `what` names the operation, for error messages. Raise UnsupportedError for nodes that cannot be expanded and
    LimitError for too many rules.
    """
    writer = _ObjectExpander(grammar, what, limits)
    start = writer.node(grammar.start)
    writer.all()
    made = simplify_grammar(start, writer.rules)
    assert made is not None, "a Grammar has a text"
    return made


@dataclass(frozen=True, slots=True)
class WrittenMembers:
    """The relevant state of the members of an object that precede a point in the text.

    `seen` are the relevant declared keys, `at` is the index of the next declared key in schema order, `count` the
    number of members (saturated) and `met` the classes of undeclared keys that occurred.
    """

    seen: frozenset[str]
    at: int
    count: int
    met: frozenset[int]


class _ObjectExpander:
    """Expands the nodes of one Grammar."""

    def __init__(self, grammar: Grammar, what: str, limits: Limits) -> None:
        self.grammar, self.what, self.limits = grammar, what, limits
        self.rules: dict[Hashable, Node] = {}
        self.todo: list[Hashable] = []
        self.spellings: dict[Dfa, Dfa] = {}
        self.objects: dict[Object, int] = {}

    def all(self) -> None:
        """Expand all rules that are referenced, transitively."""
        while self.todo:
            name = self.todo.pop()
            self.rules[name] = self.node(self.grammar.rules[name])
            if len(self.rules) > self.limits.dfa_states:
                raise LimitError(
                    f"{self.what} would write out more than {self.limits.dfa_states} rules",
                    hint="Simplify it, or raise Limits.dfa_states.",
                )

    def refuse(self, cause: str, hint: str) -> UnsupportedError:
        """Return an UnsupportedError that names the operation."""
        return UnsupportedError(f"{self.what}: {cause}", hint=hint)

    def node(self, node: Node) -> Node:
        """Return the expansion of a node."""
        if isinstance(node, Rule):
            if node.name not in self.rules:
                self.rules[node.name] = node  # A placeholder: the body is expanded later.
                self.todo.append(node.name)
            return node
        if isinstance(node, JsonString):
            return make_sequence((QUOTE, self.inside(node.dfa, node.low, node.high), QUOTE))
        if isinstance(node, Chars) and node.encoding == "json":
            return self.inside(node.dfa, node.low, node.high)
        if isinstance(node, Object):
            return self.object(node)
        if isinstance(node, (Unique, Member)):
            raise self.refuse("members that must differ are beyond rules", "Leave out uniqueItems.")
        if isinstance(node, (Mark, Free)):
            raise self.refuse(
                "whatever a model writes, and special tokens, are no text", "Use free_text() and literals."
            )
        if isinstance(node, Parsed):
            raise self.refuse("a grammar with a lexer is more than rules", "Read it with lexer='dynamic_complete'.")
        return rebuild_node(node, self.node)

    def inside(self, dfa: Dfa, low: int, high: int | None) -> Node:
        """Return a node for the spellings, without quotes, of the texts of `low` to `high` characters of a Dfa."""
        most = self.limits.dfa_states
        if low == 0 and high is None:
            return Chars(self.spelling(dfa))
        one = dfa.with_length(1, 1, max_states=most)
        if dfa == one.star(max_states=most):  # Characters are independent: count them in a Repeat.
            return Repeat(Chars(self.spelling(one)), low, high)
        return Chars(self.spelling(dfa.with_length(low, high, max_states=most)))

    def spelling(self, dfa: Dfa) -> Dfa:
        found = self.spellings.get(dfa)
        if found is None:
            found = self.spellings[dfa] = spell_as_json(dfa, max_states=self.limits.dfa_states)
        return found

    # ---- objects

    def object(self, node: Object) -> Node:
        number = self.objects.setdefault(node, len(self.objects))
        name = ("object", number)
        if name not in self.rules:
            self.rules[name] = Rule(name)
            _ObjectRules(self, node, number).write(name)
        return Rule(name)


class _ObjectRules:
    """Generates the rules of one object."""

    def __init__(self, writer: _ObjectExpander, node: Object, number: int) -> None:
        self.writer, self.node, self.number = writer, node, number
        self.names = [prop.name for prop in node.properties]
        self.others = self.other_classes()
        if node.order == "any" and len(self.names) > MOST_FREE_KEYS:
            raise writer.refuse(
                f"an object of {len(self.names)} keys in free order would be {2 ** len(self.names):,} rules",
                'Use Style(key_order="schema").',
            )
        needed = {name for prop in node.properties for name in prop.needs}
        self.relevant = {p.name for p in node.properties if p.required or p.needs or p.name in needed}
        self.counted = node.low > 1 or node.high is not None

    def other_classes(self) -> list[NameClass]:
        """Return the classes of undeclared keys without declared and excluded names. Raise if two such keys
        may occur.
        """
        node = self.node
        required = sum(prop.required for prop in node.properties)
        room = None if node.high is None else node.high - required
        taken = Dfa.from_strings([*self.names, *node.excluded])
        most = self.writer.limits.dfa_states
        found = []
        for other in node.others if room != 0 else ():
            names = other.names.subtract(taken, max_states=most)
            if not names.is_empty:
                found.append(NameClass(names, other.value, other.required))
        if found and (room is None or room > 1):
            raise self.writer.refuse(
                "an object may have undeclared keys, and no rules can say that these differ",
                'Say "additionalProperties": false.',
            )
        return found

    def write(self, name: Hashable) -> None:
        layout = self.node.layout
        self.todo: list[WrittenMembers] = []
        start = WrittenMembers(frozenset(), 0, 0, frozenset())
        options = [make_sequence((Literal(b"{"), self.part(layout.open), step)) for step in self.members(start)]
        if self.closes(start):
            options.append(make_sequence((Literal(b"{"), self.part(layout.empty), Literal(b"}"))))
        self.writer.rules[name] = make_choice(options)
        while self.todo:
            state = self.todo.pop()
            comma, close = self.part(layout.comma), self.part(layout.close)
            options = [make_sequence((comma, step)) for step in self.members(state)]
            if self.closes(state):
                options.append(make_sequence((close, Literal(b"}"))))
            self.writer.rules[self.rule(state)] = make_choice(options)

    def part(self, node: Node) -> Node:
        return self.writer.node(node)

    def rule(self, state: WrittenMembers) -> Hashable:
        return ("object", self.number, state)

    def closes(self, state: WrittenMembers) -> bool:
        """Return whether the object may be closed in a state."""
        node = self.node
        enough = node.low <= state.count and (node.high is None or state.count <= node.high)
        return (
            enough
            and all(prop.name in state.seen for prop in node.properties if prop.required)
            and all(prop.needs <= state.seen for prop in node.properties if prop.name in state.seen)
            and all(k in state.met for k, other in enumerate(self.others) if other.required)
        )

    def members(self, state: WrittenMembers) -> list[Node]:
        """Return the alternatives for one more member and what follows it."""
        node, out = self.node, []
        if node.high is not None and state.count >= node.high:
            return []
        for k, prop in enumerate(node.properties):
            fresh = prop.name not in state.seen if node.order == "any" else k >= state.at
            if fresh:
                seen = state.seen | {prop.name} if node.order == "any" or prop.name in self.relevant else state.seen
                out.append(self.member(self.key(prop), prop.value, self.after(state, seen, k + 1, state.met)))
        for k, other in enumerate(self.others):
            key = make_sequence((QUOTE, self.writer.inside(other.names, 0, None), QUOTE))
            after = self.after(state, state.seen, len(self.names), state.met | {k})
            out.append(self.member(key, other.value, after))
        return out

    def after(self, state: WrittenMembers, seen: frozenset[str], at: int, met: frozenset[int]) -> WrittenMembers:
        """Return the state after one more member."""
        count = state.count + 1 if self.counted else 1
        if self.node.high is None:
            count = min(count, max(self.node.low, 1))
        return WrittenMembers(
            seen, at if self.node.order == "schema" else 0, count, met if self.others else frozenset()
        )

    def member(self, key: Node, value: Node, after: WrittenMembers) -> Node:
        name = self.rule(after)
        if name not in self.writer.rules:
            self.writer.rules[name] = Rule(name)
            self.todo.append(after)
        return make_sequence((key, self.part(self.node.layout.colon), self.part(value), Rule(name)))

    def key(self, prop: Property) -> Node:
        if self.node.escapes == "canonical":
            return Literal(encode_basestring(prop.name).encode())
        return make_sequence((QUOTE, self.writer.inside(Dfa.from_strings([prop.name]), 0, None), QUOTE))
