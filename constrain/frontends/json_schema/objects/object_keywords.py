"""The keywords of objects: their values are parsed here and become an `ObjectCase`."""

from __future__ import annotations

from typing import Any

from ....base.json_documents import kind_of
from ..core import json_values
from ..core.keyword_context import KeywordContext
from ..core.keyword_values import parse_schema_map
from ..core.schema_sets import ANY, NEVER, SchemaSet
from ..shapes.object_case import NO_NAMES, Cell, ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..strings.schema_patterns import check_pattern
from ..strings.string_languages import ALL, Language
from .object_cases import check_cells, look_up_name

__all__ = [
    "OBJECT_KEYWORDS", "build_object_case", "parse_dependencies", "parse_dependent_required",
    "parse_pattern_properties", "parse_required",
]  # fmt: skip

OBJECT_KEYWORDS = frozenset((
    "properties", "required", "patternProperties", "additionalProperties", "propertyNames", "minProperties",
    "maxProperties", "dependentRequired", "dependencies",
))  # fmt: skip
"""The keywords that `build_object_case` reads."""
TEXT = frozenset((str,))


def parse_pattern_properties(context: KeywordContext, name: str, value: Any) -> dict[str, SchemaSet]:
    """Parse subschemas by regular expression."""
    found = parse_schema_map(context, name, value)
    for expression in found:
        check_pattern(expression, context.pointer(name, expression), context.parser.limits)
    return found


def parse_required(context: KeywordContext, name: str, value: Any) -> tuple[str, ...]:
    """Parse a list of keys."""
    if not isinstance(value, list) or not TEXT.issuperset(map(type, value)):
        raise context.error(f"`{name}` must be an array of strings.", name)
    if not "".join(value).isascii():
        for item in value:
            json_values.check_text(item, context.pointer(name))
    return tuple(dict.fromkeys(value))


def parse_dependent_required(context: KeywordContext, name: str, value: Any) -> dict[str, frozenset[str]]:
    """Parse `dependentRequired`: lists of keys by key."""
    if not isinstance(value, dict):
        raise context.error(f"`{name}` must be an object of arrays of strings, not {kind_of(value)}.", name)
    out = {}
    for key, listed in value.items():
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise context.error(f"`{name}` must be an object of arrays of strings.", name, key)
        out[json_values.check_text(key, context.pointer(name))] = frozenset(listed)
    return out


def parse_dependencies(context: KeywordContext, name: str, value: Any) -> dict[str, frozenset[str] | SchemaSet]:
    """Parse `dependencies`: lists of keys, or subschemas, by key."""
    if not isinstance(value, dict):
        raise context.error(f"`{name}` must be an object, not {kind_of(value)}.", name)
    out: dict[str, frozenset[str] | SchemaSet] = {}
    for key, item in value.items():
        parsed = (
            parse_dependent_required(context, name, {key: item})
            if isinstance(item, list)
            else {key: context.parse(item, name, key)}
        )
        out |= parsed
    return out


def build_object_case(keywords: dict[str, Any], algebra: SchemaAlgebra) -> ObjectCase:
    """Return the case of the objects that the parsed keywords allow."""
    properties: dict[str, SchemaSet] = keywords.get("properties", {})
    additional: SchemaSet = keywords.get("additionalProperties", ANY)
    patterns = [
        (pattern, schemas)
        for pattern, schemas in keywords.get("patternProperties", {}).items()
        if schemas != additional or schemas
    ]
    needs = _find_dependencies(keywords)
    cells: tuple[Cell, ...] = ((ALL, additional),)
    for pattern, schemas in patterns:
        cells = (
            _split_cells(cells, pattern, schemas, algebra)
            if len(patterns) > 1
            else _cells_of_pattern(pattern, schemas, additional)
        )
    mentioned_names = dict.fromkeys(keywords.get("required", ()))
    for name, needed in needs:
        mentioned_names[name] = None
        mentioned_names.update(dict.fromkeys(needed))
    names: dict[str, SchemaSet] = {}
    for name, schemas in properties.items():
        for pattern, pattern_schemas in patterns:
            if algebra.languages.accepts(frozenset(((True, "pattern", pattern),)), name):
                schemas = algebra.intersect(schemas, pattern_schemas)
        names[name] = schemas
    mentioned = [name for name in mentioned_names if name not in names]
    for name in mentioned:
        names[name] = look_up_name(cells, name, algebra.languages)
    case = ObjectCase(
        tuple(names.items()), frozenset(keywords.get("required", ())), frozenset(mentioned),
        tuple(cell for cell in cells if cell[1] != NEVER),
        keywords.get("minProperties", 0), keywords.get("maxProperties"), needs,
    )  # fmt: skip
    return (
        _filter_names(case, keywords["propertyNames"], algebra) if keywords.get("propertyNames", ANY) != ANY else case
    )


def _find_dependencies(keywords: dict[str, Any]) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return the keys that other keys require: `dependentRequired`, and `dependencies` with lists of names."""
    needs: dict[str, frozenset[str]] = {}
    for field in ("dependentRequired", "dependencies"):
        for name, needed in keywords.get(field, {}).items():
            if isinstance(needed, frozenset) and needed - {name}:
                needs[name] = needs.get(name, NO_NAMES) | (needed - {name})
    return tuple(needs.items())


def _cells_of_pattern(pattern: str, schemas: SchemaSet, additional: SchemaSet) -> tuple[Cell, ...]:
    """Return the cells of the first pattern: names that match it, and all others."""
    return (
        (frozenset(((True, "pattern", pattern),)), schemas),
        (frozenset(((False, "pattern", pattern),)), additional),
    )


def _split_cells(cells: tuple[Cell, ...], pattern: str, schemas: SchemaSet, algebra: SchemaAlgebra) -> tuple[Cell, ...]:
    """Return the cells divided by one more pattern: a name that matches any pattern is not additional."""
    out: list[Cell] = []
    for lang, value in cells:
        is_additional = not any(sign for sign, _, _ in lang)
        inside, outside = algebra.languages.split(lang, pattern)
        if inside is not None:
            out.append((inside, schemas if is_additional else algebra.intersect(value, schemas)))
        if outside is not None:
            out.append((outside, value))
    check_cells(len(out), algebra, "patternProperties")
    return tuple(out)


def _filter_names(case: ObjectCase, schemas: SchemaSet, algebra: SchemaAlgebra) -> ObjectCase:
    """Return the case with `propertyNames`: names outside of a set are forbidden."""
    if schemas == NEVER:
        allowed: Language | None = None
    else:
        allowed = algebra.irregular_names(schemas) or frozenset(((True, "names", schemas),))
    names = tuple(
        (name, value if allowed is not None and algebra.languages.accepts(allowed, name) else NEVER)
        for name, value in case.names
    )
    cells = tuple((lang | allowed, value) for lang, value in case.cells) if allowed is not None else ()
    return case._replace(names=names, cells=cells)
