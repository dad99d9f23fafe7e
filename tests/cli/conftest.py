"""The fixture that runs a command line, for the test files that have no other way to do it."""

from __future__ import annotations

import io
import sys

import pytest

from constrain.cli import app
from tests.command_line_factory import Answer, Run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command line in this process. stdin: bytes that it reads."""

    def running(*arguments: str, stdin: bytes = b"") -> Answer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = app.run_command(arguments)
        out, err = capsys.readouterr()
        assert "Traceback" not in err + out
        return Answer(code, out, err)

    return running
