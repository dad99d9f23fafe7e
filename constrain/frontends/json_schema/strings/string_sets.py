"""Sets of texts: `minLength`, `maxLength`, `pattern`, `format`, and the texts of `enum` and `const`.

A `StringCase` is a finite tuple of texts, or a formula of atoms (`string_languages`) with an interval of lengths.
Lengths count code points of the decoded text. Where that cannot lead to a dead end (`separate_lengths`), the length is
counted in addition to the automaton of the pattern; elsewhere it is multiplied into the automaton.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from ....automata.dfa import Dfa
from ....automata.listed_words import ListedWords
from ....base.options import Style
from ....base.work import memoize_work, spend_work
from ....grammar.nodes import JsonString, Literal, Node, Rule, Sequence
from .enum_words import emit_words
from .formats import RULE_FORMATS
from .nested_regex_format import NestedTexts
from .string_languages import ALL, Language, LanguageCache

__all__ = [
    "ANY_STRING",
    "FormatRule",
    "StringCase",
    "quote_texts",
    "complement_strings",
    "emit_strings",
    "intersect_strings",
    "is_string_satisfiable",
    "quote_text",
    "separate_lengths",
    "string_dfa",
]


class StringCase(NamedTuple):
    """Texts: one of `values` if that is not None, otherwise those of `lang` with low to high characters."""

    values: tuple[str, ...] | None = None
    lang: Language = ALL
    low: int = 0
    high: int | None = None


ANY_STRING = StringCase()

MANY_LETTERS = 10_000
"""Characters of listed texts beyond which they are a trie that is built on demand, which is faster than their
automaton.
"""

QUOTE = Literal(b'"')


def intersect_lengths(low: int, high: int | None, interval: tuple[int, int | None]) -> tuple[int, int | None]:
    """Return the lengths that are in both intervals."""
    least, most = interval
    return max(low, least), high if most is None else most if high is None else min(high, most)


def intersect_strings(one: StringCase, other: StringCase, languages: LanguageCache) -> StringCase | None:
    """Return the texts of both cases; None if there obviously are none."""
    if one.values is None and other.values is None:
        low, high = intersect_lengths(one.low, one.high, (other.low, other.high))
        return StringCase(None, one.lang | other.lang, low, high) if high is None or low <= high else None
    if one.values is None:
        one, other = other, one
    assert one.values is not None
    if other.values is not None:
        other_values = set(other.values)
        common = tuple(text for text in one.values if text in other_values)
    else:
        common = tuple(text for text in one.values if contains_text(other, text, languages))
    return one._replace(values=common) if common else None


def merge_strings(cases: tuple[StringCase, ...], languages: LanguageCache) -> StringCase:
    """Return the texts of all cases as one case: their automata are united."""
    union = Dfa.union_of([exact_string_dfa(case, languages) for case in cases], max_states=languages.limits.dfa_states)
    return StringCase(lang=frozenset(((True, "dfa", union),)))


def contains_text(case: StringCase, text: str, languages: LanguageCache) -> bool:
    """Return whether a text is in the case."""
    if case.values is not None:
        return text in case.values
    if len(text) < case.low or (case.high is not None and len(text) > case.high):
        return False
    return languages.accepts(case.lang, text)


def complement_strings(case: StringCase) -> list[StringCase]:
    """Return the texts that are not in the case, as a union of cases."""
    if case.values is not None:
        return [StringCase(lang=frozenset(((False, "texts", case.values),)))]
    out = [StringCase(lang=frozenset(((not sign, kind, payload),))) for sign, kind, payload in case.lang]
    if case.low:
        out.append(StringCase(high=case.low - 1))
    if case.high is not None:
        out.append(StringCase(low=case.high + 1))
    return out


def is_string_satisfiable(case: StringCase, languages: LanguageCache) -> bool:
    """Return whether the case has a text."""
    if case.values is not None:
        return bool(case.values)
    if case.high is not None and case.low > case.high:
        return False
    nested = languages.nested(case.lang, case.low, case.high)
    if nested is not None:
        return not nested.is_empty
    if case.high is None and (find_format_rule(case) or (case.low == 0 and languages.fast_has_text(case.lang))):
        return True
    return not case.lang or not string_dfa(case, languages)[0].is_empty


def string_dfa(case: StringCase, languages: LanguageCache) -> tuple[Dfa, int, int | None]:
    """Return an automaton, and the interval of lengths that must be counted beside it.

    This is where `minLength` and `maxLength` take effect, by a counter of the JsonString node or in the automaton.
    """
    if case.values is not None:
        return Dfa.from_strings(case.values), 0, None
    nested = languages.nested(case.lang, case.low, case.high)
    if isinstance(nested, Dfa):
        return nested, 0, None
    dfa = languages.dfa(case.lang)
    if not case.lang:
        return dfa, case.low, case.high
    return separate_lengths(dfa, case.low, case.high, languages.limits.dfa_states)


@memoize_work(1024)
def separate_lengths(dfa: Dfa, low: int, high: int | None, most_states: int) -> tuple[Dfa, int, int | None]:
    """Return the same texts as a Dfa and an interval that can be counted beside it without a dead end.

    An upper bound never needs states: a text of n characters in a state whose shortest suffix has d characters can be
    completed exactly if n + d <= high. A lower bound needs none if acceptance in d characters implies that in d + 1;
    elsewhere (`^([a-z][0-9])+$`, at least 5) the count up to it is multiplied in.
    """
    if dfa.is_empty or (low == 0 and high is None):
        return dfa, 0, None
    least, most = dfa.lengths()
    if (high is not None and least > high) or (most is not None and most < low):
        return Dfa.empty(), 0, None
    if high is not None and most is not None and most <= high:
        high = None
    if least >= low:
        return dfa, 0, high
    if dfa.extensible():
        return dfa, low, high
    dfa = dfa.with_length(low, None, max_states=most_states)
    return separate_lengths(dfa, 0, high, most_states)


def exact_string_dfa(case: StringCase, languages: LanguageCache) -> Dfa:
    """Return the automaton of exactly the case, lengths multiplied in."""
    dfa, low, high = string_dfa(case, languages)
    return dfa.with_length(low, high, max_states=languages.limits.dfa_states) if low or high is not None else dfa


def needs_string_rule(cases: tuple[StringCase, ...], style: Style) -> bool:
    """Return whether automata have to be built: such texts become a rule, which is built when it is reached."""
    return any(case.lang for case in cases)


def emit_strings(
    cases: tuple[StringCase, ...], languages: LanguageCache, style: Style
) -> tuple[set[bytes], list[Node]]:
    """Return the constants as they are written, to be merged with other constants, and the nodes of all other texts."""
    constants: set[bytes] = set()
    nodes: list[Node] = []
    for case in cases:
        spend_work(2 * len(case.values or ()), "the texts of a schema")
        if case.values is not None and style.escapes == "canonical":
            constants.update(text.encode() for text in quote_texts(case.values))
        elif case.values is not None and sum(map(len, case.values)) > MANY_LETTERS:
            words = emit_words(list(case.values), [0] * len(case.values), lambda _: QUOTE, escapes=True)
            nodes.append(Sequence((QUOTE, words)))
        elif (name := find_format_rule(case)) is not None:
            nodes.append(Sequence((QUOTE, Rule(name), QUOTE)))
        elif isinstance(nested := languages.nested(case.lang, case.low, case.high), NestedTexts):
            nodes.append(Sequence((QUOTE, nested.node(), QUOTE)))
        elif case.values is not None:
            nodes.append(JsonString(ListedWords(case.values)))
        else:
            dfa, low, high = string_dfa(case, languages)
            nodes.append(JsonString(dfa, low, high))
    return constants, nodes


class FormatRule(NamedTuple):
    """The name of the rule of a format that is written by rules. low: least number of characters, 0 or 1."""

    format: str
    low: int = 0

    def node(self) -> Node:
        """Return the node of the rule."""
        return RULE_FORMATS[self.format].node(Rule(FormatRule(self.format)), self.low)


def find_format_rule(case: StringCase) -> FormatRule | None:
    """Return the rule of the texts if they are exactly those of a format that is written by rules, else None."""
    if case.values is not None or len(case.lang) != 1 or case.low > 1 or case.high is not None:
        return None
    [(sign, kind, payload)] = case.lang
    return FormatRule(str(payload), case.low) if sign and kind == "format" and payload in RULE_FORMATS else None


def quote_texts(texts: Iterable[str]) -> list[str]:
    """Return texts as `json.dumps(ensure_ascii=False)` writes them."""
    # One call for all: inside a JSON string every line feed is written as an escape.
    return json.dumps(list(texts), ensure_ascii=False, separators=("\n", ":"))[1:-1].split("\n")


def quote_text(text: str) -> bytes:
    """Return a text as `json.dumps(ensure_ascii=False)` writes it."""
    return json.dumps(text, ensure_ascii=False).encode()
