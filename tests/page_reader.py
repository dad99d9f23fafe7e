"""Run the Python blocks of a page of the docs, in order, in one namespace."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

__all__ = ["DOCS", "page", "runs"]


DOCS = Path(__file__).resolve().parent.parent / "docs"


def page(name: str) -> Path:
    """Return the path of a page of docs/how-to, or of docs."""
    how_to = DOCS / "how-to" / name
    return how_to if how_to.exists() else DOCS / name


def runs(path: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Run the blocks; yield for each its place, the expected output (lines `#> ...`), and the printed lines."""
    text = path.read_text("utf-8")
    space: dict[str, object] = {"__name__": "page"}
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        line = text.count("\n", 0, match.start(1))
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile("\n" * line + match[1], path.name, "exec", dont_inherit=True), space)
        expected = re.findall(r"^#> (.*)$", match[1], re.MULTILINE)
        yield f"the block at line {line}: {printed.getvalue()}", expected, printed.getvalue().splitlines()
