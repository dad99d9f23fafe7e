"""Shapes become nodes: one rule for every array or object that is met, made when it is first asked for.

Values without brackets stand where they are used; arrays, objects and what takes an automaton to be built (patterns,
formats, bounds of numbers) are behind a `Rule` named by their literal set (and their depth, if the style indents).
Only what is non-empty is written, so a Grammar has no dead end.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from ...base.options import Limits, Style
from ...base.work import memoize, spend
from ...grammar.nodes import Choice, JsonString, Literal, Node, Rule, Strings
from .algebra.schema_sets import Lits
from .algebra.shape import FALSE_BIT, NULL_BIT, TRUE_BIT
from .algebra.shape_algebra import Algebra, Live
from .arrays import array_items, duplicate_items, item_counts
from .arrays.array_cases import ArrayCase
from .fresh_stack import on_fresh_stack, with_room
from .numbers import number_sets
from .objects import enum_tries, format_keys, object_derivatives, object_members
from .reading.fast_checks import is_ruled, only_types
from .reading.json_values import BOOLEAN, NULL, NUMBER, STRING, Constant
from .reading.static_types import INTEGER
from .strings import string_sets
from .strings.nested_regex_format import NestedPart
from .strings.string_languages import any_text

__all__ = ["Rules", "Writer"]


VALUE = 30
"""Units of work for a value that is written where it stands."""


class Writer:
    """Writes values. It asks the algebra what is empty, and never touches a child that is."""

    def __init__(self, algebra: Algebra, style: Style) -> None:
        self.algebra = algebra
        self.style = style
        self.limits = algebra.limits
        self.languages = algebra.languages
        self.rules = Rules(self)
        self._indented = isinstance(style.whitespace, int)
        self._plain: dict[Lits, Node | None] = {}
        self._plans: dict[ArrayCase, item_counts.Plan] = {}

    def value(self, lits: Lits, depth: int) -> Node:
        """The node of a non-empty literal set at a depth."""
        try:
            plain = self._plain[lits]
        except KeyError:
            plain = self._plain[lits] = None if is_ruled(lits, self.algebra.nodes) else self._scalars(lits)
        if plain is not None:
            return plain
        return Rule((lits, depth if self._indented else 0))

    def start(self, lits: Lits) -> Node:
        """The node of the root, which is needed at once: it has a rule only where it has brackets."""
        shape = self.algebra.live(lits)
        return self.value(lits, 0) if shape.arrays or shape.objects or shape.listed else _choice(self._options(shape))

    def body(self, lits: Lits, depth: int) -> Node:
        """What a rule stands for."""
        shape = self.algebra.live(lits)
        options = self._options(shape)
        options += [array_items.emit(case, self, depth) for case in shape.arrays]
        options += [object_members.emit(case, self, depth) for case in shape.objects]
        options += [self._trie(listed, depth) for listed in shape.listed]
        return _choice(options)

    def _trie(self, listed: enum_tries.Listed, depth: int) -> Node:
        """Many listed arrays or objects."""
        numbers = listed.some(list(range(len(listed.values))))
        return Rule(enum_tries.Left(listed, numbers, (), (), False, depth))

    def constant(self, value: Constant) -> Lits:
        """The literal set of exactly one value."""
        return self.algebra.reader.constant(value)

    def _scalars(self, lits: Lits) -> Node | None:
        """What has no brackets and is soon written, where it stands; None: it is behind a rule."""
        spend(VALUE, "the values of a schema")
        types = only_types(lits, self.algebra.nodes)
        if types is not None:
            return _typed(*types, self.style, self.limits)
        shape = self.algebra.live(lits)
        if shape.arrays or shape.objects or shape.listed:
            return None
        if number_sets.large(shape.numbers, self.style) or string_sets.large(shape.strings):
            return None
        return _choice(self._options(shape))

    def _options(self, shape: Live) -> list[Node]:
        """Everything that has no brackets: the constants as one set, then the rest."""
        constants, nodes = string_sets.emit(shape.strings, self.languages, self.style)
        more, others = number_sets.emit(shape.numbers, self.style, self.algebra.limits)
        constants |= more
        constants.update(word for bit, word in WORDS if shape.scalars & bit)
        return [*_constants(constants), *nodes, *others]

    def plan(self, case: ArrayCase) -> item_counts.Plan:
        """The automaton of an array whose items are counted or must differ."""
        plan = self._plans.get(case)
        if plan is None:
            plan = self._plans[case] = array_items.plan(case, self.algebra)
        return plan


WORDS = ((NULL_BIT, b"null"), (FALSE_BIT, b"false"), (TRUE_BIT, b"true"))


@memoize(maxsize=256)
def _typed(types: int, draft: int, style: Style, limits: Limits) -> Node:
    """All values of types without brackets: most subschemas say no more, and those of all schemas are alike."""
    options = _constants({word for bit, word in WORDS if types & (NULL if bit == NULL_BIT else BOOLEAN)})
    if types & STRING:
        options.append(JsonString(any_text()))
    if types & (NUMBER | INTEGER):
        numbers = number_sets.ANY_NUMBER if types & NUMBER else number_sets.own_integer({}, draft)
        options += number_sets.emit((numbers,), style, limits)[1]
    return _choice(options)


def _constants(words: set[bytes]) -> list[Node]:
    """Texts to choose from, as one node if there are any."""
    if len(words) < 2:
        return [Literal(word) for word in words]
    return [Strings(tuple(sorted(words)))]


def _choice(options: list[Node]) -> Node:
    return options[0] if len(options) == 1 else Choice(tuple(options))


class Rules(Mapping[Hashable, Node]):
    """The rules of a schema's Grammar: made when asked for, and kept. Iterating shows those that have been made.

    deep: each is made on a stack of its own.
    """

    def __init__(self, writer: Writer) -> None:
        self.deep = False
        self._writer = writer
        self._made: dict[Hashable, Node] = {}

    def __getitem__(self, name: Hashable) -> Node:
        node = self._made.get(name)
        if node is None:
            node = self._made[name] = (on_fresh_stack if self.deep else with_room)(self._make, name)
        return node

    def _make(self, name: Hashable) -> Node:
        assert isinstance(name, tuple)
        if isinstance(name, item_counts.Items):
            node = item_counts.more(name, self._writer)
        elif isinstance(name, duplicate_items.Following):
            node = duplicate_items.follow(name, self._writer)
        elif isinstance(name, enum_tries.Made):
            node = enum_tries.write(name, self._writer)
        elif isinstance(name, format_keys.Members):
            node = format_keys.more(name, self._writer)
        elif isinstance(name, object_derivatives.Left):
            node = object_derivatives.more(name, self._writer)
        elif isinstance(name, (string_sets.ByRules, NestedPart)):
            node = name.node()
        else:
            lits, depth = name
            node = self._writer.body(lits, depth)
        return node

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
