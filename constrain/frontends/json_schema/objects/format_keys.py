"""Objects with keys of a format that is not a regular language: members written by rules.

An `Object` node reads keys by automata, which cannot match parentheses. Here each state is a rule: the declared keys so
far, the number of members, the required classes that have one. Undeclared keys are `Member`s of one `Unique` node, so
that the engine refuses a repeated name.
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
    members, capped where more makes no difference. satisfied: indices of the classes that have a member.
    """

    rule_object: _FormatObject
    seen: frozenset[str]
    at: int
    number: int
    satisfied: frozenset[int]


def emit_format_object(case: NormalisedObject, emitter: ValueEmitter, depth: int) -> Node:
    """Return the node of a normalised case: an object at `depth`."""
    rule_object = _FormatObject(case, list(_list_key_classes(case, emitter)), depth)
    layout = spacing_at(emitter.style, depth).layout
    start = FormatMembers(rule_object, NONE, 0, 0, frozenset())
    options: list[Node] = []
    if _may_close(start):
        options.append(sequence_of(Literal(b"{"), layout.empty, Literal(b"}")))
    if any(True for _ in _list_steps(start, emitter)):
        options.append(sequence_of(Literal(b"{"), layout.open, Unique(Rule(start)), layout.close, Literal(b"}")))
    return choice_of(options)


def emit_next_format_member(name: FormatMembers, emitter: ValueEmitter) -> Node:
    """Return the node of a rule of this module: a member, and what may come after it."""
    layout = spacing_at(emitter.style, name.rule_object.depth).layout
    options: list[Node] = []
    for key, schemas, after in _list_steps(name, emitter):
        value = emitter.value(schemas, name.rule_object.depth + 1)
        tail: Node = EMPTY
        if any(True for _ in _list_steps(after, emitter)):
            tail = sequence_of(layout.comma, Rule(after))
            if _may_close(after):
                tail = Choice((EMPTY, tail))
        options.append(sequence_of(key, layout.colon, value, tail))
    return choice_of(options)


def _list_key_classes(case: NormalisedObject, emitter: ValueEmitter) -> Iterator[_FormatKeyClass]:
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
                    "Keys of the format 'regex' are combined with conditions that may allow only finitely many.",
                    hint="Drop the other conditions on the names, or use a pattern instead of the format.",
                )
            key: Node = Sequence((QUOTE, nested.node(), QUOTE))
        else:
            dfa = languages.dfa(excluded_lang) if nested is None else nested
            if dfa.is_empty:
                continue
            if dfa.lengths()[1] is not None:
                raise UnsupportedError(
                    "A finite class of keys cannot be combined with keys of the format 'regex'.",
                    hint="Name these keys in `properties`, or use a pattern instead of the format.",
                )
            key = JsonString(dfa)
        yield _FormatKeyClass(Member(key), schemas, required)


def _may_close(state: FormatMembers) -> bool:
    """Return whether the object may end here."""
    return state.number >= state.rule_object.case.low and not _missing_keys(state) and not _count_unsatisfied(state)


def _missing_keys(state: FormatMembers) -> set[str]:
    """Return the declared keys that are still required."""
    case = state.rule_object.case
    missing = set(case.required).union(*(case.needs.get(name, NONE) for name in state.seen))
    return missing - state.seen


def _count_unsatisfied(state: FormatMembers) -> int:
    """Return how many classes still need a member."""
    return sum(kind.required and k not in state.satisfied for k, kind in enumerate(state.rule_object.classes))


def _can_finish(state: FormatMembers, style: Style) -> bool:
    """Return whether the object can be finished from here."""
    rule_object, case = state.rule_object, state.rule_object.case
    missing = _missing_keys(state)
    possible = set(rule_object.names[state.at :]) if style.key_order == "schema" else set(rule_object.names)
    if not missing <= possible:
        return False
    if case.high is not None and state.number + len(missing) + _count_unsatisfied(state) > case.high:
        return False
    return bool(rule_object.classes) or state.number + len(possible - state.seen) >= case.low


def _list_steps(state: FormatMembers, emitter: ValueEmitter) -> Iterator[tuple[Node, SchemaSet, FormatMembers]]:
    """Yield the members that may come next, such that the object can be finished after them."""
    rule_object, case, style = state.rule_object, state.rule_object.case, emitter.style
    ordered = style.key_order == "schema"
    count = min(state.number + 1, case.low) if case.high is None else state.number + 1
    for number, (name, schemas) in enumerate(case.names):
        if name in state.seen or (ordered and number < state.at):
            continue
        after = FormatMembers(rule_object, state.seen | {name}, number + 1 if ordered else 0, count, state.satisfied)
        if _can_finish(after, style):
            yield spell_key(name, style), schemas, after
    for number, kind in enumerate(rule_object.classes):
        satisfied = state.satisfied | {number} if kind.required else state.satisfied
        after = FormatMembers(rule_object, state.seen, len(case.names) if ordered else 0, count, satisfied)
        if _can_finish(after, style):
            yield kind.key, kind.schemas, after


def spell_key(name: str, style: Style) -> Node:
    """Return the node that spells a declared key."""
    if style.escapes == "canonical":
        return Literal(quote_text(name))
    return Sequence((QUOTE, Chars(Dfa.from_strings([name]), "json"), QUOTE))
