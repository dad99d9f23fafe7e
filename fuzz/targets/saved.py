"""Saved constraints from untrusted files, with a correct digest.

saved  a saved constraint is damaged, or its body is changed and its digest recomputed; loading it succeeds or raises a
       ConstrainError, and never increases limits of the process
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from hashlib import blake2b
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import constrain
from constrain import Constraint, Limits

from ..edits import damage_text
from ..findings import Disagreement
from ..target import Target, suppress_our_errors
from ..walk import BYTES, walk

__all__ = ["TARGETS"]

FORMS = (
    lambda: constrain.json_schema({"type": "object", "properties": {"a": {"type": "integer"}}}),
    lambda: constrain.regex("a+b") | constrain.literal("c"),
    lambda: constrain.gbnf('root ::= "a" root | "b"'),
    lambda: constrain.lark('start: "a" start | "b"'),
)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 10**15, 1.5, 10**400, "", "x", [], {}, [[]], {"kind": "Literal"}, "%import .secret.A"]),
    st.text(max_size=5),
)


@st.composite
def forge_files(draw: st.DrawFn, which: int) -> bytes:
    """Draw a saved file with a changed body and a correct digest."""
    head, _, body = save_form(which).partition(b"\n")
    value = json.loads(body)
    for _ in range(draw(st.integers(1, 3))):
        replace_place(draw, value)
    text = json.dumps(value, sort_keys=True)
    signed = {**json.loads(head), "digest": blake2b(text.encode(), digest_size=16).hexdigest()}
    return json.dumps(signed).encode() + b"\n" + text.encode() + b"\n"


def replace_place(draw: st.DrawFn, value: Any) -> None:
    """Change, add or delete one member somewhere in a JSON value."""
    here = value
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        if not isinstance(here[key], (dict, list)) or not here[key] or draw(st.integers(0, 3)) == 0:
            break
        here = here[key]
    how = draw(st.sampled_from(["change", "delete", "add"]))
    if how == "delete":
        del here[key]
    elif how == "add" and isinstance(here, dict):
        here[draw(st.sampled_from(["import_paths", "limits", "dfa_states", "start", "kind", "x"]))] = deepcopy(
            draw(ODD)
        )
    else:
        here[key] = deepcopy(draw(ODD))


MADE: dict[int, bytes] = {}


def save_form(which: int) -> bytes:
    """Return the saved file of one of FORMS."""
    if which not in MADE:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "saved"
            constrain.compile(BYTES, FORMS[which]()).save(path)
            MADE[which] = path.read_bytes()
    return MADE[which]


numbers = st.integers(0, len(FORMS) - 1)
files = st.one_of(
    numbers.flatmap(forge_files),
    numbers.flatmap(lambda which: damage_text(st.just(save_form(which)))),
    st.binary(max_size=64),
)


@contextmanager
def write_file(data: bytes, name: str = "saved") -> Iterator[Path]:
    """Write a temporary file for the block."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        yield path


def check(data: bytes) -> None:
    """Load the file and walk along its masks."""
    with write_file(data) as path, suppress_our_errors():
        constraint = Constraint.load(path, BYTES)
        ours = Limits()
        for name in ("dfa_states", "nesting", "cases", "work"):
            if getattr(constraint.limits, name) > getattr(ours, name):
                raise Disagreement("a saved file raises the limits", f"{name}: {getattr(constraint.limits, name)}")
        walk(constraint, 1, 6)


TARGETS = (Target("saved", "saved constraints, damaged or forged", files, check),)
