"""Read the constraint of a request of the page: its kind, its text and the option of its kind, as a Form.

    {"source": {"kind": "schema", "text": "{...}", "option": "any"}, ...}

A source is text. It names no file, nothing in it is fetched, and no code is taken from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..base.errors import SchemaError, describe_value
from ..base.json_documents import parse_json
from ..base.options import Limits, Style
from ..dialogue import tools
from ..dialogue.envelope_table import ENVELOPES
from ..forms import Form, gbnf, json_schema, lark, regex
from ..serving.request_objects import RequestObject

__all__ = ["SOURCE_KINDS", "PlaygroundSource", "read_source_object"]

SOURCE_KINDS: dict[str, tuple[str, ...]] = {
    "schema": ("default", "compact", "any"),
    "regex": ("",),
    "lark": ("contextual", "basic", "dynamic", "dynamic_complete"),
    "gbnf": ("llama.cpp", "xgrammar"),
    "tools": tuple(ENVELOPES),
}
"""The options of each kind, the default first. schema: the style; lark: the lexer; gbnf: the dialect; tools: the format
in which the model writes calls."""


STYLES = {"default": Style(), "compact": Style(whitespace="compact"), "any": Style.any()}


@dataclass(frozen=True, slots=True)
class PlaygroundSource:
    """A constraint as it was typed. option: one of SOURCE_KINDS[kind]."""

    kind: str
    text: str
    option: str

    def make_form(self, limits: Limits) -> Form:
        """Return the constraint as a Form. Raise ConstrainError if the text is malformed."""
        if self.kind == "schema":
            document = parse_json(self.text, limits)
            if not isinstance(document, (dict, bool)):
                raise SchemaError(f"a schema is an object, true or false, and this is {describe_value(document)}")
            return json_schema(document, style=STYLES[self.option])
        if self.kind == "regex":
            return regex(self.text)
        if self.kind == "lark":
            return lark(self.text, lexer=self.option)  # type: ignore[arg-type]
        if self.kind == "gbnf":
            return gbnf(self.text, dialect=self.option)  # type: ignore[arg-type]
        return tools(read_definitions(self.text, limits), self.option, choice="required")

    def show(self, limits: Limits) -> dict[str, Any]:
        """Return the arguments of a ConstraintRequest with which a prompt shows the constraint to the model."""
        if self.kind == "schema":
            return {"schema": parse_json(self.text, limits)}
        return {"regex": self.text} if self.kind == "regex" else {"grammar": self.text}


def read_definitions(text: str, limits: Limits) -> list[Any]:
    """Return the tool definitions of a JSON text: a list of objects, or one object."""
    document = parse_json(text, limits)
    listed = [document] if isinstance(document, dict) else document
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise SchemaError(f"tools are a list of objects, and this is {describe_value(document)}")
    return listed


def read_source_object(body: RequestObject) -> PlaygroundSource:
    """Return the member `source` of a request. Raise RequestError at the place of what is wrong in it."""
    given = body.require_object("source")
    kind = given.require_option("kind", SOURCE_KINDS)
    text, option = given.require_text("text"), given.read_option("option", SOURCE_KINDS[kind])
    given.finish()
    return PlaygroundSource(kind, text, SOURCE_KINDS[kind][0] if option is None else option)
