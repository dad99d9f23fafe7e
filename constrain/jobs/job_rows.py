"""The rows of a job: one JSON object per line.

    {"id": "a7", "prompt": "Describe a person.", "schema": {"type": "object", ...}, "max_tokens": 64}

Fields, all optional except that a row needs a prompt where the job has none:

    id             text or integer; by default the number of the line, from 1. The seed of the row is derived from it.
    prompt         text
    messages       chat messages, instead of a prompt
    schema, regex, grammar, choices     the constraint; without one, that of the job
    n              number of texts: the answer then has a list of outputs
    seed           instead of the derived one
    max_tokens, temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty, logit_bias,
    stop, chat, show_constraint, retries         as for `constrain.generate`

null counts as absent. An unknown field, or a value of a wrong type, is an error of the row. Blank lines are no rows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ..base.errors import MESSAGE, ArgumentError, ConstrainError, shorten_text
from ..base.json_documents import parse_strictly, plain_document, write_json
from ..base.json_numbers import MOST_DIGITS, ExactFloat
from ..base.options import Limits
from .job_options import CONSTRAINTS, JobOptions

__all__ = [
    "InputSummary", "JobRow", "RowLine", "derive_seed", "describe_error", "iterate_lines", "parse_row",
    "summarise_input",
]  # fmt: skip

MOST_LINE = 64 << 20
"""Maximum number of bytes of a line."""
NUMBER = (int, float)
LARGEST = Decimal(sys.float_info.max)
FIELDS: dict[str, type | tuple[type, ...]] = {
    "id": (str, int), "prompt": str, "messages": list, "schema": (dict, bool), "regex": str, "grammar": str,
    "choices": list, "n": int, "seed": int, "max_tokens": int, "temperature": NUMBER, "top_k": int, "top_p": NUMBER,
    "min_p": NUMBER, "repetition_penalty": NUMBER, "presence_penalty": NUMBER, "frequency_penalty": NUMBER,
    "logit_bias": dict, "stop": (str, list), "chat": str, "show_constraint": str, "retries": int,
}  # fmt: skip
"""The fields of a row with the types of their values."""
NAMES = {
    str: "a text", int: "an integer", float: "a number", list: "a list", dict: "an object", bool: "true or false",
}  # fmt: skip
Place = str | PathLike[str]


class RowLine(NamedTuple):
    """A line of the input that is not blank: its number, from 1, and its bytes; None if it is too long."""

    number: int
    data: bytes | None


class InputSummary(NamedTuple):
    """An input file: the number of its rows, and the digest of its bytes."""

    rows: int
    digest: str


@dataclass(frozen=True)
class JobRow:
    """A row. arguments: of `Engine.generate`, the prompt apart. is_json: whether its texts are JSON documents.

    error: class name and message of why the row cannot be answered. key: equal for rows of equal constraints.
    """

    number: int
    id: str | int
    prompt: Any = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    is_json: bool = False
    error: tuple[str, str] | None = None
    key: str = ""


def iterate_lines(path: Place, digest: Any = None) -> Iterator[RowLine]:
    """Yield the rows of a file, read one after the other. digest: a hash object that is fed the whole file."""
    with open(path, "rb") as file:
        number = 0
        while data := file.readline(MOST_LINE + 1):
            number += 1
            is_long = len(data) > MOST_LINE
            if digest is not None:
                digest.update(data)
            if is_long and not data.endswith(b"\n"):
                skip_line(file, digest)
            if is_long or data.strip():
                yield RowLine(number, None if is_long else data)


def skip_line(file: BinaryIO, digest: Any) -> None:
    """Read the rest of a line."""
    while data := file.readline(MOST_LINE):
        if digest is not None:
            digest.update(data)
        if data.endswith(b"\n"):
            return


def summarise_input(path: Place) -> InputSummary:
    """Return the number of rows and the SHA-256 digest of a file.

    Raise OSError if it cannot be read, ArgumentError if it is a pipe or a device, which cannot be read twice.
    """
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
        raise ArgumentError(f"{shorten_text(path)} is not a regular file", hint="The input is read twice.")
    digest = sha256()
    rows = sum(1 for _ in iterate_lines(path, digest))
    return InputSummary(rows, digest.hexdigest())


def derive_seed(seed: int, row_id: str | int) -> int:
    """Return the seed of a row: 63 bits of the SHA-256 digest of the seed of the job and the id of the row."""
    text = json.dumps([seed, row_id], ensure_ascii=True)
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1


def parse_row(line: RowLine, options: JobOptions) -> JobRow:
    """Return the row of a line. What is wrong with it is in `JobRow.error`."""
    row_id: Any = line.number
    try:
        fields = read_fields(line.data)
        row_id = fields.pop("id", line.number)
        return make_row(line.number, row_id, fields, options)
    except ConstrainError as error:
        is_id = isinstance(row_id, (str, int)) and not isinstance(row_id, bool)
        return JobRow(line.number, row_id if is_id else line.number, error=describe_error(error))


def describe_error(error: Exception) -> tuple[str, str]:
    """Return the class name and the message of an exception, as they are written to the output."""
    return type(error).__name__, shorten_text(error, MESSAGE)


def read_fields(data: bytes | None) -> dict[str, Any]:
    """Return the fields of a line other than null. Raise ArgumentError unless it is a JSON object."""
    if data is None:
        raise ArgumentError(f"the line has more than {MOST_LINE >> 20} MiB")
    try:
        fields = parse_strictly(data.decode("utf-8-sig"), Limits().nesting)
    except ValueError as error:
        raise ArgumentError(f"the line is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ArgumentError("the line is not a JSON object", hint='Give objects such as {"prompt": "..."}.')
    return {name: value for name, value in fields.items() if value is not None}


def check_fields(fields: Mapping[str, Any]) -> None:
    """Raise ArgumentError for an unknown field, a value of a wrong type, or fields that exclude each other."""
    for name, value in fields.items():
        kinds = FIELDS.get(name)
        if kinds is None:
            raise ArgumentError(
                f"the row has an unknown field {shorten_text(repr(name))}", hint=f"The fields are {', '.join(FIELDS)}."
            )
        allowed = kinds if isinstance(kinds, tuple) else (kinds,)
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            wanted = " or ".join(NAMES[kind] for kind in allowed if not (kind is int and float in allowed))
            if isinstance(value, ExactFloat) and int in allowed:
                wanted += f", of at most {MOST_DIGITS:,} digits"
            shown = value.exact if isinstance(value, ExactFloat) else repr(value)
            raise ArgumentError(f"the field {name} is {shorten_text(shown)}: it must be {wanted}")
    biases = {f"logit_bias of {token}": bias for token, bias in fields.get("logit_bias", {}).items()}
    for name, value in {**fields, **biases}.items():
        if isinstance(value, ExactFloat) and value.exact.copy_abs() > LARGEST:  # as a float it would be the largest one
            raise ArgumentError(f"{shorten_text(name)} is {shorten_text(value.exact)}: it is too large for a float")
    if not all(isinstance(one, str) for one in fields.get("choices", ())):
        raise ArgumentError("the field choices must be a list of texts")
    if not all(isinstance(one, dict) for one in fields.get("messages", ())):
        raise ArgumentError(
            "the field messages must be a list of objects", hint='Such as [{"role": "user", "content": "..."}].'
        )
    for names in (("prompt", "messages"), ("schema", "regex", "grammar", "choices")):
        given = [name for name in names if name in fields]
        if len(given) > 1:
            raise ArgumentError(f"the row has {' and '.join(given)}: give one of them")


def make_row(number: int, row_id: str | int, fields: dict[str, Any], options: JobOptions) -> JobRow:
    """Return the row of fields. Raise ConstrainError if they are wrong."""
    check_fields({"id": row_id, **fields})
    prompt = fields.pop("messages", None) or fields.pop("prompt", options.prompt)
    if prompt is None:
        raise ArgumentError("the row has no prompt", hint="Give a prompt or messages, or the job a prompt.")
    given = {name: fields.pop(name) for name in CONSTRAINTS if name in fields}
    key = sha256(write_json(plain_document(given)).encode()).hexdigest() if given else ""
    if "grammar" in given:
        given["grammar"] = options.read_grammar(given["grammar"])
    constraint = given or options.constraint
    seed = fields.pop("seed", None)
    if seed is None:
        seed = derive_seed(options.seed, row_id)
    biases = {read_token(name): bias for name, bias in fields.pop("logit_bias", {}).items()}
    arguments = {
        **options.arguments, **({"logit_bias": biases} if biases else {}), **fields, **constraint,
        "seed": seed, "style": options.style, "registry": options.registry, "base_uri": options.base_uri,
    }  # fmt: skip
    return JobRow(number, row_id, prompt, arguments, "schema" in constraint or "type" in constraint, None, key)


def read_token(name: str) -> int | str:
    """Return the token that a key of logit_bias names: an id, or the text of a token."""
    return int(name) if name.isascii() and name.isdigit() and len(name) < 10 else name
