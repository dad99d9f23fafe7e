"""docs/how-to/move-from-other-libraries.md runs as written; where a library is installed, its calls judge alike."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import constrain
from bench.byte_peers import END, build_llguidance_tokenizer, build_xgrammar_compiler
from constrain.serving.request_fields import REQUEST_FIELDS
from tests.page_reader import page, runs

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
TEXTS = [
    '{"name": "Ada", "age": 36}', '{"name": "Ada", "age": 121}', '{"name": "Ada"}', '{"name": 1, "age": 2}', "{}",
    '{"name": "' + "x" * 21 + '", "age": 2}', '{"name":"","age":0}', '{"name": "Ada", "age": 36, "x": 1}',
]  # fmt: skip
PATTERN, DATES = "[0-9]{4}-[0-9]{2}", ["2024-05", "2024-5", "x", "2024-055"]
LARK, LARK_TEXTS = 'start: "x" %json {"type": "integer"} | /[a-c]{2}/', ["x12", "ab", "x", "ad", "xab"]
EBNF, EBNF_TEXTS = 'root ::= [a-c]{2} | "x" root', ["ab", "xxab", "x", "abc"]
Judge = Callable[[str], bool]


def llguidance_judge(kind: str, source: Any) -> Judge:
    llguidance = pytest.importorskip("llguidance")
    tokenizer = build_llguidance_tokenizer()
    grammar = getattr(llguidance.LLMatcher, f"grammar_from_{kind}")(source)

    def judge(text: str) -> bool:
        matcher = llguidance.LLMatcher(tokenizer, grammar)
        taken = all(not matcher.is_stopped() and matcher.try_consume_tokens([byte]) for byte in text.encode())
        return bool(taken and matcher.is_accepting())

    return judge


def xgrammar_judge(kind: str, source: Any) -> Judge:
    xgrammar = pytest.importorskip("xgrammar")
    compiled = getattr(build_xgrammar_compiler(), f"compile_{kind}")(source)

    def judge(text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return bool(matcher.accept_string(text) and matcher.accept_token(END))

    return judge


def outlines_judge(kind: str, source: Any) -> Judge:
    core = pytest.importorskip("outlines_core")
    pattern = core.json_schema.build_regex_from_schema(json.dumps(source)) if kind == "json_schema" else source
    return lambda text: re.fullmatch(pattern, text) is not None


def enforcer_judge(kind: str, source: Any) -> Judge:
    enforcer = pytest.importorskip("lmformatenforcer")
    make = enforcer.JsonSchemaParser if kind == "json_schema" else enforcer.RegexParser

    def judge(text: str) -> bool:
        parser = make(source)
        for char in text:
            if char not in parser.get_allowed_characters():
                return False
            parser = parser.add_character(char)
        return bool(parser.can_end())

    return judge


def our_judge(form: constrain.Form) -> Judge:
    constraint = form.compile(constrain.Vocabulary.bytes())

    def judge(text: str) -> bool:
        matcher = constraint.matcher()
        try:
            matcher.advance_bytes(text.encode())
        except constrain.TokenRefused:
            return False
        return matcher.is_complete

    return judge


def test_the_page_runs_as_written() -> None:
    pytest.importorskip("transformers")
    for block, expected, printed in runs(page("move-from-other-libraries.md")):
        assert set(expected) <= set(printed), block


def list_our_calls() -> list[str]:
    """The cells of the tables that say what to write here."""
    rows = re.findall(r"^\| .*? \| (.*) \|$", page("move-from-other-libraries.md").read_text("utf-8"), re.MULTILINE)
    return [call for row in rows for call in re.findall(r"`([^`]+)`", row.replace("\\|", "|"))]


def test_the_tables_name_arguments_and_methods_that_exist() -> None:
    generate, session = (
        inspect.signature(constrain.generate).parameters,
        inspect.signature(constrain.Session.write).parameters,
    )
    owners = {"generate(": set(generate), "s.write(": set(session) | set(generate)}
    calls = list_our_calls()
    assert len(calls) > 60
    for call in calls:
        for begin, known in owners.items():
            if call.startswith(begin):
                assert set(re.findall(r"(?<!\w)(\w+)=", call.split("constrain.")[0])) <= known, call
        if re.fullmatch(r"(schema|regex|grammar|choices|style|type|n|temperature|search)=.*", call):
            assert call.split("=")[0] in generate, call
        for owner, name in re.findall(r"\b(matcher|form|s)\.(\w+)", call):
            kind = {"matcher": constrain.Matcher, "form": constrain.Form, "s": constrain.Session}[owner]
            assert hasattr(kind, name), call


def test_the_page_has_every_field_that_vllm_replaced() -> None:
    guided = {field.name for field in REQUEST_FIELDS if field.name.startswith("guided_")}
    assert guided and guided <= set(re.findall(r"guided_\w+", page("move-from-other-libraries.md").read_text("utf-8")))


PAIRS = [
    (llguidance_judge, "json_schema", SCHEMA, constrain.json_schema(SCHEMA), TEXTS, set[str]()),
    (llguidance_judge, "regex", PATTERN, constrain.regex(PATTERN), DATES, set[str]()),
    (llguidance_judge, "lark", LARK, constrain.lark(LARK, dialect="llguidance"), LARK_TEXTS, set[str]()),
    (xgrammar_judge, "json_schema", json.dumps(SCHEMA), constrain.json_schema(SCHEMA), TEXTS, set[str]()),
    (xgrammar_judge, "regex", PATTERN, constrain.regex(PATTERN), DATES, set[str]()),
    (xgrammar_judge, "grammar", EBNF, constrain.gbnf(EBNF, dialect="xgrammar"), EBNF_TEXTS, set[str]()),
    # Outlines does not enforce minimum and maximum (outlines-core#261).
    (outlines_judge, "json_schema", SCHEMA, constrain.json_schema(SCHEMA), TEXTS, {TEXTS[1]}),
    (outlines_judge, "regex", PATTERN, constrain.regex(PATTERN), DATES, set[str]()),
    # Neither does lm-format-enforcer.
    (enforcer_judge, "json_schema", SCHEMA, constrain.json_schema(SCHEMA), TEXTS, {TEXTS[1]}),
    (enforcer_judge, "regex", PATTERN, constrain.regex(PATTERN), DATES, set[str]()),
]


@pytest.mark.parametrize(("judge", "kind", "source", "form", "texts", "different"), PAIRS)
def test_the_call_of_the_other_library_and_ours_agree(
    judge: Callable[[str, Any], Judge],
    kind: str,
    source: Any,
    form: constrain.Form,
    texts: list[str],
    different: set[str],
) -> None:
    theirs, ours = judge(kind, source), our_judge(form)
    assert {text for text in texts if ours(text) != theirs(text)} == different
    assert any(map(ours, texts))
