"""`constrain play`: the page alone, with a model and without one, and `constrain serve` with and without the page."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from constrain.cli import app, play_command

ROOT = Path(__file__).resolve().parents[2]
BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {"torch", "transformers", "tokenizers", "safetensors"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
import constrain.cli.play_command as play
find = play.find_spec
play.find_spec = lambda name: None if name in play.MODEL_PACKAGES else find(name)
"""
"""Code that hides the packages that run a model."""


@contextmanager
def running(*arguments: str, before: str = "") -> Iterator[tuple[int, list[str]]]:
    """Run a command on a free port; yield the port and what it printed first. It must stop with exit code 0."""
    code = f"{before}\nfrom constrain.cli.app import main; main()"
    command = [sys.executable, "-c", code, *arguments, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr is not None
        lines: list[str] = []
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/", "".join(lines))):
            line = process.stderr.readline()
            assert line, lines
            lines.append(line)
        yield int(found[1]), lines
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def request(port: int, path: str, body: Any = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    method, data = ("GET", None) if body is None else ("POST", json.dumps(body))
    connection.request(method, path, data, {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_the_page_without_the_packages_of_models() -> None:
    with running("play", before=BLOCK) as (port, lines):
        assert "no model" in lines[0] and "constrain-lm[transformers]" in lines[0]
        assert b"<title>constrain playground" in request(port, "/")[1]
        assert json.loads(request(port, "/playground/about")[1])["model"] is None
        source = {"kind": "schema", "text": '{"enum": ["yes", "no"]}'}
        status, body = request(port, "/playground/inspect", {"source": source, "text": '"maybe"'})
        assert status == 200 and json.loads(body)["expected"] == ['"no"', '"yes"']


@pytest.mark.slow
def test_the_page_with_the_embedded_model_and_as_a_part_of_a_server() -> None:
    with running("play") as (port, _):
        assert json.loads(request(port, "/playground/about")[1])["model"] == "demo"
        assert request(port, "/v1/models")[0] == 404
    with running("serve") as (port, lines):
        assert request(port, "/")[0] == request(port, "/v1/models")[0] == 200
    with running("serve", "--no-playground") as (port, lines):
        assert request(port, "/")[0] == request(port, "/playground/about")[0] == 404
        assert request(port, "/v1/models")[0] == 200
        assert not any("playground" in line for line in lines)


def test_another_model_needs_its_packages(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(play_command, "find_spec", lambda name: None)
    assert app.run_command(["play", "my-model", "--port", "0"]) == 2
    assert "pip install 'constrain-lm[transformers]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", [["--log-format", "xml"], ["--limit", "max_nothing=1"], ["--api-key-env", "UNSET_KEYS"]]
)
def test_options_are_checked(option: list[str]) -> None:
    assert app.run_command(["play", "none", "--port", "0", *option]) == 2
