"""Objects with keys of a format that is no regular language: members written by rules.

An `Object` node reads keys by automata, which cannot match parentheses. Here a rule stands for what may come after some
members: the declared keys so far, the number of members, the required classes that have one. Undeclared keys are
`Member`s of one `Unique` node, so that the engine refuses a repeated name.
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
    """Undeclared keys: the node that spells them, the set of their values, whether one is required."""

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

    seen: declared keys so far. at: in schema order, the index of the first declared key that may still come. number: of
    members, capped where more makes no difference. met: indices of the classes that have a member.
    """

    ruled: _FormatObject
    seen: frozenset[str]
    at: int
    number: int
    met: frozenset[int]


def emit_format_object(case: NormalisedObject, emitter: ValueEmitter, depth: int) -> Node:
    """Return the node of a normalised case: an object at `depth`."""
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
    """Return the node of a rule of this module: a member, and what may come after it."""
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
    """Yield the classes of undeclared keys. Raise UnsupportedError where the keys of one may be used up."""
    languages = emitter.languages
    declared = tuple(sorted((*(name for name, _ in case.names), *case.forbidden)))
    cells = [(cell, False) for cell in case.cells if cell not in case.classes]
    for (lang, schemas), required in (*cells, *((cell, True) for cell in case.classes)):
        excluded_lang: Language = lang | {(False, "texts", declared)} if declared else lang  # type: ignore[assignment]
        nested = languages.nested(excluded_lang)
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
            dfa = languages.dfa(excluded_lang) if nested is None else nested
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
    """Return whether the object may end here."""
    return state.number >= state.ruled.case.low and not _missing_keys(state) and not _unmet(state)


def _missing_keys(state: FormatMembers) -> set[str]:
    """Return the declared keys that are still required."""
    case = state.ruled.case
    missing = set(case.required).union(*(case.needs.get(name, NONE) for name in state.seen))
    return missing - state.seen


def _unmet(state: FormatMembers) -> int:
    """Return how many classes still need a member."""
    return sum(kind.required and k not in state.met for k, kind in enumerate(state.ruled.classes))


def _can_finish(state: FormatMembers, style: Style) -> bool:
    """Return whether the object can be finished from here."""
    ruled, case = state.ruled, state.ruled.case
    missing = _missing_keys(state)
    left = set(ruled.names[state.at :]) if style.key_order == "schema" else set(ruled.names)
    if not missing <= left:
        return False
    if case.high is not None and state.number + len(missing) + _unmet(state) > case.high:
        return False
    return bool(ruled.classes) or state.number + len(left - state.seen) >= case.low


def _steps(state: FormatMembers, emitter: ValueEmitter) -> Iterator[tuple[Node, SchemaSet, FormatMembers]]:
    """Yield the members that may come next, such that the object can be finished after them."""
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
    """Return the node that spells a declared key."""
    if style.escapes == "canonical":
        return Literal(quote_text(name))
    return Sequence((QUOTE, Chars(Dfa.from_strings([name]), "json"), QUOTE))
