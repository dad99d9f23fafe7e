"""Does a job over a file write every row exactly once, with the same bytes, after kills and on Ray?

    python -m bench jobs [--rows 2000] [--runs plain,killed,small,ray-1,ray-2,ray-2-killed,ray-2-restarted]

plain              `constrain batch` in one process; the others are compared with its output, byte for byte
killed             the same, killed (SIGKILL) after random numbers of rows, and started again each time
small              the same in batches of at most 5 texts
ray-1, ray-2       on a Ray cluster of this machine with one worker, and with two
ray-2-killed       one of two workers is killed, several times, while the job runs
ray-2-restarted    the job itself is killed, with its cluster, and started again

Rows have short answers under five constraints; every 50th has an unknown field, which is an error of the row. Every
answer is judged by the jsonschema package, Python's `re`, or the list of choices. Exit code 1 if an output differs.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

from .options import build_parser, split_names
from .record import write_result
from .tables import print_rows

__all__ = ["SCHEMA", "main", "write_job"]

ROOT = Path(__file__).resolve().parent.parent
RUNS: dict[str, list[str]] = {
    "plain": [], "killed": [], "small": ["--slots", "5", "--window", "9"],
    "ray-1": ["--engine", "ray", "--workers", "1"], "ray-2": ["--engine", "ray", "--workers", "2"],
    "ray-2-killed": ["--engine", "ray", "--workers", "2"], "ray-2-restarted": ["--engine", "ray", "--workers", "2"],
}  # fmt: skip
"""Options of the command for each run."""
KILLS = {"killed": 4, "ray-2-killed": 2, "ray-2-restarted": 1}
"""Number of times that a process is killed."""
OPTIONS = ("--max-tokens", "40", "--seed", "3", "--json")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}  # fmt: skip
CONSTRAINTS: list[dict[str, Any]] = [
    {"schema": SCHEMA},
    {"schema": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "minItems": 1, "maxItems": 3}},
    {"schema": {"type": "boolean"}},
    {"regex": "[a-z]{2,6}"},
    {"choices": ["yes", "no", "maybe"]},
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the jobs and compare their outputs. Return the exit code."""
    parser = build_parser("jobs", __doc__, "seed", "results")
    parser.add_argument("--rows", type=int, default=2000, help="rows of the job")
    parser.add_argument("--runs", type=split_names(RUNS), default=list(RUNS), metavar="A,B", help=", ".join(RUNS))
    options = parser.parse_args(arguments)
    rows: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        source = write_job(Path(folder) / "in.jsonl", options.rows)
        expected: bytes | None = None
        for name in options.runs:
            output = Path(folder) / f"{name}.jsonl"
            kills, report, seconds = run_to_end(name, source, output, random.Random(options.seed))
            expected = output.read_bytes() if expected is None else expected
            rows.append({"run": name, **judge_output(source, output, expected), "kills": kills,
                         "resumed": report["resumed"], "s": seconds, "rows/s": options.rows / seconds,
                         "tokens": report["tokens"], "tokens/s": report["tokens_per_second"]})  # fmt: skip
            print(json.dumps(rows[-1]), file=sys.stderr)
    print_rows(f"jobs of {options.rows:,} rows", rows)
    write_result(options, {"rows": rows})
    return int(any(row["exactly once"] != "yes" or row["identical"] != "yes" or row["invalid"] for row in rows))


def write_job(path: Path, rows: int) -> Path:
    """Write an input file with `rows` rows."""
    with open(path, "w", encoding="utf-8") as file:
        for number in range(rows):
            row: dict[str, Any] = {"id": f"r{number}", "prompt": f"Describe person {number}."}
            row |= CONSTRAINTS[number % len(CONSTRAINTS)]
            if number % 50 == 7:
                row["surprise"] = 1
            file.write(json.dumps(row) + "\n")
    return path


# ---- runs ------------------------------------------------------------------------------------------------------------


def run_to_end(name: str, source: Path, output: Path, rng: random.Random) -> tuple[int, dict[str, Any], float]:
    """Run a job, with kills, until it ends. Return their number, the report of the last process, and the seconds that
    all processes took together.
    """
    start, kills, total = perf_counter(), 0, count_lines(source)
    marks = sorted(rng.sample(range(1, total * 4 // 5), KILLS.get(name, 0)))
    if name == "ray-2-killed":
        with start_job(name, source, output) as process:
            for mark in marks:
                if wait_for_rows(process, output, min(mark, total // 4)):
                    kills += kill_worker(process.pid)
            return kills, read_report(process), perf_counter() - start
    for mark in marks:
        with start_job(name, source, output) as process:
            if wait_for_rows(process, output, mark):
                process.kill()
                kills += 1
    with start_job(name, source, output) as process:
        return kills, read_report(process), perf_counter() - start


@contextmanager
def start_job(name: str, source: Path, output: Path) -> Iterator[subprocess.Popen[str]]:
    """Start `constrain batch` in a session of its own, which is ended at the end."""
    command = [sys.executable, "-c", "from constrain.cli.app import main; main()", "batch", str(source), str(output)]
    with subprocess.Popen(
        [*command, *OPTIONS, *RUNS[name]], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.poll()
            for pid in list_descendants(process.pid):
                send_kill(pid)
            if process.returncode is None:
                process.kill()


def read_report(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the report of a finished job. Exit code 1 means that rows have errors."""
    out, _ = process.communicate()
    if process.returncode not in (0, 1):
        raise RuntimeError(f"the job ended with exit code {process.returncode}: {out}")
    report: dict[str, Any] = json.loads(out)
    return report


def wait_for_rows(process: subprocess.Popen[str], output: Path, rows: int) -> bool:
    """Wait until an output has `rows` rows. Return False if the job ended before."""
    while process.poll() is None:
        if count_lines(output) >= rows:
            return True
        sleep(0.02)
    return False


def count_lines(path: Path) -> int:
    """Return the number of lines of a file that may not exist."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_worker(parent: int) -> int:
    """Kill one of the Ray actors below a process. Return how many were killed."""
    for pid in list_descendants(parent):
        if "MapWorker" in read_process(pid, "cmdline"):
            send_kill(pid)
            return 1
    return 0


def send_kill(pid: int) -> None:
    """Kill a process if it has not ended."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def list_descendants(parent: int) -> list[int]:
    """Return the processes below a process, from /proc."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        stat = read_process(int(path.name), "stat")
        if stat:
            parents[int(path.name)] = int(stat.rpartition(")")[2].split()[1])
    found = [parent]
    for one in found:
        found += [pid for pid, above in parents.items() if above == one]
    return found[1:]


def read_process(pid: int, name: str) -> str:
    """Return a file of a process in /proc; "" if the process has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text("utf-8", "replace")
    except OSError:
        return ""


# ---- judgements ------------------------------------------------------------------------------------------------------


def judge_output(source: Path, output: Path, expected: bytes) -> dict[str, Any]:
    """Return the figures of an output."""
    rows = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    data = output.read_bytes()
    found = [json.loads(line) for line in data.splitlines()]
    is_valid = build_judge()
    pairs = [(row, one) for row, one in zip(rows, found) if "error" not in one]
    return {
        "rows": len(found),
        "exactly once": "yes" if [one["id"] for one in found] == [row["id"] for row in rows] else "NO",
        "identical": "yes" if data == expected else "NO",
        "valid": sum(is_valid(row, one) for row, one in pairs),
        "invalid": sum(not is_valid(row, one) for row, one in pairs),
        "errors": len(found) - len(pairs),
    }


def build_judge() -> Callable[[dict[str, Any], dict[str, Any]], bool]:
    """Return a function that says whether an answer satisfies the constraint of its row."""
    from jsonschema import Draft202012Validator

    def is_valid(row: dict[str, Any], answer: dict[str, Any]) -> bool:
        if "schema" in row:
            value = json.loads(answer["text"])
            return bool(value == answer["value"] and Draft202012Validator(row["schema"]).is_valid(value))
        if "regex" in row:
            return re.fullmatch(row["regex"], answer["text"]) is not None
        return answer["text"] in row["choices"]

    return is_valid
