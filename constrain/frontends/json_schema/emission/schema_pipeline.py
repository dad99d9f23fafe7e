"""The pipeline of this front end: inspect, parse, decide satisfiability, check all reachable sets, emit.

Of a plain document, which the inspection shows to have no fault, only what is emitted is parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....base.errors import LimitError
from ....base.json_documents import LoadedDocument
from ....base.options import Limits, Style
from ....grammar.nodes import Grammar
from ..algebra.shape_algebra import CircularSchema, ShapeAlgebra
from ..core.fresh_stack import run_on_fresh_stack, run_with_stack
from ..core.schema_sets import SchemaSet
from ..core.whitespace import surround_root
from ..reading.document_inspection import Inspection, inspect_document
from ..reading.schema_parser import parse_document
from .document_rules import DocumentRules
from .emitter import LazyRules, SchemaEmitter
from .mixed_documents import emit_mixed_document
from .reachability import check_reachable
from .unsatisfiable_core import explain_unsatisfiable

__all__ = ["emit_plain_document", "to_grammar"]

DEEP_DOCUMENT = 48
"""Levels of a document beyond which it is parsed on a fresh stack: comparing constants needs stack, too."""


def to_grammar(
    schema: dict[str, Any] | bool | str | LoadedDocument,
    *,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),
) -> Grammar:
    """Return the Grammar of the JSON texts that are instances of a schema, spelled as `style` says.

    schema: a dict, a boolean, or JSON text, whose numbers keep all their digits (of two equal keys the later one
    counts). registry: documents by URI that `$ref` may name; nothing is fetched. Rules are made on demand, but
    everything that can be reached is checked now.

    Raise SchemaError for what is not a schema, UnsupportedError for a keyword that is not enforced (by JSON pointer),
    UnsatisfiableError if no value is an instance, LimitError if a budget of `limits` is spent.
    """
    loaded = schema if isinstance(schema, LoadedDocument) else LoadedDocument.of(schema, limits)
    inspection = inspect_document(loaded, registry, style, limits)
    plain = emit_plain_document(loaded, inspection, style, limits)
    if plain is not None:
        return plain
    deep = loaded.nests_deeper(DEEP_DOCUMENT)
    try:
        return (run_on_fresh_stack if deep else run_with_stack)(_compile, loaded, style, registry, limits, deep)
    except RecursionError:  # A recursion that is bounded neither by `DEEP_DOCUMENT` nor by `continue_deeper`.
        raise LimitError("This schema is nested too deeply.", pointer="", hint="Use fewer levels.") from None


def emit_plain_document(loaded: LoadedDocument, inspection: Inspection, style: Style, limits: Limits) -> Grammar | None:
    """Return the Grammar of a document that is plain, or plain but for some subschemas that are certainly accepted and
    satisfiable, and whose root is an array or an object, or one of these subschemas; None for any other.
    """
    if not inspection.is_plain and not inspection.undecided:
        return None
    if isinstance(style.whitespace, int) or loaded.nests_deeper(DEEP_DOCUMENT):
        return None
    if inspection.undecided:
        return emit_mixed_document(loaded, inspection, style, limits)
    rules = DocumentRules(loaded.value, inspection, style, limits)
    start = rules.start()
    return None if start is None else Grammar(start, rules)


def _compile(
    loaded: LoadedDocument, style: Style, registry: Mapping[str, Any] | None, limits: Limits, deep: bool
) -> Grammar:
    inspection = inspect_document(loaded, registry, style, limits)
    parser = parse_document(loaded.value, inspection, registry, style, limits)
    algebra = ShapeAlgebra(parser, style, limits)
    try:
        reachable: set[SchemaSet] = set()
        if not inspection.is_plain:
            if not algebra.is_satisfiable(parser.root):
                raise explain_unsatisfiable(loaded.value, registry, style, limits)
            reachable = check_reachable(algebra, (parser.root,))
    except CircularSchema as signal:
        raise algebra.circular(signal) from None
    emitter = SchemaEmitter(algebra, style, reachable)
    return Grammar(surround_root(emitter.start(parser.root), style), LazyRules(emitter, deep))
