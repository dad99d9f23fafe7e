"""The format `regex`: the texts that are regular expressions of ECMA-262, as far as an automaton can decide.

Parentheses nest, so this is not a regular language, but it is one between parentheses: a Disjunction is flat text
(`flat_regex_format`), then any number of groups, each followed by flat text. So several leaves and one recursive rule
suffice. What they accept is what `pattern` reads: Unicode mode, with a lone `{`, `}` and `]` and escaped punctuation.

Of the early errors of ECMA-262 (section 22.2.1.1) these are checked: what a quantifier follows, `{3,2}` below 100,
`[z-a]` between ASCII characters, and `\\0` before a digit. Not checked are conditions that would need unbounded memory
or large tables: whether a referenced group exists, whether two groups have the same name, which letters beyond ASCII a
name may have, which properties of characters there are, the other ranges.
"""

from __future__ import annotations

from ....automata.dfa import Dfa
from ....base.work import memoize_work
from ....grammar.nodes import Chars, Choice, Node, Repeat, Rule, Sequence
from ...regex import to_dfa
from .flat_regex_format import flat_regex_dfa

__all__ = ["is_regex", "regex_node", "regex_within"]

LOOK = r"\(\?(?:=|!|<=|<!)"
NAME = r"[A-Za-z_$\x80-\U0010ffff][0-9A-Za-z_$\x80-\U0010ffff]*"
QUANTIFIER = r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??"


def regex_node(inner: Rule, low: int) -> Node:
    """Return a Disjunction of at least `low` (0 or 1) characters, as written inside a JSON string; `inner` is any
    Disjunction.
    """
    text = Chars(flat_regex_dfa(), "json")
    groups = Choice(tuple(
        Sequence((Chars(opening, "json"), inner, Chars(closing, "json"), text)) for opening, closing in _brackets()
    ))  # fmt: skip
    if low == 0:
        return Sequence((text, Repeat(groups)))
    nonempty = Chars(flat_regex_dfa().with_length(1), "json")
    return Choice((Sequence((nonempty, Repeat(groups))), Repeat(groups, 1)))


def regex_within(other: Dfa, max_states: int) -> Dfa | None:
    """Return the regular expressions that another automaton accepts too; None if some of them might have groups."""
    grouped = flat_regex_dfa().concatenate(to_dfa(r"\(")).concatenate(Dfa.any_text())
    if not grouped.intersect(other, max_states=max_states).is_empty:
        return None
    return flat_regex_dfa().intersect(other, max_states=max_states)


def is_regex(text: str) -> bool:
    """Return whether the text is a regular expression."""
    closings: list[Dfa] = []
    state, position = 0, 0
    while position < len(text):
        following = flat_regex_dfa().step(state, text[position])
        if following >= 0:
            state, position = following, position + 1
            continue
        if not flat_regex_dfa().accepting[state]:
            return False
        if text[position] == ")" and closings:
            position = _find_longest_match(closings.pop(), text, position)
        else:
            # Flat text after ( never begins with ?, so the longest opening is the right one.
            position, closing = max(
                ((_find_longest_match(opening, text, position), closing) for opening, closing in _brackets()),
                key=lambda candidate: candidate[0],
            )
            if not position:
                return False
            closings.append(closing)
        state = 0
    return not closings and bool(flat_regex_dfa().accepting[state])


def _find_longest_match(dfa: Dfa, text: str, position: int) -> int:
    """Return the end of the longest text of the automaton that starts at a position; 0 if there is none."""
    state, end = 0, 0
    while state >= 0:
        if dfa.accepting[state]:
            end = position
        if position == len(text):
            break
        state, position = dfa.step(state, text[position]), position + 1
    return end


@memoize_work(64)
def _brackets() -> tuple[tuple[Dfa, Dfa], ...]:
    """Return the opening and closing of a group that a quantifier may follow, and those of lookaround."""
    group = to_dfa(rf"\((?:\?(?::|<{NAME}>|{_flags()}:))?")
    decreasing = to_dfa(rf"\)\{{(?:{_decreasing_bounds()}|[1-9][0-9]{{2,}},[0-9]{{1,2}})\}}")
    closing = to_dfa(rf"\)(?:{QUANTIFIER})?").subtract(decreasing.concatenate(to_dfa(r"\??")))
    return (group, closing), (to_dfa(LOOK), to_dfa(r"\)"))


def _decreasing_bounds() -> str:
    """Return the pattern of two numbers below 100, with a comma between them, of which the first is greater."""
    figures = range(1, 10)
    single = [f"{low},[0-{low - 1}]" for low in figures]
    fewer_tens = ["[1-9][0-9],[0-9]", *(f"{tens}[0-9],[1-{tens - 1}][0-9]" for tens in figures[1:])]
    same_tens = [f"{tens}{low},{tens}[0-{low - 1}]" for tens in figures for low in figures]
    return "|".join([*single, *fewer_tens, *same_tens])


def _flags() -> str:
    """Return the pattern of the modifiers between `?` and `:`: flags to add, and to remove after a dash, none twice."""
    orders = _orders("ims")
    pairs = [f"{on}-{off}" for on in orders for off in orders if off and not set(on) & set(off)]
    return "(?:" + "|".join([order for order in orders if order] + pairs) + ")"


def _orders(letters: str) -> list[str]:
    """Return every order of some of the letters."""
    return ["", *(letter + suffix for letter in letters for suffix in _orders(letters.replace(letter, "")))]
