"""Tools: what definitions are read, what is refused; calls drawn with the embedded model parse and validate."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import jsonschema
import numpy as np
import pytest

import constrain
from constrain import (
    SchemaError,
    SourceError,
    Style,
    ToolCall,
    UnsupportedError,
    Vocabulary,
    tool_calls,
    tools,
)
from constrain.dialogue import ENVELOPES, Tool, read_tools
from tests.text_acceptance import accepts_text

BYTES = Vocabulary.bytes()
PLACE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "maxLength": 20},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "units": {"enum": ["C", "F", None, True]},
        "at": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        "more": {"type": "object", "properties": {"a b": {"type": "null"}}, "additionalProperties": False},
    },
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Of a city.", "parameters": PLACE}}
NOW = {"type": "function", "function": {"name": "now"}}
SCHEMAS = {tool.name: tool.parameters for tool in read_tools([WEATHER, NOW])}
REQUIRED = {
    "hermes": '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
    "llama": '{"name": "weather", "parameters": {"city": "Oslo"}}; {"name": "now", "parameters": {}}',
    "json": '[{"name": "weather", "arguments": {"city": "Oslo"}}, {"name": "now", "arguments": {}}]',
    "pythonic": '[weather(city="Oslo"), now()]',
    "mistral": '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Oslo"}}, {"name": "now", "arguments": {}}]',
    "mistral-args": '[TOOL_CALLS]weather[ARGS]{"city": "Oslo"}[TOOL_CALLS]now[ARGS]{}',
    "harmony": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.weather"
    ' <|constrain|>json<|message|>{"city": "Oslo"}',
}


def accepts(form: constrain.Form, text: str) -> bool:
    return accepts_text(form.compile(BYTES), text)


# ---- definitions


def weather(city: str, days: Annotated[int, "of them"] = 3, *, unit: Literal["C", "F"] = "C") -> str:
    """Of a city.

    At length.
    """
    return city


@dataclasses.dataclass
class Find:
    """Finds."""

    what: str
    most: int = 5


class Near(TypedDict):
    place: str


class Unknown:
    pass


def test_every_shape_of_a_definition() -> None:
    parts = {"name": "weather", "description": "Of a city."}
    shapes: list[Any] = [
        WEATHER,
        {"type": "function", **parts, "parameters": PLACE},
        {**parts, "input_schema": PLACE},
        {**parts, "inputSchema": PLACE},
        Tool("weather", "Of a city.", PLACE),
    ]
    for shape in [
        *shapes,
        [shapes[3]],
        {"tools": [shapes[3]]},
        {"result": {"tools": [shapes[3]]}},
        json.dumps([shapes[0]]),
    ]:
        assert read_tools(shape if not isinstance(shape, Tool) else [shape]) == [Tool("weather", "Of a city.", PLACE)]
    assert read_tools([WEATHER])[0].openai() == WEATHER


@pytest.mark.parametrize(
    "given",
    [
        {"type": "function", "function": {"name": "f", "strict": True, "parameters": PLACE}, "cache_control": {}},
        {"type": "function", "function": {"name": "f", "parameters": PLACE, "return": {"type": "string"}}},
        {"type": "function", "name": "f", "parameters": PLACE, "strict": None, "defer_loading": False},
        {"type": "custom", "name": "f", "input_schema": PLACE, "cache_control": {}, "input_examples": [{"city": "a"}]},
        {"name": "f", "input_schema": PLACE, "eager_input_streaming": True, "allowed_callers": ["direct"]},
        {"name": "f", "title": "F", "inputSchema": PLACE, "outputSchema": {}, "annotations": {"readOnlyHint": True},
         "icons": [], "_meta": {}, "execution": {"taskSupport": "forbidden"}},
        {"name": "f", "parameters": PLACE, "anything": None},
    ],
)  # fmt: skip
def test_members_that_do_not_describe_arguments_are_ignored(given: dict[str, Any]) -> None:
    assert read_tools([given])[0].parameters == PLACE


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([{"name": "w", "paramters": PLACE}], "'paramters'\n  at /0/paramters\n  Did you mean 'parameters'?"),
        ([{"name": "w", "input_shema": PLACE}], "'input_shema'\n  at /0/input_shema\n  Did you mean 'input_schema'?"),
        ({"tools": [{"type": "function", "function": {"name": "w", "paramters": {}}}]},
         "at /tools/0/function/paramters\n  Did you mean 'parameters'?"),
        ([{"type": "function", "fuction": {"name": "w"}}], "at /0/fuction\n  Did you mean 'function'?"),
        ([{"type": "function", "function": {"name": "w"}, "parameters": PLACE}], "at /0/parameters"),
        ({"name": "Ann", "age/": 3}, "at /0/age~1\n  A definition has 'name', 'description' and 'parameters'"),
        ([{"name": "w", 3: {}}], "no member 3\n  at /0/3"),
    ],
)  # fmt: skip
def test_members_of_no_format_are_refused(given: Any, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read_tools(given)
    assert message in str(caught.value)


def test_an_object_of_the_protocol() -> None:
    class Listed:
        name, description, inputSchema = "now", None, {"type": "object"}

    assert read_tools([Listed()]) == [Tool("now", "", {"type": "object"})]


def test_python_functions_and_classes() -> None:
    tool, find, near = read_tools([weather, Find, Near])
    assert tool.name == "weather" and tool.description == "Of a city.\n\nAt length."
    assert tool.parameters == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
        "required": ["city"],
        "additionalProperties": False,
    }
    assert find.name == "Find" and find.description == "Finds." and find.parameters["required"] == ["what"]
    assert near.name == "Near" and near.parameters["required"] == ["place"]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([], SchemaError, "the list of tools is empty"),
        (7, SchemaError, "which is not a list"),
        ("{", SchemaError, "not JSON"),
        ([WEATHER, {"name": "weather"}], SchemaError, "two tools have the name 'weather': the first is at /0\n  at /1"),
        ([{"parameters": {}}], SchemaError, 'no "name"\n  at /0'),
        ({"tools": [{"name": "a b"}]}, SchemaError, "the name of a tool is 'a b'\n  at /tools/0/name"),
        ([{"type": "function", "function": 3}], SchemaError, "at /0/function"),
        ([{"name": "a", "parameters": {"type": "array"}}], SchemaError, "type 'array'\n  at /0/parameters/type"),
        ([{"name": "a", "parameters": 3}], SchemaError, "arguments is 3\n  at /0/parameters"),
        ([{"name": "a", "parameters": {}, "inputSchema": {}}], SchemaError, "defined twice"),
        ([{"name": "a", "description": 3}], SchemaError, "at /0/description"),
        ([{"type": "web_search"}], UnsupportedError, "'web_search'"),
        ([{"type": "custom", "name": "a", "format": {}}], UnsupportedError, "triggered"),
        ([3], SchemaError, "not a tool definition: 3\n  at /0"),
        ([lambda x: x], SchemaError, "<lambda>"),
        ([print], UnsupportedError, "print"),
    ],
)
def test_definitions_that_are_wrong(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_tools(given)


def test_functions_whose_arguments_have_no_names() -> None:
    def many(*args: int) -> None: ...
    def unknown(x: Unknown) -> None: ...

    with pytest.raises(UnsupportedError, match=r"many: the parameter '\*args' cannot"):
        read_tools([many])
    with pytest.raises(UnsupportedError, match="unknown: "):
        read_tools([unknown])


def test_errors_of_arguments_name_the_tool() -> None:
    form = tools([WEATHER, {"name": "odd", "parameters": {"properties": {"x": {"type": "nothing"}}}}])
    with pytest.raises(SchemaError, match=r"arguments of the tool 'odd': .*\n  at /properties/x/type"):
        form.grammar()


# ---- envelopes


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_each_envelope_accepts_and_parses_tool_calls(envelope: str) -> None:
    text = REQUIRED[envelope]
    wanted = [ToolCall("weather", {"city": "Oslo"}), ToolCall("now", {})][: 1 if envelope == "harmony" else 2]
    assert tool_calls(text, envelope) == wanted
    definitions = [WEATHER, NOW]
    assert accepts(tools(definitions, envelope, choice="required"), text)
    assert accepts(tools(definitions, envelope), text)
    if envelope != "harmony":
        assert accepts(tools(definitions, envelope), "Well. \u00e9 " + text)
        assert not accepts(tools(definitions, envelope, choice="required"), "Well. " + text)
        assert not accepts(tools(definitions, envelope, choice="required", most=1), text)
        assert accepts(tools(definitions, envelope), "No call.") and tool_calls("No call.", envelope) == []
    else:
        final = "<|channel|>final<|message|>No call."
        assert accepts(tools(definitions, envelope), final) and tool_calls(final, envelope) == []
        assert not accepts(tools(definitions, envelope, choice="required"), final)
    assert not accepts(tools(definitions, envelope), text.replace("Oslo", ""))
    assert not accepts(tools(definitions, envelope, choice="now"), text)
    assert not accepts(tools([NOW], envelope, choice="required"), text)
    with pytest.raises(SourceError):
        tool_calls(text.replace('"Oslo"', "Oslo"), envelope)


@pytest.fixture(scope="module")
def model() -> tuple[Any, Vocabulary]:
    """The embedded model after a prompt; its special tokens are not named, so that marks are texts."""
    pytest.importorskip("transformers")
    from constrain import load_model

    loaded = load_model("demo")
    own = loaded.vocabulary
    plain = Vocabulary.from_tokens(own.tokens, own.eos_ids, encode=own.encode)
    return loaded.on(loaded.compose("What is the weather in Oslo?")), plain


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_drawn_calls_parse_and_validate(envelope: str, model: tuple[Any, Vocabulary]) -> None:
    lm, vocabulary = model
    form, found = tools([WEATHER, NOW], envelope, choice="required", most=2), 0
    drawn = constrain.generate(lm, tokenizer=vocabulary, grammar=form, n=3, seed=5, max_tokens=90)
    for one in drawn:
        calls = tool_calls(one.text, envelope)
        assert 1 <= len(calls) <= 2
        for call in calls:
            jsonschema.validate(call.arguments, SCHEMAS[call.name])
            found += 1
        theirs = OTHERS.get(envelope)
        if theirs is not None:
            assert theirs(one.text) == calls
    assert found >= 3


def by_transformers(fields: dict[str, Any]) -> Callable[[str], list[ToolCall]]:
    """Transformers' reader of answers, as a model of this envelope would configure it."""

    def read(text: str) -> list[ToolCall]:
        parse_response = pytest.importorskip("transformers.utils.chat_parsing").parse_response
        found = parse_response(text, {"start_anchor": "\x00", "fields": fields}, prefix="")["tool_calls"]
        return [ToolCall(one["name"], one["arguments"]) for one in (found if isinstance(found, list) else [found])]

    return read


OTHERS: dict[str, Callable[[str], list[ToolCall]]] = {
    "hermes": by_transformers(
        {"tool_calls": {"open": "<tool_call>", "close": "</tool_call>", "content": "json", "repeats": True}}
    ),
    "mistral": by_transformers({"tool_calls": {"open": "[TOOL_CALLS]", "content": "json"}}),
    "json": lambda text: [ToolCall(one["name"], one["arguments"]) for one in json.loads(text)],
}


@pytest.mark.parametrize(("envelope", "key"), [("hermes", "qwen_3"), ("llama", "llama"), ("harmony", "harmony")])
def test_another_engine_takes_our_calls(envelope: str, key: str, model: tuple[Any, Vocabulary]) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    lm, vocabulary = model
    tool = {
        "name": "weather",
        "parameters": {**PLACE, "properties": {**PLACE["properties"], "city": {"type": "string"}}},
    }  # no bounds: under them XGrammar 0.2.8 takes no escapes (xgrammar#800)
    tag = xgrammar.get_model_structural_tag(
        key, tools=[{"type": "function", "function": tool}], tool_choice="required", reasoning="disabled"
    )
    info = xgrammar.TokenizerInfo([bytes((value,)) for value in range(256)] + [b""], stop_token_ids=[256])
    compiled = xgrammar.GrammarCompiler(info).compile_structural_tag(tag)
    form = tools([tool], envelope, choice="required", most=1, style=Style(whitespace="compact"))
    for one in constrain.generate(lm, tokenizer=vocabulary, grammar=form, n=3, seed=1, max_tokens=90):
        text = one.text
        if envelope == "harmony":  # their end token is a text, and they know no thoughts here
            text = text.split("<|start|>assistant")[-1] + "<|call|>"
            text = text.replace("weather <|constrain|>", "weather<|constrain|>")
        assert xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=True).accept_string(text), text


def test_mistral_commons_reader_takes_our_tokens() -> None:
    """With the special tokens of their tokenizer, token by token."""
    common = pytest.importorskip("mistral_common")
    from pathlib import Path

    from mistral_common.experimental.tools import _decode_tool_calls, _split_content_and_tool_calls
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    file = next((Path(common.__file__).parent / "data").glob("mistral_instruct_tokenizer_*.model.v3"))
    theirs = MistralTokenizer.from_file(str(file)).instruct_tokenizer.tokenizer
    vocabulary = Vocabulary.from_mistral(file)
    rng = np.random.default_rng(3)

    class Dice:
        def next_logprobs(self, prefixes: list[list[int]]) -> np.ndarray:
            rows = rng.gumbel(size=(len(prefixes), vocabulary.size)) * 2
            return np.asarray(rows - np.logaddexp.reduce(rows, axis=1, keepdims=True))

    form = tools([WEATHER, NOW], "mistral", choice="required", most=2, style=Style(whitespace="compact"))
    one = constrain.generate(Dice(), tokenizer=vocabulary, grammar=form, max_tokens=120, seed=1)
    assert one.tokens[0] == vocabulary.special["[TOOL_CALLS]"]
    _, groups = _split_content_and_tool_calls(list(one.tokens), vocabulary.special["[TOOL_CALLS]"])
    found = [ToolCall(c.function.name, json.loads(c.function.arguments)) for c in _decode_tool_calls(groups, theirs)]
    assert found == tool_calls(one.text, "mistral") and found


def test_free_text_before_a_call_and_after() -> None:
    form = tools([NOW], "hermes", most=1)
    text = 'I look.\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>\nDone.'
    assert accepts(form, text) and not accepts(form, text + "<tool_call>")
    assert tool_calls(text) == [ToolCall("now", {})]


def test_thoughts_before_calls() -> None:
    form = constrain.thinking(tools([NOW], choice="required"), thought="maybe")
    assert accepts(
        form,
        "<think>now?</think>"
        + REQUIRED["hermes"].split("\n", 3)[0]
        + '\n{"name": "now", "arguments": {}}\n</tool_call>',
    )


def test_forms_of_tools_are_written_down() -> None:
    for envelope in ENVELOPES:
        form = tools([WEATHER, NOW], envelope, most=3)
        assert constrain.forms.read_form(json.loads(json.dumps(form.plain()))) == form


def test_invalid_options_of_tools_are_refused() -> None:
    with pytest.raises(SourceError, match=r"'wether'.*\n.*'weather'"):
        tools([WEATHER], choice="wether")
    with pytest.raises(UnsupportedError, match=r"no envelope 'xml'.*\n.*hermes"):
        tools([WEATHER], "xml")
    with pytest.raises(ValueError, match="from 1 on"):
        tools([WEATHER], most=0)
    with pytest.raises(SourceError, match=r"end with </tool_call>\n  at line 2, column 33"):
        tool_calls('<tool_call>\n{"name": "now", "arguments": {}}     \nand so on')
    with pytest.raises(SourceError, match='"arguments"'):
        tool_calls('<tool_call>{"name": "now"}</tool_call>')


# ---- Python's spelling


@pytest.mark.parametrize(
    ("schema", "inside", "outside"),
    [
        ({"type": "boolean"}, ["True", "False"], ["true", "1"]),
        ({"type": "null"}, ["None"], ["null"]),
        (
            {"enum": ["true", True, 'a"b', [None, {"k": False}]]},
            ['"true"', "True", '"a\\"b"', '[None, {"k": False}]'],
            ["true"],
        ),
        ({"type": "string"}, ['"true"', '"\\n\\u00e9\\""', '"\U0001f600"'], ['"\\/"', '"\\ud83d\\ude00"', '"\n"']),
        ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"\\u00e9b\\n"'], ['"a"', '"abcd"']),
        ({"type": "string", "pattern": "^[a-c/]+$"}, ['"a/c"'], ['"d"', '"a\\/c"']),
        ({"type": "array", "items": {"type": ["boolean", "number"]}}, ["[]", "[True, 1.5e3, -2]"], ["[true]"]),
        ({"type": "string", "format": "date"}, ['"2024-02-29"'], ['"2023-02-29"']),
    ],
)
def test_values_of_python(schema: dict[str, Any], inside: list[str], outside: list[str]) -> None:
    tool = {"name": "f", "parameters": {"properties": {"x": schema}, "required": ["x"], "additionalProperties": False}}
    form = tools([tool], "pythonic", choice="required", most=1, style=Style(numbers="any"))
    for value in inside:
        assert accepts(form, f"[f(x={value})]"), value
        [call] = tool_calls(f"[f(x={value})]", "pythonic")
        jsonschema.validate(call.arguments["x"], schema)
    for value in outside:
        assert not accepts(form, f"[f(x={value})]"), value


def test_keyword_arguments_may_be_left_out() -> None:
    form = tools([WEATHER], "pythonic", choice="required", most=1)
    for body in (
        'city="O"',
        'city="O", days=3',
        'city="O", at=[True]',
        'city="O", days=14, units=None, at=[], more={}',
    ):
        assert accepts(form, f"[weather({body})]"), body
    for body in ("", "days=3", 'city="O",days=3', 'city="O", at=[], days=3', 'city="O", days=3, days=3', 'city="O", '):
        assert not accepts(form, f"[weather({body})]"), body


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"properties": {"a b": {}}}, "is not a Python identifier"),
        ({"properties": {"x": {"type": "object"}}}, "undeclared keys"),
        ({"properties": {"x": {"const": 1}}, "minProperties": 1}, "number of members"),
        ({"properties": {"x": {"type": "array", "uniqueItems": True, "items": {"type": "integer"}}}}, "unique items"),
    ],
)
def test_arguments_without_python_syntax_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=f"the tool 'f': arguments in Python syntax: .*{message}"):
        tools([{"name": "f", "parameters": parameters}], "pythonic").grammar()


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, '[{"name": "a", "name": "b"}]', "[NaN]"])
def test_definitions_as_text_are_read_strictly(text: str) -> None:
    with pytest.raises(SchemaError, match="the tool definitions are not JSON"):
        constrain.tools(text)
