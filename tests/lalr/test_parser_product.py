"""Lark grammars with a lexer, intersected with patterns: against Lark and the pattern on every short text.

Every prefix that is allowed must lead to a text, so each is completed, and the result is checked as well.
"""

from __future__ import annotations

import json
import random
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain import (
    Constraint,
    LimitError,
    Limits,
    UnsatisfiableError,
    UnsupportedError,
    Vocabulary,
    all_of,
    compile_grammar,
    contains,
    excludes,
    grammars,
    lark,
    literal,
    regex,
)
from constrain.automata.dfa import Dfa
from constrain.forms import Form
from constrain.frontends.lark import to_grammar
from constrain.frontends.regex import to_dfa
from constrain.grammar.intersection import intersect_grammar
from constrain.grammar.nodes import Grammar, Parsed
from constrain.lalr.shortest_suffix import ShortestSuffixes
from tests.text_acceptance import accepts_tokens
from tests.token_mask_oracle import compare_token_masks

Lark = pytest.importorskip("lark").Lark
BYTES = Vocabulary.bytes()


class Case(NamedTuple):
    """A Lark grammar, and an alphabet with the first, inner and wrong characters of its terminals."""

    text: str
    alphabet: str

    @property
    def length(self) -> int:
        """The most characters of texts that are tried one by one."""
        return 5 if len(self.alphabet) < 5 else 4


CASES = {
    "list": Case('start: "[" [x ("," x)*] "]"\nx: A | start\nA: /a+/\n%ignore " "', "[],a "),
    "sum": Case('start: e\ne: e "+" t | t\nt: N | "(" e ")"\nN: /[ab]+/\n%ignore " "', "+()ab "),
    "keyword": Case('start: ("if" N | N "=" N)+\nN: /[if]+/\n%ignore " "', "if= "),
    "longer": Case('start: (A|B)+ "c"\nA: "a"\nB: /a*b/', "abc"),
    "number": Case('start: (INT|FLOAT|"..")+\nINT: /1+/\nFLOAT: /1+\\.1*/', "1."),
    "minus": Case('start: e\ne: "-" e | N | e "--" | e "-" e\nN: /a/\n%ignore " "', "a- "),
    "apart": Case('start: A B | C AB\nA: "a"\nB: "b"\nC: "c"\nAB: "ab"', "abc"),
    "comment": Case('start: N+\nN: /[ab]+/\n%ignore /#[ab]*;/\n%ignore " "', "ab#; "),
    "line": Case("start: (N _NL)+\nN: /[a-b]+/\n_NL.1: /\\n/\n%ignore /[ \\n]/", "ab\n "),
    "empty": Case('start: x*\nx: "a" y\ny: | "b"\n%ignore " "', "ab "),
    "lookahead": Case('start: (F "(" | N)+\nF: /[a-b]+(?=\\()/\nN: /[a-b]+|\\(/', "ab("),
    "accents": Case('start: (N|M)+\nN: /[aé]+/\nM: "ä"\n%ignore " "', "aéä "),
    "conflict": Case('start: s\ns: "a" s | "a" s "b" s | "a"', "ab "),
}
PATTERNS = [
    ".*ab.*", ".*aa.*", "[^ ]*", "(..)*", ".* .*", ".*a a.*", ".*[(]a.*", "(?!.*ab).*", ".*1[.].*", ".*if.*f=.*",
    "((?!--).)*", "a.*", ".*b", "", "[^a]*", ".*é.*ä.*", "((?!\\.\\.).)*",
]  # fmt: skip


@cache
def build_parser(name: str, lexer: str) -> Any:
    return Lark(CASES[name].text, parser="lalr", lexer=lexer)


@cache
def accepted(name: str, lexer: str) -> frozenset[str]:
    """The short texts that Lark accepts."""
    case = CASES[name]
    words = ("".join(word) for size in range(case.length + 1) for word in product(case.alphabet, repeat=size))
    return frozenset(word for word in words if accepts(name, lexer, word))


def accepts(name: str, lexer: str, text: str) -> bool:
    """Whether Lark accepts a text."""
    parser = build_parser(name, lexer)
    try:
        parser.parse(text)
    except Exception:
        return False
    return True


def follow(constraint: Constraint, alphabet: str, most: int) -> tuple[set[str], set[str]]:
    """The texts of at most `most` characters that are complete, and those that are allowed."""
    complete, allowed, matcher = set[str](), set[str](), constraint.matcher()

    def visit(text: str) -> None:
        allowed.add(text)
        if matcher.is_complete:
            complete.add(text)
        for char in alphabet if len(text) < most else "":
            data, done = char.encode(), 0
            for byte in data:
                if not matcher.allows(byte):
                    break
                matcher.advance(byte)
                done += 1
            if done == len(data):
                visit(text + char)
            matcher.rollback(done)

    visit("")
    return complete, allowed


@pytest.mark.parametrize("lexer", ["contextual", pytest.param("basic", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", list(CASES))
def test_every_short_text(name: str, lexer: Any) -> None:
    grammar = to_grammar(CASES[name].text, lexer=lexer)
    for pattern in PATTERNS:
        dfa = to_dfa(pattern, flags="s")
        wanted = {text for text in accepted(name, lexer) if dfa.accepts(text)}
        both = intersect_grammar(grammar, dfa)
        if both is None:
            assert not wanted, pattern
            continue
        constraint = compile_grammar(both, BYTES)
        complete, allowed = follow(constraint, CASES[name].alphabet, CASES[name].length)
        assert complete == wanted, pattern
        for text in sorted(allowed, key=lambda one: (len(one), one))[:25]:
            matcher = constraint.matcher()
            matcher.advance_bytes(text.encode())
            rest = matcher.shortest_completion()
            assert rest is not None
            whole = text + rest.decode()
            assert dfa.accepts(whole), (pattern, text, whole)
            assert accepts(name, lexer, whole), (pattern, text, whole)
            lengths = [len(one) for one in wanted if one.startswith(text)]
            assert not lengths or len(whole) <= min(lengths), (pattern, text, whole)
            assert isinstance(both.start, Parsed)
            if not text:
                assert ShortestSuffixes(both.start.parser).least <= len(whole.encode())


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(sorted(CASES)), st.integers(0, 1 << 30))
def test_random_automata(name: str, seed: int) -> None:
    """Automata whose states depend on all of the text, not on a few characters of it."""
    dfa = random_dfa(random.Random(seed), CASES[name].alphabet)
    both = None if dfa.is_empty else intersect_grammar(to_grammar(CASES[name].text), dfa)
    wanted = {text for text in accepted(name, "contextual") if dfa.accepts(text)}
    if both is None:
        assert not wanted
        return
    constraint = compile_grammar(both, BYTES)
    complete, allowed = follow(constraint, CASES[name].alphabet, CASES[name].length)
    assert complete == wanted
    for text in sorted(allowed)[:20]:
        matcher = constraint.matcher()
        matcher.advance_bytes(text.encode())
        whole = text + (matcher.shortest_completion() or b"").decode()
        assert dfa.accepts(whole)
        assert accepts(name, "contextual", whole)


def random_dfa(rng: random.Random, alphabet: str) -> Dfa:
    """A random automaton of up to four states over an alphabet."""
    size, language = rng.randint(1, 4), Dfa.empty()
    sets = [Dfa.from_ranges([(ord(char), ord(char))]) for char in alphabet]
    table = Dfa.union_of(sets).star().table._replace(rows=[], accepting=[])
    points = sorted({0, 0xD800, 0xE000, *map(ord, alphabet), *(ord(char) + 1 for char in alphabet)})
    classes = [alphabet.index(chr(point)) if chr(point) in alphabet else len(alphabet) for point in points]
    rows = [[rng.randint(-1, size - 1) for _ in alphabet] + [-1] for _ in range(size)]
    table = table._replace(bounds=points, classes=classes, rows=rows, accepting=[rng.random() < 0.5 for _ in rows])
    return language.union(Dfa.from_table(table))


SUM, LIST = (lark(CASES[name].text) for name in ("sum", "list"))


@pytest.mark.parametrize(
    ("form", "inside", "outside"),
    [
        (SUM & contains("ab", "b+"), ["a+ab", "b + (b+a)"], ["a+b", "b"]),
        (contains("ab") & SUM, ["(ab)"], ["a b"]),
        (SUM & contains("ab") & contains("+b"), ["ab+b"], ["ab", "b+b"]),
        (
            SUM & all_of(["ab", "+b"]) & excludes("(") & regex(".{6}"),
            ["ab+b+b", "ab +b "],
            ["ab+b", "(ab+b)", "abbb+a"],
        ),
        ("x" + SUM + ";" + SUM & contains("ab;ab", ";a"), ["xab;ab", "xb;a"], ["xab;b", "ab;ab"]),
        ((SUM + LIST) & contains("a[a", "]a"), ["ba[a,a]"], ["a[[]]", "a[ a]"]),
        ((SUM.repeat(2, 3) | LIST) & contains(")("), ["(a)(b)", "a+(a)(b)(b)"], ["[a]", "(a)b"]),
        (((SUM & contains("a")) + LIST) & contains("a+["), [], ["a[a]"]),
        (((SUM & contains("a")) + LIST) & contains("a["), ["ba[a]", "a+a[]"], ["b[a]", "b+a[", "a+b[]"]),
        ((SUM | literal("abc")) & contains("c", ")"), ["abc", "(a)"], ["a"]),
        ((SUM & contains("b")).repeat(1, 2) & excludes("a"), ["b", "b+bb"], ["ab", "b(a)"]),
    ],
)
def test_within_other_forms(form: Form, inside: list[str], outside: list[str]) -> None:
    if not inside:
        with pytest.raises(UnsatisfiableError):
            form.grammar()
        return
    constraint = constrain.compile(BYTES, form)
    for text in [*inside, *outside]:
        assert accepts_tokens(constraint, text.encode()) == (text in inside), text


READY = ["json", "arithmetic", "toml", "xml", "lisp"]


@pytest.mark.parametrize("name", READY)
def test_masks_of_ready_grammars(name: str) -> None:
    ready = grammars.read(name)
    text = max(ready.accepts, key=len)[:60]
    word = text[len(text) // 2 : len(text) // 2 + 3]
    pieces = {text[k : k + size].encode() for k in range(len(text)) for size in (2, 3, 5)}
    tokens = [*(bytes([byte]) for byte in range(256)), *sorted(pieces), None]
    vocabulary = Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1])
    form = lark(ready.text, lexer=ready.lexer) & contains(word, "qqq", case="insensitive")
    compare_token_masks(constrain.compile(vocabulary, form), constrain.compile(BYTES, form), text.encode(), vocabulary)


def test_json_texts_with_a_phrase() -> None:
    ready = grammars.read("json")
    constraint = constrain.compile(BYTES, lark(ready.text, lexer=ready.lexer) & contains("needle", boundaries="words"))
    for value, found in ((["a needle"], True), ({"needle": 1}, True), ({"needles": "xneedle"}, False)):
        matcher = constraint.matcher()
        text = json.dumps(value).encode()
        matcher.advance_bytes(text[:-1])
        assert matcher.allows(text[-1]) == found
        rest = (matcher.shortest_completion() or b"").decode()
        assert "needle" in rest or found


def test_unsupported_or_empty_intersections_raise() -> None:
    python = lark(grammars.read("python").text)
    with pytest.raises(UnsupportedError, match="indentation"):
        (python & contains("x")).grammar()
    with pytest.raises(UnsupportedError, match="lexer cannot be expanded"):
        (~SUM).grammar()
    with pytest.raises(UnsatisfiableError):
        (SUM & contains("c")).grammar()


@pytest.mark.parametrize("limits", [Limits(work=30_000), Limits(dfa_states=100)])
def test_work_is_bounded(limits: Limits) -> None:
    ready = grammars.read("json")
    form = lark(ready.text, lexer=ready.lexer)
    form.grammar()
    with pytest.raises(LimitError):
        constrain.compile(BYTES, form & contains("a phrase"), limits=limits)


def test_large_sets_of_returns_are_counted() -> None:
    with pytest.raises(LimitError):
        constrain.compile(BYTES, lark(grammars.text("json")) & regex("(?s)(.{40})*"), limits=Limits(work=1_000_000))


def test_products_are_grammars_of_parsers() -> None:
    grammar = (SUM & contains("ab") & excludes("b+")).grammar()
    assert isinstance(grammar, Grammar)
    assert isinstance(grammar.start, Parsed)
    origin = grammar.start.parser.product
    assert origin is not None
    assert origin.parser.product is None
    assert len(origin.paired) == len(grammar.start.parser.table.action)
