"""Objects with keys of a format that is no regular language: members written by rules, their names told apart.

An `Object` node reads keys by automata, which cannot match parentheses. Here a rule stands for what may come after
some members: which declared keys there were, how many members, which required classes have one. Undeclared keys are
`Member`s of one `Unique`, so that the machine refuses a name that was there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....automata.dfa import Dfa
from ....base.errors import UnsupportedError
from ....base.options import Style
from ....grammar.nodes import EMPTY, Chars, Choice, JsonString, Literal, Member, Node, Rule, Sequence, Unique
from ..core.node_building import choice_of, sequence_of
from ..core.schema_sets import SchemaSet
from ..core.whitespace import spacing_at
from ..shapes.value_emitter import ValueEmitter
from ..strings.nested_regex_format import NestedTexts
from ..strings.string_languages import Language
from ..strings.string_sets import quote_text
from .normalised_object import NormalisedObject

__all__ = ["FormatMembers", "emit_format_object", "emit_next_format_member", "spell_key"]

QUOTE = Literal(b'"')
NONE: frozenset[str] = frozenset()


class _FormatKeyClass(NamedTuple):
    """Undeclared keys: what spells them, the set of their values, whether one must be there."""

    key: Node
    schemas: SchemaSet
    required: bool


class _FormatObject:
    """An object that is written by rules. Equal only to itself."""

    def __init__(self, case: NormalisedObject, classes: list[_FormatKeyClass], depth: int) -> None:
        self.case = case
        self.classes = classes
        self.depth = depth
        self.names = [name for name, _ in case.names]


class FormatMembers(NamedTuple):
    """The name of a rule: one member or more after some others.

    seen: declared keys that were there. at: declared keys before this one are past, in schema order. number: of
    members, no further than it matters. met: classes that have a member, by number.
    """

    ruled: _FormatObject
    seen: frozenset[str]
    at: int
    number: int
    met: frozenset[int]


def emit_format_object(case: NormalisedObject, emitter: ValueEmitter, depth: int) -> Node:
    """The node of a settled case: an object at `depth`."""
    ruled = _FormatObject(case, list(_classes(case, emitter)), depth)
    layout = spacing_at(emitter.style, depth).layout
    start = FormatMembers(ruled, NONE, 0, 0, frozenset())
    options: list[Node] = []
    if _closes(start):
        options.append(sequence_of(Literal(b"{"), layout.empty, Literal(b"}")))
    if any(True for _ in _steps(start, emitter)):
        options.append(sequence_of(Literal(b"{"), layout.open, Unique(Rule(start)), layout.close, Literal(b"}")))
    return choice_of(options)


def emit_next_format_member(name: FormatMembers, emitter: ValueEmitter) -> Node:
    """What such a rule stands for: a member, and what may come after it."""
    layout = spacing_at(emitter.style, name.ruled.depth).layout
    options: list[Node] = []
    for key, schemas, after in _steps(name, emitter):
        value = emitter.value(schemas, name.ruled.depth + 1)
        rest: Node = EMPTY
        if any(True for _ in _steps(after, emitter)):
            rest = sequence_of(layout.comma, Rule(after))
            if _closes(after):
                rest = Choice((EMPTY, rest))
        options.append(sequence_of(key, layout.colon, value, rest))
    return choice_of(options)


def _classes(case: NormalisedObject, emitter: ValueEmitter) -> Iterator[_FormatKeyClass]:
    """The classes of undeclared keys. UnsupportedError where one may be used up."""
    languages = emitter.languages
    declared = tuple(sorted((*(name for name, _ in case.names), *case.forbidden)))
    cells = [(cell, False) for cell in case.cells if cell not in case.classes]
    for (lang, schemas), required in (*cells, *((cell, True) for cell in case.classes)):
        told: Language = lang | {(False, "texts", declared)} if declared else lang  # type: ignore[assignment]
        nested = languages.nested(told)
        if isinstance(nested, NestedTexts):
            if nested.is_empty:
                continue
            if not nested.is_endless():
                raise UnsupportedError(
                    "Keys of the format 'regex' beside conditions that may leave only so many of them.",
                    hint="Drop the other conditions on the names, or use a pattern instead of the format.",
                )
            key: Node = Sequence((QUOTE, nested.node(), QUOTE))
        else:
            dfa = languages.dfa(told) if nested is None else nested
            if dfa.is_empty:
                continue
            if dfa.lengths()[1] is not None:
                raise UnsupportedError(
                    "A finite class of keys beside keys of the format 'regex'.",
                    hint="Name these keys in `properties`, or use a pattern instead of the format.",
                )
            key = JsonString(dfa)
        yield _FormatKeyClass(Member(key), schemas, required)


def _closes(state: FormatMembers) -> bool:
    """Whether the object may end here."""
    return state.number >= state.ruled.case.low and not _owed(state) and not _unmet(state)


def _owed(state: FormatMembers) -> set[str]:
    """Declared keys that must still come."""
    case = state.ruled.case
    owed = set(case.required).union(*(case.needs.get(name, NONE) for name in state.seen))
    return owed - state.seen


def _unmet(state: FormatMembers) -> int:
    """How many classes must still have a member."""
    return sum(kind.required and k not in state.met for k, kind in enumerate(state.ruled.classes))


def _can_finish(state: FormatMembers, style: Style) -> bool:
    """Whether the object can be finished from here."""
    ruled, case = state.ruled, state.ruled.case
    owed = _owed(state)
    left = set(ruled.names[state.at :]) if style.key_order == "schema" else set(ruled.names)
    if not owed <= left:
        return False
    if case.high is not None and state.number + len(owed) + _unmet(state) > case.high:
        return False
    return bool(ruled.classes) or state.number + len(left - state.seen) >= case.low


def _steps(state: FormatMembers, emitter: ValueEmitter) -> Iterator[tuple[Node, SchemaSet, FormatMembers]]:
    """The members that may come next, such that the object can be finished after them."""
    ruled, case, style = state.ruled, state.ruled.case, emitter.style
    ordered = style.key_order == "schema"
    count = min(state.number + 1, case.low) if case.high is None else state.number + 1
    for number, (name, schemas) in enumerate(case.names):
        if name in state.seen or (ordered and number < state.at):
            continue
        after = FormatMembers(ruled, state.seen | {name}, number + 1 if ordered else 0, count, state.met)
        if _can_finish(after, style):
            yield spell_key(name, style), schemas, after
    for number, kind in enumerate(ruled.classes):
        met = state.met | {number} if kind.required else state.met
        after = FormatMembers(ruled, state.seen, len(case.names) if ordered else 0, count, met)
        if _can_finish(after, style):
            yield kind.key, kind.schemas, after


def spell_key(name: str, style: Style) -> Node:
    """What spells a declared key."""
    if style.escapes == "canonical":
        return Literal(quote_text(name))
    return Sequence((QUOTE, Chars(Dfa.from_strings([name]), "json"), QUOTE))
