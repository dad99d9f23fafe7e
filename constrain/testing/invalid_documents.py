"""Nearly valid documents: one keyword of the schema is violated, all others hold (see `find_violations`).

Where a pattern or a format is violated, some texts are *near misses*: valid texts with one character inserted, deleted
or replaced. A text that a random walk finds in the complement is mostly far from any valid text, and shows less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, cast

from hypothesis import strategies as st

from ..base.errors import ConstrainError, UnsatisfiableError
from ..base.json_documents import parse_json
from ..base.options import Limits, Style
from ..compilation.constraint_compiler import to_grammar
from ..frontends import python_types
from .choice_source import NoMember, Seeded
from .document_plan import DocumentPlan
from .grammar_documents import write_document
from .keyword_violations import ORIGINAL, find_violations
from .strategies import Form, document_strategy, spelling_of

__all__ = ["NearlyValid", "nearly_valid"]

MODELS = 12
"""Number of valid texts from which near misses are made."""


class NearlyValid(NamedTuple):
    """A document that violates one keyword.

    Attributes
    ----------
    document : object
        The document, in the representation that `form` selects.
    keyword : str
        The keyword that is violated.
    pointer : str
        JSON pointer (RFC 6901) to the violation in the document; the first of several items.
    schema_pointer : str
        JSON pointer to the keyword in the schema.
    """

    document: Any
    keyword: str
    pointer: str
    schema_pointer: str


Made = st.SearchStrategy[NearlyValid]


def nearly_valid(
    schema: Any,
    *,
    keywords: frozenset[str] | set[str] | None = None,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),
    form: Form = "value",
) -> st.SearchStrategy[NearlyValid]:
    """Return a strategy for documents that are invalid because of one keyword alone.

    A keyword that cannot be violated alone (its negation contradicts the rest of the schema, or is not supported) is
    left out. An `anyOf` is violated as a whole; its branches are not violated one by one.

    Parameters
    ----------
    schema, style, registry, limits, form
        See `from_schema`.
    keywords : set of str, optional
        Violate only these keywords.

    Returns
    -------
    SearchStrategy[NearlyValid]
        Each example holds the document, the violated keyword and the locations of the violation.

    Raises
    ------
    UnsatisfiableError
        If no keyword can be violated, as in the schema `true`.
    ConstrainError
        For the reasons for which `from_schema` raises.
    """
    document = as_document(schema)
    to_grammar(schema=document, style=style, registry=registry, limits=limits)
    spelling = spelling_of(style, form)
    beside = {**(registry or {}), ORIGINAL: document}

    def examples(part: Any, n: int = 1) -> list[Any]:
        """Return up to n instances of a part of the schema; none if that part cannot be compiled by itself."""
        dialect = {"$schema": document["$schema"]} if isinstance(document, dict) and "$schema" in document else {}
        compact = replace(style, whitespace="compact", escapes="canonical")
        try:
            plan = DocumentPlan(
                to_grammar(schema={**dialect, "allOf": [part]}, style=compact, registry=beside), floats=True
            )
            return [parse_json(write_document(plan, Seeded(seed)).decode()) for seed in range(n)]
        except (ConstrainError, NoMember):
            return []

    found = find_violations(document, registry or {}, examples)
    breakages = [one for one in found if keywords is None or one.keyword in keywords]

    @cache
    def strategy(index: int) -> Made | None:
        """Return the strategy of one violation; None if it is impossible."""
        one = breakages[index]
        try:
            grammar = to_grammar(schema=one.schema, style=spelling.style, registry=beside, limits=limits)
        except ConstrainError:
            return None
        hints = (
            near_misses(examples({"type": "string", one.keyword: one.value}, MODELS)) if one.keyword in TEXTUAL else ()
        )
        documents = document_strategy(DocumentPlan(grammar, floats=spelling.floats, hints=tuple(hints))).map(
            spelling.read
        )
        known = {"keyword": one.keyword, "pointer": one.pointer, "schema_pointer": one.schema_pointer}
        return st.builds(NearlyValid, document=documents, **{name: st.just(text) for name, text in known.items()})

    def possible(index: int) -> Made | None:
        """Return the strategy of this violation, or of the next possible one."""
        tried = (strategy((index + step) % len(breakages)) for step in range(len(breakages)))
        return next((strategy for strategy in tried if strategy is not None), None)

    if possible(0) is None:
        raise UnsatisfiableError("No keyword of this schema can be violated alone.", hint="Request other keywords.")
    return st.integers(0, len(breakages) - 1).flatmap(lambda index: cast(Made, possible(index)))


TEXTUAL = ("pattern", "format")


def near_misses(models: list[Any]) -> Iterator[str]:
    """Yield the distinct texts that differ from a model by one character inserted, deleted or replaced.

    Most are invalid; the Grammar decides.
    """
    seen = set(models)
    for text in models:
        changed = [text[:-1], text[1:], text + text[-1:], text.swapcase(), text + " ", text + "\n", text[::-1]]
        changed += [text[:index] + other + text[index + 1 :] for index in (0, len(text) // 2) for other in "0aZ-"]
        for other in changed:
            if other not in seen:
                seen.add(other)
                yield other


def as_document(schema: Any) -> Any:
    """Return a schema as plain data: JSON text is parsed, and a Python type is converted to its schema."""
    if isinstance(schema, str):
        return parse_json(schema)
    if isinstance(schema, (dict, bool)):
        return schema

    return python_types.to_schema(schema)
