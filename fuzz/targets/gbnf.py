"""GBNF grammars.

gbnf-text     any text: compiles and can be walked, or ends in a ConstrainError
gbnf-verdict  grammars whose short texts are listed by brute force: the same texts are accepted
"""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

import constrain
from tests.frontends.gbnf.test_gbnf import NAMES, bodies, language

from ..edits import edit_text, nest_text
from ..findings import Disagreement
from ..target import Target, ours_only
from ..walk import BYTES, MIXED, accepts, walk

__all__ = ["TARGETS", "grammar_of"]

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


def grammar_of(made: tuple[tuple[str, object], ...]) -> str:
    """Return the text of drawn bodies."""
    return "\n".join(f"{name} ::= {body}" for name, (body, _) in zip(NAMES, made))


sound = st.tuples(bodies, bodies, bodies)
texts = st.one_of(
    sound.map(grammar_of),
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
    with ours_only():
        walk(constrain.compile(MIXED, constrain.gbnf(text)), seed)


def check_verdict(drawn: tuple[tuple[str, object], ...]) -> None:
    """Check every short text over the alphabet."""
    text = grammar_of(drawn)
    wanted = language({name: meaning for name, (_, meaning) in zip(NAMES, drawn)})  # type: ignore[misc]
    try:
        constraint = constrain.compile(BYTES, constrain.gbnf(text))
    except constrain.UnsatisfiableError:
        constraint = None
    for word in WORDS:
        with ours_only():
            if (constraint is not None and accepts(constraint, word)) != (word in wanted):
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
