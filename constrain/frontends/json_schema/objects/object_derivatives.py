"""Objects with clauses, written by derivatives (Brzozowski 1964): a state is the derivative of the case by its members.

A state is the case of the members that may still come. A member is a key and a set of its values; of all conditions on
the values of that key in the clauses it asserts some, and the alternatives whose condition it does not assert are
dropped. Undeclared keys are partitioned into classes on which every condition on names is constant (the atoms of a
boolean algebra), so that one name represents its class. A state without an object is never entered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....automata.dfa import Dfa
from ....base.errors import LimitError
from ....base.options import Style
from ....base.work import spend_work
from ....grammar.nodes import EMPTY, Choice, JsonString, Literal, Member, Node, Rule, Unique
from ..core.node_building import choice_of, sequence_of
from ..core.schema_sets import ANY, NEVER, SchemaSet
from ..core.whitespace import spacing_at
from ..shapes.object_case import ANY_OBJECT, NO_NAMES, Cell, ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.value_emitter import ValueEmitter
from ..strings.string_languages import Language, LanguageCache
from .format_keys import spell_key
from .member_constraints import MOST_SPELLED_NAMES
from .object_cases import look_up_name, propagate_units

__all__ = [
    "ClausalObject",
    "ClausalMembers",
    "NotDerivable",
    "list_clausal_children",
    "emit_clausal_object",
    "emit_next_clausal_member",
    "normalise_clausal_object",
]

MOST_CLASSES = 64
"""Classes of undeclared keys."""


KEY_ORDERS = ("schema",)
"""Values of Style.key_order with which objects are written by derivatives.

With keys in any order, there are as many derivatives as sets of keys, and computing them is slow.
"""
MOST_STEP_WORK = 10_000
"""Greatest product of cases in clauses and possible first members: the cost of one step."""


class KeyClass(NamedTuple):
    """Undeclared keys on which every condition on names is constant. name: a representative."""

    name: str
    dfa: Dfa


class ClausalObject(NamedTuple):
    """A normalised case with clauses. names: declared keys, in order; classes: of other keys that may be there."""

    case: ObjectCase
    names: tuple[str, ...]
    classes: tuple[KeyClass, ...]
    algebra: SchemaAlgebra


def normalise_clausal_object(case: ObjectCase, algebra: SchemaAlgebra) -> ClausalObject:
    """Return a case with clauses together with the keys that it can have. Raise NotDerivable."""
    if algebra.style.key_order not in KEY_ORDERS:
        raise _too_complex("keys in any order", algebra)
    declared: dict[str, bool] = {}
    langs: dict[Language, None] = {}
    is_open = any(algebra.is_satisfiable(schemas) for _, schemas in case.cells)
    for alternative in _iterate_cases(case):
        for name, _ in alternative.names:
            declared[name] = declared.get(name, True) and name in alternative.mentioned
        langs.update(dict.fromkeys(lang for lang, _ in (*alternative.cells, *alternative.existentials)))
    if is_open:
        named_texts = [
            payload for lang in langs for _, kind, payload in lang if kind == "texts" and isinstance(payload, tuple)
        ]
        declared = dict.fromkeys((name for texts in named_texts for name in texts), True) | declared
    names = sorted(declared, key=declared.__getitem__)  # Those that no `properties` mention come last.
    classes: list[KeyClass] = []
    for kind in _classes(case, names, list(langs), algebra) if is_open else ():
        if kind.dfa.count(MOST_SPELLED_NAMES + 1) <= MOST_SPELLED_NAMES:
            names += kind.dfa.enumerate(MOST_SPELLED_NAMES)
        else:
            classes.append(kind)
    normalised = ClausalObject(_normalise_clauses(case), tuple(names), tuple(classes), algebra)
    keys = (*names, *(kind.name for kind in classes))
    steps = sum(1 for key in keys for _ in list_choices(case, key, algebra))
    if steps * sum(1 for _ in _iterate_cases(case)) > MOST_STEP_WORK:
        raise _too_complex(f"{steps} members to choose from", algebra)
    return normalised


def _classes(case: ObjectCase, names: list[str], langs: list[Language], algebra: SchemaAlgebra) -> Iterator[KeyClass]:
    """Yield the classes of the possible undeclared keys. Raise NotDerivable for one that may be used up."""
    parts = [Dfa.any_text().subtract(Dfa.from_strings(names)) if names else Dfa.any_text()]
    # An undeclared name is in none of the lists of texts.
    open_langs = [lang for lang in langs if not any(sign and kind == "texts" for sign, kind, _ in lang)]
    for lang in dict.fromkeys(frozenset(atom for atom in lang if atom[1] != "texts") for lang in open_langs):
        if algebra.languages.irregular(lang):
            raise _too_complex("keys of a format that is not a regular language", algebra)
        parts = _split(parts, algebra.languages.dfa(lang), algebra) if lang else parts
    most = max(one.low for one in _iterate_cases(case))
    existentials = [lang for one in _iterate_cases(case) for lang, _ in one.existentials]
    for part in parts:
        name = part.enumerate(1)[0]
        if not algebra.is_satisfiable(look_up_name(case.cells, name, algebra.languages)):
            continue
        if part.lengths()[1] is not None and part.count(MOST_SPELLED_NAMES + 1) > MOST_SPELLED_NAMES:
            # Without a constraint all members count equally: the class is not used up while it is needed.
            if part.count(most + 1) <= most or any(algebra.languages.accepts(lang, name) for lang in existentials):
                raise _too_complex("constraints on a large but finite class of keys", algebra)
        yield KeyClass(name, part)


class NotDerivable(Exception):
    """A case cannot be written by derivatives. error: what to raise if it cannot be written otherwise."""

    def __init__(self, error: LimitError) -> None:
        self.error = error


def _too_complex(cause: str, algebra: SchemaAlgebra) -> NotDerivable:
    return NotDerivable(
        LimitError(
            f"This combination of alternatives has more than {algebra.limits.cases} cases, with {cause}.",
            pointer=algebra.unsupported("", "").pointer,
            hint="Raise Limits.cases, or write fewer alternatives side by side.",
        )
    )


def _split(parts: list[Dfa], dfa: Dfa, algebra: SchemaAlgebra) -> list[Dfa]:
    """Refine the partition of the names by one more language."""
    most = algebra.limits.dfa_states
    divided = [part.intersect(dfa, max_states=most) for part in parts]
    divided += [part.subtract(dfa, max_states=most) for part in parts]
    divided = [part for part in divided if not part.is_empty]
    if len(divided) > MOST_CLASSES:
        raise _too_complex(f"more than {MOST_CLASSES} classes of keys", algebra)
    return divided


def _iterate_cases(case: ObjectCase) -> Iterator[ObjectCase]:
    """Yield the case and those in its clauses."""
    yield case
    for clause in case.clauses:
        for alternative in clause:
            yield from _iterate_cases(alternative)


def _normalise_clauses(case: ObjectCase) -> ObjectCase:
    """Return the case without order, and with dependencies as clauses: a key is absent, or the other is present."""
    clauses = [tuple(_normalise_clauses(alternative) for alternative in clause) for clause in case.clauses]
    for name, needed in case.needs:
        absent = ObjectCase(((name, NEVER),))
        clauses += [(absent, ObjectCase(((other, ANY),), frozenset((other,)))) for other in sorted(needed)]
    return case._replace(names=tuple(sorted(case.names)), mentioned=NO_NAMES, needs=(), clauses=tuple(clauses))


# ---- derivatives -----------------------------------------------------------------------------------------------


def find_values_of_key(case: ObjectCase, key: str, languages: LanguageCache) -> SchemaSet:
    """Return the set of the values of a key."""
    for name, schemas in case.names:
        if name == key:
            return schemas
    return look_up_name(case.cells, key, languages)


def find_conditions(case: ObjectCase, key: str, algebra: SchemaAlgebra) -> dict[SchemaSet, None]:
    """Return the sets of values of a key that clauses or constraints test."""
    out: dict[SchemaSet, None] = {}
    for lang, tested in case.existentials:
        if algebra.languages.accepts(lang, key):
            out[tested] = None
    for clause in case.clauses:
        for alternative in clause:
            out[find_values_of_key(alternative, key, algebra.languages)] = None
            out.update(find_conditions(alternative, key, algebra))
    return out


def list_choices(
    case: ObjectCase, key: str, algebra: SchemaAlgebra
) -> Iterator[tuple[frozenset[SchemaSet], SchemaSet]]:
    """Yield the sets of conditions that a value of a key may satisfy together, small ones first, with these values."""
    own = find_values_of_key(case, key, algebra.languages)
    if not algebra.is_satisfiable(own):
        return
    conditions = [
        schemas
        for schemas in find_conditions(case, key, algebra)
        if algebra.intersect(own, schemas) not in (own, NEVER)
    ]
    level: list[tuple[int, frozenset[SchemaSet], SchemaSet]] = [(0, frozenset(), own)]
    count = 0
    while level:
        next_level: list[tuple[int, frozenset[SchemaSet], SchemaSet]] = []
        for first, satisfied, schemas in level:
            yield satisfied, schemas
            count += 1
            spend_work(5, "a combination of alternatives")
            if count > algebra.limits.cases:
                raise _too_complex(f"{len(conditions)} conditions on the values of one key", algebra)
            for position in range(first, len(conditions)):
                value = algebra.intersect(schemas, conditions[position])
                if value not in (schemas, NEVER) and algebra.is_satisfiable(value):
                    next_level.append((position + 1, satisfied | {conditions[position]}, value))
        level = next_level


def derive_case(
    case: ObjectCase, key: str, value: SchemaSet, passed: frozenset[str], algebra: SchemaAlgebra
) -> ObjectCase | None:
    """Return the derivative of a case by a member: a key with a value of a set. None if the member is not allowed.

    passed: declared keys that cannot come any more.
    """
    schemas = find_values_of_key(case, key, algebra.languages)
    if schemas != ANY and algebra.intersect(value, schemas) != value:
        return None
    spend_work(5 + len(case.names) + len(case.clauses), "what follows a member")
    required = case.required - {key}
    if required & passed or case.high == 0:
        return None
    names = tuple((name, schemas) for name, schemas in case.names if name not in passed)
    existentials = tuple(
        existential for existential in case.existentials if not _satisfies_existential(key, value, existential, algebra)
    )
    clauses: list[tuple[ObjectCase, ...]] = []
    for clause in case.clauses:
        derived = dict.fromkeys(derive_case(alternative, key, value, passed, algebra) for alternative in clause)
        alternatives = tuple(alternative for alternative in derived if alternative is not None)
        if not alternatives:
            return None
        if not any(map(_is_unconstrained, alternatives)):
            clauses.append(alternatives)
    high = None if case.high is None else case.high - 1
    return ObjectCase(
        names, required, NO_NAMES, case.cells, max(0, case.low - 1), high, (), existentials,
        tuple(dict.fromkeys(clauses)),
    )  # fmt: skip


def _satisfies_existential(key: str, value: SchemaSet, existential: Cell, algebra: SchemaAlgebra) -> bool:
    lang, wanted = existential
    return algebra.languages.accepts(lang, key) and algebra.intersect(value, wanted) == value


def _is_unconstrained(case: ObjectCase) -> bool:
    """Return whether a case has no condition any more."""
    return case._replace(names=()) == ANY_OBJECT and not any(schemas for _, schemas in case.names)


def may_close(case: ObjectCase) -> bool:
    """Return whether the object may end here."""
    if case.low or case.required or case.existentials:
        return False
    return all(any(map(may_close, clause)) for clause in case.clauses)


# ---- writing ---------------------------------------------------------------------------------------------------


class _ClausalMachine:
    """The states of one object, computed when they are reached. Equal only to itself."""

    def __init__(self, factored: ClausalObject, depth: int, style: Style) -> None:
        self.factored = factored
        self.algebra = factored.algebra
        self.depth = depth
        self.style = style
        self.states = [factored.case]
        self._numbers = {factored.case: 0}
        self._can_finish: dict[int, bool] = {}
        self._may_continue: dict[int, bool] = {}
        self._steps: dict[tuple[int, str], list[tuple[SchemaSet, int]]] = {}

    def number(self, case: ObjectCase) -> int:
        """Return the number of the state of a case."""
        number = self._numbers.setdefault(case, len(self.states))
        if number == len(self.states):
            self.states.append(case)
        return number

    def can_finish(self, state: int) -> bool:
        """Return whether the object can be finished from a state."""
        known = self._can_finish.get(state)
        if known is None:
            case = self.states[state]
            known = self._can_finish[state] = may_close(case) or self.algebra.is_case_possible(case)
        return known

    def may_continue(self, state: int) -> bool:
        """Return whether another member may come; one must if the object may not end."""
        known = self._may_continue.get(state)
        if known is None:
            case = self.states[state]
            known = not may_close(case) or self.algebra.is_case_possible(case._replace(low=max(1, case.low)))
            self._may_continue[state] = known
        return known

    def steps(self, state: int, key: str) -> list[tuple[SchemaSet, int]]:
        """Return the values that a key may have in a state, and the states after them."""
        known = self._steps.get((state, key))
        if known is None:
            known = self._steps[state, key] = list(self._find_steps(state, key))
        return known

    def _find_steps(self, state: int, key: str) -> Iterator[tuple[SchemaSet, int]]:
        case = self.states[state]
        passed = self._passed_keys(key)
        satisfied_by_state: dict[int, list[frozenset[SchemaSet]]] = {}
        for satisfied, value in list_choices(case, key, self.algebra):
            derived = derive_case(case, key, value, passed, self.algebra)
            if derived is None:
                continue
            remaining = propagate_units(_forbid(derived, passed), self.algebra)
            if remaining is None:
                continue
            number = self.number(remaining)
            smaller = satisfied_by_state.setdefault(number, [])
            if not any(other <= satisfied for other in smaller) and self.can_finish(number):
                smaller.append(satisfied)
                yield value, number

    def _passed_keys(self, key: str) -> frozenset[str]:
        """Return the declared keys that cannot come after a key."""
        names = self.factored.names
        if self.style.key_order == "schema":
            return frozenset(names[: names.index(key) + 1] if key in names else names)
        return frozenset((key,)).intersection(names)


def _forbid(case: ObjectCase, passed: frozenset[str]) -> ObjectCase:
    """Return the case that forbids the keys that cannot come any more."""
    return case._replace(names=tuple(sorted((*case.names, *((name, NEVER) for name in passed)))))


class ClausalMembers(NamedTuple):
    """The name of a rule: one member or more in a state."""

    machine: _ClausalMachine
    state: int


def list_clausal_children(factored: ClausalObject) -> Iterator[SchemaSet]:
    """Yield all sets with which a value can be written."""
    case, names, classes, algebra = factored
    children: dict[SchemaSet, None] = {}
    for key in (*names, *(kind.name for kind in classes)):
        children.update(dict.fromkeys(schemas for _, schemas in list_choices(case, key, algebra)))
    yield from children


def emit_clausal_object(factored: ClausalObject, emitter: ValueEmitter, depth: int) -> Node:
    """Return the node of a normalised case with clauses: an object at `depth`."""
    machine = _ClausalMachine(factored, depth, emitter.style)
    layout = spacing_at(emitter.style, depth).layout
    options: list[Node] = []
    if may_close(factored.case):
        options.append(sequence_of(Literal(b"{"), layout.empty, Literal(b"}")))
    if machine.may_continue(0):
        options.append(
            sequence_of(
                Literal(b"{"), layout.open, Unique(Rule(ClausalMembers(machine, 0))), layout.close, Literal(b"}")
            )
        )
    return choice_of(options)


def emit_next_clausal_member(name: ClausalMembers, emitter: ValueEmitter) -> Node:
    """Return the node of a rule of this module: a member, and what may come after it."""
    machine, state = name
    factored, style = machine.factored, emitter.style
    keys = [(key, spell_key(key, style)) for key in factored.names]
    keys += [(kind.name, Member(JsonString(kind.dfa))) for kind in factored.classes]
    layout = spacing_at(style, machine.depth).layout
    options: list[Node] = []
    for key, spelled in keys:
        values = [
            sequence_of(
                emitter.value(schemas, machine.depth + 1), _emit_remaining_members(machine, after, layout.comma)
            )
            for schemas, after in machine.steps(state, key)
        ]
        if values:
            options.append(sequence_of(spelled, layout.colon, choice_of(values)))
    return choice_of(options)


def _emit_remaining_members(machine: _ClausalMachine, state: int, comma: Node) -> Node:
    """Return what may come after a member."""
    if not machine.may_continue(state):
        return EMPTY
    tail = sequence_of(comma, Rule(ClausalMembers(machine, state)))
    return Choice((EMPTY, tail)) if may_close(machine.states[state]) else tail
