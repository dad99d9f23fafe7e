"""What an index and `pip` see: install lines, bounds, the README of the package, and the checks of `make release`."""

from __future__ import annotations

import re
import sys
from importlib import util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from constrain.kernels.jit.targets import TARGETS
from constrain.kernels.native.native_library import SUFFIX, compute_source_hash

ROOT = Path(__file__).resolve().parents[2]
INSTALL = re.compile(r"""pip install (?:-[\w-]+ )*["']?([\w.-]+)(?:\[([\w,]+)\])?""")
NOT_OURS = {"mypy"}
"""Packages that a message may tell to install although no extra has them: they are used through their command."""
PRIVATE = ("numba", "llvmlite", "lark", "typer", "transformers")
"""Requirements whose undocumented parts, or parts that change between major versions, are used."""
BASE = "https://example.org/owner/constrain"


def load_script(path: Path) -> ModuleType:
    """A Python file outside the package, as a module."""
    sys.path.insert(0, str(path.parent))
    try:
        spec = util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def project() -> dict[str, Any]:
    """pyproject.toml's table `project`."""
    try:
        import tomllib
    except ImportError:  # Python 3.10
        tomllib = pytest.importorskip("tomli")
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return table


def install_lines() -> list[tuple[str, str, str]]:
    """(file, package, extras) of each line that tells to install something: of messages and of the documentation."""
    files = [*ROOT.glob("constrain/**/*.py"), *ROOT.glob("docs/**/*.md")]
    return [
        (str(path.relative_to(ROOT)), package, extras)
        for path in files
        for package, extras in INSTALL.findall(path.read_text("utf-8").replace("\\", ""))
    ]


def test_install_lines_name_the_package_of_the_index_and_an_extra_that_exists() -> None:
    extras = set(project()["optional-dependencies"])
    lines = install_lines()
    assert len(lines) > 15
    for file, package, named in lines:
        if package == "constrain-lm" or (package == "." and file.startswith("docs")):  # from a checkout
            assert set(named.split(",")) <= extras | {""}, file
        else:  # of an engine or a version: `{package}` of a formatted text
            assert package in NOT_OURS | {"transformers", ""}, (file, package)


def test_requirements_whose_private_parts_are_used_have_an_upper_bound() -> None:
    table = project()
    lines = [*table["dependencies"], *(one for extra in table["optional-dependencies"].values() for one in extra)]
    for name in PRIVATE:
        found = [line for line in lines if re.match(rf"{name}\b(?!-)", line)]
        assert found and all("<" in line for line in found), name


# ---- README ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def build() -> ModuleType:
    """hatch_build.py, with stand-ins for the base classes of its hooks: the backend is not needed here."""
    with pytest.MonkeyPatch.context() as patch:
        hooks = {"metadata.plugin": "MetadataHookInterface", "builders.hooks.plugin": "BuildHookInterface"}
        for dotted, base in hooks.items():
            interface = ModuleType(f"hatchling.{dotted}.interface")
            setattr(interface, base, object)
            parts = interface.__name__.split(".")
            for k in range(1, len(parts)):
                patch.setitem(sys.modules, ".".join(parts[:k]), ModuleType(".".join(parts[:k])))
            patch.setitem(sys.modules, interface.__name__, interface)
        return load_script(ROOT / "hatch_build.py")


@pytest.mark.parametrize(
    ("text", "linked", "bare"),
    [
        ("[a](docs/a.md)", f"[a]({BASE}/blob/v1.0/docs/a.md)", "a"),
        ("![a [b]](docs/a.svg)x", f"![a [b]]({BASE}/raw/v1.0/docs/a.svg)x", "x"),
        ("[a](https://a.b/c) [d](#e)", "[a](https://a.b/c) [d](#e)", "[a](https://a.b/c) [d](#e)"),
        ("```\n[a](b)\n```\n[a](b)", f"```\n[a](b)\n```\n[a]({BASE}/blob/v1.0/b)", "```\n[a](b)\n```\na"),
        ("[`a`](b.md) and [c](d.md#e)", f"[`a`]({BASE}/blob/v1.0/b.md) and [c]({BASE}/blob/v1.0/d.md#e)", "`a` and c"),
    ],
)
def test_links_of_the_package_are_absolute_or_left_out(build: ModuleType, text: str, linked: str, bare: str) -> None:
    assert build.link_readme(text, BASE, "1.0") == build.link_readme(text, BASE + "/", "1.0") == linked
    assert build.link_readme(text, "", "1.0") == bare


def test_the_readme_of_the_package_has_no_relative_link(build: ModuleType) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    code = re.findall(r"^```.*?^```", text, re.M | re.S)
    for repository in (BASE, ""):
        made = build.link_readme(text, repository, "1.0")
        outside = re.sub(r"^```.*?^```", "", made, flags=re.M | re.S)
        assert all(re.match("https?:|#", target) for target in re.findall(r"\]\(([^)]+)\)", outside))
        assert re.findall(r"^```.*?^```", made, re.M | re.S) == code
    targets = re.findall(rf"{BASE}/(?:raw|blob)/v1.0/([^)#\s]+)", build.link_readme(text, BASE, "1.0"))
    assert len(targets) > 20 and all((ROOT / target).exists() for target in targets)


def test_urls_are_absolute(build: ModuleType) -> None:
    assert build.list_urls("", "1.0") == {}
    assert all(url.startswith(BASE) for url in build.list_urls(BASE, "1.0").values())


# ---- make release ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """requirements/release.py."""
    return load_script(ROOT / "requirements" / "release.py")


CHANGES = "# Changelog\n\nWhat changes.\n\n## Unreleased\n\n### Added\n\n- New.\n\n## 0.1.0 - 2026-11-01\n\n- Old.\n"


def test_release_notes(release: ModuleType, tmp_path: Path) -> None:
    assert release.find_notes(CHANGES, "0.2.0") == "### Added\n\n- New."
    assert release.find_notes(CHANGES.replace("### Added\n\n- New.\n\n", ""), "0.1.0") == "- Old."
    with pytest.raises(release.ReleaseError, match=r"no entry for 0\.2\.0"):
        release.find_notes(CHANGES.replace("### Added\n\n- New.\n\n", ""), "0.2.0")
    path = release.write_notes(tmp_path, Path("constrain_lm-0.9.9-py3-none-any.whl"))
    assert path.read_text("utf-8").startswith("# constrain 0.9.9\n")
    assert 'pip install "constrain-lm[transformers]==0.9.9"' in path.read_text("utf-8")


def test_contents_of_a_distribution(release: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / "x.whl"
    wheel.write_bytes(b"x")
    whole = [*release.REQUIRED, *release.LIBRARIES]
    release.check_contents(wheel, whole)
    with pytest.raises(release.ReleaseError, match=r"lacks constrain/py\.typed"):
        release.check_contents(wheel, [name for name in whole if name != "constrain/py.typed"])
    with pytest.raises(release.ReleaseError, match="files of a cache"):
        release.check_contents(wheel, [*whole, "constrain/kernels/__pycache__/a.objects"])
    with wheel.open("wb") as file:
        file.truncate(release.MOST_BYTES)
    with pytest.raises(release.ReleaseError, match="the limit is 15,000,000"):
        release.check_contents(wheel, whole)
    with pytest.raises(release.ReleaseError, match=r"lacks constrain/kernels/libraries/linux-x86_64\.so"):
        release.check_contents(tmp_path / "x.tar.gz", release.REQUIRED)


def test_the_release_has_a_library_of_each_target(release: ModuleType) -> None:
    names = [f"constrain/kernels/libraries/{name}{SUFFIX}" for name in TARGETS]
    assert sorted(release.LIBRARIES) == sorted(names)


@pytest.mark.parametrize(
    ("target", "version", "has_library", "is_needed"),
    [
        ("wheel", "standard", False, True), ("wheel", "standard", True, False), ("wheel", "editable", True, True),
        ("sdist", "standard", False, False),
    ],
)  # fmt: skip
def test_a_wheel_without_libraries_needs_numba(
    build: ModuleType, tmp_path: Path, target: str, version: str, has_library: bool, is_needed: bool
) -> None:
    if has_library:
        folder = tmp_path / "constrain" / "kernels" / "libraries"
        folder.mkdir(parents=True)
        (folder / "linux-x86_64.so").write_bytes(b"ELF" + compute_source_hash().encode() + b"\0")
    extras = {"build": ["numba>=0.62,<0.70"]}
    hook = SimpleNamespace(
        root=str(tmp_path), target_name=target,
        metadata=SimpleNamespace(core=SimpleNamespace(optional_dependencies=extras)),
    )  # fmt: skip
    build_data: dict[str, list[str]] = {"dependencies": []}
    build.CustomBuildHook.initialize(hook, version, build_data)
    assert build_data["dependencies"] == (extras["build"] if is_needed else [])


def test_libraries_of_other_sources_are_not_distributed(build: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "constrain" / "kernels" / "libraries"
    folder.mkdir(parents=True)
    build.check_libraries(tmp_path)
    (folder / "linux-x86_64.so").write_bytes(b"ELF" + compute_source_hash().encode() + b"\0")
    build.check_libraries(tmp_path)
    (folder / "linux-aarch64.so").write_bytes(b"ELF" + b"0" * 32 + b"\0")
    with pytest.raises(RuntimeError, match=r"linux-aarch64\.so was compiled from other kernels"):
        build.check_libraries(tmp_path)


def test_required_files_exist(release: ModuleType) -> None:
    assert all((ROOT / name).is_file() for name in release.REQUIRED)
