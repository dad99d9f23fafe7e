"""docs/how-to/write-a-grammar.md runs as written: its files are written, its commands say what it says they do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("typer")

from constrain.cli import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "write-a-grammar.md"
CODES = {"check tasks.lark": 2, "test todo.lark --examples todo.examples": 1}


def test_the_page_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text("utf-8")
    commands = 0
    for block in re.finditer(
        r"(?:`([\w.]+)`:\n\n)?^```(lark|text|console)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    ):
        name, kind, body = block.groups()
        if kind != "console":
            assert name, body
            Path(name).write_text(body, "utf-8")
            continue
        for command in re.split(r"^\$ constrain ", body, flags=re.MULTILINE)[1:]:
            line, _, expected = command.partition("\n")
            capsys.readouterr()
            assert app.run_command(shlex.split(line)) == CODES.get(line, 0), line
            printed = "".join(capsys.readouterr()).splitlines()
            missing = [one for one in expected.splitlines() if one.strip() and one not in printed]
            assert not missing, f"{line}\n{missing}\n{printed}"
            commands += 1
    assert commands >= 9
    assert Path("fixed.html").read_text("utf-8").startswith("<!doctype html>")
