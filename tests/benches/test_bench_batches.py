"""The benches of batches and of applied masks: compared engines give equal results, and figures are stored."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench import apply_masks, batches, curves
from bench.engines import WORDS
from bench.options import build_parser
from bench.record import write_result


class Toy:
    """Allow every token, and record the calls."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, bool]] = []

    def make(self, engine: object, known: dict, texts: list, words: np.ndarray, threads: int) -> batches.Batch:
        self.asked.append((threads, "seen" in known))
        known["seen"] = True
        return batches.Batch(lambda: words.fill(-1), lambda index, token: None)


def test_known_schemas_are_compiled_once_and_new_ones_each_time() -> None:
    texts = [("{}", list(range(60)))] * 3
    for is_known, wanted in ((False, [(2, False)] * 4), (True, [(2, False)] + [(2, True)] * 4)):
        toy = Toy()
        steps, advances = batches.measure_steps(toy.make, None, is_known, texts, 2, 4)  # type: ignore[arg-type]
        assert toy.asked == wanted and len(steps) == len(advances) == batches.STEPS
        assert 0 < min(steps) <= max(steps) < np.inf and 0 < min(advances) <= max(advances) < np.inf


def test_shares_are_timed_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from constrain import Vocabulary, compile, fill_masks
    from constrain.engine.batches import parallel_fill

    monkeypatch.setattr(parallel_fill, "LEAST_SHARE", 2)
    matchers = [compile(Vocabulary.bytes(), regex="a*").matcher() for _ in range(6)]
    before, spent, out = parallel_fill.run_together, list[int](), np.zeros((6, 9), np.int32)  # type: ignore[attr-defined]
    with batches.run_shares_in_turn(spent):
        fill_masks(matchers, out, threads=2)
    assert len(spent) == 2 and min(spent) > 0 and parallel_fill.run_together is before  # type: ignore[attr-defined]
    assert (out == matchers[0].mask()).all()


@pytest.mark.slow
def test_all_implementations_give_the_same_logits() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("llguidance")
    pytest.importorskip("xgrammar")
    rng = np.random.default_rng(3)
    masks = torch.from_numpy(rng.integers(0, 1 << 32, (2, WORDS), np.uint32).view(np.int32))
    found = {}
    for name, implementation in apply_masks.list_implementations().items():
        if "compiled" not in name:  # which takes its time
            logits = torch.arange(2 * apply_masks.SIZE).view(2, -1).float()
            implementation(logits, masks)
            found[name] = logits
    assert len(found) == 5
    assert all(torch.equal(logits, found["constrain"]) for logits in found.values())


def test_a_run_is_stored_with_its_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    parser = build_parser("apply_masks", None, "vocabulary", "results")
    path = write_result(parser.parse_args(["--results", str(tmp_path)]), {"runs": [1]})
    found = json.loads(path.read_text("utf-8"))
    assert found["facts"] == {"runs": [1]} and found["machine"]["cores"] and found["versions"]["numba"]
    assert path == tmp_path / found["commit"] / "apply_masks.json" and found["name"] == "apply_masks"
    assert found["command"] == f"python -m bench apply_masks --results {tmp_path}" and found["options"]["results"]
    plot = curves.draw_plot(path.with_suffix(".svg"), "title", "rows", "µs", {"panel": {"one": [(1, 2.0), (8, 3.0)]}})
    assert "<svg" in plot.read_text("utf-8")
