"""Options that several commands share, and what they mean: how JSON is spelled, and where schemas come from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, cast

import typer

from ..errors import ConstrainError, SourceError
from ..style import Style

if TYPE_CHECKING:
    from ..tokens.vocabulary import Vocabulary

__all__ = [
    "Any_", "Indent", "JsonFlag", "KeyOrder", "SchemaArgument", "Seed", "Source", "Spacing", "VocabularyOption",
    "about", "quiet", "read_bytes", "read_schema", "style_of", "vocabulary_of",
]  # fmt: skip

SPELLING = "How JSON is spelled"

JsonFlag = Annotated[bool, typer.Option("--json", metavar=" ", help="Print one JSON document, for machines.")]
VocabularyOption = Annotated[
    str | None,
    typer.Option("--vocabulary", "--model", help="demo, a folder, a tokenizer file or a hub id; else single bytes."),
]
KeyOrder = Annotated[
    str | None,
    typer.Option("--key-order", metavar="schema|any", help="Order of keys.", rich_help_panel=SPELLING),
]
Spacing = Annotated[
    str | None,
    typer.Option(
        "--whitespace",
        metavar="flexible|compact|any|N",
        help="White space between tokens; N: indented by N spaces.",
        rich_help_panel=SPELLING,
    ),
]
Any_ = Annotated[
    bool,
    typer.Option(
        "--any", metavar=" ", help="All that RFC 8259 and the schema allow: Style.any().", rich_help_panel=SPELLING
    ),
]
SchemaArgument = Annotated[
    str, typer.Argument(metavar="SCHEMA", help="A file; - for stdin; or the JSON text itself.", show_default=False)
]
Seed = Annotated[int | None, typer.Option("--seed", help="The same seed gives the same texts.")]
Indent = 16
"""Most spaces of an indent: beyond it a number is more likely a slip."""


def style_of(key_order: str | None, whitespace: str | None, anything: bool, *, base: Style = Style()) -> Style:
    """The Style that the options ask for, the rest being as in `base`."""
    style = Style.any() if anything else base
    if key_order is not None:
        if key_order not in ("schema", "any"):
            raise typer.BadParameter(f"{key_order!r} is neither schema nor any.", param_hint="'--key-order'")
        style = replace(style, key_order=cast(Literal["schema", "any"], key_order))
    if whitespace is not None:
        if whitespace.isascii() and whitespace.isdigit() and int(whitespace) <= Indent:
            return replace(style, whitespace=int(whitespace))
        if whitespace not in ("flexible", "compact", "any"):
            raise typer.BadParameter(
                f"{whitespace!r} is none of flexible, compact, any, and no number up to {Indent}.",
                param_hint="'--whitespace'",
            )
        style = replace(style, whitespace=cast(Literal["flexible", "compact", "any"], whitespace))
    return style


class Source(NamedTuple):
    """A schema as it was given: what to call it in messages, and its text."""

    name: str
    text: str


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
    """A file, or stdin for "-". OSError if it cannot be read."""
    if name == "-":
        return sys.stdin.buffer.read()
    return Path(name).read_bytes()


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
    return Source(name, text)


def vocabulary_of(given: str | None) -> Vocabulary:
    """The Vocabulary of a model or tokenizer; that of the 256 bytes if none is given."""
    from ..tokens.vocabulary import Vocabulary as Made

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
