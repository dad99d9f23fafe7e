"""Is the library easy to navigate? Import cycles, names used twice, one-word function names.

    python -m bench architecture [--docstrings 20 --seed 1]

All imports within the library count, also in functions and under `if TYPE_CHECKING:`. A package is a folder.
The exit code is 1 if a figure exceeds its limit.
"""

from __future__ import annotations

import ast
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from .options import build_parser

__all__ = ["BANNED", "Library", "find_cycles", "main"]

ROOT = Path(__file__).resolve().parent.parent
LIMITS = {
    "cycles of files": 0,
    "cycles of packages": 0,
    "class names used more than once": 15,
    "file names used more than once": 10,
    "imports of ours inside functions": 50,
    "one-word public function names, percent": 45,
    "identifiers that the glossary replaced": 0,
}
BANNED = frozenset(
    """
    Lits Listed Left Live ByRules Others alike demands doors door duties few forgotten ledges LEDGES N_LEDGES LATER
    JOINTS POINTS joints lanes larks logweight logweights meet opinion overtaken rehearse rehearsal settle settled
    stamp STAMP surely tidy told twin workshop arena Arena arena_bytes circles rooms
    """.split()
)
"""Identifiers of version 0.1.0 that are replaced by terms of the field."""
NAMES = frozenset(("id", "attr", "arg", "name", "asname"))
"""Fields of nodes of syntax trees that hold identifiers."""


@dataclass
class Library:
    """The files of the library below `root`, by dotted module name, their syntax trees, and who imports whom.

    A file is parsed when its tree is first used.
    """

    root: Path = ROOT
    package: str = "constrain"
    paths: dict[str, Path] = field(init=False)

    def __post_init__(self) -> None:
        self.paths = {self.module(path): path for path in sorted((self.root / self.package).rglob("*.py"))}

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """The syntax trees."""
        return {name: ast.parse(path.read_text("utf-8")) for name, path in self.paths.items()}

    @cached_property
    def nodes(self) -> dict[str, list[ast.AST]]:
        """The nodes of each syntax tree."""
        return {name: list(ast.walk(tree)) for name, tree in self.trees.items()}

    @cached_property
    def imports(self) -> dict[str, list[tuple[str, ast.stmt]]]:
        """The imports of each module from the library: (imported module, statement)."""
        return {name: list(self._list_imports(name)) for name in self.paths}

    def module(self, path: Path) -> str:
        """Return the dotted name of a file."""
        return ".".join(path.relative_to(self.root).with_suffix("").parts).removesuffix(".__init__")

    def folder(self, module: str) -> str:
        """Return the package that a module is in; a package is in itself."""
        return module if self.paths[module].name == "__init__.py" else module.rpartition(".")[0]

    def _list_imports(self, module: str) -> Iterator[tuple[str, ast.stmt]]:
        above = self.folder(module).split(".")
        for node in self.nodes[module]:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == self.package:
                        yield alias.name, node
            elif isinstance(node, ast.ImportFrom):
                parts = above[: len(above) - node.level + 1] if node.level else []
                base = ".".join([*parts, *([node.module] if node.module else [])])
                if base.split(".")[0] == self.package:
                    for alias in node.names:
                        name = f"{base}.{alias.name}"
                        yield (name if name in self.paths else base), node

    def lazy_imports(self) -> Iterator[tuple[str, str]]:
        """Yield the imports from the library inside functions: (importing module, imported module)."""
        for module, nodes in self.nodes.items():
            inside = {
                id(node)
                for function in nodes
                if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
                for node in ast.walk(function)
                if isinstance(node, (ast.Import, ast.ImportFrom))
            }
            yield from ((module, target) for target, node in self.imports[module] if id(node) in inside)

    def graph(self) -> dict[str, set[str]]:
        """Return which modules each module imports."""
        return {name: {target for target, _ in found} - {name} for name, found in self.imports.items()}

    def package_graph(self) -> dict[str, set[str]]:
        """Return which packages each package imports."""
        found: dict[str, set[str]] = {}
        for name, targets in self.graph().items():
            here = self.folder(name)
            found.setdefault(here, set()).update(self.folder(target) for target in targets)
            found[here].discard(here)
        return found

    def classes(self) -> Counter[str]:
        """Count the definitions of each class name."""
        return Counter(node.name for nodes in self.nodes.values() for node in nodes if isinstance(node, ast.ClassDef))

    def functions(self) -> list[tuple[str, ast.FunctionDef]]:
        """Return the public module-level functions, with their modules."""
        return [
            (module, node)
            for module, tree in self.trees.items()
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        ]

    def file_names(self) -> Counter[str]:
        """Count the files of each name, `__init__.py` left out."""
        return Counter(path.name for path in self.paths.values() if path.name != "__init__.py")

    def identifiers(self) -> Counter[str]:
        """Count identifiers: names, attributes, parameters and definitions."""
        found: Counter[str] = Counter()
        for nodes in self.nodes.values():
            for node in nodes:
                for attribute in NAMES.intersection(node._fields):
                    if isinstance(value := getattr(node, attribute), str):
                        found.update(value.split("."))
        found.update(part for module in self.paths for part in module.split("."))
        return found


def find_cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one node (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        low[node] = index[node] = len(index)
        stack.append(node)
        for target in graph.get(node, ()):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(sorted(component))

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))
    for node in graph:
        if node not in index:
            visit(node)
    return found


def compute_figures(library: Library) -> dict[str, tuple[float, list[str]]]:
    """Return each figure with the items that it counts."""
    files, packages = find_cycles(library.graph()), find_cycles(library.package_graph())
    classes = sorted(name for name, count in library.classes().items() if count > 1)
    names = sorted(name for name, count in library.file_names().items() if count > 1)
    lazy = [f"{module} -> {target}" for module, target in library.lazy_imports()]
    functions = library.functions()
    single = [f"{module}.{node.name}" for module, node in functions if "_" not in node.name]
    replaced = [f"{name} ({count})" for name, count in library.identifiers().items() if name in BANNED]
    return {
        "cycles of files": (len(files), [" ".join(one) for one in files]),
        "cycles of packages": (len(packages), [" ".join(one) for one in packages]),
        "class names used more than once": (len(classes), classes),
        "file names used more than once": (len(names), names),
        "imports of ours inside functions": (len(lazy), lazy),
        "one-word public function names, percent": (100 * len(single) / len(functions), single),
        "identifiers that the glossary replaced": (len(replaced), replaced),
    }


def draw_docstrings(library: Library, count: int, seed: int) -> Iterator[str]:
    """Yield random docstrings, each with its place."""
    found = [
        (f"{library.paths[module].relative_to(library.root)}:{getattr(node, 'lineno', 1)}", text)
        for module, nodes in library.nodes.items()
        for node in nodes
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node))
    ]
    for place, text in random.Random(seed).sample(found, count):
        yield f"{place}\n{re.sub('^', '    ', text, flags=re.M)}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures. Return the exit code."""
    parser = build_parser("architecture", __doc__, "seed", seed=1)
    parser.add_argument("--docstrings", type=int, default=0, help="number of random docstrings to print")
    parser.add_argument(
        "--verbose", action="store_const", const="verbose", help="print the items that each figure counts"
    )
    options = parser.parse_args(arguments)
    library = Library()
    print(f"{len(library.paths)} files, {len(library.package_graph())} packages, {len(library.functions())} functions")
    beyond = 0
    for name, (value, parts) in compute_figures(library).items():
        beyond += value > LIMITS[name]
        print(f"{value:6.5g}  (at most {LIMITS[name]})  {name}")
        if options.verbose or (value > LIMITS[name] and "percent" not in name):
            print("\n".join(f"          {part}" for part in parts))
    if options.docstrings:
        print()
        print("\n".join(draw_docstrings(library, options.docstrings, options.seed)))
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
