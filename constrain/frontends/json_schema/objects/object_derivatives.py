"""Objects with clauses, written by derivatives: what may follow a member is the case that is left (Brzozowski).

A state is the case of the members that may still come. A member is a key and a set of its values; of all conditions
on the values of that key which stand in clauses, it asserts some, and the ways whose condition is not asserted are
gone. Undeclared keys are told apart by classes, languages that every condition on names holds wholly or not at all,
so that one name stands for a class. A state that no object is in is never entered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from ....automata.dfa import Dfa
from ....base.errors import LimitError
from ....base.options import Style
from ....base.work import spend
from ....grammar.nodes import EMPTY, Choice, JsonString, Literal, Member, Node, Rule, Unique
from ..algebra.schema_sets import ANY, NEVER, Lits
from ..strings.string_languages import Lang, Languages, any_text
from ..whitespace import spacing
from .format_keys import choice_of, sequence_of, spell_key
from .member_demands import FEW
from .object_cases import ANY_OBJECT, NO_NAMES, Algebra, Cell, ObjectCase, look_up, narrow

__all__ = ["Factored", "Left", "NotDerived", "children", "emit", "more", "settle"]

MOST_CLASSES = 64
"""Classes of undeclared keys."""


KEY_ORDERS = ("schema",)
"""Values of Style.key_order with which objects are written by derivatives. Where keys may come in any order, the cases
that may be left are as many as the sets of keys, and steps that make them are slow."""
MOST_AT_ONCE = 10_000
"""Cases in clauses times members that may come first: what one step may have to look at."""


class Members(Algebra, Protocol):
    """What is asked about the members of an object."""

    style: Style

    def possible(self, case: ObjectCase) -> bool: ...


class KeyClass(NamedTuple):
    """Undeclared keys of which every condition on names holds all or none. name: one of them, which stands for all."""

    name: str
    dfa: Dfa


class Factored(NamedTuple):
    """A settled case with clauses. names: declared keys, in order; classes: of other keys that may be there."""

    case: ObjectCase
    names: tuple[str, ...]
    classes: tuple[KeyClass, ...]
    algebra: Members


def settle(case: ObjectCase, algebra: Members) -> Factored:
    """A case with clauses, with the keys that it can have."""
    if algebra.style.key_order not in KEY_ORDERS:
        raise _refuse("keys in any order", algebra)
    declared: dict[str, bool] = {}
    langs: dict[Lang, None] = {}
    is_open = any(algebra.nonempty(lits) for _, lits in case.cells)
    for one in _all_cases(case):
        for name, _ in one.names:
            declared[name] = declared.get(name, True) and name in one.mentioned
        langs.update(dict.fromkeys(lang for lang, _ in (*one.cells, *one.somes)))
    if is_open:
        told = [
            payload for lang in langs for _, kind, payload in lang if kind == "texts" and isinstance(payload, tuple)
        ]
        declared = dict.fromkeys((name for texts in told for name in texts), True) | declared
    names = sorted(declared, key=declared.__getitem__)  # Those that no `properties` mention come last.
    classes: list[KeyClass] = []
    for kind in _classes(case, names, list(langs), algebra) if is_open else ():
        if kind.dfa.count(FEW + 1) <= FEW:
            names += kind.dfa.enumerate(FEW)
        else:
            classes.append(kind)
    found = Factored(_normal(case), tuple(names), tuple(classes), algebra)
    keys = (*names, *(kind.name for kind in classes))
    steps = sum(1 for key in keys for _ in choices(case, key, algebra))
    if steps * sum(1 for _ in _all_cases(case)) > MOST_AT_ONCE:
        raise _refuse(f"{steps} members to choose from", algebra)
    return found


def _classes(case: ObjectCase, names: list[str], langs: list[Lang], algebra: Members) -> Iterator[KeyClass]:
    """Classes of the undeclared keys that may be there. LimitError where one may be used up."""
    parts = [any_text().subtract(Dfa.from_strings(names)) if names else any_text()]
    # An undeclared name is in none of the lists of texts.
    open_ones = [lang for lang in langs if not any(sign and kind == "texts" for sign, kind, _ in lang)]
    for lang in dict.fromkeys(frozenset(atom for atom in lang if atom[1] != "texts") for lang in open_ones):
        if algebra.languages.irregular(lang):
            raise _refuse("keys of a format that is no regular language", algebra)
        parts = _split(parts, algebra.languages.dfa(lang), algebra) if lang else parts
    most = max(one.low for one in _all_cases(case))
    demands = [lang for one in _all_cases(case) for lang, _ in one.somes]
    for part in parts:
        name = part.enumerate(1)[0]
        if not algebra.nonempty(look_up(case.cells, name, algebra.languages)):
            continue
        if part.lengths()[1] is not None and part.count(FEW + 1) > FEW:
            # Without a demand every member counts alike, so the class is not used up before it is no longer needed.
            if part.count(most + 1) <= most or any(algebra.languages.accepts(lang, name) for lang in demands):
                raise _refuse("demands on a large but finite class of keys", algebra)
        yield KeyClass(name, part)


class NotDerived(Exception):
    """A case cannot be written by derivatives. error: what to raise if it cannot be written otherwise."""

    def __init__(self, error: LimitError) -> None:
        self.error = error


def _refuse(cause: str, algebra: Members) -> NotDerived:
    return NotDerived(
        LimitError(
            f"This combination of alternatives has more than {algebra.limits.cases} cases, with {cause}.",
            pointer=algebra.refuse("", "").pointer,
            hint="Raise Limits.cases, or write fewer alternatives side by side.",
        )
    )


def _split(parts: list[Dfa], dfa: Dfa, algebra: Members) -> list[Dfa]:
    """Classes of names by one more language."""
    most = algebra.limits.dfa_states
    found = [part.intersect(dfa, max_states=most) for part in parts]
    found += [part.subtract(dfa, max_states=most) for part in parts]
    found = [part for part in found if not part.is_empty]
    if len(found) > MOST_CLASSES:
        raise _refuse(f"more than {MOST_CLASSES} classes of keys", algebra)
    return found


def _all_cases(case: ObjectCase) -> Iterator[ObjectCase]:
    """The case, and those in its clauses."""
    yield case
    for clause in case.clauses:
        for way in clause:
            yield from _all_cases(way)


def _normal(case: ObjectCase) -> ObjectCase:
    """The case without order, and with a clause for each key that needs another: it is not there, or the other is."""
    clauses = [tuple(_normal(way) for way in clause) for clause in case.clauses]
    for name, needed in case.needs:
        absent = ObjectCase(((name, NEVER),))
        clauses += [(absent, ObjectCase(((other, ANY),), frozenset((other,)))) for other in sorted(needed)]
    return case._replace(names=tuple(sorted(case.names)), mentioned=NO_NAMES, needs=(), clauses=tuple(clauses))


# ---- derivatives -----------------------------------------------------------------------------------------------


def lits_of(case: ObjectCase, key: str, languages: Languages) -> Lits:
    """The set of the values of a key."""
    for name, lits in case.names:
        if name == key:
            return lits
    return look_up(case.cells, key, languages)


def conditions(case: ObjectCase, key: str, algebra: Algebra) -> dict[Lits, None]:
    """Sets of values of a key that a way asks for, or a demand: the conditions that a member may meet or not."""
    out: dict[Lits, None] = {}
    for lang, wanted in case.somes:
        if algebra.languages.accepts(lang, key):
            out[wanted] = None
    for clause in case.clauses:
        for way in clause:
            out[lits_of(way, key, algebra.languages)] = None
            out.update(conditions(way, key, algebra))
    return out


def choices(case: ObjectCase, key: str, algebra: Members) -> Iterator[tuple[frozenset[Lits], Lits]]:
    """Sets of conditions that a value of a key may meet at once, the small ones first, and what values do."""
    own = lits_of(case, key, algebra.languages)
    if not algebra.nonempty(own):
        return
    open_ones = [lits for lits in conditions(case, key, algebra) if algebra.both(own, lits) not in (own, NEVER)]
    level: list[tuple[int, frozenset[Lits], Lits]] = [(0, frozenset(), own)]
    count = 0
    while level:
        after: list[tuple[int, frozenset[Lits], Lits]] = []
        for at, met, lits in level:
            yield met, lits
            count += 1
            spend(5, "a combination of alternatives")
            if count > algebra.limits.cases:
                raise _refuse(f"{len(open_ones)} conditions on the values of one key", algebra)
            for position in range(at, len(open_ones)):
                value = algebra.both(lits, open_ones[position])
                if value not in (lits, NEVER) and algebra.nonempty(value):
                    after.append((position + 1, met | {open_ones[position]}, value))
        level = after


def derive(case: ObjectCase, key: str, value: Lits, gone: frozenset[str], algebra: Algebra) -> ObjectCase | None:
    """What is left of a case after a member: a key with a value of a set. None if the member is not plainly allowed.

    gone: declared keys that can come no more.
    """
    lits = lits_of(case, key, algebra.languages)
    if lits != ANY and algebra.both(value, lits) != value:
        return None
    spend(5 + len(case.names) + len(case.clauses), "what follows a member")
    required = case.required - {key}
    if required & gone or case.high == 0:
        return None
    names = tuple((name, lits) for name, lits in case.names if name not in gone)
    somes = tuple(some for some in case.somes if not _meets(key, value, some, algebra))
    clauses: list[tuple[ObjectCase, ...]] = []
    for clause in case.clauses:
        kept = dict.fromkeys(derive(way, key, value, gone, algebra) for way in clause)
        ways = tuple(way for way in kept if way is not None)
        if not ways:
            return None
        if not any(map(_is_anything, ways)):
            clauses.append(ways)
    high = None if case.high is None else case.high - 1
    return ObjectCase(
        names, required, NO_NAMES, case.cells, max(0, case.low - 1), high, (), somes,
        tuple(dict.fromkeys(clauses)),
    )  # fmt: skip


def _meets(key: str, value: Lits, some: Cell, algebra: Algebra) -> bool:
    lang, wanted = some
    return algebra.languages.accepts(lang, key) and algebra.both(value, wanted) == value


def _is_anything(case: ObjectCase) -> bool:
    """Whether a case plainly asks for nothing any more."""
    return case._replace(names=()) == ANY_OBJECT and not any(lits for _, lits in case.names)


def closes(case: ObjectCase) -> bool:
    """Whether the object may end here."""
    if case.low or case.required or case.somes:
        return False
    return all(any(map(closes, clause)) for clause in case.clauses)


# ---- writing ---------------------------------------------------------------------------------------------------


class Writer(Protocol):
    """What objects ask of the writer of values."""

    style: Style

    def value(self, lits: Lits, depth: int) -> Node: ...


class _Machine:
    """The states of one object, made when they are asked for. Equal only to itself."""

    def __init__(self, factored: Factored, depth: int, style: Style) -> None:
        self.factored = factored
        self.algebra = factored.algebra
        self.depth = depth
        self.style = style
        self.states = [factored.case]
        self._numbers = {factored.case: 0}
        self._alive: dict[int, bool] = {}
        self._goes_on: dict[int, bool] = {}
        self._steps: dict[tuple[int, str], list[tuple[Lits, int]]] = {}

    def number(self, case: ObjectCase) -> int:
        """The state of a case."""
        found = self._numbers.setdefault(case, len(self.states))
        if found == len(self.states):
            self.states.append(case)
        return found

    def alive(self, state: int) -> bool:
        """Whether the object can be finished from here."""
        known = self._alive.get(state)
        if known is None:
            case = self.states[state]
            known = self._alive[state] = closes(case) or self.algebra.possible(case)
        return known

    def goes_on(self, state: int) -> bool:
        """Whether another member may come, where the object can be finished: a member must, if it may not end."""
        known = self._goes_on.get(state)
        if known is None:
            case = self.states[state]
            known = not closes(case) or self.algebra.possible(case._replace(low=max(1, case.low)))
            self._goes_on[state] = known
        return known

    def steps(self, state: int, key: str) -> list[tuple[Lits, int]]:
        """The values that a key may have now, and the states after them."""
        known = self._steps.get((state, key))
        if known is None:
            known = self._steps[state, key] = list(self._find(state, key))
        return known

    def _find(self, state: int, key: str) -> Iterator[tuple[Lits, int]]:
        case = self.states[state]
        gone = self._gone(key)
        found: dict[int, list[frozenset[Lits]]] = {}
        for met, value in choices(case, key, self.algebra):
            after = derive(case, key, value, gone, self.algebra)
            if after is None:
                continue
            left = narrow(_forbid(after, gone), self.algebra)
            if left is None:
                continue
            number = self.number(left)
            fewer = found.setdefault(number, [])
            if not any(one <= met for one in fewer) and self.alive(number):
                fewer.append(met)
                yield value, number

    def _gone(self, key: str) -> frozenset[str]:
        """The declared keys that cannot come after a key."""
        names = self.factored.names
        if self.style.key_order == "schema":
            return frozenset(names[: names.index(key) + 1] if key in names else names)
        return frozenset((key,)).intersection(names)


def _forbid(case: ObjectCase, gone: frozenset[str]) -> ObjectCase:
    """The case without the keys that can come no more."""
    return case._replace(names=tuple(sorted((*case.names, *((name, NEVER) for name in gone)))))


class Left(NamedTuple):
    """The name of a rule: one member or more in a state."""

    machine: _Machine
    state: int


def children(factored: Factored) -> Iterator[Lits]:
    """All literal sets that a value can be written with."""
    case, names, classes, algebra = factored
    seen: dict[Lits, None] = {}
    for key in (*names, *(kind.name for kind in classes)):
        seen.update(dict.fromkeys(lits for _, lits in choices(case, key, algebra)))
    yield from seen


def emit(factored: Factored, writer: Writer, depth: int) -> Node:
    """The node of a settled case with clauses: an object at `depth`."""
    machine = _Machine(factored, depth, writer.style)
    layout = spacing(writer.style, depth).layout
    options: list[Node] = []
    if closes(factored.case):
        options.append(sequence_of(Literal(b"{"), layout.empty, Literal(b"}")))
    if machine.goes_on(0):
        options.append(
            sequence_of(Literal(b"{"), layout.open, Unique(Rule(Left(machine, 0))), layout.close, Literal(b"}"))
        )
    return choice_of(options)


def more(name: Left, writer: Writer) -> Node:
    """What such a rule stands for: a member, and what may come after it."""
    machine, state = name
    factored, style = machine.factored, writer.style
    keys = [(key, spell_key(key, style)) for key in factored.names]
    keys += [(kind.name, Member(JsonString(kind.dfa))) for kind in factored.classes]
    layout = spacing(style, machine.depth).layout
    options: list[Node] = []
    for key, spelled in keys:
        values = [
            sequence_of(writer.value(lits, machine.depth + 1), _rest(machine, after, layout.comma))
            for lits, after in machine.steps(state, key)
        ]
        if values:
            options.append(sequence_of(spelled, layout.colon, choice_of(values)))
    return choice_of(options)


def _rest(machine: _Machine, state: int, comma: Node) -> Node:
    """What may come after a member."""
    if not machine.goes_on(state):
        return EMPTY
    rest = sequence_of(comma, Rule(Left(machine, state)))
    return Choice((EMPTY, rest)) if closes(machine.states[state]) else rest
