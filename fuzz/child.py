"""Run one target in a process of its own, with limits of CPU time and memory for each input.

    python -m fuzz.child TARGET --engine generate --seconds 60 --seed 1 --state FILE

It is started by `supervise`. If it dies, the state file contains the input. RLIMIT_CPU and RLIMIT_AS are set before
each input: one that does not return ends the process by SIGXCPU, one that allocates without bound raises MemoryError.
Resident memory cannot be limited, so its peak is checked after each input.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.process_figures import read_address_space, read_resident_memory

__all__ = ["MEMORY", "Reporter", "main"]

MEMORY = 1024.0
"""Limit of an input: MiB of additional resident memory."""
ADDRESSES = 4 << 30
"""Limit of an input: bytes of additional address space, of which thread stacks and state caches use only a part."""
COLLECT = 50
"""Number of inputs between two garbage collections."""
REPORT = 20
"""Number of inputs between two lines of the log."""


class Reporter:
    """Reports the current input and the findings to the supervisor, through files.

    A line of the log is JSON: {"finding": …} or {"executions": …}.
    """

    def __init__(self, state: Path, seconds: int) -> None:
        self.seconds = seconds
        self.current = state.with_suffix(".current")
        self.log = state.open("a", encoding="utf-8")
        self.inputs = 0
        self.hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        self.begun = 0.0
        self.held = 0.0
        self.slowest = 0.0

    def before(self, shown: str) -> None:
        """Write the input to the state file and set the limits of time and memory."""
        self.current.write_text(shown[:200_000], "utf-8", errors="surrogatepass")
        self.inputs += 1
        if self.inputs % REPORT == 0:
            self.write_progress()
        if self.inputs % COLLECT == 0:
            gc.collect()
        used = time.process_time()
        resource.setrlimit(
            resource.RLIMIT_CPU, (int(used) + 1 + self.seconds, resource.getrlimit(resource.RLIMIT_CPU)[1])
        )
        resource.setrlimit(resource.RLIMIT_AS, (self.clip_limit(read_address_space() + ADDRESSES), self.hard))
        self.held = reset_peak()
        self.begun = time.process_time()

    def clip_limit(self, size: int) -> int:
        """Return the size, or the hard limit of this process if that is less."""
        return size if self.hard == resource.RLIM_INFINITY else min(size, self.hard)

    def after(self) -> None:
        """Remove the limit of memory, which does not apply to the harness. Raise MemoryError if the
        input exceeded it.
        """
        self.slowest = max(self.slowest, time.process_time() - self.begun)
        self.remove_memory_limit()
        grown = read_resident_memory("VmHWM") - self.held
        if grown > MEMORY:
            raise MemoryError(f"{grown:,.0f} MiB more than before")

    def remove_memory_limit(self) -> None:
        """Remove the limit of address space."""
        resource.setrlimit(resource.RLIMIT_AS, (self.hard, self.hard))

    def found(self, finding: Any) -> None:
        """Write a finding."""
        self.remove_memory_limit()
        self.write_line({"finding": asdict(finding)})

    def write_progress(self, **more: int) -> None:
        """Write the progress of the run."""
        from .explained import EXPLAINED

        self.write_line(
            {"executions": self.inputs, "slowest": round(self.slowest, 2), "explained": dict(EXPLAINED), **more}
        )

    def write_line(self, line: dict[str, Any]) -> None:
        """Write a line of the log."""
        self.log.write(json.dumps(line) + "\n")
        self.log.flush()


def reset_peak() -> float:
    """Reset the peak of resident memory to the current value (proc(5), clear_refs). Return that value in MiB."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return read_resident_memory("VmRSS")


def main() -> int:
    """Run one target. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.child")
    parser.add_argument("target")
    parser.add_argument("--engine", choices=["generate", "python", "atheris"], default="generate")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, help="inputs of the corpus that an earlier process replayed")
    parser.add_argument("--state", type=Path, required=True)
    options = parser.parse_args()
    if options.engine == "atheris":
        import atheris

        # atheris instruments imports, so constrain must not be imported before. Kernels belong to numba.
        with atheris.instrument_imports(include=["constrain"], exclude=list_kernel_modules()):
            from constrain.frontends import gbnf, json_schema, lark, regex  # noqa: F401

            from . import targets
    else:
        from . import targets
    from . import engine

    target = targets.TARGETS[options.target]
    reporter = Reporter(options.state, target.seconds)
    run = engine.Run(target, reporter.before, reporter.after, reporter.found)
    run.target.prepare()
    if options.engine == "atheris":
        return run_atheris(run, options)
    for index in range(options.skip, len(run.target.corpus)):
        reporter.write_line({"replays": index})
        run.check(run.target.corpus[index])
    lines = 0
    if options.engine == "python":
        lines = engine.run_guided(run, options.seconds, options.seed)
    else:
        engine.generate_inputs(run, options.seconds, options.seed)
    reporter.write_progress(lines=lines)
    return 0


def list_kernel_modules() -> list[str]:
    """Return the modules that numba compiles, whose bytecode must not be changed."""
    folder = Path(__file__).resolve().parent.parent
    files = (folder / "constrain/kernels").rglob("*.py")
    return [".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__") for path in files]


def run_atheris(run: Any, options: argparse.Namespace) -> int:
    """Run the loop of libFuzzer over the bytes that a strategy draws from."""
    import atheris

    one_input = run.build_test(1, options.seed).hypothesis.fuzz_one_input

    def once(data: bytes) -> None:
        run.choices = data
        one_input(data)

    arguments = [
        sys.argv[0],
        f"-max_total_time={max(1, int(options.seconds))}",
        f"-seed={options.seed % (1 << 31) or 1}",
        "-max_len=4096",
        "-len_control=20",
        "-timeout=600",
        "-rss_limit_mb=0",
        "-verbosity=1",
        f"-artifact_prefix={options.state.parent}/",
    ]
    atheris.Setup(arguments, once)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
