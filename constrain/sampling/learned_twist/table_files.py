"""Tables on disk: a numpy archive (.npz) without pickled objects, checked when it is read.

A state is saved as the tokens of a text that leads to it, so files hold no addresses of byte-code. Loading one reads
these texts with the constraint. A file may come from anywhere: sizes, types, ranges and the names of constraint and
vocabulary are checked, and whatever its numbers are, they only guide sampling; draws stay properly weighted.
"""

from __future__ import annotations

import json
import os
import zipfile
from hashlib import blake2b
from io import BytesIO
from os import PathLike
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...base.errors import SourceError, check_type
from ...base.file_names import check_file_name
from ...engine.constraint import Constraint
from .constraint_tables import drop_table, keep_table, renumber_table, take_table
from .state_numbers import StateNumbers
from .value_backups import MOST_SHIFT
from .value_table import HORIZONS, PACES, SMALLEST, ValueTable

__all__ = ["load_table", "save_table"]

FORMAT = 6
ARRAYS = {
    "head": (np.int64, 1), "name": (np.uint8, 1), "example_tokens": (np.int32, 1), "example_starts": (np.int64, 1),
    "slots": (np.int64, 1), "logs": (np.float64, 2), "counts": (np.float64, 1), "spreads": (np.float64, 1),
    "pairs": (np.int64, 1), "pair_logs": (np.float64, 1), "pair_counts": (np.float64, 1), "line": (np.float64, 1),
}  # fmt: skip
"""The arrays of a file: dtype and number of dimensions."""
MOST_BYTES = 1 << 28
"""Larger archives, packed or unpacked, are refused."""
MOST_POPULATIONS = 10**12
"""More populations than a table can have learned from."""
MOST_COUNT = 1e15
"""More visits than are ever counted; sums of products of larger ones would overflow."""


def save_table(constraint: Constraint, path: str | PathLike[str]) -> None:
    """Write the table of values that a constraint keeps (`sampler="smc"` and "pimh" learn it) to a file, atomically.

    Parameters
    ----------
    constraint : Constraint
    path : path-like

    Raises
    ------
    TypeError
        For arguments of other types.
    SourceError
        If the file cannot be written.
    """
    _check_arguments(constraint, path)
    table = take_table(constraint)
    examples = table.numbers.examples
    arrays: dict[str, NDArray[Any]] = {
        "head": np.array([FORMAT, table.size, table.populations], np.int64),
        "name": np.frombuffer(_name_constraint(constraint), np.uint8),
        "example_tokens": np.array([token for one in examples for token in one], np.int32),
        "example_starts": np.cumsum([0, *map(len, examples)]).astype(np.int64),
        "slots": table.slots, "logs": table.logs, "counts": table.counts, "spreads": table.spreads,
        "pairs": table.pairs, "pair_logs": table.pair_logs, "pair_counts": table.pair_counts,
        "line": np.array(table.line),
    }  # fmt: skip
    target = Path(path).absolute()
    try:
        _write_arrays(target, arrays)
    except OSError as error:
        hint = "Make its folder first." if not target.parent.exists() else "Give the path of a file, not of a folder."
        hint = hint if not target.parent.is_dir() or target.is_dir() else ""
        raise SourceError(f"{path} cannot be written: {error.strerror or error}", hint=hint) from error


def _write_arrays(target: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays to a file, which is replaced atomically. Raise OSError."""
    with NamedTemporaryFile(dir=target.parent, prefix=target.name, delete=False) as file:
        try:
            np.savez_compressed(file, allow_pickle=False, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise


def load_table(constraint: Constraint, path: str | PathLike[str]) -> ValueTable:
    """Read a table that `save_table` wrote for an equal constraint and vocabulary, and keep it with the constraint.

    Parameters
    ----------
    constraint : Constraint
    path : path-like

    Returns
    -------
    ValueTable
        The table, which can also be given as `twist=`.

    Raises
    ------
    TypeError
        For arguments of other types.
    SourceError
        If the file cannot be read, is damaged, too large, or of another constraint or vocabulary.
    """
    _check_arguments(constraint, path)
    arrays = _read_arrays(Path(path))
    if arrays["name"].tobytes() != _name_constraint(constraint):
        raise SourceError(f"{path} is a table of values for another constraint or vocabulary.")
    try:
        table = renumber_table(_check_table(arrays, constraint), constraint)
    except (ValueError, IndexError, OverflowError) as error:
        raise SourceError(f"{path} is a damaged table of values: {error}") from None
    drop_table(constraint)
    keep_table(constraint, table)
    return table.copy()


def _check_arguments(constraint: object, path: object) -> None:
    """Raise TypeError unless the arguments are a Constraint and a path."""
    check_type("constraint", constraint, Constraint, "make one with constrain.compile")
    check_type("path", path, (str, PathLike), "give the path of a file")
    check_file_name(cast("str | PathLike[str]", path))


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, of the right names, types and dimensions."""
    damaged = SourceError(f"{path} is not a table of values that `save_table` wrote.")
    try:
        with path.open("rb") as file:
            data = BytesIO(file.read(MOST_BYTES + 1))
    except OSError as error:
        hint = "Give the path of a file that `save_table` wrote; without one, the first calls learn a table."
        raise SourceError(f"{path} cannot be read: {error.strerror or error}", hint=hint) from error
    if len(data.getbuffer()) > MOST_BYTES:
        raise damaged
    try:
        with zipfile.ZipFile(data) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
                raise damaged
        with np.load(data, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in ARRAYS}
    except Exception:  # zipfile and numpy raise whatever damaged data lead them to
        raise damaged from None
    if any(array.dtype != ARRAYS[name][0] or array.ndim != ARRAYS[name][1] for name, array in arrays.items()):
        raise damaged
    return arrays


def _check_table(arrays: dict[str, NDArray[Any]], constraint: Constraint) -> ValueTable:
    """Return the table that arrays describe, with states that only have examples yet. Raise ValueError."""
    head, line = arrays["head"].tolist(), arrays["line"].tolist()
    logs, counts, pairs = arrays["logs"], arrays["counts"], arrays["pairs"]
    starts, tokens = arrays["example_starts"].tolist(), arrays["example_tokens"].tolist()
    slots, size, states = arrays["slots"], constraint.vocabulary.size, len(arrays["example_starts"]) - 1
    _check(len(head) == 3 and head[0] == FORMAT and head[1] == size and head[2] >= 0, "another version or vocabulary")
    _check(head[2] <= MOST_POPULATIONS, f"values of {head[2]} populations, where at most {MOST_POPULATIONS} are taken")
    _check(len(slots) == len(logs) == len(counts) == len(arrays["spreads"]), "shapes of values")
    _check(0 < logs.shape[1] <= len(HORIZONS), "shapes of values")
    _check(bool((np.diff(slots) > 0).all()), "slots not ascending")
    _check(not len(slots) or (slots[0] >= 0 and slots[-1] < states * PACES), "slots out of range")
    _check(states >= 0 and starts[0] == 0 and starts[-1] == len(tokens), "examples")
    _check(all(a <= b for a, b in zip(starts, starts[1:])) and all(0 <= token < size for token in tokens), "examples")
    _check(len(pairs) == len(arrays["pair_logs"]) == len(arrays["pair_counts"]), "pairs")
    _check(bool((np.diff(pairs) > 0).all()), "pairs not ascending")
    _check(not len(pairs) or (pairs[0] >= 0 and pairs[-1] < states * size), "pairs out of range")
    _check(bool(((logs <= 0) & (logs > -1000)).all()), "values outside (0, 1]")
    _check(bool((np.abs(arrays["pair_logs"]) <= MOST_SHIFT).all()), "shifts out of range")
    for name in ("counts", "spreads", "pair_counts"):
        values = arrays[name].astype(np.float64)
        _check(bool(((values >= 0) & (values <= MOST_COUNT)).all()), "counts or spreads out of range")
    # A slope is a mean of slopes between whole numbers of bytes, whose log-values are in [SMALLEST, 0].
    _check(len(line) == 2 and abs(line[0]) <= MOST_COUNT and 2 * SMALLEST <= line[1] <= 0, "the line")
    numbers = StateNumbers(-1)
    numbers.examples = [tuple(tokens[a:b]) for a, b in zip(starts, starts[1:])]
    return ValueTable(
        numbers, size, slots, logs, counts, arrays["spreads"], pairs, arrays["pair_logs"], arrays["pair_counts"],
        (line[0], line[1]), head[2],
    )  # fmt: skip


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _name_constraint(constraint: Constraint) -> bytes:
    """Return a digest of the source of a constraint and of its vocabulary."""
    source = constraint.source
    text = repr(constraint.grammar) if source is None else json.dumps(source, default=repr)
    return blake2b(f"{constraint.vocabulary.fingerprint}\n{text}".encode(), digest_size=32).digest()
