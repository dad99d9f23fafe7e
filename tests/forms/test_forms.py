"""Forms: what they mean alone and combined, through the engine; that they are written down and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain import (
    Constraint,
    Form,
    SourceError,
    Style,
    UnsatisfiableError,
    UnsupportedError,
    Vocabulary,
    free_text,
    gbnf,
    json_schema,
    lark,
    literal,
    regex,
)
from constrain.forms import read_form
from tests.text_acceptance import accepts_text

VOCABULARY = Vocabulary.bytes()
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["x"],
    "additionalProperties": False,
}
SUMS = gbnf('root ::= root "+" root | "(" root ")" | [0-9]+')
FENCED = free_text(until="```json\n") + json_schema(POINT) + "\n```"


@pytest.mark.parametrize(
    ("form", "inside", "outside"),
    [
        (literal("a") + "b", ["ab"], ["a", "b"]),
        ("a" + regex("b+") + "c", ["abc", "abbc"], ["ac"]),
        (literal("a") | "b" | regex("cc?"), ["a", "b", "cc"], ["", "ab"]),
        ("a" | regex("b"), ["a", "b"], ["c"]),
        (~regex("a*"), ["b", "ab", "é"], ["", "aaa"]),
        (regex("[a-z]+") & ~literal("if"), ["i", "iff"], ["if", ""]),
        ("ab" & regex("..?"), ["ab"], ["a"]),
        (SUMS, ["1", "(1+2)+3"], ["+", "(1"]),
        (SUMS & regex(".{5}"), ["(1+2)", "1+2+3", "12345"], ["1", "1+2", "1+(2)+3"]),
        (regex("[0-9+]*") & SUMS, ["1+2"], ["(1)", "1+"]),
        ("= " + SUMS.repeat(1, 2) + "\n", ["= 1\n", "= 1(2)\n"], ["= \n", "= 1"]),
        (literal("ab").repeat(), ["", "abab"], ["a"]),
        (
            FENCED,
            ['Sure: ```json\n{"x": 1}\n```', '``````json\n{"x": 1, "y": 2}\n```'],
            ['{"x": 1}', "```json\n{}\n```"],
        ),
        (free_text(1, 3), ["é\n", "abc"], ["", "abcd"]),
        (free_text(without=("</", "<!")), ["a < b", ""], ["</a", "<!--"]),
        (free_text(3, 5, until="."), ["ab.", "abcd."], ["a.", "a.b.", "abcde.", "abc"]),
        (regex("a|é").quoted(), ['"a"', '"\\u00e9"', '"é"'], ["a", '"b"']),
        (SUMS.quoted(Style.any()), ['"1\\u002b2"', '"(1)"'], ["1", '"1+"']),
        (SUMS.quoted(), ['"1+2"'], ['"1\\u002b2"']),
        (json_schema(POINT).quoted(), ['"{\\"x\\": 1}"', '"{\\"x\\": 1, \\"y\\": 0}"'], ['"{\\"y\\": 1}"', '{"x": 1}']),
        (json_schema(POINT) & regex("[^2]*"), ['{"x": 1}'], ['{"x": 2}']),
        (json_schema({"type": "boolean"}) | json_schema(False), ["true"], ["null"]),
        (json_schema(False).repeat() + "a", ["a"], [""]),
        (~json_schema(False), ["", "a"], []),
        (json_schema(list[int]), ["[1, 2]"], ['["1"]']),
    ],
)
def test_forms_accept_exactly_their_language(form: Form, inside: list[str], outside: list[str]) -> None:
    constraint = constrain.compile(VOCABULARY, form)
    for text in inside:
        assert accepts_text(constraint, text), text
    for text in outside:
        assert not accepts_text(constraint, text), text
    again = read_form(json.loads(json.dumps(form.plain())))
    assert again == form
    assert hash(again) == hash(form)


def test_equal_rule_names_do_not_collide() -> None:
    form = gbnf("root ::= x\nx ::= [a] x | [b]") + gbnf("root ::= x x\nx ::= [c]")
    constraint = form.compile(VOCABULARY)
    assert accepts_text(constraint, "aabcc")
    assert not accepts_text(constraint, "abab")


def test_a_form_is_saved_with_its_constraint(tmp_path: Path) -> None:
    constraint = FENCED.compile(VOCABULARY)
    constraint.save(tmp_path / "it")
    again = Constraint.load(tmp_path / "it", VOCABULARY)
    assert again.source == constraint.source
    assert accepts_text(again, '```json\n{"x": 1}\n```')


def test_a_form_is_a_grammar() -> None:
    """As `generate` gives it on."""
    assert accepts_text(constrain.compile(VOCABULARY, grammar="x = " + regex("[0-9]{1,3}")), "x = 12")


@pytest.mark.parametrize(
    ("form", "error", "message"),
    [
        (SUMS & SUMS, UnsupportedError, "a & b.*a rule names itself"),
        (~SUMS, UnsupportedError, "~a.*a rule names itself"),
        (literal("a") & literal("b"), UnsatisfiableError, "both forms"),
        (~free_text(), UnsatisfiableError, "every text"),
        (json_schema(False) | json_schema(False), UnsatisfiableError, "No value"),
        (json_schema({"type": "object"}) & regex("x"), UnsatisfiableError, "both forms"),
        (json_schema({"type": "object"}) & regex(r'\{("a": 1(, |\}))*'), UnsupportedError, "undeclared keys"),
        (
            json_schema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}) & regex(".*"),
            UnsupportedError,
            "unique items",
        ),
        (free_text(0, 2, until="abc"), UnsatisfiableError, "bounds"),
        (regex("(a"), SourceError, "never closed|parenthes|group"),
    ],
)
def test_errors(form: Form, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        form.grammar()


def test_a_byte_order_mark_is_not_part_of_a_schema_or_grammar(tmp_path: Path) -> None:
    """It is what `open(...).read()` returns of files of some editors. In a pattern or a choice it is content."""
    assert gbnf('\ufeffroot ::= "a"') == gbnf('root ::= "a"')
    assert lark('\ufeffstart: "a"') == lark('start: "a"')
    assert json_schema('\ufeff{"const": 1}') == json_schema('{"const": 1}')
    (tmp_path / "letters.lark").write_text('A: "a"\n', "utf-8-sig")
    imported = lark("%import letters.A\nstart: A", import_paths=[tmp_path])
    for constraint in (
        constrain.compile(VOCABULARY, grammar='\ufeffroot ::= "a"'),
        constrain.compile(VOCABULARY, grammar='\ufeff%llguidance {}\nstart: "a"'),
        constrain.compile(VOCABULARY, grammar=imported),
    ):
        assert constraint.matcher().next_bytes() == {ord("a")}
    assert constrain.validate('\ufeff{"const": 1}', 1) == ()
    for constraint in (
        constrain.compile(VOCABULARY, regex="\ufeffa"),
        constrain.compile(VOCABULARY, choices=["\ufeffa"]),
    ):
        assert constraint.matcher().next_bytes() == {0xEF}


def test_invalid_operands_of_forms_are_refused() -> None:
    with pytest.raises(SourceError, match="surrogate"):
        literal("\ud800")
    with pytest.raises(TypeError, match="a form or a text"):
        literal("a") + 1  # type: ignore[operator]
    with pytest.raises(ValueError, match="ascend"):
        literal("a").repeat(3, 2)
    with pytest.raises(ValueError, match="not empty"):
        free_text(without="")
    with pytest.raises(TypeError, match="not both"):
        constrain.compile(VOCABULARY, literal("a"), grammar=literal("b"))
    with pytest.raises(SourceError, match="no form"):
        read_form({"kind": "Nothing"})


CODE = """
start: "def" NAME "(" ")" ":" DOC
NAME: /[a-z]+/
%declare DOC
%ignore " "
"""


@pytest.mark.parametrize("lexer", ["contextual", "basic", "dynamic_complete"])
def test_a_pattern_in_a_lark_grammar(lexer: Any) -> None:
    form = lark(CODE, lexer=lexer, grammars={"DOC": '"' + regex("[A-Z]([a-z ]|é)*[.]") + '"'})
    constraint = form.compile(VOCABULARY)
    assert accepts_text(constraint, 'def f( ): "A good é."')
    assert not accepts_text(constraint, 'def f(): "a"')
    again = read_form(json.loads(json.dumps(form.plain())))
    assert again == form


def test_json_in_a_lark_grammar() -> None:
    text = 'start: ("let" NAME "=" BODY ";")+\nNAME: /[a-z]+/\n%declare BODY\n%ignore /[ \\n]+/'
    form = lark(text, lexer="dynamic_complete", grammars={"BODY": json_schema(POINT) | SUMS})
    constraint = form.compile(VOCABULARY)
    assert accepts_text(constraint, 'let a = {"x": 1, "y": 2};\nlet b = (1+2)+3 ;')
    assert not accepts_text(constraint, 'let a = {"y": 2};')
    with pytest.raises(UnsupportedError, match="rule names itself") as caught:
        lark(text, grammars={"BODY": SUMS}).grammar()
    assert "dynamic_complete" in caught.value.hint
