"""One target in a process of its own, with a budget of CPU time and memory for each input.

    python -m fuzz.child TARGET --engine generate --seconds 60 --seed 1 --state FILE

It is started by `supervise`, and may die: the state file then says of what input. RLIMIT_CPU is set anew before each
input, so that one that does not return ends the process by SIGXCPU; RLIMIT_AS likewise, so that one that grows without
end gets MemoryError. Resident memory cannot be limited; its peak is looked at after each input.
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

__all__ = ["MEMORY", "Reporter", "main"]

MEMORY = 1 << 30
"""Bytes of resident memory that one input may add."""
ADDRESSES = 4 << 30
"""Bytes of address space that it may add: stacks of threads and state caches reserve more than they use."""
COLLECT = 50
"""Inputs between two rounds of garbage collection."""
TELL = 20
"""Inputs between two lines of the log."""


class Reporter:
    """Tells the supervisor, through files, what is being done and what was found.

    A line of the log is JSON: {"finding": …} or {"executions": …}.
    """

    def __init__(self, state: Path, seconds: int) -> None:
        self.seconds = seconds
        self.current = state.with_suffix(".current")
        self.log = state.open("a", encoding="utf-8")
        self.inputs = 0
        self.hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        self.begun = 0.0
        self.held = 0
        self.slowest = 0.0

    def before(self, shown: str) -> None:
        """Notes the input, and gives it its time and memory."""
        self.current.write_text(shown[:200_000], "utf-8", errors="surrogatepass")
        self.inputs += 1
        if self.inputs % TELL == 0:
            self.tell()
        if self.inputs % COLLECT == 0:
            gc.collect()
        used = time.process_time()
        resource.setrlimit(
            resource.RLIMIT_CPU, (int(used) + 1 + self.seconds, resource.getrlimit(resource.RLIMIT_CPU)[1])
        )
        resource.setrlimit(resource.RLIMIT_AS, (self.most(read_address_space() + ADDRESSES), self.hard))
        self.held = reset_peak()
        self.begun = time.process_time()

    def most(self, size: int) -> int:
        """Return the size, at most the hard limit of this process."""
        return size if self.hard == resource.RLIM_INFINITY else min(size, self.hard)

    def after(self) -> None:
        """Lifts the memory limit, which is the input's and not the harness's; raises MemoryError if it took more."""
        self.slowest = max(self.slowest, time.process_time() - self.begun)
        self.lift()
        grown = read_resident_memory("VmHWM") - self.held
        if grown > MEMORY:
            raise MemoryError(f"{grown >> 20:,} MiB more than before")

    def lift(self) -> None:
        """Takes the limit of address space away."""
        resource.setrlimit(resource.RLIMIT_AS, (self.hard, self.hard))

    def found(self, finding: Any) -> None:
        """Write a finding."""
        self.lift()
        self.say({"finding": asdict(finding)})

    def tell(self, **more: int) -> None:
        """Write how far the run is."""
        from .explained import EXPLAINED

        self.say({"executions": self.inputs, "slowest": round(self.slowest, 2), "explained": dict(EXPLAINED), **more})

    def say(self, line: dict[str, Any]) -> None:
        """Write a line of the log."""
        self.log.write(json.dumps(line) + "\n")
        self.log.flush()


def read_resident_memory(field: str) -> int:
    """Return bytes of a field of proc(5), status: VmRSS, or VmHWM for the peak."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(field))


def reset_peak() -> int:
    """Let the peak of resident memory be what is resident now (proc(5), clear_refs); that."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return read_resident_memory("VmRSS")


def read_address_space() -> int:
    """Return bytes of address space that this process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def main() -> int:
    """Run one target."""
    options = argparse.ArgumentParser(prog="python -m fuzz.child")
    options.add_argument("target")
    options.add_argument("--engine", choices=["generate", "python", "atheris"], default="generate")
    options.add_argument("--seconds", type=float, default=10)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--skip", type=int, default=0, help="inputs of the corpus that an earlier process replayed")
    options.add_argument("--state", type=Path, required=True)
    asked = options.parse_args()
    if asked.engine == "atheris":
        import atheris

        # Before anything of ours is imported: atheris rewrites what it imports. Kernels are numba's.
        with atheris.instrument_imports(include=["constrain"], exclude=warm_kernels()):
            from constrain.frontends import gbnf, json_schema, lark, regex  # noqa: F401

            from . import targets
    else:
        from . import targets
    from . import engine

    target = targets.TARGETS[asked.target]
    reporter = Reporter(asked.state, target.seconds)
    run = engine.Run(target, reporter.before, reporter.after, reporter.found)
    run.target.prepare()
    if asked.engine == "atheris":
        return run_atheris(run, asked)
    for index in range(asked.skip, len(run.target.corpus)):
        reporter.say({"replays": index})
        run.check(run.target.corpus[index])
    lines = 0
    if asked.engine == "python":
        lines = engine.run_guided(run, asked.seconds, asked.seed)
    else:
        engine.generate_inputs(run, asked.seconds, asked.seed)
    reporter.tell(lines=lines)
    return 0


def warm_kernels() -> list[str]:
    """Return the modules that numba compiles: their bytecode must stay as it is."""
    folder = Path(__file__).resolve().parent.parent
    files = (folder / "constrain/kernels").rglob("*.py")
    return [".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__") for path in files]


def run_atheris(run: Any, asked: argparse.Namespace) -> int:
    """libFuzzer's loop over the bytes that a strategy draws from."""
    import atheris

    one_input = run.test(1, asked.seed).hypothesis.fuzz_one_input

    def once(data: bytes) -> None:
        run.choices = data
        one_input(data)

    arguments = [sys.argv[0], f"-max_total_time={max(1, int(asked.seconds))}", f"-seed={asked.seed % (1 << 31) or 1}",
                 "-max_len=4096", "-len_control=20", "-timeout=600", "-rss_limit_mb=0", "-verbosity=1",
                 f"-artifact_prefix={asked.state.parent}/"]  # fmt: skip
    atheris.Setup(arguments, once)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
