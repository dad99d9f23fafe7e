"""Documents that are plain but for some subschemas: only these are read and decided when the schema is compiled.

The inspection of a document (`reading.document_inspection`) lists its undecided subschemas. If each of them is
accepted, satisfiable, and so is all that its values can have inside, the rest is as in a plain document. Wherever this
fails, nothing is known, and the whole document is parsed and decided as if nothing had been tried: so what is
refused, and how, does not depend on it. Its work is charged only if it succeeds.
"""

from __future__ import annotations

from ....base.errors import ConstrainError
from ....base.json_documents import LoadedDocument
from ....base.options import Limits, Style
from ....base.work import UNLIMITED, WorkBudget, active_budget, use_budget
from ....grammar.nodes import Grammar
from ..algebra.shape_algebra import CircularSchema, ShapeAlgebra
from ..core.fresh_stack import run_with_stack
from ..core.whitespace import surround_root
from ..reading.document_inspection import Inspection
from ..reading.schema_parser import MixedSchemaParser
from .document_rules import DocumentRules
from .emitter import LazyRules, SchemaEmitter
from .reachability import check_reachable

__all__ = ["emit_mixed_document"]


def emit_mixed_document(loaded: LoadedDocument, inspection: Inspection, style: Style, limits: Limits) -> Grammar | None:
    """Return the Grammar of a document with undecided subschemas; None if it has to be decided as a whole."""
    outer = active_budget()
    known = frozenset() if outer is None else outer.paid | outer.before
    budget = WorkBudget(UNLIMITED if outer is None else outer.limit - outer.spent, limits.work, known)
    try:
        with use_budget(budget):
            grammar = run_with_stack(_decide, loaded, inspection, style, limits)
    except (ConstrainError, CircularSchema, RecursionError):  # Deciding the whole document says what is wrong.
        grammar = None
    if grammar is None:
        inspection.give_up()
    elif outer is not None:
        outer.paid |= budget.paid
        outer.spend(budget.spent, "the reading of a schema")
    return grammar


def _decide(loaded: LoadedDocument, inspection: Inspection, style: Style, limits: Limits) -> Grammar | None:
    """Return the Grammar if all undecided subschemas have a value."""
    parser = MixedSchemaParser(loaded.value, inspection, style, limits)
    algebra = ShapeAlgebra(parser, style, limits)
    if not all(map(algebra.is_satisfiable, parser.entries)):
        return None
    reachable = check_reachable(algebra, parser.entries)
    rules = DocumentRules(loaded.value, inspection, style, limits, algebra, reachable)
    start = rules.start()
    if start is not None:
        return Grammar(start, rules)
    emitter = SchemaEmitter(algebra, style, reachable)  # A root without arrays and objects is emitted at once.
    return Grammar(surround_root(emitter.start(parser.root), style), LazyRules(emitter, deep=False))
