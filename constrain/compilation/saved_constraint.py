"""Saved constraints: the source of a Constraint as JSON, validated before use.

A file has two lines: the format and a digest, and the body {"source", "limits", "vocabulary"}. A file may come from an
untrusted source, so loading it means compiling untrusted text: types, size and nesting are checked before anything else
reads the body; its limits can only lower those of the caller; and it names no other files. Pickling uses the same body.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

from .. import dialogue  # noqa: F401  (whose forms may be in a file)
from ..base.errors import LimitError, SourceError, UnsupportedError, shorten_text
from ..base.file_names import check_file_name
from ..base.json_documents import find_deeper
from ..base.options import Limits, Style
from ..cache.sealed_files import replace_file
from ..engine.constraint import Constraint
from ..forms.form_json import read_form
from ..vocabulary.vocabulary import Vocabulary
from .constraint_compiler import check_options, compile

__all__ = ["constraint_json", "load_constraint", "reduce_constraint", "restore_constraint", "save_constraint"]

FORMAT = "constrain 1"
MOST_BYTES = 64 << 20
"""Longer files are refused."""
WRAPPING = 8
"""Levels of brackets around the source in a body."""
SOURCES = ("schema", "regex", "choices", "form")
WRONG = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError)


def constraint_json(constraint: Constraint) -> str:
    """Return the body of a constraint as JSON. Raise UnsupportedError if its source cannot be written as JSON."""
    if constraint.source is None:
        raise UnsupportedError(
            "A constraint made from Grammar nodes cannot be saved or pickled.",
            hint="Save what the Grammar was made from, or compile it where it is needed.",
        )
    body = {
        "source": constraint.source,
        "limits": asdict(constraint.limits),
        "vocabulary": constraint.vocabulary.fingerprint,
    }
    try:
        return json.dumps(body)  # unsorted: the order of keys is part of a schema
    except RecursionError:
        raise LimitError("The source is nested too deeply to be written as JSON.") from None
    except (TypeError, ValueError) as error:
        raise UnsupportedError(f"The source cannot be written as JSON: {error}.") from None


def save_constraint(constraint: Constraint, path: str | os.PathLike[str]) -> None:
    """Save a constraint atomically, readable by this user only, and never through a symbolic link."""
    text = constraint_json(constraint)
    head = {"format": FORMAT, "digest": digest_text(text)}
    target = Path(os.path.abspath(path))
    check_file_name(path)
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        replace_file(folder, target.name, [f"{json.dumps(head)}\n{text}\n".encode()], sync=os.fsync)
    finally:
        os.close(folder)


def load_constraint(path: str | os.PathLike[str], vocabulary: Vocabulary, limits: Limits) -> Constraint:
    """Load and compile a constraint that `save_constraint` wrote. See `Constraint.load`."""
    check_options(vocabulary, Style(), None, limits)
    name = shorten_text(os.fspath(path))
    try:
        head_text, text = read_text(path, name).split("\n", 1)
        head = json.loads(head_text) if len(head_text) < 1000 else None
    except ValueError as error:
        raise SourceError(f"{name} is not a saved constraint: {shorten_text(error)}.") from None
    text = text.rstrip("\n")
    if not isinstance(head, dict) or head.get("format") != FORMAT or head.get("digest") != digest_text(text):
        raise SourceError(f"{name} is damaged or of another version.", hint="Save the constraint again.")
    return compile_body(text, vocabulary, limits, name)


def reduce_constraint(constraint: Constraint) -> tuple[Any, ...]:
    """Return the pickle reduction of a constraint."""
    return restore_constraint, (constraint_json(constraint), constraint.vocabulary)


def restore_constraint(text: str, vocabulary: Vocabulary) -> Constraint:
    """Return the constraint of a pickled body, with its own limits."""
    return compile_body(text, vocabulary, None, "what was pickled")


def digest_text(text: str) -> str:
    """Return the digest of a body. It detects damage, not tampering."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def read_text(path: str | os.PathLike[str], name: str) -> str:
    """Read a regular file of bounded size without blocking (on a pipe, for example)."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise SourceError(f"{name} is not a saved constraint: it is not a regular file.")
        with open(handle, "rb", closefd=False) as file:
            data = file.read(MOST_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > MOST_BYTES:
        raise SourceError(f"{name} is not a saved constraint: it has more than {MOST_BYTES:,} bytes.")
    return data.decode()


def compile_body(text: str, vocabulary: Vocabulary, limits: Limits | None, name: str) -> Constraint:
    """Compile a body.

    `limits` are those of the caller, which the body can only lower; None uses the limits of the body.
    """
    most = (Limits() if limits is None else limits).nesting
    if find_deeper(text, most + WRAPPING) >= 0:
        raise LimitError(
            f"{name} is nested more deeply than Limits.nesting = {most}.", hint="Raise Limits(nesting=...)."
        )
    try:
        body = json.loads(text)
        checked = check_body(body)
        own = Limits(**checked["limits"])
        style = Style(**checked["style"])
    except RecursionError:
        raise LimitError(f"{name} is nested too deeply to be read.") from None
    except WRONG as error:
        raise SourceError(f"{name} is not a saved constraint: {shorten_text(error)}.") from None
    if checked["vocabulary"] != vocabulary.fingerprint:
        raise SourceError(f"{name} was saved for another vocabulary.", hint="Compile its source for this one.")
    if limits is not None:
        own = Limits(**{one.name: min(getattr(own, one.name), getattr(limits, one.name)) for one in fields(Limits)})
    source = checked["source"]
    if "form" in source:
        source["form"] = read_form(source["form"])
    try:
        return compile(vocabulary, style=style, limits=own, **source)
    except WRONG as error:
        raise SourceError(f"{name} does not describe a constraint: {shorten_text(error)}.") from None
    except RecursionError:
        raise LimitError(f"{name} is nested too deeply to be compiled.") from None


def check_body(body: Any) -> dict[str, Any]:
    """Return source, style, limits and vocabulary of a body. Raise ValueError if one is missing or of a wrong type."""
    parts: dict[str, Any] = {}
    for part, kind in (("source", dict), ("limits", dict), ("vocabulary", str)):
        if not isinstance(body, dict) or not isinstance(body.get(part), kind):
            raise ValueError(f"it has no {part}")
        parts[part] = body[part]
    source = dict(parts["source"])
    style = source.pop("style", {})
    if not isinstance(style, dict):
        raise ValueError("its style is not an object")
    check_source(source)
    return {**parts, "source": source, "style": style}


def check_source(source: Mapping[str, Any]) -> None:
    """Raise ValueError unless a source has exactly one source of `compile`, with arguments of the right types."""
    if sum(name in source for name in SOURCES) != 1:
        raise ValueError(f"it needs exactly one of {', '.join(SOURCES)}")
    for name, value in source.items():
        if name == "schema":
            right = isinstance(value, (dict, bool, str))
        elif name in ("regex", "base_uri"):
            right = isinstance(value, str)
        elif name == "choices":
            right = isinstance(value, list) and all(isinstance(one, str) for one in value)
        elif name in ("form", "registry"):
            right = isinstance(value, dict)
        else:
            raise ValueError(f"it has an unknown part {shorten_text(repr(name))}")
        if not right:
            raise ValueError(f"its {name} is of a wrong type")
