"""Grammar arguments of commands: a file in Lark's or GBNF notation, or the name of a grammar of the library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .. import grammars
from ..authoring.grammar_tools.written_grammar import LEXERS, LexerName, read_grammar
from ..base.errors import GrammarError
from .source_options import attribute_errors, read_bytes

if TYPE_CHECKING:
    from ..authoring.grammar_tools import WrittenGrammar

__all__ = [
    "GrammarArgument", "ImportOption", "LexerOption", "StartOption", "grammar_of", "grammar_text", "is_grammar",
]  # fmt: skip

GrammarArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAMMAR",
        help="A file (.lark, .gbnf); - for stdin; or the name of a built-in grammar.",
        show_default=False,
    ),
]
StartOption = Annotated[str | None, typer.Option("--start", metavar="RULE", help="For a grammar: the start rule.")]
LexerOption = Annotated[
    Literal["contextual", "basic", "dynamic", "dynamic_complete"] | None,
    typer.Option("--lexer", help="For a Lark grammar: the lexer that splits texts into terminals."),
]
ImportOption = Annotated[
    list[str] | None,
    typer.Option("--import", metavar="FOLDER", help="Folder that %import reads from; may be repeated."),
]


def is_grammar(given: str) -> bool:
    """Return whether an argument names a grammar, by its file extension or as one of the library, and not a schema."""
    return given.endswith((".lark", ".gbnf")) or ready_name(given)


def ready_name(given: str) -> bool:
    """Return whether it is the name of a grammar that comes with constrain, and not a file."""

    return given.isidentifier() and given in grammars.names() and not Path(given).exists()


def grammar_text(given: str) -> tuple[str, str]:
    """Return the display name and the text of a grammar.

    Raise GrammarError if it is not text, or neither a file nor a grammar of the library.
    """

    if ready_name(given):
        return f"{given}.lark", grammars.text(given)
    name = "stdin" if given == "-" else given
    with attribute_errors(name):
        try:
            text = read_bytes(given).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise GrammarError(
                f"byte {error.start} is not valid UTF-8", hint="A grammar must be a text file in UTF-8."
            ) from None
        except FileNotFoundError:
            raise GrammarError(
                "there is no such file, and no built-in grammar of that name",
                hint=f"The built-in grammars are {', '.join(grammars.names())}.",
            ) from None
        if text.lstrip().startswith("{"):
            raise GrammarError(
                "this is JSON, perhaps a JSON Schema, and no grammar",
                hint="Commands for schemas are check, validate, sample and explain.",
            )
        return name, text


def grammar_of(given: str, start: str | None, lexer: str | None, folders: list[str] | None) -> WrittenGrammar:
    """Return the parsed grammar. Raise GrammarError if it is invalid."""

    name, text = grammar_text(given)
    if lexer is None and ready_name(given):
        lexer = grammars.read(given).lexer
    chosen: LexerName = next((one for one in LEXERS if one == lexer), "contextual")
    with attribute_errors(name):
        return read_grammar(text, name=name, start=start, lexer=chosen, import_paths=tuple(folders or ()))
