"""The languages that are measured: a grammar, the options of Lark for it, and texts.

Texts of Python are the files of the standard library; texts of the others are random sentences of the grammar that Lark
accepts (`tests/sentence_factory.py`).
"""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from constrain import grammars

__all__ = ["LANGUAGES", "Language", "Text", "list_library_files", "list_missing", "draw_sentences", "read_grammar"]


@dataclass(frozen=True, slots=True)
class Language:
    """A grammar with the options of Lark. made: whether its texts are drawn from it, not Python's standard library."""

    name: str
    text: str
    start: str
    lexer: str
    indented: bool
    made: bool


@dataclass(frozen=True, slots=True)
class Text:
    """A text and its name."""

    name: str
    content: bytes


LANGUAGES = ("python-lark", "python", "json", "sql", "arithmetic", "c", "java", "go")
"""python-lark: the grammar in the lark package. WRITTEN: grammars in the folder `written`. The others are those of
`constrain/grammars`."""
WRITTEN = ("java", "go")
PUBLISHED = ("python", "java", "go", "sql", "json")
"""The languages of Park et al. 2025 (GreatGramma, "Flexible and Efficient Grammar-Constrained Decoding"); ``--what
speed`` prints its measures of them in a table of their own."""


def list_missing() -> list[str]:
    """Return the names of LANGUAGES that have no grammar yet."""
    known = {"python-lark", *WRITTEN, *grammars.names()}
    return [name for name in LANGUAGES if name not in known]


def load_language(name: str) -> Language:
    """Return the language of a name. Raises KeyError, ConstrainError."""
    if name not in LANGUAGES:
        raise KeyError(name)
    if name == "python-lark":
        import lark

        text = Path(lark.__file__).with_name("grammars").joinpath("python.lark").read_text("utf-8")
        return Language(name, text, "file_input", "contextual", True, False)
    ready = read_grammar(name)
    return Language(name, ready.text, "start", ready.lexer, ready.indented, name != "python")


def read_grammar(name: str) -> grammars.Ready:
    """Return a grammar of the library, or one of WRITTEN."""
    if name not in WRITTEN:
        return grammars.read(name)
    text = Path(__file__).with_name("written").joinpath(f"{name}.lark").read_text("utf-8")
    return grammars.Ready(name, text, "contextual", False, (), ())


def list_library_files(tests: bool) -> Iterator[Text]:
    """Yield the files of the standard library of this Python. tests: with the folders test, tests and idle_test."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if "site-packages" in name.parts or (not tests and {"test", "tests", "idle_test"} & set(name.parts)):
            continue
        yield Text(str(name), path.read_bytes())


def draw_sentences(name: str, count: int, seed: int) -> Iterator[Text]:
    """Draw four times as many sentences of a grammar, and yield the longest quarter."""
    import lark.lexer

    from tests.sentence_factory import Maker

    lark.lexer.has_interegular = False  # see `oracle.build_parser_of`
    drawn = Maker(read_grammar(name)).draw(random.Random(f"{seed} {name}"), 4 * count)
    drawn = sorted(drawn, key=len, reverse=True)[:count]
    for index, text in enumerate(drawn):
        yield Text(f"{name} {index}", text.encode())
