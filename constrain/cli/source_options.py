"""What several commands share: how schemas and vocabularies are given and read, and which file an error is about."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple

import typer

from ..base.errors import ArgumentError, ConstrainError, LimitError, SourceError, shorten_text

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

__all__ = [
    "JsonFlag", "SchemaArgument", "Seed", "Source", "VocabularyOption", "about", "bytes_of", "quiet", "read_bytes",
    "read_schema", "vocabulary_of",
]  # fmt: skip

JsonFlag = Annotated[bool, typer.Option("--json", metavar=" ", help="Print one JSON document, for machines.")]
VocabularyOption = Annotated[
    str | None,
    typer.Option("--vocabulary", "--model", help="demo, a folder, a tokenizer file or a hub id; else single bytes."),
]
SchemaArgument = Annotated[
    str, typer.Argument(metavar="SCHEMA", help="A file; - for stdin; or the JSON text itself.", show_default=False)
]
MOST_BYTES = 256 << 20
"""Most bytes of a file that a command reads."""
Seed = Annotated[int | None, typer.Option("--seed", help="The same seed gives the same texts.")]


class Source(NamedTuple):
    """A schema as it was given: what to call it in messages, its text, and the URI of its file, or ""."""

    name: str
    text: str
    uri: str = ""


class About:
    """The file that an error is about: `about` notes it, `app.run` tells."""

    attribute = "constrain_file"


@contextmanager
def about(name: str) -> Iterator[None]:
    """Errors from here are about this file."""
    try:
        yield
    except ConstrainError as error:
        if not hasattr(error, About.attribute):
            setattr(error, About.attribute, name)
        raise


def read_bytes(name: str) -> bytes:
    """Read a file, or stdin for "-". Raise OSError if it cannot be read, LimitError beyond MOST_BYTES.

    A named pipe that no process writes to is empty: opening it does not wait for a writer.
    """
    if name == "-":
        return within(sys.stdin.buffer, "stdin")
    nonblocking = getattr(os, "O_NONBLOCK", 0)
    with open(name, "rb", opener=lambda path, flags: os.open(path, flags | nonblocking)) as file:
        if nonblocking:
            os.set_blocking(file.fileno(), True)
        return within(file, name)


def within(file: BinaryIO, name: str) -> bytes:
    """Read a whole file. Raise LimitError if it has more than MOST_BYTES bytes."""
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise LimitError(f"{shorten_text(name)} has more than {MOST_BYTES >> 20} MiB.", hint="Give a smaller file.")
    return data


def read_schema(given: str) -> Source:
    """The text of a schema: a file, "-", or what begins with a brace, true or false. SourceError if it is no text."""
    if given.lstrip().startswith("{") or given.strip() in ("true", "false"):
        return Source("the schema", given)
    name = "stdin" if given == "-" else given
    with about(name):
        data = read_bytes(given)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(
                f"Not text: byte {error.start} is no UTF-8.", hint="A schema is a JSON file in UTF-8."
            ) from None
        if not text.strip():
            raise SourceError("The file is empty.", hint="A schema is a JSON object, or true or false.")
    return Source(name, text, "" if given == "-" else Path(given).resolve().as_uri())


def bytes_of(name: str, text: str) -> bytes:
    """Return the bytes of an argument as they were on the command line, UTF-8 or not."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise ArgumentError(f"{name} holds half of a surrogate pair, which is no character") from None


def vocabulary_of(given: str | None) -> Vocabulary:
    """The Vocabulary of a model or tokenizer; that of the 256 bytes if none is given."""
    from ..vocabulary.vocabulary import Vocabulary as Made

    if given is None or given == "bytes":
        return Made.bytes()
    if given == "demo":
        from .. import demo

        return Made.from_pretrained(demo.path())
    quiet()
    return Made.from_pretrained(given)


def quiet() -> None:
    """Keeps the progress bars and warnings of transformers out of a command's output."""
    try:
        from transformers.utils import logging
    except ImportError:
        return
    library: Any = logging
    library.set_verbosity_error()
    library.disable_progress_bar()
