"""Write the results of a run: one format, one folder per commit.

    path = write_result(options, {"rows": rows})      bench/results/<commit>/NAME.json
    draw_plot(path.with_suffix(".svg"), ...)          pictures are in the same folder

The file is {name, question, command, date, commit, machine, versions, options, facts}. A second run on the same commit
replaces the first. Results of a checkout with local changes are in <commit>+.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .registry import BENCHES

__all__ = ["describe_commit", "describe_machine", "list_versions", "write_result"]

PACKAGES = (
    "constrain-lm", "llguidance", "xgrammar", "outlines-core", "lm-format-enforcer", "lark", "jsonschema", "hypothesis",
    "hypothesis-jsonschema", "numba", "numpy", "tiktoken", "torch", "apache-tvm-ffi", "transformers",
    "llama-cpp-python", "mlx-lm", "vllm", "sglang",
)  # fmt: skip


def write_result(options: argparse.Namespace, facts: Mapping[str, Any], part: str = "") -> Path:
    """Write the results of a bench, print the path and return it.

    options: from `build_parser`. part: name of the part, if a bench has several with files of their own.
    """
    commit = describe_commit()
    given = {key: value for key, value in vars(options).items() if key not in ("bench", "arguments")}
    document = {
        "name": options.bench,
        "question": BENCHES[options.bench].question,
        "command": " ".join([f"python -m bench {options.bench}", *options.arguments]),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit,
        "machine": describe_machine(),
        "versions": list_versions(),
        "options": given,
        "facts": facts,
    }
    suffix = "-" + re.sub(r"[^a-z0-9]+", "-", part.lower()) if part else ""
    path: Path = options.results / commit / f"{options.bench}{suffix}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False, default=str) + "\n", "utf-8")
    print(f"saved as {path}", file=sys.stderr)
    return path


def describe_machine() -> dict[str, Any]:
    """Return the processor, cores, system and load of this machine."""
    model = platform.processor()
    try:
        with open("/proc/cpuinfo") as file:
            model = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"processor": model, "cores": os.cpu_count(), "system": platform.platform(), "load": os.getloadavg()}


def list_versions() -> dict[str, str]:
    """Return the version of Python and of every installed package that influences the figures."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def describe_commit() -> str:
    """Return the commit that is measured, with + where files differ from it."""
    answer = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=12"], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or "unknown"
