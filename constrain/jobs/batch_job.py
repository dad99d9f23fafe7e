"""`run_job`: answer every row of a file, on this machine or on a Ray cluster, continuing an earlier run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import aclosing
from itertools import islice
from os import PathLike
from time import perf_counter
from typing import cast

from ..base.errors import ArgumentError, check_type, describe_value
from .job_files import JobOutput, open_output
from .job_options import JobOptions
from .job_report import JobReport
from .job_rows import JobRow, iterate_lines, parse_row, summarise_input
from .ray_workers import RayCluster, run_on_ray
from .row_runner import RowResult, RowRunner, run_rows

__all__ = ["run_job"]

ReportListener = Callable[[JobReport], None]


def run_job(
    source: str | PathLike[str],
    output: str | PathLike[str],
    options: JobOptions = JobOptions(),
    *,
    cluster: RayCluster | None = None,
    on_progress: ReportListener | None = None,
) -> JobReport:
    """Answer every row of a JSON Lines file, and return statistics.

    If `output` has answers of an earlier run of the same job, the job goes on after them.

    Parameters
    ----------
    source : str or path
        The input, see `job_rows`. It is read once for its digest, and once as rows are needed.
    output : str or path
        The output, see `row_runner`, in the order of the input; beside it a side file with the suffix ".job".
    options : JobOptions
        What is done with the rows.
    cluster : RayCluster, optional
        Runs the job on Ray. The output is the same.
    on_progress : callable, optional
        Called with the statistics so far before the first row and after every row.

    Returns
    -------
    JobReport

    Raises
    ------
    ConstrainError
        If the output belongs to another job, or the model cannot be loaded. What is wrong with a row is written to the
        output instead.
    OSError
        If a file cannot be read or written.
    """
    check_path("source", source, "give the path of a JSON Lines file")
    check_path("output", output, "give the path of the file to write")
    check_type("options", options, JobOptions, "give constrain.jobs.JobOptions")
    check_type("cluster", cluster, (RayCluster, type(None)), "give a RayCluster")
    if on_progress is not None:
        check_type("on_progress", on_progress, Callable, "give a function of a JobReport")  # type: ignore[arg-type]
    summary = summarise_input(source)
    report = JobReport(total=summary.rows)
    with open_output(output, summary, options) as opened:
        written = opened.check_rows(iterate_rows(source, options), report.count_line)
        tell = (lambda _: None) if on_progress is None else on_progress
        tell(report)
        rows = islice(iterate_rows(source, options), written, None)
        if written == summary.rows:
            return report
        if cluster is None:
            asyncio.run(run_here(rows, options, opened, report, tell))
        else:
            run_there(rows, options, cluster, opened, report, tell)
    return report


def check_path(name: str, path: object, hint: str) -> None:
    """Raise TypeError unless this is a path, and ArgumentError if no file can have it."""
    check_type(name, path, (str, PathLike), hint)
    try:
        is_possible = b"\0" not in os.fsencode(cast(str, path))
    except UnicodeEncodeError:
        is_possible = False
    if not is_possible:
        raise ArgumentError(f"{name} is {describe_value(path)}: no file can have this name", hint=hint)


def iterate_rows(source: str | PathLike[str], options: JobOptions) -> Iterator[JobRow]:
    """Yield the rows of a file."""
    return (parse_row(line, options) for line in iterate_lines(source))


async def run_here(
    rows: Iterator[JobRow], options: JobOptions, output: JobOutput, report: JobReport, tell: ReportListener
) -> None:
    """Answer rows with an Engine of this process."""
    runner = RowRunner(options)
    start = perf_counter()
    try:
        async with aclosing(run_rows(rows, runner, options.window)) as results:
            async for result in results:
                take_result(result, output, report)
                report.model_seconds += runner.take_model_us() / 1e6
                report.seconds = perf_counter() - start
                tell(report)
    finally:
        runner.close()


def run_there(
    rows: Iterator[JobRow],
    options: JobOptions,
    cluster: RayCluster,
    output: JobOutput,
    report: JobReport,
    tell: ReportListener,
) -> None:
    """Answer rows with the workers of a Ray cluster."""
    start = perf_counter()
    for result, model_us in run_on_ray(rows, options, cluster):
        take_result(result, output, report)
        report.model_seconds += model_us / 1e6
        report.seconds = perf_counter() - start
        tell(report)


def take_result(result: RowResult, output: JobOutput, report: JobReport) -> None:
    """Write and count a finished row."""
    output.append(result.line)
    report.count_result(result)
