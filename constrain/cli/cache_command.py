"""`constrain cache`: what is kept on disk, the most that it may take, and removing it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..cache.cache_folder import cache_folder_path
from ..compilation.disk_usage import CacheUsage, clear_disk, measure_disk
from . import display
from .source_options import JsonFlag

__all__ = ["show_cache"]

MB = 1_000_000


def show_cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all of it.")] = False, as_json: JsonFlag = False
) -> None:
    """Show what is kept on disk for later processes, and the most that it may take. It may be removed at any time.

    The folder is ~/.cache/constrain, unless the environment variable CONSTRAIN_STORE names another, or is "off".
    """
    folder = cache_folder_path()
    removed = clear_disk(folder) if clear and folder is not None else 0
    usages = [] if folder is None else measure_disk(folder)
    if as_json:
        kinds = [usage_json(usage) for usage in usages]
        display.as_json({"folder": None if folder is None else str(folder), "kinds": kinds, "removed_bytes": removed})
        return
    if folder is None:
        display.print_answer("nothing is kept on disk: CONSTRAIN_STORE is off, or there is no home folder")
        return
    rows = [describe_usage(usage.kind.name, usage.files, usage.bytes_used, usage.kind.most_bytes) for usage in usages]
    totals = zip(*((usage.files, usage.bytes_used, usage.kind.most_bytes) for usage in usages))
    files, used, most = map(sum, totals)
    display.print_facts([("folder", str(folder)), *rows, describe_usage("all", files, used, most)])
    if clear:
        display.print_answer(f"removed {removed / MB:,.1f} MB")


def describe_usage(name: str, files: int, used: int, most: int) -> tuple[str, str]:
    """Return a row: the name of a kind, and its files, megabytes, and most megabytes."""
    return name, f"{files:>5,} files, {used / MB:>7,.1f} MB of at most {most / MB:,.0f} MB"


def usage_json(usage: CacheUsage) -> dict[str, Any]:
    """Return what one kind takes as JSON data."""
    kind = usage.kind
    return {
        "name": kind.name, "suffix": kind.suffix, "files": usage.files, "bytes": usage.bytes_used,
        "most_files": kind.most_files, "most_bytes": kind.most_bytes,
    }  # fmt: skip
