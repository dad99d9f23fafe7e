"""Masks include the lexer: a token is allowed exactly if Lark accepts some text that continues after it.

The judge is brute force with Lark's own parser over all short texts of a small alphabet: it knows nothing of boundaries
or stacks. What it finds alive must be allowed, and what is allowed must have an end that Lark takes.
"""

from __future__ import annotations

from itertools import product

import lark
import pytest
from hypothesis import Phase, given, settings, strategies as st

from constrain import Vocabulary
from constrain.base.errors import ConstrainError, TokenRefused, UnsatisfiableError
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.engine.matcher import Matcher
from constrain.frontends.lark import to_grammar

ALPHABET = "ab;"
LONGEST = 6
TOKENS = [b"a", b"b", b";", b"ab", b"ba", b"a;", b";a", b"aa", b";;", b"b;a"]
VOCABULARY = Vocabulary.from_tokens([*TOKENS, None], eos_ids=[len(TOKENS)])
EMPTY = [
    "start: A A\nA: /[ab]+/",
    "%declare X\nstart: X",
    'start: "\\uD800"',
    'start: "1" ","\n%ignore /[ ,]/',
    'start: "a" start',
    'start: A B\nA: /a+/\nB: "a"',
    "start: A B\nA: /a(?=b)/\nB: /c/",
    'start: A+ "b"\nA: /a(?=;)/',
    "start: A B\nA: /a+/\nB: /ab/",
    'start: x "b"\nx: | "b" x',
]


@pytest.mark.parametrize("text", EMPTY)
@pytest.mark.parametrize("lexer", ["contextual", "basic"])
def test_a_language_without_a_text_is_refused(text: str, lexer: str) -> None:
    with pytest.raises(UnsatisfiableError):
        to_grammar(text, lexer=lexer)  # type: ignore[arg-type]


def alive_prefixes(parser: lark.Lark, longest: int) -> tuple[set[str], set[str]]:
    """The texts that Lark accepts, and all their prefixes."""
    accepted = set()
    for length in range(longest + 1):
        for letters in product(ALPHABET, repeat=length):
            text = "".join(letters)
            try:
                parser.parse(text)
            except lark.exceptions.LarkError:
                continue
            accepted.add(text)
    return accepted, {text[:k] for text in accepted for k in range(len(text) + 1)}


def check(text: str, lexer: str, longest: int = LONGEST) -> None:
    theirs = lark.Lark(text, parser="lalr", lexer=lexer)  # type: ignore[arg-type]
    accepted, alive = alive_prefixes(theirs, longest)
    try:
        start = compile_grammar(to_grammar(text, lexer=lexer), VOCABULARY).matcher()  # type: ignore[arg-type]
    except UnsatisfiableError:
        assert not accepted
        return
    todo: list[tuple[str, Matcher]] = [("", start)]
    for prefix, matcher in todo:  # grows while it is read
        assert matcher.is_complete == (prefix in accepted), prefix
        rest = matcher.shortest_completion()
        assert rest is not None, prefix
        theirs.parse(prefix + rest.decode())
        mask = matcher.mask()
        for token, data in enumerate(TOKENS):
            there = matcher.fork()
            try:
                there.advance_bytes(data)
            except TokenRefused:
                assert prefix + data.decode() not in alive, (prefix, data)
                assert not mask[0] >> token & 1, (prefix, data)
                continue
            assert mask[0] >> token & 1, (prefix, data)
            if len(data) == 1 and len(prefix) < longest - 2:
                todo.append((prefix + data.decode(), there))


FIXED = [
    'start: NAME NAME ";" | "b"\nNAME: /[ab]+/',
    'start: /a(?=b)/ | "b"',
    'start: (A | B)+ ";"\nA: /a(?!b)/\nB: "ab"',
    'start: A B ";" | A ";"\nA: /a+/\nB: /ab/',
    'start: X* ";"\nX: "a" | "ab;"',
    'start: S S | "b"\nS: /a.*;/',
    "start: A B | B A\nA: /a;?/\nB: /;b?/\n%ignore /b+/",
    'start: K N | N\nK: "ab"\nN: /[ab]+/',
    'start: N ";" N\nN: /a+/\n%ignore /;b/',
    'start: (N ";")+ "b"\nN: /a+/\n%ignore "b"',
    'start: Q T "a"\nQ: ";;" | ";;;b"\nT: ";"',
    'start: x ";" | "b"\nx: "a" x | NAME\nNAME: /a+b/',
    'start: "a" U | ";"\nU: "ab"\n%ignore U',
    'start: x+ "b"\nx: "a" U | ";"\nU: /ab+/\n%ignore U',
    'start: U U | N ";"\nU: "ab"\nN: /[ab]+;?/\n%ignore U',
]


@pytest.mark.parametrize("text", FIXED)
@pytest.mark.parametrize("lexer", ["contextual", "basic"])
def test_masks_count_the_lexer_in(text: str, lexer: str) -> None:
    check(text, lexer)


TERMINALS = [
    'A: "a"', 'AB: "ab"', "N: /[ab]+/", 'E: ";"', "M: /a+b?/", "L: /a(?=b)/", "G: /a(?!b)/", "S: /;[ab]*;/",
    "T: /b+;?/", 'EE: ";;"', "P.2: /;a/", "Z: /a+?;?/",
]  # fmt: skip


@st.composite
def grammars(draw: st.DrawFn) -> str:
    """A Lark grammar over ALPHABET whose terminals overlap."""
    terminals = draw(st.lists(st.sampled_from(TERMINALS), min_size=2, max_size=4, unique=True))
    names = [terminal.split(":")[0].split(".")[0] for terminal in terminals]
    rules = ["start", "x"][: draw(st.integers(1, 2))]
    symbols = st.sampled_from(names * 2 + rules[1:])
    item = st.tuples(symbols, st.sampled_from(["", "", "", "?", "*"])).map("".join)
    lines = []
    for rule in rules:
        options = draw(st.lists(st.lists(item, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=2))
        lines.append(f"{rule}: {' | '.join(options)}")
    ignored = draw(st.sampled_from(["", "", f"%ignore {names[-1]}"]))
    return "\n".join([*lines, *terminals, ignored])


@settings(max_examples=35, deadline=None, phases=[Phase.generate])
@given(grammars(), st.sampled_from(["contextual", "basic"]))
def test_masks_of_random_grammars_count_the_lexer_in(text: str, lexer: str) -> None:
    try:
        to_grammar(text, lexer=lexer)  # type: ignore[arg-type]
    except UnsatisfiableError:
        pass
    except ConstrainError:
        return
    check(text, lexer, 5)
