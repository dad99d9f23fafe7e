"""GBNF grammars.

gbnf-text     any text: compiles and its masks are consistent, or it raises a ConstrainError
gbnf-verdict  grammars whose short texts are listed by brute force: the same texts are accepted
"""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

import constrain
from tests.frontends.gbnf.test_gbnf import NAMES, bodies, language
from tests.text_acceptance import accepts_text

from ..edits import edit_text, nest_text
from ..findings import Disagreement
from ..target import Target, suppress_our_errors
from ..walk import BYTES, MIXED, walk

__all__ = ["TARGETS", "build_grammar"]

PIECES = [
    "root ::= ",
    "\n",
    "x ::= root x\n",
    "x{2,}",
    "(x{2,3})*",
    "[^a-z]",
    "[\\x41-\\u1234]",
    '"\\n"',
    "<|end|>",
    "!<[5]>",
    ".",
    "{0}",
    "{1000}",
    "{,9}",
    "{99999,}",
    "*",
    "+",
    "?",
    "|",
    "::=",
    '"a"',
    "# note\n",
    "root",
    "s",
    "t",
    "(",
    ")",
    "\\U0010FFFF",
]
WORDS = [bytes(word) for length in range(5) for word in product(b"ab", repeat=length)]


def build_grammar(made: tuple[tuple[str, object], ...]) -> str:
    """Return the text of a grammar with the drawn bodies."""
    return "\n".join(f"{name} ::= {body}" for name, (body, _) in zip(NAMES, made))


sound = st.tuples(bodies, bodies, bodies)
texts = st.one_of(
    sound.map(build_grammar),
    nest_text("(", ")", '"a"').map(lambda body: f"root ::= {body}"),
    nest_text("(", ")*", '"a"').map(lambda body: f"root ::= {body}"),
    st.integers(1, 70).map(
        lambda n: "root ::= r0\n" + "\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(n)) + f'\nr{n} ::= "a"'
    ),
    st.integers(1, 3_000).map(
        lambda n: "root ::= r0\n" + "\n".join(f'r{i} ::= "a" r{i + 1}' for i in range(n)) + f'\nr{n} ::= "a"'
    ),
)


def check_text(drawn: tuple[str, int]) -> None:
    """Compile the text and walk along its masks."""
    text, seed = drawn
    with suppress_our_errors():
        walk(constrain.compile(MIXED, constrain.gbnf(text)), seed)


def check_verdict(drawn: tuple[tuple[str, object], ...]) -> None:
    """Check every short text over the alphabet."""
    text = build_grammar(drawn)
    wanted = language({name: meaning for name, (_, meaning) in zip(NAMES, drawn)})  # type: ignore[misc]
    try:
        constraint = constrain.compile(BYTES, constrain.gbnf(text))
    except constrain.UnsatisfiableError:
        constraint = None
    for word in WORDS:
        with suppress_our_errors():
            if (constraint is not None and accepts_text(constraint, word)) != (word in wanted):
                side = "refuses" if word in wanted else "accepts"
                raise Disagreement(f"constrain {side} against the listed language", f"{text}\n{word!r}")
    if constraint is not None:
        made = walk(constraint, len(text), 4)
        if made is not None and made in WORDS and made not in wanted:
            raise Disagreement("a walk wrote no text of the language", f"{text}\n{made!r}")


TARGETS = (
    Target(
        "gbnf-text",
        "damaged grammars",
        st.tuples(edit_text(texts, PIECES), st.integers(0, 2**16)),
        check_text,
        corpus=tuple(
            (text, 2)
            for text in (
                'root ::= (x{2,} ";")*\nx ::= "a"',
                'root ::= (x{2,3})*\nx ::= "a"',
                "root ::= root",
                'root ::= root "a" |',
            )
        ),
    ),
    Target("gbnf-verdict", "grammars and all their short texts", sound, check_verdict),
)
