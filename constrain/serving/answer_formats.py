"""What an answer must be when it is not a tool call: one reader for each member of a request that constrains it.

    response_format, text.format     OpenAI
    structured_outputs               vLLM
    regex, ebnf, json_schema         SGLang
    grammar, json_schema             llama.cpp

Two of them in one request contradict each other and are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.options import Style
from ..dialogue import structural_tag
from ..forms import Form, gbnf, grammar, json_schema, literal, regex
from ..forms.form import Either
from .request_body import parse_text
from .request_errors import RequestError, locate_errors
from .request_objects import RequestObject
from .schema_notes import note_schema_warnings

__all__ = ["ANSWER_READERS", "AnswerFormat", "read_answer_format"]

MOST_CHOICES = 10_000
SCHEMA_NAME = 64
"""Most characters of the name of a schema."""


@dataclass(frozen=True)
class AnswerFormat:
    """What an answer must be.

    Attributes
    ----------
    constraint : dict
        One of the arguments schema, regex, grammar and choices of `Engine.generate`; empty for free text.
    pointer : str
        Its place in the request.
    style : Style
        How JSON is spelled.
    is_tagged : bool
        Whether it is a structural tag: free text between texts that are constrained.
    """

    constraint: dict[str, Any] = field(default_factory=dict)
    pointer: str = ""
    style: Style = Style()
    is_tagged: bool = False

    @property
    def is_free(self) -> bool:
        """Whether any text will do."""
        return not self.constraint

    @property
    def has_free_text(self) -> bool:
        """Whether any text will do somewhere, so that an answer may end within it."""
        return self.is_free or self.is_tagged

    def make_form(self) -> Form:
        """Return the constraint as a Form."""
        [(name, value)] = self.constraint.items()
        if name == "schema":
            with note_schema_warnings(self.pointer):
                return json_schema(value, style=self.style)
        if name == "choices":
            return either_text(value)
        return regex(value) if name == "regex" else value

    def prompt_arguments(self) -> dict[str, Any]:
        """Return the constraint as arguments of `demo.compose_prompt`."""
        return {name: value for name, value in self.constraint.items() if name != "grammar"}


def either_text(texts: Sequence[str]) -> Form:
    """Return the form of one of several texts."""
    forms = tuple(literal(text) for text in dict.fromkeys(texts))
    return forms[0] if len(forms) == 1 else Either(forms)


def read_response_format(body: RequestObject, name: str) -> AnswerFormat:
    """Read `response_format`: in `json_schema`, the schema is a member of an object of its own."""
    given = body.require_object(name)
    kind = given.require_option("type", ("text", "json_object", "json_schema", "structural_tag"))
    if kind == "structural_tag":
        return read_structural_tag(given.value, given.pointer)
    read = AnswerFormat() if kind == "text" else AnswerFormat({"schema": {"type": "object"}}, given.pointer)
    if kind == "json_schema":
        read = read_named_schema(given.require_object("json_schema"))
    given.finish()
    return read


def read_text_format(body: RequestObject, name: str) -> AnswerFormat:
    """Read `text` of responses, whose `format` has the schema among its own members."""
    text = body.require_object(name)
    text.read_option("verbosity", ("low", "medium", "high"))
    given = text.read_object("format")
    text.finish()
    if given is None:
        return AnswerFormat()
    kind = given.require_option("type", ("text", "json_object", "json_schema"))
    if kind == "json_schema":
        return read_named_schema(given)
    given.finish()
    return AnswerFormat() if kind == "text" else AnswerFormat({"schema": {"type": "object"}}, given.pointer)


def read_named_schema(given: RequestObject) -> AnswerFormat:
    """Read a schema with a name. It is enforced whatever `strict` says; without a schema, any JSON object is."""
    given.read("type")
    name = given.require_text("name")
    if not 1 <= len(name) <= SCHEMA_NAME or not all(char.isalnum() or char in "_-" for char in name):
        raise given.refuse("name", "the name of a schema has 1 to 64 letters, digits, _ and -")
    given.read_text("description")
    given.read_flag("strict")
    schema = read_schema(given, "schema") if given.has("schema") else {"type": "object"}
    given.finish()
    return AnswerFormat({"schema": schema}, given.place("schema"))


def read_schema(given: RequestObject, name: str) -> Any:
    """Return a JSON Schema, which may be JSON text."""
    schema = given.require(name)
    if isinstance(schema, str):
        schema = parse_text(schema, "the schema", given.place(name))
    if not isinstance(schema, (dict, bool)):
        raise given.refuse(name, "a JSON Schema is an object, true or false", code="invalid_type")
    return schema


def read_structural_tag(source: Any, pointer: str) -> AnswerFormat:
    """Read a structural tag in either of its spellings."""
    with locate_errors(pointer), note_schema_warnings(pointer):
        return AnswerFormat({"grammar": structural_tag(source)}, pointer, is_tagged=True)


def read_structured_outputs(body: RequestObject, name: str) -> AnswerFormat:
    """Read vLLM's `structured_outputs`."""
    given = body.require_object(name)
    kinds = [kind for kind in STRUCTURED_OUTPUTS if given.has(kind)]
    if given.read_flag("json_object") is False:
        kinds.remove("json_object")
    compact = given.read_flag("disable_any_whitespace")
    if given.has("whitespace_pattern"):
        raise given.refuse(
            "whitespace_pattern", "whitespace_pattern is not supported", hint='Give "disable_any_whitespace": true.',
            code="unsupported_field",
        )  # fmt: skip
    if given.read_flag("disable_additional_properties"):
        raise given.refuse(
            "disable_additional_properties", "disable_additional_properties is not supported",
            hint='State "additionalProperties": false in the schema.', code="unsupported_field",
        )  # fmt: skip
    for known in ("whitespace_pattern", *STRUCTURED_OUTPUTS):
        given.read(known)
    given.finish()
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none"
        raise body.refuse(
            name, f"structured_outputs has {found}: exactly one is wanted", hint=f"Of {', '.join(STRUCTURED_OUTPUTS)}.",
            code="contradiction",
        )  # fmt: skip
    read = STRUCTURED_OUTPUTS[kinds[0]](given, kinds[0])
    style = Style(whitespace="compact") if compact else Style()
    return AnswerFormat(read.constraint, read.pointer, style)


def read_pattern(body: RequestObject, name: str) -> AnswerFormat:
    """Read a regular expression, which the whole answer matches."""
    return AnswerFormat({"regex": body.require_text(name)}, body.place(name))


def read_any_schema(body: RequestObject, name: str) -> AnswerFormat:
    """Read a schema without a name."""
    return AnswerFormat({"schema": read_schema(body, name)}, body.place(name))


def read_any_object(body: RequestObject, name: str) -> AnswerFormat:
    """Read `json_object`, which is true: any JSON object."""
    return AnswerFormat({"schema": {"type": "object"}}, body.place(name))


def read_grammar(body: RequestObject, name: str) -> AnswerFormat:
    """Read a grammar: GBNF if it has rules with `::=`, else Lark."""
    with locate_errors(body.place(name)):
        return AnswerFormat({"grammar": grammar(body.require_text(name))}, body.place(name))


def read_ebnf(body: RequestObject, name: str) -> AnswerFormat:
    """Read a grammar in XGrammar's EBNF, whose rules are `name ::= ...`. Some clients give one of Lark."""
    text = body.require_text(name)
    if "::=" not in text:
        raise body.refuse(name, "the grammar has no rule `name ::= ...`", hint='Give a Lark grammar as "grammar".')
    with locate_errors(body.place(name)):
        return AnswerFormat({"grammar": gbnf(text, dialect="xgrammar")}, body.place(name))


def read_choices(body: RequestObject, name: str) -> AnswerFormat:
    """Read a list of texts."""
    texts = body.read_texts(name) or []
    if not 1 <= len(texts) <= MOST_CHOICES:
        raise body.refuse(name, f"there are {len(texts)} choices: give 1 to {MOST_CHOICES:,}")
    return AnswerFormat({"choices": texts}, body.place(name))


def read_tag_text(body: RequestObject, name: str) -> AnswerFormat:
    """Read a structural tag, as JSON text or as an object."""
    return read_structural_tag(body.require(name), body.place(name))


Reader = Callable[[RequestObject, str], AnswerFormat]
STRUCTURED_OUTPUTS: dict[str, Reader] = {
    "json": read_any_schema,
    "regex": read_pattern,
    "choice": read_choices,
    "grammar": read_grammar,
    "json_object": read_any_object,
    "structural_tag": read_tag_text,
}
ANSWER_READERS: dict[str, Reader] = {
    "response_format": read_response_format,
    "text": read_text_format,
    "structured_outputs": read_structured_outputs,
    "regex": read_pattern,
    "ebnf": read_ebnf,
    "json_schema": read_any_schema,
    "grammar": read_grammar,
}
"""The members of requests that say what the answer is."""


def read_answer_format(body: RequestObject) -> AnswerFormat:
    """Return what a request wants its answer to be. Raise RequestError for two members that both say so."""
    found = [(name, ANSWER_READERS[name](body, name)) for name in ANSWER_READERS if body.has(name)]
    said = [(name, read) for name, read in found if not read.is_free]
    if len(said) > 1:
        (first, _), (second, _) = said[:2]
        raise RequestError(
            f"{first} and {second} both say what the answer must be", body.place(second),
            hint="Give one of them.", code="contradiction",
        )  # fmt: skip
    return said[0][1] if said else AnswerFormat()
