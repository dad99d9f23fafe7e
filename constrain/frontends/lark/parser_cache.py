"""Parser cache: finished parsers on disk, so that a grammar is compiled to tables only once per machine.

The content of a file (sealed, see `cache.sealed_files`) is the length of its head, the head as JSON (the key, the
imports, names and shapes of arrays), and the arrays, which are used where they lie. The file name is a digest of
everything that determines the parser except the imported texts: imports are resolved again, in their order, and
compared, so that a new file that takes precedence in a folder is noticed. lark itself is not imported. Nothing in a
file is ever executed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...cache.cache_folder import digest_code
from ...cache.sealed_files import prune_folder, read_sealed, write_sealed
from ...lalr.lalr_tables import Lalr
from ...lalr.parser_code import IndentationLayout, Parser
from ...lalr.productions import Productions
from ...lalr.scanner_tables import Scanner
from .lark_imports import ImportReader, Module, ModuleNotFound

__all__ = ["CachedParser"]

SUFFIX = ".parser"
ALIGNMENT = 8
"""Bytes of the largest numbers in arrays; the arrays whose numbers are as large come first."""
MOST_FILES = 64
MOST_BYTES = 64 << 20
"""Most files and bytes in the cache; the oldest files are removed. The parser of Python takes 2 MB."""

Imports = Iterable[tuple[str | None, str, str]]

_T = TypeVar("_T", Scanner, Lalr)


class CachedParser:
    """Cache entry of one parser.

    Parameters
    ----------
    folder : Path
        The folder of the cache, which may be removed at any time.
    key : sequence of str
        The cache key without the imported texts: each argument as text.
    import_paths : sequence of str
        Folders for `%import`.
    modules : sequence of Module
        Modules that were read before.
    """

    def __init__(
        self, folder: Path, key: Sequence[str], import_paths: Sequence[str], modules: Sequence[Module] = ()
    ) -> None:
        self.folder = folder
        self.import_paths, self.modules = import_paths, modules
        self.key = digest_texts(digest_code().hex(), installed_lark_version(), *key, *import_paths)

    @property
    def path(self) -> Path:
        """The file of this parser, which may not exist."""
        return self.folder / f"{self.key[:32]}{SUFFIX}"

    def fetch(self) -> Parser | None:
        """Return the parser if it is cached and its imports are unchanged, else None."""
        data = read_sealed(self.path, digest_code())
        if data is None:
            return None
        try:
            first = ALIGNMENT + int.from_bytes(data[:ALIGNMENT], "little")
            head = json.loads(bytes(data[ALIGNMENT:first]))
            if head["key"] != self.key:
                return None
            reader = ImportReader(self.import_paths, self.modules)
            if any(digest_texts(reader(base, path)[1]) != found for base, path, found in head["imports"]):
                return None
            arrays = {}
            for name, kind, shape in head["arrays"]:
                dtype = np.dtype(kind)
                count = int(np.prod(shape, dtype=np.int64))
                arrays[name] = np.frombuffer(data, dtype, count, first).reshape(shape)
                first += count * dtype.itemsize
            return _from_parts(head["facts"], arrays)
        except (OSError, ValueError, KeyError, TypeError, ModuleNotFound):
            return None  # Missing or invalid: the parser is built again.

    def store(self, parser: Parser, imports: Imports) -> None:
        """Write a parser. imports: as in `LoadedGrammar`."""
        facts, arrays = _to_parts(parser)
        head = {
            "key": self.key,
            "imports": [[base, path, digest_texts(text)] for base, path, text in imports],
            "facts": facts,
            "arrays": [[name, array.dtype.str, array.shape] for name, array in arrays.items()],
        }
        line = json.dumps(head).encode()
        line += b" " * (-len(line) % ALIGNMENT)
        body = [np.ascontiguousarray(array).data for array in arrays.values()]
        write_sealed(self.path, digest_code(), [len(line).to_bytes(ALIGNMENT, "little"), line, *body])
        prune_folder(self.folder, SUFFIX, MOST_FILES, MOST_BYTES)


def _to_parts(parser: Parser) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Split a parser into values that JSON can represent, and arrays."""
    rules = {each.name: getattr(parser.productions, each.name) for each in fields(Productions)}
    facts: dict[str, Any] = {"ignored": sorted(parser.ignored), "layout": None, "dead_ends": parser.dead_ends}
    facts["productions"] = rules | {"display_names": sorted(parser.productions.display_names.items())}
    arrays: dict[str, NDArray[Any]] = {"scan": parser.scan}
    for prefix, tables in (("scanner", parser.scanner), ("table", parser.table)):
        for each in fields(tables):
            value = getattr(tables, each.name)
            (arrays if isinstance(value, np.ndarray) else facts)[f"{prefix}.{each.name}"] = value
    if (layout := parser.layout) is not None:
        values = {each.name: getattr(layout, each.name) for each in fields(layout)}
        facts["layout"] = {name: sorted(v) if isinstance(v, frozenset) else v for name, v in values.items()}
    return facts, dict(sorted(arrays.items(), key=lambda item: -item[1].itemsize))


def _from_parts(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Parser:
    """Build a parser from the values and arrays of `_parts`."""
    values: dict[str, Any] = {name: _to_tuples(fact) for name, fact in facts.items()} | arrays
    rules = {name: _to_tuples(fact) for name, fact in facts["productions"].items()}

    def build_tables(kind: type[_T], prefix: str) -> _T:
        return kind(**{each.name: values[f"{prefix}.{each.name}"] for each in fields(kind)})

    layout_fields: dict[str, Any] = {
        n: frozenset(v) if isinstance(v, list) else v for n, v in (facts["layout"] or {}).items()
    }
    return Parser(
        scanner=build_tables(Scanner, "scanner"),
        table=build_tables(Lalr, "table"),
        productions=Productions(**rules | {"display_names": dict(rules["display_names"])}),
        scan=arrays["scan"],
        ignored=frozenset(facts["ignored"]),
        layout=IndentationLayout(**layout_fields) if layout_fields else None,
        dead_ends=facts["dead_ends"],
    )


def _to_tuples(value: Any) -> Any:
    """Convert lists to tuples, recursively, since JSON has no tuples."""
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value


def digest_texts(*texts: str) -> str:
    """Return a hexadecimal digest of all the texts."""
    return sha256(json.dumps(texts).encode()).hexdigest()


@lru_cache(maxsize=1)
def installed_lark_version() -> str:
    """Return the line of the installed lark that states its version, or "unknown".

    lark is not imported, and neither is `importlib.metadata`, which takes longer than reading a parser.
    """
    spec = find_spec("lark")
    try:
        text = "" if spec is None or spec.origin is None else Path(spec.origin).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return "unknown"
    return next((line for line in text.splitlines() if line.startswith("__version__")), "unknown")
