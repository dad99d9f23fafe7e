"""The GBNF front end: what every construct means, random grammars against sets of texts, and where errors point."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, strategies as st

from constrain.base.errors import ConstrainError, GrammarError, UnsatisfiableError
from constrain.frontends.gbnf import to_grammar
from constrain.grammar.nodes import Grammar, Repeat, Sequence, Token
from tests.grammar_oracle import Reference

JSON = r"""
# as llama.cpp's own, and left recursion besides
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( values )? "]" ws
values ::= values "," ws value |
           value
string ::= "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
"""


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ('root ::= "ab"', ["ab"], ["a", "abab", ""]),
        ('root ::= "a" "b"* # c\n', ["a", "abb"], ["ba"]),
        ('root ::= "ab"+', ["ab", "abab"], ["abb", ""]),
        ('root ::= "a" "b" ?', ["a", "ab"], ["abb"]),
        ('root ::= "a"{2}', ["aa"], ["a", "aaa"]),
        ('root ::= "a"{2,}', ["aa", "aaaa"], ["a"]),
        ('root ::= "a"{,2}', ["", "aa"], ["aaa"]),
        ('root ::= "a"{ 1 , 2 }', ["a", "aa"], ["", "aaa"]),
        ('root ::= "a"{0}', [""], ["a"]),
        ('root ::= ("a" | "b"){2,3}', ["ab", "bba"], ["a", "abab"]),
        ('root ::= "a"{2}?', ["", "aa"], ["a"]),
        ("root ::= [a-c]", ["a", "b", "c"], ["d", "ab"]),
        ("root ::= [^a-c]", ["d", "é", "\n", "😀"], ["a", ""]),
        (r"root ::= [\]\-\[\\^]+", ["]-[\\^"], ["a"]),
        ("root ::= [-a]+ [b-] [--0]", ["-a--", "aab.", "ab0"], ["ab1", "b-"]),
        ("root ::= [^^]", ["a"], ["^"]),
        ("root ::= [^a-cb-dz]", ["e", "\0"], ["a", "d", "z", "c"]),
        ("root ::= .{2}", ["é\n", "ab"], ["a", "abc"]),
        (r'root ::= "\x41\u00e9\U0001F600\t\r\n\"\\"', ['Aé😀\t\r\n"\\'], ["A"]),
        ('root ::= "a\nb"', ["a\nb"], ["ab"]),
        ('root ::= "a" |\n # c\n "b" | c\nc ::= "d"', ["a", "b", "d"], ["c"]),
        ('root ::=\n ( "a"\n |\n\n "b" # c\n ) "c"\r\nx ::= "y"', ["ac", "bc"], ["a", "c"]),
        ('root ::= a-b_1 A\na-b_1 ::= "x"\nA ::= "y"', ["xy"], ["x"]),
        ('root ::= "a" | ', ["a", ""], ["b"]),
        ('root ::= ""', [""], ["a"]),
        ('root ::= () "a"', ["a"], [""]),
        ('root ::= "(" root ")" | "x"', ["x", "((x))"], ["(x", ""]),
        ('root ::= root "+" root | "x"', ["x", "x+x+x"], ["x+", "+x"]),
        ('root ::= a\na ::= b "x" | "y"\nb ::= a "z"', ["y", "yzx", "yzxzx"], ["yz", "x"]),
        ('root ::= never | "a" | [b] never\nnever ::= "n" never', ["a"], ["n", "b"]),
        ("root ::= " + "(" * 256 + '"a"' + ")*" * 256, ["", "aaa"], ["b"]),
        (JSON, ['{"a":[1,-2.5e3, true],"\\u00e9":{"x":"é"}}', "{}"], ["[1]", '{"a":}', "{'a':1}", '{"a":"\t"}']),
    ],
)
def test_constructs(text: str, inside: list[str], outside: list[str]) -> None:
    oracle = Reference(to_grammar(text))
    for one in inside:
        assert oracle.accepts(one.encode()), one
    for one in outside:
        assert not oracle.accepts(one.encode()), one


def test_a_start_of_another_name() -> None:
    assert Reference(to_grammar('a ::= "x"\nroot ::= "y"', start="a")).accepts(b"x")


def test_tokens_are_symbols() -> None:
    grammar = to_grammar("root ::= <think> !</think>* <[7]> !<[8]>{,3}")
    assert grammar.start.name in grammar.rules  # type: ignore[union-attr]
    assert grammar.rules["root"] == Sequence(
        (Token(("<think>",)), Repeat(Token(("</think>",), True)), Token((7,)), Repeat(Token((8,), True), 0, 3))
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "cause", "hint"),
    [
        ('root ::= "a', 1, 10, "never closed", "inside"),
        ("root ::= [a", 1, 10, "never closed", "inside"),
        ('root ::= ("a"\n  | "b"', 1, 10, "never closed", ")"),
        ('root ::= "a")', 1, 13, "never opened", "("),
        ('root ::= "a"\n  | "b"', 2, 3, "ended with its line", "parentheses"),
        ("root ::= a\nb ::= [x]", 1, 10, "rule a is used", "::="),
        ("root ::= bode\nbody ::= [x]", 1, 10, "rule bode is used", "Did you mean body"),
        ('foot ::= "a"', 1, 1, "no start rule root", "root ::="),
        ("", 1, 1, "no start rule root", "root ::="),
        ("root = a", 1, 6, "`::=` must follow", "::="),
        ('root ::= "a" b ::= "c"', 1, 16, "in the middle of a line", "new line"),
        ('root ::= "a"\nroot ::= "b"', 2, 1, "defined twice", "|"),
        ('root ::= * "a"', 1, 10, "nothing here that *", '"*"'),
        ('root ::= "a" | {2}', 1, 16, "nothing here that {", '"{"'),
        ('root ::= "a"{x}', 1, 13, "not a repetition count", "{m,n}"),
        ('root ::= "a"{,}', 1, 13, "not a repetition count", "{m,n}"),
        ('root ::= "a"{3,2}', 1, 13, "at least 3 and at most 2", "smaller"),
        (r'root ::= "\q"', 1, 11, r"\q is not an escape sequence", r"\n"),
        (r'root ::= "\x4"', 1, 11, "2 hexadecimal digits", "zeros"),
        (r'root ::= "\uD800"', 1, 11, "U+D800 is not a character", r"\U"),
        (r'root ::= "\UFFFFFFFF"', 1, 11, "is not a character", r"\U"),
        ("root ::= [z-a]", 1, 11, "backwards", r"\-"),
        ("root ::= []", 1, 10, "is empty", "."),
        ("root ::= a & b", 1, 12, "'&' begins no step", "quotes"),
        ("root ::= (a & b)", 1, 13, "'&' begins no step", "quotes"),
        ("root ::= <think", 1, 10, "never closed", "<name>"),
        ("root ::= <[x]>", 1, 10, "number of a token", "<[1000]>"),
        (f"root ::= <[{'9' * 5000}]>", 1, 10, "number of a token", "<[1000]>"),
        ("root ::= !x", 1, 11, "a token must follow", "<name>"),
        ("$ ::= x", 1, 1, "begins with its name", "letters"),
    ],
)
def test_errors_point_and_help(text: str, line: int, column: int, cause: str, hint: str) -> None:
    with pytest.raises(GrammarError) as caught:
        to_grammar(text)
    message = str(caught.value)
    assert cause in caught.value.cause and hint in caught.value.hint, message
    assert f"line {line}, column {column}\n" in message, message
    assert "^" in message


def test_no_text_at_all() -> None:
    with pytest.raises(UnsatisfiableError, match="line 2, column 1"):
        to_grammar('\nroot ::= "a" x\nx ::= root | "b" x')


# ---- random grammars: the text, and the texts that it means, made side by side

NAMES = ("root", "s", "t")
LONGEST = 5
ALL = [bytes(word) for length in range(LONGEST + 1) for word in product(b"ab", repeat=length)]
Meaning = tuple[object, ...]


leaves = st.sampled_from(
    [
        ('"a"', ("text", b"a")),
        ('"ab"', ("text", b"ab")),
        ('""', ("text", b"")),
        ("[ab]", ("any",)),
        ("[^a]", ("text", b"b")),  # of the alphabet of these tests
        *[(name, ("rule", name)) for name in NAMES],
    ]
)


def repeated(inner: st.SearchStrategy[tuple[str, Meaning]]) -> st.SearchStrategy[tuple[str, Meaning]]:
    counts = {"*": (0, None), "+": (1, None), "?": (0, 1), "{2}": (2, 2), "{1,}": (1, None), "{0,2}": (0, 2)}
    marks = st.sampled_from(list(counts))
    return st.tuples(inner, marks).map(lambda t: (f"({t[0][0]}){t[1]}", ("repeat", t[0][1], *counts[t[1]])))


def several(
    inner: st.SearchStrategy[tuple[str, Meaning]], mark: str, tag: str
) -> st.SearchStrategy[tuple[str, Meaning]]:
    return st.lists(inner, min_size=1, max_size=3).map(
        lambda parts: (f"({mark.join(text for text, _ in parts)})", (tag, *(meaning for _, meaning in parts)))
    )


bodies = st.recursive(
    leaves,
    lambda inner: st.one_of(repeated(inner), several(inner, " ", "sequence"), several(inner, " | ", "choice")),
    max_leaves=6,
)


def texts_of(meaning: Meaning, known: dict[object, frozenset[bytes]]) -> frozenset[bytes]:
    """The texts of up to LONGEST bytes of a and b."""
    match meaning:
        case ("text", bytes(text)):
            return frozenset({text})
        case ("any",):
            return frozenset({b"a", b"b"})
        case ("rule", name):
            return known[name]
        case ("choice", *options):
            return frozenset().union(*(texts_of(option, known) for option in options))  # type: ignore[arg-type]
        case ("sequence", *parts):
            out = frozenset({b""})
            for part in parts:
                out = joined(out, texts_of(part, known))  # type: ignore[arg-type]
            return out
        case ("repeat", inner, int(low), high):
            one, out, rounds = texts_of(inner, known), frozenset[bytes](), frozenset({b""})  # type: ignore[arg-type]
            for count in range((high if isinstance(high, int) else low + LONGEST + 1) + 1):
                out = out | rounds if count >= low else out
                rounds = joined(rounds, one)
            return out
    raise TypeError(meaning)


def joined(left: frozenset[bytes], right: frozenset[bytes]) -> frozenset[bytes]:
    return frozenset(a + b for a in left for b in right if len(a) + len(b) <= LONGEST)


def language(rules: dict[object, Meaning]) -> frozenset[bytes]:
    """All texts of the start: the rules grow together until nothing is new."""
    known = {name: frozenset[bytes]() for name in rules}
    while True:
        grown = {name: texts_of(rules[name], known) for name in rules}
        if grown == known:
            return known["root"]
        known = grown


@given(st.tuples(bodies, bodies, bodies))
def test_random_grammars(made: tuple[tuple[str, Meaning], ...]) -> None:
    text = "\n".join(f"{name} ::= {body}" for name, (body, _) in zip(NAMES, made))
    wanted = language({name: meaning for name, (_, meaning) in zip(NAMES, made)})
    try:
        grammar = to_grammar(text)
    except UnsatisfiableError:
        assert not wanted
        return
    oracle = Reference(grammar)
    assert oracle.viable(b"")
    for one in ALL:
        assert oracle.accepts(one) == (one in wanted), (text, one)


@given(st.text("abc\"'[]()<>{}|*+?.^-\\:=#!,0123 \n", max_size=20))
def test_any_text_is_a_grammar_or_a_clear_error(text: str) -> None:
    try:
        grammar = to_grammar("root ::= " + text)
    except ConstrainError as error:
        assert error.cause
        assert error.position is not None
        return
    assert isinstance(grammar, Grammar)
