"""The output of a job: a file that is only appended to, and the side file that says which job it belongs to.

A kill can leave a last line without its end; it is removed when the job goes on. All other lines are complete, because
a line is written in one piece after the last one. The side file `OUT.job` is written once, before the first row, and
replaced in one step.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

from ..base.errors import ArgumentError, ConstrainError, shorten_text
from .job_options import JobOptions, Sync
from .job_rows import InputSummary, JobRow

__all__ = ["JobOutput", "open_output"]

FORMAT = 1
"""Version of the format of the side file and of the lines."""
BLOCK = 1 << 16
"""Number of bytes that are read at once in search of the last line break."""


class JobOutput:
    """An output that is open for appending, with its complete lines counted and its torn line removed."""

    def __init__(self, file: BinaryIO, path: Path, sync: Sync) -> None:
        self.file, self.path, self.sync = file, path, sync
        self.synced = monotonic()
        remove_torn_line(file)

    def check_rows(self, rows: Iterable[JobRow], count_line: Callable[[bytes], None]) -> int:
        """Compare the lines that are there with the first rows, and return their number.

        rows: those of the input, of which as many are consumed as there are lines, and one more. count_line: called
        with each line. Raises ConstrainError if a line is not that of its row.
        """
        self.file.seek(0)
        rows, written = iter(rows), 0
        for line in self.file:
            written += 1
            row = next(rows, None)
            try:
                found = json.loads(line)["id"]
            except (ValueError, KeyError, TypeError):
                raise refuse_output(self.path, f"its line {written} is not an answer of a job") from None
            if row is None or found != row.id:
                raise refuse_output(self.path, f"its line {written} is not the answer to the row in this place")
            count_line(line)
        self.file.seek(0, os.SEEK_END)
        return written

    def append(self, line: str) -> None:
        """Append a line in one piece, and force it to the disk as `sync` says."""
        self.file.write(line.encode(errors="backslashreplace") + b"\n")
        self.file.flush()
        if self.sync == "row" or (self.sync == "second" and monotonic() - self.synced >= 1):
            self.force()

    def force(self) -> None:
        """Force what was written to the disk."""
        os.fsync(self.file.fileno())
        self.synced = monotonic()


@contextmanager
def open_output(path: str | os.PathLike[str], source: InputSummary, options: JobOptions) -> Iterator[JobOutput]:
    """Open the output of a job, new or to go on with.

    Raises
    ------
    ConstrainError
        If the file belongs to another job or to none, or another process is writing it.
    OSError
        If it cannot be written.
    """
    output = Path(path)
    if output.exists() and not output.is_file() and not output.is_dir():
        raise ArgumentError(f"{shorten_text(path)} is not a regular file")
    with open(output, "a+b") as file:
        lock_file(file, output)
        check_identity(output, {"format": FORMAT, "rows": source.rows, "input": source.digest, **options.describe()})
        opened = JobOutput(file, output, options.sync)
        try:
            yield opened
        finally:
            file.flush()
            opened.force()


def lock_file(file: BinaryIO, path: Path) -> None:
    """Lock a file until it is closed. Raise ConstrainError if another process has."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system: two jobs with one output are not noticed
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ConstrainError(f"another process is writing {path}", hint="Wait for it, or give another file.") from None


def check_identity(output: Path, identity: dict[str, Any]) -> None:
    """Compare the side file with a job, and write it if the output is new. Raise ConstrainError if they differ."""
    side = output.with_name(output.name + ".job")
    if not side.exists():
        if output.stat().st_size:
            raise refuse_output(output, f"there is no side file {side.name}, so it is not known what job it is of")
        write_atomically(side, json.dumps(identity, indent=1) + "\n")
        return
    try:
        found = json.loads(side.read_text("utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise refuse_output(output, f"its side file {side.name} is not readable")
    different = [name for name in {**identity, **found} if identity.get(name) != found.get(name)]
    if different:
        raise refuse_output(output, f"it was begun with other values of {', '.join(different)}")


def refuse_output(path: Path, reason: str) -> ConstrainError:
    """Return the error of an output that the job cannot go on with."""
    return ConstrainError(
        f"{shorten_text(path)} cannot be continued: {reason}",
        hint="Give another output, or remove it and its side file to start anew.",
    )


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that it is there completely or not at all, also after a crash."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_torn_line(file: BinaryIO) -> None:
    """Truncate a file after its last line break."""
    size = end = file.seek(0, os.SEEK_END)
    keep = 0
    while end > 0:
        start = max(end - BLOCK, 0)
        file.seek(start)
        last = file.read(end - start).rfind(b"\n")
        if last >= 0:
            keep = start + last + 1
            break
        end = start
    if keep < size:
        file.truncate(keep)
        os.fsync(file.fileno())
    file.seek(0, os.SEEK_END)
