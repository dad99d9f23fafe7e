"""docs/how-to/use-the-command-line.md: its commands run, and its table of exit codes is that of the help page."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("transformers")

from constrain.cli import app, display
from constrain.cli.command_table import EPILOG

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "use-the-command-line.md").read_text("utf-8")
COMMANDS = re.findall(r"^\$ constrain (.*)$", PAGE, re.M)
TOOL = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"enum": ["Oslo"]}},
                                          "required": ["city"], "additionalProperties": False}}  # fmt: skip
FILES = {
    "tools.json": json.dumps([TOOL]),
    "prompts.txt": "One?\nTwo?\n",
    "prompts.jsonl": '"One?"\n{"prompt": "Two?"}\n',
}
pytestmark = pytest.mark.skipif(
    not (ROOT / "constrain" / "demo" / "model.safetensors").exists(),
    reason="the embedded model is not in this checkout",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_page(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    shutil.copytree(ROOT / "schemas", tmp_path / "schemas")
    monkeypatch.chdir(tmp_path)
    assert app.run_command(shlex.split(command)) == display.FINE
    out, err = capsys.readouterr()
    assert out
    if "--json" in command:
        assert json.loads(out)["texts"]
    else:
        assert re.search(r"finish_reason (\d+ )?(complete|budget)\b", err)


def test_the_page_has_the_exit_codes() -> None:
    codes = (display.FINE, display.NO, display.WRONG, display.TOO_MUCH, display.INTERRUPTED)
    assert tuple(map(int, re.findall(r"^\| (\d+) \|", PAGE, re.M))) == codes
    assert tuple(map(int, re.findall(r"(?:^|: |· )(\d+) ", EPILOG))) == codes
