"""Calls that nearly work, as people write them who come from other libraries: each has the right answer, or a message.

A message names the place (the argument, or a pointer or position in it), the cause, and what to write instead. The
errors are those that are documented: a subclass of ConstrainError, or TypeError. `test_wrong_calls.py` has arbitrary
junk for every argument; here are mistakes that have a sense.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

import constrain
from constrain import ArgumentError, ConstrainError, GrammarError, SchemaError, SourceError, Style, Vocabulary
from constrain.base.errors import UnsupportedError, VocabularyError
from constrain.base.keyword_names import ATTRIBUTES, ELSEWHERE, FOREIGN, explain_attributes, explain_keywords
from constrain.integrations.model_names import find_near_models
from tests.model_factory import TableModel


class Person(BaseModel):
    name: str
    age: int


@dataclass
class Point:
    x: int


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


PERSON = Person(name="Ada", age=36)
RESPONSE = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@lru_cache
def vocabulary() -> Vocabulary:
    return Vocabulary.bytes()


@lru_cache
def constraint() -> constrain.Constraint:
    return constrain.compile(vocabulary(), regex="ab")


@lru_cache
def demo() -> Vocabulary:
    return Vocabulary.from_pretrained("demo")


def compiled(**arguments: Any) -> constrain.Constraint:
    return constrain.compile(vocabulary(), **arguments)


def written(**arguments: Any) -> Any:
    return constrain.generate(TableModel(257), tokenizer=vocabulary(), **{"max_tokens": 30, "seed": 1, **arguments})


def unchecked(function: Any) -> Any:
    """The function without its signature, which type checkers would use to refuse the calls below."""
    return function


compile, generate, processor = map(unchecked, (constrain.compile, written, constrain.ConstraintLogitsProcessor))

Call = Callable[[], Any]
REFUSED: dict[str, tuple[Call, type[Exception], str, str]] = {
    # call: error, what names the place and the cause, what names the cure
    "compile(schema, vocabulary)": (
        lambda: compile({"type": "integer"}, vocabulary()), TypeError, "second place", "compile(vocabulary, schema="),
    "compile(vocabulary, schema) by position": (
        lambda: compile(vocabulary(), {"type": "integer"}), TypeError, "form is", "schema=..."),
    "compile(vocabulary, pattern) by position": (
        lambda: compile(vocabulary(), "[0-9]+"), TypeError, "form is", "regex="),
    "compile(vocabulary, class) by position": (lambda: compile(vocabulary(), Person), TypeError, "form is", "type="),
    "compile(schema=...) alone": (
        lambda: compile(schema={}), TypeError, "needs vocabulary", 'Vocabulary.from_pretrained("demo")'),
    "compile(tokenizer)": (lambda: compile(object(), regex="a"), TypeError, "vocabulary is", "constrain.Vocabulary"),
    "compile() with two sources": (
        lambda: compile(vocabulary(), regex="a", schema={}), TypeError, "got schema, regex", "exactly one"),
    "compile() without a source": (lambda: compile(vocabulary()), TypeError, "got none", "exactly one of schema"),
    "compile() with three by position": (
        lambda: compile(vocabulary(), None, {}), TypeError, "by position", "by name"),
    "compile(json_schema=), as XGrammar": (
        lambda: compile(vocabulary(), json_schema={}), TypeError, "no argument json_schema=", "schema="),
    "compile(tokenizer=)": (
        lambda: compile(tokenizer=object(), regex="a"), TypeError, "no argument tokenizer=", "from_tokenizer"),
    "compile(max_tokens=)": (
        lambda: compile(vocabulary(), regex="a", max_tokens=3), TypeError, "no argument max_tokens=", "generate("),
    "compile(any_whitespace=), as XGrammar": (
        lambda: compile(vocabulary(), schema={}, any_whitespace=False), TypeError, "any_whitespace=", "Style("),
    "compile(indent=)": (lambda: compile(vocabulary(), schema={}, indent=2), TypeError, "indent=", "whitespace=2"),
    "schema= a name of a file as text": (
        lambda: compiled(schema="person.json"), SchemaError, "name of a file", "pathlib.Path('person.json')"),
    "schema= a path as text": (
        lambda: compiled(schema="../schemas/person.json"), SchemaError, "name of a file", "pathlib.Path("),
    "schema= a file that is not there": (
        lambda: compiled(schema=Path("/no/such.json")), SourceError, "schema is the file '/no/such.json'", "Give"),
    "schema= a model instance": (
        lambda: compiled(schema=PERSON), TypeError, "the schema is Person(", "the class Person"),
    "type= a model instance": (lambda: compiled(type=PERSON), TypeError, "Person(", "the class Person"),
    "schema= a dataclass instance": (lambda: compiled(schema=Point(1)), TypeError, "Point(x=1)", "the class Point"),
    "schema= a list of values": (lambda: compiled(schema=["a", "b"]), SchemaError, "not an array", "choices="),
    "schema= a response_format of OpenAI": (
        lambda: compiled(schema=RESPONSE), SchemaError, "/type", 'response_format["json_schema"]["schema"]'),
    "schema= json_object of OpenAI": (
        lambda: compiled(schema={"type": "json_object"}), SchemaError, "/type", 'grammar="json"'),
    "schema= a tool of OpenAI": (lambda: compiled(schema=TOOL), SchemaError, "/type", "constrain.tools("),
    "schema= a form": (
        lambda: compiled(schema=constrain.json_schema({})), TypeError, "the schema is", "give it as grammar="),
    "schema= JSON that is broken": (
        lambda: compiled(schema='{"type": integer}'), SchemaError, "line 1, column 10", "Not JSON"),
    "schema= with a type of Python": (lambda: compiled(schema={"type": "int"}), SchemaError, "at /type", "integer"),
    "schema= with a misspelt type": (lambda: compiled(schema={"type": "str"}), SchemaError, "at /type", "string"),
    "type= the name of a type": (lambda: compiled(type="int"), TypeError, "type is 'int'", "type=int"),
    "type= a schema": (lambda: compiled(type={"type": "integer"}), TypeError, "type is {'type': 'integer'}", "schema="),
    "type= a schema as text": (lambda: compiled(type='{"type": "integer"}'), TypeError, "JSON Schema", "schema="),
    "generate(type=) a schema": (
        lambda: generate(type={"type": "integer"}), TypeError, "type is {'type': 'integer'}", "schema="),
    "type= a function": (lambda: compiled(type=lambda: 3), TypeError, "the schema is", "JSON Schema"),
    "regex= a compiled pattern": (
        lambda: compiled(regex=re.compile("a")), SourceError, "regex is re.compile('a')", "pattern.pattern"),
    "regex= a form": (lambda: compiled(regex=constrain.regex("a")), SourceError, "regex is", "grammar="),
    "choices= a text": (lambda: compiled(choices="yes"), TypeError, "choices is 'yes'", "choices=['yes', 'no']"),
    "choices= numbers": (lambda: compiled(choices=[1, 2]), SourceError, "a choice is 1", "enum"),
    "choices= an Enum": (lambda: compiled(choices=Colour), SourceError, "a choice is", "type="),
    "choices= a dict": (lambda: compiled(choices={"a": 1}), TypeError, "choices is", "list of texts"),
    "grammar= a JSON Schema as text": (
        lambda: compiled(grammar='{"type": "integer"}'), GrammarError, "line 1, column 1", "schema="),
    "grammar= a name of a file": (
        lambda: compiled(grammar="my.lark"), GrammarError, "name of a file", "pathlib.Path('my.lark')"),
    "grammar= a bundled grammar that is misspelt": (
        lambda: compiled(grammar="jsn"), ConstrainError, "'jsn'", "json"),
    "style= a text": (lambda: compiled(regex="a", style="compact"), TypeError, "style is 'compact'", "Style("),
    "limits= a dict": (lambda: compiled(regex="a", limits={"work": 1}), TypeError, "limits is", "Limits("),
    "Style(indent=)": (lambda: unchecked(Style)(indent=2), TypeError, "indent=", "whitespace=2"),
    "Style(whitespace=) of another kind": (
        lambda: unchecked(Style)(whitespace="none"), ArgumentError, "'none'", "'compact'"),
    "Limits(max_states=)": (
        lambda: unchecked(constrain.Limits)(max_states=2), TypeError, "max_states=", "dfa_states="),
    "generate(max_new_tokens=), as transformers": (
        lambda: generate(regex="a", max_new_tokens=5), TypeError, "max_new_tokens=", "max_tokens="),
    "generate(guided_json=), as vLLM": (lambda: generate(guided_json={}), TypeError, "guided_json=", "schema="),
    "generate(guided_regex=), as vLLM": (lambda: generate(guided_regex="a"), TypeError, "guided_regex=", "regex="),
    "generate(guided_choice=), as vLLM": (
        lambda: generate(guided_choice=["a"]), TypeError, "guided_choice=", "choices="),
    "generate(guided_grammar=), as vLLM": (lambda: generate(guided_grammar="a"), TypeError, "guided_", "grammar="),
    "generate(response_format=), as OpenAI": (
        lambda: generate(response_format=RESPONSE), TypeError, "response_format=", "schema="),
    "generate(messages=), as OpenAI": (
        lambda: generate(regex="a", messages=[{"role": "user", "content": "x"}]), TypeError, "messages=", "prompt="),
    "generate(tools=), as OpenAI": (lambda: generate(tools=[TOOL]), TypeError, "tools=", "constrain.tools("),
    "generate(response_model=), as instructor": (
        lambda: generate(response_model=Person), TypeError, "response_model=", "type="),
    "generate(output_type=), as Outlines": (lambda: generate(output_type=Person), TypeError, "output_type=", "type="),
    "generate(num_return_sequences=), as transformers": (
        lambda: generate(regex="a", num_return_sequences=2), TypeError, "num_return_sequences=", "n="),
    "generate(do_sample=), as transformers": (
        lambda: generate(regex="a", do_sample=False), TypeError, "do_sample=", "temperature=0"),
    "generate(num_beams=), as transformers": (
        lambda: generate(regex="a", num_beams=4), TypeError, "num_beams=", "BeamSearch("),
    "generate(logits_processor=)": (
        lambda: generate(logits_processor=[]), TypeError, "logits_processor=", "masks the logits itself"),
    "generate(tempreature=)": (lambda: generate(regex="a", tempreature=1), TypeError, "tempreature=", "temperature="),
    "generate(prompt, model)": (
        lambda: constrain.generate("Describe a person.", "demo", regex="a"), ArgumentError, "each other's place",
        "constrain.generate('demo', 'Describe a person.'"),
    "generate(model, prompt, schema)": (
        lambda: unchecked(constrain.generate)("demo", "x", {}), TypeError, "by position", "by name"),
    "generate() without a constraint": (generate, ConstrainError, "got nothing", "exactly one of schema="),
    "generate(type=None)": (lambda: generate(type=None), ConstrainError, "got nothing", "type=type(None)"),
    "compile(type=None)": (lambda: compile(vocabulary(), type=None), TypeError, "got none", "type=type(None)"),
    "generate() with two constraints": (
        lambda: generate(regex="a", choices=["a"]), ConstrainError, "regex= and choices=", "exactly one"),
    "generate(sampler=) misspelt": (lambda: generate(regex="a", sampler="mask"), UnsupportedError, "'mask'", "masked"),
    "generate(max_tokens=) a text": (
        lambda: generate(regex="a", max_tokens="5"), ConstrainError, "max_tokens is '5'", "whole number"),
    "generate(temperature=) negative": (
        lambda: generate(regex="a", temperature=-1), ConstrainError, "temperature", "0 or more"),
    "generate(prompt=) bytes": (
        lambda: constrain.generate("demo", unchecked(b"x"), regex="a"), ConstrainError, "prompt is b'x'", "a text"),
    "generate(a LanguageModel) without its Vocabulary": (
        lambda: constrain.generate(TableModel(257), regex="a"), ConstrainError, "needs its Vocabulary", "tokenizer="),
    "generate(a Vocabulary)": (
        lambda: constrain.generate(vocabulary(), "x", regex="a"), ConstrainError,
        "model is of type Vocabulary", '"demo"'),
    "generate('dmeo')": (
        lambda: constrain.generate("dmeo", "x", regex="a"), ConstrainError, "no model 'dmeo'", 'Did you mean "demo"?'),
    "load_model('Demo ')": (
        lambda: constrain.load_model("Demo "), ConstrainError, "no model 'Demo '", 'Did you mean "demo"?'),
    "from_pretrained('demoo')": (
        lambda: Vocabulary.from_pretrained("demoo"), VocabularyError, "no model 'demoo'", 'Did you mean "demo"?'),
    "from_pretrained('no/such/tokenizer.json')": (
        lambda: Vocabulary.from_pretrained("no/such/tokenizer.json"), VocabularyError, "no file", "a tokenizer file"),
    "from_pretrained(a tokenizer)": (
        lambda: Vocabulary.from_pretrained(unchecked(object())), TypeError, "source is", "from_tokenizer"),
    "from_pretrained(vocab_size=)": (
        lambda: unchecked(Vocabulary.from_pretrained)("demo", vocab_size=3), TypeError, "vocab_size=", "size="),
    "ConstraintLogitsProcessor(schema)": (
        lambda: processor({"type": "integer"}), TypeError, "constraint is", "constrain.compile(vocabulary"),
    "ConstraintLogitsProcessor(regex=)": (
        lambda: processor(vocabulary(), regex="a"), TypeError, "regex=", "constrain.compile(vocabulary"),
    "ConstraintLogitsProcessor(max_tokens=)": (
        lambda: processor(constraint(), max_tokens=4), TypeError, "max_tokens=", "max_new_tokens="),
    "validate(schema) alone": (lambda: constrain.validate({}), TypeError, "got neither", "text="),
    "validate(schema, bytes)": (lambda: constrain.validate({}, b"{}"), TypeError, "instance is b'{}'", "text="),
    "validate(schema, a model instance)": (
        lambda: constrain.validate(Person, PERSON), TypeError, "instance", "model_dump"),
    "validate(instance, schema)": (
        lambda: constrain.validate({"name": "Ada"}, {"type": "object"}), ArgumentError, "each other's place",
        "validate(schema, instance)"),
    "validate(schema, json=)": (
        lambda: unchecked(constrain.validate)({}, data={}), TypeError, "data=", "instance="),
    "Matcher.advance of a text": (
        lambda: constraint().matcher().advance(unchecked("a")), TypeError, "token is 'a'", "its id"),
    "Matcher.advance_bytes of a text": (
        lambda: constraint().matcher().advance_bytes(unchecked("a")), TypeError, "text is 'a'", ".encode()"),
    "Constraint.load(path, a name)": (
        lambda: constrain.Constraint.load("x", unchecked("demo")), TypeError, "vocabulary is 'demo'",
        "from_pretrained"),
    "schema= names with Python types": (
        lambda: compiled(schema={"name": str}), SchemaError, "not a Python type", '{"type": "string"}'),
    "generate(temperature='0')": (
        lambda: generate(regex="a", temperature="0"), ConstrainError, "temperature is '0'", "give a number"),
    "generate(top_p='0.9')": (
        lambda: generate(regex="a", top_p="0.9"), ConstrainError, "top_p is '0.9'", "give a number"),
    "generate(sampling_params=), as vLLM": (
        lambda: generate(regex="a", sampling_params={}), TypeError, "sampling_params=", "max_tokens="),
    "generate(guided_whitespace_pattern=), as vLLM": (
        lambda: generate(schema={}, guided_whitespace_pattern=""), TypeError, "whitespace_pattern=", "Style("),
    "generate(prefix_allowed_tokens_fn=), as lm-format-enforcer": (
        lambda: generate(prefix_allowed_tokens_fn=len), TypeError, "prefix_allowed_tokens_fn=", "check="),
    "generate(system=)": (
        lambda: generate(regex="a", system="Be short."), TypeError, "system=", '"role": "system"'),
    "generate(max_retries=), as instructor": (
        lambda: generate(type=Person, max_retries=3), TypeError, "max_retries=", "retries="),
    "generate(context=), as instructor": (
        lambda: generate(type=Person, context={}), TypeError, "context=", "validator of Pydantic"),
    "generate('model.gguf')": (
        lambda: constrain.generate("model.gguf", "x", regex="a"), ConstrainError, "'model.gguf'", "llama-cpp-python"),
    "choose(model, options)": (
        lambda: constrain.choose("demo", ["a", "b"]), ArgumentError, "options is empty", "model, prompt, options)"),
    "from_tokenizer('demo')": (
        lambda: Vocabulary.from_tokenizer("demo"), VocabularyError, "'demo', which is a name", "from_pretrained"),
    "ConstraintLogitsProcessor(tokenizer='demo')": (
        lambda: processor(constraint(), tokenizer="demo"), VocabularyError, "'demo', which is a name", "itself"),
    "Vocabulary.from_huggingface, as XGrammar": (
        lambda: unchecked(Vocabulary).from_huggingface("demo"), AttributeError, "from_huggingface", "from_tokenizer("),
    "Constraint.mask": (
        lambda: unchecked(constraint()).mask(), AttributeError, "Constraint has no attribute 'mask'", ".matcher()"),
    "Matcher.accept_token, as XGrammar": (
        lambda: unchecked(constraint().matcher()).accept_token(97), AttributeError, "'accept_token'", "advance(token)"),
    "Matcher.fill_next_token_bitmask, as XGrammar": (
        lambda: unchecked(constraint().matcher()).fill_next_token_bitmask([]), AttributeError, "bitmask", ".mask()"),
    "Matcher.is_terminated, as XGrammar": (
        lambda: unchecked(constraint().matcher()).is_terminated(), AttributeError, "is_terminated", "is_finished"),
    "Matcher.compute_mask, as llguidance": (
        lambda: unchecked(constraint().matcher()).compute_mask(), AttributeError, "'compute_mask'", ".mask()"),
    "Matcher.consume_token, as llguidance": (
        lambda: unchecked(constraint().matcher()).consume_token(1), AttributeError, "'consume_token'", "advance("),
    "answer.parsed, as OpenAI": (
        lambda: generate(schema={"const": 1}).parsed, AttributeError, "Generation has no attribute 'parsed'", ".value"),
    "answer.choices[0], as OpenAI": (
        lambda: generate(schema={"const": 1}).choices[0], AttributeError, "'choices'", "answer.text"),
    "answer.outputs[0], as vLLM": (
        lambda: generate(schema={"const": 1}).outputs[0], AttributeError, "'outputs'", "answer.text"),
    "answer.model_dump(), as instructor": (
        lambda: generate(schema={"const": 1}).model_dump(), AttributeError, "'model_dump'", "answer.value"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistaken_call_names_the_place_the_cause_and_the_cure(name: str) -> None:
    call, kind, place, cure = REFUSED[name]
    with pytest.raises(kind) as error:
        call()
    message = str(error.value)
    assert place in message, message
    assert cure in message[message.index(place) if cure in message[message.index(place) :] else 0 :], message
    assert len(message) < 1_200
    assert issubclass(kind, (ConstrainError, TypeError, AttributeError))


def test_there_are_enough_of_them() -> None:
    assert len(REFUSED) >= 100


def test_names_of_other_libraries_are_no_attributes() -> None:
    answer = generate(regex="a")
    for one, name in ((answer, "parsed"), (constraint(), "mask"), (constraint().matcher(), "reset")):
        assert not hasattr(one, name) and name not in dir(one)
    assert not hasattr(Vocabulary, "from_model")
    with pytest.raises(TypeError, match="Matcher has mask"):
        explain_attributes({"mask": "nothing"})(constrain.Matcher)


# ---- calls that work ---------------------------------------------------------------------------------------------

SCHEMA = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'


def test_compile_takes_the_name_of_a_model() -> None:
    assert constrain.compile("demo", regex="a").vocabulary.fingerprint == demo().fingerprint


def test_a_schema_may_be_a_path(tmp_path: Path) -> None:
    path = tmp_path / "person.json"
    path.write_text(SCHEMA, "utf-8")
    assert compiled(schema=path).source == compiled(schema=SCHEMA).source
    assert set(written(schema=path, style=Style(digits=3)).value) == {"a"}
    assert constrain.validate(path, {"a": "x"})[0].pointer == "/a"
    path.write_bytes(b"\xff")
    with pytest.raises(SourceError, match="byte 0 is not UTF-8"):
        compiled(schema=path)


def test_a_grammar_may_be_a_path(tmp_path: Path) -> None:
    path = tmp_path / "g.lark"
    path.write_text('start: "ab"', "utf-8")
    assert compiled(grammar=path).source == compiled(grammar='start: "ab"').source
    assert written(grammar=path).text == "ab"


def test_a_type_adapter_stands_for_its_type() -> None:
    adapter = TypeAdapter(list[Colour])
    assert compiled(schema=adapter).source == compiled(type=adapter).source
    value = written(type=adapter, style=Style(whitespace="compact"), max_tokens=60).value
    assert all(isinstance(one, Colour) for one in value)
    assert not constrain.validate(adapter, ["red"]) and constrain.validate(adapter, ["green"])


def test_complex_numbers_work() -> None:
    value = written(type=complex, max_tokens=200).value
    assert isinstance(value, complex)


def test_a_vocabulary_has_the_name_of_the_embedded_model() -> None:
    assert demo().eos_ids and constrain.compile(demo(), regex="a").matcher().mask().any()


def test_a_processor_need_not_be_in_a_list() -> None:
    made = processor(constraint())
    assert list(made) == [made] and len(made) == 1


def test_the_tokenizer_of_another_model_is_refused() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(constrain.load_model("demo").model.config.name_or_path)
    with pytest.raises(VocabularyError, match="Make the Vocabulary from the tokenizer of this model"):
        processor(constraint(), tokenizer=tokenizer)


# ---- names -------------------------------------------------------------------------------------------------------


def documented() -> Iterator[tuple[str, str]]:
    yield from ((name, "FOREIGN") for name in FOREIGN)
    yield from ((name, "ELSEWHERE") for name in ELSEWHERE)


def test_names_of_other_libraries_lead_to_arguments_that_exist() -> None:
    import inspect

    ours = {
        name
        for function in (constrain.compile, constrain.generate, constrain.validate, Style, constrain.Limits,
                         Vocabulary.from_pretrained)
        for name in inspect.signature(function).parameters
    }  # fmt: skip
    assert {argument for argument, _ in FOREIGN.values()} <= ours
    for name, kind in documented():
        assert name.isidentifier(), kind


@pytest.mark.parametrize("name", [*ATTRIBUTES, "comple", "Vocabulry"])
def test_names_of_other_libraries_are_explained(name: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(constrain, name)
    assert str(error.value).startswith(f"module 'constrain' has no attribute {name!r}")
    rest = str(error.value).partition(repr(name))[2]
    assert "constrain." in rest or "did you mean" in rest or "=" in rest


def test_private_names_have_no_suggestion() -> None:
    assert not hasattr(constrain, "__wrapped__") and not hasattr(constrain, "_compil")


def test_signatures_are_kept() -> None:
    import inspect

    assert list(inspect.signature(constrain.compile).parameters)[:2] == ["vocabulary", "form"]
    assert constrain.compile.__name__ == "compile" and constrain.Style() == Style()


def test_a_function_of_any_keyword_cannot_be_explained() -> None:
    with pytest.raises(TypeError, match="takes any keyword"):
        explain_keywords(lambda **options: options)


def test_a_type_error_of_the_function_itself_is_left_as_it_is() -> None:
    error = TypeError("inside")

    @explain_keywords
    def fail(schema: object, *, type: object = None) -> None:
        raise error

    with pytest.raises(TypeError) as caught:
        fail({}, type=int)
    assert caught.value is error
    with pytest.raises(TypeError, match="needs schema: give schema=") as caught:
        fail(type=int)  # type: ignore[call-arg]
    assert caught.value.__context__ is None


def test_too_many_arguments_by_position() -> None:
    class Made:
        @explain_keywords
        def bare(self) -> None: ...

        @explain_keywords
        def named(self, *, first: int = 0, second: int = 0) -> None: ...

        @explain_keywords
        def placed(self, first: int = 0) -> None: ...

    for call, message in {
        Made().bare: r"bare\(\) takes no arguments by position, and got 1 arguments$",
        Made().named: r"named\(\) takes no arguments by position, and got 1 arguments: .* such as first=$",
    }.items():
        with pytest.raises(TypeError, match=message):
            unchecked(call)(1)
    with pytest.raises(TypeError, match=r"placed\(\) takes first by position, and got 2 arguments$"):
        unchecked(Made().placed)(1, 2)


# ---- names of models ---------------------------------------------------------------------------------------------


def make_model(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", "utf-8")


def test_near_models_are_folders_with_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_model(tmp_path / "Qwen2.5-0.5B")
    make_model(tmp_path / "models" / "llama-3-8b")
    (tmp_path / "qwen-notes").mkdir()
    assert find_near_models("qwen2.5-0.5b") == ["Qwen2.5-0.5B"]
    assert find_near_models("Qwen2.5-05B") == ["Qwen2.5-0.5B"]
    assert find_near_models("qwen2.5-1.5B") == [], "another size is another model"
    assert find_near_models("models/llama-3-8B") == ["models/llama-3-8b"]
    assert find_near_models(str(tmp_path / "models" / "lama-3-8b")) == [str(tmp_path / "models" / "llama-3-8b")]
    assert find_near_models("owner/llama-3-8b") == []
    assert find_near_models("x" * 5_000) == find_near_models("a\0b") == []


def test_a_mistyped_name_imports_no_torch_and_asks_no_network() -> None:
    """Both ways to load: the error comes before torch is imported, and without a log message of the hub."""
    code = (
        "import sys, constrain\n"
        "for load in (constrain.load_model, constrain.Vocabulary.from_pretrained):\n"
        "    try: load('dmeo')\n"
        "    except constrain.ConstrainError as error: print(str(error).splitlines()[0])\n"
        "print('torch' in sys.modules, 'transformers' in sys.modules, 'requests' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["there is no model 'dmeo'"] * 2 + ["False False False"]
    assert "hub" not in run.stderr


def test_a_name_without_the_form_of_an_id_is_never_asked() -> None:
    with pytest.raises(ConstrainError, match="has not the form of a hub id"):
        constrain.load_model("no such model at all")
