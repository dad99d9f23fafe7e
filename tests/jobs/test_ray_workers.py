"""Jobs on Ray: results in order and once, whatever the order of the blocks; the output of a job without Ray."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from bench.jobs import write_job
from constrain.base.errors import ConstrainError, UnsupportedError
from constrain.jobs import JobOptions, RayCluster, run_job
from constrain.jobs.ray_workers import order_results
from constrain.jobs.row_runner import RowResult

ROOT = Path(__file__).resolve().parents[2]


@given(st.lists(st.integers(0, 30), unique=True), st.randoms(use_true_random=False), st.integers(0, 5))
def test_results_are_yielded_once_in_the_order_of_the_rows(numbers: list[int], rng: object, repeated: int) -> None:
    results = [(RowResult(number, f"line {number}", False), 1.0) for number in numbers]
    results += results[:repeated]
    rng.shuffle(results)  # type: ignore[attr-defined]
    assert [one.number for one, _ in order_results(results, numbers)] == numbers


def test_a_lost_row_is_an_error() -> None:
    results = [(RowResult(number, "", False), 0.0) for number in (1, 3)]
    with pytest.raises(ConstrainError, match="no result of row 2"):
        list(order_results(results, [1, 2, 3]))


def test_without_ray_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnsupportedError, match=r"constrain-lm\[ray\]"):
        run_job(write_job(tmp_path / "in", 1), tmp_path / "out", cluster=RayCluster())


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"chunk": 0}, {"workers": "x"}, {"address": 5}, {"cpus": "1"}])
def test_clusters_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises((ConstrainError, TypeError)):
        RayCluster(**wrong)  # type: ignore[arg-type]


def test_the_output_on_ray_is_that_without_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray.data", reason="Ray is not installed: pip install 'constrain-lm[ray]'")
    pytest.importorskip("transformers")
    if not (ROOT / "constrain" / "demo" / "model.safetensors").exists():
        pytest.skip("the embedded model is not in this checkout")
    source, options = write_job(tmp_path / "in", 30), JobOptions(arguments={"max_tokens": 40}, seed=1)
    here = run_job(source, tmp_path / "here", options)
    there = run_job(source, tmp_path / "there", options, cluster=RayCluster(workers=1))
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()
    assert (there.rows, there.errors, there.tokens) == (here.rows, here.errors, here.tokens)
