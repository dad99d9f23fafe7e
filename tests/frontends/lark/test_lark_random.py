"""Random Lark grammars with random terminals, compared with Lark's own parser on every short text.

A text is accepted exactly if Lark parses it; grammars that Lark refuses to load are refused; every prefix of an
accepted text is allowed; and a mask contains exactly the tokens that `allows` accepts.
"""

from __future__ import annotations

from itertools import product

import lark
import numpy as np
from hypothesis import Phase, given, settings, strategies as st

from constrain import Vocabulary
from constrain.base.errors import ConstrainError, UnsatisfiableError
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.engine.matcher import Matcher
from constrain.frontends.lark import to_grammar
from tests.text_acceptance import advance_copy

ALPHABET = "ab1."
LONGEST = 5
VOCABULARY = Vocabulary.from_tokens(
    [letter.encode() for letter in ALPHABET] + [b"ab", b"aa", b"1.", b".1", b"a1", b"b.a", b"11", None], eos_ids=[11]
)
TERMINALS = [
    'A: "a"', 'AB: "ab"', "N: /[ab]+/", "I: /1+/", "F: /1+\\.1*/", 'D: "."', 'DD: ".."', "L: /a+?b?/", "M: /a*b/",
    "K.2: /a1/", "S: /\\.[ab1]*\\./", "G: /a(?!b)/",
]  # fmt: skip


@st.composite
def grammars(draw: st.DrawFn) -> str:
    """A Lark grammar over ALPHABET."""
    terminals = draw(st.lists(st.sampled_from(TERMINALS), min_size=2, max_size=5, unique=True))
    names = [terminal.split(":")[0].split(".")[0] for terminal in terminals]
    rules = ["start", "x", "y"][: draw(st.integers(1, 3))]
    symbols = st.sampled_from(names * 2 + rules)
    item = st.tuples(symbols, st.sampled_from(["", "", "", "?", "*", "+"])).map("".join)
    lines = []
    for rule in rules:
        options = draw(st.lists(st.lists(item, max_size=3).map(" ".join), min_size=1, max_size=3))
        lines.append(f"{rule}: {' | '.join(options)}")
    ignored = draw(st.sampled_from(["", "", f"%ignore {names[-1]}"]))
    return "\n".join([*lines, *terminals, ignored])


def refused(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return True
    return False


@settings(max_examples=35, phases=[Phase.generate])
@given(grammars(), st.sampled_from(["contextual", "basic"]))
def test_random_grammars(text: str, lexer: str) -> None:
    try:
        theirs = lark.Lark(text, parser="lalr", lexer=lexer)  # type: ignore[arg-type]
    except Exception:  # whatever Lark has against it
        theirs = None
    try:
        made = compile_grammar(to_grammar(text, lexer=lexer), VOCABULARY)  # type: ignore[arg-type]
    except UnsatisfiableError:  # Lark loads it, and parses nothing
        words = ("".join(letters) for n in range(LONGEST) for letters in product(ALPHABET, repeat=n))
        assert theirs is None or all(refused(theirs, word) for word in words)
        return
    except ConstrainError:
        assert theirs is None
        return
    assert theirs is not None
    start = made.matcher()
    alive: dict[str, Matcher] = {"": start}
    accepted = set()
    for length in range(LONGEST + 1):
        for letters in product(ALPHABET, repeat=length):
            word = "".join(letters)
            there = start if not word else alive.get(word[:-1])
            if word and there is not None:
                there = advance_copy(there, word[-1].encode())
            if there is not None:
                alive[word] = there
            complete = there is not None and there.is_complete
            assert complete == (not refused(theirs, word)), word
            if complete:
                accepted.add(word)
    assert {word[:k] for word in accepted for k in range(len(word) + 1)} <= set(alive) | {""}
    for word in sorted(alive, key=lambda word: (len(word), word))[:40]:
        bits = np.unpackbits(alive[word].mask().view(np.uint8), bitorder="little")[: VOCABULARY.size]
        allowed = [alive[word].allows(token) for token in range(VOCABULARY.size)]
        assert bits.astype(bool).tolist() == allowed, word
