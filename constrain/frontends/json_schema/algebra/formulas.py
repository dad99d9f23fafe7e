"""The formula of a subschema: sets of subschemas combined with one Shape of the keywords about the value itself.

`build_formula` combines the keywords of one subschema; `value_keywords.build_value_shape` builds the Shape.
"""

from __future__ import annotations

from typing import NamedTuple, Union

from ..arrays import array_cases
from ..core.schema_sets import ANY, NEVER, SchemaSet
from ..core.subschema_table import Subschema
from ..objects.object_keywords import build_object_case
from ..shapes.array_case import ArrayCase
from ..shapes.object_case import ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.shape import EVERYTHING, Shape
from . import unevaluated
from .value_keywords import APPLICATORS, UNEVALUATED, build_value_shape

__all__ = ["Conjunction", "Formula", "ExactlyOneOf", "OwnShape", "Disjunction", "build_formula"]


class Disjunction(NamedTuple):
    """At least one of the parts."""

    parts: tuple[Formula, ...]


class Conjunction(NamedTuple):
    """All of the parts."""

    parts: tuple[Formula, ...]


class ExactlyOneOf(NamedTuple):
    """A value of the context that is in exactly one of the sets."""

    context: SchemaSet
    parts: tuple[SchemaSet, ...]


class OwnShape(NamedTuple):
    """What the keywords of a subschema about the value itself assert."""

    shape: Shape


Formula = Union[Disjunction, Conjunction, ExactlyOneOf, OwnShape, SchemaSet]


def build_formula(node: Subschema, algebra: SchemaAlgebra) -> Formula:
    """Return what a subschema asserts: a conjunction in the order of the document, so that keys keep their order."""
    keywords = node.keywords
    unevaluated_fields = [field for field in UNEVALUATED if keywords.get(field, ANY) != ANY]
    if unevaluated_fields:
        others = {field: value for field, value in keywords.items() if field not in UNEVALUATED}
        return Conjunction(
            (
                (algebra.table.add_derived(node, others).number,),
                *(_build_unevaluated(field, node, algebra) for field in unevaluated_fields),
            )
        )
    if "oneOf" in keywords and len(keywords) > 1:
        # Branches that overlap often become disjoint together with the sibling keywords of oneOf.
        siblings = {field: value for field, value in keywords.items() if field != "oneOf"}
        return ExactlyOneOf((algebra.table.add_derived(node, siblings).number,), keywords["oneOf"])
    parts: list[Formula] = []
    own_position = -1
    for field, value in keywords.items():
        if field not in APPLICATORS and own_position < 0:
            own_position = len(parts)
        if field in ("$ref", "$dynamicRef"):
            parts.append(value)
        elif field == "allOf":
            parts.extend(value)
        elif field == "anyOf":
            parts.append(Disjunction(value))
        elif field == "oneOf":
            parts.append(ExactlyOneOf(ANY, value))
        elif field == "not":
            parts.append(algebra.complement(value))
        elif field == "if" and ("then" in keywords or "else" in keywords):
            chosen = Conjunction((value, keywords.get("then", ANY)))
            parts.append(Disjunction((chosen, Conjunction((algebra.complement(value), keywords.get("else", ANY))))))
        elif field in ("dependentSchemas", "dependencies"):
            branches = ((name, schemas) for name, schemas in value.items() if isinstance(schemas, tuple))
            parts.extend(Disjunction((OwnShape(_forbid_key(name)), schemas)) for name, schemas in branches)
    if own_position >= 0:
        parts.insert(own_position, OwnShape(build_value_shape(keywords, node.draft, algebra)))
    return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))


def _build_unevaluated(field: str, node: Subschema, algebra: SchemaAlgebra) -> Formula:
    """Return the formula of an unevaluated keyword: keys or items that no other keyword evaluates are in a set."""
    schemas: SchemaSet = node.keywords[field]
    others = {name: value for name, value in node.keywords.items() if name != field}
    for_keys = field == "unevaluatedProperties"
    find_evaluated = unevaluated.find_evaluated_keys if for_keys else unevaluated.find_evaluated_items
    options: list[Formula] = []
    for held, evaluated in unevaluated.find_evaluation_cases(node, others, find_evaluated, algebra, (node.number,)):
        if evaluated.everything:
            options.append(held)
            continue
        remaining = (
            _constrain_other_keys(evaluated, schemas, algebra)
            if for_keys
            else _constrain_other_items(evaluated, schemas, node, algebra)
        )
        options.append(Conjunction((held, OwnShape(remaining))))
    return Disjunction(tuple(options))


def _constrain_other_keys(evaluated: unevaluated.Evaluated, schemas: SchemaSet, algebra: SchemaAlgebra) -> Shape:
    keywords = {
        "properties": dict.fromkeys(sorted(evaluated.names), ANY), "additionalProperties": schemas,
        "patternProperties": dict.fromkeys(sorted(evaluated.patterns), ANY),
    }  # fmt: skip
    case = build_object_case(keywords, algebra)  # The keywords that evaluate these names decide on their order.
    return EVERYTHING._replace(objects=(case._replace(mentioned=evaluated.names),))


def _constrain_other_items(
    evaluated: unevaluated.Evaluated, schemas: SchemaSet, node: Subschema, algebra: SchemaAlgebra
) -> Shape:
    if evaluated.sets:
        schemas = (algebra.table.add_derived(node, {"anyOf": (schemas, *sorted(evaluated.sets))}).number,)
    return EVERYTHING._replace(arrays=(array_cases.simplify_array(ArrayCase((ANY,) * evaluated.first, schemas)),))


def _forbid_key(name: str) -> Shape:
    """Return the Shape of all values but the objects with a key."""
    case = ObjectCase(((name, NEVER),), mentioned=frozenset((name,)))
    return EVERYTHING._replace(objects=(case,))
