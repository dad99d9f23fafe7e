"""The first use: the compilation of the kernels is announced by one line on stderr, on a terminal with a bar."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")

from constrain.cli import display, kernel_notice
from constrain.kernels.native import native_library

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "import sys; from constrain.cli.app import run_command; sys.exit(run_command(['check', '{}', '--json']))"
LIBRARY = "import constrain; constrain.compile(constrain.Vocabulary.bytes(), regex='a').matcher().mask()"


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    variables = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=variables, check=True
    )


def test_a_program_without_logging_gets_one_line_on_stderr() -> None:
    code = "from constrain.kernels.native import native_library as p\nfor done in range(3): p.on_progress(done, 3)"
    answer = run_python(code)
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1 and "compiling 3 kernels, once per checkout" in answer.stderr
    silent = "import logging; logging.getLogger('constrain.kernels').setLevel(logging.ERROR)\n"
    assert run_python(silent + code).stderr == ""


def test_a_program_with_logging_gets_a_record(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "constrain"):
        native_library.log_start(0, 7)
        native_library.log_start(1, 7)
    assert [(one.name, one.levelname) for one in caplog.records] == [("constrain.kernels", "WARNING")]


def test_a_command_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    before = native_library.on_progress
    with kernel_notice.announce_compilation():
        for done in range(4):
            native_library.on_progress(done, 3)
    assert native_library.on_progress is before
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{kernel_notice.NOTICE}\n")


def test_nothing_is_printed_where_nothing_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    with kernel_notice.announce_compilation():
        pass
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    assert display.message_console().is_terminal
    with kernel_notice.announce_compilation():
        for done in range(4):
            native_library.on_progress(done, 3)
    out, err = capsys.readouterr()
    assert out == ""
    assert "once per checkout" in " ".join(err.split()) and "3/3" in err and "━" in err


@pytest.mark.slow
@pytest.mark.parametrize(("code", "said"), [(COMMAND, kernel_notice.NOTICE), (LIBRARY, "compiling")])
def test_the_first_use_of_a_checkout(tmp_path: Path, code: str, said: str) -> None:
    shutil.copytree(ROOT / "constrain", tmp_path / "constrain", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    environment = {"PYTHONPATH": str(tmp_path), "CONSTRAIN_STORE": str(tmp_path / "store")}
    first = run_python(f"import os; os.chdir({str(tmp_path)!r})\n{code}", **environment)
    assert first.stderr.count("\n") == 1 and said in first.stderr and "once per checkout" in first.stderr
    assert said not in first.stdout
    assert run_python(f"import os; os.chdir({str(tmp_path)!r})\n{code}", **environment).stderr == ""
