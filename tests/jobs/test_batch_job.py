"""Jobs with the embedded model: answers, errors in rows, statistics, identical output, and kills."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep
from typing import Any

import pytest

pytest.importorskip("transformers")

from bench.jobs import SCHEMA, count_lines, write_job
from constrain.cli import app
from constrain.jobs import JobOptions, run_job

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "constrain" / "demo" / "model.safetensors").exists(),
    reason="the embedded model is not in this checkout",
)
OPTIONS = JobOptions(arguments={"max_tokens": 40}, seed=3)


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_answers_and_errors_stand_in_the_order_of_the_rows(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "schema", "prompt": "Describe a person.", "schema": SCHEMA},
        {"id": "unknown", "prompt": "x", "temprature": 1},
        {"prompt": "x", "regex": "[ab]{2}", "n": 3},
        {"id": "malformed", "prompt": "x", "regex": "a("},
        {"id": "unsatisfiable", "prompt": "x", "schema": {"type": "integer", "minimum": 5, "maximum": 3}},
        {"id": "budget", "prompt": "x", "regex": "[0-9]{300}", "max_tokens": 20},
        {"id": "range", "prompt": "x", "choices": ["a"], "top_p": 7},
        {"id": "messages", "messages": [{"role": "user", "content": "x"}], "choices": ["a"]},
        {"id": "grammar", "prompt": "x", "grammar": 'start: "é" "\\n" NUMBER\\n%import common.NUMBER'},
    ]
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    seen: list[int] = []
    report = run_job(source, output, OPTIONS, on_progress=lambda one: seen.append(one.rows))
    found = read_lines(output)
    assert [one["id"] for one in found] == [row.get("id", 3) for row in rows]
    assert set(found[0]["value"]) == set(SCHEMA["required"]) and json.loads(found[0]["text"]) == found[0]["value"]
    assert [set(one["text"]) <= {"a", "b"} for one in found[2]["outputs"]] == [True] * 3
    kinds = {one["id"]: one["error"]["type"] for one in found if "error" in one}
    assert kinds.pop("messages")  # the embedded model has no chat template
    assert kinds == {
        "unknown": "ArgumentError", "malformed": "RegexError", "unsatisfiable": "UnsatisfiableError",
        "budget": "LimitError", "range": "ConstrainError", "grammar": "GrammarError",
    }  # fmt: skip
    assert (report.total, report.rows, report.valid, report.errors) == (9, 9, 2, 7)
    assert seen == list(range(10))
    assert report.tokens == found[0]["tokens"] + sum(one["tokens"] for one in found[2]["outputs"])
    assert min(report.seconds, report.model_seconds, report.compile_seconds, report.mask_seconds) > 0


@pytest.mark.slow
def test_the_output_does_not_depend_on_batches_and_order(tmp_path: Path) -> None:
    source = write_job(tmp_path / "in.jsonl", 40)
    outputs = []
    for number, (window, slots) in enumerate([(1, 1), (40, 32), (7, 3)]):
        output = tmp_path / f"out{number}"
        options = JobOptions(arguments={"max_tokens": 40}, seed=3, window=window, slots=slots)
        run_job(source, output, options)
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1] == outputs[2]
    lines = source.read_text("utf-8").splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    source.write_text("".join(lines), "utf-8")
    run_job(source, tmp_path / "shuffled", OPTIONS)
    by_id = sorted((tmp_path / "shuffled").read_bytes().splitlines(), key=lambda line: str(json.loads(line)["id"]))
    assert by_id == sorted(outputs[0].splitlines(), key=lambda line: str(json.loads(line)["id"]))
    run_job(source, tmp_path / "other", JobOptions(arguments={"max_tokens": 40}, seed=4))
    assert (tmp_path / "other").read_bytes() != (tmp_path / "shuffled").read_bytes()


@pytest.mark.slow
def test_a_killed_job_goes_on(tmp_path: Path) -> None:
    """SIGKILL after a random number of rows, and a torn line; `python -m bench jobs` kills many times."""
    source, output, whole = write_job(tmp_path / "in.jsonl", 60), tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    command = [sys.executable, "-c", "from constrain.cli.app import main; main()", "batch", str(source)]
    options = ["--max-tokens", "40", "--seed", "3", "--window", "8"]
    rng = random.Random(5)
    least = rng.randint(1, 30)
    with subprocess.Popen([*command, str(output), *options], cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and count_lines(output) < least:
            sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, "it was killed before its end"
    assert least <= count_lines(output) < 60
    with open(output, "ab") as file:
        file.write(b'{"id": "torn')
    report = run_job(source, output, options_like(output))
    assert report.resumed >= least and report.rows == 60
    assert run_job(source, whole, options_like(output)).resumed == 0
    assert output.read_bytes() == whole.read_bytes()


def options_like(output: Path) -> JobOptions:
    """The options of the command line in `test_a_killed_job_goes_on`, which its side file confirms."""
    options = JobOptions(arguments={"max_tokens": 40, "temperature": 1.0, "chat": "plain"}, seed=3, registry={})
    side = json.loads(Path(f"{output}.job").read_text("utf-8"))
    assert side["arguments"] == options.describe()["arguments"]
    return options


def test_the_command_reports_rows_and_has_exit_code_1_for_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"prompt": "x"}\n{"prompt": "y", "n": 0.5}\n', "utf-8")
    schema = '{"enum": [1, 2]}'
    assert app.run_command(["batch", str(source), str(output), "--schema", schema, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["valid"], report["errors"], report["resumed"]) == (2, 1, 1, 0)
    assert app.run_command(["batch", str(source), str(output), "--schema", schema]) == 1
    assert "2 rows, 2 of them by an earlier run: 1 valid, 1 errors" in capsys.readouterr().err
    assert app.run_command(["batch", str(source), str(output), "--schema", schema, "--seed", "1"]) == 2
    assert "seed" in capsys.readouterr().err
    assert app.run_command(["batch", str(source), str(source), "--schema", schema]) == 2
    assert app.run_command(["batch", str(source), f"{output}2", "--model", "/no/such/model"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_stdout_of_a_job_is_redirected_to_stderr_with_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray prints a notice to stdout when a worker is killed."""

    def run_noisily(*arguments: Any, **options: Any) -> Any:
        print("(raylet) A worker died or was killed")
        return run_job(*arguments, **options)

    monkeypatch.setattr("constrain.cli.batch_command.run_job", run_noisily)
    source = tmp_path / "in.jsonl"
    source.write_text('{"prompt": "x"}\n', "utf-8")
    assert app.run_command(["batch", str(source), str(tmp_path / "out"), "--choice", "a", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["valid"] == 1
    assert "(raylet)" in printed.err


def test_an_interrupted_command_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*arguments: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("constrain.cli.batch_command.run_job", interrupt)
    assert app.run_command(["batch", "in.jsonl", str(tmp_path / "out"), "--choice", "a"]) == 130
    assert "the same command goes on from there" in " ".join(capsys.readouterr().err.split())
