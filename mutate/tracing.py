"""Which test files run which Python files, by tracing calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .selection import NEVER, ROOT, files

__all__ = ["measure"]

TRACER = """
import atexit, json, os, sys, threading
root, wanted, out = os.environ["MUTATE_ROOT"], set(json.loads(os.environ["MUTATE_FILES"])), os.environ["MUTATE_OUT"]
seen = set()
def call(frame, event, argument):
    name = frame.f_code.co_filename
    if name.startswith(root) and frame.f_code.co_name != "<module>":
        seen.add(name[len(root) + 1:])
sys.setprofile(call)
atexit.register(lambda: open(out, "w").write(json.dumps(sorted(seen & wanted))))
import pytest
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", sys.argv[1]]))
"""
SECONDS = 900


def measure() -> dict[str, list[str]]:
    """{file: test files that call functions in it}."""
    wanted = [file for file in files() if not file.startswith("constrain/kernels/")]
    found: dict[str, list[str]] = {file: [] for file in wanted}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "seen.json"
        for test in sorted((ROOT / "tests").glob("test_*.py")):
            if test.name.startswith(NEVER):
                continue
            names = {"MUTATE_ROOT": str(ROOT), "MUTATE_FILES": json.dumps(wanted), "MUTATE_OUT": str(out)}
            subprocess.run(
                [sys.executable, "-c", TRACER, str(test)],
                cwd=ROOT,
                env={**os.environ, **names},
                timeout=SECONDS,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            for file in json.loads(out.read_text("utf-8")) if out.exists() else ():
                found[file].append(f"tests/{test.name}")
            out.unlink(missing_ok=True)
            print(test.name, flush=True)
    return found
