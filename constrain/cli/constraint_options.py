"""The options by which a command is given a constraint: --schema, --regex, --grammar or --choice."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import typer

from ..compilation.constraint_compiler import to_grammar
from ..forms import grammar as form_of
from .common_arguments import SchemaOptions
from .grammar_source import grammar_text, ready_name
from .source_options import attribute_errors, read_schema

__all__ = ["ChoiceOption", "GivenConstraint", "GrammarOption", "RegexOption", "SchemaOption", "read_constraint"]

SchemaOption = Annotated[str | None, typer.Option(help="A JSON Schema: a file, - for stdin, or the JSON text.")]
RegexOption = Annotated[str | None, typer.Option(help="A regular expression that the complete text matches.")]
GrammarOption = Annotated[
    str | None, typer.Option(help="A Lark or GBNF grammar: a file, the name of a built-in grammar, - for stdin.")
]
ChoiceOption = Annotated[list[str] | None, typer.Option(help="One of the texts to choose from; may be repeated.")]


class GivenConstraint(NamedTuple):
    """A constraint of the command line.

    name: of its file, for messages. arguments: the keyword argument of `generate` and `compile` that it is.
    options: style and registry, with references relative to its file.
    """

    name: str
    arguments: dict[str, Any]
    options: SchemaOptions


def read_constraint(
    schema: str | None,
    regex: str | None,
    grammar: str | None,
    choice: list[str] | None,
    folders: list[str] | None,
    options: SchemaOptions,
) -> GivenConstraint:
    """Read the constraint of a command line and check it.

    Raises
    ------
    BadParameter
        Unless exactly one is given.
    ConstrainError
        If it is malformed or unsatisfiable.
    """
    given = {"--schema": schema, "--regex": regex, "--grammar": grammar, "--choice": choice or None}
    if sum(value is not None for value in given.values()) != 1:
        raise typer.BadParameter(f"give one of {', '.join(given)}.")
    arguments: dict[str, Any]
    if schema is not None:
        source = read_schema(schema)
        name, options, arguments = source.name, options.relative_to(source), {"schema": source.text}
    elif grammar is not None:
        name, text = grammar_text(grammar)
        arguments = {"grammar": form_of(grammar if ready_name(grammar) else text, import_paths=folders or ())}
    else:
        name, arguments = ("the regex", {"regex": regex}) if regex is not None else ("the choices", {"choices": choice})
    with attribute_errors(name):  # errors in the constraint are reported before a model is loaded
        to_grammar(**arguments, style=options.style, registry=options.registry)
    return GivenConstraint(name, arguments, options)
