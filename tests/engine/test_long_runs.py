"""Memory stays within the budgets of the caches, over many schemas and a long text (`bench.long_runs` has more)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.long_runs import take_long_text, use_many_schemas
from constrain import Vocabulary, compile
from constrain.compilation.compile_caches import recent

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="the system does not say what is resident"
)


@pytest.mark.slow
def test_many_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "most", 16)
    sizes = [size for _, size in use_many_schemas(Vocabulary.bytes(), 300, 6)]
    assert len(recent) == 16
    assert recent.bytes_used < 64 << 20
    recent.clear()
    assert sizes[-1] < sizes[1] + 48, sizes


@pytest.mark.slow
def test_a_long_text() -> None:
    records = {"type": "array", "items": {"type": "object", "required": ["name", "n"]}}
    matcher = compile(Vocabulary.bytes(), schema=records).matcher()
    sizes = [size for _, size in take_long_text(matcher, 30_000, 6)]
    assert sizes[-1] < sizes[0] + 16, sizes
    assert sys.getsizeof(matcher._accepted.records) < 30_000 * 20
