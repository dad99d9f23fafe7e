"""Exports read again: GBNF by our reader, Lark by lark itself; the same language, or a refusal by name."""

from __future__ import annotations

import re
from itertools import product

import lark
import pytest
from hypothesis import assume, given, settings

from constrain import Form, Style, UnsupportedError, free_text, gbnf, json_schema, regex
from constrain.automata.dfa import Dfa
from constrain.export import to_gbnf, to_lark
from constrain.export.lark_text import write_lark_pattern
from constrain.export.regular_expression import to_expression
from constrain.frontends.gbnf import to_grammar
from constrain.grammar.nodes import Chars, Grammar, Literal, Repeat, Sequence, Token
from tests import grammar_factory as make
from tests.grammar_oracle import Reference
from tests.grammar_strategies import dfas, words_up_to
from tests.recogniser_oracle import accepts

ALL = ["".join(word) for length in range(5) for word in product("ab(", repeat=length)]


@settings(max_examples=40)
@given(make.rules)
def test_random_grammars_as_gbnf(grammar: Grammar) -> None:
    assume(make.sound(grammar))
    try:
        text = to_gbnf(grammar)
    except UnsupportedError as error:
        assert "begins with itself" in error.cause
        return
    before, after = Reference(grammar), Reference(to_grammar(text))
    for one in ALL:
        assert before.accepts(one.encode()) == after.accepts(one.encode()), (text, one)


@settings(max_examples=25)
@given(make.rules)
def test_random_grammars_as_lark(grammar: Grammar) -> None:
    assume(make.sound(grammar))
    text = to_lark(grammar)
    before, after = Reference(grammar), parses(text)
    for one in ALL[:121]:
        assert before.accepts(one.encode()) == after(one), (text, one)


def parses(text: str):  # type: ignore[no-untyped-def]
    """Whether lark accepts."""
    parser = lark.Lark(text, parser="earley", lexer="dynamic_complete", ambiguity="forest")

    def accepted(one: str) -> bool:
        try:
            parser.parse(one)
        except (lark.exceptions.UnexpectedInput, lark.exceptions.ParseError):
            return False
        return True

    return accepted


@settings(max_examples=20)
@given(dfas())
def test_expressions_match_the_longest_first(dfa: Dfa) -> None:
    assume(not dfa.is_empty)
    term = to_expression(dfa)
    assert term is not None
    compiled = re.compile(write_lark_pattern(term))
    for text in words_up_to(3, "abé\U0001f600"):
        assert bool(compiled.fullmatch(text)) == dfa.accepts(text)
        longest = max((n for n in range(len(text) + 1) if dfa.accepts(text[:n])), default=None)
        found = compiled.match(text)
        assert (found.end() if found else None) == longest


POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer", "minimum": 0}, "name": {"type": "string", "maxLength": 3}},
    "required": ["x"],
    "additionalProperties": False,
}
POINTS = ['{"x": 1}', '{"x": 12, "name": "a\\n\\u00e9"}', '{"x": 1, "name": "😀"}', '{"name": ""}', '{"x": -1}', "{}"]


@pytest.mark.parametrize(
    ("form", "texts"),
    [
        (json_schema(POINT), POINTS),
        (
            json_schema(POINT, style=Style(key_order="any", whitespace="compact")),
            [text.replace(" ", "") for text in POINTS],
        ),
        (gbnf('root ::= root "+" root | "(" root ")" | [0-9]+'), ["1+2", "(1)+(2+3)", "(1", "+"]),
        (regex('[^"\\\\\\]^-]{2,3}|\\^\\$/"'), ["ab", "é😀c", '^$/"', "a", '"b', "]]", "--"]),
        (regex("[a-z]{1,3}(?:\\.[a-z]{1,2}){,2}"), ["a", "abc.de.f", "a.", "abcd"]),
        (free_text(until="```") + 'é\\"\n\x07', ['``` ```é\\"\n\x07', '```é\\"\n\x07', "```"]),
        (free_text(2, 4).repeat(1, 2), ["ab", "abcdefgh", "a", "abcdefghi", "\ud7ff\ue000"]),
        (regex("a").repeat(3), ["aaa", "aaaa", "aa"]),
    ],
)
def test_forms_come_back(form: Form, texts: list[str]) -> None:
    grammar = form.grammar()
    again = to_grammar(to_gbnf(form))
    larks = parses(to_lark(grammar))
    wanted = [accepts(grammar, text) for text in texts]
    assert True in wanted and False in wanted
    assert [accepts(again, text) for text in texts] == wanted
    assert [larks(text) for text in texts] == wanted


def test_gbnf_export_keeps_rule_names_and_operators() -> None:
    text = to_gbnf(gbnf('root ::= "[" (pair ("," pair)*)? "]"\npair ::= number ":" root\nnumber ::= [0-9]+ "\\n"?'))
    assert text == 'root ::= "[" (pair ("," pair)*)? "]"\npair ::= number ":" root\nnumber ::= [0-9]+ "\\n"?\n'


def test_a_large_automaton_becomes_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.export.regular_expression.MOST_TERMS", 50)
    words = ("".join(word) for word in product("abcdefg", repeat=3))
    kept = Dfa.from_strings([word for word in words if sum(7 * k + ord(char) for k, char in enumerate(word)) % 5])
    wild = kept.star().complement().intersect(Dfa.from_ranges([(97, 103)]).repeat(1))
    grammar = Grammar(Chars(wild), {})
    assert to_expression(wild) is None
    again, larks = to_grammar(to_gbnf(grammar)), parses(to_lark(grammar))
    for text in ["a", "abc", "aaa", "abcabc", "gggg", "", "eee", "fffeee"]:
        assert accepts(again, text) == wild.accepts(text) == larks(text)


def test_tokens() -> None:
    grammar = Grammar(Sequence((Token(("<think>",)), Repeat(Token((7,), True)), Token((7, 8)))), {})
    text = to_gbnf(grammar)
    assert text == "root ::= <think> !<[7]>* (<[7]> | <[8]>)\n"
    with pytest.raises(UnsupportedError, match="Lark has no special tokens"):
        to_lark(grammar)


@pytest.mark.parametrize(
    ("grammar", "cause"),
    [
        (json_schema({"type": "object"}).grammar(), "undeclared keys"),
        (Grammar(Repeat(Literal(b"ab"), 0, 3000), {}), "beyond 2,000"),
        (Grammar(Literal(b"\xff"), {}), "not UTF-8"),
        (gbnf('root ::= a\na ::= b "x" | "y" a\nb ::= a "z" | "w"').grammar(), "begins with itself"),
    ],
)
def test_gbnf_export_names_the_unsupported_construct(grammar: Grammar, cause: str) -> None:
    with pytest.raises(UnsupportedError, match=cause) as caught:
        to_gbnf(grammar)
    assert caught.value.hint
