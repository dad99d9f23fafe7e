"""What CI installs, what is known about it, and what SECURITY.md says of both and of the limits."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from constrain import Limits

packaging = pytest.importorskip("packaging")
from packaging.requirements import Requirement  # noqa: E402
from packaging.utils import canonicalize_name  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
PRIVATE = ("numba", "llvmlite")
"""Packages whose private parts are used."""


def script(name: str) -> ModuleType:
    """A script of requirements/, as a module."""
    spec = util.spec_from_file_location(name, ROOT / "requirements" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def project() -> dict[str, Any]:
    """pyproject.toml's table `project`."""
    try:
        import tomllib
    except ImportError:  # Python 3.10
        tomllib = pytest.importorskip("tomli")
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return table


def locked(path: Path) -> list[tuple[Requirement, int]]:
    """The requirements of a lock, each with the number of its hashes."""
    joined = re.sub(r"\\\n\s*", " ", path.read_text("utf-8"))
    lines = [line for line in map(str.strip, joined.splitlines()) if line and not line.startswith("#")]
    assert not [line for line in lines if line.startswith("--hash")], "pip ignores hashes that belong to no requirement"
    return [(Requirement(line.partition(" --hash")[0]), line.count("--hash=sha256:")) for line in lines]


def test_every_package_of_the_lock_is_pinned_with_hashes() -> None:
    for name in ("ci.txt", "torch.txt"):
        for requirement, hashes in locked(ROOT / "requirements" / name):
            assert hashes, requirement
            assert [one.operator for one in requirement.specifier] == ["=="], requirement


def needed(extra: str) -> list[Requirement]:
    """What an extra asks for, its own extras followed."""
    table = project()
    out = []
    for one in map(Requirement, table["optional-dependencies"][extra]):
        out += [need for more in sorted(one.extras) for need in needed(more)] if one.name == "constrain-lm" else [one]
    return out


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_what_the_project_asks_for(python: str) -> None:
    """On each Python: every direct dependency once, in a version that pyproject.toml and constraints.txt allow."""
    environment = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux", "extra": ""}
    everything = [*locked(ROOT / "requirements/ci.txt"), *locked(ROOT / "requirements/torch.txt")]
    present = [one for one, _ in everything if one.marker is None or one.marker.evaluate(environment)]
    by_name: dict[str, list[str]] = {}
    for one in present:
        by_name.setdefault(canonicalize_name(one.name), []).append(next(iter(one.specifier)).version)
    assert not {name: versions for name, versions in by_name.items() if len(versions) != 1}
    wanted = [*map(Requirement, project()["dependencies"]), *needed("dev")]
    pins = [line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()]
    for one in [*wanted, *(Requirement(pin) for pin in pins if pin)]:
        if one.marker is None or one.marker.evaluate(environment):
            (version,) = by_name[canonicalize_name(one.name)]
            assert one.specifier.contains(version), (one, version)


@pytest.mark.parametrize("name", PRIVATE)
def test_packages_whose_private_parts_are_used_have_an_upper_bound(name: str) -> None:
    (found,) = [one for one in map(Requirement, project()["optional-dependencies"]["build"]) if one.name == name]
    assert any(one.operator in ("<", "<=", "==") for one in found.specifier)


def test_the_sbom_names_every_package_once(tmp_path: Path) -> None:
    out = tmp_path / "bom.json"
    for _ in range(2):
        subprocess.run(
            [sys.executable, str(ROOT / "requirements/sbom.py"), str(out), "--extras", ""],
            check=True, capture_output=True, env={"SOURCE_DATE_EPOCH": "1", "PATH": ""}, cwd=ROOT,
        )  # fmt: skip
    made = json.loads(out.read_text("utf-8"))
    names = [one["name"] for one in made["components"]]
    assert {"numpy", "lark", "rich", "typer"} <= set(names)
    assert len(names) == len(set(names)) and "torch" not in names
    refs = {made["metadata"]["component"]["bom-ref"], *(one["bom-ref"] for one in made["components"])}
    assert {one["ref"] for one in made["dependencies"]} == refs
    assert all(set(one["dependsOn"]) <= refs for one in made["dependencies"])


@pytest.mark.parametrize(
    ("report", "code"),
    [
        ([{"name": "a", "version": "1", "vulns": []}], 0),
        (
            [
                {"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]},
                {"name": "b", "skip_reason": "x"},
            ],
            1,
        ),
        ([{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "not found"}], 2),
        ([], 2),
    ],
)
def test_an_audit_without_a_lookup_does_not_pass(report: list[dict[str, Any]], code: int) -> None:
    assert script("audit").verdict({"dependencies": report})[0] == code


def test_security_names_every_limit_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", (ROOT / "SECURITY.md").read_text("utf-8"), re.M))
    spelled = {one.name: one.default for one in fields(Limits)}
    assert set(rows) == set(spelled)
    for name, default in spelled.items():
        assert isinstance(default, int)
        assert rows[name] in (f"{default:,}", f"{default >> 20} MiB"), name
