"""The rules of a plain document, emitted from its raw subschemas.

Nothing of a plain document (`reading.document_inspection`) can be refused, and most of it are types, arrays and
objects. What these allow is written in the raw document, so that neither numbered subschemas nor the algebra are
needed; so are texts and numbers with bounds, patterns and formats, lists of texts (`raw_scalars`), and alternatives
with separate types. A rule is named by the id of a raw subschema, that of the root by ROOT_NUMBER. Subschemas whose
keywords have equal scalar values are one rule.

The inspection has charged for reading each subschema, and linking charges for its code.

All others (fractions in enums, other alternatives) are left to a `SchemaEmitter`, which is made for the
first of them that a text reaches. Its rules refer to raw subschemas in turn, so that each is emitted once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import repeat
from typing import Any, cast
from weakref import proxy

from ....automata.dfa import Dfa
from ....base.json_documents import pointer_token
from ....base.options import Limits, Style
from ....grammar.nodes import NameClass, Node, Object, Rule
from ....program.byte_code import ByteCode
from ....program.coded_rules import CodedRules
from ....program.object_code import append_declared, find_leaf, join_names
from ....program.shared_code import link_shared
from ..algebra.shape_algebra import ShapeAlgebra
from ..arrays.array_items import emit_array
from ..core.fresh_stack import run_with_stack
from ..core.json_values import ARRAY, NUMBER, OBJECT, Constant
from ..core.node_building import choice_of
from ..core.schema_sets import ANY, SchemaSet
from ..core.static_types import INTEGER, TYPES
from ..core.subschema_table import PlainSubschema
from ..core.whitespace import Spacing, surround_root
from ..objects.object_members import MAKE_PROPERTY, NONE
from ..reading.document_inspection import Inspection
from ..reading.name_summaries import (
    ANY_OF,
    CONST,
    ENUM,
    FORMAT,
    ITEMS,
    MAX_LENGTH,
    MIN_LENGTH,
    OBJECT_BITS,
    ONE_OF,
    OTHER,
    PATTERNS,
    REFERENCE,
    NameSummary,
    summaries_of_draft,
)
from ..reading.plain_values import read_valid_types
from ..reading.schema_parser import PLAIN, SchemaParser, parse_document
from ..shapes.array_case import ArrayCase
from ..shapes.value_emitter import ValueEmitter
from ..strings.formats import FORMATS
from .emitter import LazyRules, SchemaEmitter
from .plain_rules import (
    SCALARS,
    emit_any_value,
    emit_list,
    emit_rule_list,
    name_members,
)  # fmt: skip
from .raw_places import ALTERNATIVES, NOT_BRACKETS, NOT_DIRECT, Place, has_brackets, needs_rule
from .raw_scalars import RawScalars
from .style_parts import ANY_VALUE, BRACKETS, ROOT, ROOT_NUMBER, find_style_parts

__all__ = ["DocumentRules"]

IS_TYPE = NameSummary._fields.index("is_type")
FOLLOWED = -1
"""In place of the number of the subschema around: the pointer is known as a whole."""
NO_MEMBERS: dict[str, Any] = {}
HOLDS_PARTS = OBJECT_BITS | ITEMS | ENUM | ANY_OF | ONE_OF
"""Bits of names whose values are no scalars."""


class DocumentRules(ValueEmitter, CodedRules):
    """The rules of the Grammar of a plain document, emitted on demand and cached; iterating yields the emitted ones.

    It is for styles that do not indent. Where the interface of emitters asks for sets, it takes ids of raw subschemas,
    and scalar types as negative numbers. `algebra` and `reachable` are those that have decided the undecided subschemas
    of the document, if there are any.
    """

    def __init__(
        self, document: dict[str, Any], inspection: Inspection, style: Style, limits: Limits,
        algebra: ShapeAlgebra | None = None, reachable: set[SchemaSet] | None = None,
    ) -> None:  # fmt: skip
        self.style, self.limits = style, limits
        self._document, self._inspection = document, inspection  # the document is kept, so ids stay valid
        self._draft = inspection.draft
        self._summaries = summaries_of_draft(self._draft)
        self._places: dict[int, Place] = {}
        self._named: dict[Hashable, Rule] = {}
        """By what a subschema asserts, if all values are scalars, or by its id."""
        self._parts = find_style_parts(self._draft, style, limits)
        self._nodes: dict[Hashable, Node] = {}
        self._undecided = inspection.undecided
        self._scalars = RawScalars(self._draft, style, limits)
        if algebra is not None:
            self._adopt(_DocumentEmitter(algebra, style, reachable or set()))

    def start(self) -> Node | None:
        """Return the node of the root if it has arrays or objects; None if the SchemaEmitter has to emit it at once."""
        raw, pointer = self._document, ""
        if "$ref" in raw and id(raw) not in self._undecided:
            raw, pointer = self._follow(raw["$ref"])
        bits, rows = self._summaries[tuple(raw)][:2]
        if not rows:
            return surround_root(ANY_VALUE, self.style)
        if id(raw) in self._undecided:
            bits |= OTHER
        place = raw, FOLLOWED, (pointer,), bits
        is_bracketed = has_brackets(place)
        if not is_bracketed and not self._undecided:
            return None
        self._places[ROOT_NUMBER] = self._places[id(raw)] = place
        self._named[id(raw)] = ROOT
        if not is_bracketed and not self._may_have_brackets(ROOT_NUMBER):
            return None
        self.first_code = self._parts.first_code
        return self._parts.start

    def _may_have_brackets(self, number: int) -> bool:
        """Return whether a subschema that the SchemaEmitter emits has arrays or objects."""
        shape = self.emitter.algebra.normalise(self._parse(number))
        return bool(shape.arrays or shape.objects or shape.enums)

    # ---- the mapping -------------------------------------------------------------------------------------------

    def __getitem__(self, name: Hashable) -> Node:
        node = self._nodes.get(name)
        if node is None:
            if type(name) is int:
                node = self._emit(name)
            elif name == ANY_VALUE.name:
                node = emit_any_value(self.style, self.limits)
            else:
                node = LazyRules(self.emitter, deep=False)[name]
            self._nodes[name] = node
        return node

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    # ---- emission ----------------------------------------------------------------------------------------------

    def _emit(self, name: int) -> Node:
        """Return the definition of the rule of a raw subschema."""
        raw, _, _, bits = self._places[name]
        if bits & NOT_DIRECT or (bits & PATTERNS and self._scalars.split_names(raw) is None):
            options = self._list_options(raw, bits)
            return run_with_stack(self.emitter.body, self._parse(name), 0) if options is None else choice_of(options)
        types = read_valid_types(raw["type"]) if "type" in raw else TYPES
        if types == OBJECT:
            return self._emit_object(raw)
        options = self._scalars.emit(raw, types & SCALARS, bits)
        if types & ARRAY:
            options.append(self._emit_array(raw, types == ARRAY))
        if types & OBJECT:
            options.append(self._emit_object(raw))
        return choice_of(options)

    def _emit_object(self, raw: dict[str, Any]) -> Node:
        """Return the node of `properties`, `required` and `additionalProperties`, as `emit_plain_object` does.

        `patternProperties` stands in place of the first two, and has one pattern.
        """
        style, layout = self.style, self._parts.layout
        if "patternProperties" in raw:
            return Object((), self._list_classes(raw), layout, 0, None, style.key_order, style.escapes)
        names, required, values, classes = self._list_members(raw)
        declared = zip(names, values, map(bool, required), repeat(NONE))
        others = tuple([NameClass(one, values[-1]) for one in classes])
        return Object(tuple(map(MAKE_PROPERTY, declared)), others, layout, 0, None, style.key_order, style.escapes)

    def _list_classes(self, raw: dict[str, Any]) -> tuple[NameClass, ...]:
        """Return the class of names that match the pattern, and that of the others, with their values."""
        [(pattern, schema)], names = raw["patternProperties"].items(), self._scalars.split_names(raw)
        assert names is not None
        value, additional = (
            self._value(schema, id(raw), ("patternProperties", pattern)),
            raw.get("additionalProperties"),
        )
        if len(names) == 1 or additional is False:
            return (NameClass(names[0], value),)
        other = self._value(additional, id(raw), ("additionalProperties",))
        return NameClass(names[0], value), NameClass(names[1], other)

    def _list_options(self, raw: dict[str, Any], bits: int) -> list[Node] | None:
        """Return the options of a subschema that is more than types and bounds; None if the algebra has to find them.

        `enum`, `const`, `anyOf` and `oneOf` stand alone, but for the type of a listed value.
        """
        if bits & OTHER:
            return None
        if bits & (ENUM | CONST):
            return self._scalars.emit_listed(raw, read_valid_types(raw["type"]) if "type" in raw else TYPES)
        return self._list_alternatives(raw, bits) if bits & ALTERNATIVES else None

    def _list_alternatives(self, raw: dict[str, Any], bits: int) -> list[Node] | None:
        """Return the options of `anyOf` or `oneOf`, which stands alone; None if their types are not separate.

        Scalars are written in place.
        """
        keyword = "anyOf" if bits & ANY_OF else "oneOf"
        known, options = 0, list[Node]()
        for index, option in enumerate(raw[keyword]):
            node = self._value(option, id(raw), (keyword, str(index)))
            if type(node) is not Rule:
                types = next(types for types, one in self._parts.scalars.items() if one is node and type(types) is int)
            elif node is ANY_VALUE:
                return None
            else:
                own, _, _, own_bits = self._places[cast(int, node.name)]
                if "type" not in own or own_bits & OTHER:
                    return None
                types = read_valid_types(own["type"])
                if not types & BRACKETS and not own_bits & ALTERNATIVES:
                    node = self[node.name]
            if types & known or (types & INTEGER and known & NUMBER) or (types & NUMBER and known & INTEGER):
                return None
            known |= types
            options.append(node)
        return options

    def append_code(self, name: Hashable, program: ByteCode) -> int | None:
        """Append the code of a raw subschema with objects alone, or with arrays of values that have a rule, as most."""
        if type(name) is not int:
            return None
        raw, _, _, bits = self._places[name]
        kind = raw.get("type")
        if bits & NOT_BRACKETS or (kind != "object" and kind != "array"):
            return None
        if kind == "array":
            return self._append_array(raw, program)
        return self._append_object(raw, program)

    def _append_object(self, raw: dict[str, Any], program: ByteCode) -> int | None:
        """Append the code of an object; None if one of its names has to be escaped."""
        style, parts, properties = self.style, self._parts, raw.get("properties", NO_MEMBERS)
        names, required = name_members(raw, properties)
        text = join_names(names, style.escapes)
        if text is None:
            return None
        cells, leaves, parent = list[int](), list[int](), id(raw)
        places: dict[Any, int] = {}  # of values in place, by the name of a type or the id of a node
        summaries, scalars, named, place_rule = self._summaries, parts.scalars, self._named, program.place_rule
        for name, one in properties.items():
            if one.__class__ is dict:
                summary = summaries[tuple(one)]
                bits, _, _, is_type, _ = summary
                if is_type and (kind := one["type"]).__class__ is str and kind in scalars:
                    place = places.get(kind)
                    if place is None:
                        place = places[kind] = self._place_node(scalars[kind], leaves, places, program)
                    cells.append(place)
                    continue
                if bits & HOLDS_PARTS and not bits & REFERENCE:  # what `_value` would find out
                    rule = named.get(id(one)) or self.rule_of(one, parent, ("properties", name), summary)
                    cells.append(place_rule(rule))
                    continue
            node = self._value(one, parent, ("properties", name))
            if isinstance(node, Rule):
                cells.append(place_rule(node))
            else:
                cells.append(self._place_node(node, leaves, places, program))
        classes: list[Dfa] = []
        additional = raw.get("additionalProperties", True)
        if additional is not False:
            node = ANY_VALUE if additional is True else self._value(additional, parent, ("additionalProperties",))
            if isinstance(node, Rule):
                place = place_rule(node)
            else:
                place = self._place_node(node, leaves, places, program)
            cells += [place] * (len(names) - len(cells) + 1)
            classes.append(parts.any_text)
        return append_declared(
            text, required, cells, leaves, classes, parts.layout, style.key_order, style.escapes, program
        )

    def _place_node(self, node: Node, leaves: list[int], places: dict[Any, int], program: ByteCode) -> int:
        """Return what `ByteCode.place_node` does."""
        code = self._parts.leaf_codes.get(id(node))
        if code is None or id(node) in places:
            return program.place_node(node, leaves, places, find_leaf)
        leaves.append(code)
        place = places[id(node)] = -len(leaves)
        return place

    def _append_array(self, raw: dict[str, Any], program: ByteCode) -> int | None:
        """Append the code of an array; None if its items do not have a rule of their own."""
        item = self._value(raw.get("items", True), id(raw), ("items",))
        if type(item) is not Rule or not (item is ANY_VALUE or needs_rule(self._places[cast(int, item.name)])):
            return None
        node = emit_rule_list(raw.get("minItems", 0), raw.get("maxItems"), self.style, self.limits)
        return link_shared(node, program, item)

    def _list_members(self, raw: dict[str, Any]) -> tuple[list[str], bytes, list[Node], list[Dfa]]:
        """Return the declared names of an object, which of them are required, the values, and the class of others."""
        properties, additional = raw.get("properties", NO_MEMBERS), raw.get("additionalProperties", True)
        names, required = name_members(raw, properties)
        values, parent = list[Node](), id(raw)
        find_scalar, summaries, append = self._parts.scalars.get, self._summaries, values.append
        for name, one in properties.items():
            if one.__class__ is dict and summaries[tuple(one)][IS_TYPE]:  # as most
                kind = one["type"]
                node = find_scalar(kind) if kind.__class__ is str else None
                if node is not None:
                    append(node)
                    continue
            append(self._value(one, parent, ("properties", name)))
        classes: list[Dfa] = []
        if additional is not False:
            other = ANY_VALUE if additional is True else self._value(additional, parent, ("additionalProperties",))
            values += [other] * (len(names) - len(values) + 1)
            classes.append(self._parts.any_text)
        return names, required, values, classes

    def _emit_array(self, raw: dict[str, Any], is_alone: bool) -> Node:
        """Return the node of `items`, `minItems` and `maxItems`."""
        item = self._value(raw.get("items", True), id(raw), ("items",))
        low, high = raw.get("minItems", 0), raw.get("maxItems")
        if type(item) is Rule:
            token = ANY if item is ANY_VALUE else (item.name,)
        else:
            types = next(types for types, node in self._parts.scalars.items() if node is item and type(types) is int)
            if is_alone:
                return emit_list(types, self._draft, low, high, self.style, self.limits)
            token = (-types,)
        return emit_array(ArrayCase((), cast(SchemaSet, token), low, high), self, 0)

    def _value(self, raw: Any, parent: int, names: tuple[str, ...]) -> Node:
        """Return the node of a subschema as the value of a member: of scalar types in place, all others as a rule."""
        if type(raw) is not dict:
            return ANY_VALUE
        undecided = self._undecided
        if "$ref" in raw and id(raw) not in undecided:  # In later drafts it is the only keyword.
            raw, pointer = self._follow(raw["$ref"])
            parent, names = FOLLOWED, (pointer,)
        summary = self._summaries[tuple(raw)]
        if not summary.rows:
            return ANY_VALUE
        if undecided and id(raw) in undecided:
            return self.rule_of(raw, parent, names, summary)
        if summary.may_be_types and (summary.is_type or not self._asserts_of_texts(raw, summary.bits)):
            types = read_valid_types(raw["type"]) if "type" in raw else BRACKETS
            if not types & BRACKETS:
                return self._parts.scalars[types]
        return self.rule_of(raw, parent, names, summary)

    def _follow(self, reference: str) -> tuple[dict[str, Any], str]:
        """Return the target of a reference, or of the reference that it is, and so on: no cycle is founded."""
        raw, pointer = self._inspection.follow(reference)
        while "$ref" in raw and id(raw) not in self._undecided:
            raw, pointer = self._inspection.follow(raw["$ref"])
        return raw, pointer

    def _asserts_of_texts(self, raw: dict[str, Any], bits: int) -> bool:
        """Return whether keywords of texts with these bits, the only ones besides `type`, assert something."""
        return (
            bits & MAX_LENGTH != 0
            or (bits & MIN_LENGTH != 0 and raw["minLength"] != 0)
            or (bits & FORMAT != 0 and self.style.formats != "annotate" and raw["format"] in FORMATS)
        )

    def rule_of(self, raw: dict[str, Any], parent: int, names: tuple[str, ...], summary: NameSummary) -> Rule:
        """Return the rule of a raw subschema that is no reference."""
        number, bits = id(raw), summary[0]
        key: Any = number
        if not bits & HOLDS_PARTS:
            values = [*map(raw.__getitem__, summary.asserted)]
            if PLAIN.issuperset(map(type, values)):
                key = (summary.asserted, *values)
        rule = self._named.get(key)
        if rule is None:
            if number in self._undecided:
                bits |= OTHER
            self._places[number] = raw, parent, names, bits
            rule = self._named[key] = Rule(number)
        return rule

    # ---- what is left to the SchemaEmitter -----------------------------------------------------------------------

    @property
    def emitter(self) -> _DocumentEmitter:
        """The emitter of all other subschemas, made once."""
        found: _DocumentEmitter | None = self.__dict__.get("_emitter")
        if found is None:
            parser = parse_document(self._document, self._inspection, None, self.style, self.limits)
            found = self._adopt(_DocumentEmitter(ShapeAlgebra(parser, self.style, self.limits), self.style, set()))
        return found

    def _adopt(self, made: _DocumentEmitter) -> _DocumentEmitter:
        """Return the emitter of these rules: the given one if there is none yet."""
        made.parser = cast(SchemaParser, made.algebra.table)
        made.document_rules = proxy(self)  # no cycle: only the collector would free it
        found: _DocumentEmitter = self.__dict__.setdefault("_emitter", made)  # one for all threads: rules have numbers
        return found

    def _parse(self, number: int) -> SchemaSet:
        """Return the set of a raw subschema in the table of the SchemaEmitter."""
        return self.emitter.parser.parse_subschema(
            self._places[number][0], self._inspection.references.main, self._point_to(number)
        )

    def _point_to(self, number: int) -> str:
        """Return the JSON pointer of a raw subschema."""
        parts: list[str] = []
        while number != FOLLOWED:
            _, number, names, _ = self._places[number]
            parts[:0] = names if number == FOLLOWED else [f"/{pointer_token(name)}" for name in names]
        return "".join(parts)

    # ---- the interface of emitters, for arrays -------------------------------------------------------------------

    def value(self, schemas: SchemaSet, depth: int) -> Node:
        """Return the node of an item: those of scalar types, listed values and texts of some lengths stand in place."""
        if not schemas:
            return ANY_VALUE
        (number,) = schemas
        if number < 0:
            return self._parts.scalars[-number]
        place = self._places[number]
        if needs_rule(place):
            return Rule(number)
        return self.emitter.value(self._parse(number), 0) if place[3] & OTHER else self[number]

    def member_values(self, sets: list[SchemaSet], depth: int) -> list[Node]:
        return [self.value(schemas, depth) for schemas in sets]

    def spacing(self, depth: int) -> Spacing:
        return self._parts.spacing

    def constant_set(self, value: Constant) -> SchemaSet:
        return self.emitter.constant_set(value)

    def plan(self, case: ArrayCase) -> Any:
        return self.emitter.plan(case)


class _DocumentEmitter(SchemaEmitter):
    """The emitter of a plain document. Rules of its subschemas are those of `document_rules`."""

    parser: SchemaParser
    document_rules: DocumentRules

    def value(self, schemas: SchemaSet, depth: int) -> Node:
        node = super().value(schemas, depth)
        return self._rule_of(schemas, node) if type(node) is Rule else node

    def member_values(self, sets: list[SchemaSet], depth: int) -> list[Node]:
        values = super().member_values(sets, depth)
        return [self._rule_of(schemas, node) if type(node) is Rule else node for schemas, node in zip(sets, values)]

    def _rule_of(self, schemas: SchemaSet, rule: Rule) -> Rule:
        """Return the rule of a set under the name of its raw subschema, if it is one."""
        node = self.algebra.nodes[schemas[0]] if len(schemas) == 1 and schemas[0] > 0 else None
        if type(node) is not PlainSubschema:
            return rule
        raw = node.source[3]
        summary = summaries_of_draft(node.draft)[tuple(raw)]
        return self.document_rules.rule_of(raw, FOLLOWED, (node.pointer or "",), summary)
