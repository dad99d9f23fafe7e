"""From nodes to Shapes: what a literal set allows, when somebody looks inside; and whether it allows anything.

A node is a formula over literal sets and one Shape of its own keywords (`formulas`); `unfold` computes the Shape of a
literal set with a memo, and NOT is pushed down to the leaves of the formula (De Morgan), so that only unions multiply.

JSON values are finite trees, so *non-empty* is a least fixpoint: a set that is asked about within its own question
counts as empty there, and an "empty" that leaned on such an assumption is not remembered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ....automata.dfa import Dfa
from ....base.errors import LimitError, SchemaError, UnsupportedError
from ....base.options import Limits, Style
from ....base.work import spend
from ..arrays import array_items
from ..arrays.array_cases import ArrayCase
from ..arrays.item_counts import Plan
from ..fresh_stack import continue_deeper
from ..numbers import number_sets
from ..numbers.number_sets import NumberCase
from ..objects import object_cases, object_members
from ..objects.enum_tries import Listed
from ..objects.object_derivatives import Factored
from ..reading.fast_checks import inside, surely
from ..reading.json_values import OBJECT, STRING, Constant
from ..reading.schema_parser import Node, Reader
from ..reading.static_types import TYPES, Static, disjoint, static
from ..reading.string_projection import Projection
from ..strings import string_sets
from ..strings.schema_patterns import located
from ..strings.string_languages import Lang, Languages, any_text
from ..strings.string_sets import StringCase
from .formulas import All, Formula, One, Own, Some, formula, own
from .schema_sets import ANY, NEVER, Lits, both
from .shape import ALL_NUMBERS, ALL_STRINGS, EVERYTHING, NOTHING, Shape, breadth, join, join_overlapping, meet, negate

__all__ = ["Algebra", "Circular", "Live"]

A = TypeVar("A")
T = TypeVar("T")


class Circular(Exception):
    """A node was looked into while it is being computed."""

    def __init__(self, node: Node) -> None:
        self.node = node


class Live(NamedTuple):
    """A Shape without empty cases; its arrays and objects are settled (`items.settle`, `members.settle`)."""

    scalars: int
    numbers: tuple[NumberCase, ...]
    strings: tuple[StringCase, ...]
    arrays: tuple[ArrayCase, ...]
    objects: tuple[object_members.Settled | Factored, ...]
    listed: tuple[Listed, ...] = ()


ANYTHING = Live(*EVERYTHING[:4], tuple(map(object_members.as_it_stands, EVERYTHING.objects)))

PLAIN = ((), ALL_NUMBERS, ALL_STRINGS)
"""Parts about which there is nothing to ask."""


UNEVALUATED = frozenset(("unevaluatedProperties", "unevaluatedItems"))
REF, DYNAMIC_REF = {"ref"}, {"dynamicRef"}
"""Fields of a node that only refers to another one."""


class _Choice(NamedTuple):
    """A literal whose node has `oneOf`, that node, and the literal that stands for it."""

    literal: int
    node: Node
    given: int


MANY_BRANCHES = 8
"""Branches of `oneOf` with texts by the rule beyond which one automaton counts how many of them hold."""


class Algebra:
    """The memo of one schema: shapes of literal sets, and which of them are empty."""

    def __init__(self, reader: Reader, style: Style, limits: Limits) -> None:
        self.reader = reader
        self.nodes = reader.nodes
        self.style = style
        self.limits = limits
        self.languages = Languages(limits, self._names, self.refuse)
        self._shapes: dict[Lits, Shape] = {ANY: EVERYTHING, NEVER: NOTHING}
        self._nonempty: dict[Lits, bool] = {ANY: True, NEVER: False}
        self._asked: dict[Lits, int] = {}
        self._leaned = 0
        self._busy: list[int] = []
        self._opposites: dict[Lits, Lits] = {ANY: NEVER, NEVER: ANY}
        self._static: dict[Lits, Static] = {}
        self._live: dict[Lits, Live] = {ANY: ANYTHING}
        self._both: dict[tuple[Lits, Lits], Lits] = {}
        self._any_of: dict[tuple[Constant, ...], Lits] = {}
        self._settling: list[Lits] = []
        self._no_strings: Lits | None = None
        self._projection = Projection(reader)
        self._level = 0

    # ---- shapes ------------------------------------------------------------------------------------------------

    def unfold(self, lits: Lits) -> Shape:
        """What a literal set allows. Circular if it is being computed already."""
        shape = self._shapes.get(lits)
        if shape is None:
            spend(30 + len(lits), "a combination of subschemas")
            shape = self._shapes[lits] = self._deeper(self._unfold, lits)
        return shape

    def _unfold(self, lits: Lits) -> Shape:
        return self._unfold_one(lits[0]) if len(lits) == 1 else self._unfold_set(lits)

    def _deeper(self, function: Callable[[A], T], argument: A) -> T:
        """Call a function one level further into the recursion of shapes."""
        self._level += 1
        try:
            return continue_deeper(self._level, function, argument)
        finally:
            self._level -= 1

    def _unfold_set(self, lits: Lits) -> Shape:
        """What several literals allow together: `oneOf` beside the others, which often tell its branches apart."""
        for literal in lits:
            known = self._as_one_of(literal)
            if known is not None:
                literal, node, given = known
                if literal in self._busy:
                    raise Circular(node)
                self._busy.append(literal)
                try:
                    said = formula(node, self)
                    assert isinstance(said, One)
                    context = tuple(other for other in lits if other != given)
                    if literal < 0:
                        return self._not_one_of(said, context)
                    return self._one_of(One(self.both(context, said.context), said.parts))
                finally:
                    self._busy.pop()
        return meet(*(self.unfold((literal,)) for literal in lits), algebra=self)

    def _as_one_of(self, literal: int) -> _Choice | None:
        """The node with `oneOf` that a literal stands for, through references, or its complement."""
        given, seen = literal, set()
        while literal not in seen:
            seen.add(literal)
            node = self.nodes[abs(literal)]
            if node is None:  # NEVER
                break
            facts = node.facts
            if "oneOf" in facts and UNEVALUATED.isdisjoint(facts):
                return _Choice(literal, node, given)
            [lits] = facts.values() if facts.keys() in (REF, DYNAMIC_REF) else [ANY]
            if len(lits) != 1 or lits == NEVER:
                break
            literal = lits[0] if literal > 0 else -lits[0]
        return None

    def _unfold_one(self, literal: int) -> Shape:
        node = self.nodes[abs(literal)]
        assert node is not None
        if literal in self._busy:
            raise Circular(node)
        self._busy.append(literal)
        try:
            return self._evaluate(formula(node, self), literal > 0)
        finally:
            self._busy.pop()

    def _evaluate(self, said: Formula, sign: bool) -> Shape:
        """The Shape of a formula, or of its complement."""
        if isinstance(said, Own):
            return said.shape if sign else negate(said.shape, self)
        if isinstance(said, One):
            return self._one_of(said) if sign else self._not_one_of(said)
        if isinstance(said, (All, Some)):
            if isinstance(said, All) == sign:
                return self._meet_parts(said.parts, sign)
            return join([self._evaluate(part, sign) for part in said.parts] or [NOTHING])
        return self.unfold(said if sign else self.opposite(said))

    def _meet_parts(self, parts: tuple[Formula, ...], sign: bool) -> Shape:
        """The Shape of a conjunction. A part that is being computed already does no harm beside an empty one."""
        shapes: list[Shape] = []
        circular: Circular | None = None
        for part in parts:
            try:
                shapes.append(self._evaluate(part, sign))
            except Circular as signal:  # A branch that is never taken, such as `then` of `"if": false`, may loop.
                circular = signal
        shape = meet(*shapes, algebra=self)
        if circular is None:
            return shape
        if self._any_case(shape):
            raise circular
        return NOTHING

    def _one_of(self, said: One) -> Shape:
        """Exactly one: each branch without those that it really overlaps."""
        ways: list[Shape] = []
        texts = self._one_text(said)
        if texts is not None:
            ways.append(NOTHING._replace(strings=texts))
            said = One(self.both(said.context, self._other_than_strings()), said.parts)
        context, branches = said
        overlaps = self._overlaps(said)
        for position, branch in enumerate(branches):
            held = self.both(context, branch)
            opposites = [self.opposite(branches[other]) for other in overlaps[position]]
            ways.append(self._all_of(held, opposites))
        return join_overlapping(ways, self) if any(overlaps) else join(ways or [NOTHING])

    def _all_of(self, held: Lits, others: list[Lits]) -> Shape:
        """What a set allows without some branches, which are the complements of `others`."""
        if any(self._as_one_of(literal) for lits in others for literal in lits):
            for lits in others:
                held = self.both(held, lits)
            return self.unfold(held)
        shapes = sorted(map(self.unfold, others), key=breadth)  # The small ones first, which may leave little.
        return meet(self.unfold(held), *shapes, algebra=self)

    def _not_one_of(self, said: One, within: Lits = ANY) -> Shape:
        """Of a set, what is not in the context of `oneOf`; or in no branch, or in two at least."""
        texts = self._one_text(said)
        if texts is not None:
            others = self._not_one_of(One(self.both(said.context, self._other_than_strings()), said.parts), within)
            left = negate(NOTHING._replace(strings=texts), self)._replace(scalars=0, numbers=(), arrays=(), objects=())
            return others._replace(strings=meet(left, self.unfold(within), algebra=self).strings)
        context, branches = said
        shape = self._all_of(within, [self.opposite(branch) for branch in branches])
        overlaps = self._overlaps(One(self.both(within, context), branches))
        pairs = [(one, other) for one in range(len(branches)) for other in overlaps[one] if one < other]
        outside = [self.unfold(self.both(within, self.opposite(context)))] if context else []
        shared = (self.unfold(self.both(within, both(branches[one], branches[other]))) for one, other in pairs)
        return join_overlapping([shape, *outside, *shared], self)

    def _one_text(self, said: One) -> tuple[StringCase, ...] | None:
        """The texts of the context that exactly one of many branches holds; None if these are better told pairwise."""
        context, branches = said
        if len(branches) <= MANY_BRANCHES:
            return None
        held = [self.both(context, branch) for branch in branches]
        held = [lits for lits in held if self.static(lits).types & STRING]
        if sum(self.static(lits).values is None for lits in held) <= MANY_BRANCHES:
            return None
        unions = [self.unfold(lits).strings for lits in held]
        if sum(any(case.values is None for case in union) for union in unions) <= MANY_BRANCHES:
            return None
        if any(self.languages.irregular(case.lang) for union in unions for case in union):
            return None
        most = self.limits.dfa_states
        parts = [
            Dfa.union_of([string_sets.whole_dfa(case, self.languages) for case in union], max_states=most)
            for union in unions
        ]
        texts, overlapping = Dfa.exactly_one_of(parts, max_states=most)
        if not overlapping:  # Then their lengths can be counted instead of multiplied in.
            return tuple(dict.fromkeys(case for union in unions for case in union))
        return () if texts.is_empty else (StringCase(lang=frozenset(((True, "dfa", texts),))),)

    def _other_than_strings(self) -> Lits:
        """The literal set of everything but strings."""
        if self._no_strings is None:
            root = next(node for node in self.nodes if node is not None)
            self._no_strings = (self.reader.derived(root, {"type": TYPES & ~STRING}).number,)
        return self._no_strings

    def _overlaps(self, said: One) -> list[list[int]]:
        """For each branch those others that may share a value with it; cheap proofs that they do not come first."""
        context, branches = said
        branches = tuple(self.both(context, branch) for branch in branches)
        out: list[list[int]] = [[] for _ in branches]
        spend(len(branches) ** 2 // 4, "a comparison of the branches of oneOf")
        facts = [self.static(branch) for branch in branches]
        tags = self._tags(facts)
        for one in range(len(branches)):
            for other in range(one):
                mine, yours = tags[one], tags[other]
                if mine is not None and yours is not None and mine.isdisjoint(yours):
                    continue
                if disjoint(facts[one], facts[other]):
                    continue
                if self.overlap(both(branches[one], branches[other])):
                    out[one].append(other)
                    out[other].append(one)
        return out

    def _tags(self, facts: list[Static]) -> list[frozenset[Constant] | None]:
        """Of branches that are objects: the values of that key which most of them require and give few values."""
        known = [
            {name: values for name, lits in bound.required.items() if (values := self.static(lits).values) is not None}
            if bound.types == OBJECT else {}
            for bound in facts
        ]  # fmt: skip
        counts = Counter(name for bound in known for name in bound)
        best = max(counts, key=counts.__getitem__, default="")
        return [bound.get(best) for bound in known]

    def overlap(self, lits: Lits) -> bool:
        """Whether a value is in the set; a question by itself, that leans on no other which is still open."""
        asked, self._asked, leaned = self._asked, {}, self._leaned
        try:
            return self.nonempty(lits)
        except Circular:  # Not known yet: to subtract what may not overlap is exact all the same.
            return True
        finally:
            self._asked, self._leaned = asked, leaned

    def live(self, lits: Lits) -> Live:
        """What a non-empty set allows, without cases that no value is in."""
        live = self._live.get(lits)
        if live is None:
            live = self._plain(lits)
            if live is not None:
                self._live[lits] = live
        if live is None:
            whole = self.unfold(lits)
            self._settling.append(lits)
            try:
                live = self._live[lits] = self._deeper(self._settle_shape, whole)
            except LimitError as error:
                raise error if error.pointer is not None else located(error, self._pointer()) from None
            finally:
                self._settling.pop()
        return live

    def _plain(self, lits: Lits) -> Live | None:
        """The same of a subschema that is plain, and so settled as it stands; None: it has to be unfolded."""
        found = inside(lits, self.nodes)
        node = self.nodes[lits[0]] if found is not None and lits else None
        if found is None or node is None or "anyOf" in node.facts or not all(map(self.nonempty, found)):
            return None
        shape = own(node.facts, node.draft, self)
        settled = tuple(map(object_members.as_it_stands, shape.objects))
        return Live(shape.scalars, shape.numbers, shape.strings, shape.arrays, settled)

    def _settle_shape(self, whole: Shape) -> Live:
        numbers, texts = whole.numbers, whole.strings
        if numbers not in PLAIN:
            for case in numbers:
                if number_sets.costly(case, self.style):
                    number_sets.case_dfa(case, self.style, self.limits.dfa_states)
            numbers = tuple(filter(self._some_number, numbers))
        if texts not in PLAIN:
            texts = tuple(filter(self._some_string, texts))
        if not whole.arrays and not whole.objects:
            return Live(whole.scalars, numbers, texts, (), (), whole.listed)
        return Live(
            whole.scalars,
            numbers,
            texts,
            tuple(settled for array in whole.arrays for settled in array_items.settle(array, self)),
            tuple(settled for case in whole.objects for settled in object_members.settle(case, self)),
            whole.listed,
        )

    # ---- questions ---------------------------------------------------------------------------------------------

    def automata(self, case: ArrayCase) -> list[Plan]:
        """The automata of a case of arrays, as if its items were counted."""
        return [array_items.plan(settled, self) for settled in array_items.settle(case, self)]

    def opposite(self, lits: Lits) -> Lits:
        """The complement of a literal set, as a literal set."""
        known = self._opposites.get(lits)
        if known is None:
            if len(lits) == 1:
                known = (-lits[0],)
            else:
                node = self.nodes[abs(lits[0])]
                assert node is not None
                known = (-self.reader.derived(node, {"allOf": tuple((literal,) for literal in lits)}).number,)
            self._opposites[lits] = known
        return known

    def both(self, one: Lits, other: Lits) -> Lits:
        """The AND of two literal sets, without literals that are plainly idle; NEVER if it is plainly empty."""
        if not one or one == other:
            return other
        if not other:
            return one
        known = self._both.get((one, other))
        if known is None:
            known = both(one, other)
            if self.clash(known):
                known = NEVER
            elif known[0] < 0 < known[-1]:
                wanted = tuple(literal for literal in known if literal > 0)
                bound = self.static(wanted)
                # A and not M is A, if A and M share nothing.
                kept = [m for m in known if m < 0 and not disjoint(bound, self.static((-m,)))]
                known = (*kept, *wanted)
            self._both[one, other] = known
        return known

    def possible(self, case: Any) -> bool:
        """Whether a case may hold a value: a question by itself, "yes" where it cannot be told yet."""
        asked, self._asked, leaned = self._asked, {}, self._leaned
        try:
            return self._some_object(case) if isinstance(case, object_cases.ObjectCase) else self._some_array(case)
        except Circular:
            return True
        finally:
            self._asked, self._leaned = asked, leaned

    def nonempty(self, lits: Lits) -> bool:
        """Whether some finite value is in the set."""
        known = self._nonempty.get(lits)
        if known is not None:
            return known
        if surely(lits, self.nodes):
            self._nonempty[lits] = True
            return True
        if lits in self._asked:
            self._leaned = min(self._leaned, self._asked[lits])
            return False
        if self.clash(lits):
            self._nonempty[lits] = False
            return False
        depth = len(self._asked)
        before, self._leaned = self._leaned, depth + 1
        self._asked[lits] = depth
        try:
            answer = self._deeper(self._some_case, lits)
            # An "empty" that leans on an earlier question still open is provisional.
            if answer or self._leaned >= depth:
                self._nonempty[lits] = answer
            return answer
        finally:
            del self._asked[lits]
            self._leaned = min(before, self._leaned) if self._leaned < depth else before

    def _some_case(self, lits: Lits) -> bool:
        """Whether some case of what a set unfolds to holds a value."""
        return self._any_case(self.unfold(lits))

    def _any_case(self, shape: Shape) -> bool:
        """Whether some case of the shape holds a value."""
        if shape.scalars or shape.listed:
            return True
        circular: Circular | None = None
        for check, cases in (
            (self._some_number, shape.numbers), (self._some_string, shape.strings),
            (self._some_array, shape.arrays), (self._some_object, shape.objects),
        ):  # fmt: skip
            for case in cases:
                try:
                    if check(case):
                        return True
                except Circular as signal:  # Another case may settle it.
                    circular = signal
        if circular is not None:
            raise circular
        return False

    def _some_number(self, case: Any) -> bool:
        return number_sets.nonempty(case, self.style, self.limits)

    def _some_string(self, case: Any) -> bool:
        return string_sets.nonempty(case, self.languages)

    def _some_array(self, case: Any) -> bool:
        return array_items.nonempty(case, self)

    def _some_object(self, case: Any) -> bool:
        return object_members.nonempty(case, self)

    def clash(self, lits: Lits) -> bool:
        """Whether a set is empty for all to see: types or constants that exclude each other."""
        if len(lits) < 2:
            return lits == NEVER
        return self.static(lits).is_never

    def static(self, lits: Lits) -> Static:
        """What can be said of a set without unfolding it."""
        known = self._static.get(lits)
        if known is None:
            known = self._static[lits] = static(lits, self.nodes)
        return known

    def any_of(self, values: tuple[Constant, ...]) -> Lits:
        """The literal set of some constants."""
        lits = self.reader.constant(values[0])
        if len(values) > 1:
            known = self._any_of.get(values)
            if known is None:
                node = self.nodes[lits[0]]
                assert node is not None
                known = self._any_of[values] = (self.reader.derived(node, {"enum": values}).number,)
            return known
        return lits

    def listed(self, lits: Lits) -> bool:
        """Whether a set is plainly one of listed values."""
        return self.static(lits).values is not None

    # ---- errors ------------------------------------------------------------------------------------------------

    def refuse(self, cause: str, field: str) -> UnsupportedError:
        """What to raise where something is not enforced yet."""
        return UnsupportedError(cause, pointer=self._pointer(field))

    def circular(self, signal: Circular) -> SchemaError:
        """What to raise for a schema that is defined by itself, with no value in between."""
        return SchemaError(
            "This schema refers to itself with no value in between, so it says nothing.", pointer=signal.node.pointer
        )

    def _pointer(self, field: str = "") -> str:
        """The innermost place that is being computed and says something of the kind."""
        busy = [self.nodes[abs(literal)] for literal in reversed(self._busy)]
        open_sets = [*reversed(self._asked), *reversed(self._settling)]
        asked = [self.nodes[abs(literal)] for lits in open_sets for literal in lits]
        candidates = [node for node in busy + asked if node is not None and node.pointer is not None]
        for node in candidates:
            if field in node.facts:
                return f"{node.pointer}/{field}"
        return candidates[0].pointer or "" if candidates else ""

    def name_language(self, lits: Lits) -> Lang | None:
        """The formula of the texts that a literal set allows, where a Dfa cannot say them; None elsewhere."""
        cases = self._texts_of(lits)
        if len(cases) != 1 or not self.languages.irregular(cases[0].lang):
            return None
        _, lang, low, high = cases[0]
        if low or high is not None:
            counted = any_text().with_length(low, high, max_states=self.limits.dfa_states)
            lang |= {(True, "dfa", counted)}
        return lang

    def _texts_of(self, lits: Lits) -> tuple[StringCase, ...]:
        try:
            return self.unfold(lits).strings
        except Circular:
            return self.unfold(self._projection.lits(lits)).strings

    def _names(self, lits: Lits) -> Dfa:
        """The texts that a literal set allows: `propertyNames`."""
        cases = self._texts_of(lits)
        if cases is ALL_STRINGS:
            return any_text()
        parts = [string_sets.whole_dfa(case, self.languages) for case in cases]
        return Dfa.union_of(parts, max_states=self.limits.dfa_states) if parts else Dfa.empty()
