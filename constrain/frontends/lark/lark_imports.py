"""Resolve `%import`: from the grammars that ship with lark or constrain, and from folders that the caller names.

The text of a grammar may be untrusted, so it never decides which files are read. A module is searched in
`import_paths`, in order; then, for a relative import (`%import .names`) inside an imported module, in that module's own
folder; then in lark's grammars and in constrain's. The current folder and the folder of the grammar text are not
searched. A file is read only if it is a regular file of bounded size inside its folder, after symbolic links are
resolved.

`ImportReader` also records what was read: a cached parser is compared with it, and a serialised grammar contains the
texts instead of the folders (`modules`), so that loading it opens no file.
"""

from __future__ import annotations

import importlib.util
import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...base.errors import GrammarError
from ...base.work import spend_work

__all__ = ["Module", "ModuleNotFound", "ImportReader"]

MOST_BYTES = 1 << 20
"""Size in bytes of the largest file that is read. Lark's own Python grammar has 10 KB."""
MOST_READS = 32
"""Most reads of the same module by one grammar; it ends cyclic imports."""

Module = tuple["str | None", str, str, str]
"""The importing folder, the requested path, the resolved name of the module, and its text."""

VIRTUAL = re.compile(r"(import_paths\[\d+\]|lark|constrain)(?:/(.*))?", re.S)
"""Virtual folder names, which modules see instead of real ones; real names appear in messages only."""


class ModuleNotFound(Exception):
    """No importable module has this path.

    It is not an OSError, because lark would then search folders of its own choice.
    """


class ImportReader:
    """Reader of imported grammars, with the signature of a lark loader.

    Attributes
    ----------
    folders : tuple of str
        The folders that are searched first.
    saved : dict
        Modules that another reader has read, from the parameter `modules`; they precede any folder.
    read : dict
        The text for each pair of an importing folder (None: not a relative import) and a requested path.
    texts : dict
        The text of each file, the latest last.
    names, times : dict
        The resolved name of each import, and the number of reads of each name.
    """

    def __init__(self, folders: Sequence[str], modules: Iterable[Module] = ()) -> None:
        self.folders = tuple(folders)
        self.saved = {(base, path): (name, text) for base, path, name, text in modules}
        self.read: dict[tuple[str | None, str], str] = {}
        self.texts: dict[str, str] = {}
        self.names: dict[tuple[str | None, str], str] = {}
        self.times: dict[str, int] = {}

    @property
    def modules(self) -> tuple[Module, ...]:
        """The modules that were read and do not ship with lark or constrain, for another reader."""
        found = ((base, path, self.names[base, path], text) for (base, path), text in self.read.items())
        return tuple(module for module in found if module[2].startswith("import_paths"))

    def __call__(self, base: str | None, path: str) -> tuple[str, str]:
        """Return the name of a module and its text; raise ModuleNotFound if there is none."""
        base = base if base is not None and VIRTUAL.fullmatch(base) else "" if base is not None else None
        if (base, path) in self.saved:
            name, text = self.saved[base, path]
            return self._record(base, path, name, path, text)
        for folder in self._relative_folders(base):
            file = self._real_path(folder, path)
            found = None if file is None else read_regular(file, self._folder_root(folder))
            if file is not None and found is not None:
                return self._record(base, path, f"{folder}/{path}", file, found)
        raise ModuleNotFound(path)

    def _record(self, base: str | None, path: str, name: str, file: str, text: str) -> tuple[str, str]:
        spend_work(200 + 10 * len(text), "the imports of a grammar")
        self.times[name] = self.times.get(name, 0) + 1
        if self.times[name] > MOST_READS:
            raise GrammarError(
                f"%import: the module {path} imports itself, or is imported more than {MOST_READS} times",
                hint="Import everything that is needed from it in one statement.",
            )
        self.read[base, path], self.names[base, path] = text, name
        self.texts.pop(file, None)
        self.texts[file] = text
        return name, text

    def _relative_folders(self, base: str | None) -> list[str]:
        """Return the virtual names of the folders in which a module is searched."""
        given = [f"import_paths[{k}]" for k in range(len(self.folders))]
        return [*given, *([base] if base else []), "lark", "constrain"]

    def _folder_root(self, folder: str) -> str:
        """Return the real folder that must contain a module."""
        name = folder.partition("/")[0]
        if name in ("lark", "constrain"):
            return lark_library_folder() if name == "lark" else ready_grammars_folder()
        return self.folders[int(name[len("import_paths[") : -1])]

    def _real_path(self, folder: str, path: str) -> str | None:
        """Return the file of a module, or None if there is no such folder."""
        name, _, inner = folder.partition("/")
        if name.startswith("import_paths") and int(name[len("import_paths[") : -1]) >= len(self.folders):
            return None
        return os.path.join(self._folder_root(folder), inner, path)

    def available(self) -> list[str]:
        """Return the names of the grammars that can be imported by an absolute name, sorted."""
        names: set[str] = set()
        for folder in (*self.folders, lark_library_folder(), ready_grammars_folder()):
            if os.path.isdir(folder):
                names.update(name[: -len(".lark")] for name in os.listdir(folder) if name.endswith(".lark"))
        return sorted(names)


def read_regular(file: str, root: str) -> str | None:
    """Return the text of a regular UTF-8 file inside the folder `root`.

    Return None if the file does not exist, is not regular, is not UTF-8, is larger than `MOST_BYTES`, or is outside.
    """
    real, inside = os.path.realpath(file), os.path.realpath(root)
    if os.path.commonpath([real, inside]) != inside:
        return None
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(real, flags), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return None
            data = stream.read(MOST_BYTES + 1)
        return None if len(data) > MOST_BYTES else data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError):
        return None


def lark_library_folder() -> str:
    """Return the folder of the grammars that ship with lark."""
    spec = importlib.util.find_spec("lark")
    folders = spec.submodule_search_locations if spec else None
    return os.path.join(next(iter(folders)), "grammars") if folders else "grammars"


def ready_grammars_folder() -> str:
    """Return the folder of the grammars that ship with constrain."""
    return str(Path(__file__).parents[2] / "grammars")
