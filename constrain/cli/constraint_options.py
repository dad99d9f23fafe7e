"""The options by which a command is given a constraint: --schema, --regex, --grammar, --choice and others."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal, NamedTuple

import typer

from ..base.errors import SchemaError
from ..compilation.constraint_compiler import to_grammar
from ..dialogue import Tool, read_tools, tools as tool_form
from ..forms import grammar as form_of
from ..jobs.job_options import import_type
from .common_arguments import SchemaOptions
from .grammar_source import grammar_text, ready_name
from .source_options import attribute_errors, read_bytes, read_schema
from .type_expressions import parse_type

__all__ = [
    "ChoiceOption", "GivenConstraint", "GrammarOption", "PydanticOption", "RegexOption", "SchemaOption",
    "ToolChoiceOption", "ToolFormat", "ToolFormatOption", "ToolsOption", "TypeOption", "TypedOptions",
    "read_constraint",
]  # fmt: skip

PANEL = "The constraint (one of)"


def constraint_option(*names: str, help: str, **how: Any) -> Any:
    """Return an option that gives a constraint."""
    return typer.Option(*names, help=help, rich_help_panel=PANEL, **how)


SchemaOption = Annotated[
    str | None, constraint_option(help="A JSON Schema: a file, - for stdin, or the JSON text.")
]  # fmt: skip
RegexOption = Annotated[str | None, constraint_option(help="A regular expression that the complete text matches.")]
GrammarOption = Annotated[
    str | None, constraint_option(help="A Lark or GBNF grammar: a file, the name of a built-in grammar, - for stdin.")
]
ChoiceOption = Annotated[list[str] | None, constraint_option(help="One of the texts to choose from; may be repeated.")]
TypeOption = Annotated[
    str | None,
    constraint_option(
        "--type", metavar="TYPE",
        help='A Python type: int, "list[int]", "dict[str, float]", \'Literal["a", "b"]\', "int | None".',
    ),
]  # fmt: skip
PydanticOption = Annotated[
    str | None,
    constraint_option(
        "--pydantic", metavar="MODULE:CLASS",
        help="A Pydantic model, dataclass or TypedDict. The module is imported, from the current folder too: it runs.",
    ),
]  # fmt: skip
ToolsOption = Annotated[
    str | None,
    constraint_option(
        "--tools", metavar="FILE",
        help="Tool definitions, in JSON as OpenAI, Anthropic or MCP write them; the text may contain calls.",
    ),
]  # fmt: skip
ToolFormat = Literal["hermes", "llama", "pythonic", "mistral", "mistral-args", "harmony", "json"]
ToolFormatOption = Annotated[
    ToolFormat,
    typer.Option(
        "--tool-format", metavar="NAME", rich_help_panel=PANEL,
        help="For --tools: how calls are written: hermes, llama, pythonic, mistral, mistral-args, harmony or json.",
    ),
]  # fmt: skip
ToolChoiceOption = Annotated[
    str,
    typer.Option(
        "--tool-choice", metavar="NAME", rich_help_panel=PANEL,
        help="For --tools: auto (text that may contain calls), required (calls alone), or the name of a tool.",
    ),
]  # fmt: skip


class TypedOptions(NamedTuple):
    """The values of the options for Python types and tools, which only some commands have."""

    type: str | None = None
    pydantic: str | None = None
    tools: str | None = None
    tool_format: str = "hermes"
    tool_choice: str = "auto"


class GivenConstraint(NamedTuple):
    """A constraint of the command line.

    name: of its file, for messages. arguments: the keyword argument of `generate` and `compile` that it is.
    options: style and registry, with references relative to its file. tools: the tools that the text may call.
    """

    name: str
    arguments: dict[str, Any]
    options: SchemaOptions
    tools: tuple[Tool, ...] = ()


def read_constraint(
    schema: str | None,
    regex: str | None,
    grammar: str | None,
    choice: list[str] | None,
    folders: list[str] | None,
    options: SchemaOptions,
    typed: TypedOptions | None = None,
) -> GivenConstraint:
    """Read the constraint of a command line and check it. typed: further options, if the command has them.

    Raises
    ------
    BadParameter
        Unless exactly one is given.
    ConstrainError
        If it is malformed or unsatisfiable.
    """
    given = {"--schema": schema, "--regex": regex, "--grammar": grammar, "--choice": choice or None}
    if typed is not None:
        given |= {"--type": typed.type, "--pydantic": typed.pydantic, "--tools": typed.tools}
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) != 1:
        found = f"{' and '.join(chosen)} were given: " if chosen else ""
        raise typer.BadParameter(f"{found}give one of {', '.join(given)}.")
    arguments: dict[str, Any]
    if schema is not None:
        source = read_schema(schema)
        name, options, arguments = source.name, options.relative_to(source), {"schema": source.text}
    elif grammar is not None:
        name, text = grammar_text(grammar)
        arguments = {"grammar": form_of(grammar if ready_name(grammar) else text, import_paths=folders or ())}
    elif regex is not None or choice:
        name, arguments = ("the regex", {"regex": regex}) if regex is not None else ("the choices", {"choices": choice})
    else:
        assert typed is not None
        return check_constraint(read_typed(typed, options))
    return check_constraint(GivenConstraint(name, arguments, options))


def check_constraint(given: GivenConstraint) -> GivenConstraint:
    """Return a constraint. Raise ConstrainError if it has an error, which is so reported before a model is loaded."""
    with attribute_errors(given.name):
        to_grammar(**given.arguments, style=given.options.style, registry=given.options.registry)
    return given


def read_typed(typed: TypedOptions, options: SchemaOptions) -> GivenConstraint:
    """Return the constraint of --type, --pydantic or --tools."""
    if typed.type is not None:
        with attribute_errors("--type"):
            wanted = parse_type(typed.type)
            if wanted is None:  # As an argument, None means that there is none.
                wanted = type(None)
            return GivenConstraint("--type", {"type": wanted}, options)
    if typed.pydantic is not None:
        return GivenConstraint(typed.pydantic, {"type": import_class(typed.pydantic)}, options)
    assert typed.tools is not None
    name = "stdin" if typed.tools == "-" else typed.tools
    with attribute_errors(name):
        try:
            text = read_bytes(typed.tools).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SchemaError(f"byte {error.start} is not valid UTF-8", hint="Tools must be JSON in UTF-8.") from None
        listed = tuple(read_tools(text))
        form = tool_form(listed, typed.tool_format, choice=typed.tool_choice, style=options.style)
    return GivenConstraint(name, {"grammar": form}, options, listed)


def import_class(name: str) -> Any:
    """Import a class that is named "package.module:Class", from the current folder too.

    Its module runs as any module that is imported. Raise ArgumentError if there is no such class.
    """
    if "" not in sys.path:  # a script that pip installs does not look for modules in the current folder
        sys.path.insert(0, "")
    return import_type(name)
