"""Prompts of the command line: one as text, or a file of several, of texts or of messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ..base.errors import SourceError, describe_value
from .model_options import PANEL, read_prompt
from .source_options import attribute_errors, read_bytes

__all__ = ["PromptFileOption", "is_messages", "read_prompts"]

PromptFileOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="A file of prompts; - for stdin. One per line; in .jsonl a line is a JSON string, a list of messages, or "
        'an object with "prompt" or "messages"; in .json the file is one of these, or a list of them.',
        rich_help_panel=PANEL,
    ),
]
PROMPT = 'A prompt is a string, a list of messages, or an object with "prompt" or "messages".'


def read_prompts(prompt: str | None, file: str | None) -> Any:
    """Return the prompt of --prompt, or the list of prompts of --prompt-file.

    Raises
    ------
    BadParameter
        If both are given.
    SourceError
        If the file holds no prompt, or something else than prompts, with its line.
    """
    if file is None:
        return read_prompt(prompt)
    if prompt is not None:
        raise typer.BadParameter("give --prompt or --prompt-file, not both.")
    name = "stdin" if file == "-" else file
    with attribute_errors(name):
        try:
            text = read_bytes(file).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(f"byte {error.start} is not valid UTF-8", hint="Give a text file in UTF-8.") from None
        prompts = list(parse_prompts(text, file))
        if not prompts:
            raise SourceError("the file has no prompts", hint="Give one prompt per line.")
    return prompts


def parse_prompts(text: str, name: str) -> Iterator[Any]:
    """Yield the prompts of a file with this content and name."""
    if name.endswith((".jsonl", ".ndjson")):
        start = 0
        for line in text.splitlines(keepends=True):
            if line.strip():
                yield as_prompt(parse_document(line.strip(), text, start), text, start)
            start += len(line)
    elif name.endswith(".json"):
        document = parse_document(text, text, 0)
        several = isinstance(document, list) and not is_messages(document)
        for one in document if several else [document]:
            yield as_prompt(one, text, 0)
    else:
        yield from (line for line in map(str.strip, text.splitlines()) if line)


def parse_document(part: str, text: str, start: int) -> Any:
    """Return the value of JSON text. Raise SourceError with its place in the whole text."""
    try:
        return json.loads(part)
    except json.JSONDecodeError as error:
        raise SourceError(f"not JSON: {error.msg}", source=text, position=start + error.pos) from None
    except (ValueError, RecursionError) as error:  # a number of very many digits; deep nesting
        raise SourceError(f"not JSON that can be read: {error}", source=text, position=start) from None


def as_prompt(given: Any, text: str, start: int) -> Any:
    """Return the prompt of a JSON value. Raise SourceError, at its place in the text, if it is none."""
    if isinstance(given, dict) and ("prompt" in given) != ("messages" in given):
        given = given["prompt" if "prompt" in given else "messages"]
    if isinstance(given, str) or is_messages(given):
        return given
    raise SourceError(f"not a prompt: {describe_value(given)}", source=text, position=start, hint=PROMPT)


def is_messages(given: Any) -> bool:
    """Return whether a value is a list of messages: objects with a role."""
    return (
        isinstance(given, list) and bool(given)
        and all(isinstance(one, dict) and isinstance(one.get("role"), str) for one in given)
    )  # fmt: skip
