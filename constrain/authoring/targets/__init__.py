"""Check a schema against the JSON Schema subsets of other products.

The findings state which parts a product refuses, ignores or changes, and what to write instead.

    for finding in constrain.authoring.targets.find_incompatibilities(schema, "openai"):
        print(finding.pointer, finding.verdict, finding.reason, finding.cure)

Each target has a file with a table that has a row for each keyword (`target_tables.py` defines the records). The tables
state which documentation they follow, and its date; nothing is fetched, and no schema is sent anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...base.errors import SchemaError, check_choice
from ...base.json_documents import pointer_token
from ...frontends.json_schema.reading.keywords import KEYWORDS
from ...frontends.json_schema.reports.schema_faults import find_faults
from .anthropic import ANTHROPIC
from .gemini import GEMINI
from .llamacpp import LLAMACPP
from .openai import OPENAI
from .subschemas import Document, LocatedSubschema
from .target_tables import Target, TargetFinding, TargetRow, Verdict
from .vllm import choose_backend

__all__ = ["TARGETS", "TargetFinding", "Target", "Verdict", "find_incompatibilities", "target_of"]

TARGETS: Mapping[str, Callable[[Document], Target]] = {
    "openai": lambda document: OPENAI,
    "anthropic": lambda document: ANTHROPIC,
    "gemini": lambda document: GEMINI,
    "vllm": choose_backend,
    "llamacpp": lambda document: LLAMACPP,
}
"""For each target name, the function that selects the table for a document."""

ASSERTING = frozenset(row.name for row in KEYWORDS)
"""Assertion keywords of all dialects; any other keyword is ignored by a target that has no row for it."""


def find_incompatibilities(
    schema: dict[str, Any] | bool | str, target: str, *, registry: Mapping[str, Any] | None = None
) -> list[TargetFinding]:
    """Return what a target would do to a schema.

    Parameters
    ----------
    schema : dict, bool or str
        The schema, as data or JSON text. References may name documents that are not available.
    target : str
        One of TARGETS.
    registry : mapping of str to object, optional
        Documents by URI, for references.

    Returns
    -------
    list of TargetFinding
        The findings in document order; empty if the target accepts the schema unchanged.

    Raises
    ------
    SchemaError
        If it is not a valid schema.
    ArgumentError
        If there is no such target.
    """
    for error, _ in find_faults(schema, registry=registry):
        if isinstance(error, SchemaError) and not (error.pointer or "").endswith("/$ref"):
            raise error
    document = Document(schema, registry)
    table = target_of(document, target)
    findings: list[TargetFinding] = []
    for subschema in document.subschemas:
        findings += check_subschema(subschema, table)
    return findings + list(exceeded_limits(document, table))


def target_of(schema: Document | dict[str, Any] | bool | str, target: str) -> Target:
    """Return the table that applies to a schema. Raise ArgumentError if there is no such target."""
    check_choice("target", target, tuple(TARGETS))
    return TARGETS[target](schema if isinstance(schema, Document) else Document(schema))


def check_subschema(subschema: LocatedSubschema, target: Target) -> Iterator[TargetFinding]:
    """Yield the findings for one subschema: its keywords in their order, then the missing ones."""
    if isinstance(subschema.raw, bool):
        row = next((row for row in target.table if row.keyword == "" and row.when(subschema)), None)
        if row is not None:
            yield TargetFinding(
                subschema.pointer, "true" if subschema.raw else "false", row.verdict, row.reason, row.cure
            )
        return
    if not isinstance(subschema.raw, dict):
        return
    for name in subschema.raw:
        row = row_of(name, subschema, target)
        if row.verdict != "enforced":
            yield TargetFinding(f"{subschema.pointer}/{pointer_token(name)}", name, row.verdict, row.reason, row.cure)
    for row in target.table:
        if row.missing and row.keyword not in subschema.raw and row.when(subschema):
            yield TargetFinding(subschema.pointer, row.keyword, row.verdict, row.reason, row.cure)


def row_of(name: str, subschema: LocatedSubschema, target: Target) -> TargetRow:
    """Return the row that applies to a keyword of a subschema."""
    for row in target.table:
        if row.keyword == name and not row.missing and row.when(subschema):
            return row
    return target.unlisted if name in ASSERTING else ENFORCED


ENFORCED = TargetRow("", "enforced")


def exceeded_limits(document: Document, target: Target) -> Iterator[TargetFinding]:
    """Yield the limits that the document exceeds, each at the location where it is exceeded."""
    for limit in target.limits:
        total, location = 0, ""
        for pointer, count in limit.counted(document):
            if total <= limit.most < total + count:
                location = pointer
            total += count
        if total > limit.most:
            yield TargetFinding(location, limit.keyword, "limit", f"{limit.reason} Here it is {total:,}.", limit.cure)
