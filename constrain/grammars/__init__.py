"""Ready grammars: one file NAME.lark a language, with NAME.examples beside it. Data; see grammars/README.md.

The head of a grammar says which specification it follows, what it leaves out, and how it is read: `Read with:` names
the lexer of Lark (contextual or basic) and, where blocks are indented, Lark's PythonIndenter.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from ..base.errors import ConstrainError, check_type, shorten_text

__all__ = ["Ready", "examples", "names", "read", "text"]

BLOCK = re.compile(r"^--- (accept|reject)( as JSON)?\n", re.MULTILINE)
READ_WITH = re.compile(r"^// Read with: LALR\(1\), (contextual|basic) lexer(, PythonIndenter)?\.$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ready:
    """A grammar of the library.

    text: its source, Lark's dialect, start rule `start`. lexer: which of Lark's it is written for. indented: whether
    Lark's `PythonIndenter` stands between lexer and parser. accepts, rejects: texts that it must accept, and refuse.
    """

    name: str
    text: str
    lexer: Literal["contextual", "basic"]
    indented: bool
    accepts: tuple[str, ...]
    rejects: tuple[str, ...]


def names() -> tuple[str, ...]:
    """The names of all ready grammars, sorted."""
    here = (file.name for file in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".lark") for name in here if name.endswith(".lark")))


def read(name: str) -> Ready:
    """The grammar of this name with all that its files say. ConstrainError if there is none."""
    check_type("name", name, str, "give the name of a ready grammar")
    return read_files(name)


@cache
def read_files(name: str) -> Ready:
    """The grammar of this name with all that its files say. ConstrainError if there is none."""
    if name not in names():
        raise ConstrainError(f"no ready grammar is called {shorten_text(repr(name))}; there are {', '.join(names())}")
    source = files(__name__).joinpath(f"{name}.lark").read_text("utf-8")
    how = READ_WITH.search(source)
    if how is None:
        raise ConstrainError(f"the head of {name}.lark does not say how it is read ('Read with: ...')")
    accepts, rejects = examples(files(__name__).joinpath(f"{name}.examples").read_text("utf-8"))
    lexer: Literal["contextual", "basic"] = "basic" if how[1] == "basic" else "contextual"
    return Ready(name, source, lexer, how[2] is not None, accepts, rejects)


def text(name: str) -> str:
    """The source of a ready grammar, as `constrain.compile(vocabulary, grammar=...)` takes it."""
    return read(name).text


def examples(content: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(texts to accept, texts to refuse) from the content of a file of examples.

    A line `--- accept` or `--- reject` begins a block; its text is what stands below, up to the next such line, without
    the last line end. With ` as JSON` behind it, the block is a JSON string, for characters that an editor might lose.
    """
    parts = BLOCK.split(content)
    if parts[0].strip():
        raise ConstrainError(f"a file of examples begins with '--- accept' or '--- reject', not {parts[0][:40]!r}")
    found: dict[str, list[str]] = {"accept": [], "reject": []}
    for verdict, spelled, block in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        body = block.removesuffix("\n")
        found[verdict].append(json.loads(body) if spelled else body)
    return tuple(found["accept"]), tuple(found["reject"])
