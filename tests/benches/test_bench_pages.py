"""Pages and pictures of bench/pages: the arithmetic of the comparison, the laws of the plots, the picture of a mask."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import constrain
from bench.pages.committed_results import load_newest_result
from bench.pages.comparison import format_figure, list_rows_behind, render_table
from bench.pages.comparison_tables import ComparisonTable, Row
from bench.pages.distortion_plots import REVIEW, TwoAnswers
from bench.pages.mask_picture import SCHEMA, TEXT, Candidate, draw_mask_picture

ROOT = Path(__file__).resolve().parents[2]
SHARES = st.floats(0.01, 1.0)


@given(st.floats(0.01, 0.99), SHARES, SHARES)
def test_the_law_of_two_answers_is_that_of_its_weights(begin: float, one: float, other: float) -> None:
    law = TwoAnswers(np.array([begin, 1 - begin]), np.array([one, other]))
    masked, weights = law.begin, law.survive  # the weight of a masked draw is the share that the mask left
    mean = float(masked @ weights)
    assert law.mass == pytest.approx(mean)
    assert law.target == pytest.approx(masked * weights / mean) and law.target.sum() == pytest.approx(1)
    assert law.divergence == pytest.approx(np.log(mean) - float(masked @ np.log(weights)), abs=1e-9)
    assert law.worth == pytest.approx(1 / float(masked @ (weights / mean) ** 2))
    assert law.divergence >= -1e-9 and 0 < law.worth <= 1 + 1e-9


def test_the_example_of_the_theory_page() -> None:
    text = (ROOT / "docs" / "theory.md").read_text("utf-8")
    great, fine = (f"{share:.0%}".rstrip("%") for share in REVIEW.target)
    assert f'{great} percent are "great." and {fine} percent "fine."' in text
    assert 1e-9 < REVIEW.worth**12 < 1e-8, "the page says that a hundred million draws are worth one"


def test_the_picture_of_a_mask_says_what_a_matcher_says() -> None:
    matcher = constrain.compile(constrain.Vocabulary.bytes(), schema=SCHEMA).matcher()
    matcher.advance_bytes(TEXT.encode())
    text = (ROOT / "docs" / "mask.svg").read_text("utf-8")
    rows = re.findall(r'data-token="([^"]*)" data-allowed="(\w+)"', text)
    assert len(rows) >= 4 and {allowed for _, allowed in rows} == {"true", "false"}
    for token, allowed in rows:
        fork = matcher.fork()
        try:
            fork.advance_bytes(json.loads(html.unescape(token)).encode())
            taken = True
        except constrain.TokenRefused:
            taken = False
        assert taken == (allowed == "true"), token


def test_the_picture_escapes_tokens() -> None:
    drawn = draw_mask_picture([Candidate('<"&', 0.5, allowed=True)])
    assert (
        "&lt;&quot;&amp;" in drawn and json.loads(html.unescape(re.findall(r'data-token="([^"]*)"', drawn)[0])) == '<"&'
    )


def test_a_row_in_which_a_peer_is_ahead_is_listed() -> None:
    rows = [
        Row("a step", {"constrain": 2.0, "llguidance": 1.0, "xgrammar": 3.0}),
        Row("a ratio", {"constrain": 2.0, "llguidance": 1.0}, "more"),
        Row("equal", {"constrain": 1.0, "llguidance": 1.0}),
        Row("ours alone", {"constrain": 5.0}),
    ]
    table = ComparisonTable("Some figures", "What.", "µs", ["constrain", "llguidance", "xgrammar"], rows, "*Source.*")
    listed = "".join(list_rows_behind(table))
    assert listed == "- [Some figures](#some-figures), µs:\n    - a step: llguidance 1, constrain 2\n"
    assert not list_rows_behind(ComparisonTable("Ours", "What.", "µs", ["constrain"], rows[1:], "*Source.*"))
    drawn = render_table(table)
    assert "| a step | 2 | **1** | 3 |" in drawn and "| a ratio | **2** | 1 | - |" in drawn
    assert "| ours alone | 5 | - | - |" in drawn


@given(st.floats(0.01, 1e7))
def test_figures_keep_three_digits(value: float) -> None:
    shown = float(format_figure(value).replace(",", ""))
    assert shown == pytest.approx(value, rel=0.006, abs=0.005)


def test_the_newest_result_counts(tmp_path: Path) -> None:
    for commit, date in (("a", "2026-01-02"), ("b", "2026-01-10"), ("c", "2026-01-09")):
        (tmp_path / commit).mkdir()
        (tmp_path / commit / "start.json").write_text(json.dumps({"date": date}), "utf-8")
    found = load_newest_result("start", tmp_path)
    assert found is not None and found["path"] == "b/start.json"
    assert load_newest_result("memory", tmp_path) is None
