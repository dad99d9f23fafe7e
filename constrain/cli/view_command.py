"""`constrain view`: railroad diagrams of a grammar's rules and terminals, and the automaton of its lexer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..authoring.diagrams import draw_page, draw_svg
from . import display
from .grammar_source import GrammarArgument, ImportOption, LexerOption, StartOption, grammar_of
from .source_options import attribute_errors

__all__ = ["draw_grammar"]


def draw_grammar(
    grammar: GrammarArgument,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Output file, .svg or .html; - for SVG on stdout.")
    ] = "-",
    start: StartOption = None,
    lexer: LexerOption = None,
    folders: ImportOption = None,
) -> None:
    """Draw a grammar: a railroad diagram for each rule and terminal, and the lexer's automaton if it is small.

    An .html page has links between the rules; both formats follow the reader's light or dark mode. Nothing is fetched.
    """

    html = output.endswith((".html", ".htm"))
    if not html and output != "-" and not output.endswith(".svg"):
        raise typer.BadParameter(f"{output} must end with .svg or .html", param_hint="'-o'")
    written = grammar_of(grammar, start, lexer, folders)
    with attribute_errors(written.name):
        drawn = draw_page(written) if html else draw_svg(written)
    if output == "-":
        print(drawn, end="")
    else:
        Path(output).write_text(drawn, encoding="utf-8")
        display.print_note(f"{output}: {len(drawn):,} characters")
