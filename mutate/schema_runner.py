"""Run many mutants in one scratch copy, into which all are compiled as schemata, with a fork server of pytest.

Mutants that cannot be switched at run time, or whose switched form numba cannot type, are left to `Scratch.judge`,
which writes and compiles them one at a time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .operators import Mutant
from .runner import Scratch, Verdict
from .schemata import can_switch, combine_mutants
from .selection import ROOT

__all__ = ["ORDERS", "SchemaScratch"]

ORDERS = "MUTATE_ORDERS"
"""Environment variable: a file with {"jobs": N, "answers": a file descriptor, "rounds": [[[number, quick, slow]]]}.

quick, slow: the test files whose fast, or slow, tests run in that round for the surviving mutants.
"""

PLUGIN = "tests.numba_plugin"
"""Plugin with which numba compiles kernels in each process; a compiled library could not read the switch."""
COMPILE = f"import {PLUGIN}\nfrom constrain.kernels.native import native_library\nnative_library.list_functions()"
WHERE = re.compile(r'File "(?:[^"]*/)?(constrain/kernels/\w+\.py)", line (\d+)')
"""The location in numba's errors."""
TestChoice = tuple[Sequence[str], Sequence[str]]
"""Test files whose fast tests run, and those whose slow tests run."""
SECONDS = 1800.0
"""CPU seconds for compiling all kernels."""


class SchemaScratch(Scratch):
    """A copy of the checkout with many mutants. numbered: mutants that can be switched, by number from 1."""

    def __init__(self, folder: Path, chosen: Sequence[Mutant]) -> None:
        super().__init__(folder)
        texts = {file: (ROOT / file).read_text("utf-8") for file in {one.file for one in chosen}}
        fit = [one for one in chosen if can_switch(texts[one.file], one)]
        self.numbered = dict(enumerate(fit, 1))
        shutil.copy2(Path(__file__).parent / "switch.py", folder / "constrain" / "switch.py")
        self.write(texts)
        while failed := self.compile_errors():
            self.drop_failing(failed)
            self.write(texts)

    def write(self, texts: Mapping[str, str]) -> None:
        """Write the schemata of the mutants that are left."""
        for file, text in texts.items():
            numbered = {number: one for number, one in self.numbered.items() if one.file == file}
            (self.folder / file).write_text(combine_mutants(text, numbered), "utf-8")

    def compile_errors(self) -> str:
        """Compile all kernels. Return the errors, or ""."""
        code, output = self.run_python("-c", COMPILE, seconds=SECONDS)
        return output if code else ""

    def drop_failing(self, output: str) -> None:
        """Drop the mutants of the lines in compile errors, or else of the functions with these lines."""
        locations = {(file, int(line)) for file, line in WHERE.findall(output)}
        broken = {n for n, one in self.numbered.items() if (one.file, one.line) in locations}
        if not broken:
            near = {
                (one.file, one.function)
                for one in self.numbered.values()
                if any(one.file == file and abs(one.line - line) < 60 for file, line in locations)
            }
            broken = {n for n, one in self.numbered.items() if (one.file, one.function) in near}
        if not broken:
            raise RuntimeError(f"kernels do not compile with mutants in them:\n{output[-4000:]}")
        for number in broken:
            del self.numbered[number]

    def verdicts(self, rounds: Sequence[Mapping[int, TestChoice]], jobs: int) -> Iterator[Verdict]:
        """Run rounds of tests against the surviving mutants, by number. Yield verdicts as they arrive."""
        for line in self.serve(rounds, jobs):
            if "number" in line:
                yield Verdict(self.numbered[line["number"]], line["killed"], line["seconds"], line["tests"])
            elif line["left out"]:
                print(f"# {line['file']} fails without a mutant: {line['left out']}", flush=True)

    def serve(self, rounds: Sequence[Mapping[int, TestChoice]], jobs: int) -> Iterator[dict[str, Any]]:
        """Run the fork server and yield its messages, line by line."""
        reading, writing = os.pipe()
        orders = self.folder / "orders.json"
        orders_by_round = [[[number, *tests] for number, tests in one.items()] for one in rounds]
        orders.write_text(json.dumps({"jobs": jobs, "answers": writing, "rounds": orders_by_round}), "utf-8")
        files = sorted({file for one in rounds for tests in one.values() for part in tests for file in part})
        output = self.folder / "server.log"
        with output.open("wb") as log:
            process = subprocess.Popen(
                [
                    sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", "-W", "ignore",
                    "--continue-on-collection-errors",
                    "-p", PLUGIN, "-p", "mutate.fork_server", *files,
                ],
                cwd=self.folder,
                env={**self.build_environment(), ORDERS: str(orders)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[writing],
            )  # fmt: skip
        os.close(writing)
        answered = set()
        with os.fdopen(reading, encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                answered.add(line.get("number"))
                yield line
        process.wait()
        if not answered.issuperset(rounds[0]):
            raise RuntimeError(f"the fork server ended early:\n{output.read_text('utf-8', 'replace')[-4000:]}")
