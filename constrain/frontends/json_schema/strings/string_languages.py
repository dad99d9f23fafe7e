"""Languages of texts as formulas: the conditions on strings and names of keys, before any automaton is built.

A `Language` is a set of signed atoms that denotes their conjunction: `(True, "pattern", "^a")`, `(False, "texts",
("x", "y"))`. It is small and hashable, so cases of Shapes are cheap to compare and combine; `LanguageCache` builds
the automaton on demand and caches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from ....automata.dfa import Dfa
from ....base.errors import ConstrainError, UnsupportedError
from ....base.options import Limits
from ..core.schema_sets import SchemaSet
from .formats import LEAP_STATES, LEAPING, RULE_FORMATS, format_dfa, times_within
from .nested_regex_format import NestedTexts
from .regex_format import is_regex, regex_within
from .schema_patterns import letters_dfa, pattern_dfa, read_pattern

__all__ = ["ALL", "Atom", "Language", "LanguageCache"]

Atom = tuple[bool, Literal["pattern", "letters", "format", "texts", "names", "dfa"], object]
"""Sign, kind and payload: a regular expression; a regular expression whose length is counted separately; the name of a
format; a tuple of texts; the set of propertyNames; a product that has been computed.
"""

Language = frozenset[Atom]

IRREGULAR_FORMATS = frozenset(("regex",))
"""Formats whose conjunction with other conditions is written by rules (`NestedTexts`)."""

MOST_ENUMERATED_TEXTS = 1_000
"""Most texts of a language that is decided by enumeration."""

MOST_ACCEPTED = 1 << 16
"""Most answers of `LanguageCache.accepts` that are kept."""

ALL: Language = frozenset()
"""All texts."""


class LanguageCache:
    """The automata of formulas, each built once."""

    def __init__(
        self, limits: Limits, names: Callable[[SchemaSet], Dfa], refuse: Callable[[str, str], ConstrainError]
    ) -> None:
        """names: returns the texts of a set. refuse: returns the error of a cause, at a keyword."""
        self.limits = limits
        self._names = names
        self._refuse = refuse
        self._dfas: dict[Language, Dfa] = {ALL: Dfa.any_text()}
        self._atoms: dict[tuple[bool, str, object], Dfa] = {}
        self._nested: dict[tuple[Language, int, int | None], NestedTexts | Dfa] = {}
        self._common: dict[tuple[str, str], bool] = {}
        self._accepted: dict[tuple[Language, str], bool] = {}
        self.text_counts: dict[object, Any] = {}
        """The counts of texts of `arrays.value_counts`, by case and cap."""

    def dfa(self, lang: Language) -> Dfa:
        """Return the automaton of the formula."""
        known = self._dfas.get(lang)
        if known is None and isinstance(found := self.nested(lang), Dfa):
            known = self._dfas[lang] = found
        if known is None:
            most = self.limits.dfa_states
            by_rules = [atom for atom in lang if atom[0] and atom[1] == "format" and atom[2] in RULE_FORMATS]
            if by_rules and len(lang) > 1:
                name = str(by_rules[0][2])
                common = RULE_FORMATS[name].within(self.dfa(lang - {by_rules[0]}), most)
                known = self._dfas[lang] = self._atom(True, "format", name) if common is None else common
                return known
            with_leap_seconds = [atom for atom in lang if atom[1] == "format" and atom[2] in LEAPING]
            if with_leap_seconds and with_leap_seconds[0][0] and len(lang) > 1:
                known = self._dfas[lang] = times_within(
                    str(with_leap_seconds[0][2]), self.dfa(lang - {with_leap_seconds[0]}), most
                )
                return known
            if with_leap_seconds:
                most += LEAP_STATES
            included = [self._atom(True, kind, payload) for sign, kind, payload in lang if sign]
            excluded = [self._atom(False, kind, payload) for sign, kind, payload in lang if not sign]
            included.sort(key=lambda dfa: dfa.delta.shape[0])
            excluded.sort(key=lambda dfa: dfa.delta.shape[0])
            known = included[0] if included else excluded.pop(0).complement()
            for other in included[1:]:
                known = known.intersect(other, max_states=most)
            for other in excluded:
                known = known.subtract(other, max_states=most)
            self._dfas[lang] = known
        return known

    def irregular(self, lang: Language) -> bool:
        """Return whether an atom of the formula is a format that is not a regular language."""
        return any(kind == "format" and payload in IRREGULAR_FORMATS for _, kind, payload in lang)

    def nested(self, lang: Language, low: int = 0, high: int | None = None) -> NestedTexts | Dfa | None:
        """Return the texts of low to high characters of a formula that contains the format `regex`; None if it does
        not.

        The result is a Dfa if the texts are known to be regular: without parentheses, or enumerated.
        """
        if not self.irregular(lang):
            return None
        known = self._nested.get((lang, low, high))
        if known is None:
            irregular_atoms = {atom for atom in lang if atom[1] == "format" and atom[2] in IRREGULAR_FORMATS}
            other = self.dfa(lang - irregular_atoms).with_length(low, high, max_states=self.limits.dfa_states)
            signs = {sign for sign, _, _ in irregular_atoms}
            if len(signs) > 1 or other.is_empty:
                known = Dfa.empty()
            else:
                known = self._find_regular_part(other, True in signs) or NestedTexts(
                    True in signs, other, self.limits.dfa_states
                )
            self._nested[lang, low, high] = known
        return known

    def _find_regular_part(self, other: Dfa, sign: bool) -> Dfa | None:
        """Return the texts of a Dfa that are regular expressions, or are none, if they are known to be a regular
        language.
        """
        if other.count(MOST_ENUMERATED_TEXTS + 1) <= MOST_ENUMERATED_TEXTS:
            return Dfa.from_strings([text for text in other.enumerate(MOST_ENUMERATED_TEXTS) if is_regex(text) == sign])
        regular = regex_within(other, self.limits.dfa_states)
        return regular if regular is None or sign else other.subtract(regular, max_states=self.limits.dfa_states)

    def holds_names(self, lang: Language) -> bool:
        """Return whether a language has a text."""
        nested = self.nested(lang)
        return not (self.dfa(lang) if nested is None else nested).is_empty

    def split(self, lang: Language, pattern: str) -> tuple[Language | None, Language | None]:
        """Return the texts of a language that match a pattern, and those that do not; None where there certainly are
        none.
        """
        atom = self._atom(True, "pattern", pattern)
        answers = [
            (sign, self.have_common_text(str(payload), pattern)) for sign, kind, payload in lang if kind == "pattern"
        ]
        if atom.is_empty or (True, False) in answers:
            return None, lang
        if not lang and atom.is_universal:
            return lang | {(True, "pattern", pattern)}, None
        if len(answers) == len(lang) and all(answer == (False, False) for answer in answers):
            # The usual case: it has no text in common with any earlier pattern, so no automaton need be built.
            alone: Language = lang | {(True, "pattern", pattern)}
            self._dfas[alone] = atom
            return alone, lang | {(False, "pattern", pattern)}
        language = self.dfa(lang)
        inside = language.intersect(atom, max_states=self.limits.dfa_states)
        if inside.is_empty:
            return None, lang
        if inside == language:
            return lang | {(True, "pattern", pattern)}, None
        matching: Language = lang | {(True, "pattern", pattern)}
        others: Language = lang | {(False, "pattern", pattern)}
        self._dfas[matching] = inside
        self._dfas[others] = language.subtract(atom, max_states=self.limits.dfa_states)
        return matching, others

    def have_common_text(self, one: str, other: str) -> bool:
        """Return whether some text matches both patterns."""
        known = self._common.get((one, other))
        if known is None:
            known = self._atom(True, "pattern", one).meets(self._atom(True, "pattern", other))
            self._common[one, other] = known
        return known

    def accepts(self, lang: Language, text: str) -> bool:
        """Return whether a text is in the language. The same texts and languages meet in many products of cases."""
        key = (lang, text)
        known = self._accepted.get(key)
        if known is None:
            known = self._accepts(lang, text)
            if len(self._accepted) < MOST_ACCEPTED:
                self._accepted[key] = known
        return known

    def _accepts(self, lang: Language, text: str) -> bool:
        for sign, kind, payload in lang:
            if kind == "texts":
                if (text in payload) != sign:  # type: ignore[operator]
                    return False
            elif kind == "format" and payload in RULE_FORMATS:
                if RULE_FORMATS[str(payload)].accepts(text) != sign:
                    return False
            elif self._atom(sign, kind, payload).accepts(text) != sign:
                return False
        return True

    def fast_has_text(self, lang: Language) -> bool:
        """Return whether the language certainly has a text; False means that it is not known."""
        if len(lang) > 1:
            return False
        for sign, kind, payload in lang:
            if kind in ("pattern", "letters"):
                return sign and read_pattern(str(payload)).has_text
            if kind == "format":
                return sign or payload not in RULE_FORMATS
            return kind == "texts" and (not sign or bool(payload))
        return True

    def _atom(self, sign: bool, kind: str, payload: object) -> Dfa:
        key = (sign or kind != "format", kind, payload)
        known = self._atoms.get(key)
        if known is None:
            known = self._atoms[key] = self._build_atom(*key)
        return known

    def _build_atom(self, sign: bool, kind: str, payload: object) -> Dfa:
        if kind == "texts":
            assert isinstance(payload, tuple)
            return Dfa.from_strings(payload)
        if isinstance(payload, Dfa):
            return payload
        if kind == "names":
            assert isinstance(payload, tuple)
            return self._names(payload)
        assert isinstance(payload, str)
        if kind == "pattern":
            return pattern_dfa(payload, self.limits.dfa_states)
        if kind == "letters":
            return letters_dfa(payload, self.limits.dfa_states)
        # A complement needs the whole format, including the dates that "plain" leaves out (see `formats`).
        try:
            known = format_dfa(payload, spelling="plain" if sign else "any")
        except UnsupportedError as error:
            raise self._refuse(error.cause, "format") from None
        assert known is not None
        return known
