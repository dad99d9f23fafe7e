"""Batch jobs: generate an answer for every row of a JSON Lines file, and survive being killed.

    run_job("in.jsonl", "out.jsonl", JobOptions(schema={...}))          on this machine, rows batched by an Engine
    run_job(..., cluster=RayCluster(workers=2))                         on a Ray cluster, an Engine in every worker

*Order and resumption.* The k-th line of the output answers the k-th row of the input. Lines are only ever appended, so
after a kill the output is a prefix of what it will be, apart from a torn last line, which is removed. Running the same
job again continues after it. A side file (`OUT.job`) holds the digest of the input and the options; an output of
another job is refused.

*Identical output.* The seed of a row is derived from the seed of the job and the id of the row. The composition of a
batch changes the model's arithmetic in the last digits, and with it once in a while a token; so jobs compute the model
in float64 by default, where such differences are about 1e-15. The output is then the same byte for byte whatever the
batches, the order, the number of workers, and the kills (`JobOptions.arithmetic`).

The modules: `job_options` (what is done), `job_rows` (the format of a row), `row_runner` (a row, answered by an
Engine), `job_files` (resumable output), `ray_workers` (the same on Ray; the only module that imports it), `job_report`
(statistics), `batch_job` (`run_job`).
"""

from __future__ import annotations

from .batch_job import run_job
from .job_options import JobOptions
from .job_report import JobReport
from .ray_workers import RayCluster

__all__ = ["JobOptions", "JobReport", "RayCluster", "run_job"]
