"""The speed benches: targets, curves, slopes, instruction counts and slow steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import constrain
from bench import growing, instructions, scaling, slowest, verdicts
from bench.curves import draw_plot
from bench.measure import Result
from bench.percentiles import compute_tail, compute_tails
from bench.workers import Failure
from constrain import Style, Vocabulary
from tests.benches.test_bench import job


def timed(engine: str, mode: str, value: float) -> dict[str, Any]:
    figures = dict.fromkeys(("mean", "p50", "p90", "p99", "p99.9", "max"), value)
    return {"engine": engine, "mode": mode, "schemas": "common to all", "step µs": figures, "first mask µs": figures}


def test_targets_compare_with_the_better_peer() -> None:
    times = [timed("constrain", mode, 10.0) for mode in ("warm", "cold")]
    times += [timed("llguidance", "warm", 100.0), timed("llguidance", "cold", 30.0), timed("xgrammar", "warm", 49.0)]
    found = verdicts.judge_targets(times)
    assert [row["verdict"] for row in found] == [*2 * ["met"], *3 * ["missed"], *3 * ["met"], *2 * ["missed"], "met"]
    assert found[2]["peer"] == "xgrammar" and found[2]["part"] == pytest.approx(10 / 49)


def test_missing_targets_are_not_evaluated() -> None:
    found = verdicts.judge_targets([timed("constrain", "warm", 1.0), timed("llguidance", "warm", 100.0)])
    assert [row["verdict"] for row in found] == ["met", "not judged", *6 * ["met"], *3 * ["not judged"]]
    assert found[1]["lacking"] == ["xgrammar"] and found[2]["lacking"] == ["xgrammar"] and found[8]["lacking"]
    empty = {**timed("constrain", "warm", 1.0), "step µs": {}}
    assert verdicts.judge_targets([empty, timed("llguidance", "warm", 1.0)])[0]["verdict"] == "not judged"


def test_a_tail_ends_with_the_slowest() -> None:
    curve = compute_tail(np.arange(1_000, 0, -1) * 1_000)
    assert curve[0] == (1.0, 1.0) and curve[-1] == (0.001, 1_000.0)
    assert all(us == pytest.approx(1_001 - 1_000 * fraction) for fraction, us in curve)
    assert compute_tail(np.zeros(0)) == []


def result(name: str, first: int, *steps: int) -> Result:
    made = Result(name, first=first)
    made.steps.extend(steps)
    return made


def test_curves_are_of_common_schemas_and_always_the_same_file(tmp_path: Path) -> None:
    jobs = [job(name) for name in "ab"]
    runs = {
        ("x", "warm"): [result("a", 5_000, 1_000, 2_000), result("b", 1, 99_000)],
        ("y", "warm"): [result("a", 7_000, 3_000), Failure("timeout", "")],
    }
    panels = compute_tails(jobs, runs)
    assert panels["step, warm"] == {"x": [(1.0, 1.0), (0.5, 2.0)], "y": [(1.0, 3.0)]}
    assert panels["first mask, warm"]["y"] == [(1.0, 7.0)]
    pytest.importorskip("matplotlib")
    one, two = (draw_plot(tmp_path / f"{n}.svg", "t", "a", "b", panels).read_bytes() for n in (1, 2))
    assert one == two and b"step, warm" in one


def test_slopes_and_their_outcomes() -> None:
    sizes = [10, 100, 1_000]
    assert scaling.compute_slope(sizes, [3.0, 30.0, 300.0]) == pytest.approx(1.0)
    assert scaling.compute_slope(sizes, [3.0, 3.0, 3.0]) == pytest.approx(0.0)
    assert scaling.compute_slope(sizes[:2], [3.0, 3.0]) is None
    points = [
        scaling.Point(row, size, "x", {"first mask": float(size), "step mean": 2.0, "step max": 3.0})
        for row in ("maxItems", "enum values") for size in sizes
    ]  # fmt: skip
    points += [scaling.Point("maxLength", 10, "x", failed="out of time")]
    constant, linear, failed = scaling.summarise_points(points)
    assert (constant["verdict"], linear["verdict"]) == ("grows: first mask", "met")
    assert (failed["verdict"], failed["failed"], failed["reached"]) == ("not judged", "out of time", 0)
    assert (
        scaling.format_microseconds(6.84) == "6.8"
        and scaling.format_microseconds(27_100) == "27 ms"
        and scaling.format_microseconds(1.84e6) == "1.8 s"
    )


@pytest.mark.parametrize("row", growing.ROWS)
@pytest.mark.parametrize("size", [10, 300])
def test_growing_schemas_accept_their_texts(row: str, size: int) -> None:
    made = growing.ROWS[row].make(size)
    matcher = constrain.compile(Vocabulary.bytes(), schema=made.schema, style=Style.any()).matcher()
    matcher.advance_bytes(made.text.encode())
    assert matcher.is_complete == (growing.ROWS[row].whole or size <= growing.LENGTH)


DUMP = """desc: Trigger: Client Request: case: warm
ob=/lib/engine.so
fn=one
1 10
calls=2 0
1 500
2 5
ob=???
3 7
"""


def test_instructions_are_counted_by_object(tmp_path: Path) -> None:
    (tmp_path / "out.1").write_text(DUMP)
    found = instructions.read_dumps(tmp_path, "engine")
    assert found == {"case: warm": 22, "case: warm, inside": 15}
    rows = instructions.summarise_counts({"x": found | {"idle case: warm": 2}, "y": {}}, {"case": 5})
    assert (rows[0]["warm"], rows[0]["inside"], rows[0]["fresh"], rows[1]["warm"]) == (4, 3, None, None)


def test_texts_of_the_counted_schemas_are_accepted() -> None:
    for name, (schema, _) in instructions.CASES.items():
        matcher = constrain.compile(Vocabulary.bytes(), schema=json.dumps(schema)).matcher()
        matcher.advance_bytes(instructions.spell_instance(name).encode())
        assert matcher.is_complete, name


def test_a_step_is_of_the_kind_that_took_most() -> None:
    counts = {"sets": 1, "closures": 1, "trie nodes": 5_000}
    step = slowest.Step("s", 0, 0, 1_000, {"rules linked": 600, "row made": 10}, counts)
    assert step.kind == "rules linked"
    step.requests = {"rules linked": 100}
    assert step.kind == "walk of 1,000 nodes and more"
    step.counts = {"sets": 0, "closures": 0, "trie nodes": 0}
    assert step.kind == "all known"


def test_requests_to_state_caches_are_recorded() -> None:
    requests: list[str] = []

    def walk() -> None:
        matcher = constrain.compile(Vocabulary.bytes(), schema={"type": "string", "pattern": "^a[bc]{7}"}).matcher()
        for byte in b'"ab':
            matcher.mask()
            matcher.advance_bytes(bytes([byte]))

    with slowest.hook_requests(lambda what, ns: requests.append(what)):
        walk()
    recorded = list(requests)
    assert "leaf state expanded" in recorded and set(recorded) <= set(slowest.REQUESTS.values())
    walk()
    assert requests == recorded, "and nothing after"
