"""Where `%import` finds its grammars, and what was read: so that a kept result can be asked whether it still holds.

The order is lark's: the folders that were given, the folder of the importing grammar if the import is relative
(`%import .names`), then the grammars that come with lark. It is done without importing lark, whose own way would not
tell what it read.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Reader"]


class Reader:
    """Finds and reads grammars. Called as lark calls a loader: with the folder of a relative import, and a path.

    read: each path that was asked for, with the folder asked from (None: not a relative import), and the text found.
    texts: the texts by the file that they were found in, the latest last.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = tuple(folders)
        self.read: dict[tuple[str | None, str], str] = {}
        self.texts: dict[str, str] = {}

    def __call__(self, base: str | None, path: str) -> tuple[str, str]:
        """The file and its text. OSError if there is none."""
        for folder in (*self.folders, *([] if base is None else [base]), library()):
            file = os.path.join(folder, path)
            try:
                text = Path(file).read_text("utf-8")
            except OSError:
                continue
            self.read[base, path] = text
            self.texts.pop(file, None)
            self.texts[file] = text
            return file, text
        raise FileNotFoundError(path)

    def available(self) -> list[str]:
        """Names of the grammars that can be imported from anywhere, sorted."""
        found: set[str] = set()
        for folder in (*self.folders, library()):
            if os.path.isdir(folder):
                found.update(name[: -len(".lark")] for name in os.listdir(folder) if name.endswith(".lark"))
        return sorted(found)


def library() -> str:
    """The folder of the grammars that come with lark."""
    spec = importlib.util.find_spec("lark")
    places = spec.submodule_search_locations if spec else None
    return os.path.join(next(iter(places)), "grammars") if places else "grammars"
