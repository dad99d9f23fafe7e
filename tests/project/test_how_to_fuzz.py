"""docs/how-to/fuzz-an-api.md runs as written, and prints what it says."""

from __future__ import annotations

from tests.page_reader import page, runs


def test_the_page_runs_as_written() -> None:
    for block, expected, printed in runs(page("fuzz-an-api.md")):
        assert set(expected) <= set(printed), block
    assert '{"customer":"0","quantity":1,"price":1}' in page("fuzz-an-api.md").read_text("utf-8")
