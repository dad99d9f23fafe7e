"""Masks of texts that are parsed: by tables of complete tokens, against advancing every token byte by byte.

A token may be many lexemes, too long to be read at once, or end in a lexeme that may come to nothing.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from constrain import Matcher, TokenRefused, Vocabulary, compile, lark
from constrain.kernels import layout as at
from constrain.kernels.lexeme_masks import add_two_lexemes
from tests.token_mask_oracle import compare_token_masks

SUMS = r"""
start: sum
sum: sum "+" product | sum "-" product | product
product: product "*" atom | atom
atom: NUMBER | "(" sum ")" | NAME "(" [sum ("," sum)*] ")" | NAME
NAME: /[a-z_]\w*/
NUMBER: /\d+(\.\d+)?/
%ignore " "
"""
DOTS = r"""
start: item+
item: INT ".." INT ";" | FLOAT ";" | COMMENT | T ";" | KEY NAME ";"
INT: /\d+/
FLOAT: /\d+\.\d+(e\d+)?/
COMMENT: /\/\*(.|\n)*?\*\//
T: /"(\\.|[^"\\])*"/
KEY: "let"
NAME: /[a-z]+/
%ignore /[ \n]+/
"""
BACK = r"""
start: (A | B | C)+ "!"
A: "a"
B: /a*b/
C: /b+c?(dddd)?/
"""
BLOCKS = r"""
start: statement+
statement: "if" NAME ":" _NEWLINE [_INDENT statement+ _DEDENT] | NAME "=" value _NEWLINE
value: NAME | "(" [value ("," value)*] ")"
NAME: /[a-z]+/
%declare _INDENT _DEDENT
_NEWLINE: /(\r?\n[\t ]*)+/
%ignore / +/
"""
BRACES = r"""
start: block
block: "{" (pair ("," pair)*)? "}" | "[" (block ("," block)*)? "]"
pair: WORD ":" (WORD | block)
WORD: /\w+/
%ignore /\s+/
"""
LOOKS = r"""
start: item+
item: X | Y | Z | P U | Q W | "[" N "]" | B | C | E
X: "a"
Y: /ab(?!c)/
Z: /abcd/
B: "b"
C: "c"
E: "e"
P.1: /n(?=u)/
Q.1: /n(?=w)/
N: /n/
U: "u"
W: "w"
"""
COMMENTS = BLOCKS.replace(r"[\t ]*)+/", r"[\t ]*(#[^\n]*)?)+/").replace("%ignore / +/", r"%ignore /[ \t]+|#[^\n]*/")
QUOTES = r"""
start: item+
item: STRING | LONG | NAME | "(" NAME ")"
STRING: /'[^'\n]*'/
LONG: /'''(.|\n)*?'''/
NAME: /[a-z]+(=[a-z]+;)?/
%ignore / +/
"""
SHORTER = r"""
start: (X Z | "!" Y)+
X: "xy"
Y: /xyz*w/
Z: /z+v/
"""
FIRST_LINES = BLOCKS.replace("NAME: /[a-z]+/\n", "") + "NAME: /[a-z]+/\n"
PYTHON_LIKE = "if a:\n  b = (c,\n d)\n  if e:\n\tf = g\n  h = i\nj = ()\n"
CASES: dict[str, tuple[str, list[str]]] = {
    "sums": (SUMS, ["f(1, 2.5) + (3 * g(4)) - h()", "((((a))))-1.25*x_1", "1 .5"]),
    "dots": (DOTS, ['1..2;1.5e10; 2.5;/* x * y\n*/"a\\"b" ;let x;let let;', "letx;"]),
    "backtracking": (BACK, ["aaabaaa!", "bbcddddbcdda!", "abab!"]),
    "blocks": (BLOCKS, [PYTHON_LIKE, "if a:\n \n\n    b = c\n    if d:\n\n     e = f\ng = h\n", "a=((\n\n),b)\n"]),
    "looks": (LOOKS, ["abcdabaabe", "nunw[n]nuanw", "abcabcd"]),
    "comments": (COMMENTS, ["if a: # b\n  #c d\n  e = f #\n\n #\n  # g\nh=(i #j\n)\n", "a=(#\n\n#,\n),b)\n#"]),
    "quotes": (QUOTES, ["'''a'' b\n''''c d''' e=f;g=h(i)", "a=b''''"]),
    "shorter": (SHORTER, ["xyzzvxyzv!xyzwxyzv"]),
    "first lines": (FIRST_LINES, ["a=((\n\n),b)\n"]),
    "braces": (BRACES, ["{a:{b:c,d:[[],{}]}}", "[[[{}],[]],{x : y}]"]),
}
EARLEY = ("sums", "backtracking", "braces")
LONG = [
    b"(" * 60, b"((" * 40 + b"a", b"[" * 70, b"[]" * 30, b"{a:" * 40, b"a" * 255, b"a" * 256, b"1" * 300, b" " * 256,
    b"\n" + b"\t" * 254, b"\n" + b" " * 30, b"\n" * 8 + b"  ", b"\n" + b"\t" * 127, b"\n" + b"\t" * 128, b"b" * 300,
    b"a+" * 26, b"1;" * 26, b"ab" * 26, b"))" * 27, b"(" + b"(a)," * 16,
]  # fmt: skip


def vocabulary_of(name: str) -> Vocabulary:
    """Single bytes, pieces of the texts, words (more than FEW of them in one class), and long tokens."""
    rng, pieces = random.Random(name), set[bytes]()
    for text in CASES[name][1]:
        spelled = text.encode()
        pieces |= {spelled[k : k + size] for k in range(len(spelled)) for size in range(2, 12)}
    pieces |= {bytes(rng.choices("".join(CASES[name][1]).encode(), k=rng.randint(2, 5))) for _ in range(150)}
    words = {b"%c%c" % (a, b) for a in range(97, 123) for b in range(97, 123)} if name in ("sums", "dots") else set()
    listed: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), *sorted(pieces | words | set(LONG))]
    if name != "blocks":
        rng.shuffle(listed)
    return Vocabulary.from_tokens([*listed, None], (len(listed),))


HOW: dict[str, dict[str, str]] = {"contextual": {}, "basic": {"lexer": "basic"}, "earley": {"parser": "earley"}}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", CASES)
def test_tokens_are_read_as_their_bytes(name: str, how: str) -> None:
    """Scanned tokens are cached in the table: nothing is scanned twice."""
    grammar, texts = CASES[name]
    if how == "earley" and name not in EARLEY:
        return
    given: dict[str, Any] = HOW[how]
    vocabulary = vocabulary_of(name)
    constraint, oracle = (
        compile(vocabulary, lark(grammar, **given)),
        compile(Vocabulary.bytes(), lark(grammar, **given)),
    )
    for text in texts if how == "contextual" else texts[:1]:
        compare_token_masks(constraint, oracle, text.encode(), vocabulary)
    table = constraint.state_cache().table.arrays[at.TABLE]
    counts = table[[at.N_LEX_READERS, at.N_LEX_WORDS]].tolist()
    constraint.state_cache().reset()
    matcher = constraint.matcher()
    for byte in texts[0].encode()[:12]:
        matcher.mask()
        matcher.advance(byte if vocabulary.tokens[byte] == bytes([byte]) else vocabulary.tokens.index(bytes([byte])))
    assert table[[at.N_LEX_READERS, at.N_LEX_WORDS]].tolist() == counts


def test_two_lexemes_are_read_one_after_the_other() -> None:
    """The tokens that two unfinished lexemes allow are found by readers, unless the parser decides against the longer
    one: both happen, and nothing is allowed that a walk byte by byte refuses.
    """
    results = set[int]()
    for name, (grammar, texts) in CASES.items():
        vocabulary = vocabulary_of(name)
        for given in HOW["contextual"], HOW["basic"]:
            constraint = compile(vocabulary, lark(grammar, **given))
            matcher = constraint.matcher()
            with suppress(TokenRefused):  # some texts are not of the other lexer's language
                for byte in texts[0].encode():
                    matcher.advance_bytes(bytes([byte]))
                    results |= check_two_lexemes(matcher, vocabulary)
    assert results == {0, 1}


def check_two_lexemes(matcher: Matcher, vocabulary: Vocabulary) -> set[int]:
    """Return what `add_two_lexemes` returns at a position, nothing where there are not two unfinished lexemes."""
    allowed = unpack_bits(matcher.mask())
    cache, s = matcher._valid_state_cache(), matcher._set
    first, count = cache.arrays[at.SETS][s * at.SET_W : s * at.SET_W + 2].tolist()
    pc, q = cache.arrays[at.CONFIGS][at.CONFIG_W * first : at.CONFIG_W * first + 2].tolist()
    if count > 1 or cache.arrays[at.CODE][pc] != at.PARSE or cache.arrays[at.LISTS][q] != 2:
        return set()
    words = np.zeros(cache.table.words, np.int32)
    found = cache.run(add_two_lexemes, s, q, words.ctypes.data)
    added, end = unpack_bits(words), vocabulary.size - 1
    assert not (added & ~allowed).any()
    assert found == 0 or (added == allowed)[:end].all()
    return {found}


def unpack_bits(words: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Return the bits of a mask, one per element."""
    return np.unpackbits(words.view(np.uint8), bitorder="little")


ONE = 'start: "(" start ")" | A start | A\nA: "%s"\n'


def test_scanners_of_one_vocabulary_are_distinguished() -> None:
    """What was read of tokens is remembered for the scanner that was read last."""
    listed = [*(bytes([byte]) for byte in range(256)), b"ab", b"ac", b"ad", b"abc", b"(ab", b"(ac", b"((ad)", b"acac"]
    vocabulary = Vocabulary.from_tokens([*listed, None], (len(listed),))
    made = [(compile(vocabulary, lark(ONE % word)), compile(Vocabulary.bytes(), lark(ONE % word)))
            for word in ("ab", "ac", "ad", "abc")]  # fmt: skip
    for text in (b"", b"(", b"((a", b"a"):
        for constraint, oracle in made:
            compare_token_masks(constraint, oracle, text, vocabulary)
