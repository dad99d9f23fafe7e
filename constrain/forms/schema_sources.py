"""What may be given as a schema: documents, texts, files, Python types; and what is often given in their place."""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from ..base.errors import SchemaError, SourceError, describe_value, shorten_text

__all__ = ["check_type_argument", "drop_byte_order_mark", "names_file", "normalise_schema", "read_source_file"]

MOST_BYTES = 64 << 20
"""Largest file that is read as a schema or a grammar."""
FILE_NAME = re.compile(r"[^\s{}\[\]\"<>|]+\.[A-Za-z][A-Za-z0-9]{0,9}|~?\.{0,2}/[^\s{}\[\]\"<>|]+")
"""A text that is a name of a file and neither JSON nor a grammar."""
OPENAI_FORMATS = {
    "json_schema": 'This is a response_format: give its schema, response_format["json_schema"]["schema"].',
    "json_object": 'This is a response_format for any JSON: give grammar="json", or schema={"type": "object"}.',
    "text": "This is a response_format for any text: no constraint is needed.",
    "function": "This is the definition of a tool: give grammar=constrain.tools([definition]).",
}
"""Values of `type` in what OpenAI's API takes in place of a schema."""


def normalise_schema(source: Any) -> Any:
    """Return a schema as `compile` reads it: a file as its text, a text without byte order mark, else unchanged.

    Raise SchemaError for a text that is the name of a file, and for a response format or a tool of OpenAI's API;
    SourceError for a file that cannot be read.
    """
    if isinstance(source, str):
        if names_file(source):
            name = shorten_text(repr(source), 100)
            raise SchemaError(
                f"The schema is {name}, which is not JSON but the name of a file.",
                hint=f"Give pathlib.Path({name}), or the text of the file.",
            )
        return drop_byte_order_mark(source)
    if isinstance(source, PathLike):
        return read_source_file(source, "schema")
    if isinstance(source, dict):
        kind = source.get("type")
        if isinstance(kind, str) and kind in OPENAI_FORMATS and not ("properties" in source or "$schema" in source):
            raise SchemaError(
                f"`type` is {kind!r}, which is not a type of JSON Schema.", pointer="/type", hint=OPENAI_FORMATS[kind]
            )
    if isinstance(source, list):
        raise SchemaError(
            "A schema must be an object or a boolean, not an array.", pointer="",
            hint='For one of some values give choices=[...] or {"enum": [...]}; for a list of values {"items": ...}.',
        )  # fmt: skip
    return source


def drop_byte_order_mark(text: str) -> str:
    """Return the text of a schema or grammar without the mark that some editors write first, and `open` reads."""
    return text.removeprefix("\ufeff")


def check_type_argument(given: Any) -> None:
    """Raise TypeError for a `type=` that is a JSON Schema, or a text such as "int"."""
    is_document = isinstance(given, str) and given.lstrip().startswith(("{", "true", "false"))
    if is_document or isinstance(given, (dict, bool)):
        raise TypeError(f"type is {describe_value(given)}: it is a Python type; a JSON Schema is given as schema=")
    if isinstance(given, str):
        raise TypeError(
            f"type is {describe_value(given)}: give the type itself, such as type=int; a JSON Schema is schema="
        )


def names_file(text: str) -> bool:
    """Return whether a text looks like the name of a file. The disk is not asked."""
    return len(text) < 1_000 and FILE_NAME.fullmatch(text.strip()) is not None


def read_source_file(path: PathLike[str], what: str) -> str:
    """Return the text of a file. Raise SourceError if it cannot be read, is not UTF-8 or is too large."""
    name = shorten_text(repr(str(fspath(path))), 100)
    try:
        file = Path(path).expanduser()
        if not file.is_file():
            raise SourceError(
                f"{what} is the file {name}, which is not there", hint="Give a Path of a file, or a text."
            )
        if file.stat().st_size > MOST_BYTES:
            raise SourceError(
                f"{what} is the file {name}, which has more than {MOST_BYTES >> 20} MB", hint="Give a smaller file."
            )
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{what} is the file {name}, whose byte {error.start} is not UTF-8", hint="Save it as UTF-8."
        ) from None
    except (OSError, ValueError, RuntimeError) as error:  # also a name that no file can have, or no home folder
        raise SourceError(
            f"{what} is the file {name}, which cannot be read: {shorten_text(error)}", hint="Give its text."
        ) from error
