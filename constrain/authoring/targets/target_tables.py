"""The records of a target's table: a row for each keyword, a limit for each count, and the findings in a schema.

A *target* is another product that accepts a subset of JSON Schema. Its table states, keyword by keyword, how the
product treats it. Of several rows for one keyword the first whose condition holds applies; a keyword without a row is
treated as `unlisted`. Each table names its sources and their dates, because such subsets change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .subschemas import Document, LocatedSubschema

__all__ = ["TargetFinding", "Limit", "TargetRow", "Target", "Verdict", "always_true", "make_rows"]

Verdict = Literal["enforced", "refused", "ignored", "changed", "limit"]


class TargetFinding(NamedTuple):
    """What a target does at one location of a schema.

    Attributes
    ----------
    pointer : str
        The location (RFC 6901).
    keyword : str
        The keyword concerned, present or missing there.
    verdict : str
        "refused": the whole schema is rejected; "ignored": the keyword is not enforced; "changed": something else is
        enforced; "limit": a stated limit is exceeded.
    reason : str
        One sentence.
    cure : str
        What to write instead.
    """

    pointer: str
    keyword: str
    verdict: Verdict
    reason: str
    cure: str


def always_true(subschema: LocatedSubschema) -> bool:
    """Return True: the condition of a row that always applies."""
    return True


class TargetRow(NamedTuple):
    """How a keyword is treated, if `when` holds. missing: the row is about subschemas that lack the keyword."""

    keyword: str
    verdict: Verdict
    reason: str = ""
    cure: str = ""
    when: Callable[[LocatedSubschema], bool] = always_true
    missing: bool = False


class Limit(NamedTuple):
    """At most `most` of what `counted` yields, as (pointer, count); the finding is located where the limit is
    exceeded."""

    keyword: str
    most: int
    counted: Callable[[Document], Iterator[tuple[str, int]]]
    reason: str
    cure: str


@dataclass(frozen=True, slots=True)
class Target:
    """The subset of one product.

    read: the date on which the sources were read, ISO 8601. sources: the documents, with the date or version that it
    states.
    """

    name: str
    title: str
    read: str
    sources: tuple[str, ...]
    table: tuple[TargetRow, ...]
    unlisted: TargetRow
    limits: tuple[Limit, ...] = ()


def make_rows(
    verdict: Verdict,
    names: str,
    reason: str = "",
    cure: str = "",
    when: Callable[[LocatedSubschema], bool] = always_true,
) -> list[TargetRow]:
    """Return one row for each of the names, all with the same verdict."""
    return [TargetRow(name, verdict, reason, cure, when) for name in names.split()]
