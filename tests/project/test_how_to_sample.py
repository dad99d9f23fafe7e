"""docs/how-to/sample-faithfully.md runs as written, and prints what it says."""

from __future__ import annotations

import pytest

from tests.page_reader import page, runs


@pytest.mark.slow
def test_the_page_runs_as_written() -> None:
    pytest.importorskip("transformers")
    for block, expected, printed in runs(page("sample-faithfully.md")):
        assert set(expected) <= set(printed), block
