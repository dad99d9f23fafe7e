"""Issue Python warnings about parts of a schema that assert nothing."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

from ....base.errors import SchemaWarning
from ....base.json_documents import LoadedDocument
from ....base.options import Limits, Style
from ....base.work import confine_budgets, work_budget
from ....grammar.nodes import Grammar
from ..emission.schema_pipeline import emit_plain_document
from ..reading.document_inspection import inspect_document
from .suspicious_keywords import build_warnings, find_suspicious_names, may_be_suspicious

__all__ = ["list_schema_warnings", "make_plain_grammar", "warn_of_schema"]

PACKAGE = __name__.partition(".")[0]


@confine_budgets
def list_schema_warnings(
    schema: Any, registry: Mapping[str, Any] | None, style: Style, limits: Limits
) -> tuple[str, ...]:
    """Return the warnings about a schema. Raise SchemaError or LimitError if it is not a valid document."""
    with work_budget(limits.work):
        loaded = schema if isinstance(schema, LoadedDocument) else LoadedDocument.of(schema, limits)
        inspection = inspect_document(loaded, registry, style, limits)
        if inspection.is_plain and not may_be_suspicious(loaded.value, inspection):
            return ()
        return build_warnings(find_suspicious_names(loaded.value, inspection.references, style))


def make_plain_grammar(
    loaded: LoadedDocument, registry: Mapping[str, Any] | None, style: Style, limits: Limits
) -> Grammar | None:
    """Return what `emit_plain_document` does, of a document about which there is no warning; None if that is not
    certain.
    """
    inspection = inspect_document(loaded, registry, style, limits)
    if may_be_suspicious(loaded.value, inspection):
        return None
    return emit_plain_document(loaded, inspection, style, limits)


def warn_of_schema(messages: tuple[str, ...]) -> None:
    """Issue a `SchemaWarning` for each, at the line of the nearest caller outside this package."""
    if messages:
        level = _outside()
        for message in messages:
            warnings.warn(message, SchemaWarning, stacklevel=level)


def _outside() -> int:
    """Return the `stacklevel` of the nearest caller outside this package, for `warn_of_schema`."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    return level
