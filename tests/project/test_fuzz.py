"""Short runs of every fuzz target with fixed seeds, and the reference validator against the official suite.

`make fuzz` runs the same targets for an hour, in child processes with limits. An input that does not return here is
ended by a timer of CPU time: that is a failure, and no measurement.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("regex")
from fuzz import engine
from fuzz.findings import Disagreement, Finding, build_finding, save_finding
from fuzz.minimise import minimise_input
from fuzz.reference import NotJson, Undecided, Validator, parse
from fuzz.reference.__main__ import find_differences
from fuzz.targets import TARGETS

EXAMPLES = {"peers-schema": 10, "peers-gbnf": 10, "lark-text": 20, "masks": 30}
FEW = 60
HANG = 30.0
UNDECIDED = 8
"""Tests of the suite whose references the validator does not follow: `$ref` beside `$id` into another document."""


class Hang(BaseException):
    """An input that does not return."""


@contextmanager
def ended(seconds: float = HANG) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def findings(name: str) -> list[Finding]:
    """Return the findings of the target's corpus and some drawn inputs."""
    found: list[Finding] = []
    shown: list[str] = []
    run = engine.Run(TARGETS[name], shown.append, lambda: None, found.append)
    run.target.prepare()
    try:
        for value in run.target.corpus:
            with ended():
                run.check(value)
        with ended(4 * HANG):
            engine.check_inputs(run, EXAMPLES.get(name, FEW), seed=12)
    except Hang:
        found.append(Finding(name, "hang", "no end", "", shown[-1]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TARGETS))
def test_fuzz_targets_report_no_disagreement(name: str) -> None:
    if name.startswith("peers"):
        pytest.importorskip("llguidance" if name == "peers-schema" else "xgrammar")
    if name == "sentencepiece":
        pytest.importorskip("sentencepiece")
    reports = [f"{one.kind}: {one.signature}\n{one.shown[:500]}\n{one.detail[:1500]}" for one in findings(name)]
    assert not reports, "\n\n".join(reports[:3])


def test_the_reference_validator_agrees_with_the_official_suite(shared: Path) -> None:
    path = shared / "data" / "json-schema-test-suite.tar.gz"
    if not path.exists():
        pytest.skip("needs the official suite")
    counts, lines = find_differences(path)
    assert not counts["differ"], lines
    assert counts["undecided"] <= UNDECIDED, lines
    assert counts["agree"] > 4_900


@pytest.mark.parametrize(
    ("schema", "instance", "valid"),
    [
        ('{"multipleOf": 0.1}', "0.3", True),
        ('{"multipleOf": 0.01}', "19.99", True),
        ('{"multipleOf": 2.5}', "0.025e2", True),
        ('{"multipleOf": 0.5}', "8.73248e+22", True),
        ('{"maximum": 9007199254740993}', "9007199254740993.0", True),
        ('{"exclusiveMaximum": 9007199254740993}', "9007199254740993.0", False),
        ('{"const": 1}', "1.0", True),
        ('{"const": 1}', "true", False),
        ('{"uniqueItems": true}', "[1, 1.0]", False),
        ('{"type": "integer"}', "1e400", True),
    ],
)
def test_the_reference_validator_is_exact(schema: str, instance: str, valid: bool) -> None:
    assert Validator(schema).is_valid(parse(instance)) == valid


def test_the_reference_says_when_it_does_not_know() -> None:
    with pytest.raises(Undecided):
        Validator('{"$ref": "#"}').is_valid(parse("1"))
    with pytest.raises(Undecided):
        Validator('{"$ref": "http://nowhere.example/"}').is_valid(parse("1"))
    with pytest.raises(NotJson):
        parse('{"a": 1, "a": 2}')


def test_a_finding_is_stored_once_with_its_shortest_input(tmp_path: Path) -> None:
    def one(shown: str) -> Finding:
        return build_finding("schema-text", Disagreement("a rule", shown), shown)

    path = save_finding(tmp_path, one("a long input"))
    assert path is not None
    assert save_finding(tmp_path, one("a longer input!")) is None
    assert save_finding(tmp_path, one("short")) == path
    assert len(list(tmp_path.iterdir())) == 1


def test_an_input_is_minimised() -> None:
    value = ("some long text with an x in it", [1, 2, {"a": "y", "b": [3, 4]}])

    def still(one: Any) -> bool:
        return "x" in one[0] and any(isinstance(part, dict) and "b" in part for part in one[1])

    assert minimise_input(value, still) == ("x", [{"b": []}])


def test_coverage_guides() -> None:
    """The engine in Python keeps inputs that reach new lines."""
    run = engine.Run(TARGETS["regex-text"], lambda shown: None, lambda: None, lambda finding: None)
    lines = engine.run_guided(run, 1.0, 3)
    assert run.executions > 0 and lines > 100 and len(run.corpus) > 1
