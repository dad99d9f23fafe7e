"""docs/how-to/validate-values.md and choose-a-spelling.md run as written, and their tables are true."""

from __future__ import annotations

import re

import pytest

from constrain import Style
from constrain.generation.type_styles import BARE_STYLE
from tests.page_reader import page, runs

ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]*) \| (.+) \|$", re.M)


def test_validation_runs_as_written() -> None:
    for block, expected, printed in runs(page("validate-values.md")):
        assert expected == printed, block


def test_spelling_runs_as_written() -> None:
    pytest.importorskip("transformers")
    for block, expected, printed in runs(page("choose-a-spelling.md")):
        assert expected == printed, block


def test_the_table_has_every_option_and_its_default() -> None:
    text = page("choose-a-spelling.md").read_text("utf-8")
    rows = {name.strip("* "): (default, change) for name, default, _, change in ROW.findall(text)}
    style = Style()
    for option in ("whitespace", "digits", "numbers", "key_order", "escapes", "formats"):
        assert any(f"Style({option}=" in change for _, change in rows.values()), option
    assert f"at most {style.digits} in a row" in rows["digits"][0]
    (bare,) = [default for name, (default, _) in rows.items() if name.startswith("a bare type")]
    assert f"at most {BARE_STYLE.digits} digits" in bare
    assert Style(digits=BARE_STYLE.digits) == BARE_STYLE
