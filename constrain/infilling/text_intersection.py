"""Intersection of a form or Constraint with the texts of its spans, as a grammar again.

The fillings of spans of text are a regular language, if the gaps' own constraints are. So they intersect with any plain
context-free grammar by the construction of `grammar.intersection` (Bar-Hillel, Perles, Shamir 1961). The result is a
Form, or a Constraint, that any sampler can use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..base.errors import UnsatisfiableError, UnsupportedError, check_type, describe_value
from ..compilation.constraint_compiler import compile_grammar
from ..engine.constraint import Constraint
from ..forms.form import Concatenated, Form, as_form, literal
from ..forms.sources import regex
from ..grammar.grammar_dfa import to_dfa
from ..grammar.intersection import intersect_grammar
from .gaps import Gap, KnownText, Segment, TextGap

__all__ = ["check_text_spans", "find_text", "infill_form", "restrict_constraint", "span_form"]

OPERATION = "the fillings of spans"


def infill_form(spans: Iterable[str | Gap], form: Form | str | None = None) -> Form:
    """Return the form of the texts that agree with the spans and match `form`.

    Parameters
    ----------
    spans : iterable of str or Gap
        Known text, and gaps in characters.
    form : Form or str, optional
        The language of the whole text. Without it, each gap is only subject to its own constraint.

    Returns
    -------
    Form
        `form & (span + span + ...)`. Of `form` and the gaps' own constraints, one side must be regular, as for any `&`.

    Raises
    ------
    TypeError
        If a span is neither text nor a Gap.
    UnsupportedError
        If a gap is one of tokens, which no form expresses.
    """
    pattern = Concatenated((literal(""), *map(span_form, check_text_spans(spans))))
    return pattern if form is None else as_form(form) & pattern


def check_text_spans(spans: Any) -> list[str | Gap]:
    """Return spans of text as a list. Raise TypeError if they are something else."""
    if isinstance(spans, (str, bytes, Gap)) or not isinstance(spans, Iterable):
        raise TypeError(f"spans is {describe_value(spans)}: give a list of texts and constrain.Gap(...)")
    listed = list(spans)
    for span in listed:
        check_type("a span", span, (str, Gap), "give a text or constrain.Gap()")
    return listed


def span_form(span: str | Gap) -> Form:
    """Return the form of the texts of one span. Raise UnsupportedError for a gap of tokens."""
    if isinstance(span, str):
        return literal(span)
    if span.unit == "tokens":
        raise UnsupportedError(
            "a gap of a number of tokens is not a language of texts", hint="Give it in characters, or use infill_check."
        )
    return span.text_form() or regex("(?s:.*)")


def restrict_constraint(segments: Sequence[Segment], constraint: Constraint) -> Constraint | None:
    """Return the constraint of the texts of `constraint` that fill `segments`, which have no token positions.

    Return None if there are none. Raise UnsupportedError for a constraint that is not a plain context-free grammar,
    gaps whose own constraint is not regular, and known text that is not UTF-8; and LimitError for products that are too
    large.
    """
    pattern = literal("")
    for one in segments:
        pattern = pattern + _segment_form(one)
    limits = constraint.limits
    try:
        dfa = to_dfa(pattern.grammar(limits), OPERATION, limits)
    except UnsatisfiableError:
        return None
    product = intersect_grammar(constraint.grammar, dfa, limits)
    return None if product is None else compile_grammar(product, constraint.vocabulary, limits=limits)


def _segment_form(segment: Segment) -> Form:
    if isinstance(segment, KnownText):
        try:
            return literal(segment.data.decode())
        except UnicodeDecodeError:
            raise UnsupportedError("known text that is not UTF-8", hint="Write whole characters.") from None
    if isinstance(segment, TextGap):
        return segment.form or regex("(?s:.*)")
    raise UnsupportedError("positions of tokens are not a language of texts", hint="Use gaps in characters.")


def find_text(segments: Sequence[Segment], constraint: Constraint) -> bytes | None:
    """Return a text of a constraint that fills `segments`; None if there is none. Raise as `restrict_constraint`."""
    restricted = restrict_constraint(segments, constraint)
    return None if restricted is None else restricted.matcher().shortest_completion()
