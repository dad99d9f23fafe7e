"""Nearly valid documents: one keyword of the schema is broken, all others hold (see `breakages`).

Where a pattern or a format is broken, some texts are *near misses*: valid ones with one character more, less or other.
A text of the complement that a walk finds is mostly far from anything valid, and tells less.
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
from .choice_source import NoMember, Seeded
from .grammar_documents import Recipe
from .keyword_violations import ORIGINAL, breakages
from .strategies import Form, documents, spelling_of

__all__ = ["NearlyValid", "nearly_valid"]

MODELS = 12
"""Valid texts that near misses are made of."""


class NearlyValid(NamedTuple):
    """A document that breaks one keyword.

    document: as `form` asks for. keyword: what it breaks. pointer: where in the document (of several items the first),
    schema_pointer: where that keyword stands in the schema; both are JSON pointers (RFC 6901).
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
    """Documents that are invalid because of one keyword alone, with that keyword and where it is.

    schema, style, registry, limits, form: as of `from_schema`. keywords: break only these. What cannot be broken alone
    (its opposite contradicts the rest, or is not supported) is left out; an anyOf is broken as a whole, its parts are
    not.

    UnsatisfiableError if nothing can be broken, as in the schema `true`; else what `from_schema` raises.
    """
    document = as_document(schema)
    to_grammar(schema=document, style=style, registry=registry, limits=limits)
    spelling = spelling_of(style, form)
    beside = {**(registry or {}), ORIGINAL: document}

    def examples(part: Any, n: int = 1) -> list[Any]:
        """Up to n instances of a part of the schema; none if it cannot be compiled by itself."""
        dialect = {"$schema": document["$schema"]} if isinstance(document, dict) and "$schema" in document else {}
        compact = replace(style, whitespace="compact", escapes="canonical")
        try:
            made = Recipe(to_grammar(schema={**dialect, "allOf": [part]}, style=compact, registry=beside), floats=True)
            return [parse_json(made.document(Seeded(seed)).decode()) for seed in range(n)]
        except (ConstrainError, NoMember):
            return []

    found = [one for one in breakages(document, examples) if keywords is None or one.keyword in keywords]

    @cache
    def strategy(index: int) -> Made | None:
        """The documents of one breakage; None if it cannot be."""
        one = found[index]
        try:
            grammar = to_grammar(schema=one.schema, style=spelling.style, registry=beside, limits=limits)
        except ConstrainError:
            return None
        hints = (
            near_misses(examples({"type": "string", one.keyword: one.value}, MODELS)) if one.keyword in TEXTUAL else ()
        )
        made = documents(Recipe(grammar, floats=spelling.floats, hints=tuple(hints))).map(spelling.read)
        known = {"keyword": one.keyword, "pointer": one.pointer, "schema_pointer": one.schema_pointer}
        return st.builds(NearlyValid, document=made, **{name: st.just(text) for name, text in known.items()})

    def possible(index: int) -> Made | None:
        """The strategy of this breakage, or of the next one that can be."""
        tried = (strategy((index + step) % len(found)) for step in range(len(found)))
        return next((made for made in tried if made is not None), None)

    if possible(0) is None:
        raise UnsatisfiableError("No keyword of this schema can be broken alone.", hint="Ask for other keywords.")
    return st.integers(0, len(found) - 1).flatmap(lambda index: cast(Made, possible(index)))


TEXTUAL = ("pattern", "format")


def near_misses(models: list[Any]) -> Iterator[str]:
    """Texts with one character more, less or other than a model, each once; most are invalid, the Grammar decides."""
    seen = set(models)
    for text in models:
        changed = [text[:-1], text[1:], text + text[-1:], text.swapcase(), text + " ", text + "\n", text[::-1]]
        changed += [text[:place] + other + text[place + 1 :] for place in (0, len(text) // 2) for other in "0aZ-"]
        for other in changed:
            if other not in seen:
                seen.add(other)
                yield other


def as_document(schema: Any) -> Any:
    """A schema as plain data; JSON text is read, a Python type made a schema."""
    if isinstance(schema, str):
        return parse_json(schema)
    if isinstance(schema, (dict, bool)):
        return schema
    from ..frontends import python_types

    return python_types.to_schema(schema)
