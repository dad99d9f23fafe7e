"""docs/how-to/call-tools.md runs as written, and prints what it says."""

from __future__ import annotations

import re

import pytest

from tests.page_reader import page, runs


def test_the_page_runs_as_written() -> None:
    pytest.importorskip("transformers")
    for block, expected, printed in runs(page("call-tools.md")):
        assert expected == printed, block


def test_the_table_has_every_envelope() -> None:
    from constrain.dialogue import ENVELOPES

    assert re.findall(r"^\| `([\w-]+)` \| ([^|]*) \|", page("call-tools.md").read_text("utf-8"), re.M) == [
        (name, ENVELOPES[name].models)
        for name in ("hermes", "llama", "pythonic", "mistral", "mistral-args", "harmony", "json")
    ]
