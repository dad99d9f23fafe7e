"""Lark grammars.

lark-text     any text: compiles and its masks are consistent, or it raises a ConstrainError; no file is read
lark-verdict  grammars without conflicts (Lark's `strict=True`): Lark's contextual parser accepts the same texts
"""

from __future__ import annotations

import ast
import builtins
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

from hypothesis import strategies as st

import constrain
from constrain import Constraint
from tests.frontends.lark.test_lark_random import ALPHABET, grammars
from tests.text_acceptance import accepts_text

from ..edits import edit_text, nest_text
from ..findings import Disagreement
from ..target import Target, suppress_our_errors
from ..walk import BYTES, MIXED, walk

__all__ = ["TARGETS"]

PIECES = [
    "%import common.NUMBER\n",
    "%import common (WORD, WS)\n",
    "%ignore WS\n",
    "%declare X\n",
    "%import .secret.A\n",
    "%import python (NAME)\n",
    '%override A: "b"\n',
    '%extend A: "b"\n',
    "t{x}: x x\n",
    "t{t{A}}",
    "~2..9",
    "~1000",
    "?start: A\n",
    "!x: A\n",
    "A.2: /a+/i\n",
    "/a(?=b)/",
    "/(?<!a)b/",
    '"a"i',
    '"a".."z"',
    '"\\uD800"',
    "[A]",
    "->alias",
    "start: start start |\n",
    ": ",
    "|",
    "*",
    "+",
    "?",
    "(",
    ")",
    "\n",
    "start",
    "A",
    "/.*/s",
    "/(a+)+b/",
    "// note\n",
]
WORDS = ["".join(letters) for n in range(4) for letters in product(ALPHABET, repeat=n)]
texts = st.one_of(
    grammars(),
    nest_text("(", ")", "A").map(lambda body: f'start: {body}\nA: "a"'),
    nest_text("(", ")", '"a"').map(lambda body: f"start: A\nA: {body}"),
    nest_text("[", "]", "A").map(lambda body: f'start: {body}\nA: "a"'),
    st.integers(1, 20).map(
        lambda n: "start: A0\n" + "\n".join(f"A{i}: A{i + 1} A{i + 1}" for i in range(n)) + f'\nA{n}: "a"'
    ),
    st.integers(1, 2_000).map(
        lambda n: "start: A0\n" + "\n".join(f'A{i}: "a" A{i + 1}' for i in range(n)) + f'\nA{n}: "a"'
    ),
    st.integers(1, 20).map(
        lambda n: "start: r0\n" + "\n".join(f"r{i}: r{i + 1} r{i + 1}" for i in range(n)) + f'\nr{n}: "a"'
    ),
)


@contextmanager
def forbid_secret_file() -> Iterator[None]:
    """Raise Disagreement if a file whose name ends in `secret.lark` is opened in the block."""
    before = builtins.open

    def opening(file: Any, *arguments: Any, **options: Any) -> Any:
        if str(file).endswith(("secret.lark", "secret")):
            raise Disagreement("grammar text opens a file", str(file))
        return before(file, *arguments, **options)

    builtins.open, io.open = opening, opening  # type: ignore[assignment]
    try:
        yield
    finally:
        builtins.open, io.open = before, before


def check_text(drawn: tuple[str, int]) -> None:
    """Compile the text and walk along its masks."""
    text, seed = drawn
    with suppress_our_errors(), forbid_secret_file():
        walk(constrain.compile(MIXED, constrain.lark(text)), seed, 12)


def check_verdict(drawn: str) -> None:
    """Compare every short text over the alphabet with Lark's own parser."""
    import lark

    try:
        theirs = lark.Lark(drawn, parser="lalr", lexer="contextual", strict=True)
    except Exception:  # Lark refuses the grammar
        return
    try:
        constraint = constrain.compile(BYTES, constrain.lark(drawn))
    except constrain.UnsatisfiableError:
        constraint = None
    except constrain.GrammarError as error:
        constraint = check_lost_text(drawn, theirs, str(error))
    except (constrain.LimitError, constrain.UnsupportedError) as error:
        raise Disagreement(
            f"constrain refuses a grammar that Lark loads strictly, {type(error).__name__}", f"{drawn}\n{error}"
        ) from None
    for word in WORDS:
        wanted = accepts_with_lark(theirs, word)
        with suppress_our_errors():
            if (constraint is not None and accepts_text(constraint, word.encode())) != wanted:
                raise Disagreement(f"constrain {'refuses' if wanted else 'accepts'} against Lark", f"{drawn}\n{word!r}")


LOST = re.compile(r"the rules derive (.*), which Lark's LALR parser rejects")


def check_lost_text(drawn: str, theirs: Any, said: str) -> Constraint | None:
    """Check that Lark rejects the text that the error names as lost. Return the constraint of Lark's conflict resolution,
    or None if it is empty.
    """
    lost = LOST.search(said)
    if lost is None:
        raise Disagreement("constrain refuses a grammar that Lark loads strictly, GrammarError", f"{drawn}\n{said}")
    text = ast.literal_eval(lost[1])
    if accepts_with_lark(theirs, text):
        raise Disagreement("Lark takes the text that it is said to lose", f"{drawn}\n{said}")
    try:
        return constrain.compile(BYTES, constrain.lark(drawn, parser="lalr"))
    except constrain.UnsatisfiableError:
        return None


def accepts_with_lark(parser: Any, text: str) -> bool:
    """Return whether Lark's parser accepts a text."""
    import lark

    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


TARGETS = (
    Target(
        "lark-text",
        "damaged grammars",
        st.tuples(edit_text(texts, PIECES), st.integers(0, 2**16)),
        check_text,
        corpus=tuple(
            (text, 3)
            for text in (
                "%import .secret.A\nstart: A\n",
                'start: t{A}\nt{x}: t{t{x}}\nA: "a"',
                'start: "1" ","\n%ignore /[ ,]/',
                "%declare X\nstart: X",
                'start: "\\uD800"',
                'start: NAME NAME ";" | "1"\nNAME: /[a-z]+/',
                'start: /a(?=b)/ | "c"',
                "start: A A\nA: /[ab]+/",
                'start: "a" start "b" | "b" "a" |',
            )
        ),
    ),
    Target(
        "lark-verdict", "grammars without conflicts and their short texts, judged by Lark", grammars(), check_verdict
    ),
)
