"""Decide in one pass over a raw document whether all of it is plain: certainly accepted, and certainly satisfiable.

Most documents are: types, declared keys, lists of texts, references to such. Nothing in them can be refused, and each
subschema has a value, so the parser need not read a subschema before a value of it is written. The rules are sound but
incomplete. Anything that they do not cover, such as a keyword with a value that it does not allow, is left to the
parser and the algebra, which say what is wrong. Names that the draft does not define are collected on the way.

Many documents are plain but for a few subschemas, such as one `allOf`. These are *undecided*: if the algebra finds each
of them to be accepted and satisfiable, all of the document is, and the plain ones need not be read
(`emission.mixed_documents`).

A plain subschema has finite values if none of its mandatory parts (required keys, items of a non-empty array) contains
itself. Parts are nested, so only a reference can do that (`mandatory_references`).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import MappingProxyType
from typing import Any

from ....base.errors import ConstrainError
from ....base.json_documents import LoadedDocument, References
from ....base.options import Limits, Style
from ....base.work import spend_work
from ..core.dialects import DIALECTS, NEWEST
from ..core.json_values import NUMBER
from ..core.keyword_values import MOST_COUNT
from ..core.static_types import INTEGER, TYPE_BITS, TYPES
from ..strings.formats import FORMATS
from ..strings.schema_patterns import is_plain_pattern, read_pattern
from .keywords import STRUCTURE, iterate_subschemas
from .mandatory_references import READING, UNITS_AT_ONCE, are_founded
from .name_summaries import (
    ANY_OF,
    ARRAY_BITS,
    ASSERTIONS,
    BOUND_BITS,
    CHOICE_BITS,
    CONST,
    CONTAINER,
    DIALECT,
    ENUM,
    FORMAT,
    HOLDERS,
    IDENTIFIER,
    OBJECT_BITS,
    ONE_OF,
    OTHER,
    PATTERN,
    PATTERNS,
    REFERENCE,
    TEXT_BITS,
    TYPE,
    TYPED_OBJECT,
    UNKNOWN,
    list_name_bits,
    summaries_of_draft,
)
from .plain_values import has_plain_value, is_plain_interval, is_unicode, read_types
from .scanned_documents import NO_TARGETS, NOTHING, judge_scan
from .schema_references import PLAIN_URI, ReferenceResolver
from .text_scan import UNITS, scan_text

__all__ = ["IDENTIFIERS", "Inspection", "PlainInspector", "inspect_document"]

IDENTIFIERS = frozenset(("$id", "id", "$schema"))
"""Names that may open another scope."""

MOST_VALUES = 1_000
"""Values of an enum up to which it is plain: longer ones are charged when the schema is compiled."""
MOST_OPTIONS = 8
"""Options of anyOf or oneOf up to which they are plain."""
DYNAMIC_REFERENCES = frozenset(("$dynamicRef", "$recursiveRef"))

NO_PROPERTIES: dict[str, Any] = {}
SEQUENCES = (list, tuple)


class Inspection:
    """What one pass over a document shows.

    draft: that of the document. references: resolves its references. is_plain: whether every subschema is certainly
    accepted and satisfiable. undecided: of a document that is plain but for some subschemas, these raw subschemas by
    their ids, but for those that nothing leads to. entries: those of them that plain ones, references and the root lead
    to: the others are inside them. unknown_names, unknown_formats: of both kinds of documents, names that their draft
    does not define, and formats. scanned_targets: raw subschemas by the references to them, if a scan has found these.

    Of most documents the draft is known without a resolver, which is made when a reference is followed. Otherwise it is
    made at once, and raises what is wrong with the root.
    """

    __slots__ = (
        "_document", "_limits", "_references", "_registry", "draft", "entries", "is_plain", "scanned_targets",
        "undecided", "unknown_formats", "unknown_names",
    )  # fmt: skip

    def __init__(self, document: Any, registry: Mapping[str, Any] | None, limits: Limits) -> None:
        self._document, self._registry, self._limits = document, registry, limits
        self._references: ReferenceResolver | None = None
        self.is_plain = False
        self.undecided: Mapping[int, dict[str, Any]] = NONE_UNDECIDED
        self.scanned_targets = NO_TARGETS
        self.entries: list[dict[str, Any]] = []
        self.unknown_names: Set[str] = NOTHING
        self.unknown_formats: Set[str] = NOTHING
        has_base = type(registry) is References and registry.base_uri
        draft = None if registry or has_base else _find_draft(document)
        self.draft = self.references.main.draft if draft is None else draft

    @property
    def references(self) -> ReferenceResolver:
        """The resolver of the references of the document."""
        found = self._references
        if found is None:
            found = self._references = ReferenceResolver(self._document, self._registry, self._limits)
        return found

    def follow(self, reference: str) -> tuple[Any, str]:
        """Return the raw subschema that a reference in the scope of the root names, and its pointer."""
        raw = self.scanned_targets.get(reference)
        if raw is not None:
            return raw, reference[1:]
        references = self.references
        target = references.resolve(reference, references.main, "")
        return target.raw, target.pointer

    def give_up(self) -> None:
        """Forget the undecided subschemas: one of them was refused, or is not satisfiable."""
        self.undecided, self.entries = NONE_UNDECIDED, []

    @property
    def may_be_plain(self) -> bool:
        """Whether the rules of this file apply: to one document with all keywords of its draft."""
        made = self._references
        return type(self._document) is dict and (
            made is None or (not made.registry and made.main.dialect.vocabularies is None)
        )


NONE_UNDECIDED: Mapping[int, dict[str, Any]] = MappingProxyType({})


def _find_draft(document: Any) -> int | None:
    """Return the draft of a document whose root has nothing that may be wrong; None if that is not certain."""
    if type(document) is not dict:
        return None
    dialect = document.get("$schema")
    draft = DRAFTS.get(dialect) if dialect.__class__ in (str, NoneType) else None
    name = document.get("id" if draft == 4 else "$id")
    return draft if name is None or (name.__class__ is str and PLAIN_URI.fullmatch(name)) else None


NoneType = type(None)
DRAFTS: dict[str | None, int] = {None: NEWEST.draft}
"""The draft by `$schema`, with or without an empty fragment."""
for _uri, _dialect in DIALECTS.items():
    DRAFTS[_uri] = DRAFTS[_uri + "#"] = _dialect.draft


def inspect_document(
    loaded: LoadedDocument, registry: Mapping[str, Any] | None, style: Style, limits: Limits
) -> Inspection:
    """Inspect a document, once for each LoadedDocument. Raise what `ReferenceResolver` raises."""
    for known, inspection in loaded.inspections:
        if known[0] is registry and known[1:] == (style, limits):
            known_inspection: Inspection = inspection
            return known_inspection
    found, text = Inspection(loaded.value, registry, limits), loaded.text
    if found.may_be_plain:
        scan = None if text is None else scan_text(text, found.draft)
        parts = None if scan is None else judge_scan(scan, loaded.value, style, limits)
        if parts is not None:
            found.is_plain = True
            found.unknown_names, found.unknown_formats, found.scanned_targets = parts
        else:
            inspector = PlainInspector(found, style, limits)
            if inspector.inspect(loaded.value):
                found.is_plain = not inspector.undecided
                found.undecided, found.entries = inspector.undecided, inspector.list_entries()
                found.unknown_names, found.unknown_formats = inspector.unknown_names, inspector.unknown_formats
    loaded.inspections.append(((registry, style, limits), found))
    return found


class PlainInspector:
    """One pass over a document without a registry, and in one of the five dialects."""

    def __init__(self, inspection: Inspection, style: Style, limits: Limits) -> None:
        self.unknown_names: set[str] = set()
        self.unknown_formats: set[str] = set()
        self._inspection = inspection
        self._draft = inspection.draft
        self._asserts_formats = style.formats != "annotate"
        self._has_identifiers = False  # below the root
        self._limits = limits
        self._pending: list[Any] = []
        self._inspected: set[int] = set()
        self._charged = 0  # subschemas whose work has been charged
        self._targets: dict[str, Any] = {}
        self.undecided: dict[int, dict[str, Any]] = {}
        self._inner: set[int] = set()
        """Ids of subschemas inside an undecided one."""
        self._contained: list[dict[str, Any]] = []
        """Subschemas in containers, which only references lead to: inspected last."""
        self._reached_targets: set[int] | None = None
        """Ids of the targets of references in all that the root leads to, when this has been inspected."""

    def inspect(self, document: dict[str, Any]) -> bool:
        """Return whether the document is certainly plain but for the subschemas in `undecided`."""
        self._pending.append(document)
        while self._pending or self._contained:
            if not self._pending:
                if self._reached_targets is None:
                    self._reached_targets = set(map(id, self._targets.values()))
                self._pending += [raw for raw in self._contained if id(raw) not in self._inspected]
                self._contained.clear()
            try:
                if not self._inspect_pending(document):
                    return False
            finally:
                spend_work(UNITS * (len(self._inspected) - self._charged), READING)
                self._charged = len(self._inspected)
            if self._targets:
                self._pending += [raw for raw in self._targets.values() if id(raw) not in self._inspected]
        return not self._targets or (not self._has_identifiers and are_founded(self._targets, self.undecided))

    def list_entries(self) -> list[dict[str, Any]]:
        """Return the undecided subschemas that plain ones, references and the root lead to."""
        reached = set(map(id, self._targets.values())) if self._reached_targets is None else self._reached_targets
        return [raw for number, raw in self.undecided.items() if number not in self._inner or number in reached]

    def _inspect_pending(self, document: dict[str, Any]) -> bool:
        """Return whether the pending subschemas of the document, and all parts of them, are plain by themselves."""
        summaries, pending, inspected = summaries_of_draft(self._draft), self._pending, self._inspected
        most = self._charged + UNITS_AT_ONCE // UNITS
        while pending:
            raw = pending.pop()
            if type(raw) is not dict:
                if raw is True:
                    continue
                return False
            inspected.add(id(raw))
            names = summaries[tuple(raw)][0]
            types, before = TYPES, len(pending)
            if names & TYPE:
                kind = raw["type"]
                types = TYPE_BITS.get(kind, 0) if type(kind) is str else read_types(kind)
                if not types:
                    return False
                if names == TYPE:
                    continue
            if not names & ~TYPED_OBJECT:
                is_plain = self._is_plain_object(raw)
            else:
                is_plain = names <= ASSERTIONS or self._is_usual(raw, names, raw is document)
                is_plain = is_plain and (not names & ASSERTIONS or self._is_plain(raw, names & ASSERTIONS, types))
            if not is_plain:
                del pending[before:]
                if not self._leave_undecided(raw, names, types, raw is document):
                    return False
            if len(inspected) > most:
                spend_work(UNITS * (len(inspected) - self._charged), READING)
                self._charged = len(inspected)
                most = self._charged + UNITS_AT_ONCE // UNITS
        return True

    def _is_usual(self, raw: dict[str, Any], names: int, at_root: bool) -> bool:
        """Return whether names that are no plain keywords have no effect: containers, identifiers, unknown names."""
        if names & OTHER or (names & DIALECT and not at_root and not self._is_same_dialect(raw)):
            return False
        if names & UNKNOWN:
            self.unknown_names.update(raw.keys() - list_name_bits(self._draft).keys())
        if names & CONTAINER:
            for name in STRUCTURE:
                container = raw.get(name)
                if type(container) is dict:
                    self._contained += [item for item in container.values() if type(item) is dict]
        return not names & IDENTIFIER or at_root or self._is_harmless(raw)

    def _leave_undecided(self, raw: dict[str, Any], names: int, types: int, at_root: bool) -> bool:
        """Return whether a subschema may be left to the algebra; the subschemas inside are inspected, too.

        Only in the simplest scope: its references and identifiers have to be plain. Not if no value that it lists has
        one of its types, which the algebra would find out.
        """
        if not at_root and (
            (names & DIALECT and not self._is_same_dialect(raw)) or (names & IDENTIFIER and not self._is_harmless(raw))
        ):
            return False
        if not DYNAMIC_REFERENCES.isdisjoint(raw):
            return False
        if names & REFERENCE and (self._draft <= 7 or not self._is_plain_reference(raw["$ref"])):
            return False
        if names & ENUM and type(values := raw["enum"]) is list and len(values) <= MOST_VALUES:
            if has_plain_value(values, TYPES) and not has_plain_value(values, types):
                return False
        if names & UNKNOWN:
            self.unknown_names.update(raw.keys() - list_name_bits(self._draft).keys())
        if names & FORMAT:
            known = raw["format"]
            if type(known) is not str:
                return False
            if known not in FORMATS:
                self.unknown_formats.add(known)
        for (name, *_), part in iterate_subschemas(raw, self._draft):
            if type(part) is dict:
                (self._contained if name in STRUCTURE else self._pending).append(part)
                self._inner.add(id(part))
        if self._reached_targets is None:  # Otherwise nothing leads to it, so that it is never read.
            self.undecided[id(raw)] = raw
        return True

    def _is_plain(self, raw: dict[str, Any], names: int, types: int) -> bool:
        """Return whether a subschema is plain if its parts are, which are pending then.

        names: the bits of its plain keywords. types: those of its types.
        """
        if names & REFERENCE and self._draft <= 7:  # Its siblings are ignored.
            return not names & HOLDERS and self._is_plain_reference(raw["$ref"])
        if names & CHOICE_BITS:
            return self._is_plain_choice(raw, names, types)
        return not (
            (names & OBJECT_BITS and not self._is_plain_object(raw))
            or (names & PATTERNS and not self._has_plain_names(raw))
            or (names & ARRAY_BITS and not self._is_plain_array(raw))
            or (names & TEXT_BITS and not self._is_plain_text(raw, names))
            or (names & BOUND_BITS and not is_plain_interval(raw))
        )

    def _is_plain_choice(self, raw: dict[str, Any], names: int, types: int) -> bool:
        """Return whether a reference, alternatives or listed values are plain, which must stand alone."""
        if names == REFERENCE:
            return self._is_plain_reference(raw["$ref"])
        if names == ANY_OF:
            return self._are_plain_options(raw["anyOf"])
        if names == ONE_OF:
            return self._are_plain_options(raw["oneOf"]) and self._have_separate_types(raw["oneOf"])
        field = {ENUM: "enum", CONST: "const"}.get(names & ~TYPE)
        values = [raw["const"]] if field == "const" else raw["enum"] if field == "enum" else None
        return type(values) is list and len(values) <= MOST_VALUES and has_plain_value(values, types)

    def _have_separate_types(self, options: list[Any]) -> bool:
        """Return whether options have types that exclude each other, so that they are never compared."""
        types = 0
        for option in options:
            if "$ref" in option:
                if not self._is_plain_reference(option["$ref"]):
                    return False
                option = self._targets[option["$ref"]]
            bits = read_types(option["type"]) if "type" in option else 0
            if not bits or types & bits:
                return False
            types |= bits
        return not (types & INTEGER and types & NUMBER)

    def _are_plain_options(self, options: Any) -> bool:
        if type(options) is not list or not 0 < len(options) <= MOST_OPTIONS:
            return False
        self._pending += options
        return all(type(option) is dict for option in options)

    def _is_harmless(self, raw: dict[str, Any]) -> bool:
        """Return whether the identifier of a subschema is valid, and so without effect if there is no reference."""
        self._has_identifiers = True
        name = raw["id" if self._draft == 4 else "$id"]
        return type(name) is not str or PLAIN_URI.fullmatch(name) is not None

    def _is_same_dialect(self, raw: dict[str, Any]) -> bool:
        """Return whether `$schema` of a subschema names the dialect of the document, and so has no effect."""
        name = raw["$schema"]
        return type(name) is str and DRAFTS.get(name) == self._draft

    def _is_plain_reference(self, reference: Any) -> bool:
        """Return whether a reference names an object of this document, which is inspected, too."""
        if type(reference) is not str or reference[:1] != "#":
            return False
        if reference not in self._targets:
            references = self._inspection.references
            try:
                target = references.resolve(reference, references.main, "")
            except ConstrainError:  # The parser raises it with its place.
                return False
            if type(target.raw) is not dict or target.scope is not references.main:
                return False
            self._targets[reference] = target.raw
        return True

    def _is_plain_object(self, raw: dict[str, Any]) -> bool:
        properties, additional = raw.get("properties", NO_PROPERTIES), raw.get("additionalProperties", True)
        required = raw.get("required", ())
        if type(properties) is not dict or type(required) not in SEQUENCES or not is_unicode([*properties, *required]):
            return False
        self._pending += properties.values()
        if additional is False:
            return not required or properties.keys() >= set(required)
        if additional is not True:
            self._pending.append(additional)
        return True

    def _has_plain_names(self, raw: dict[str, Any]) -> bool:
        """Return whether `patternProperties` is alone, with one pattern that divides names in two small automata."""
        patterns = raw["patternProperties"]
        if type(patterns) is not dict or len(patterns) != 1:
            return False
        if raw.get("properties") or raw.get("required"):
            return False
        ((pattern, schema),) = patterns.items()
        self._pending.append(schema)
        return is_plain_pattern(pattern, self._limits) and read_pattern(pattern).most_states <= self._limits.dfa_states

    def _is_plain_array(self, raw: dict[str, Any]) -> bool:
        low, high = raw.get("minItems", 0), raw.get("maxItems", MOST_COUNT)
        self._pending.append(raw.get("items", True))
        return type(low) is int and type(high) is int and 0 <= low <= high <= MOST_COUNT and high > 0

    def _is_plain_text(self, raw: dict[str, Any], names: int) -> bool:
        """Return whether the bounds of a text, a pattern or a format certainly allow a text."""
        names &= TEXT_BITS
        if names & FORMAT:
            known = raw["format"]
            if type(known) is not str:
                return False
            if not self._asserts_formats:
                names &= ~FORMAT
            elif known not in FORMATS:
                self.unknown_formats.add(known)
                names &= ~FORMAT
        if names & (PATTERN | FORMAT):
            return names == FORMAT or (names == PATTERN and is_plain_pattern(raw["pattern"], self._limits))
        low, high = raw.get("minLength", 0), raw.get("maxLength", MOST_COUNT)
        return type(low) is int and type(high) is int and 0 <= low <= high <= MOST_COUNT
