"""Lexical constraints: forms of the texts that contain, or do not contain, given phrases.

    schema & constrain.contains("train", "trains")                 one of these words
    article & constrain.all_of(["Paris", ("go", "goes", "went")])  Paris, and a form of "go"
    reply & constrain.excludes("sorry", case="insensitive")        in no spelling

Each of them is a regular form, so that it combines by `&`, `|` and `~` with every other form, and every sampler has it;
a list of clauses, each of which lists alternatives such as the inflections of a word, is a condition in conjunctive
normal form (as in NeuroLogic decoding, Lu et al. 2021). The automata are in `automata.phrase_automata`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal as OneOf

from ..automata.dfa import Dfa
from ..automata.phrase_automata import Ranges, build_phrase_dfa, intersect_all
from ..base.errors import (
    ArgumentError,
    SourceError,
    UnsatisfiableError,
    check_choice,
    describe_value,
    shorten_text,
)
from ..base.options import Limits
from ..frontends.regex.charset import charset_of, list_ranges
from ..frontends.regex.unicode_properties import class_escape, close_over_case
from ..grammar.grammar_dfa import to_dfa
from ..grammar.json_spelling import spell_as_json
from ..grammar.nodes import Chars, Grammar
from .form import Form

__all__ = ["AllClauses", "PhraseOccurrence", "all_of", "contains", "excludes"]

Case = OneOf["sensitive", "insensitive"]
Boundaries = OneOf["none", "words"]
Within = OneOf["text", "json_strings"]


@dataclass(frozen=True, slots=True)
class PhraseOccurrence(Form):
    """All texts in which some, or none, of the phrases occurs; the other fields are as for `contains`."""

    phrases: tuple[str, ...]
    occurring: OneOf["some", "none"]
    case: Case
    boundaries: Boundaries
    within: Within

    def read(self, limits: Limits) -> Grammar:
        most = limits.dfa_states
        dfa = build_phrase_dfa(
            self.phrases,
            equal_characters=_find_case_variants(self.phrases) if self.case == "insensitive" else {},
            word_characters=_list_word_characters() if self.boundaries == "words" else None,
            max_states=most,
        )
        if self.within == "json_strings":
            dfa = _find_within_strings(dfa, most)
        return Grammar(Chars(dfa.complement() if self.occurring == "none" else dfa), {})


@dataclass(frozen=True, slots=True)
class AllClauses(Form):
    """The texts that match all of several regular forms."""

    clauses: tuple[Form, ...]

    def read(self, limits: Limits) -> Grammar:
        dfas = [to_dfa(clause.grammar(limits), "all_of", limits) for clause in self.clauses]
        dfa = intersect_all(dfas, max_states=limits.dfa_states)
        if dfa.is_empty:
            raise UnsatisfiableError("no text meets all clauses of an all_of", hint="Relax one of them.")
        return Grammar(Chars(dfa), {})


# ---- public constructors


def contains(
    phrase: str,
    *alternatives: str,
    case: Case = "sensitive",
    boundaries: Boundaries = "none",
    within: Within = "text",
) -> Form:
    """Return the form of all texts that contain a phrase, or one of its alternatives.

    Parameters
    ----------
    phrase : str
        The phrase, which is not empty.
    *alternatives : str
        Other phrases that count as well, such as the inflections of a word.
    case : {"sensitive", "insensitive"}
        "insensitive" ignores case as `re.IGNORECASE` does.
    boundaries : {"none", "words"}
        "words": a phrase counts only where no word character (`\\w` of `re`) stands directly before or after it.
    within : {"text", "json_strings"}
        "text": the phrase occurs in the text as it is written; in JSON that includes quotes, escapes and keys.
        "json_strings": the text is JSON, and the phrase occurs in the decoded value of one of its strings, keys
        included. Texts in which a string is not closed, or has an escape that JSON does not have, do not match.

    Returns
    -------
    Form
        A regular form; combine it with others by `&`.

    Raises
    ------
    TypeError
        If a phrase is not a str.
    ArgumentError
        If a phrase is empty or an option is not one of its choices.
    SourceError
        If a phrase holds an unpaired surrogate.
    """
    return _make_occurrence((phrase, *alternatives), "some", case, boundaries, within)


def excludes(
    phrase: str,
    *others: str,
    case: Case = "sensitive",
    boundaries: Boundaries = "none",
    within: Within = "text",
) -> Form:
    """Return the form of all texts that contain none of these phrases.

    Parameters
    ----------
    phrase : str
        A phrase that must not occur; it is not empty.
    *others : str
        Further such phrases.
    case, boundaries, within
        As for `contains`. The form is its complement.

    Returns
    -------
    Form
        A regular form; combine it with others by `&`.

    Raises
    ------
    TypeError, ArgumentError, SourceError
        As for `contains`.
    """
    return _make_occurrence((phrase, *others), "none", case, boundaries, within)


def all_of(
    clauses: Iterable[str | Iterable[str] | Form], *, case: Case = "sensitive", boundaries: Boundaries = "none"
) -> Form:
    """Return the form of the texts that meet all clauses, each of which lists alternatives.

    Parameters
    ----------
    clauses : iterable of str, iterable of str, or Form
        A str is a phrase that must occur; an iterable of str lists phrases one of which must occur; a regular Form,
        such as `excludes(...)`, stands for itself.
    case, boundaries
        As for `contains`, for all clauses that are no forms.

    Returns
    -------
    Form
        A regular form. Its automaton can grow as 2 to the power of the number of clauses.

    Raises
    ------
    TypeError, ArgumentError, SourceError
        As for `contains`, or if there are no clauses.
    """
    if isinstance(clauses, (str, Form)) or not isinstance(clauses, Iterable):
        raise TypeError(f"clauses is {describe_value(clauses)}: give a list, such as [('go', 'goes'), 'Paris']")
    forms = tuple(_make_clause(clause, case, boundaries) for clause in clauses)
    if not forms:
        raise ArgumentError("all_of([]): give at least one clause")
    return AllClauses(forms)


def _make_clause(clause: str | Iterable[str] | Form, case: Case, boundaries: Boundaries) -> Form:
    """Return the form of a clause of `all_of`."""
    if isinstance(clause, Form):
        return clause
    if not isinstance(clause, Iterable):
        raise TypeError(f"a clause is {describe_value(clause)}: give a phrase, a list of phrases or a form")
    return _make_occurrence((clause,) if isinstance(clause, str) else tuple(clause), "some", case, boundaries, "text")


def _make_occurrence(
    phrases: tuple[str, ...], occurring: OneOf["some", "none"], case: Case, boundaries: Boundaries, within: Within
) -> Form:
    """Check the arguments and return the form."""
    if not phrases:
        raise ArgumentError("a list of phrases is empty: give at least one phrase")
    for one in phrases:
        if not isinstance(one, str):
            raise TypeError(f"a phrase is {describe_value(one)}: give a text")
        if not one:
            raise ArgumentError("a phrase is empty: every text contains it")
        surrogate = next((k for k, char in enumerate(one) if "\ud800" <= char <= "\udfff"), None)
        if surrogate is not None:
            raise SourceError(
                "a phrase holds half of a surrogate pair, which is not a character.",
                source=repr(shorten_text(one)),
                position=surrogate + 1,
            )
    check_choice("case", case, ("sensitive", "insensitive"))
    check_choice("boundaries", boundaries, ("none", "words"))
    check_choice("within", within, ("text", "json_strings"))
    return PhraseOccurrence(tuple(dict.fromkeys(phrases)), occurring, case, boundaries, within)


# ---- characters


def _find_case_variants(phrases: Iterable[str]) -> dict[str, Ranges]:
    """Return, for each character of the phrases, those that are equal to it if case is ignored."""
    return {
        char: tuple(list_ranges(close_over_case(charset_of(ord(char)), "python")))
        for char in sorted(set().union(*phrases))
    }


def _list_word_characters() -> Ranges:
    """Return the characters that `\\w` of `re` matches."""
    return tuple(list_ranges(class_escape("w", "python", "")))


def _find_within_strings(dfa: Dfa, max_states: int) -> Dfa:
    """Return the Dfa of the JSON texts that have a string with a decoded value that `dfa` accepts."""
    quote = Dfa.from_strings(['"'])
    outside = Dfa.from_ranges([(0, 0x21), (0x23, 0x10FFFF)]).star(max_states=max_states)

    def quoted(inner: Dfa) -> Dfa:
        return quote.concatenate(spell_as_json(inner, max_states=max_states)).concatenate(quote)

    others = outside.union(quoted(Dfa.any_text())).star(max_states=max_states)
    return others.concatenate(quoted(dfa), max_states=max_states).concatenate(others, max_states=max_states)
