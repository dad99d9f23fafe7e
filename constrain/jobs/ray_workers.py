"""The rows of a job on a Ray cluster, through Ray Data. The only module that imports Ray, when a job asks for it.

    RayCluster(workers=2)           that many actors; each holds the model, its Engine and the compiled constraints

Rows are taken in chunks. Within a chunk, groups of rows are sorted by the digest of their constraint and divided into
blocks, so that a block has few constraints and an actor compiles each once. Groups are small, so that results can be
written soon. Ray computes the block of an actor that was killed again, elsewhere; results carry the number of their row
and are written once, in the order of the input.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ..base.errors import ConstrainError, UnsupportedError, check_count, check_type
from .job_options import JobOptions
from .job_rows import JobRow
from .row_runner import RowResult, RowRunner, run_rows

__all__ = ["RayCluster", "run_on_ray"]

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}
"""Environment of Ray: no usage statistics, and no log messages between those of the job."""
BLOCKS = 4
"""Least number of blocks of a chunk for each worker, so that all workers end at about the same time."""
BLOCK_ROWS = 256
"""Maximum number of rows of a block: what a killed worker has to compute again."""


@dataclass(frozen=True)
class RayCluster:
    """Where a job runs.

    Attributes
    ----------
    workers : int
        Number of actors, each with a model of its own.
    address : str, optional
        Of a running cluster, or "auto". By default a cluster on this machine is started for the job. The workers need
        the same version of constrain, and the model under the same name.
    cpus, gpus : float
        What each worker reserves.
    chunk : int
        Number of rows that are given to Ray at once. They are held in memory, and the actors are started anew for each
        chunk.
    """

    workers: int = 2
    address: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    chunk: int = 100_000

    def __post_init__(self) -> None:
        check_count("workers", self.workers, 1)
        check_count("chunk", self.chunk, 1)
        check_type("address", self.address, (str, type(None)), 'give the address of a Ray cluster, or "auto"')
        check_type("cpus", self.cpus, (int, float), "give a number of processors")
        check_type("gpus", self.gpus, (int, float), "give a number of GPUs")


def run_on_ray(rows: Iterator[JobRow], options: JobOptions, cluster: RayCluster) -> Iterator[tuple[RowResult, float]]:
    """Yield the results of rows in their order, each with the microseconds that the model ran for it and its block.

    Raises
    ------
    UnsupportedError
        If Ray is not installed.
    ConstrainError
        If the cluster cannot be reached, or the job fails for another reason than a row or a killed worker.
    """
    ray = import_ray()
    try:
        with connect_cluster(ray, cluster):
            while chunk := list(islice(rows, cluster.chunk)):
                yield from run_chunk(ray, chunk, options, cluster)
    except (ray.exceptions.RayError, ConnectionError) as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, ConstrainError):
            raise cause from error
        raise ConstrainError(
            f"the Ray job failed: {error}", hint="Run the same job again: it goes on after the rows that it wrote."
        ) from error


def import_ray() -> Any:
    """Return the module ray with Ray Data, which sends no usage statistics. Raise UnsupportedError without it."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
        import ray.exceptions
    except ImportError as error:
        raise UnsupportedError(
            f"Ray Data is not installed: {error}", hint='pip install "constrain-lm[ray]", or run the job without Ray.'
        ) from None
    return ray


@contextmanager
def connect_cluster(ray: Any, cluster: RayCluster) -> Iterator[None]:
    """Connect to a cluster, or start one on this machine and stop it at the end. A connection that this process has
    already is used as it is.
    """
    if ray.is_initialized():
        yield
        return
    given: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if cluster.address is None:
        own = str(Path(__file__).resolve().parents[2])
        paths = [own, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *filter(None, sys.path[:1])]
        environment = {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), **QUIET}
        given |= {
            "num_cpus": int(cluster.workers * cluster.cpus) + 1, "include_dashboard": False,
            "runtime_env": {"env_vars": environment},
        }  # fmt: skip
    else:
        given["address"] = cluster.address
    ray.init(**given)
    try:
        yield
    finally:
        ray.shutdown()


def run_chunk(
    ray: Any, chunk: list[JobRow], options: JobOptions, cluster: RayCluster
) -> Iterator[tuple[RowResult, float]]:
    """Yield the results of some rows in their order."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    workers = min(cluster.workers, len(chunk))
    ordered, blocks = order_rows(chunk, workers)
    data = ray.data.from_items([{"row": pickle.dumps(row)} for row in ordered], override_num_blocks=blocks)
    answered = data.map_batches(
        RayWorker, fn_constructor_args=(options,), batch_size=None, num_cpus=cluster.cpus, num_gpus=cluster.gpus,
        compute=ray.data.ActorPoolStrategy(size=workers),
    )  # fmt: skip
    yield from order_results(read_results(answered), [row.number for row in chunk])


def order_rows(chunk: list[JobRow], workers: int) -> tuple[list[JobRow], int]:
    """Return the rows, sorted by constraint within groups of a block for each worker, and the number of blocks."""
    size = min(-(-len(chunk) // (workers * BLOCKS)), BLOCK_ROWS)
    group = size * workers
    groups = [chunk[start : start + group] for start in range(0, len(chunk), group)]
    ordered = [row for rows in groups for row in sorted(rows, key=lambda row: (row.key, row.number))]
    return ordered, -(-len(chunk) // size)


def read_results(answered: Any) -> Iterator[tuple[RowResult, float]]:
    """Yield the results of a dataset in the order in which blocks are finished."""
    for batch in answered.iter_batches(batch_size=None, batch_format="numpy"):
        columns = [batch[name].tolist() for name in (*RowResult._fields, "model_us")]
        for *fields, model_us in zip(*columns):
            yield RowResult(*fields), model_us


def order_results(results: Iterable[tuple[RowResult, float]], numbers: list[int]) -> Iterator[tuple[RowResult, float]]:
    """Yield results in the order of the numbers of their rows, each once.

    Raises ConstrainError if the result of a row never comes.
    """
    waiting: dict[int, tuple[RowResult, float]] = {}
    place = 0
    for result, model_us in results:
        waiting.setdefault(result.number, (result, model_us))
        while place < len(numbers) and numbers[place] in waiting:
            yield waiting[numbers[place]]
            place += 1
    if place < len(numbers):
        raise ConstrainError(
            f"Ray returned no result of row {numbers[place]}", hint="Run the same job again: it goes on with this row."
        )


class RayWorker:
    """An actor: answers the rows of a block with an Engine of its own, which lives as long as the actor."""

    def __init__(self, options: JobOptions) -> None:
        self.options, self.runner = options, RowRunner(options)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Return the results of a block as columns; the time of the model stands beside the first row."""
        results = asyncio.run(self.answer([pickle.loads(row) for row in batch["row"].tolist()]))
        columns = {name: [getattr(one, name) for one in results] for name in RowResult._fields}
        return {**columns, "model_us": [self.runner.take_model_us(), *([0.0] * (len(results) - 1))]}

    async def answer(self, rows: list[JobRow]) -> list[RowResult]:
        """Answer the rows of a block."""
        return [result async for result in run_rows(rows, self.runner, self.options.window)]
