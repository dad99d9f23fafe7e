"""The benchmark: outcomes are correct, runs are limited, and results survive an engine that misbehaves."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import report
from bench.corpus import ENDS, SIZE, Case, Instance, choose_cases, load_cases
from bench.engines import Refused, is_allowed, tally_name
from bench.measure import Job, Result, measure_schema
from bench.workers import Failure, Guard, run_guarded


class Toy:
    """Allows the tokens 1 and 2 for ever, and an end after a 2."""

    package = "toy"

    def __init__(self) -> None:
        self.words = np.zeros((SIZE + 31) // 32, np.int32)
        self.last = 0
        self.held = 0

    def compile(self, text: str) -> None:
        assert not self.held, "the schema before was not freed"
        self.held = 1
        if text == "refused":
            raise Refused("no keyword 'foo' at line 3")
        if text == "broken":
            raise IndexError("a bug")

    def start(self) -> None:
        self.last = 0

    def mask(self) -> None:
        self.words[:] = 0
        self.words[0] = 0b110
        if self.last == 2:
            self.words[ENDS[0] >> 5] |= 1 << (ENDS[0] & 31)

    def advance(self, token: int) -> None:
        self.last = token

    def forget(self) -> None:
        self.held = 0

    def why_rejected(self, text: str, tokens: list[int]) -> str:
        return "other"


def job(schema: str, *tests: tuple[list[int], bool]) -> Job:
    return Job(
        Case(schema, schema, tuple(Instance("", valid) for _, valid in tests)), tuple(tokens for tokens, _ in tests)
    )


def test_measure_checks_every_instance() -> None:
    result = measure_schema(
        Toy(), job("s", ([1, 2], True), ([1], True), ([3], False), ([1, 1], False), ([2], False), ([2, 4], True))
    )
    assert (result.rejected, result.accepted) == ([1, 5], [4])
    assert len(result.steps) == 2 + 1 + 1 + 2 + 1 + 2, "a refused token counts with its mask"
    assert result.first > 0 and all(step > 0 for step in result.steps)


def test_measure_separates_refusals_from_mistakes() -> None:
    refused, broken = measure_schema(Toy(), job("refused")), measure_schema(Toy(), job("broken"))
    assert refused.refused == ("no keyword … at line #", "no keyword 'foo' at line 3")
    assert broken.refused is None and broken.error == "while compiling: IndexError: a bug"


def test_memory_of_a_schema_is_freed_outside_of_the_timed_section() -> None:
    now, toy = [0], Toy()

    def free() -> None:
        now[0] += 1_000_000
        toy.held = 0

    def mask() -> None:
        now[0] += 7

    toy.forget, toy.mask = free, mask  # type: ignore[method-assign]
    for _ in range(2):
        assert measure_schema(toy, job("s"), clock=lambda: now[0]).first == 7


def misbehave(what: str) -> Any:
    if what == "hangs":
        time.sleep(60)
    if what == "dies":
        os._exit(3)
    if what == "eats":
        return len(bytearray(8 << 30))
    return what


@pytest.mark.parametrize("fresh", [False, True])
def test_a_bad_item_costs_only_itself(fresh: bool) -> None:
    items = ["a", "hangs", "b", "dies", "eats", "c"]
    outcomes = list(run_guarded(misbehave, items, limits=Guard(seconds=1.0, memory=1 << 30), fresh=fresh))
    assert [index for index, _ in outcomes] == list(range(len(items)))
    kinds = [outcome.kind if isinstance(outcome, Failure) else outcome for _, outcome in outcomes]
    assert kinds == ["a", "timeout", "b", "crash", "memory", "c"]


def spin(seconds: float) -> float:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return seconds


def test_the_limit_can_be_of_what_is_computed() -> None:
    outcomes = list(run_guarded(spin, [0.0, 30.0, 0.1], limits=Guard(0.5, 1 << 30, "cpu"), fresh=False))
    assert [outcome.kind if isinstance(outcome, Failure) else outcome for _, outcome in outcomes] == [
        0.0,
        "timeout",
        0.1,
    ]


def test_workers_compute_with_torch_after_it_was_used_with_threads() -> None:
    pytest.importorskip("torch")
    code = """
import torch
from bench.workers import run_in_child
torch.set_num_threads(2)
torch.full((1 << 20,), 1.0).sum()  # begins the threads
print(run_in_child(lambda: float(torch.full((1 << 20,), 1.0).sum())))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert run.stdout == "1048576.0\n", run.stderr


def test_summary_counts_and_compares_on_common_schemas() -> None:
    jobs = [job(name, ([2], True)) for name in "abc"]
    good = [measure_schema(Toy(), item) for item in jobs]
    other = [Result("a", refused=("kind", "reason")), Failure("timeout", "more than 10 s"), good[2]]
    tables = report.summarise_runs(jobs, {("x", "warm"): good, ("y", "warm"): other})
    first, second = tables["exactness"]
    assert (first["passing"], second["passing"], second["refused"], second["out of time"]) == (3, 1, 1, 1)
    assert second["refusals"] == {"kind": 1}
    assert [row["count"] for row in tables["time"]] == [3, 1, 1, 1]
    json.dumps(tables)


def test_load_and_choose(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl.gz"
    rows = [{"id": f"s{i}", "schema": {"const": "é"}, "tests": [{"valid": True, "data": [i, "é"]}]} for i in range(9)]
    path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in rows).encode()))
    cases = load_cases(path)
    assert cases[3] == Case("s3", '{"const": "é"}', (Instance('[3, "é"]', True),))
    assert choose_cases(cases, sample=None, seed=0) == cases
    assert (
        choose_cases(cases, sample=4, seed=1)
        == choose_cases(cases, sample=4, seed=1)
        != choose_cases(cases, sample=4, seed=3)
    )
    assert [case.id for case in choose_cases(cases, sample=4, seed=1, ids=["s5", "s2"])] == ["s5", "s2"]
    with pytest.raises(ValueError, match="no such id: nope"):
        choose_cases(cases, sample=None, seed=0, ids=["nope"])
    path.write_bytes(gzip.compress(b'{"id": 1}\n'))
    with pytest.raises(ValueError, match="line 1: not a case"):
        load_cases(path)


def test_small_things() -> None:
    words = np.array([0, -(2**31)], np.int32)
    assert is_allowed(words, 63) and not is_allowed(words, 62)
    assert tally_name("Unknown format: \"a\" at 'b' 12\nmore") == "Unknown format: … at … #"
