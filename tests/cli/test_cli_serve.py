"""`constrain serve`: options, what it prints, and its end after a signal."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from constrain.cli import app, serve_command
from constrain.serving.server_settings import ServerSettings
from tests.running_server import chat_body, json_format, wait_until

ROOT = Path(__file__).resolve().parents[2]


class Serving:
    """`constrain serve --port 0` in a process. lines: what it prints."""

    def __init__(self, *options: str, prepare: str = "") -> None:
        code = f"{prepare}from constrain.cli.app import main; main()"
        command = [sys.executable, "-c", code, "serve", "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert self.process.stderr is not None
        head = [self.process.stderr.readline() for _ in range(3)]
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)/v1", "".join(head))[1])  # type: ignore[index]

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, answer.read()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, list[str]]:
        """Send a signal; return the exit code and the rest of what was printed."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, list[str]]:
        """Wait for the end."""
        out, err = self.process.communicate(timeout=120)
        assert out == ""
        return self.process.returncode, err.splitlines()


@pytest.mark.slow
def test_a_server_answers_and_stops_with_exit_code_0() -> None:
    serving = Serving("--slots", "2", "--log-format", "json")
    status, body = serving.request("POST", "/v1/chat/completions", chat_body(max_tokens=9, **json_format({"const": 7})))
    assert status == 200
    assert json.loads(body)["choices"][0]["message"]["content"] == "7"
    code, lines = serving.stop()
    assert code == 0
    events = {one["event"]: one for one in (json.loads(line) for line in lines if line.startswith("{"))}
    assert set(events) == {"request", "draining"}
    assert events["request"]["constraint"].startswith("schema:")
    assert "Describe" not in "".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "signals", "is_whole"), [("60", 1, True), ("0.1", 1, False), ("60", 2, False)])
def test_running_requests_end_or_are_cut_off(seconds: str, signals: int, is_whole: bool) -> None:
    serving = Serving("--slots", "1", "--limit", f"drain_seconds={seconds}", "--log-format", "none")
    connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=60)
    texts = 1 if is_whole else 16
    connection.request("POST", "/v1/chat/completions", json.dumps(chat_body(max_tokens=1_000, n=texts)))
    wait_until(lambda: b"constrain_running_texts 1.0" in serving.request("GET", "/metrics")[1])
    serving.process.send_signal(signal.SIGTERM)
    if is_whole or signals == 2:
        status, body = 0, b""
        wait_until(lambda: serving.request("GET", "/health/ready")[0] == 503 or serving.process.poll() is not None)
    if signals == 2:
        serving.process.send_signal(signal.SIGTERM)
    answer = connection.getresponse()
    status, body = answer.status, answer.read()
    assert (status, b'"shutting_down"' in body) == ((200, False) if is_whole else (503, True))
    assert serving.wait()[0] == 0


@pytest.mark.slow
def test_a_thread_that_does_not_end_does_not_keep_the_process() -> None:
    prepare = (
        "import time; from constrain.serving import chat_endpoint, server_process\n"
        "server_process.STUCK = 1; chat_endpoint.render_conversation = lambda *_: time.sleep(3_600)\n"
    )
    options = ("--limit", "request_seconds=1", "--limit", "drain_seconds=1", "--log-format", "none")
    serving = Serving(*options, prepare=prepare)
    assert serving.request("POST", "/v1/chat/completions", chat_body())[0] == 504
    code, lines = serving.stop()
    assert (code, lines[-1]) == (0, "constrain: a thread did not end in time; the process ends without it")


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ServerSettings]:
    """Runs a command line; the settings with which it would serve."""
    found: list[ServerSettings] = []
    monkeypatch.setattr(
        "constrain.serving.server_process.run_engine", lambda model, given, *_, **__: found.append(given)
    )
    monkeypatch.setattr(serve_command, "load_with_note", lambda name: None)

    def running(*options: str) -> ServerSettings:
        assert app.run_command(["serve", "--port", "0", *options]) == 0
        return found[-1]

    return running


def test_options_become_settings(
    settings: Callable[..., ServerSettings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keys").write_text("key-of-a-file\n")
    monkeypatch.setenv("MY_KEYS", "key-of-mine-1,key-of-mine-2")
    assert settings() == ServerSettings(model_name="demo")
    found = settings(
        "--name", "ours", "--api-key-file", str(tmp_path / "keys"), "--api-key-env", "MY_KEYS", "--limit", "max_n=3",
        "--limit", "request_seconds=1.5", "--reasoning", "<a> </a>",
    )  # fmt: skip
    assert found == ServerSettings(
        model_name="ours", api_keys=("key-of-a-file", "key-of-mine-1", "key-of-mine-2"), max_n=3, request_seconds=1.5,
        think_open="<a>", think_close="</a>",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--limit", "max_m=3"], "max_m"), (["--limit", "max_n"], "max_n"), (["--limit", "max_n=x"], "max_n"),
        (["--limit", "max_n=0"], "max_n"), (["--reasoning", "<a>"], "two tags"),
        (["--api-key-env", "CONSTRAIN_NO_SUCH"], "CONSTRAIN_NO_SUCH is not set"),
        (["--api-key-file", "/no/such"], "/no/such"),
        (["--log-format", "xml"], "xml"),
        (["--host", "203.0.113.1"], "cannot listen on 203.0.113.1"),
    ],
)  # fmt: skip
def test_wrong_options(
    settings: Callable[..., ServerSettings], capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert app.run_command(["serve", "--port", "0", *options]) == 2
    assert said in capsys.readouterr().err


def test_a_port_in_use_is_named(settings: Callable[..., ServerSettings], capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert app.run_command(["serve", "--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert f"port {port}" in said and "in use" in said and "--port" in said


def test_a_missing_package_names_the_extra(
    settings: Callable[..., ServerSettings], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_command, "find_spec", lambda name: None if name == "fastapi" else object())
    assert app.run_command(["serve"]) == 2
    said = capsys.readouterr().err
    assert "fastapi" in said and 'pip install "constrain-lm[serve]"' in said
