"""The scan of the text of a document by a kernel: whether it is plain apart from some parts, and which these are."""

from __future__ import annotations

from array import array
from functools import cache
from typing import NamedTuple

from ....base.reserved_memory import map_pages
from ....base.work import active_budget
from ....kernels.document_scan_layout import F_W, MOST_FRAMES, R_HEADER, S_W, result_length
from ....kernels.entry_points import scan_document
from ..core.keyword_values import MOST_COUNT
from ..core.static_types import TYPE_BITS
from .name_summaries import list_name_bits
from .scanned_names import build_name_table

__all__ = ["UNITS", "Scan", "scan_text"]

UNITS = 24
"""Units of work for a subschema: to inspect it now, and to read it later."""


class Scan(NamedTuple):
    """What a scan of the text of a document found that is plain apart from some parts.

    source: the text, or its bytes if these are not one for each character. spans: three numbers for each part (see
    `kernels.document_scan_layout`). units: the work that it stands for.
    """

    source: str | bytes
    spans: list[int]
    units: int
    has_identifiers: bool

    def list_names(self) -> set[str]:
        """Return the unknown names, if the spans are nothing else."""
        source = self.source
        parts = [source[begin:end] for begin, end in zip(self.spans[1::S_W], self.spans[2::S_W])]
        return {part if type(part) is str else part.decode() for part in parts}  # type: ignore[union-attr]


def scan_text(text: str, draft: int) -> Scan | None:
    """Scan the text of a document. Return None if it is not plain, or if reading it takes more work than is left."""
    try:
        octets = text.encode()
    except UnicodeEncodeError:
        return None
    length = result_length(len(octets))
    try:
        result = _scratch.pop() if length <= SCRATCH_LENGTH else _map_words(length)
    except IndexError:
        result = _map_words(SCRATCH_LENGTH)
    is_plain = scan_document(octets, *_name_table_of_draft(draft), result)
    subschemas, values, count, has_identifiers = result[:R_HEADER]
    spans = result[FIRST_SPAN : FIRST_SPAN + S_W * count].tolist() if is_plain and count else []
    if len(_scratch) < MOST_SCRATCH and length <= SCRATCH_LENGTH:
        _scratch.append(result)
    if not is_plain:
        return None
    budget, units = active_budget(), UNITS * subschemas + 2 * values
    if budget is not None and budget.spent + units > budget.limit:
        return None  # The inspection says what takes too much.
    return Scan(text if len(octets) == len(text) else octets, spans, units, bool(has_identifiers))


FIRST_SPAN = R_HEADER + MOST_FRAMES * F_W
MOST_SCRATCH, SCRATCH_LENGTH = 4, 1 << 16
"""Results that are kept for the next scans, which take one each, and the length of one. Only what a scan writes takes
memory, and a forked process copies no more: an array would be cleared as a whole."""
_scratch: list[memoryview] = []


def _map_words(length: int) -> memoryview:
    """Return `length` int64s."""
    return memoryview(map_pages(8 * length, "the scan of a schema", "Use a shorter schema.")).cast("q")


@cache
def _name_table_of_draft(draft: int) -> tuple[bytes, array[int]]:
    """Return the names of a draft as a scan reads them."""
    return build_name_table(list_name_bits(draft), TYPE_BITS, draft <= 7, MOST_COUNT)
