"""Grammars of common languages: one file NAME.lark per language, with NAME.examples; see grammars/README.md.

The header of a grammar states which specification it follows, what it omits, and how it is parsed: `Read with:` names
the lexer of Lark (contextual or basic) and, where blocks are indented, Lark's PythonIndenter.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from ..base.errors import ConstrainError, check_type, shorten_text

__all__ = ["Ready", "examples", "names", "read", "text"]

FOLDER = Path(__file__).parent
BLOCK = re.compile(r"^--- (accept|reject)( as JSON)?\n", re.MULTILINE)
READ_WITH = re.compile(r"^// Read with: LALR\(1\), (contextual|basic) lexer(, PythonIndenter)?\.$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ready:
    """A grammar of the library.

    Attributes
    ----------
    text : str
        Its source in Lark's notation, with the start rule `start`.
    lexer : str
        The lexer of Lark for which it is written.
    indented : bool
        Whether Lark's `PythonIndenter` runs between lexer and parser.
    accepts, rejects : tuple of str
        Texts that it must accept, and texts that it must reject.
    """

    name: str
    text: str
    lexer: Literal["contextual", "basic"]
    indented: bool
    accepts: tuple[str, ...]
    rejects: tuple[str, ...]


def names() -> tuple[str, ...]:
    """Return the names of all grammars of the library, sorted."""
    here = (file.name for file in FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".lark") for name in here if name.endswith(".lark")))


def read(name: str) -> Ready:
    """Return the grammar of a name with its metadata and examples.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    Ready
        The grammar.

    Raises
    ------
    ConstrainError
        If there is no grammar of this name.
    """
    check_type("name", name, str, "give the name of a bundled grammar")
    return read_files(name)


@cache
def read_files(name: str) -> Ready:
    """Read the files of a grammar. Raise ConstrainError if there is none of this name."""
    if name not in names():
        raise ConstrainError(
            f"there is no bundled grammar called {shorten_text(repr(name))}; there are {', '.join(names())}"
        )
    source = FOLDER.joinpath(f"{name}.lark").read_text("utf-8")
    how = READ_WITH.search(source)
    if how is None:
        raise ConstrainError(f"the head of {name}.lark does not say how it is read ('Read with: ...')")
    accepts, rejects = examples(FOLDER.joinpath(f"{name}.examples").read_text("utf-8"))
    lexer: Literal["contextual", "basic"] = "basic" if how[1] == "basic" else "contextual"
    return Ready(name, source, lexer, how[2] is not None, accepts, rejects)


def text(name: str) -> str:
    """Return the source of a grammar of the library, for `constrain.compile(vocabulary, grammar=...)`."""
    return read(name).text


def examples(content: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (texts to accept, texts to reject) from the content of an examples file.

    A line `--- accept` or `--- reject` starts a block; the text of the block is everything up to the next such line,
    without the last line end. If the line ends with ` as JSON`, the block is a JSON string, for characters that an
    editor might change.
    """
    parts = BLOCK.split(content)
    if parts[0].strip():
        raise ConstrainError(f"a file of examples begins with '--- accept' or '--- reject', not {parts[0][:40]!r}")
    found: dict[str, list[str]] = {"accept": [], "reject": []}
    for verdict, spelled, block in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        body = block.removesuffix("\n")
        found[verdict].append(json.loads(body) if spelled else body)
    return tuple(found["accept"]), tuple(found["reject"])
