"""The keywords of strings: their values are parsed here and become a `StringCase`."""

from __future__ import annotations

from typing import Any

from ....base.json_documents import kind_of
from ..core.keyword_context import SKIP, KeywordContext
from .formats import FORMATS, format_in, format_lengths
from .schema_patterns import check_pattern, read_pattern
from .string_languages import Atom
from .string_sets import StringCase, intersect_lengths

__all__ = ["STRING_KEYWORDS", "build_string_case", "parse_format", "parse_pattern"]

STRING_KEYWORDS = frozenset(("minLength", "maxLength", "pattern", "format"))
"""The keywords that `build_string_case` reads."""


def parse_pattern(context: KeywordContext, name: str, value: Any) -> str:
    """Parse a regular expression."""
    if not isinstance(value, str):
        raise context.error(f"`{name}` must be a string, not {kind_of(value)}.", name)
    check_pattern(value, context.pointer(name), context.parser.limits)
    return value


def parse_format(context: KeywordContext, name: str, value: Any) -> Any:
    """Parse `format`: a name; one that the specification does not define asserts nothing."""
    if not isinstance(value, str):
        raise context.error(f"`{name}` must be a string, not {kind_of(value)}.", name)
    if context.style.formats == "annotate" and not context.scope.dialect.asserts_formats:
        return SKIP
    return format_in(value, context.draft) if value in FORMATS else SKIP


def build_string_case(keywords: dict[str, Any]) -> StringCase:
    """Return the case of the texts that the parsed keywords allow."""
    atoms: set[Atom] = set()
    low, high = keywords.get("minLength", 0), keywords.get("maxLength")
    if "pattern" in keywords:
        counted = read_pattern(keywords["pattern"]).counted
        atoms.add((True, "pattern" if counted is None else "letters", keywords["pattern"]))
        low, high = intersect_lengths(low, high, counted or (0, None))
    if "format" in keywords:
        atoms.add((True, "format", keywords["format"]))
        low, high = intersect_lengths(low, high, format_lengths(keywords["format"]))
    return StringCase(None, frozenset(atoms), low, high)
