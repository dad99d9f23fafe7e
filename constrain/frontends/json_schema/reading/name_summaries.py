"""What the names of the keywords of a subschema say: their bits, and summaries that all documents share.

A subschema is judged and emitted by the bits of its names (`document_inspection`, `emission.document_rules`), so that
most are never looked at keyword by keyword.
"""

from __future__ import annotations

from functools import cache, reduce
from operator import or_
from typing import NamedTuple

from .keywords import STRUCTURE, Keyword, keywords_of_draft, list_annotations

__all__ = ["NameSummaries", "NameSummary", "list_name_bits", "summaries_of_draft"]

PLAIN_KEYWORDS = (
    "type", "enum", "const", "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "items", "minItems",
    "maxItems", "properties", "required", "additionalProperties", "$ref", "anyOf", "oneOf", "patternProperties",
)  # fmt: skip
(
    TYPE, ENUM, CONST, MIN_LENGTH, MAX_LENGTH, PATTERN, FORMAT, MINIMUM, MAXIMUM, ITEMS, MIN_ITEMS, MAX_ITEMS,
    PROPERTIES, REQUIRED, ADDITIONAL, REFERENCE, ANY_OF, ONE_OF, PATTERNS,
) = (1 << position for position in range(len(PLAIN_KEYWORDS)))  # fmt: skip
ASSERTIONS = (1 << len(PLAIN_KEYWORDS)) - 1
OTHER, IDENTIFIER, CONTAINER, UNKNOWN, DIALECT = (1 << len(PLAIN_KEYWORDS) + position for position in range(5))
"""Bits of names: another keyword that asserts something, an identifier, a container of schemas, an unknown name, and
`$schema`."""
TEXT_BITS = MIN_LENGTH | MAX_LENGTH | PATTERN | FORMAT
BOUND_BITS = MINIMUM | MAXIMUM
ARRAY_BITS = ITEMS | MIN_ITEMS | MAX_ITEMS
OBJECT_BITS = PROPERTIES | REQUIRED | ADDITIONAL
TYPED_OBJECT = TYPE | OBJECT_BITS
HOLDERS = ITEMS | PROPERTIES | ADDITIONAL | PATTERNS | ANY_OF | ONE_OF
"""Keywords that hold subschemas."""
CHOICE_BITS = REFERENCE | ANY_OF | ONE_OF | ENUM | CONST

TYPES_ALONE = frozenset(("type", "minLength", "maxLength", "format"))
"""`type`, and keywords of which some values assert nothing."""
MOST_SUMMARIES, MOST_NAMES, MOST_CHARACTERS = 2_048, 8, 128
"""Lists of names of subschemas whose summaries are kept, and the most names and characters of one."""


@cache
def list_name_bits(draft: int) -> dict[str, int]:
    """Return the bit of each name that a draft defines; 0 for an annotation."""
    bits = dict.fromkeys(list_annotations(), 0) | dict.fromkeys(STRUCTURE, CONTAINER)
    bits |= dict.fromkeys(keywords_of_draft(draft), OTHER)
    bits |= {name: 1 << number for number, name in enumerate(PLAIN_KEYWORDS) if name in bits}
    bits |= {"$schema": DIALECT, "id" if draft == 4 else "$id": IDENTIFIER}
    if draft > 4:
        del bits["id"]
    return bits


class NameSummary(NamedTuple):
    """What the names of one subschema say.

    bits: theirs. rows: of those that assert something, in their order. may_be_types: whether `type` may be all that is
    asserted, since some values of the others assert nothing. is_type: whether it is. asserted: the names of the rows.
    """

    bits: int
    rows: tuple[Keyword, ...]
    may_be_types: bool
    is_type: bool
    asserted: tuple[str, ...]


class _NameBits(dict[str, int]):
    """The bits of names, UNKNOWN for one that the draft does not define."""

    def __missing__(self, name: str) -> int:
        return UNKNOWN


class NameSummaries(dict[tuple[str, ...], NameSummary]):
    """The summary of the names of a subschema of one draft. Most subschemas of all documents have a few lists of names.

    Kept are MOST_SUMMARIES of at most MOST_NAMES names of MOST_CHARACTERS characters.
    """

    def __init__(self, draft: int) -> None:
        self._bits, self._rows = _NameBits(list_name_bits(draft)), keywords_of_draft(draft)

    def __missing__(self, names: tuple[str, ...]) -> NameSummary:
        bits = reduce(or_, map(self._bits.__getitem__, names), 0)
        asserted = tuple(filter(self._rows.__contains__, names))
        rows = tuple(map(self._rows.__getitem__, asserted))
        summary = NameSummary(bits, rows, TYPES_ALONE.issuperset(asserted), asserted == ("type",), asserted)
        if len(names) <= MOST_NAMES and len("".join(names)) <= MOST_CHARACTERS:
            if len(self) >= MOST_SUMMARIES:
                self.clear()
            self[names] = summary
        return summary


@cache
def summaries_of_draft(draft: int) -> NameSummaries:
    """Return the summaries of the names of a draft, which all documents share."""
    return NameSummaries(draft)
