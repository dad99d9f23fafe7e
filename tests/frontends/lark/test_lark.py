"""Lark's grammars against Lark itself: every short text, every token of a mask, a grammar with indentation."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import lark
import numpy as np
import pytest
from lark.indenter import PythonIndenter

from constrain import Vocabulary
from constrain.base.errors import UnsatisfiableError
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.engine.constraint import Constraint
from constrain.frontends.lark import to_grammar, to_parser
from constrain.lalr.parser_code import Parser
from tests.text_acceptance import advance_copy

BYTES = Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [None], eos_ids=[256])

# What decides in each: a longer lexeme that comes to nothing, a keyword, laziness, order, a look ahead, a conflict.
SMALL = {
    "an earlier end": ('start: (A | B)+ "c"\nA: "a"\nB: /a*b/', "abc", 7),
    "minus twice": ('start: e\ne: "-" e | N | e "--" | e "-" e\nN: "a"\n%ignore " "', "a- ", 7),
    "a number and two dots": ('start: (INT | FLOAT | "..")+\nINT: /\\d+/\nFLOAT: /\\d+\\.\\d*/', "1.", 8),
    "a number with digits behind the dot": ('start: (INT | FLOAT | "..")+\nINT: /\\d+/\nFLOAT: /\\d+\\.\\d+/', "1.", 8),
    "the longer pattern first": ("start: (INT | FLOAT)\nINT: /[01]+/\nFLOAT: /\\d+\\.\\d+/", "1.0", 6),
    "a keyword": ('start: ("if" N | N "=" N)+\nN: /[a-z]+/\n%ignore " "', "if= ", 6),
    "any case": ('start: "se"i N\nN: /[a-z]+/i\n%ignore " "', "sSe ", 6),
    "brackets of types": ('start: t\nt: N | N "<" t ">" | t ">>" t\nN: /[ab]/\n%ignore " "', "a<> ", 7),
    "strings": ('start: S ("," S)*\nS: /"(\\\\.|[^"\\\\])*"/', '"\\,a', 7),
    "a lazy comment": ("start: N+\nN: /[a-z]/\n%ignore /\\/\\*(.|\\n)*?\\*\\//\n%ignore \" \"", "a/* ", 8),
    "a dot and digits": ('start: N ("." N)*\nN: /[a-z]+(\\.[0-9]+)?/', "a.1", 7),
    "new lines ignored too": ("start: (N NL)+\nN: /[a-z]/\nNL: /\\n+/\n%ignore /[ \\n]/", "a\n ", 6),
    "a look ahead": ('start: (F N | N)+\nF: /[a-z]+(?=\\()/\nN: /[a-z]+|\\(/', "f(a", 6),
    "lazy": ("start: A+ B | B\nA: /a+?/\nB: /b|ab/", "ab", 7),
    "one list for all": ('start: A B | "c" AB\nA: "a"\nB: "b"\nAB: "ab"', "abc", 6),
    "another closing": ('start: "(" a ")" | "[" a "]"\na: N\nN: /n/', "(n)]", 6),
    "written order": ("start: A B\nA: /a|ab/\nB: /c/", "abc", 6),
    "not before": ("start: A | B+\nA: /a+(?!b)/\nB: /a*b/", "ab", 7),
    "empty": ('start: x "b"\nx: | "(" x ")"', "(b)", 7),
    "characters of several bytes": ('start: (N | "é")+\nN: /[a-zà-ÿ]+/', "aéü", 4),
}  # fmt: skip


def constraint(text: str, **options: object) -> Constraint:
    return compile_grammar(to_grammar(text, **options), BYTES)  # type: ignore[arg-type]


def accepted(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except Exception:  # whatever Lark raises, the Indenter's IndexError included, the text is not parsed
        return False
    return True


@pytest.mark.parametrize("lexer", ["contextual", "basic"])
@pytest.mark.parametrize("name", SMALL)
def test_every_short_text(name: str, lexer: str) -> None:
    grammar, alphabet, longest = SMALL[name]
    theirs = lark.Lark(grammar, parser="lalr", lexer=lexer)  # type: ignore[arg-type]
    start = constraint(grammar, lexer=lexer).matcher()
    ends, alive = set(), {""}
    for length in range(longest + 1):
        for letters in product(alphabet, repeat=length):
            text = "".join(letters)
            if length and text[:-1] not in alive:
                assert not accepted(theirs, text), "a prefix of it was refused"
                continue
            there = advance_copy(start, text)
            if there is not None:
                alive.add(text)
            assert (there is not None and there.is_complete) == accepted(theirs, text), text
            if there is not None and there.is_complete:
                ends.add(text)
    prefixes = {text[:k] for text in ends for k in range(len(text) + 1)}
    assert prefixes <= alive
    # What is alive has a completion: a short one, in grammars as small as these.
    assert {text for text in alive if len(text) <= longest - 4} <= prefixes


def python(start: str = "file_input") -> tuple[str, lark.Lark]:
    text = (Path(lark.__file__).parent / "grammars/python.lark").read_text(encoding="utf-8")
    return text, lark.Lark(text, parser="lalr", start=start, postlex=PythonIndenter())


PYTHON = [
    "", " ", "# c\n", "  x\n", "x\\\n\n", "1..real\n", "x = 1if y else 2\n", "00\n", "from . . import x\n",
    "match = 1\n",
    "if x:\n\ty\n        z\n", "if x:\n  y\n# c\nz\n", "if x:\n  y\n  ", "def f(a, *, b=None):\n  pass\n",
    "x", "# c", "x\n ", "\n  x\n", "if x:\n  y\n z\n", "01\n", "0_1\n", "1_\n", '""""\n', '"""a""""\n', ". . .\n",
    "x\ry\n", '"\\\n"\n', "(# c\n", ";\n", "x = (1,\n  2)\n", "if x:\ny\n", "if x:\n  y\nelse:\n z\n",
    "x = [\n]\n  y\n",
]  # fmt: skip


def test_python_with_its_indentation() -> None:
    text, theirs = python()
    start = constraint(text, start="file_input").matcher()
    for source in PYTHON:
        there = advance_copy(start, source)
        assert (there is not None and there.is_complete) == accepted(theirs, source), source


TOKENS = [
    b"if", b" x", b" then", b"then ", b"x=1", b"1.", b".5", b"5e", b"e3", b"..", b" + ", b";y", b'"a', b'");', b"--",
    b"- -",
    b"(a)", b")+(", b"=1;\nif", b"\n ", b"\xc3", b"\xa9=", b"\xc3\xa9", b'\\"', b'";', b"x-", b"--x", b" 1 ", b"ifx",
    b"f",
]  # fmt: skip
STATEMENTS = r"""
start: (stmt ";")+
stmt: NAME "=" expr | "if" expr "then" stmt
expr: expr "+" term | expr "-" term | term | expr "--" | expr ".." term
term: NAME | INT | FLOAT | "(" expr ")" | STRING
NAME: /[^\W\d]\w*/
INT: /\d+/
FLOAT: /\d+\.\d+(e\d+)?/
STRING: /"([^"\\\n]|\\.)*"/
%ignore /[ \n]+/
"""


def same_masks(made: Constraint, text: bytes) -> None:
    """At every position of a text the mask holds the tokens that can be accepted, and no others."""
    matcher = made.matcher()
    for k in range(len(text) + 1):
        bits = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")[: made.vocabulary.size]
        allowed = [matcher.allows(token) for token in range(made.vocabulary.size)]
        assert bits.astype(bool).tolist() == allowed, text[:k]
        if k < len(text):
            matcher.advance_bytes(text[k : k + 1])


@pytest.mark.parametrize("lexer", ["contextual", "basic"])
def test_masks_agree_with_the_parser(lexer: str) -> None:
    vocabulary = Vocabulary.from_tokens([bytes([i]) for i in range(256)] + TOKENS + [None], eos_ids=[256 + len(TOKENS)])
    made = compile_grammar(to_grammar(STATEMENTS, lexer=lexer), vocabulary)  # type: ignore[arg-type]
    for text in ("if x then é=1;", 'ab = 1.5e3 + "a\\";"..b;', "x=(y--)-1;\n  ify=1..2;", "x = 1."):
        same_masks(made, text.encode())


def test_masks_of_indented_blocks() -> None:
    extra = [
        b"\n  ",
        b"\n    ",
        b":\n  ",
        b"\n\n",
        b"  ",
        b"    ",
        b"\t",
        b"# c\n",
        b"):\n ",
        b"pass\n",
        b" pass\nelse",
        b"(\n",
    ]
    vocabulary = Vocabulary.from_tokens([bytes([i]) for i in range(256)] + extra + [None], eos_ids=[256 + len(extra)])
    text, _ = python()
    made = compile_grammar(to_grammar(text, start="file_input"), vocabulary)
    same_masks(made, b"if x:\n  def f(a):\n\ty = (1,\n2)\n  # c\n  else1\nz\n")


def test_dead_ends_of_a_table_are_refused() -> None:
    """Lark accepts nothing in the first: a shift won, and every b is shifted."""
    with pytest.raises(UnsatisfiableError):
        constraint('start: x "b"\nx: | "b" x')
    barren = constraint('start: "a" | "b" never\nnever: "c" never').matcher()
    assert advance_copy(barren, "a") is not None
    assert advance_copy(barren, "b") is None


def becomes(parser: Parser, states: tuple[int, ...]) -> set[int]:
    """`Parser.joint`, slow and obvious: byte by byte over all states together."""
    delta, accept_table = parser.scanner.delta, parser.scanner.accept_table[parser.scanner.accept]
    found, seen, todo = set[int](), {states}, [states]
    while todo:
        here = todo.pop()
        for b in range(257):
            if any(d >= 0 and accept_table[d, b] >= 0 for d in here[:-1]):
                continue
            if accept_table[here[-1], b] >= 0:
                found.add(int(accept_table[here[-1], b]))
            if b < 256 and delta[here[-1], b] >= 0:
                after = tuple(int(delta[d, b]) if d >= 0 else -1 for d in here)
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
    return found


def test_joint_lexemes() -> None:
    terminals = 'A: "a"\nB: /a*b/\nI: /1+/\nF: /1+\\.1+(e1+)?/\nC: /ab?c{3}/\nE: "e" | "e1.1"\nD: ".." | "."'
    parser = to_parser("start: (A | B | I | F | C | D | E)+\n" + terminals)
    accepting = parser.scanner.accept > 0
    others = np.flatnonzero(~accepting).tolist()
    rng = Random(3)
    for _ in range(40):
        d, last = rng.choice(others), rng.randrange(len(accepting))
        joint = parser.joint([d, last])
        assert (joint == parser.set_of(frozenset(becomes(parser, (d, last))))).all(), (d, last)
