"""Expansion of objects and JSON strings to plain context-free rules, for operations that do not know these nodes.

An object becomes one rule per relevant state of the members so far: their number, and the declared keys that others
depend on. In free order this is every subset of the keys, so only few keys are expanded and larger objects are rejected
with an error. Context-free rules cannot express that undeclared keys differ: an operation that can treat Unique and
Member nodes gets the keys as the Members of a Unique around the rules of the object; for others, and for members of
arrays with unique items, this is an error as well.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

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
    Number,
    Object,
    Parsed,
    Property,
    Repeat,
    Rule,
    Unique,
)
from .simplification import simplify_grammar
from .smart_constructors import make_choice, make_sequence
from .visitor import NodeVisitor, inner_nodes, rebuild_node

__all__ = ["expand_objects"]

MOST_FREE_KEYS = 8
"""Maximum number of keys of an object in free order that is expanded; each further key doubles the rules."""

QUOTE = Literal(b'"')


def expand_objects(
    grammar: Grammar, operation: str, *, keep: tuple[type, ...] = (), limits: Limits = Limits()
) -> Grammar:
    """Return an equivalent Grammar of literals, strings, UTF-8 Chars, tokens, sequences, choices, repetitions and
    rules.

    `operation` is the caller's name for itself in error messages. `keep` lists further classes of nodes that the caller
    can treat: Mark, Parsed, and Unique with Member. Raise UnsupportedError for nodes that cannot be expanded and
    LimitError for too many rules.
    """
    expander = _ObjectExpander(grammar, operation, keep, limits)
    start = expander.visit(grammar.start)
    expander.expand_pending()
    plain = simplify_grammar(start, expander.rules)
    assert plain is not None, "a Grammar has a text"
    return plain


@dataclass(frozen=True, slots=True)
class WrittenMembers:
    """The relevant state of the members of an object that precede a point in the text.

    `seen` are the relevant declared keys, `index` is that of the next declared key in schema order, `count` the number
    of members (saturated) and `classes` the classes of undeclared keys that occurred.
    """

    seen: frozenset[str]
    index: int
    count: int
    classes: frozenset[int]


class _ObjectExpander(NodeVisitor[Node]):
    """Expands the nodes of one Grammar."""

    def __init__(self, grammar: Grammar, operation: str, keep: tuple[type, ...], limits: Limits) -> None:
        self.grammar, self.operation, self.keep, self.limits = grammar, operation, keep, limits
        self.rules: dict[Hashable, Node] = {}
        self.pending: list[Hashable] = []
        self.spellings: dict[Dfa, Dfa] = {}
        self.objects: dict[Object, int] = {}

    def expand_pending(self) -> None:
        """Expand all rules that are referenced, transitively."""
        while self.pending:
            name = self.pending.pop()
            self.rules[name] = self.visit(self.grammar.rules[name])
            if len(self.rules) > self.limits.dfa_states:
                raise LimitError(
                    f"{self.operation} would generate more than {self.limits.dfa_states} rules",
                    hint="Simplify it, or raise Limits.dfa_states.",
                )

    def refuse(self, cause: str, hint: str) -> UnsupportedError:
        """Return an UnsupportedError that names the operation."""
        return UnsupportedError(f"{self.operation}: {cause}", hint=hint)

    def visit_rule(self, node: Rule) -> Node:
        if node.name not in self.rules:
            self.rules[node.name] = node  # A placeholder: the body is expanded later.
            self.pending.append(node.name)
        return node

    def visit_json_string(self, node: JsonString) -> Node:
        return make_sequence((QUOTE, self.spell_texts(node.dfa, node.low, node.high), QUOTE))

    def visit_chars(self, node: Chars) -> Node:
        return self.spell_texts(node.dfa, node.low, node.high) if node.encoding == "json" else node

    def visit_number(self, node: Number) -> Node:
        if isinstance(node, self.keep):
            return node
        raise self.refuse(
            "bounds, multiples and constants of numbers with an exponent cannot be expanded into rules",
            'Use Style(numbers="plain").',
        )

    def visit_object(self, node: Object) -> Node:
        number = self.objects.setdefault(node, len(self.objects))
        name = ("object", number)
        if name not in self.rules:
            self.rules[name] = Rule(name)
            _ObjectRules(self, node, number).write(name)
        return Rule(name)

    def visit_unique(self, node: Unique | Member) -> Node:
        if isinstance(node, self.keep):
            return rebuild_node(node, list(map(self.visit, inner_nodes(node))))
        raise self.refuse("unique array items cannot be expanded into rules", "Leave out uniqueItems.")

    def visit_mark(self, node: Mark | Free) -> Node:
        if isinstance(node, self.keep):
            return node
        raise self.refuse(
            "unrestricted and special tokens cannot be expanded into rules", "Use free_text() and literals."
        )

    def visit_parsed(self, node: Parsed) -> Node:
        if isinstance(node, self.keep):
            return node
        raise self.refuse(
            "a grammar with a lexer cannot be expanded into rules", "Read it with lexer='dynamic_complete'."
        )

    visit_member = visit_unique
    visit_free = visit_mark

    def generic_visit(self, node: Node, *context: Any) -> Node:
        return rebuild_node(node, list(map(self.visit, inner_nodes(node))))

    def spell_texts(self, dfa: Dfa, low: int, high: int | None) -> Node:
        """Return a node for the spellings, without quotes, of the texts of `low` to `high` characters of a Dfa."""
        max_states = self.limits.dfa_states
        if low == 0 and high is None:
            return Chars(self.to_json_dfa(dfa))
        character = dfa.with_length(1, 1, max_states=max_states)
        if dfa == character.star(max_states=max_states):  # Characters are independent: count them in a Repeat.
            return Repeat(Chars(self.to_json_dfa(character)), low, high)
        return Chars(self.to_json_dfa(dfa.with_length(low, high, max_states=max_states)))

    def to_json_dfa(self, dfa: Dfa) -> Dfa:
        """Return the Dfa of the spellings inside a JSON string, from the cache."""
        spelling = self.spellings.get(dfa)
        if spelling is None:
            spelling = self.spellings[dfa] = spell_as_json(dfa, max_states=self.limits.dfa_states)
        return spelling


class _ObjectRules:
    """Generates the rules of one object."""

    def __init__(self, expander: _ObjectExpander, node: Object, number: int) -> None:
        self.expander, self.node, self.number = expander, node, number
        self.names = [prop.name for prop in node.properties]
        self.others, self.is_unique = self.find_undeclared_classes()
        if node.order == "any" and len(self.names) > MOST_FREE_KEYS:
            if node.is_array:
                raise expander.refuse(
                    f"an array of {len(self.names)} different texts would be {2 ** len(self.names):,} rules",
                    "Leave out uniqueItems.",
                )
            raise expander.refuse(
                f"an object of {len(self.names)} keys in free order would be {2 ** len(self.names):,} rules",
                'Use Style(key_order="schema").',
            )
        needed = {name for prop in node.properties for name in prop.needs}
        self.relevant = {p.name for p in node.properties if p.required or p.needs or p.name in needed}
        self.counted = node.low > 1 or node.high is not None

    def find_undeclared_classes(self) -> tuple[list[NameClass], bool]:
        """Return the classes of undeclared keys without declared and excluded names, and whether their keys must be
        Members of a Unique, since two of them may occur. Raise if the operation does not know these.
        """
        node = self.node
        required = sum(prop.required for prop in node.properties)
        most_others = None if node.high is None else node.high - required
        unavailable = Dfa.from_strings([*self.names, *node.excluded])
        classes = []
        for other in node.others if most_others != 0 else ():
            names = other.names.subtract(unavailable, max_states=self.expander.limits.dfa_states)
            if not names.is_empty:
                classes.append(NameClass(names, other.value, other.required))
        is_unique = bool(classes) and (most_others is None or most_others > 1)
        if is_unique and Unique not in self.expander.keep:
            raise self.expander.refuse(
                "an object may have undeclared keys, and rules cannot ensure that these differ",
                'Say "additionalProperties": false.',
            )
        return classes, is_unique

    def write(self, name: Hashable) -> None:
        """Add the rules of the object to those of the expander; `name` is the first."""
        layout = self.node.layout
        self.pending: list[WrittenMembers] = []
        start = WrittenMembers(frozenset(), 0, 0, frozenset())
        opening, closing = Literal(layout.opening), Literal(layout.closing)
        options = [make_sequence((opening, self.expand(layout.open), step)) for step in self.list_members(start)]
        if self.may_close(start):
            options.append(make_sequence((opening, self.expand(layout.empty), closing)))
        whole = make_choice(options)
        self.expander.rules[name] = Unique(whole) if self.is_unique else whole
        while self.pending:
            state = self.pending.pop()
            comma, close = self.expand(layout.comma), self.expand(layout.close)
            options = [make_sequence((comma, step)) for step in self.list_members(state)]
            if self.may_close(state):
                options.append(make_sequence((close, closing)))
            self.expander.rules[self.rule_name(state)] = make_choice(options)

    def expand(self, node: Node) -> Node:
        return self.expander.visit(node)

    def rule_name(self, state: WrittenMembers) -> Hashable:
        return ("object", self.number, state)

    def may_close(self, state: WrittenMembers) -> bool:
        """Return whether the object may be closed in a state."""
        node = self.node
        within_bounds = node.low <= state.count and (node.high is None or state.count <= node.high)
        return (
            within_bounds
            and all(prop.name in state.seen for prop in node.properties if prop.required)
            and all(prop.needs <= state.seen for prop in node.properties if prop.name in state.seen)
            and all(k in state.classes for k, other in enumerate(self.others) if other.required)
        )

    def list_members(self, state: WrittenMembers) -> list[Node]:
        """Return the alternatives for one more member and what follows it."""
        node, out = self.node, []
        if node.high is not None and state.count >= node.high:
            return []
        for k, prop in enumerate(node.properties):
            if prop.name not in state.seen if node.order == "any" else k >= state.index:
                seen = state.seen | {prop.name} if node.order == "any" or prop.name in self.relevant else state.seen
                after = self.advance(state, seen, k + 1, state.classes)
                out.append(self.make_member(self.make_key(prop), prop.value, after))
        for k, other in enumerate(self.others):
            key = make_sequence((QUOTE, self.expander.spell_texts(other.names, 0, None), QUOTE))
            if self.is_unique:
                key = Member(key)
            after = self.advance(state, state.seen, len(self.names), state.classes | {k})
            out.append(self.make_member(key, other.value, after))
        return out

    def advance(
        self, state: WrittenMembers, seen: frozenset[str], index: int, classes: frozenset[int]
    ) -> WrittenMembers:
        """Return the state after one more member."""
        count = state.count + 1 if self.counted else 1
        if self.node.high is None:
            count = min(count, max(self.node.low, 1))
        return WrittenMembers(
            seen, index if self.node.order == "schema" else 0, count, classes if self.others else frozenset()
        )

    def make_member(self, key: Node, value: Node, after: WrittenMembers) -> Node:
        """Return a member followed by the rule of the state after it."""
        name = self.rule_name(after)
        if name not in self.expander.rules:
            self.expander.rules[name] = Rule(name)
            self.pending.append(after)
        return make_sequence((key, self.expand(self.node.layout.colon), self.expand(value), Rule(name)))

    def make_key(self, prop: Property) -> Node:
        """Return the spellings of a declared key, including the quotes."""
        if self.node.escapes == "canonical":
            return Literal(encode_basestring(prop.name).encode())
        return make_sequence((QUOTE, self.expander.spell_texts(Dfa.from_strings([prop.name]), 0, None), QUOTE))
