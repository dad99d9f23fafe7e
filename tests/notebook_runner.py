"""Run notebooks without Jupyter: the cells in one namespace, with what a cell prints and what its last line displays.

    python -m tests.notebook_runner docs/notebooks/NAME.ipynb ...     runs them and writes their outputs

`run_notebook` returns the outputs in the format of notebooks (nbformat 4), so that they can be compared with those in
the file. Magic commands are not supported: the notebooks of this project are plain Python.
"""

from __future__ import annotations

import ast
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

__all__ = ["read_notebook", "run_notebook", "write_outputs"]

Output = dict[str, Any]


def read_notebook(path: Path) -> dict[str, Any]:
    """Return the document of a notebook."""
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return document


def run_notebook(document: dict[str, Any], name: str = "notebook") -> list[list[Output]]:
    """Run the code cells of a notebook, and return the outputs of each."""
    space: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    return [run_cell("".join(cell["source"]), space, f"{name}, cell {k}") for k, cell in enumerate(cells, 1)]


def run_cell(source: str, space: dict[str, Any], name: str) -> list[Output]:
    """Run one cell, and return what it prints and what its last expression displays."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, name, "exec", dont_inherit=True), space)
        if isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
            value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), space)
    outputs: list[Output] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": split_lines(printed.getvalue())})
    if value is not None:
        result = {"data": display(value), "execution_count": None, "metadata": {}, "output_type": "execute_result"}
        outputs.append(result)
    return outputs


def display(value: Any) -> dict[str, list[str]]:
    """Return the representations of a value by MIME type."""
    shown = {"text/plain": split_lines(repr(value))}
    if hasattr(value, "_repr_html_"):
        shown["text/html"] = split_lines(value._repr_html_())
    return shown


def split_lines(text: str) -> list[str]:
    """Return a text as the lines of a notebook's file."""
    return text.splitlines(keepends=True)


def write_outputs(path: Path) -> None:
    """Run a notebook and write its outputs to its file."""
    document = read_notebook(path)
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    for number, (cell, outputs) in enumerate(zip(cells, run_notebook(document, path.name)), 1):
        cell["execution_count"] = number
        for output in outputs:
            if "execution_count" in output:
                output["execution_count"] = number
        cell["outputs"] = outputs
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for given in sys.argv[1:]:
        write_outputs(Path(given))
