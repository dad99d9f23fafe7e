"""`constrain infer`: infer a schema from example documents."""

from __future__ import annotations

import json
from math import isinf
from typing import Annotated, Any, Literal, NoReturn

import typer

from ..authoring.schema_inference import infer as found_in
from ..base.errors import SourceError, shorten_text
from . import display
from .cross_check import validate_independently
from .kernel_notice import load_kernels
from .source_options import JsonFlag, attribute_errors, check_stdin, read_bytes

__all__ = ["infer_from_files"]

ESCAPED = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""Control characters that JSON allows without an escape, and that could steer a terminal."""


def infer_from_files(
    files: Annotated[
        list[str],
        typer.Argument(metavar="EXAMPLES...", help="Files: JSON lines, a JSON array of examples; - for stdin."),
    ],
    tightness: Annotated[
        bool, typer.Option("--tight", metavar=" ", help="Add the observed bounds of numbers and lengths.")
    ] = False,
    open_: Annotated[
        bool, typer.Option("--open", metavar=" ", help="Allow keys that were not observed in objects.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Find a tight JSON Schema that all examples satisfy.

    Types, required keys, formats that every text has, enums where few texts repeat; objects are closed. A JSON array
    is a list of examples. Before the schema is printed, constrain and (if installed) the jsonschema package have
    accepted every example.
    """

    check_stdin(EXAMPLES=files)
    examples: list[Any] = []
    for name in files:
        source = "stdin" if name == "-" else name
        with attribute_errors(source):
            examples += read_examples(read_bytes(name))
    load_kernels()
    with attribute_errors(", ".join("stdin" if name == "-" else name for name in files)):
        bounds: Literal["free", "observed"] = "observed" if tightness else "free"
        keys: Literal["closed", "open"] = "open" if open_ else "closed"
        schema = found_in(examples, bounds=bounds, keys=keys)
        theirs = validate_independently(*combine_examples(schema, examples))
        if theirs.verdict == "invalid" and theirs.keyword == "format":
            # The two packages interpret a format differently; then the string is too unusual to infer the format.
            schema = found_in(examples, bounds=bounds, keys=keys, formats="ignore")
            theirs = validate_independently(*combine_examples(schema, examples))
        if theirs.verdict == "invalid":
            raise SourceError(
                f"jsonschema rejects an example under the inferred schema: {theirs.message}",
                hint="This is a bug of constrain or of jsonschema; please report it with the examples.",
            )
    if as_json:
        display.as_json({"schema": schema, "examples": len(examples), "jsonschema": theirs.verdict})
        return
    print(json.dumps(schema, indent=2, ensure_ascii=False).translate(ESCAPED))
    accepted_by = "constrain and jsonschema" if theirs.verdict == "valid" else "constrain"
    plural = "s" * (len(examples) != 1)
    display.print_note((f"{len(examples):,} example{plural}, all accepted by {accepted_by}", "dim"))


def combine_examples(schema: dict[str, Any], examples: list[Any]) -> tuple[str, bytes]:
    """Return a schema and an instance that combine all examples, to validate them at once."""
    return json.dumps({"type": "array", "items": schema}), json.dumps(examples).encode()


def read_examples(data: bytes) -> list[Any]:
    """Return the documents of a file. Raise SourceError, with its line, for the first that is not JSON."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"byte {error.start} is not valid UTF-8", hint="Examples must be JSON in UTF-8.") from None
    try:
        document = json.loads(text, parse_constant=refuse_constant, parse_float=read_fraction)
        return document if isinstance(document, list) else [document]
    except json.JSONDecodeError as error:
        if "\n" not in text.strip() or error.msg != "Extra data":
            raise SourceError(f"not JSON: {error.msg}", source=text, position=error.pos) from None
    except ValueError as error:
        raise SourceError(str(error)) from None
    out, start = [], 0
    for line in text.split("\n"):
        try:
            if line.strip():
                out.append(json.loads(line, parse_constant=refuse_constant, parse_float=read_fraction))
        except json.JSONDecodeError as error:
            raise SourceError(f"not JSON: {error.msg}", source=text, position=start + error.pos) from None
        except ValueError as error:
            raise SourceError(str(error), source=text, position=start) from None
        start += len(line) + 1
    return out


def refuse_constant(name: str) -> NoReturn:
    """Reject NaN and the infinities, which are not JSON."""
    raise ValueError(f"not JSON: {name} is not a JSON number")


def read_fraction(text: str) -> float:
    """Return a number with a fraction or exponent. Raise ValueError if it is beyond the range of a float."""
    value = float(text)
    if isinf(value):
        raise ValueError(f"{shorten_text(text)} is beyond the range of a float, which examples are read as")
    return value
