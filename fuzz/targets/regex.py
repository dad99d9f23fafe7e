"""Regular expressions.

regex-text     any text as a pattern: compiles and its masks are consistent, or it raises a ConstrainError
regex-verdict  patterns that `re` supports, too: the same texts match
"""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import strategies as st

import constrain
from tests.grammar_strategies import compile_re, flag_sets, regexes, texts
from tests.text_acceptance import accepts_text

from ..edits import edit_text, nest_text
from ..findings import Disagreement
from ..target import Target, suppress_our_errors
from ..walk import BYTES, MIXED, walk

__all__ = ["TARGETS", "BacktrackingTimeout", "limit_backtracking"]

PIECES = [
    "(?=",
    "(?!",
    "(?<=",
    "(?<!",
    "(?:",
    "(?i)",
    "(?P<a>",
    "(?P=a)",
    "\\1",
    "\\b",
    "\\B",
    "\\p{L}",
    "\\P{Greek}",
    "[^",
    "[a-",
    "]",
    "{2,3}",
    "{0}",
    "{,5}",
    "{999}",
    "{99999}",
    "{1,1000}",
    "*?",
    "+",
    "|",
    "^",
    "$",
    "\\Z",
    "\\A",
    "(?>",
    "(?s:.",
    "\\x41",
    "\\u00e9",
    "\\N{DIGIT ONE}",
    "a{1000}{1000}",
    "(a+)+",
    "(a|a)*b",
    ".*a.{9}",
    "(?(1)a|b)",
    "\\0",
]
deep = st.one_of(
    nest_text("(", ")", "a"),
    nest_text("(?:", ")*", "a"),
    nest_text("(?=", ")", "a"),
    nest_text("[", "]", "a"),
    nest_text("(a|", ")", "b"),
)
SECONDS = 1.0
POSSESSIVE = re.compile(r"[*+?}]\+|\(\?>")
"""Possessive quantifiers and atomic groups, which `re` has since Python 3.11 and constrain refuses."""


class BacktrackingTimeout(Exception):
    """A match of `re` takes too long."""


@contextmanager
def limit_backtracking(seconds: float = SECONDS) -> Iterator[None]:
    """Raise BacktrackingTimeout if the block takes more CPU time. It must check signals, as `re` does."""

    def stop(*_: Any) -> None:
        raise BacktrackingTimeout

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def check_text(drawn: tuple[str, int]) -> None:
    """Compile the pattern, and match what a walk wrote by `re`."""
    pattern, seed = drawn
    with suppress_our_errors():
        constraint = constrain.compile(MIXED, regex=pattern)
        made = walk(constraint, seed)
        if made is not None:
            check_match(pattern, made.decode())


def check_match(pattern: str, text: str) -> None:
    """Check that the text matches, if `re` supports the pattern and answers in time."""
    try:
        with warnings.catch_warnings(), limit_backtracking():
            warnings.simplefilter("ignore")
            theirs = re.compile(pattern).fullmatch(text) is not None
    except (re.error, BacktrackingTimeout, RecursionError, OverflowError):
        return
    if not theirs:
        raise Disagreement("a walk wrote what re refuses", f"{pattern!r} {text!r}")


def check_verdict(drawn: tuple[str, str, list[str]]) -> None:
    """Check that the same texts match."""
    pattern, flags, words = drawn
    source = f"(?{flags}){pattern}" if flags else pattern
    theirs = compile_re(pattern, flags)
    try:
        constraint = constrain.compile(BYTES, regex=source)
    except constrain.UnsatisfiableError:
        constraint = None
    except constrain.LimitError:
        return
    except constrain.UnsupportedError:
        if POSSESSIVE.search(source):
            return  # not supported; an edit can make one from two quantifiers
        raise
    for word in words:
        try:
            with limit_backtracking():
                wanted = theirs.fullmatch(word) is not None
        except BacktrackingTimeout:
            continue
        with suppress_our_errors():
            if (constraint is not None and accepts_text(constraint, word.encode())) != wanted:
                raise Disagreement(f"constrain {'refuses' if wanted else 'accepts'} against re", f"{source!r} {word!r}")


with_looks = edit_text(
    regexes(), ["(?=", "(?!", "(?<=a", ")", "\\b", "\\B", "a", "b", "|", "(", "[ab]", "{1,2}"], 3
).filter(lambda pattern: bool(is_supported(pattern)))


def is_supported(pattern: str) -> bool:
    """Return whether `re` compiles a pattern."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


TARGETS = (
    Target(
        "regex-text",
        "damaged patterns",
        st.tuples(edit_text(st.one_of(regexes(), deep), PIECES), st.integers(0, 2**16)),
        check_text,
        corpus=tuple(
            (pattern, 1)
            for pattern in (
                "(a+)+b",
                "(a|a)*b",
                "a{" + "9" * 5_000 + "}",
                "(?:" * 300 + "a" + ")" * 300,
                "\0",
                "(.*)*x",
                ".{5000}",
                "(a?){500}a{500}",
                "((a{100}){100}){100}",
                ".*a.{200}",
            )
        ),
    ),
    Target(
        "regex-verdict",
        "patterns and texts, judged by re",
        st.tuples(st.one_of(regexes(), regexes(), with_looks), flag_sets(), st.lists(texts(), min_size=1, max_size=10)),
        check_verdict,
    ),
)
