"""The house stands as docs/tour.md draws it: who may import whom, no cycles, every `__all__` true.

The table below is the whole rule. It is checked on the syntax trees, so imports inside functions count
too; only those under `if TYPE_CHECKING:` do not, because they are gone when the code runs.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "constrain"

BASE = {"cache", "documents", "errors", "fork", "style", "work"}
ENGINE = BASE | {"kernels", "grammar", "automata", "tokens", "frontends"}
ROOMS: dict[str, tuple[set[str], set[str]]] = {
    # room: (rooms of ours it may import, third parties it may import)
    "errors": (set(), set()),
    "style": ({"errors"}, set()),
    "documents": ({"errors", "style"}, set()),
    "work": ({"errors"}, set()),
    "fork": (set(), set()),
    "cache": ({"errors", "style", "work"}, {"numpy"}),
    "kernels": ({"cache"}, {"numpy", "numba", "llvmlite"}),
    "grammar": (BASE, set()),
    "grammars": ({"errors"}, set()),
    "automata": (BASE | {"grammar", "kernels"}, {"numpy"}),
    "frontends": (BASE | {"grammar", "automata"}, {"numpy", "pydantic", "idna", "jsonschema_specifications", "lark"}),
    "forms": (BASE | {"grammar", "grammars", "automata", "frontends", "export", "store", "compile"}, set()),
    "dialogue": (BASE | {"grammar", "automata.dfa", "frontends", "forms"}, set()),
    "export": (BASE | {"grammar", "automata", "frontends", "forms"}, set()),
    "targets": (BASE | {"frontends"}, set()),
    "workshop": (ENGINE | {"compile", "explain", "forms"}, {"numpy", "lark"}),
    "tokens": (BASE | {"grammar", "automata", "kernels"}, {"numpy"}),
    "store": (ENGINE, {"numpy"}),
    "arena": (ENGINE | {"store", "completion", "guards"}, {"numpy"}),
    "guards": (ENGINE | {"arena"}, {"numpy"}),
    "completion": (ENGINE | {"arena", "guards"}, {"numpy"}),
    "compile": (ENGINE | {"arena", "forms", "matcher", "saved", "store"}, {"numpy"}),
    "saved": (BASE | {"compile", "dialogue", "forms"}, set()),
    "matcher": (ENGINE | {"arena"}, {"numpy"}),
    "rehearsal": (BASE | {"compile", "tokens"}, set()),
    "batches": (ENGINE | {"arena", "matcher"}, {"numpy"}),
    "sampling": (ENGINE | {"compile", "matcher"}, {"numpy"}),
    "testing": (ENGINE | {"compile", "sampling"}, {"numpy", "hypothesis"}),
    "decoding": (ENGINE | {"compile", "matcher", "sampling"}, {"numpy"}),
}
DOORS = {
    ("tokens.vocabulary", "integrations"),
    ("sampling.transformers", "integrations"),
    ("batches.logits", "integrations"),
}
"""(file, room): a public constructor that steps into an optional room when it is called, never at import."""
OPEN = {"__init__", "generate", "explain", "infer", "integrations", "cli", "demo"}
"""Rooms that may import anything of ours, and optional third parties."""

FILES = sorted(path for path in HOUSE.rglob("*.py"))
MODULES = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in FILES}


def room_of(module: str) -> str:
    """`constrain.vocabulary.trie` -> `tokens`; `constrain` itself -> `__init__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(path: Path) -> Iterator[tuple[int, str, bool]]:
    """(line, absolute module, whether it runs when the file is imported) of every import that is ever run."""
    module = MODULES[path]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def visit(node: ast.AST, at_import: bool) -> Iterator[tuple[int, str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for other in child.orelse:
                    yield from visit(other, at_import)
            elif isinstance(child, ast.Import):
                for alias in child.names:
                    yield child.lineno, alias.name, at_import
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    stem = package.split(".")[: len(package.split(".")) - child.level + 1]
                    base = ".".join(stem + ([child.module] if child.module else []))
                for alias in child.names:
                    full = f"{base}.{alias.name}"
                    yield child.lineno, full if full in MODULES.values() else base, at_import
            else:
                inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
                yield from visit(child, at_import and not inside)

    yield from visit(ast.parse(path.read_text("utf-8")), True)


def may_import(room: str, target: str) -> bool:
    """Whether a file of `room` may import the module `target` of ours or of a third party."""
    if room in OPEN:
        return True
    ours, others = ROOMS[room]
    top = target.split(".")[0]
    if top != "constrain":
        return top in sys.stdlib_module_names or top in others
    inner = target.removeprefix("constrain").removeprefix(".")
    return room_of(target) == room or any(inner == name or inner.startswith(name + ".") for name in ours)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_what_its_room_may(path: Path) -> None:
    room = room_of(MODULES[path])
    assert room in ROOMS or room in OPEN, (
        f"{room} is a new room: give it a row in tests/test_house.py and in docs/tour.md"
    )
    file = MODULES[path].removeprefix("constrain.")
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {target}"
        for line, target, at_import in imports(path)
        if not may_import(room, target) and (at_import or (file, room_of(target)) not in DOORS)
    ]
    assert not wrong, f"against the table of rooms (tests/test_house.py): {wrong}"


def test_files_import_each_other_without_a_cycle() -> None:
    files = set(MODULES.values())
    graph = {
        MODULES[path]: {target for _, target, at_import in imports(path) if at_import and target in files}
        for path in FILES
    }
    done: set[str] = set()

    def walk(module: str, road: tuple[str, ...]) -> None:
        assert module not in road, "a cycle: " + " -> ".join((*road[road.index(module) :], module))
        if module not in done:
            for target in sorted(graph[module]):
                walk(target, (*road, module))
            done.add(module)

    for module in sorted(graph):
        walk(module, ())


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_all_is_true(path: Path) -> None:
    """A public file says what it offers: `__all__` is there, without repeats, and holds exactly what exists."""
    tree = ast.parse(path.read_text("utf-8"))
    if not tree.body or path.name == "__main__.py" or (path.stem.startswith("_") and path.name != "__init__.py"):
        pytest.skip("nothing public in it")
    if room_of(MODULES[path]) in {"demo", "kernels"}:
        pytest.skip("a private room")
    try:
        module = importlib.import_module(MODULES[path])
    except ModuleNotFoundError as error:
        if room_of(MODULES[path]) in OPEN and not (error.name or "").startswith("constrain"):
            pytest.skip(f"{error.name} is not installed")
        raise
    defines = any(isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)) for node in tree.body)
    if not hasattr(module, "__all__"):
        assert not defines, f"{path.relative_to(ROOT)} has no __all__"
        return
    names = list(module.__all__)
    assert len(set(names)) == len(names), "repeats in __all__"
    missing = [name for name in names if not hasattr(module, name)]
    assert not missing, f"__all__ names what is not there: {missing}"


def test_import_constrain_is_light() -> None:
    """`import constrain` brings in neither torch nor transformers, nor anything else that is optional."""
    import subprocess

    heavy = [
        "torch",
        "transformers",
        "tokenizers",
        "pydantic",
        "jsonschema",
        "tiktoken",
        "sentencepiece",
        "typer",
        "rich",
    ]
    code = f"import constrain, sys; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() == "[]"


def test_every_room_is_on_the_tour() -> None:
    """docs/tour.md names every folder and every file that stands by itself on the street."""
    tour = (ROOT / "docs" / "tour.md").read_text("utf-8")
    rooms = {room_of(MODULES[path]) + ("/" if path.parent != HOUSE else ".py") for path in FILES} - {"__init__.py"}
    lost = sorted(room for room in rooms if f"`{room}" not in tour and f"/{room}" not in tour)
    assert not lost, f"docs/tour.md does not name {lost}"
