"""The bench of plug-ins: what is valid, what the engine refuses, and what is a fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import constrain
from bench.corpus import Case
from bench.plugins.__main__ import ENGINES, main, measure_plugin
from bench.plugins.tally import EngineRefusal, MaskCheck, PluginEngine, Tally, compute_allowed

VOCABULARY = constrain.Vocabulary.bytes()
SCHEMA = json.dumps({"type": "integer", "minimum": 0, "maximum": 9})


class StandIn(PluginEngine):
    """Answers with a text, or by a function; its masks are those of a Matcher, changed by another function."""

    name, package, where = "stand-in", "constrain", "here"

    def __init__(self, answer: Callable[[], str | None], change: Callable[[Any], Any] = lambda row: row) -> None:
        self.given, self.change = answer, change

    def load(self) -> Any:
        return VOCABULARY

    def answer(self, constraint: Any, source: dict[str, Any], max_tokens: int | None, seed: int) -> str | None:
        return self.given()

    def compare(self, constraint: Any, source: dict[str, Any], tokens: int, seed: int, check: MaskCheck) -> None:
        for text in (b"", b"7"):
            check(list(text), self.change(compute_allowed(constraint, list(text))))


class Seven(StandIn):
    def __init__(self) -> None:
        super().__init__(lambda: "7")


def test_engines_measured_alone_have_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "cases.jsonl"
    data.write_text(json.dumps({"id": "one", "schema": json.loads(SCHEMA), "tests": []}) + "\n")
    for name in ("mlx", "llama"):
        monkeypatch.setitem(ENGINES, name, (Seven,))
        assert main(["--data", str(data), "--engines", name, "--results", str(tmp_path)]) == 0
    found = {path.name: json.loads(path.read_text()) for path in tmp_path.glob("*/*.json")}
    assert sorted(found) == ["plugins-llama.json", "plugins-mlx.json"]
    assert found["plugins-mlx.json"]["facts"]["rows"][0]["valid"] == 1


def measure(engine: StandIn, schema: str = SCHEMA) -> Tally:
    return measure_plugin(engine, [Case("one", schema, ())], masks=2, seed=0, progress=lambda: None)


def counts(tally: Tally) -> dict[str, int]:
    return {name: count for name, count in tally.counts.items() if count}


def refuse() -> str:
    raise EngineRefusal("no NUL bytes")


def fail() -> str:
    raise ValueError("a bug")


def test_valid_answers_and_equal_masks() -> None:
    tally = measure(StandIn(lambda: "7"))
    assert counts(tally) == {"answers": 1, "valid": 1, "masks": 2} and not tally.faults and not tally.refusals


@pytest.mark.parametrize(
    ("answer", "expected", "fault"),
    [
        (lambda: "12", {"answers": 1, "invalid": 1, "masks": 2}, "12"),
        (lambda: None, {"not ended": 1, "masks": 2}, "did not end"),
        (fail, {"failed": 1}, "ValueError: a bug"),
    ],
    ids=["invalid", "not ended", "failed"],
)
def test_faults(answer: Callable[[], str | None], expected: dict[str, int], fault: str) -> None:
    tally = measure(StandIn(answer))
    assert counts(tally) == expected and tally.faults == [f"stand-in, one: {fault}"]


def test_engine_refusals_are_counted_with_their_reason_and_not_as_faults() -> None:
    tally = measure(StandIn(refuse))
    assert counts(tally) == {"refused by engine": 1} and not tally.faults
    assert tally.refusals == ["stand-in refuses one: no NUL bytes"]


def test_constrain_refusals_are_counted_apart_from_engine_refusals() -> None:
    assert counts(measure(StandIn(refuse), '{"type": "objekt"}')) == {"refused": 1}


@pytest.mark.parametrize("token", [ord("x"), ord("7")], ids=["one too many", "one too few"])
def test_a_mask_that_differs_in_one_token_is_a_fault(token: int) -> None:
    def change(row: Any) -> Any:
        row = row.copy()
        row[token] = not row[token]
        return row

    tally = measure(StandIn(lambda: "7", change))
    assert tally.counts["masks different"] == 2 and tally.faults == ["stand-in, one: 2 of 2 masks differ"]
