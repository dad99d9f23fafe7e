"""The words of a target's table: a row for each keyword, a limit for each count, and what is found in a schema.

A *target* is another product that takes a JSON Schema and keeps a subset of it. Its table says, keyword by keyword,
what becomes of it there. Of several rows for one keyword the first whose condition holds counts; a keyword without
a row is judged by `unlisted`. Each table names what was read and when, because such subsets change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .subschemas import Document, DocumentPart

__all__ = ["TargetFinding", "Limit", "TargetRow", "Target", "Verdict", "always_true", "make_rows"]

Verdict = Literal["enforced", "refused", "ignored", "changed", "limit"]


class TargetFinding(NamedTuple):
    """What a target does to one place of a schema.

    pointer: the place (RFC 6901). keyword: which is concerned, written there or missing there. verdict: "refused",
    the whole schema is not taken; "ignored", nothing of it is enforced; "changed", something else is enforced;
    "limit", a stated count is exceeded. reason: one sentence. cure: what to write instead.
    """

    pointer: str
    keyword: str
    verdict: Verdict
    reason: str
    cure: str


def always_true(place: DocumentPart) -> bool:
    """The condition of a row that has none."""
    return True


class TargetRow(NamedTuple):
    """What becomes of a keyword, if `when` holds. missing: the row is about subschemas that lack the keyword."""

    keyword: str
    verdict: Verdict
    reason: str = ""
    cure: str = ""
    when: Callable[[DocumentPart], bool] = always_true
    missing: bool = False


class Limit(NamedTuple):
    """At most `most` of what `counted` yields, as (pointer, how many); the finding stands where it is exceeded."""

    keyword: str
    most: int
    counted: Callable[[Document], Iterator[tuple[str, int]]]
    reason: str
    cure: str


@dataclass(frozen=True, slots=True)
class Target:
    """The subset of one product.

    read: the day on which the sources were read, ISO 8601. sources: what was read, with what it says of its own age.
    """

    name: str
    title: str
    read: str
    sources: tuple[str, ...]
    table: tuple[TargetRow, ...]
    unlisted: TargetRow
    limits: tuple[Limit, ...] = ()


def make_rows(
    verdict: Verdict, names: str, reason: str = "", cure: str = "", when: Callable[[DocumentPart], bool] = always_true
) -> list[TargetRow]:
    """One row for each of the names, all alike."""
    return [TargetRow(name, verdict, reason, cure, when) for name in names.split()]
