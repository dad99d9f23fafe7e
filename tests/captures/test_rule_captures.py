"""Captures of rules: against a slow search over all derivations, lark's own trees, and what llguidance captures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import lark
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from bench.byte_peers import build_llguidance_tokenizer
from constrain import GrammarError, UnsatisfiableError, UnsupportedError, gbnf
from constrain.captures.capture_program import build_capture_program, has_names
from constrain.captures.capture_search import find_captures
from constrain.forms import Form, read_form
from constrain.vocabulary.vocabulary import Vocabulary

BYTES = Vocabulary.bytes()
Captures = list[tuple[str, str]]


def captured(form: Form, text: str) -> Captures | None:
    found = find_captures(build_capture_program(form, BYTES), text.encode())
    return None if found is None else [(one.name, one.text) for one in found]


# ---- all derivations

Part = tuple[Any, ...]
"""("text", t), ("set", letters), ("rule", name), ("all", parts), ("any", parts), ("some", part, low, high)."""


def parts_of(rules: list[str]) -> st.SearchStrategy[Part]:
    leaves = st.one_of(
        st.sampled_from(["a", "b", "ab", ""]).map(lambda text: ("text", text)),
        st.sampled_from(["ab", "a"]).map(lambda letters: ("set", letters)),
        st.sampled_from(rules).map(lambda name: ("rule", name)),
        st.sampled_from(rules).map(lambda name: ("rule", name)),
    )

    def grow(inner: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
        several = st.lists(inner, min_size=2, max_size=3)
        counts = st.sampled_from([(0, None), (1, None), (0, 1), (2, 3), (0, 2)])
        return st.one_of(
            several.map(lambda parts: ("all", *parts)),
            several.map(lambda parts: ("any", *parts)),
            st.builds(lambda part, count: ("some", part, *count), inner, counts),
        )

    return st.recursive(leaves, grow, max_leaves=5)


def write_gbnf(part: Part) -> str:
    kind = part[0]
    if kind == "text":
        return f'"{part[1]}"'
    if kind == "set":
        return f"[{part[1]}]"
    if kind == "rule":
        return str(part[1])
    if kind == "some":
        low, high = part[2:]
        return f"({write_gbnf(part[1])}){{{low},{'' if high is None else high}}}"
    return "(" + (" " if kind == "all" else " | ").join(map(write_gbnf, part[1:])) + ")"


class Derivations:
    """All derivations of a text in order of preference, by recursive descent over all spans."""

    def __init__(self, rules: dict[str, Part], text: str) -> None:
        self.rules, self.text, self.steps = rules, text, 0

    def first(self) -> Captures | None:
        return next(self.derive(("rule", "root"), 0, len(self.text), frozenset()), None)

    def derive(self, part: Part, start: int, end: int, around: frozenset[Any]) -> Iterator[Captures]:
        self.steps += 1
        if self.steps > 20_000:
            raise OverflowError
        kind = part[0]
        if kind in ("text", "set"):
            text = self.text[start:end]
            if text == part[1] if kind == "text" else len(text) == 1 and text in part[1]:
                yield []
        elif kind == "rule":
            key = part[1], start, end
            if key not in around:
                for found in self.derive(self.rules[part[1]], start, end, around | {key}):
                    yield [(part[1], self.text[start:end]), *found]
        elif kind == "any":
            for option in part[1:]:
                yield from self.derive(option, start, end, around)
        elif kind == "all":
            yield from self.in_turn(part[1:], start, end, around)
        else:
            yield from self.rounds(part[1], part[2], part[3], start, end, around)

    def in_turn(self, parts: tuple[Part, ...], start: int, end: int, around: frozenset[Any]) -> Iterator[Captures]:
        if not parts:
            if start == end:
                yield []
            return
        for middle in range(end, start - 1, -1):
            for found in self.derive(parts[0], start, middle, around):
                for others in self.in_turn(parts[1:], middle, end, around):
                    yield found + others

    def rounds(
        self, part: Part, low: int, high: int | None, start: int, end: int, around: frozenset[Any]
    ) -> Iterator[Captures]:
        if high != 0:
            for middle in range(end, start - 1 if low else start, -1):
                for found in self.derive(part, start, middle, around):
                    rest = max(low - 1, 0), None if high is None else high - 1
                    for others in self.rounds(part, *rest, middle, end, around):
                        yield found + others
        if low == 0 and start == end:
            yield []


TEXTS = ["".join(letters) for n in range(5) for letters in product("ab", repeat=n)]


@st.composite
def grammars(draw: st.DrawFn) -> dict[str, Part]:
    names = ["root", "x", "y"]
    return {name: draw(parts_of(names)) for name in names}


@given(grammars(), st.lists(st.sampled_from(["root", "x", "y"]), min_size=1, max_size=3, unique=True))
@settings(max_examples=35, deadline=None)
def test_captures_are_those_of_the_preferred_derivation(rules: dict[str, Part], names: list[str]) -> None:
    text = "\n".join(f"{name} ::= {write_gbnf(body)}" for name, body in rules.items())
    form = gbnf(text, captures=names)
    try:
        program = build_capture_program(form, BYTES)
    except UnsatisfiableError:
        return
    for one in TEXTS:
        found = find_captures(program, one.encode())
        try:
            expected = Derivations(rules, one).first()
        except OverflowError:
            continue
        assert (found is None) == (expected is None), (text, one)
        if found is not None and expected is not None:
            assert [(c.name, c.text) for c in found] == [pair for pair in expected if pair[0] in names], (text, one)
            for name, _ in expected:
                several = [pair[0] for pair in expected].count(name) > 1
                assert not (name in names and several) or program.names[name]


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= a root | ""\na ::= [a-z]',
        'root ::= root a | ""\na ::= [a-z]',
        "root ::= a*\na ::= [a-z]",
        "root ::= a{400}\na ::= [a-z]",
    ],
)
def test_many_rounds_are_captured_in_order(grammar: str) -> None:
    assert captured(gbnf(grammar, captures=["a"]), "abcd" * 100) == [("a", letter) for letter in "abcd" * 100]


def test_an_ambiguous_repetition_is_one_round() -> None:
    form = gbnf('root ::= (a " "?)*\na ::= [a-z]+', captures=["a"])
    assert captured(form, "ab" * 100 + " " + "c" * 100) == [("a", "ab" * 100), ("a", "c" * 100)]


# ---- lark

EXPRESSIONS = """start: sum
sum: product ("+" product)* | sum "-" product
product: atom ("*" atom)*
atom: NUMBER | "(" sum ")" | call
call: NAME "(" [sum ("," sum)*] ")"
NUMBER: /[0-9]+/
NAME: /[a-z]+/
%ignore / +/
"""
RULES = ["sum", "product", "atom", "call"]


def tree_spans(tree: Any, text: str) -> Captures:
    """The texts of the rules of a tree of lark, outer before inner ones."""
    found = [(str(tree.data), text[tree.meta.start_pos : tree.meta.end_pos])] if not tree.meta.empty else []
    for child in tree.children:
        found += tree_spans(child, text) if isinstance(child, lark.Tree) else [(child.type, str(child))]
    return found


@pytest.mark.parametrize("text", ["1", " 1 + 2 * 3 ", "f ( 1+2, g() )*(3 - 4)-5", "((( 7 )))"])
def test_captures_are_the_spans_of_the_tree_of_lark(text: str) -> None:
    names = [*RULES, "NUMBER", "NAME"]
    tree = lark.Lark(EXPRESSIONS, parser="lalr", propagate_positions=True, maybe_placeholders=False).parse(text)
    expected = [pair for pair in tree_spans(tree, text) if pair[0] in names]
    assert captured(constrain.lark(EXPRESSIONS, parser="lalr", captures=names), text) == expected
    assert captured(constrain.lark(EXPRESSIONS, parser="earley", captures=names), text) == expected


def test_captures_of_a_grammar_with_indentation() -> None:
    grammar = """start: (line | block)+
block: "if" NAME ":" _NEWLINE _INDENT (line | block)+ _DEDENT
line: NAME _NEWLINE
NAME: /[a-z]+/
_NEWLINE: /\\n *|\\n/
%declare _INDENT _DEDENT
%ignore " "
"""
    form = constrain.lark(grammar, captures=["block", "NAME"], parser="lalr")
    text = "a\nif b:\n  c\n  if d:\n    e\nf\n"
    found = captured(form, text)
    assert [one for name, one in found or [] if name == "NAME"] == list("abcdef")
    blocks = [one.rstrip() for name, one in found or [] if name == "block"]
    assert blocks == ["if b:\n  c\n  if d:\n    e", "if d:\n    e"]


def test_ignored_text_around_a_rule_is_not_captured_but_within_it_is() -> None:
    grammar = 'start: pair+ "."\npair: A A\nA: "a"\n%ignore " "\n'
    for lexer in ("contextual", "dynamic"):
        form = constrain.lark(grammar, lexer=lexer, captures=["pair"])
        assert captured(form, " a  a a a . ") == [("pair", "a  a"), ("pair", "a a")]


# ---- llguidance


def peer_captures(grammar: str, text: str) -> Captures:
    llguidance = pytest.importorskip("llguidance")
    matcher = llguidance.LLMatcher(
        build_llguidance_tokenizer(), llguidance.LLMatcher.grammar_from_lark(grammar), log_level=0
    )
    assert matcher.try_consume_tokens(list(text.encode())) == len(text.encode()) and matcher.is_accepting()
    return [(name, data.decode()) for name, data in matcher.get_captures()]


UNAMBIGUOUS = [
    ('start: x+ "."\nx[capture]: y ","\ny[capture]: /[a-z]+/\n%ignore " "', "ab, cd ,  e,."),
    ('start: "(" a? ")"\na[capture]: /[a-z]/', "()"),
    ('start: "(" a ")"\na[capture="the number"]: %json {"type": "integer"}', "(12)"),
    ('start: "(" a ")"\na[capture]: x "-" x\nx[capture="q"]: /[a-z]+/', "(as-df)"),
    ('start: a\na[capture, suffix="<end>", stop_capture="s"]: /.*/', "foo<end>"),
    ('start: a\na[capture, suffix=/a*b/, stop_capture="s"]: /[a-z]*/', "xaaab"),
    ("start: a b\na[capture, lazy]: /[a-z]*b/\nb[capture]: /[a-zé]+!/", "xaabcé!"),
    ('start: a\na[suffix=C, capture]: B "a"\nB: /[a-b]+/\nC: "c" | "d"', "aabac"),
    ('start: s\ns[capture]: "(" s ")" | NAME\nNAME: /[a-z]+/', "((abc))"),
    ('start: a "x"\na[capture, suffix=""]: /[a-c]+/', "abx"),
    ('start: head* TEXT\nhead[capture="h"]: call\ncall[lazy]: TEXT "<f>"\nTEXT: /(.|\\n)*/', "a<f>b<f>cc"),
]


@pytest.mark.parametrize(("grammar", "text"), UNAMBIGUOUS)
def test_captures_are_those_of_llguidance(grammar: str, text: str) -> None:
    ours = captured(constrain.lark(grammar, dialect="llguidance"), text)
    assert sorted(ours or []) == sorted(peer_captures(grammar, text))


AMBIGUOUS = [
    ('start[capture]: a b\na[capture]: /[a-z]/*\nb[capture]: /[a-z]/* "."', "abc.", [("a", "abc"), ("b", ".")]),
    ('start: (a | b) "."\na[capture]: /[a-z]/+\nb[capture]: /[a-z]/+', "abc.", [("a", "abc")]),
    ('start: e "."\ne[capture]: e "+" e | /[a-z]/', "a+b+c.",
     [("e", "a+b+c"), ("e", "a+b"), ("e", "a"), ("e", "b"), ("e", "c")]),
]  # fmt: skip


@pytest.mark.parametrize(("grammar", "text", "expected"), AMBIGUOUS)
def test_one_derivation_is_captured_where_llguidance_captures_all(grammar: str, text: str, expected: Captures) -> None:
    ours = captured(constrain.lark(grammar, dialect="llguidance"), text) or []
    assert [pair for pair in ours if pair[0] != "start"] == expected
    assert set(ours) <= set(peer_captures(grammar, text))


STOPPED = [
    ('start: a "<end>"\na[capture, stop="<end>"]: /.*/', "foo<end>", [("a", "foo")]),
    ('start: a "b"\na[capture, stop="<end>"]: /.*/', "foob", [("a", "foo")]),
    ('start: a\na[capture, stop="<end>"]: /.*/', "foo", [("a", "foo")]),
    ('start: a "x"\na[capture, stop=""]: /[a-w]*/', "foox", [("a", "foo")]),
    ('start: b*\nb[capture, stop=","]: /[0-9]{2}/', "1234", [("b", "12"), ("b", "34")]),
    ("start: b C\nb[capture, stop=/[,;]/]: /[0-9]*/\nC: /[;,]/", ";", [("b", "")]),
]


@pytest.mark.parametrize(("grammar", "text", "expected"), STOPPED)
def test_a_text_that_stops_a_rule_is_no_part_of_the_answer(grammar: str, text: str, expected: Captures) -> None:
    assert captured(constrain.lark(grammar, dialect="llguidance"), text) == expected


def test_nested_grammars_have_captures() -> None:
    grammar = 'start: "<" a ">"\na[capture]: %lark {\nstart: b ("-" b)*\nb[capture]: /[0-9]+/\n}\n'
    form = constrain.lark(grammar, dialect="llguidance")
    assert captured("é" + form, "é<12-3>") == [("a", "12-3"), ("b", "12"), ("b", "3")]
    assert build_capture_program(form, BYTES).names == {"a": False, "b": True}


# ---- the interface


@pytest.mark.parametrize(
    "form",
    [
        gbnf("root ::= x\nx ::= [a]", captures=["y"]),
        constrain.lark('start: x\nx: "a"', captures=["xx"]),
        constrain.lark('start: x\nx: "a"', lexer="dynamic", captures=["xx"]),
        constrain.lark('start: x\nx: "a"', dialect="llguidance", captures=["xx"]),
    ],
)
def test_a_name_that_is_no_rule_is_refused(form: Form) -> None:
    with pytest.raises(GrammarError, match="captures: there is no rule"):
        build_capture_program(form, BYTES)


def test_captures_are_saved_with_the_form() -> None:
    form = gbnf("root ::= x x\nx ::= [ab]", captures=["x"])
    again = read_form(form.plain())
    assert again == form and captured(again, "ab") == [("x", "a"), ("x", "b")]
    assert has_names(form) and not has_names(gbnf("root ::= [a]"))


def test_generations_hold_captures_of_rules() -> None:
    text = (
        '%llguidance {}\nstart: "name: " name ", " age\nname[capture]: /[a-z]{3}/\nage[capture]: %json {"enum": [7]}\n'
    )
    one = constrain.generate("demo", grammar=text, seed=1)
    assert one.captures == {"name": one.text[6:9], "age": "7"}
    rule = constrain.gbnf('root ::= d "-" d\nd ::= [0-9]', captures=["d"])
    two = constrain.generate("demo", grammar=rule, seed=1)
    assert two.captures == {"d": [two.text[0], two.text[2]]}


def test_names_in_embedded_forms_are_refused() -> None:
    inner = constrain.regex("a+").named("n")
    form = constrain.lark("start: @x", dialect="llguidance", grammars={"x": inner})
    with pytest.raises(UnsupportedError, match="a named form is in a grammar"):
        build_capture_program(form, BYTES)


def test_special_tokens_stand_in_texts_with_captures() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", None, None], [3], special={"<x>": 2})
    form = constrain.lark("start: a <x> a\na[capture]: /[ab]+/", dialect="llguidance")
    program = build_capture_program(form, vocabulary)
    data = b"".join(vocabulary.spelled(token) for token in (0, 1, 2, 1))
    assert [(one.name, one.text) for one in find_captures(program, data) or []] == [("a", "ab"), ("a", "b")]
