"""The official JSON Schema test suite, all drafts: what does not pass is exactly what is listed, with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import constrain
from bench import suite_ratchet
from bench.schema_suite import DRAFTS, Group, Verdict, judge_all, judge_group, load_suite, main, spell_variants
from constrain import Vocabulary

RATCHET = Path(__file__).parents[2] / "schema_suite_ratchet.json"
SUITE = Path("data") / "json-schema-test-suite.tar.gz"
RENEW = f"python -m bench schema_suite ../shared/{SUITE} --renew tests/{RATCHET.name}"


def test_the_suite_does_not_get_worse(shared: Path) -> None:
    if not (shared / SUITE).exists():
        pytest.skip(f"needs {shared / SUITE}")
    suite = load_suite(shared / SUITE)
    verdicts = judge_all(suite)
    worse, better = suite_ratchet.compare_verdicts(suite_ratchet.read_ratchet(RATCHET), verdicts)
    assert not worse, "\n".join([f"{len(worse)} tests that passed do not:", *worse[:20]])
    assert not better, "\n".join([f"{len(better)} listed tests pass; renew the list with {RENEW}", *better[:20]])
    assert {verdict.group.draft for verdict in verdicts} == set(DRAFTS)


def test_every_entry_has_a_reason() -> None:
    known = suite_ratchet.read_ratchet(RATCHET)
    assert [entry for entry in known if len(entry.reason.split()) < 4] == []
    assert all(entry.file.startswith("optional/") for entry in known)  # all required tests pass


VALUES = [{"a": [1, "é\U0001f600/"], "b": None, "c": {"d": True}}, "a/b", [], {}, -0.5]


@pytest.mark.parametrize("value", VALUES)
def test_spellings_say_the_same(value: Any) -> None:
    texts = spell_variants(value, "seed")
    assert all(json.loads(text) == value for text in texts)
    assert texts == spell_variants(value, "seed") and len(set(texts)) == len(texts)


def group(schema: Any, *tests: tuple[str, Any, bool], file: str = "type.json") -> Group:
    return Group("draft2020-12", file, "made", schema, tests)


def outcomes(made: Group) -> list[str]:
    return [verdict.outcome for verdict in judge_group(made, {}, Vocabulary.bytes())]


def test_judging() -> None:
    tests = (("one", "1", True), ("two", 1, False))
    assert outcomes(group({"type": "string"}, *tests)) == ["passed", "passed"]
    assert outcomes(group({"type": "null"}, *tests)) == ["wrong", "passed"]
    assert outcomes(group(False, *tests)) == ["wrong", "passed"]
    assert outcomes(group({"pattern": r"^(a|b)*\1$"}, *tests)) == ["refused"] * 2
    assert outcomes(group({"format": "ipv4"}, ("one", "x", True))) == ["passed"]
    assert outcomes(group({"format": "ipv4"}, ("one", "x", True), file="optional/format/ipv4.json")) == ["wrong"]


def test_the_ratchet_holds(tmp_path: Path) -> None:
    made = group({}, ("one", 1, True), ("two", 2, True))
    first, second = Verdict(made, "one", "wrong", "so"), Verdict(made, "two", "passed")
    path = tmp_path / "list.json"
    path.write_text(suite_ratchet.renew_ratchet([], [first, second]), "utf-8")
    known = suite_ratchet.read_ratchet(path)
    assert known[0].tests == ("one",) and known[0].reason == ""
    assert suite_ratchet.compare_verdicts(known, [first, second]) == ([], [])
    worse, better = suite_ratchet.compare_verdicts(
        known, [first._replace(outcome="passed"), second._replace(outcome="wrong")]
    )
    assert len(worse) == len(better) == 1 and "two" in worse[0] and "one" in better[0]
    kept = [entry._replace(reason="it is so") for entry in known]
    both = [first, second._replace(outcome="refused", why="an error")]
    path.write_text(suite_ratchet.renew_ratchet(kept, [first, second]), "utf-8")
    assert suite_ratchet.read_ratchet(path)[0].reason == "it is so"
    path.write_text(suite_ratchet.renew_ratchet(kept, both), "utf-8")
    assert (
        suite_ratchet.read_ratchet(path)[0].tests is None
        and suite_ratchet.compare_verdicts(suite_ratchet.read_ratchet(path), both)[0] == []
    )


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.tar.gz")]) == 2
    assert "none.tar.gz" in capsys.readouterr().err
    assert constrain.Style.any().formats == "assert"  # What `Group.style` takes for granted.
