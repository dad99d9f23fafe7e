"""Arrays: `items`, `prefixItems`, `additionalItems`, `minItems`, `maxItems`, `contains`; `uniqueItems` where decided.

An `ArrayCase` is the literal sets of the first items, that of the rest, and an interval of lengths. `somes` are
demands that at least one item from a position on is in a set: `contains`, and what NOT makes of `items`. `settle`
turns a case into cases without dead ends, `emit` writes one: '[' items ']' with the rest counted, never unrolled.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ...errors import UnsupportedError
from ...grammar.nodes import EMPTY, Choice, Literal, Node, Repeat, Sequence
from ...style import Style
from .literals import ANY, NEVER, Lits, narrower
from .spacing import spacing

__all__ = ["ANY_ARRAY", "ArrayCase", "complement", "emit", "meet", "own", "settle"]


class ArrayCase(NamedTuple):
    """Items: `prefix`, then `rest`; low <= number of items <= high (None: no bound).

    somes: (from, set): at least one item at position `from` or later is in the set. unique: no two items are equal.
    """

    prefix: tuple[Lits, ...] = ()
    rest: Lits = ANY
    low: int = 0
    high: int | None = None
    somes: tuple[tuple[int, Lits], ...] = ()
    unique: bool = False


ANY_ARRAY = ArrayCase()

FIELDS = frozenset(
    ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains")
)
"""The fields that this room reads."""


class Algebra(Protocol):
    """What arrays ask about their children."""

    def nonempty(self, lits: Lits) -> bool: ...
    def opposite(self, lits: Lits) -> Lits: ...
    def both(self, one: Lits, other: Lits) -> Lits: ...
    def values(self, lits: Lits) -> tuple[Any, ...] | None: ...
    def refuse(self, cause: str, field: str) -> UnsupportedError: ...


def own(facts: dict[str, Any]) -> ArrayCase:
    """The case that a subschema's own keywords make."""
    items = facts.get("items", ANY)
    prefix = facts.get("prefixItems", ())
    if isinstance(items, list):  # Before 2020-12 a list of items is the prefix, and additionalItems the rest.
        prefix, items = tuple(items), facts.get("additionalItems", ANY)
    low, high = facts.get("minItems", 0), facts.get("maxItems")
    somes: tuple[tuple[int, Lits], ...] = ()
    if "contains" in facts and facts.get("minContains", 1) > 0:
        somes = ((0, facts["contains"]),)
    return tidy(ArrayCase(prefix, items, low, high, somes, facts.get("uniqueItems", False)))


def tidy(case: ArrayCase) -> ArrayCase:
    """The same case in one form: no prefix that the rest or the bound makes idle."""
    prefix, rest, high = case.prefix, case.rest, case.high
    if NEVER in prefix:
        prefix = prefix[: prefix.index(NEVER)]
        rest = NEVER
    if rest == NEVER and (high is None or high > len(prefix)):
        high = len(prefix)
    if high is not None and high <= len(prefix):
        prefix, rest = prefix[:high], NEVER
    else:
        least = max((start for start, _ in case.somes if start <= len(prefix)), default=0)
        while len(prefix) > least and prefix[-1] == rest:
            prefix = prefix[:-1]
    return case._replace(prefix=prefix, rest=rest, high=high)


def meet(one: ArrayCase, other: ArrayCase, algebra: Algebra) -> ArrayCase | None:
    """Arrays of both; None if lengths alone exclude all."""
    size = max(len(one.prefix), len(other.prefix))
    left = one.prefix + (one.rest,) * (size - len(one.prefix))
    right = other.prefix + (other.rest,) * (size - len(other.prefix))
    low = max(one.low, other.low)
    high = one.high if other.high is None else other.high if one.high is None else min(one.high, other.high)
    somes = tuple(dict.fromkeys(one.somes + other.somes))
    case = tidy(
        ArrayCase(
            tuple(map(algebra.both, left, right)), algebra.both(one.rest, other.rest), low, high, somes,
            one.unique or other.unique,
        )
    )  # fmt: skip
    return case if case.high is None or case.low <= case.high else None


def within(case: ArrayCase, other: ArrayCase) -> bool:
    """Whether every array of the case is plainly one of the other."""
    if case.low < other.low or (other.high is not None and (case.high is None or case.high > other.high)):
        return False
    if (other.unique and not case.unique) or not set(other.somes) <= set(case.somes):
        return False
    size = max(len(case.prefix), len(other.prefix))
    mine = (*case.prefix, *(case.rest,) * (size - len(case.prefix)), case.rest)
    yours = (*other.prefix, *(other.rest,) * (size - len(other.prefix)), other.rest)
    return all(map(narrower, mine, yours))


def complement(case: ArrayCase, algebra: Algebra) -> list[ArrayCase]:
    """Arrays that are not of the case: one case for each way to fail."""
    if case.unique:
        raise algebra.refuse("The complement of uniqueItems is not supported yet.", "uniqueItems")
    out: list[ArrayCase] = []
    if case.low:
        out.append(ArrayCase(high=case.low - 1, rest=ANY if case.low > 1 else NEVER))
    for position, lits in enumerate(case.prefix):
        if lits != ANY:
            out.append(ArrayCase((ANY,) * position + (algebra.opposite(lits),), ANY, position + 1))
    if case.high is not None:
        out.append(ArrayCase(low=case.high + 1))
    if case.rest not in (ANY, NEVER):
        out.append(ArrayCase(somes=((len(case.prefix), algebra.opposite(case.rest)),)))
    for start, lits in case.somes:
        out.append(ArrayCase((ANY,) * start, algebra.opposite(lits)))
    return [tidy(item) for item in out]


# ---- what remains when nothing in it is empty ------------------------------------------------------------------


def bound(case: ArrayCase, algebra: Algebra) -> int | None:
    """Most items, given that an item whose set is empty cannot be there. Looks no further than it must."""
    for position, lits in enumerate(case.prefix):
        if case.high is not None and position >= case.high:
            return case.high
        if not algebra.nonempty(lits):
            return position
    if (case.high is None or case.high > len(case.prefix)) and not algebra.nonempty(case.rest):
        return len(case.prefix)
    return case.high


def nonempty(case: ArrayCase, algebra: Algebra) -> bool:
    """Whether there is such an array."""
    if case.high is not None and case.low > case.high:
        return False
    if not case.somes and (not case.unique or case.low <= 1):
        # Only the items that must be there matter, and all of them have to be possible.
        return all(map(algebra.nonempty, case.prefix[: case.low])) and (
            case.low <= len(case.prefix) or algebra.nonempty(case.rest)
        )
    return bool(settle(case, algebra))


def settle(case: ArrayCase, algebra: Algebra) -> list[ArrayCase]:
    """The same arrays as cases of non-empty items; `somes` at most one, and only about the rest."""
    out: list[ArrayCase] = []
    for placed in _place(case, algebra):
        high = bound(placed, algebra)
        if high is not None and placed.low > high:
            continue
        placed = tidy(placed._replace(high=high))
        if placed.somes:
            ((_, lits),) = placed.somes
            if placed.high is not None and placed.high <= len(placed.prefix):
                continue
            if not algebra.nonempty(algebra.both(placed.rest, lits)):
                continue
            placed = placed._replace(low=max(placed.low, len(placed.prefix) + 1))
            if (placed.low if placed.high is None else placed.high) - len(placed.prefix) > MOST_PLACES:
                raise algebra.refuse("`contains` beside so large a bound on the number of items.", "contains")
        if placed.unique and (placed.high is None or placed.high > 1):
            if _apart(placed, algebra):
                placed = placed._replace(unique=False)
            else:
                values = None if placed.prefix or placed.somes else algebra.values(placed.rest)
                if values is None:
                    raise algebra.refuse(
                        "uniqueItems is enforced only where the items are one of few constants.", "uniqueItems"
                    )
                if placed.low > len(values):
                    continue
        out.append(placed)
    return out


def _place(case: ArrayCase, algebra: Algebra) -> list[ArrayCase]:
    """Cases whose `somes` are about the rest only: each demand is met in the prefix or after it."""
    done: list[ArrayCase] = []
    todo = [case]
    while todo:
        case = todo.pop(0)
        size = max([len(case.prefix), *(start for start, _ in case.somes)])
        case = case._replace(prefix=case.prefix + (case.rest,) * (size - len(case.prefix)))
        for start, lits in case.somes:
            if algebra.both(case.rest, lits) == case.rest and start >= len(case.prefix):
                case = case._replace(low=max(case.low, start + 1))  # Any item at all will do.
        somes = tuple(some for some in case.somes if not _served(case, some, algebra))
        early = next((some for some in somes if some[0] < size), None)
        if early is None:
            if len(somes) > 1:
                raise algebra.refuse("Several demands of the kind `contains` on one array.", "contains")
            done.append(case._replace(somes=somes))
            continue
        start, lits = early
        others = tuple(some for some in somes if some != early)
        for position in range(start, size):
            prefix = list(case.prefix)
            prefix[position] = algebra.both(prefix[position], lits)
            todo.append(case._replace(prefix=tuple(prefix), low=max(case.low, position + 1), somes=others))
        todo.append(case._replace(somes=(*others, (size, lits))))
        if len(todo) + len(done) > 256:
            raise algebra.refuse("Too many ways to meet `contains`.", "contains")
    return done


def _served(case: ArrayCase, some: tuple[int, Lits], algebra: Algebra) -> bool:
    """Whether an item that must be there meets the demand anyway."""
    start, lits = some
    if any(algebra.both(item, lits) == item for item in case.prefix[start : case.low]):
        return True
    return case.low > max(start, len(case.prefix)) and algebra.both(case.rest, lits) == case.rest


def _apart(case: ArrayCase, algebra: Algebra) -> bool:
    """Whether no two items can be equal."""
    if case.high is None or case.high > 64:
        return False
    items = list(case.prefix[: case.high]) + [case.rest] * (case.high - len(case.prefix))
    return not any(
        algebra.nonempty(algebra.both(one, other)) for position, one in enumerate(items) for other in items[:position]
    )


# ---- writing ---------------------------------------------------------------------------------------------------


class Writer(Protocol):
    """What arrays ask of the writer of values."""

    style: Style

    def value(self, lits: Lits, depth: int) -> Node: ...
    def unique(self, lits: Lits, low: int, high: int | None, depth: int) -> Node: ...
    def both(self, one: Lits, other: Lits) -> Lits: ...


OPEN, CLOSE = Literal(b"["), Literal(b"]")
MOST_PLACES = 64
"""Most positions at which the item that meets a demand may be, where the number of items is bounded."""


def emit(case: ArrayCase, writer: Writer, depth: int) -> Node:
    """The node of a settled case: an array at `depth`."""
    space = spacing(writer.style, depth)
    nothing = Sequence((OPEN, space.empty, CLOSE))
    if case.high == 0:
        return nothing
    options: list[Node] = [nothing] if case.low == 0 else []
    for items in _runs(case, writer, depth + 1):
        options.append(Sequence((OPEN, space.open, items, space.close, CLOSE)))
    return options[0] if len(options) == 1 else Choice(tuple(options))


def _runs(case: ArrayCase, writer: Writer, depth: int) -> list[Node]:
    """One item or more, with commas between."""
    comma = spacing(writer.style, depth - 1).comma
    size = len(case.prefix)
    low, high = max(case.low, 1), case.high
    if case.unique and (high is None or high > 1):
        return [writer.unique(case.rest, low, high, depth)]
    if case.somes:
        return _runs_with_some(case, writer, depth)
    first = [writer.value(lits, depth) for lits in case.prefix]
    tail: Node = EMPTY
    if high is None or high > size:
        rest = writer.value(case.rest, depth)
        if not first:
            return [_sequence(rest, repeat(_sequence(comma, rest), low - 1, None if high is None else high - 1))]
        tail = repeat(_sequence(comma, rest), max(0, low - size), None if high is None else high - size)
    for position in range(size - 1, 0, -1):
        tail = _sequence(comma, first[position], tail)
        if position >= low:
            tail = Choice((EMPTY, tail))
    return [_sequence(first[0], tail)]


def _runs_with_some(case: ArrayCase, writer: Writer, depth: int) -> list[Node]:
    """Prefix, then items of which one at least is in the set: one of those is it, all others are free."""
    comma = spacing(writer.style, depth - 1).comma
    ((start, lits),) = case.somes
    size = len(case.prefix)
    assert start == size
    first = [writer.value(item, depth) for item in case.prefix]
    found = writer.value(writer.both(case.rest, lits), depth)
    rest = _sequence(comma, writer.value(case.rest, depth))
    room = None if case.high is None else case.high - size - 1
    low = max(0, case.low - size - 1)
    before = _sequence(writer.value(case.rest, depth), comma)
    last = low if room is None else room
    runs: list[Node] = []
    for place in range(last + 1):
        after = repeat(rest, max(0, low - place), None if room is None else room - place)
        many = room is None and place == last
        lead = repeat(before, place, None if many else place)
        runs.append(_joined(first, comma, _sequence(lead, found, after)))
    return runs


def _joined(first: list[Node], comma: Node, last: Node) -> Node:
    parts: list[Node] = []
    for node in first:
        parts += [node, comma]
    return _sequence(*parts, last)


def _sequence(*parts: Node) -> Node:
    """The parts one after the other, flat and without empty ones."""
    flat: list[Node] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Sequence) else () if part is EMPTY else (part,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def repeat(node: Node, low: int, high: int | None) -> Node:
    """`node` low to high times; nothing at all if high is 0."""
    return EMPTY if high == 0 else node if low == high == 1 else Repeat(node, low, high)
