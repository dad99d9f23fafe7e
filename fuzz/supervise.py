"""Run a target in child processes until its time is up, and collect the findings.

A child that dies is a finding (hang, memory or crash) with its current input; the next one continues with another seed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .findings import Finding

__all__ = ["Outcome", "choose_guided_engine", "supervise_target"]

STARTS = 40
"""Seconds for the start and the end of a child, in addition to its own time."""
COVERED = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")
WORDS = ("MemoryError", "bad_alloc", "memory allocation of", "Cannot allocate memory", "mmap")


@dataclass
class Outcome:
    """Result of one target. coverage: edges (atheris) or lines (Python) of the library that were reached."""

    target: str
    engine: str
    seconds: float = 0.0
    executions: int = 0
    coverage: int = 0
    corpus: int = 0
    replayed: int = 0
    deaths: int = 0
    slowest: float = 0.0
    findings: dict[str, Finding] = field(default_factory=dict)
    explained: Counter[str] = field(default_factory=Counter)

    def add(self, finding: Finding) -> None:
        """Add a finding; of each signature the shortest input is retained."""
        name = f"{finding.kind}: {finding.signature}"
        known = self.findings.get(name)
        if known is None or len(finding.shown) < len(known.shown):
            self.findings[name] = finding


def choose_guided_engine() -> str:
    """Return the coverage-guided engine of this machine: atheris where it is installed."""
    return "atheris" if importlib.util.find_spec("atheris") else "python"


def supervise_target(target: str, engine: str, seconds: float, seed: int) -> Outcome:
    """Run a target for some seconds, in as many processes as it takes."""
    outcome = Outcome(target, engine)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for attempt in range(1_000):
            left = seconds - (time.monotonic() - begin)
            if left < 1 and attempt:
                break
            run_child(outcome, Path(folder) / f"{attempt}.log", left, seed + 7_919 * attempt)
    outcome.seconds = time.monotonic() - begin
    return outcome


def run_child(outcome: Outcome, state: Path, seconds: float, seed: int) -> None:
    """Run one process until it ends, dies or is killed, and add its results to the outcome."""
    command = [
        sys.executable,
        "-m",
        "fuzz.child",
        outcome.target,
        "--engine",
        outcome.engine,
        "--seconds",
        f"{seconds:.1f}",
        "--seed",
        str(seed),
        "--skip",
        str(outcome.replayed),
        "--state",
        str(state),
    ]
    with state.with_suffix(".err").open("w+b") as errors:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
        try:
            status = child.wait(seconds + STARTS + 60)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            status = child.wait() and -signal.SIGALRM
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
        errors.seek(0)
        output = errors.read().decode(errors="replace")
    read_log(outcome, state)
    for match in COVERED.finditer(output):
        outcome.coverage, outcome.corpus = max(outcome.coverage, int(match[1])), max(outcome.corpus, int(match[3]))
    if status:
        outcome.deaths += 1
        outcome.add(build_death_finding(outcome.target, status, output, state.with_suffix(".current")))


def read_log(outcome: Outcome, state: Path) -> None:
    """Read the log of a child into the outcome."""
    executions, explained = 0, Counter[str]()
    for line in state.read_text("utf-8").splitlines() if state.exists() else ():
        record = json.loads(line)
        if "finding" in record:
            outcome.add(Finding(**record["finding"]))
        elif "replays" in record:
            outcome.replayed = record["replays"] + 1
        else:
            executions = max(executions, record["executions"])
            explained = Counter(record.get("explained", {}))
            outcome.slowest = max(outcome.slowest, record.get("slowest", 0.0))
            outcome.coverage = max(outcome.coverage, record.get("lines", 0))
    outcome.executions += executions
    outcome.explained += explained


def build_death_finding(target: str, status: int, output: str, current: Path) -> Finding:
    """Build the finding of a child that died."""
    shown = current.read_text("utf-8", errors="surrogatepass") if current.exists() else "(before the first input)"
    name = signal.Signals(-status).name if status < 0 else f"exit {status}"
    if status in (-signal.SIGXCPU, -signal.SIGALRM):
        return Finding(
            target,
            "hang",
            f"{name}, {shorten_input(shown)}",
            f"more than the CPU time of one input\n{output[-2000:]}",
            shown,
        )
    if any(word in output[-4_000:] for word in WORDS):
        return Finding(target, "memory", f"{name}, {shorten_input(shown)}", output[-3_000:], shown)
    return Finding(target, "crash", f"{name}", output[-3_000:], shown)


def shorten_input(shown: str) -> str:
    """Return the first characters of an input, which are the signature of a hang, as it has no traceback."""
    return re.sub(r"\s+", " ", shown[:30])
