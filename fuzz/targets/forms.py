"""Forms: the algebra of languages, against sets of words.

forms  random expressions of literals, patterns and GBNF with + | & ~ and repeat; the words up to a length are listed
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import strategies as st

import constrain
from constrain import Form
from tests.text_acceptance import accepts_text

from ..findings import Disagreement
from ..target import Target, suppress_our_errors
from ..walk import BYTES, walk

__all__ = ["TARGETS"]

LONGEST = 4
WORDS = frozenset("".join(word) for length in range(LONGEST + 1) for word in product("ab", repeat=length))
PATTERNS = ["a*", "(ab|b)*", "a?b", "[ab]{2}", "(?!a).*", "a(?=b).*", ".*a", "b+"]
GRAMMARS: dict[str, Callable[[str], bool]] = {
    'root ::= "a" root "b" | ""': lambda word: word == "a" * (len(word) // 2) + "b" * (len(word) // 2),
    'root ::= "a" root | "b"': lambda word: word.endswith("b") and set(word[:-1]) <= {"a"},
    'root ::= root root | "ab"': lambda word: bool(word) and word == "ab" * (len(word) // 2),
    'root ::= "a" root': lambda word: False,
}


@dataclass(frozen=True)
class Expression:
    """A form as a tree: ("literal", "ab"), ("+", x, y), ("repeat", x, 1, None)…"""

    tree: tuple[Any, ...]

    def form(self) -> Form:
        """Return the form of constrain."""
        match self.tree:
            case ("literal", text):
                return constrain.literal(text)
            case ("regex", pattern):
                return constrain.regex(pattern)
            case ("gbnf", text):
                return constrain.gbnf(text)
            case ("+", left, right):
                return build_form(left) + build_form(right)
            case ("|", left, right):
                return build_form(left) | build_form(right)
            case ("&", left, right):
                return build_form(left) & build_form(right)
            case ("~", inner):
                return ~build_form(inner)
            case ("repeat", inner, low, high):
                return build_form(inner).repeat(low, high)
        raise TypeError(self.tree)

    def words(self) -> frozenset[str]:
        """Return the words of up to LONGEST letters, by sets."""
        import re

        match self.tree:
            case ("literal", text):
                return frozenset({text} & WORDS)
            case ("regex", pattern):
                return frozenset(word for word in WORDS if re.fullmatch(pattern, word))
            case ("gbnf", text):
                return frozenset(word for word in WORDS if GRAMMARS[text](word))
            case ("+", left, right):
                return concatenate_words(list_words(left), list_words(right))
            case ("|", left, right):
                return list_words(left) | list_words(right)
            case ("&", left, right):
                return list_words(left) & list_words(right)
            case ("~", inner):
                return WORDS - list_words(inner)
            case ("repeat", inner, low, high):
                return repeat_words(list_words(inner), low, high)
        raise TypeError(self.tree)


def build_form(expression: Expression) -> Form:
    """Return the form of a part."""
    return expression.form()


def list_words(expression: Expression) -> frozenset[str]:
    """Return the words of a part."""
    return expression.words()


def concatenate_words(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    return frozenset(a + b for a in left for b in right if len(a) + len(b) <= LONGEST)


def repeat_words(words: frozenset[str], low: int, high: int | None) -> frozenset[str]:
    """Return the concatenations of `low` to `high` words."""
    out, some = frozenset[str](), frozenset({""})
    for count in range((low + LONGEST + 1 if high is None else high) + 1):
        out |= some if count >= low else out
        some = concatenate_words(some, words)
    return out


leaves = st.one_of(
    st.sampled_from(["", "a", "b", "ab", "ba"]).map(lambda text: Expression(("literal", text))),
    st.sampled_from(PATTERNS).map(lambda pattern: Expression(("regex", pattern))),
    st.sampled_from(list(GRAMMARS)).map(lambda text: Expression(("gbnf", text))),
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda op, x, y: Expression((op, x, y)), st.sampled_from("+|&"), inner, inner),
        st.builds(lambda x: Expression(("~", x)), inner),
        st.builds(lambda x, low, more: Expression(("repeat", x, low, None if more is None else low + more)), inner,
                  st.integers(0, 3), st.one_of(st.none(), st.integers(0, 2))),
    ),
    max_leaves=5,
)  # fmt: skip


def check(expression: Expression) -> None:
    """Check that the short words are equal; forms that are not supported must be refused with an error."""
    wanted = expression.words()
    try:
        constraint = constrain.compile(BYTES, expression.form())
    except constrain.UnsatisfiableError as error:
        if wanted:
            raise Disagreement(
                "constrain calls a form empty that is not", f"{expression} has {sorted(wanted)[:5]}: {error}"
            ) from None
        return
    except constrain.ConstrainError:
        return
    with suppress_our_errors():
        for word in sorted(WORDS):
            if accepts_text(constraint, word.encode()) != (word in wanted):
                side = "refuses" if word in wanted else "accepts"
                raise Disagreement(f"constrain {side} against the sets of words", f"{expression}\n{word!r}")
        walk(constraint, 1, 5)


TARGETS = (
    Target("forms", "the algebra of forms, against sets of words", expressions, check, corpus=(
        Expression(("repeat", Expression(("repeat", Expression(("literal", "a")), 2, None)), 0, None)),
        Expression(("~", Expression(("gbnf", 'root ::= "a" root')))),
        Expression(("|", Expression(("gbnf", 'root ::= "a" root')), Expression(("literal", "a")))))),
)  # fmt: skip
