"""A plain recogniser of nodes: from a position in a text to the positions where a node may end.

Slower than the engine and faster than `grammar_oracle`; it knows nothing about prefixes, and shares no code
with either. For tests of front ends, which ask whether whole texts are in a Grammar.
"""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from constrain.grammar.nodes import (  # fmt: skip
    Chars,
    Choice,
    Grammar,
    JsonString,
    Literal,
    Member,
    Node,
    Number,
    Object,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Unique,
)
from tests.number_oracle import is_spelled

__all__ = ["accepts"]


def accepts(grammar: Grammar, text: str | bytes) -> bool:
    """Return whether the text is in the Grammar."""
    data = text.encode() if isinstance(text, str) else text
    return len(data) in _Recogniser(grammar, data).ends(grammar.start, 0)


class Members(NamedTuple):
    """Of an object: the keys seen, the index of the last declared one, and the required classes that have a member."""

    seen: frozenset[str]
    last: int
    met: frozenset[int]


class _Recogniser:
    def __init__(self, grammar: Grammar, text: bytes) -> None:
        self.grammar, self.text = grammar, text
        self.known: dict[tuple[int, int], tuple[Node, set[int]]] = {}

    def ends(self, node: Node, place: int) -> set[int]:
        key = (id(node), place)
        if key not in self.known:
            self.known[key] = (node, self.find(node, place))  # Keeps the node, and so its id.
        return self.known[key][1]

    def find(self, node: Node, place: int) -> set[int]:
        text = self.text
        if isinstance(node, Literal):
            return {place + len(node.data)} if text.startswith(node.data, place) else set()
        if isinstance(node, Strings):
            return {place + len(option) for option in node.options if text.startswith(option, place)}
        if isinstance(node, Chars):
            return self.chars(node, place)
        if isinstance(node, Number):
            return {
                end
                for end in range(place + 1, len(text) + 1)
                if is_spelled(node.language, text[place:end].decode("latin-1"))
            }
        if isinstance(node, JsonString):
            found = self.string(place)
            fits = found and node.dfa.accepts(found[0]) and within(len(found[0]), node)
            return {found[1]} if found and fits else set()
        if isinstance(node, Sequence):
            places = {place}
            for part in node.parts:
                places = {end for start in places for end in self.ends(part, start)}
            return places
        if isinstance(node, Choice):
            return {end for option in node.options for end in self.ends(option, place)}
        if isinstance(node, Repeat):
            return self.repeat(node, place)
        if isinstance(node, Rule):
            return self.ends(self.grammar.rules[node.name], place)
        if isinstance(node, Unique):
            return {end for end, _ in self.differing(node.body, place, frozenset())}
        assert isinstance(node, Object), f"{type(node).__name__} outside of what it belongs to"
        return self.object(node, place)

    def differing(self, node: Node, place: int, seen: Any, last: bool = True) -> set[tuple[int, Any]]:
        """Where a part of a Unique may end, with the values that have been seen then. last: rules lead on from here.

        None for the values: a Member that was there has come again, and all that follows is read.
        """
        if isinstance(node, Member):
            found = [(end, canonical(self.text[place:end])) for end in self.ends(node.node, place)]
            out = {(end, seen | {value}) for end, value in found if value not in seen}
            if node.again is not None:
                copies = [end for end, value in found if value in seen]
                out |= {(after, None) for end in copies for after in self.ends(node.again, end)}
            return out
        if isinstance(node, Choice):
            return {way for option in node.options for way in self.differing(option, place, seen, last)}
        if isinstance(node, Sequence):
            ways: set[tuple[int, Any]] = {(place, seen)}
            for index, part in enumerate(node.parts):
                at_end = last and index == len(node.parts) - 1
                ways = {
                    way
                    for start, known in ways
                    for way in ([(start, None)] if known is None else self.differing(part, start, known, at_end))
                }
            return ways
        if isinstance(node, Repeat) and node.low <= 1 and node.high is None:
            out = {(place, seen)} if node.low == 0 else set()
            fresh = self.differing(node.node, place, seen, False)
            while fresh:
                out |= fresh
                fresh = {w for start, known in fresh for w in self.differing(node.node, start, known, False)} - out
            return out
        if isinstance(node, Rule) and last:
            return self.differing(self.grammar.rules[node.name], place, seen)
        return {(end, seen) for end in self.ends(node, place)}

    def chars(self, node: Chars, place: int) -> set[int]:
        out: set[int] = set()
        state, count = -1 if node.dfa.is_empty else 0, 0
        while state >= 0:
            if node.dfa.accepting[state] and within(count, node):
                out.add(place)
            read = self.char(node.encoding, place)
            if read is None:
                break
            char, place = read
            state, count = node.dfa.step(state, char), count + 1
        return out

    def char(self, encoding: str, place: int) -> tuple[str, int] | None:
        """The character that starts here, as UTF-8 or as JSON spells it inside a string, and where it ends."""
        first = self.text[place : place + 1]
        if encoding == "json" and (first < b" " or first == b'"'):
            return None
        for end in range(place + 1, min(place + 12, len(self.text)) + 1):
            piece = self.text[place:end]
            try:
                char = json.loads(b'"' + piece + b'"') if encoding == "json" else piece.decode()
            except ValueError:
                continue
            # The high half of a surrogate pair is only half of a character.
            if len(char) == 1 and not "\ud800" <= char <= "\udbff":
                return char, end
        return None

    def string(self, place: int) -> tuple[str, int] | None:
        """A JSON string that starts here: its decoded text, and where it ends."""
        if self.text[place : place + 1] != b'"':
            return None
        end = place + 1
        while end < len(self.text) and self.text[end] != ord('"'):
            end += 2 if self.text[end] == ord("\\") else 1
        return (json.loads(self.text[place : end + 1]), end + 1) if end < len(self.text) else None

    def repeat(self, node: Repeat, place: int) -> set[int]:
        out, places, count = set(), {place}, 0
        while places:
            if count >= node.low:
                if node.high is None and places <= out:
                    break
                out |= places
            if node.high is not None and count >= node.high:
                break
            places = {end for start in places for end in self.ends(node.node, start)}
            count += 1
        return out

    def object(self, node: Object, place: int) -> set[int]:
        if self.text[place : place + 1] != node.layout.opening:
            return set()
        none = Members(frozenset(), -1, frozenset())
        out = {end + 1 for end in self.ends(node.layout.empty, place + 1) if self.closes(node, end, none)}
        todo = [(end, none) for end in self.ends(node.layout.open, place + 1)]
        known = set(todo)
        while todo:
            start, members = todo.pop()
            for end, more in self.member(node, start, members):
                out |= {stop + 1 for stop in self.ends(node.layout.close, end) if self.closes(node, stop, more)}
                after = {(stop, more) for stop in self.ends(node.layout.comma, end)} - known
                known |= after
                todo += after
        return out

    def member(self, node: Object, place: int, members: Members) -> list[tuple[int, Members]]:
        """One key and its value: where it ends, and the members then; one for each class that it may be of."""
        found = self.string(place)
        if found is None or found[0] in members.seen or found[0] in node.excluded:
            return []
        name, end = found
        declared = [index for index, item in enumerate(node.properties) if item.name == name]
        seen = members.seen | {name}
        if declared:
            plain = json.dumps(name, ensure_ascii=False).encode()
            if (node.order == "schema" and declared[0] <= members.last) or (
                node.escapes == "canonical" and self.text[place:end] != plain
            ):
                return []
            ways = [(node.properties[declared[0]].value, Members(seen, declared[0], members.met))]
        else:
            last = len(node.properties)
            ways = [
                (item.value, Members(seen, last, members.met | ({index} if item.required else set())))
                for index, item in enumerate(node.others)
                if item.names.accepts(name)
            ]
        starts = self.ends(node.layout.colon, end) if ways else set()
        return [(stop, after) for value, after in ways for start in starts for stop in self.ends(value, start)]

    def closes(self, node: Object, place: int, members: Members) -> bool:
        seen = members.seen
        if self.text[place : place + 1] != node.layout.closing or not within(len(seen), node):
            return False
        return all(
            (item.name in seen or not item.required) and (item.name not in seen or item.needs <= seen)
            for item in node.properties
        ) and all(index in members.met for index, item in enumerate(node.others) if item.required)


def within(count: int, node: Any) -> bool:
    """Whether a count is in the node's interval."""
    return bool(node.low <= count and (node.high is None or count <= node.high))


def canonical(text: bytes) -> Any:
    """A JSON value in a form in which equal values are equal: 1 is 1.0, and not true."""

    def form(value: Any) -> Any:
        if isinstance(value, list):
            return ("array", tuple(map(form, value)))
        if isinstance(value, dict):
            return ("object", frozenset((name, form(item)) for name, item in value.items()))
        if isinstance(value, bool):
            return ("boolean", value)
        return ("number", Fraction(value)) if isinstance(value, (int, Decimal)) else value

    return form(json.loads(text, parse_float=Decimal))
