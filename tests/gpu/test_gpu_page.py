"""docs/how-to/gpu.md runs as written, and prints what it says."""

from __future__ import annotations

from tests.page_reader import page, runs


def test_the_page_runs_as_written() -> None:
    for block, expected, printed in runs(page("gpu.md")):
        assert expected == printed, block
