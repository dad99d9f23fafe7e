"""README says what is true: its Python blocks run as written, one after the other, and its files and commands exist.

A line `#> text` in a block says what is printed there; nothing else is compared, since a model's answer may change.
"""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "bench/README.md", "grammars/README.md",
         "schemas/README.md", "docs/tour.md")  # fmt: skip


def blocks(language: str) -> list[tuple[int, str]]:
    """(line of its first line, text) of every fenced block of README in this language."""
    text = (ROOT / "README.md").read_text("utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(text.count("\n", 0, match.start(1)) + 1, match[1]) for match in found]


def test_python_blocks_run_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="README runs a model: pip install '.[transformers]'")
    pytest.importorskip("transformers", reason="README runs a model: pip install '.[transformers]'")
    if not (ROOT / "constrain" / "demo" / "model.safetensors").exists():
        pytest.skip("the embedded model is not in this checkout")
    monkeypatch.chdir(ROOT)
    page = ModuleType("readme")  # a dataclass looks its annotations up in the module that defines it
    monkeypatch.setitem(sys.modules, "readme", page)
    for line, source in blocks("python"):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + source, "README.md", "exec"), page.__dict__)
        for expected in re.findall(r"^#> (.*)$", source, re.MULTILINE):
            assert expected in printed.getvalue().splitlines(), f"README.md, the block at line {line}"


def test_console_blocks_name_what_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = "\n".join(source for _, source in blocks("console"))
    assert set(re.findall(r"^\$ make ([a-z]+)", text, re.MULTILINE)) <= targets
    for path in re.findall(r"\bschemas/\S+", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_hold(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{page} links to {target}"
