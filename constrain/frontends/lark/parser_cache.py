"""Parser cache: finished parsers on disk, so that a grammar is read, analysed and made into tables once per machine.

The content of a file (sealed, see `constrain.cache`) is a line of JSON (the key, what was imported, names and lengths)
and the arrays after it. It is named by a digest of everything that decides what is in it except the imported texts:
those are looked up again, in the order of the imports, and compared, so that a new file that comes first in a folder
counts too. lark itself is not imported. Nothing in a file is ever executed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...cache.cache_folder import digest_code
from ...cache.sealed_files import prune_folder, read_sealed, write_sealed
from ...lalr.lalr_tables import Lalr
from ...lalr.parser_code import IndentationLayout, Parser
from ...lalr.productions import Productions
from ...lalr.scanner import Scanner
from .lark_imports import ImportReader, Module, ModuleNotFound

__all__ = ["CachedParser"]

SUFFIX = ".parser"
MOST_FILES = 64
MOST_BYTES = 256 << 20
"""Parsers kept, the latest written: Python's takes 2 MB."""

Imports = Iterable[tuple[str | None, str, str]]

_T = TypeVar("_T", Scanner, Lalr)


class CachedParser:
    """The place of one parser. folder: where parsers are kept; it may be removed at any time.

    asked: what was asked for besides the imported texts, each argument as text, and the folder of the grammar itself if
    it has relative imports. import_paths: folders for `%import`.
    """

    def __init__(
        self, folder: Path, asked: Sequence[str], import_paths: Sequence[str], modules: Sequence[Module] = ()
    ) -> None:
        self.folder = folder
        self.import_paths, self.modules = import_paths, modules
        self.asked = digest_texts(digest_code().hex(), installed_lark_version(), *asked, *import_paths)

    @property
    def path(self) -> Path:
        """The file of this parser, which may not exist."""
        return self.folder / f"{self.asked[:32]}{SUFFIX}"

    def fetch(self) -> Parser | None:
        """The parser, if it is kept and what it imports is as it was."""
        data = read_sealed(self.path, digest_code())
        if data is None:
            return None
        try:
            line, body = bytes(data).split(b"\n", 1)
            head = json.loads(line)
            if head["asked"] != self.asked:
                return None
            reader = ImportReader(self.import_paths, self.modules)
            if any(digest_texts(reader(base, path)[1]) != found for base, path, found in head["imports"]):
                return None
            arrays, first = {}, 0
            for name, kind, shape in head["arrays"]:
                dtype = np.dtype(kind)
                count = int(np.prod(shape, dtype=np.int64))
                arrays[name] = np.frombuffer(body, dtype, count, first).reshape(shape)
                first += count * dtype.itemsize
            return _parser(head["facts"], arrays)
        except (OSError, ValueError, KeyError, TypeError, ModuleNotFound):
            return None  # not there, or not ours: it is made anew

    def keep(self, parser: Parser, imports: Imports) -> None:
        """Write a parser. imports: as in `Loaded`."""
        facts, arrays = _parts(parser)
        body = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
        head = {
            "asked": self.asked,
            "imports": [[base, path, digest_texts(text)] for base, path, text in imports],
            "facts": facts,
            "arrays": [[name, array.dtype.str, array.shape] for name, array in arrays.items()],
        }
        write_sealed(self.path, digest_code(), [json.dumps(head).encode() + b"\n", body])
        prune_folder(self.folder, SUFFIX, MOST_FILES, MOST_BYTES)


def _parts(parser: Parser) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What is not an array, fit for JSON, and what is."""
    rules = {each.name: getattr(parser.productions, each.name) for each in fields(Productions)}
    facts: dict[str, Any] = {"ignored": sorted(parser.ignored), "layout": None, "dead_ends": parser.dead_ends}
    facts["productions"] = rules | {"shown": sorted(parser.productions.shown.items())}
    arrays: dict[str, NDArray[Any]] = {"scan": parser.scan}
    for room, tables in (("scanner", parser.scanner), ("table", parser.table)):
        for each in fields(tables):
            value = getattr(tables, each.name)
            (arrays if isinstance(value, np.ndarray) else facts)[f"{room}.{each.name}"] = value
    if (layout := parser.layout) is not None:
        values = {each.name: getattr(layout, each.name) for each in fields(layout)}
        facts["layout"] = {name: sorted(v) if isinstance(v, frozenset) else v for name, v in values.items()}
    return facts, arrays


def _parser(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Parser:
    """What `_parts` took apart."""
    values: dict[str, Any] = {name: _frozen(fact) for name, fact in facts.items()} | arrays
    rules = {name: _frozen(fact) for name, fact in facts["productions"].items()}

    def tables(kind: type[_T], room: str) -> _T:
        return kind(**{each.name: values[f"{room}.{each.name}"] for each in fields(kind)})

    sides: dict[str, Any] = {n: frozenset(v) if isinstance(v, list) else v for n, v in (facts["layout"] or {}).items()}
    return Parser(
        scanner=tables(Scanner, "scanner"),
        table=tables(Lalr, "table"),
        productions=Productions(**rules | {"shown": dict(rules["shown"])}),
        scan=arrays["scan"],
        ignored=frozenset(facts["ignored"]),
        layout=IndentationLayout(**sides) if sides else None,
        dead_ends=facts["dead_ends"],
    )


def _frozen(value: Any) -> Any:
    """Lists, which JSON has, as the tuples that they were."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def digest_texts(*texts: str) -> str:
    """One number for all the texts, in hexadecimal digits."""
    return sha256(json.dumps(texts).encode()).hexdigest()


@lru_cache(maxsize=1)
def installed_lark_version() -> str:
    """The version of lark that is installed."""
    try:
        return version("lark")
    except PackageNotFoundError:
        return "unknown"
