"""Shapes become Grammar nodes: one rule for every array or object that is reached, made on demand.

Values without brackets stand where they are used; arrays, objects and values whose automaton is costly (patterns,
formats, bounds of numbers) are referenced by a `Rule` named by their set (and their depth, if the style indents). Only
non-empty sets are written, so a Grammar has no dead end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from ....base.options import Style
from ....base.work import spend_work
from ....grammar.nodes import Node, Rule
from ..algebra.fast_checks import find_plain_types, needs_rule
from ..algebra.shape_algebra import NonEmptyShape, ShapeAlgebra
from ..arrays import array_items, duplicate_items, item_counts
from ..core.fresh_stack import run_on_fresh_stack, run_with_stack
from ..core.json_values import Constant
from ..core.node_building import choice_of
from ..core.schema_sets import SchemaSet
from ..core.whitespace import Spacing, spacing_at
from ..numbers import number_sets
from ..objects import enum_tries, format_keys, object_derivatives, object_members
from ..shapes.array_case import ArrayCase
from ..shapes.enum_values import EnumValues
from ..shapes.shape import FALSE_BIT, NULL_BIT, TRUE_BIT
from ..shapes.value_emitter import ValueEmitter
from ..strings import string_sets
from ..strings.nested_regex_format import NestedPart
from ..strings.string_sets import StringCase
from .plain_rules import PlainEmitter, emit_constants, emit_plain_options, emit_scalars, list_texts

__all__ = ["LazyRules", "SchemaEmitter"]


VALUE = 30
"""Units of work for a value that is written in place."""


class SchemaEmitter(PlainEmitter):
    """Writes the values of sets. The algebra decides what is empty; empty children are never written.

    `reachable` are sets of which it is known that they are not empty.
    """

    algebra: ShapeAlgebra

    def __init__(self, algebra: ShapeAlgebra, style: Style, reachable: set[SchemaSet]) -> None:
        self.algebra = algebra
        self.reachable = reachable
        self.style = style
        self.limits = algebra.limits
        self.languages = algebra.languages
        self._indented = isinstance(style.whitespace, int)
        self._spacing = spacing_at(style, 0)
        self._plain: dict[SchemaSet, Node | None] = {}
        self._types: dict[tuple[int, int], Node] = {}
        self._plans: dict[ArrayCase, item_counts.ItemAutomaton] = {}

    def value(self, schemas: SchemaSet, depth: int) -> Node:
        """Return the node of a non-empty set at a depth."""
        try:
            plain = self._plain[schemas]
        except KeyError:
            plain = self._plain[schemas] = None if needs_rule(schemas, self.algebra.nodes) else self._scalars(schemas)
        return Rule((schemas, depth if self._indented else 0)) if plain is None else plain

    def member_values(self, sets: list[SchemaSet], depth: int) -> list[Node]:
        """Return the nodes of non-empty sets as the values of members, which have rules of their own in any case.

        All but plain scalars, which subschemas share, are emitted when these rules are reached.
        """
        plain, nodes, depth = self._plain, self.algebra.nodes, depth if self._indented else 0
        values: list[Node] = []
        new = 0
        for schemas in sets:
            value = plain.get(schemas)
            if value is None:
                types = find_plain_types(schemas, nodes)
                if types is None:
                    value = Rule((schemas, depth))
                else:
                    new += 1
                    value = plain[schemas] = self._types.get(types) or self._scalars_of_types(types)
            values.append(value)
        spend_work(VALUE * new, "the values of a schema")
        return values

    def spacing(self, depth: int) -> Spacing:
        """Return the white space and punctuation of an array or object at a depth."""
        return spacing_at(self.style, depth) if self._indented else self._spacing

    def _scalars_of_types(self, types: tuple[int, int]) -> Node:
        """Return all values of scalar types, given with the draft."""
        node = self._types[types] = emit_scalars(*types, self.style, self.limits)
        return node

    def start(self, schemas: SchemaSet) -> Node:
        """Return the node of the root, which is needed at once: it has a rule only if it has brackets."""
        if needs_rule(schemas, self.algebra.nodes):
            return Rule((schemas, 0))
        shape = self.algebra.normalise(schemas)
        return (
            self.value(schemas, 0) if shape.arrays or shape.objects or shape.enums else choice_of(self._options(shape))
        )

    def body(self, schemas: SchemaSet, depth: int) -> Node:
        """Return the definition of a rule: all values of a set."""
        plain = emit_plain_options(schemas, self, depth)
        if plain is not None:
            return choice_of(plain)
        texts = list_texts(schemas, self)
        if texts is not None:
            return choice_of(self._strings((texts,)))
        shape = self.algebra.normalise(schemas)
        options = self._options(shape)
        options += [array_items.emit_array(case, self, depth) for case in shape.arrays]
        options += [object_members.emit_object(case, self, depth) for case in shape.objects]
        options += [self._trie(enum, depth) for enum in shape.enums]
        return choice_of(options)

    def _trie(self, enum: EnumValues, depth: int) -> Node:
        """Return the rule of many arrays or objects of one enum."""
        numbers = enum.subset(list(range(len(enum.values))))
        return Rule(enum_tries.EnumTrieState(enum, numbers, (), (), False, depth))

    def constant_set(self, value: Constant) -> SchemaSet:
        """Return the set of exactly one value."""
        return self.algebra.table.add_constant(value)

    def _scalars(self, schemas: SchemaSet) -> Node | None:
        """Return the node of a value without brackets that is cheap to write in place; None: it needs a rule."""
        spend_work(VALUE, "the values of a schema")
        types = find_plain_types(schemas, self.algebra.nodes)
        if types is not None:
            return self._scalars_of_types(types)
        texts = list_texts(schemas, self)
        if texts is not None:
            return None if string_sets.needs_string_rule((texts,), self.style) else choice_of(self._strings((texts,)))
        shape = self.algebra.normalise(schemas)
        if shape.arrays or shape.objects or shape.enums:
            return None
        style = self.style
        if number_sets.needs_number_rule(shape.numbers, style) or string_sets.needs_string_rule(shape.strings, style):
            return None
        return choice_of(self._options(shape))

    def _strings(self, cases: tuple[StringCase, ...]) -> list[Node]:
        """Return the nodes of texts."""
        constants, nodes = string_sets.emit_strings(cases, self.languages, self.style)
        return [*emit_constants(constants), *nodes]

    def _options(self, shape: NonEmptyShape) -> list[Node]:
        """Return the nodes of everything without brackets: the constants as one node, then the rest."""
        constants, nodes = string_sets.emit_strings(shape.strings, self.languages, self.style)
        number_words, others = number_sets.emit_numbers(shape.numbers, self.style, self.algebra.limits)
        constants |= number_words
        constants.update(word for bit, word in WORDS if shape.scalars & bit)
        return [*emit_constants(constants), *nodes, *others]

    def plan(self, case: ArrayCase) -> item_counts.ItemAutomaton:
        """Return the automaton of an array whose items are counted or must differ."""
        plan = self._plans.get(case)
        if plan is None:
            plan = self._plans[case] = array_items.build_item_automaton(case, self.algebra)
        return plan


WORDS = ((NULL_BIT, b"null"), (FALSE_BIT, b"false"), (TRUE_BIT, b"true"))


class LazyRules(Mapping[Hashable, Node]):
    """The rules of the Grammar of a schema: emitted on demand and cached. Iterating yields the emitted ones.

    deep: each is emitted on a fresh stack.
    """

    def __init__(self, emitter: SchemaEmitter, deep: bool) -> None:
        self.deep = deep
        self._emitter = emitter
        self._nodes: dict[Hashable, Node] = {}

    def __getitem__(self, name: Hashable) -> Node:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = (run_on_fresh_stack if self.deep else run_with_stack)(self._make, name)
        return node

    def _make(self, name: Hashable) -> Node:
        emit = EMIT_RULE.get(type(name))
        return self._emitter.body(*name) if emit is None else emit(name, self._emitter)  # type: ignore[misc]

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def _emit_by_itself(name: Any, emitter: ValueEmitter) -> Node:
    """Return the definition of a rule whose name knows it."""
    node: Node = name.node()
    return node


EMIT_RULE: dict[type, Callable[[Any, ValueEmitter], Node]] = {
    item_counts.CountedItems: item_counts.emit_next_item,
    duplicate_items.DuplicateItems: duplicate_items.emit_following_items,
    **dict.fromkeys(enum_tries.ENUM_RULES, enum_tries.emit_enum_rule),
    format_keys.FormatMembers: format_keys.emit_next_format_member,
    object_derivatives.ClausalMembers: object_derivatives.emit_next_clausal_member,
    string_sets.FormatRule: _emit_by_itself,
    NestedPart: _emit_by_itself,
}
"""What emits a rule, by the class of its name. Others are named by a set and a depth."""
