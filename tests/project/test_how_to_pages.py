"""Pages that run as written and print what they say: the start, the theory, and how-to pages without further claims."""

from __future__ import annotations

import pytest

from tests.page_reader import page, runs

PAGES = [
    "decide-among-answers.md", "index.md", "start.md", "theory.md", "stream-answers.md", "think-first.md",
    "use-masks.md", "use-notebooks.md", "use-pydantic.md", "write-a-grammar.md",
    pytest.param("write-sql.md", marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_the_page_runs_as_written(name: str) -> None:
    pytest.importorskip("transformers")
    for block, expected, printed in runs(page(name)):
        assert set(expected) <= set(printed), block
