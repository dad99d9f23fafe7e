"""`constrain test`: texts that a grammar must accept, and texts that it must reject."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from .. import grammars
from ..authoring.explanations import join_words
from ..authoring.grammar_tools.recognition import Recogniser, Rejection
from ..base.errors import SourceError
from . import display
from .check_grammar_command import show_text
from .grammar_source import GrammarArgument, ImportOption, LexerOption, StartOption, grammar_of, ready_name
from .kernel_notice import load_kernels
from .source_options import JsonFlag, attribute_errors, read_bytes

__all__ = ["run_grammar_tests"]

MOST_WORDS = 12
"""Maximum number of expected items that are listed; --json contains all."""


class Example(NamedTuple):
    """A text, its origin, and whether it must be accepted."""

    name: str
    text: bytes
    accept: bool


def run_grammar_tests(
    grammar: GrammarArgument,
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", metavar="FILE", help="A file that must be accepted, or a folder of them."),
    ] = None,
    reject: Annotated[
        list[str] | None,
        typer.Option("--reject", metavar="FILE", help="A file that must be rejected, or a folder of them."),
    ] = None,
    examples: Annotated[
        list[str] | None,
        typer.Option("--examples", metavar="FILE", help="A file with both, as blocks under --- accept and --- reject."),
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", metavar=" ", help="Read each line of a file as one text.")] = False,
    strip: Annotated[
        bool, typer.Option("--strip", metavar=" ", help="Remove the line end at the end of a file.")
    ] = False,
    start: StartOption = None,
    lexer: LexerOption = None,
    folders: ImportOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Test a grammar with texts that it must accept and texts that it must reject.

    If a text is rejected that should be accepted, the position and the expected tokens are printed. Exit code 0: all
    texts as expected; 1: not. Each option may be repeated; built-in grammars include examples.
    """
    written = grammar_of(grammar, start, lexer, folders)
    if ready_name(grammar) and not (accept or reject or examples):
        texts = ready_examples(grammar)
    else:
        texts = [
            *collect_texts(accept, True, lines, strip),
            *collect_texts(reject, False, lines, strip),
            *in_blocks(examples),
        ]
    if not texts:
        raise typer.BadParameter("give --accept, --reject or --examples.")
    load_kernels()

    with attribute_errors(written.name):
        recogniser = Recogniser(written)
    rows: list[dict[str, Any]] = []
    wrong = 0
    for example in texts:
        rejection = recogniser.find_rejection(example.text)
        fine = (rejection is None) == example.accept
        wrong += not fine
        rows.append({
            "name": example.name, "expected": "accept" if example.accept else "reject", "accepted": rejection is None,
            "fine": fine, "refusal": None if rejection is None else asdict(rejection),
        })  # fmt: skip
        if not fine and not as_json:
            print_failure(example, rejection)
    if as_json:
        display.as_json({"texts": rows, "passed": len(texts) - wrong, "failed": wrong})
    else:
        accepts = sum(example.accept for example in texts)
        display.print_answer(
            (f"{len(texts) - wrong} of {len(texts)} as expected", "green" if not wrong else "red"),
            f" ({accepts} to accept, {len(texts) - accepts} to refuse)",
        )
    raise typer.Exit(display.NO if wrong else display.FINE)


def collect_texts(names: list[str] | None, accept: bool, lines: bool, strip: bool) -> Iterator[Example]:
    """Yield the texts of files and folders."""
    for name in names or []:
        files = [name]
        if Path(name).is_dir():
            files = sorted(str(path) for path in Path(name).rglob("*") if path.is_file() and not is_hidden(path))
            if not files:
                raise SourceError(f"the folder {name} contains no files")
        for file in files:
            data = read_bytes(file)
            if lines:
                for number, line in enumerate(data.splitlines(), 1):
                    yield Example(f"{file}:{number}", line, accept)
            else:
                yield Example(file, data.removesuffix(b"\n").removesuffix(b"\r") if strip else data, accept)


def is_hidden(path: Path) -> bool:
    """Return whether the name of a file, or of a folder that contains it, begins with a dot."""
    return any(part.startswith(".") and part not in (".", "..") for part in path.parts)


def in_blocks(names: list[str] | None) -> Iterator[Example]:
    """Yield the texts of example files."""

    for name in names or []:
        with attribute_errors(name):
            try:
                examples = grammars.examples(read_bytes(name).decode())
            except UnicodeDecodeError as error:
                raise SourceError(f"not text: byte {error.start} is not valid UTF-8.") from None
        yield from list_examples(name, examples)


def ready_examples(name: str) -> list[Example]:
    """Return the examples that come with a grammar of the library."""

    examples = grammars.read(name)
    return list(list_examples(f"{name}.examples", (examples.accepts, examples.rejects)))


def list_examples(name: str, examples: tuple[tuple[str, ...], tuple[str, ...]]) -> Iterator[Example]:
    for verdict, texts in zip(("accept", "reject"), examples):
        for number, text in enumerate(texts, 1):
            yield Example(f"{name} ({verdict} {number})", text.encode(), verdict == "accept")


def print_failure(example: Example, rejection: Rejection | None) -> None:
    """Print an example that failed."""
    display.print_answer(
        (example.name, "bold"), ": ", ("accepted, but should be rejected" if rejection is None else "refused", "red")
    )
    if rejection is None:
        display.print_answer("    ", show_text(example.text.decode("utf-8", "replace")))
        display.print_answer()
        return
    refusal = rejection.refusal
    display.print_answer(f"  {refusal.found} is refused at line {refusal.line}, column {refusal.column}")
    display.print_answer(f"    {refusal.excerpt}")
    display.print_answer("    ", " " * refusal.caret, ("^", "bold red"))
    if rejection.why:
        display.print_answer(f"  {rejection.why}")
    if rejection.begun and rejection.since is not None:
        line, column = rejection.since
        where = f"which begins at line {line}, column {column}"
        display.print_answer(
            f"  in {show_text(rejection.begun)}, {where}; it may become {shorten_list(rejection.lexeme)}"
        )
        display.print_answer(f"  to go on with it: {shorten_list(refusal.expected)}")
    else:
        display.print_answer(f"  expected: {shorten_list(refusal.expected)}")
    if refusal.offset == len(example.text) - 1 and example.text.endswith(b"\n"):
        display.print_answer("  Only the line end of the file is too much: --strip leaves it out.")
    display.print_answer()


def shorten_list(names: tuple[str, ...]) -> str:
    """Return a list in words, truncated if it is long."""
    more = len(names) - MOST_WORDS + 1
    return join_words(names if more <= 1 else (*names[:-more], f"{more} more"))
