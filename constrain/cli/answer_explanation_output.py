"""`constrain explain --answer`: how an answer came about, token by token."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..authoring.answers import explain_answer
from ..authoring.answers.answer_text import HEADERS, answer_rows, summarise_answer
from ..authoring.explanations import first_refusal
from ..authoring.token_refusals import explain_end, explain_text
from ..base.errors import SourceError, shorten_text
from ..compilation.constraint_compiler import compile
from . import display
from .generate_command import load_with_note
from .source_options import attribute_errors, read_bytes

if TYPE_CHECKING:
    from ..authoring.answers import AnswerExplanation
    from ..engine.constraint import Constraint
    from .constraint_options import GivenConstraint

__all__ = ["check_page", "explain_answer_file", "write_page"]


def explain_answer_file(
    answer: str, given: GivenConstraint, prompt: str | None, model: str, html: str | None, as_json: bool
) -> int:
    """Explain the answer in a file, and return the exit code.

    The line break at the end of the file, which editors add, is left out if the constraint refuses it. An answer that
    the constraint refuses is explained up to there, with exit code 1.
    """
    data = read_bytes(answer)
    loaded = load_with_note(model)
    with attribute_errors(given.name):
        constraint = compile(
            loaded.vocabulary, style=given.options.style, registry=given.options.registry, **given.arguments
        )
    with attribute_errors("stdin" if answer == "-" else answer):
        text = read_answer(data, constraint)
    with display.show_progress("running the model over the answer …"):
        explanation = explain_answer(loaded.on(prompt), constraint, loaded.vocabulary.tokenize(text), ending="end")
    refusal = describe_refusal(constraint, text)
    if html is not None:
        write_page(html, explanation.to_html())
    if as_json:
        display.as_json(explanation.to_dict() | {"refusal": refusal})
    else:
        print_explanation(explanation, refusal)
    return display.NO if refusal else display.FINE


def read_answer(data: bytes, constraint: Constraint) -> bytes:
    """Return an answer without the line break at its end, if the constraint refuses it. Raise SourceError."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise SourceError(f"byte {error.start} is not valid UTF-8", hint="An answer is text in UTF-8.") from None
    stripped = data.removesuffix(b"\n").removesuffix(b"\r")
    return data if stripped == data or first_refusal(constraint, data) is None else stripped


def describe_refusal(constraint: Constraint, text: bytes) -> str | None:
    """Return why the constraint refuses a whole answer, or None."""
    matcher = constraint.matcher()
    refusal = explain_text(matcher, text)
    if refusal is not None and refusal.place is not None:
        return f"refused at line {refusal.place.line}, column {refusal.place.column}: {refusal.reason}"
    matcher.advance_bytes(text)
    return None if matcher.is_complete else f"the answer is not complete: {explain_end(matcher).reason}"


def print_explanation(explanation: AnswerExplanation, refusal: str | None) -> None:
    """Print the table of tokens and the summary."""
    display.print_table(HEADERS, answer_rows(explanation))
    display.print_answer()
    for line in summarise_answer(explanation):
        display.print_answer(line)
    if refusal is not None:
        display.print_answer((refusal, "bold red"))


def check_page(file: str | None) -> None:
    """Raise BadParameter unless a page can have this name: other files are not overwritten by mistake."""
    if file is None:
        return
    path = Path(file)
    if path.suffix not in (".html", ".htm") or (path.exists() and not path.is_file()):
        raise typer.BadParameter(f"{shorten_text(repr(file))} must be a file that ends in .html", param_hint="'--html'")


def write_page(file: str, page: str) -> None:
    """Write a page, and say so."""
    Path(file).write_text(page, encoding="utf-8")
    display.print_note(f"{shorten_text(file)}: {len(page):,} characters")
