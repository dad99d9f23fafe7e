"""Emit the scalars of a plain subschema from its raw keywords: texts with a pattern, a format or bounds, and numbers.

Patterns of keys are divided here, too.

The inspection of the document (`reading.document_inspection`) has found each of them valid and satisfiable, so that
neither a parser nor the algebra is needed.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ....automata.dfa import Dfa
from ....base.options import Limits, Style
from ....grammar.nodes import Chars, JsonString, Node
from ..core.json_values import BOOLEAN, NULL, NUMBER, STRING
from ..core.static_types import INTEGER
from ..numbers.number_automata import bounded_dfa
from ..numbers.number_keywords import build_integer_case, build_number_case
from ..numbers.number_sets import NumberCase, emit_numbers
from ..reading.name_summaries import BOUND_BITS, FORMAT, PATTERN, TEXT_BITS
from ..strings.formats import FORMATS, format_in
from ..strings.schema_patterns import letters_dfa, pattern_dfa, read_pattern
from ..strings.string_keywords import build_string_case
from ..strings.string_languages import ALL, LanguageCache
from ..strings.string_sets import StringCase, emit_strings, separate_lengths
from .plain_rules import WORDS, emit_constants, emit_types, refuse_keyword

__all__ = ["RawScalars"]


WORDS_OF: dict[Any, bytes] = {None: b"null", False: b"false", True: b"true"}
TYPES_OF: dict[Any, int] = {None: NULL, False: BOOLEAN, True: BOOLEAN}
TEXT_KIND = {str}
LISTED_KINDS = {str, bool, type(None), int}
"""Types of listed values that are emitted here."""


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
            options += self._emit_texts(raw, bits) if bits & TEXT_BITS else [JsonString(Dfa.any_text())]
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

        None if there are fractions, or arrays and objects, among the values.
        """
        values = raw["enum"] if "enum" in raw else [raw["const"]]
        kinds = set(map(type, values))
        if not kinds <= LISTED_KINDS:
            return None
        words, texts, numbers = set[bytes](), list[Node](), list[Node]()
        if kinds != TEXT_KIND:
            found = [value for value in values if type(value) is bool or value is None]
            words.update(WORDS_OF[value] for value in found if types & TYPES_OF[value])
        if int in kinds and types & (NUMBER | INTEGER):
            listed = tuple(dict.fromkeys([Fraction(value) for value in values if type(value) is int]))
            is_by_text = self.draft == 4 and not types & NUMBER
            case = NumberCase(listed, spelling="integer" if is_by_text else None)
            spelled, numbers = emit_numbers((case,), self.style, self.limits)
            words |= spelled
        if str in kinds and types & STRING:
            case_of_texts = StringCase(tuple([value for value in values if type(value) is str]))
            quoted, texts = emit_strings((case_of_texts,), self.languages, self.style)
            words |= quoted
        return [*emit_constants(words), *texts, *numbers]

    def split_names(self, raw: dict[str, Any]) -> list[Dfa] | None:
        """Return the names that match the one pattern of `patternProperties`, and those that do not, if there are any.

        None if either are few: they may all be used, so that they have to be declared.
        """
        [pattern] = raw["patternProperties"]
        names = list[Dfa]()
        for part in self.languages.split(ALL, pattern):
            if part is not None:
                dfa = self.languages.dfa(part)
                if dfa.lengths()[1] is not None:  # The others, a complement, are not built for nothing.
                    return None
                names.append(dfa)
        return names

    @property
    def languages(self) -> LanguageCache:
        """The automata of texts, each built once."""
        if self._languages is None:
            self._languages = LanguageCache(self.limits, refuse_keyword, refuse_keyword)
        return self._languages

    def _emit_texts(self, raw: dict[str, Any], bits: int) -> list[Node]:
        """Return the nodes of the texts that a pattern, a format or bounds of the length allow: one of the three."""
        most = self.limits.dfa_states
        if bits & PATTERN:
            counted = read_pattern(raw["pattern"]).counted
            dfa = (pattern_dfa if counted is None else letters_dfa)(raw["pattern"], most)
            return [JsonString(dfa) if counted is None else JsonString(*separate_lengths(dfa, *counted, most))]
        if bits & FORMAT and self.style.formats != "annotate" and raw["format"] in FORMATS:
            case = build_string_case({"format": format_in(raw["format"], self.draft)})
            return emit_strings((case,), self.languages, self.style)[1]
        return [JsonString(Dfa.any_text(), raw.get("minLength", 0), raw.get("maxLength"))]
