"""Find keywords and formats that assert nothing although they were probably intended to, such as misspellings.

A name that a dialect does not define asserts nothing (core specification, section 4.3.1), so a schema with `maxlenght`
is valid, and enforces nothing. Reported are: names one or two edits from a keyword, with a value that this keyword
accepts; keywords of other drafts, of draft 3, and OpenAPI's `nullable`; unknown formats; and a document of names
with types or schemas, {"age": "int"}, where `properties` was forgotten. Not reported are vendors'
annotations, names of properties, and anything inside `enum`, `const`, `default` or `examples`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import filterfalse
from typing import Any, NamedTuple, Union

from ....base.errors import SchemaError, UnsupportedError, shorten_text
from ....base.json_documents import echo_value, pointer_token
from ....base.options import Style
from ....base.work import spend_work
from ..core.dialects import Scope
from ..reading.document_inspection import IDENTIFIERS, Inspection
from ..reading.keywords import KEYWORDS, STRUCTURE, Keyword, keywords_of_dialect, list_annotations
from ..reading.schema_references import ReferenceResolver
from ..strings.formats import FORMATS

__all__ = [
    "SuspiciousName",
    "find_suspicious_names",
    "format_note",
    "keyword_note",
    "find_near_keyword",
    "may_be_suspicious",
    "build_warnings",
]


class KeywordNote(NamedTuple):
    """Why something asserts nothing, what to write instead (or ""), and whether it was probably intended to assert."""

    cause: str
    hint: str
    is_mistake: bool


class SuspiciousName(NamedTuple):
    """Something that asserts nothing. subject, cause: what and why, in words; hint: what to write instead, or ""."""

    pointer: str
    subject: str
    cause: str
    hint: str


RENAMED = {
    "dependencies": "dependentRequired or dependentSchemas",
    "additionalItems": "items, beside prefixItems",
    "id": "$id",
    "divisibleBy": "multipleOf",
    "extends": "allOf",
    "disallow": "not",
    "$recursiveRef": "$dynamicRef",
    "$recursiveAnchor": "$dynamicAnchor",
    "nullable": 'a list of types with "null" in it, or anyOf with {"type": "null"}',
    "prefixItems": "a list in `items`",
    "dependentRequired": "dependencies",
    "dependentSchemas": "dependencies",
    "const": "an enum of one value",
}
"""Names in this dialect of keywords of other dialects, and JSON Schema names of OpenAPI keywords."""

MEANT = {"inclusiveMaximum": "maximum", "inclusiveMinimum": "minimum"}
"""Unknown names that resemble a keyword with another meaning, with the keyword that is meant."""

OPENAPI = frozenset(("discriminator", "example", "externalDocs", "nullable", "xml"))
"""Keywords of OpenAPI 3.0's Schema Object that JSON Schema lacks."""
DRAFT_3 = frozenset(("disallow", "divisibleBy", "extends"))
CONTENT = frozenset(("contentEncoding", "contentMediaType", "contentSchema"))
HARMLESS = frozenset(("id", "$recursiveAnchor"))
"""Keywords of other dialects that assert nothing themselves."""

OTHER_FORMATS = frozenset((
    "base64", "base64url", "binary", "byte", "char", "commonmark", "decimal", "decimal128", "directory-path", "double",
    "double-int", "file-path", "float", "html", "http-date", "int16", "int32", "int64", "int8", "json-string",
    "markdown",
    "media-range", "multi-host-uri", "password", "path", "sf-binary", "sf-boolean", "sf-decimal", "sf-integer",
    "sf-string", "sf-token", "uint16", "uint32", "uint64", "uint8",
))  # fmt: skip
"""Formats of the OpenAPI registry and of Pydantic: correct names of formats that are not asserted."""
SYNONYMS = {
    "url": "uri", "guid": "uuid", "ip": "ipv4", "ip-address": "ipv4", "ipaddress": "ipv4", "timestamp": "date-time",
    "mail": "email", "e-mail": "email", "host-name": "hostname", "host": "hostname", "domain": "hostname",
    "regexp": "regex", "iso8601": "date-time", "iso-date": "date", "emailaddress": "email", "link": "uri",
    "color": "", "phone": "", "style": "", "utc-millisec": "",
}  # fmt: skip
"""Formats by their names in other specifications and in draft 3; "" if there is no equivalent."""


# ---- names that are nearly keywords --------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return not isinstance(value, (bool, str, list, dict)) and value is not None


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_types(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_schema, value.values()))


def _is_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_schema, value))


TYPES = frozenset(("null", "boolean", "number", "integer", "string", "array", "object"))
PYTHON_TYPES = frozenset(("str", "int", "float", "bool", "list", "dict", "date", "datetime"))
"""Types as they are written in Python."""
VALUES: dict[str, Callable[[Any], bool]] = {
    "type": _is_types, "enum": lambda value: isinstance(value, list), "const": lambda value: True,
    "pattern": lambda value: isinstance(value, str), "format": lambda value: isinstance(value, str),
    "uniqueItems": lambda value: isinstance(value, bool), "required": _is_names,
    "items": lambda value: isinstance(value, (dict, bool, list)),
    **dict.fromkeys(("dependencies", "dependentRequired"), lambda value: isinstance(value, dict)),
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef"), lambda value: isinstance(value, str)),
    **dict.fromkeys(
        ("exclusiveMinimum", "exclusiveMaximum"), lambda value: isinstance(value, bool) or _is_number(value)
    ),
    **{row.name: {"schema": _is_schema, "map": _is_map, "list": _is_schemas}[row.holds]
       for row in KEYWORDS if row.holds in ("schema", "map", "list") and row.name != "dependencies"},
}  # fmt: skip
"""By keyword: whether it accepts a value. All other keywords have numbers."""

ROWS: dict[str, list[Keyword]] = {}
"""The rows of the keyword table by name."""
for _row in KEYWORDS:
    ROWS.setdefault(_row.name, []).append(_row)
ANNOTATIONS = list_annotations()

COMMENTED = ("x-", "_", "//", "--", "#/")
"""Prefixes of names that deliberately assert nothing: extensions, and keywords that were commented out."""
SHORT = 4
"""Length of keywords up to which too many words are one edit away: there only an insertion, a deletion or a
transposition counts as a misspelling; for still shorter ones (`if`, `not`) none does.
"""
LONG = 9
"""Length of keywords from which two edits count as a misspelling."""
LONGEST = 40


def _bare(name: str) -> str:
    """Return a name without case and without separators between words."""
    return "".join(filter(str.isalnum, name.lower()))


def _without_one(name: str) -> set[str]:
    return {name[:position] + name[position + 1 :] for position in range(len(name))}


@cache
def _near() -> dict[str, set[str]]:
    """Return a map from every bare keyword, and each with one or two letters deleted, to keywords (symmetric
    deletion).
    """
    index: dict[str, set[str]] = {}
    for row in KEYWORDS:
        bare = _bare(row.name)
        shorter = _without_one(bare)
        if len(bare) >= LONG:
            shorter |= {other for one in shorter for other in _without_one(one)}
        for one in (bare, *shorter):
            index.setdefault(one, set()).add(row.name)
    return index


def find_near_keyword(name: str) -> str:
    """Return the keyword that an unknown name was probably intended to be, or "" if none is near.

    Near means equal except for case and separators, or at a Damerau-Levenshtein distance of 1, for long keywords 2.
    """
    return "" if len(name) > LONGEST else _find_near_keyword(name)


@lru_cache(4096)
def _find_near_keyword(name: str) -> str:
    bare = _bare(name)
    if not bare or not _has_near_letters(bare):
        return ""
    index = _near()
    shorter = _without_one(bare)
    candidates = set().union(*(index.get(one, ()) for one in (bare, *shorter)))
    if len(bare) >= LONG - 2:
        candidates |= set().union(*(index.get(other, ()) for one in shorter for other in _without_one(one)))
    ranked = sorted((_distance(bare, _bare(keyword)), keyword) for keyword in candidates)
    ranked = [(distance, keyword) for distance, keyword in ranked if len(keyword) >= SHORT or not distance]
    for distance, keyword in ranked:
        other = _bare(keyword)
        if distance == 0 or (
            distance == 1 and (len(other) > SHORT or len(bare) != len(other) or sorted(bare) == sorted(other))
        ):
            return keyword
        if distance == 2 and len(other) >= LONG:
            return keyword
    return ""


def _has_near_letters(bare: str) -> bool:
    """Return whether some keyword may be at a distance of at most 2: each edit adds and removes one letter at most."""
    letters, known = _set_letters(bare), _letters_by_length()
    for length in range(len(bare) - 2, len(bare) + 3):
        for other in known.get(length, ()):
            if (letters & ~other).bit_count() <= 2 and (other & ~letters).bit_count() <= 2:
                return True
    return False


def _set_letters(bare: str) -> int:
    """Return the letters of a text as bits, of which some letters share one."""
    bits = 0
    for letter in set(bare):
        bits |= 1 << (ord(letter) & 31)
    return bits


@cache
def _letters_by_length() -> dict[int, list[int]]:
    """Return the letters of every bare keyword, by its length."""
    found: dict[int, list[int]] = {}
    for row in KEYWORDS:
        bare = _bare(row.name)
        found.setdefault(len(bare), []).append(_set_letters(bare))
    return found


def _distance(one: str, other: str) -> int:
    """Return the Damerau-Levenshtein distance (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row, above = row, [i], before
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
    return row[-1]


# ---- one keyword ---------------------------------------------------------------------------------------------------


def name_dialect(scope: Scope) -> str:
    """Return the name of a scope's dialect."""
    return f"draft {scope.draft}" if scope.draft < 2019 else "2019-09" if scope.draft == 2019 else "2020-12"


def keyword_note(name: str, value: Any, beside: Mapping[str, Any], scope: Scope) -> KeywordNote | None:
    """Return a note about a name that the dialect does not define, or None for an annotation.

    value: its value; beside: the schema that contains it.
    """
    hint = RENAMED.get(name, "")
    if name in STRUCTURE:
        return None
    if name in CONTENT:
        return KeywordNote("the text inside is not looked at, as the specification has it", "", False)
    rows = ROWS.get(name, ())
    if any(row.since <= scope.draft <= row.until for row in rows):
        return KeywordNote("of a vocabulary that its $schema leaves out", "", False)
    if rows or (name in HARMLESS and not (name == "id" and scope.draft == 4)):
        empty = name == "additionalItems" and value in (True, {})
        return KeywordNote(f"not a keyword of {name_dialect(scope)}", hint, not empty and name not in HARMLESS)
    if name in ANNOTATIONS:
        return None
    if name in OPENAPI:
        return KeywordNote(
            "a keyword of OpenAPI, not of JSON Schema", hint, name == "nullable" and _excludes_null(value, beside)
        )
    if name in DRAFT_3:
        return KeywordNote("a keyword of draft 3", hint, True)
    if name.startswith(COMMENTED):
        return None
    spend_work(30, "the search for misspelt keywords")
    near = MEANT.get(name) or find_near_keyword(name)
    if near and near not in beside and VALUES.get(near, _is_number)(value):
        return KeywordNote("unknown keyword", near, True)
    return None


def _excludes_null(value: Any, beside: Mapping[str, Any]) -> bool:
    """Return whether `nullable` adds null to a schema that does not visibly accept it."""
    types = beside.get("type")
    if value is not True or types is None or types == "null" or (isinstance(types, list) and "null" in types):
        return (
            value is True
            and types is None
            and not {"anyOf", "oneOf", "enum"}.isdisjoint(beside)
            and not _names_null(beside)
        )
    return True


def _names_null(beside: Mapping[str, Any]) -> bool:
    """Return whether null is listed, or is the type of a branch."""
    listed = beside.get("enum")
    if isinstance(listed, list):
        return None in listed
    branches = [
        branch for name in ("anyOf", "oneOf") for branch in _listed(beside.get(name)) if isinstance(branch, dict)
    ]
    return any(branch.get("type") == "null" for branch in branches)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


@cache
def _near_formats() -> dict[str, set[str]]:
    """Return a map from every bare format, and each but the short ones with one letter deleted, to formats."""
    index: dict[str, set[str]] = {}
    for known in FORMATS:
        bare = _bare(known)
        for one in (bare, *(_without_one(bare) if len(bare) > SHORT else ())):
            index.setdefault(one, set()).add(known)
    return index


def format_note(name: str) -> KeywordNote | None:
    """Return a note about the name of a format, as `keyword_note` does; None if it is asserted."""
    if name in FORMATS:
        return None
    if name in OTHER_FORMATS:
        return KeywordNote("a format that JSON Schema does not define", "", False)
    bare = name[: LONGEST + 1].lower().replace("_", "-")
    near = SYNONYMS.get(bare)
    if near is None:
        spend_work(15, "the search for misspelt formats")
        joined, index = _bare(bare), _near_formats()
        shorter = _without_one(joined) if SHORT <= len(joined) <= LONGEST else set()
        candidates = set().union(*(index.get(one, ()) for one in (joined, *shorter)))
        ranked = sorted((_distance(joined, _bare(known)), known) for known in candidates)
        near = next((known for distance, known in ranked if distance <= 1), "")
    return KeywordNote("unknown format", near, True)


# ---- a document ----------------------------------------------------------------------------------------------------


Path = Union[tuple["Path", Union[str, int]], None]
"""The location of a subschema: the path of its parent, and a reference token. Pointers are built only for findings."""


def find_suspicious_names(document: Any, references: ReferenceResolver, style: Style) -> list[SuspiciousName]:
    """Return the suspicious names of a checked document, in document order.

    references: resolves those of the document. Documents of its registry are not searched.
    """
    found: list[SuspiciousName] = []
    todo: list[tuple[dict[str, Any], Scope, Path]] = []
    if isinstance(document, dict):
        todo.append((document, references.main, None))
        if _is_map_of_properties(document):
            hint = '{"type": "object", "properties": {...}} with these names in it, and "required"'
            found.append(SuspiciousName("", "A schema without a keyword", "only names", hint))
    units = 0
    while todo:
        raw, scope, path = todo.pop()
        units += 1 + len(raw) // 4
        if units > UNITS_AT_ONCE:
            spend_work(units, SEARCH)
            units = 0
        if not IDENTIFIERS.isdisjoint(raw):
            try:
                scope = references.enter(raw, scope, _pointer(path))
            except (SchemaError, UnsupportedError):  # The parser reports it, if anything refers to it.
                continue
        held = _held(scope.dialect.draft)
        plain = _list_plain_names(scope.dialect.draft)
        odd = is_partial = scope.dialect.vocabularies is not None
        below: list[tuple[dict[str, Any], Scope, Path]] = []
        for name in filterfalse(plain.__contains__, raw):
            value, holds = raw[name], held.get(name)
            if not holds:
                odd = odd or holds is None
            elif type(value) is dict:
                if "schema" in holds:
                    below.append((value, scope, (path, name)))
                elif holds == "map":
                    here = (path, name)
                    units += len(value)
                    # Most subschemas have only names with nothing to look at.
                    below += [
                        (item, scope, (here, key))
                        for key, item in value.items()
                        if type(item) is dict and (is_partial or not plain.issuperset(item))
                    ]
            elif "list" in holds and type(value) is list:
                here = (path, name)
                below += [(item, scope, (here, key)) for key, item in enumerate(value) if type(item) is dict]
            elif holds == "format" and not (isinstance(value, str) and value in FORMATS):
                odd = True
        if odd:
            found.extend(_in_schema(raw, scope, path, style))
        below.reverse()
        todo += below
    spend_work(units, SEARCH)
    return found


def may_be_suspicious(document: dict[str, Any], inspection: Inspection) -> bool:
    """Return whether some name of a plain document may be suspicious, so that `find_suspicious_names` has to search."""
    if not inspection.unknown_names and not inspection.unknown_formats:
        return False
    draft = inspection.draft
    spend_work(30 * (len(inspection.unknown_names) + len(inspection.unknown_formats)), SEARCH)
    return bool(
        (inspection.unknown_names and not all(is_never_suspicious(name, draft) for name in inspection.unknown_names))
        or (inspection.unknown_names and _is_map_of_properties(document))
        or any((note := format_note(name)) is not None and note.is_mistake for name in inspection.unknown_formats)
    )


@lru_cache(4096)
def is_never_suspicious(name: str, draft: int) -> bool:
    """Return whether `keyword_note` reports no mistake for a name that a draft does not define, whatever its value."""
    if name in CONTENT or name in STRUCTURE or name in HARMLESS or name in ANNOTATIONS:
        return name != "id" or draft != 4
    if name in ROWS or name in DRAFT_3 or name in MEANT:
        return False
    if name in OPENAPI:
        return name != "nullable"
    return name.startswith(COMMENTED) or not find_near_keyword(name)


SEARCH = "the search for misspelt keywords"
UNITS_AT_ONCE = 1024
"""Units of work after which they are charged."""


@cache
def _list_plain_names(draft: int) -> frozenset[str]:
    """Return the names of a draft that are not suspicious, whatever their values, and hold no subschemas."""
    return frozenset(name for name, holds in _held(draft).items() if not holds) - IDENTIFIERS


def _is_map_of_properties(document: dict[str, Any]) -> bool:
    """Return whether a document has no keyword, and only names with a type or with a schema that has one."""
    return not ANNOTATIONS.issuperset(document) and all(
        name not in ROWS and _describes_type(value) for name, value in document.items()
    )


def _describes_type(value: Any) -> bool:
    if isinstance(value, dict):
        return "type" in value and _is_types(value["type"])
    return isinstance(value, str) and value in TYPES | PYTHON_TYPES


def _pointer(path: Path) -> str:
    parts: list[str] = []
    while path is not None:
        path, name = path
        parts.append(pointer_token(name))
    return "".join(f"/{part}" for part in reversed(parts))


@cache
def _held(draft: int) -> dict[str, str]:
    """Return the names of a draft that are not suspicious, with the kind of subschemas that they hold; "format" for
    `format`.
    """
    held: dict[str, str] = dict.fromkeys(ANNOTATIONS, "")
    held |= STRUCTURE | {row.name: row.holds for row in KEYWORDS if row.since <= draft <= row.until}
    if draft > 4:
        del held["id"]
    return held | {"format": "format"}


def _in_schema(raw: dict[str, Any], scope: Scope, path: Path, style: Style) -> Iterator[SuspiciousName]:
    """Yield the suspicious names among the keywords of one schema."""
    table = keywords_of_dialect(scope.dialect)
    plain = _list_plain_names(scope.dialect.draft) if scope.dialect.vocabularies is None else ANNOTATIONS - IDENTIFIERS
    if "$ref" in raw and scope.draft <= 7:  # Everything beside it is ignored.
        return
    for name, value in raw.items():
        if name in plain:
            continue
        if name not in table:
            said = keyword_note(name, value, raw, scope)
        elif (
            name == "format" and isinstance(value, str) and (style.formats == "assert" or scope.dialect.asserts_formats)
        ):
            said = format_note(value)
        else:
            continue
        if said is not None and said.is_mistake:
            cause, hint = said.cause, said.hint
            subject = f"`{shorten_text(name)}` is"
            if name in table:
                subject, cause = f"The format {echo_value(value)} is", "not known"
            yield SuspiciousName(f"{_pointer(path)}/{pointer_token(name)}", subject, cause, hint)


MOST_WARNINGS = 20
"""Largest number of names that get a separate warning."""


def build_warnings(findings: list[SuspiciousName]) -> tuple[str, ...]:
    """Return one message for each kind of finding: its first occurrence, and the number of others."""
    occurrences: dict[tuple[str, str, str], list[str]] = {}
    for finding in findings:
        occurrences.setdefault((finding.subject, finding.cause, finding.hint), []).append(finding.pointer)
    messages = []
    for (subject, cause, hint), pointers in list(occurrences.items())[:MOST_WARNINGS]:
        guess = cause in ("unknown keyword", "not known")
        cure = "." if not hint else f": did you mean {hint}?" if guess else f"; write {hint}."
        more = f" and at {len(pointers) - 1:,} more" if len(pointers) > 1 else ""
        article = "an " if cause == "unknown keyword" else ""
        messages.append(
            f"{subject} {article}{cause}, so it asserts nothing{cure}\n  at {shorten_text(pointers[0])}{more}"
        )
    if len(occurrences) > MOST_WARNINGS:
        messages.append(f"{len(occurrences) - MOST_WARNINGS:,} more names assert nothing: `constrain check` lists all.")
    return tuple(messages)
