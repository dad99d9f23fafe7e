"""Run a target within one process: on inputs of Hypothesis, or guided by coverage.

A `Run` has callbacks before and after each input, so that a supervisor knows the input of a process that died.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed as seeded, settings

from .findings import Finding, build_finding
from .minimise import minimise_input
from .target import Target, show_input

__all__ = ["Coverage", "Run", "check_inputs", "generate_inputs", "run_guided"]

ROOT = str(Path(__file__).resolve().parent.parent / "constrain") + "/"
LONGEST = 4_096
"""Maximum number of bytes of choices from which a mutated input is drawn."""
BATCH = 200


@dataclass
class Run:
    """One target in one process.

    before: called with the text of an input before its check. after: called after the check; raises if it exceeded a
    limit. found: called with each finding. end: time (monotonic) after which no input is checked.
    """

    target: Target
    before: Callable[[str], None]
    after: Callable[[], None]
    found: Callable[[Finding], None]
    executions: int = 0
    end: float = math.inf
    choices: bytes = b""
    corpus: list[bytes] = field(default_factory=list)
    reported: set[tuple[str, str]] = field(default_factory=set)

    def check(self, value: Any) -> None:
        """Check one input. Any exception is reported as a finding."""
        if time.monotonic() > self.end:
            return
        self.executions += 1
        finding = self.find(value, self.choices)
        if finding is not None:
            self.report(value, finding)

    def report(self, value: Any, finding: Finding) -> None:
        """Report a finding, once per signature, and again with a minimised input."""
        name = finding.kind, finding.signature
        if name in self.reported:
            return
        self.reported.add(name)
        self.found(finding)

        def has_same_finding(one: Any) -> bool:
            found = self.find(one)
            return found is not None and (found.kind, found.signature) == name

        again = self.find(minimise_input(value, has_same_finding))
        if again is not None:
            self.found(again)

    def find(self, value: Any, choices: bytes = b"") -> Finding | None:
        """Return the finding of one input, or None."""
        shown = show_input(value)
        self.before(shown)
        try:
            try:
                self.target.check(value)
            finally:
                self.after()
        except Exception as error:
            return build_finding(self.target.name, error, shown, choices)
        return None

    def build_test(self, count: int, seed: int) -> Any:
        """Return the target as a Hypothesis test."""

        @seeded(seed)
        @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate], verbosity=Verbosity.quiet,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(self.target.inputs)
        def drawn(value: Any) -> None:
            self.check(value)

        return drawn


def generate_inputs(run: Run, seconds: float, seed: int) -> None:
    """Check inputs of Hypothesis until the time is up."""
    run.end = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < run.end:
        run.build_test(BATCH, seed + 1_000_003 * rounds)()
        rounds += 1


def check_inputs(run: Run, executions: int, seed: int) -> None:
    """Check a fixed number of inputs, the same ones for the same seed."""
    run.build_test(executions, seed)()


# ---- guided by coverage ------------------------------------------------------------------------------------------


class Coverage:
    """Records the lines of the library that run, with sys.monitoring (Python 3.12) or sys.settrace."""

    def __init__(self) -> None:
        self.lines: set[tuple[CodeType, int]] = set()
        self.monitoring: Any = getattr(sys, "monitoring", None)

    def __enter__(self) -> Coverage:
        if self.monitoring is None:
            sys.settrace(self._enter)
            return self
        tool, events = self.monitoring.COVERAGE_ID, self.monitoring.events
        self.monitoring.use_tool_id(tool, "fuzz")
        self.monitoring.register_callback(tool, events.LINE, self._line)
        self.monitoring.set_events(tool, events.LINE)
        return self

    def __exit__(self, *_: object) -> None:
        if self.monitoring is None:
            sys.settrace(None)
            return
        self.monitoring.set_events(self.monitoring.COVERAGE_ID, 0)
        self.monitoring.free_tool_id(self.monitoring.COVERAGE_ID)

    def _line(self, code: CodeType, line: int) -> Any:
        if code.co_filename.startswith(ROOT):
            self.lines.add((code, line))
        return self.monitoring.DISABLE  # each line is reported once

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._step if frame.f_code.co_filename.startswith(ROOT) else None

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.lines.add((frame.f_code, frame.f_lineno))
        return self._step


def run_guided(run: Run, seconds: float, seed: int) -> int:
    """Check mutated choices; add those that reach new lines to the corpus. Return the number of lines reached.

    This is the coverage-guided loop of libFuzzer in Python, for machines without atheris.
    """
    rng = random.Random(seed)
    one_input = run.build_test(1, seed).hypothesis.fuzz_one_input
    corpus = run.corpus or [rng.randbytes(64)]
    end = time.monotonic() + seconds
    with Coverage() as coverage:
        while time.monotonic() < end:
            run.choices = mutate_input(corpus, rng)
            known = len(coverage.lines)
            used = one_input(run.choices)
            if used is not None and len(coverage.lines) > known:
                corpus.append(used)
    run.corpus = corpus
    return len(coverage.lines)


def mutate_input(corpus: list[bytes], rng: random.Random) -> bytes:
    """Return a member of the corpus with one to eight changes; recent members are preferred."""
    data = bytearray(corpus[-1 - min(int(rng.expovariate(0.05)), len(corpus) - 1)])
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at, size = rng.randint(0, len(data)), rng.choice((1, 1, 2, 4, 16))
        match rng.randrange(6):
            case 0:
                data[at : at + size] = rng.randbytes(size)
            case 1:
                data[at:at] = rng.randbytes(size)
            case 2:
                del data[at : at + size]
            case 3:
                other = rng.choice(corpus)
                cut = rng.randint(0, len(other))
                data[at:] = other[cut:]
            case 4:
                data[at:at] = data[at : at + size]
            case _ if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
    if len(data) < 16:
        data += rng.randbytes(32)
    return bytes(data[:LONGEST])
