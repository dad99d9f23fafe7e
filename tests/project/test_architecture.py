"""The architecture that docs/tour.md describes: layers, no cycles, names used once, every `__all__` correct.

Every import of ours counts, also inside functions and under `if TYPE_CHECKING:`. The figures are those of
`python -m bench architecture`, whose functions these tests call.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bench.architecture import LIMITS, Library, compute_figures, find_cycles
from constrain.base.errors import UnsupportedError
from constrain.cache.cache_folder import DECIDING

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Library(ROOT)
LAYERS: dict[str, set[str]] = {
    # package: third parties that it may import; it may import the packages before it
    "base": set(),
    "cache": {"numpy"},
    "kernels": {"numpy", "numba", "llvmlite", "cuda"},
    "automata": {"numpy"},
    "lalr": {"numpy"},
    "grammar": {"numpy"},
    "program": {"numpy"},
    "frontends": {"numpy", "pydantic", "idna", "jsonschema_specifications", "lark"},
    "export": set(),
    "grammars": set(),
    "vocabulary": {"numpy"},
    "engine": {"numpy"},
    "forms": set(),
    "validation": set(),
    "dialogue": set(),
    "compilation": set(),
    "captures": set(),
    "sampling": {"numpy"},
    "checking": {"numpy"},
    "speculation": {"numpy"},
    "decoding": {"numpy"},
    "search": {"numpy"},
    "deciding": {"numpy"},
    "scoring": {"numpy"},
    "correction": set(),
    "infilling": {"numpy"},
    "authoring": {"numpy", "lark", "genson", "referencing"},
    "testing": {"numpy", "hypothesis"},
    "demo": set(),
    "integrations": set(),
    "generation": set(),
    "plugins": set(),
    "jobs": {"ray"},
    "serving": set(),
    "playground": {"numpy"},
    "cli": set(),
}
OPTIONAL = {"integrations", "generation", "plugins", "serving", "playground", "cli", "demo", "authoring"}
"""Packages that may import any third party, most of which are optional."""


def package_of(module: str) -> str:
    """Return the package directly below `constrain`; "" for `constrain` itself and `__main__`, which assemble them."""
    return (module.removesuffix(".__main__").split(".") + [""])[1]


@pytest.mark.parametrize("module", sorted(LIBRARY.paths))
def test_a_package_imports_only_the_layers_below(module: str) -> None:
    package = package_of(module)
    if not package:
        return
    assert package in LAYERS, f"give the package {package} a row in LAYERS and in docs/tour.md"
    order = list(LAYERS)
    allowed = set(order[: order.index(package) + 1])
    wrong = [
        f"{LIBRARY.paths[module].relative_to(ROOT)}:{node.lineno} imports {target}"
        for target, node in LIBRARY.imports[module]
        if package_of(target) not in allowed
    ]
    assert not wrong


@pytest.mark.parametrize("module", sorted(LIBRARY.paths))
def test_third_parties_are_those_of_the_package(module: str) -> None:
    package = package_of(module)
    if package in OPTIONAL:
        return
    found = set()
    for node in LIBRARY.nodes[module]:
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    assert not found - LAYERS.get(package, set()) - set(sys.stdlib_module_names) - {"constrain"}


@cache
def figures() -> dict[str, Any]:
    """The figures of the library, computed once."""
    return compute_figures(LIBRARY)


@pytest.mark.parametrize("name", sorted(LIMITS))
def test_figures_are_within_their_limits(name: str) -> None:
    value, parts = figures()[name]
    assert value <= LIMITS[name], parts


def test_packages_that_decide_what_is_cached_exist() -> None:
    assert not [name for name in DECIDING if not (ROOT / "constrain" / name).is_dir()]


def test_cycles_are_found() -> None:
    assert find_cycles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a", "d"]}) == [["b", "c"]]


def test_no_module_is_named_like_a_public_function() -> None:
    """Else `from package import name` gives a module or a function, depending on what was imported before."""
    public = {f"{LIBRARY.folder(module)}.{node.name}" for module, node in LIBRARY.functions()}
    assert not public & set(LIBRARY.paths)


@pytest.mark.parametrize("module", sorted(LIBRARY.paths))
def test_all_is_true(module: str) -> None:
    """A public file says what it offers: `__all__` is there, without repeats, and holds exactly what exists."""
    path, tree = LIBRARY.paths[module], LIBRARY.trees[module]
    if not tree.body or path.name == "__main__.py" or (path.stem.startswith("_") and path.name != "__init__.py"):
        pytest.skip("nothing public in it")
    if package_of(module) in {"demo", "kernels"}:
        pytest.skip("a private package")
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if package_of(module) in OPTIONAL and not (error.name or "").startswith("constrain"):
            pytest.skip(f"{error.name} is not installed")
        raise
    except UnsupportedError as error:  # a plug-in refuses versions of its engine that were not tested
        assert package_of(module) == "plugins"
        pytest.skip(error.cause)
    defines = any(isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)) for node in tree.body)
    if not hasattr(loaded, "__all__"):
        assert not defines, f"{path.relative_to(ROOT)} has no __all__"
        return
    names = list(loaded.__all__)
    assert len(set(names)) == len(names), "repeats in __all__"
    missing = [name for name in names if not hasattr(loaded, name)]
    assert not missing, f"__all__ names what does not exist: {missing}"


def test_import_constrain_is_light() -> None:
    """`import constrain` brings in neither torch nor transformers, nor anything else that is optional."""
    heavy = [
        "torch", "transformers", "tokenizers", "pydantic", "jsonschema", "tiktoken", "sentencepiece", "typer", "rich",
    ]  # fmt: skip
    code = f"import constrain, sys; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() == "[]"


def test_a_schema_needs_no_forms_and_no_parsers() -> None:
    """To import them would take a sixth of the time from a new process to its first mask."""
    code = """
import sys, constrain
matcher = constrain.compile(constrain.Vocabulary.bytes(), schema={"type": "object", "required": ["a"]}).matcher()
matcher.mask()
needless = "constrain.forms.form", "constrain.forms.sources", "constrain.lalr", "constrain.frontends.lark"
print([name for name in sys.modules if name.startswith(needless)])
constrain.compile(constrain.Vocabulary.bytes(), constrain.literal("a") | constrain.lark('start: "b"'))
print([name for name in needless if name in sys.modules])
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True,
                            env={**os.environ, "CONSTRAIN_STORE": "off"})  # fmt: skip
    assert answer.stdout.splitlines() == [
        "[]",
        "['constrain.forms.form', 'constrain.forms.sources', 'constrain.lalr', 'constrain.frontends.lark']",
    ]


TOUR = (ROOT / "docs" / "tour.md").read_text("utf-8")


def test_every_package_is_on_the_tour() -> None:
    assert not [package for package in LAYERS if f"`{package}/" not in TOUR]


@pytest.mark.parametrize("document", ["docs/tour.md", "CONTRIBUTING.md", "SECURITY.md", "README.md"])
def test_every_path_in_a_document_exists(document: str) -> None:
    """In backticks: `package/file.py` or `package/`, from the top, below `constrain/` or the schema front end."""
    text = (ROOT / document).read_text("utf-8")
    paths = {path for path in re.findall(r"`([\w./*-]+/[\w.*-]*)`", text) if re.search(r"\.py$|/$|\.md$|\*", path)}
    tops = (ROOT, ROOT / "constrain", ROOT / "constrain" / "frontends" / "json_schema")
    lost = [path for path in paths if not any([*top.glob(path)] for top in tops)]
    assert not lost


def test_the_layers_stand_on_the_tour() -> None:
    """The table in section 7 has the packages in the order of `LAYERS`."""
    section = TOUR.split("## 7.")[1].split("## 8.")[0]
    assert re.findall(r"^\| `(\w+)/` \|", section, re.M) == list(LAYERS)
