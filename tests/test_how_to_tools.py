"""docs/how-to/call-tools.md runs as written, and prints what it says."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "how-to" / "call-tools.md"


def test_the_page_runs_as_written() -> None:
    pytest.importorskip("transformers")
    text = PAGE.read_text("utf-8")
    space: dict[str, object] = {"__name__": "page"}
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        line = text.count("\n", 0, match.start(1))
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile("\n" * line + match[1], PAGE.name, "exec"), space)
        expected = re.findall(r"^#> (.*)$", match[1], re.MULTILINE)
        assert expected == printed.getvalue().splitlines(), f"the block at line {line}: {printed.getvalue()}"


def test_the_table_has_every_envelope() -> None:
    from constrain.dialogue import ENVELOPES

    assert re.findall(r"^\| `([\w-]+)` \| ([^|]*) \|", PAGE.read_text("utf-8"), re.M) == [
        (name, ENVELOPES[name].models)
        for name in ("hermes", "llama", "pythonic", "mistral", "mistral-args", "harmony", "json")
    ]
