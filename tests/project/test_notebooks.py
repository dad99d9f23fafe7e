"""The notebooks of docs/notebooks run, and their committed outputs are those of the cells that they stand below."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.authoring.test_answers import read_html
from tests.notebook_runner import read_notebook, run_cell, run_notebook

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 300_000
LINK = re.compile(r"\]\(([^)#]+)\)")


def kinds(outputs: list[dict[str, Any]]) -> list[list[str]]:
    """What kinds of output a cell has: the parts that do not depend on the machine."""
    return [[one["output_type"], *sorted(one.get("data", {}))] for one in outputs]


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["faithful-sampling", "own-grammar", "structured-extraction"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_file_is_a_notebook_that_reads_well(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES
    document = read_notebook(path)
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert document["cells"][0]["cell_type"] == "markdown"
    names = [cell["id"] for cell in document["cells"]]
    assert len(set(names)) == len(names)
    for cell in document["cells"]:
        if cell["cell_type"] == "markdown":
            for link in LINK.findall("".join(cell["source"])):
                assert (path.parent / link).exists(), link
        for output in cell.get("outputs", []):
            assert output["output_type"] in ("stream", "execute_result")
            if "text/html" in output.get("data", {}):
                read_html("".join(output["data"]["text/html"]))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_run(path: Path) -> None:
    pytest.importorskip("transformers")
    document = read_notebook(path)
    committed = [cell["outputs"] for cell in document["cells"] if cell["cell_type"] == "code"]
    for made, before in zip(run_notebook(document, path.name), committed, strict=True):
        assert kinds(made) == kinds(before)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_jupyter_runs_them(path: Path) -> None:
    """In a kernel of IPython, where it is installed."""
    pytest.importorskip("ipykernel")
    pytest.importorskip("transformers")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()


def test_the_runner_shows_what_a_notebook_shows() -> None:
    class Shown:
        def __repr__(self) -> str:
            return "plain"

        def _repr_html_(self) -> str:
            return "<b>html</b>"

    space: dict[str, Any] = {"Shown": Shown}
    outputs = run_cell("x = 2\nprint('a\\nb')\nShown()", space, "cell")
    assert [one["output_type"] for one in outputs] == ["stream", "execute_result"]
    assert outputs[0]["text"] == ["a\n", "b\n"]
    assert outputs[1]["data"] == {"text/plain": ["plain"], "text/html": ["<b>html</b>"]}
    assert run_cell("x", space, "cell")[0]["data"] == {"text/plain": ["2"]}
    assert run_cell("x;", space, "cell") == [] and run_cell("y = x", space, "cell") == []
    json.dumps(outputs)
