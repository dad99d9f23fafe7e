"""The output of a job: resumption from every possible cut, refusals of other files, one writer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from constrain.base.errors import ConstrainError
from constrain.jobs import JobOptions, batch_job, run_job
from constrain.jobs.job_files import open_output, remove_torn_line
from constrain.jobs.job_rows import InputSummary, JobRow
from constrain.jobs.row_runner import RowResult, make_error

OPTIONS = JobOptions(prompt="x")


class StandIn:
    """Stands in for RowRunner: the answer is a function of the row, with line breaks and letters in it."""

    def __init__(self, options: JobOptions) -> None:
        self.answered: list[int] = []

    async def run_row(self, row: JobRow) -> RowResult:
        self.answered.append(row.number)
        if row.error is not None:
            return make_error(row, *row.error)
        text = f'{{"id": {json.dumps(row.id)}, "text": "é\\n{row.number}"}}'
        return RowResult(row.number, text, False, tokens=1)

    def take_model_us(self) -> float:
        return 0.0

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_job, "RowRunner", StandIn)


def write_rows(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_a_job_goes_on_from_every_byte_at_which_it_may_be_cut(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in", [{"id": "é"}, {}, {"prompt": 1}, {"id": 4}])
    output = tmp_path / "out"
    run_job(source, output, OPTIONS)
    whole = output.read_bytes()
    assert whole.count(b"\n") == 4
    for cut in range(len(whole) + 1):
        output.write_bytes(whole[:cut])
        report = run_job(source, output, OPTIONS)
        assert output.read_bytes() == whole
        assert (report.rows, report.valid, report.errors) == (4, 3, 1)
        assert report.resumed == whole[:cut].count(b"\n")


@given(st.binary(max_size=40), st.integers(1, 7))
@settings(max_examples=60)
def test_remove_torn_line_truncates_after_the_last_line_break(tmp_path_factory: Any, data: bytes, block: int) -> None:
    path = tmp_path_factory.mktemp("torn") / "file"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch, open(path, "a+b") as file:
        patch.setattr("constrain.jobs.job_files.BLOCK", block)
        remove_torn_line(file)
    assert path.read_bytes() == data[: data.rfind(b"\n") + 1]


def test_outputs_of_other_jobs_are_refused(tmp_path: Path) -> None:
    source, output = write_rows(tmp_path / "in", [{}, {}]), tmp_path / "out"
    run_job(source, output, OPTIONS)
    whole = output.read_bytes()
    for other in (JobOptions(prompt="y"), JobOptions(prompt="x", seed=1), JobOptions(prompt="x", regex="a"),
                  JobOptions(prompt="x", schema={"const": "x" * 500})):  # fmt: skip
        with pytest.raises(ConstrainError, match="cannot be continued: it was begun with other"):
            run_job(source, output, other)
    run_job(source, output, JobOptions(prompt="x", window=1, slots=1, sync="row"))
    write_rows(tmp_path / "in", [{}, {}, {}])
    with pytest.raises(ConstrainError, match="values of rows, input"):
        run_job(source, output, OPTIONS)
    assert output.read_bytes() == whole


def test_files_that_are_no_outputs_are_refused(tmp_path: Path) -> None:
    source, output = write_rows(tmp_path / "in", [{}, {}]), tmp_path / "out"
    output.write_text("a letter\n")
    with pytest.raises(ConstrainError, match="no side file"):
        run_job(source, output, OPTIONS)
    output.unlink()
    run_job(source, output, OPTIONS)
    whole = output.read_bytes().splitlines(keepends=True)
    for lines in ([b"{}\n"], [whole[1]], [*whole, whole[0]], [b"\0\0\n"], [b"5\n"]):
        output.write_bytes(b"".join(lines))
        with pytest.raises(ConstrainError, match=f"line {len(lines)} is not"):
            run_job(source, output, OPTIONS)
        assert output.read_bytes() == b"".join(lines)
    (tmp_path / "out.job").write_text("{")
    with pytest.raises(ConstrainError, match="not readable"):
        run_job(source, output, OPTIONS)


def test_two_jobs_do_not_write_one_output(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    source = write_rows(tmp_path / "in", [{}])
    with open_output(tmp_path / "out", InputSummary(1, ""), OPTIONS), pytest.raises(ConstrainError, match="another"):
        run_job(source, tmp_path / "out", OPTIONS)


def test_inputs_that_cannot_be_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConstrainError, match="not a regular file"):
        run_job(tmp_path / "pipe", tmp_path / "out", OPTIONS)
    with pytest.raises(OSError):
        run_job(tmp_path / "none", tmp_path / "out", OPTIONS)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConstrainError, match="not a regular file"):
        run_job(write_rows(tmp_path / "in", [{}]), tmp_path / "pipe", OPTIONS)


def test_rows_are_read_within_the_window_and_no_further(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in", [{}] * 50)
    read = []

    class Reading(StandIn):
        async def run_row(self, row: JobRow) -> RowResult:
            read.append(row.number)
            return await super().run_row(row)

    def tell(report: Any) -> None:
        assert len(read) <= report.rows + 5
        if report.rows == 20:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(batch_job, "RowRunner", Reading)
        run_job(source, tmp_path / "out", JobOptions(prompt="x", window=5), on_progress=tell)
    assert (tmp_path / "out").read_bytes().count(b"\n") == 20
    assert run_job(source, tmp_path / "out", OPTIONS).resumed == 20
