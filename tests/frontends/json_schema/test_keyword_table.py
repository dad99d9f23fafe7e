"""docs/json-schema.md says what constrain does now: its own columns are made again and compared, row by row."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.keyword_table.formats import DOCUMENTS
from bench.keyword_table.peers import OURS
from bench.keyword_table.probes import Probe, find_mislabelled, list_probes
from bench.keyword_table.table import build_page, check_labels, format_drafts, format_row, judge_probe
from constrain.frontends.json_schema.reading.keywords import KEYWORDS, list_annotations
from constrain.frontends.json_schema.strings.formats import FORMATS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "json-schema.md"
PROBES = list(list_probes())


def test_every_keyword_and_every_format_has_a_row() -> None:
    assert {row.name for row in KEYWORDS} | list_annotations() <= {probe.keyword for probe in PROBES}
    assert set(DOCUMENTS) == set(FORMATS)
    twice = [name for name, count in Counter(probe.name for probe in PROBES).items() if count > 1]
    assert not twice, "a name stands for one row"


def test_the_labels_are_those_of_jsonschema() -> None:
    check_labels(PROBES)
    wrong = Probe("", "maximum", {"maximum": 3}, (4,), (2, 5))
    assert find_mislabelled(wrong) == ["4", "2"]
    with pytest.raises(ValueError, match="maximum"):
        check_labels([wrong])


def test_the_page_agrees_with_the_table() -> None:
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert len(lines) == len(PROBES), "run `python -m bench keyword_table --write docs/json-schema.md`"
    stale = []
    for probe, line in zip(PROBES, lines):
        # The columns are: keyword, drafts, how, ours, the peers', the schema.
        expected = format_row(probe, {name: judge_probe(name, probe).word for name in OURS}, list(OURS))
        first, last = expected.split(" | `{", 1) if " | `{" in expected else expected.rsplit(" | `", 1)
        if not line.startswith(first + " | ") or not line.endswith(last):
            stale.append(f"{line}\nis now\n{expected}")
    assert not stale, "\n".join(stale)


def test_verdicts_name_the_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def toy(schema: object) -> object:
        if schema is False:
            raise ValueError("no booleans")
        if schema is True:
            raise KeyError("type")
        return lambda text: text in ('"a"', '"long"')

    monkeypatch.setattr("bench.keyword_table.table.prepare_engine", lambda name: toy)
    probe = Probe("", "type", {"type": "string"}, ("a", "b"), ("long", 1))
    verdict = judge_probe("toy", probe)
    assert (verdict.word, verdict.over, verdict.under) == ("over-constrains, lets through", ['"b"'], ['"long"'])
    refused = judge_probe("toy", Probe("", "type", False, (), (1,)))
    assert (refused.word, refused.error) == ("refused", "ValueError: no booleans")
    assert judge_probe("toy", Probe("", "type", True, (), ())).word == "fails"
    counts = build_page([probe], {"llguidance": [verdict]}, "today", {"jsonschema": "4"})
    assert "| over-constrains | 1 |" in counts and "Not installed, and so not run: constrain-any" in counts


def test_drafts_come_from_the_table_and_the_meta_schemas() -> None:
    asked = ("type", "const", "prefixItems", "dependencies", "$recursiveRef", "readOnly", "id", "x-unknown")
    assert [format_drafts(name) for name in asked] == [
        "all", "since draft 6", "2020-12", "up to draft 7", "2019-09", "since draft 7", "draft 4", "none",
    ]  # fmt: skip
