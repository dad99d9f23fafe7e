"""Decide whether the texts that the scan of a document has left (`text_scan`) let it be plain.

These are patterns, formats, identifiers, and references. The scan has found all subschemas plain that it goes to. So
the target of a reference is plain if it is one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import MappingProxyType
from typing import Any, NamedTuple

from ....base.json_documents import parse_json
from ....base.options import Limits, Style
from ....base.work import spend_work
from ....kernels.document_scan_layout import A_FORMAT, A_PATTERN, AN_IDENTIFIER, S_W, UNKNOWN_NAME
from ..strings.formats import FORMATS
from ..strings.schema_patterns import is_plain_pattern
from .keywords import STRUCTURE
from .mandatory_references import READING, are_founded
from .schema_references import PLAIN_URI
from .text_scan import Scan

__all__ = ["NOTHING", "NO_TARGETS", "ScannedParts", "judge_scan"]

MAPS, PARTS = frozenset(("properties", *STRUCTURE)), frozenset(("items", "additionalProperties"))
"""Names of maps of subschemas, and of one subschema, that references go through."""
NOTHING: Set[str] = frozenset()
NO_TARGETS: Mapping[str, dict[str, Any]] = MappingProxyType({})


class ScannedParts(NamedTuple):
    """What the scan of a plain document shows.

    unknown_names, unknown_formats: that the draft does not define. targets: raw subschemas by the references to them.
    """

    unknown_names: Set[str]
    unknown_formats: Set[str]
    targets: Mapping[str, dict[str, Any]]


def judge_scan(scan: Scan, document: dict[str, Any], style: Style, limits: Limits) -> ScannedParts | None:
    """Return what a scan shows of a plain document, and charge its work; None if it may not be plain."""
    spans, source = scan.spans, scan.source
    if not any(spans[::S_W]):  # as most: there are unknown names at most
        spend_work(scan.units, READING)
        return ScannedParts(scan.list_names() if spans else NOTHING, NOTHING, NO_TARGETS)
    names, formats, targets = set[str](), set[str](), dict[str, dict[str, Any]]()
    seen: set[tuple[int, str | bytes]] = set()
    for what, begin, end in zip(spans[::S_W], spans[1::S_W], spans[2::S_W]):
        part = source[begin:end]
        if (what, part) in seen:
            continue
        seen.add((what, part))
        text = part.decode() if isinstance(part, bytes) else part
        if what == UNKNOWN_NAME:
            names.add(text)
            continue
        if "\\" in text:
            text = parse_json(f'"{text}"', limits)
        if what == A_FORMAT:
            if text not in FORMATS and style.formats != "annotate":
                formats.add(text)
        elif what == A_PATTERN:
            if not is_plain_pattern(text, limits):
                return None
        elif what == AN_IDENTIFIER:
            if not PLAIN_URI.fullmatch(text):
                return None
        else:
            target = None if scan.has_identifiers else _find_target(text, document)
            if target is None:
                return None
            targets[text] = target
    if targets and not are_founded(targets, frozenset()):
        return None
    spend_work(scan.units, READING)
    return ScannedParts(names, formats, targets)


def _find_target(reference: str, document: dict[str, Any]) -> dict[str, Any] | None:
    """Return the subschema that a reference names at a place that a scan goes to; None if there is none.

    There are no identifiers on the way, and names are spelled without escapes.
    """
    if reference[:1] != "#" or "~" in reference or "%" in reference:
        return None
    raw: Any = document
    names = iter(reference[1:].split("/"))
    if next(names):
        return None
    for name in names:
        key: str | None = name
        if name in MAPS:
            raw, key = raw.get(name), next(names, None)  # None: the reference is to the map, which is no subschema
        elif name not in PARTS:
            return None
        raw = raw.get(key) if type(raw) is dict else None
        if type(raw) is not dict:
            return None
    return raw  # type: ignore[no-any-return]
