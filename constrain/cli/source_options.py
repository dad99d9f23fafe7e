"""Functions shared by several commands: read schemas and vocabularies, and attribute errors to files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

import typer

from .. import demo
from ..base.errors import ArgumentError, ConstrainError, LimitError, SourceError, shorten_text
from ..vocabulary.vocabulary import Vocabulary, Vocabulary as Made
from .display import FILE_ATTRIBUTE
from .standard_streams import open_stdin

__all__ = [
    "JsonFlag",
    "SchemaArgument",
    "Seed",
    "SchemaSource",
    "VocabularyOption",
    "attribute_errors",
    "attribute_located_errors",
    "bytes_of",
    "check_stdin",
    "silence_transformers",
    "read_bytes",
    "read_schema",
    "vocabulary_of",
]

JsonFlag = Annotated[bool, typer.Option("--json", metavar=" ", help="Print one JSON document.")]
VocabularyOption = Annotated[
    str | None,
    typer.Option(
        "--vocabulary", "--model", help="demo, a folder, a tokenizer file or a hub id; by default single bytes."
    ),
]
SchemaArgument = Annotated[
    str, typer.Argument(metavar="SCHEMA", help="A file; - for stdin; or the JSON text itself.", show_default=False)
]
MOST_BYTES = 256 << 20
"""Maximum number of bytes of a file that a command reads."""
Seed = Annotated[int | None, typer.Option("--seed", help="The same seed gives the same texts.")]


class SchemaSource(NamedTuple):
    """A schema as it was given: its display name, its text, and the URI of its file, or ""."""

    name: str
    text: str
    uri: str = ""


@contextmanager
def attribute_errors(name: str) -> Iterator[None]:
    """Attribute a ConstrainError that is raised in the block to this file."""
    try:
        yield
    except ConstrainError as error:
        if not hasattr(error, FILE_ATTRIBUTE):
            setattr(error, FILE_ATTRIBUTE, name)
        raise


@contextmanager
def attribute_located_errors(name: str) -> Iterator[None]:
    """As `attribute_errors`, but only for an error with a place in the file, not one of another argument."""
    try:
        yield
    except ConstrainError as error:
        if error.pointer is None and error.source is None:
            raise
        with attribute_errors(name):
            raise


def check_stdin(**given: str | Sequence[str] | None) -> None:
    """Raise BadParameter if more than one of these arguments, by name, is - for stdin, which is read only once."""
    names = [
        name if name.isupper() else f"--{name.replace('_', '-')}"
        for name, values in given.items()
        for value in ([values] if isinstance(values, str) else values or ())
        if value == "-"
    ]
    if len(names) > 1:
        raise typer.BadParameter(f"{' and '.join(names)} are both stdin (-): give a file for one of them.")


def read_bytes(name: str) -> bytes:
    """Read a file, or stdin for "-". Raise OSError if it cannot be read, ArgumentError if stdin is
    closed, LimitError beyond MOST_BYTES.

    A named pipe that no process writes to is empty: opening it does not wait for a writer.
    """
    if name == "-":
        return read_within(open_stdin().buffer, "stdin")
    nonblocking = getattr(os, "O_NONBLOCK", 0)
    with open(name, "rb", opener=lambda path, flags: os.open(path, flags | nonblocking)) as file:
        if nonblocking:
            os.set_blocking(file.fileno(), True)
        return read_within(file, name)


def read_within(file: BinaryIO, name: str) -> bytes:
    """Read a whole file. Raise LimitError if it has more than MOST_BYTES bytes."""
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise LimitError(f"{shorten_text(name)} has more than {MOST_BYTES >> 20} MiB", hint="Give a smaller file.")
    return data


def read_schema(given: str) -> SchemaSource:
    """Return the schema from a file, "-", or JSON text that begins with a brace, true or false.

    Raise SourceError if it is not text.
    """
    if given.lstrip().startswith("{") or given.strip() in ("true", "false"):
        return SchemaSource("the schema", given)
    name = "stdin" if given == "-" else given
    with attribute_errors(name):
        data = read_bytes(given)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(
                f"byte {error.start} is not valid UTF-8", hint="A schema must be a JSON file in UTF-8."
            ) from None
        if not text.strip():
            raise SourceError("the file is empty", hint="A schema is a JSON object, or true or false.")
    return SchemaSource(name, text, "" if given == "-" else Path(given).resolve().as_uri())


def bytes_of(name: str, text: str) -> bytes:
    """Return the bytes of an argument as they were on the command line, UTF-8 or not."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise ArgumentError(f"{name} contains half of a surrogate pair, which is not a character") from None


def vocabulary_of(given: str | None) -> Vocabulary:
    """Return the Vocabulary of a model or tokenizer; that of the 256 bytes if none is given."""

    if given is None or given == "bytes":
        return Made.bytes()
    if given == "demo":
        return Made.from_pretrained(demo.model_folder())
    silence_transformers()
    return Made.from_pretrained(given)


def silence_transformers() -> None:
    """Disable the progress bars and warnings of transformers."""
    try:
        from transformers.utils import logging
    except ImportError:
        return
    library: Any = logging
    library.set_verbosity_error()
    library.disable_progress_bar()
