"""docs/how-to/run-batch-jobs.md runs as written, and prints what it says; its table has the fields of a row."""

from __future__ import annotations

import re

import pytest

from constrain.jobs.job_rows import FIELDS
from tests.page_reader import page, runs


def test_the_page_runs_as_written() -> None:
    pytest.importorskip("transformers")
    for block, expected, printed in runs(page("run-batch-jobs.md")):
        assert set(expected) <= set(printed), block


def test_the_table_has_every_field() -> None:
    table = re.findall(r"^\| (.*?) \|", page("run-batch-jobs.md").read_text("utf-8"), re.M)
    assert {name for row in table for name in re.findall(r"`(\w+)`", row)} == set(FIELDS)
