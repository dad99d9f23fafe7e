"""docs/how-to/check-while-writing.md and compare-answers.md run as written, and print what they say."""

from __future__ import annotations

import pytest

from tests.page_reader import page, runs


@pytest.mark.parametrize("name", [pytest.param("check-while-writing.md", marks=pytest.mark.slow), "compare-answers.md"])
def test_the_page_runs_as_written(name: str) -> None:
    pytest.importorskip("transformers")
    for block, expected, printed in runs(page(name)):
        assert set(expected) <= set(printed), block
