"""The site of the docs: links and anchors hold, each page is in the menu and run by a test, generated ones current."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import constrain
from bench.pages import site_links
from bench.pages.comparison import write_comparison
from tests.page_reader import DOCS

ROOT = DOCS.parent
PAGES = sorted(DOCS.rglob("*.md"))
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
OBJECT = re.compile(r"^::: (constrain[\w.]*)$", re.MULTILINE)


def name_page(path: Path) -> str:
    return path.relative_to(DOCS).as_posix()


def slugify(heading: str) -> str:
    """The id that Python-Markdown's extension toc gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


def find_anchors(path: Path) -> set[str]:
    text = FENCE.sub("", path.read_text("utf-8"))
    named = set(re.findall(r"\{ *#([\w.]+) *\}", text))
    return {slugify(one) for one in re.findall(r"^#+ (.*)$", text, re.MULTILINE)} | named | set(OBJECT.findall(text))


@pytest.mark.parametrize("path", PAGES, ids=name_page)
def test_links_and_anchors_hold(path: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text("utf-8")))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        place = (path.parent / name).resolve() if name else path
        assert place.exists() and DOCS in place.parents, f"{name_page(path)} links to {target}"
        if anchor and place.suffix == ".md":
            assert anchor in find_anchors(place), f"{name_page(path)} links to {target}"


def test_every_page_with_python_is_run_by_a_test() -> None:
    named: set[str] = set()
    for test in (ROOT / "tests").rglob("test_*.py"):
        text = test.read_text("utf-8")
        if test != Path(__file__) and ("runs(" in text or "exec(" in text):
            named |= set(re.findall(r'"([\w-]+\.md)"', text))
    blocks = [path for path in PAGES if re.search(r"^```python$", path.read_text("utf-8"), re.MULTILINE)]
    assert len(blocks) >= 25
    assert {path.name for path in blocks} <= named, {path.name for path in blocks} - named


def list_menu(items: Any) -> list[str]:
    if isinstance(items, str):
        return [items]
    parts = items.values() if isinstance(items, dict) else items
    return [name for part in parts for name in list_menu(part)]


def test_the_menu_has_every_page_once() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    assert sorted(list_menu(settings["nav"])) == [name_page(path) for path in PAGES]


def test_the_reference_has_every_public_name_once() -> None:
    found = [name for path in (DOCS / "reference").glob("*.md") for name in OBJECT.findall(path.read_text("utf-8"))]
    public = {f"constrain.{name}" for name in constrain.__all__} - {"constrain.__version__"}
    for package in ("sampling", "testing", "checking"):
        module = importlib.import_module(f"constrain.{package}")
        public |= {f"constrain.{package}.{name}" for name in module.__all__}
    assert sorted(found) == sorted(public), set(found) ^ public


SERVER_FIELDS = {"logprob", "log_weight", "refused_tools", "warnings"}
"""Members of `constrain` in the answers of the server, which its page names."""


@pytest.mark.parametrize("path", [path for path in PAGES if path.name != "tour.md"], ids=name_page)
def test_names_of_constrain_exist(path: Path) -> None:
    for name in set(re.findall(r"`constrain\.([\w.]+)", path.read_text("utf-8"))) - SERVER_FIELDS:
        found: Any = constrain
        for part in name.split("."):
            found = getattr(found, part, None) or importlib.import_module(f"{found.__name__}.{part}")
        assert found is not None, f"{name_page(path)} names constrain.{name}"


def test_the_comparison_is_what_the_results_say() -> None:
    command = "python -m bench pages.comparison --write docs/comparison.md"
    assert (DOCS / "comparison.md").read_text("utf-8") == write_comparison(), command


def test_broken_links_of_a_built_site_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "index.html").write_text('<h1 id="top">More</h1><img src="../lost.svg">', "utf-8")
    targets = ("more/#top", "more/#end", "/more/", "gone/", "//host/x")
    home = "".join(f'<a href="{target}">there</a>' for target in targets)
    (tmp_path / "index.html").write_text(home, "utf-8")
    assert site_links.main([str(tmp_path)]) == 1
    assert list(site_links.find_broken_links(tmp_path)) == [
        ("index.html", "more/#end"), ("index.html", "gone/"), ("more/index.html", "../lost.svg"),
    ]  # fmt: skip
    assert "2 pages, 6 links, 3 broken" in capsys.readouterr().out
