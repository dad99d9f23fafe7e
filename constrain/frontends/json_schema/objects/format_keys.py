"""Objects with keys of a format that is no regular language: members written by rules, their names told apart.

An `Object` node reads keys by automata, which cannot match parentheses. Here a rule stands for what may come after
some members: which declared keys there were, how many members, which required classes have one. Undeclared keys are
`Member`s of one `Unique`, so that the machine refuses a name that was there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ....automata.dfa import Dfa
from ....base.errors import UnsupportedError
from ....base.options import Style
from ....grammar.nodes import EMPTY, Chars, Choice, JsonString, Literal, Member, Node, Rule, Sequence, Unique
from ..algebra.schema_sets import Lits
from ..strings.nested_regex_format import Nested
from ..strings.string_languages import Lang, Languages
from ..strings.string_sets import quoted
from ..whitespace import spacing

if TYPE_CHECKING:
    from .object_members import Settled

__all__ = ["Members", "choice_of", "emit", "more", "sequence_of", "spell_key"]

QUOTE = Literal(b'"')
NONE: frozenset[str] = frozenset()


class Writer(Protocol):
    """What objects ask of the writer of values."""

    style: Style
    languages: Languages

    def value(self, lits: Lits, depth: int) -> Node: ...


class _Class(NamedTuple):
    """Undeclared keys: what spells them, the set of their values, whether one must be there."""

    key: Node
    lits: Lits
    required: bool


class _Ruled:
    """An object that is written by rules. Equal only to itself."""

    def __init__(self, case: Settled, classes: list[_Class], depth: int) -> None:
        self.case = case
        self.classes = classes
        self.depth = depth
        self.names = [name for name, _ in case.names]


class Members(NamedTuple):
    """The name of a rule: one member or more after some others.

    seen: declared keys that were there. at: declared keys before this one are past, in schema order. number: of
    members, no further than it matters. met: classes that have a member, by number.
    """

    ruled: _Ruled
    seen: frozenset[str]
    at: int
    number: int
    met: frozenset[int]


def emit(case: Settled, writer: Writer, depth: int) -> Node:
    """The node of a settled case: an object at `depth`."""
    ruled = _Ruled(case, list(_classes(case, writer)), depth)
    layout = spacing(writer.style, depth).layout
    start = Members(ruled, NONE, 0, 0, frozenset())
    options: list[Node] = []
    if _closes(start):
        options.append(sequence_of(Literal(b"{"), layout.empty, Literal(b"}")))
    if any(True for _ in _steps(start, writer)):
        options.append(sequence_of(Literal(b"{"), layout.open, Unique(Rule(start)), layout.close, Literal(b"}")))
    return choice_of(options)


def more(name: Members, writer: Writer) -> Node:
    """What such a rule stands for: a member, and what may come after it."""
    layout = spacing(writer.style, name.ruled.depth).layout
    options: list[Node] = []
    for key, lits, after in _steps(name, writer):
        value = writer.value(lits, name.ruled.depth + 1)
        rest: Node = EMPTY
        if any(True for _ in _steps(after, writer)):
            rest = sequence_of(layout.comma, Rule(after))
            if _closes(after):
                rest = Choice((EMPTY, rest))
        options.append(sequence_of(key, layout.colon, value, rest))
    return choice_of(options)


def _classes(case: Settled, writer: Writer) -> Iterator[_Class]:
    """The classes of undeclared keys. UnsupportedError where one may be used up."""
    languages = writer.languages
    declared = tuple(sorted((*(name for name, _ in case.names), *case.forbidden)))
    cells = [(cell, False) for cell in case.cells if cell not in case.classes]
    for (lang, lits), required in (*cells, *((cell, True) for cell in case.classes)):
        told: Lang = lang | {(False, "texts", declared)} if declared else lang  # type: ignore[assignment]
        nested = languages.nested(told)
        if isinstance(nested, Nested):
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
        yield _Class(Member(key), lits, required)


def _closes(state: Members) -> bool:
    """Whether the object may end here."""
    return state.number >= state.ruled.case.low and not _owed(state) and not _unmet(state)


def _owed(state: Members) -> set[str]:
    """Declared keys that must still come."""
    case = state.ruled.case
    owed = set(case.required).union(*(case.needs.get(name, NONE) for name in state.seen))
    return owed - state.seen


def _unmet(state: Members) -> int:
    """How many classes must still have a member."""
    return sum(kind.required and k not in state.met for k, kind in enumerate(state.ruled.classes))


def _alive(state: Members, style: Style) -> bool:
    """Whether the object can be finished from here."""
    ruled, case = state.ruled, state.ruled.case
    owed = _owed(state)
    left = set(ruled.names[state.at :]) if style.key_order == "schema" else set(ruled.names)
    if not owed <= left:
        return False
    if case.high is not None and state.number + len(owed) + _unmet(state) > case.high:
        return False
    return bool(ruled.classes) or state.number + len(left - state.seen) >= case.low


def _steps(state: Members, writer: Writer) -> Iterator[tuple[Node, Lits, Members]]:
    """The members that may come next, such that the object can be finished after them."""
    ruled, case, style = state.ruled, state.ruled.case, writer.style
    ordered = style.key_order == "schema"
    count = min(state.number + 1, case.low) if case.high is None else state.number + 1
    for number, (name, lits) in enumerate(case.names):
        if name in state.seen or (ordered and number < state.at):
            continue
        after = Members(ruled, state.seen | {name}, number + 1 if ordered else 0, count, state.met)
        if _alive(after, style):
            yield spell_key(name, style), lits, after
    for number, kind in enumerate(ruled.classes):
        met = state.met | {number} if kind.required else state.met
        after = Members(ruled, state.seen, len(case.names) if ordered else 0, count, met)
        if _alive(after, style):
            yield kind.key, kind.lits, after


def spell_key(name: str, style: Style) -> Node:
    """What spells a declared key."""
    if style.escapes == "canonical":
        return Literal(quoted(name))
    return Sequence((QUOTE, Chars(Dfa.from_strings([name]), "json"), QUOTE))


def sequence_of(*parts: Node) -> Node:
    """The parts one after the other, flat and without empty ones."""
    flat: list[Node] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Sequence) else () if part is EMPTY else (part,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def choice_of(options: list[Node]) -> Node:
    """One of the options; the option itself if there is one only."""
    return options[0] if len(options) == 1 else Choice(tuple(options))
