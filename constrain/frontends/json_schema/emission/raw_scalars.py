"""Emit the scalars of a plain subschema from its raw keywords: texts with a pattern, a format or bounds, and numbers.

The inspection of the document (`reading.document_inspection`) has found each of them valid and satisfiable, so that
neither a parser nor the algebra is needed.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ....base.options import Limits, Style
from ....grammar.nodes import Chars, JsonString, Node
from ..core.json_values import BOOLEAN, NULL, NUMBER, STRING
from ..core.static_types import INTEGER
from ..numbers.number_automata import bounded_dfa
from ..numbers.number_keywords import build_integer_case, build_number_case
from ..numbers.number_sets import emit_numbers
from ..reading.name_summaries import BOUND_BITS, FORMAT, TEXT_BITS
from ..strings.formats import FORMATS, format_in
from ..strings.string_keywords import build_string_case
from ..strings.string_languages import LanguageCache, any_text
from ..strings.string_sets import StringCase, emit_strings
from .plain_rules import WORDS, emit_constants, emit_types, refuse_keyword

__all__ = ["RawScalars"]


WORDS_OF: dict[Any, bytes] = {None: b"null", False: b"false", True: b"true"}
TYPES_OF: dict[Any, int] = {None: NULL, False: BOOLEAN, True: BOOLEAN}
WORD_KINDS = frozenset((str, bool, type(None)))
"""Types of values that have one spelling, but for escapes."""


class RawScalars:
    """Emits the scalars of the subschemas of one plain document."""

    def __init__(self, draft: int, style: Style, limits: Limits) -> None:
        self.draft, self.style, self.limits = draft, style, limits
        self._languages: LanguageCache | None = None

    def emit(self, raw: dict[str, Any], types: int, bits: int) -> list[Node]:
        """Return the alternatives of the values of scalar types that a raw subschema allows.

        bits: of its names (`reading.name_summaries`).
        """
        if not types & STRING:
            bits &= ~TEXT_BITS
        if not types & (NUMBER | INTEGER):
            bits &= ~BOUND_BITS
        if not bits & (TEXT_BITS | BOUND_BITS):
            return self._emit_types(types) if types else []
        options = emit_constants({word for bit, word in WORDS if types & bit}) if types & (NULL | BOOLEAN) else []
        if types & STRING:
            options += self._emit_texts(raw, bits) if bits & TEXT_BITS else [JsonString(any_text())]
        if types & (NUMBER | INTEGER):
            options += (
                self._emit_numbers(raw, types) if bits & BOUND_BITS else self._emit_types(types & (NUMBER | INTEGER))
            )
        return options

    def _emit_types(self, types: int) -> list[Node]:
        """Return the alternatives of all values of scalar types."""
        return list(emit_types(types, self.draft, self.style, self.limits))

    def _emit_numbers(self, raw: dict[str, Any], types: int) -> list[Node]:
        """Return the nodes of the numbers between `minimum` and `maximum`, which are integers."""
        is_integer = not types & NUMBER
        if self.style.numbers == "plain":
            low, high = raw.get("minimum"), raw.get("maximum")
            return [Chars(bounded_dfa(low, high, is_integer, self.style.digits, self.limits.dfa_states))]
        bounds: dict[str, Any] = {name: Fraction(raw[name]) for name in ("minimum", "maximum") if name in raw}
        case = build_integer_case(bounds, self.draft) if is_integer else build_number_case(bounds)
        return emit_numbers((case,), self.style, self.limits)[1]

    def emit_listed(self, raw: dict[str, Any], types: int) -> list[Node] | None:
        """Return the alternatives of the values of `enum` or `const` that have one of some types.

        None if there are numbers, or arrays and objects, among the values.
        """
        values = raw["enum"] if "enum" in raw else [raw["const"]]
        if not WORD_KINDS.issuperset(map(type, values)):
            return None
        words = {WORDS_OF[value] for value in values if type(value) is not str and types & TYPES_OF[value]}
        texts = tuple([value for value in values if type(value) is str]) if types & STRING else ()
        if not texts:
            return emit_constants(words)
        constants, nodes = emit_strings((StringCase(texts),), self.languages, self.style)
        return [*emit_constants(constants | words), *nodes]

    @property
    def languages(self) -> LanguageCache:
        """The automata of texts, each built once."""
        if self._languages is None:
            self._languages = LanguageCache(self.limits, refuse_keyword, refuse_keyword)
        return self._languages

    def _emit_texts(self, raw: dict[str, Any], bits: int) -> list[Node]:
        """Return the node of the texts that `pattern`, `format` or bounds of the length allow."""
        keywords = raw
        if bits & FORMAT:
            if self.style.formats == "annotate" or raw["format"] not in FORMATS:
                keywords = {name: value for name, value in raw.items() if name != "format"}
            else:
                keywords = {**raw, "format": format_in(raw["format"], self.draft)}
        case = build_string_case(keywords)
        if not case.lang:
            return [JsonString(any_text(), case.low, case.high)]
        return emit_strings((case,), self.languages, self.style)[1]
