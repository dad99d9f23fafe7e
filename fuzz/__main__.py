"""Fuzz the library with generated and coverage-guided inputs.

    python -m fuzz schema-text --seconds 60 --seed 1     one target
    python -m fuzz --all --hours 1 --jobs 2              all of them, half the time generated, half guided by coverage
    python -m fuzz --list

Each input has 10 s of CPU time and 1 GiB of additional memory, in a child process. A finding is an exception other than
ConstrainError, a process that died, or a disagreement with another implementation that `fuzz/explained.py` does not
explain; it is written to `fuzz/findings/`. The exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import fill

from .explained import RULES
from .findings import save_finding
from .supervise import Outcome, choose_guided_engine, supervise_target

FINDINGS = Path(__file__).parent / "findings"
LINE = "{:<16} {:<9} {:>7} {:>11} {:>9} {:>7} {:>8} {:>9}"
LONGEST_PRINTED = 300
INDENT = "    "


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", nargs="*", help="names of targets, see --list")
    parser.add_argument("--all", action="store_const", const="all", help="run all targets")
    parser.add_argument("--list", action="store_const", const="list", help="print the targets")
    parser.add_argument("--seconds", type=float, default=60, help="time for each target (default: 60)")
    parser.add_argument("--hours", type=float, help="time for all targets together")
    parser.add_argument("--jobs", type=int, default=1, help="targets that run at the same time (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs (default: 0)")
    parser.add_argument("--engine", choices=["both", "generate", "guided", "python", "atheris"], default="both")
    parser.add_argument("--findings", type=Path, default=FINDINGS, help="folder of the findings")
    return parser.parse_args()


def main() -> int:
    """Run the chosen targets. Return the exit code."""
    options = parse_arguments()
    from .targets import TARGETS

    if options.list:
        for target in TARGETS.values():
            print(f"{target.name:<16} {target.about}")
        return 0
    names = list(TARGETS) if options.all else options.target
    unknown = [name for name in names if name not in TARGETS]
    if unknown or not names:
        print(f"no target {', '.join(unknown) or 'given'}: {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    engines = list_engines(options.engine)
    seconds = (options.hours * 3_600 / len(names) if options.hours else options.seconds) / len(engines)
    print(LINE.format("target", "engine", "seconds", "executions", "per s", "cover", "slowest", "findings"), flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = [
            pool.submit(supervise_target, name, engine, seconds, options.seed) for name in names for engine in engines
        ]
        try:
            outcomes = [print_outcome(run.result(), options.findings) for run in runs]
        finally:
            pool.shutdown(cancel_futures=True)  # after an interrupt, waits only for targets that are running
    return print_summary(outcomes)


def list_engines(choice: str) -> list[str]:
    """Return the engines of an `--engine` choice, by the names that `fuzz.child` knows."""
    guided = choose_guided_engine()
    return {"both": ["generate", guided], "guided": [guided]}.get(choice, [choice])


def print_outcome(outcome: Outcome, folder: Path) -> Outcome:
    """Save the findings of one target and engine, and print its lines. Return the outcome."""
    rate = outcome.executions / max(outcome.seconds, 0.1)
    print(
        LINE.format(
            outcome.target,
            outcome.engine,
            f"{outcome.seconds:.0f}",
            f"{outcome.executions:,}",
            f"{rate:,.0f}",
            f"{outcome.coverage:,}",
            f"{outcome.slowest:.1f} s",
            len(outcome.findings),
        ),
        flush=True,
    )
    for finding in outcome.findings.values():
        save_finding(folder, finding)
        text = (
            finding.shown
            if len(finding.shown) <= LONGEST_PRINTED
            else f"{finding.shown[:LONGEST_PRINTED]}… ({len(finding.shown):,} characters)"
        )
        about = (
            finding.detail.strip().splitlines()[:3]
            if finding.kind == "disagreement"
            else finding.detail.strip().splitlines()[-1:]
        )
        print(f"    {finding.kind}: {finding.signature}")
        print("\n".join(f"      {line[:LONGEST_PRINTED]}" for line in about).encode(errors="backslashreplace").decode())
        print(f"      input: {text.encode(errors='backslashreplace').decode()}", flush=True)
    return outcome


def print_summary(outcomes: list[Outcome]) -> int:
    """Print the closing lines. Return 1 if there is a finding, else 0."""
    found = {(finding.target, name) for outcome in outcomes for name, finding in outcome.findings.items()}
    total = sum(outcome.executions for outcome in outcomes)
    explained: Counter[str] = sum((outcome.explained for outcome in outcomes), Counter())
    for name, rule in RULES.items():
        print(f"explained {explained[name]:,} times: {name}")
        print(fill(rule.reason, 100, initial_indent=INDENT, subsequent_indent=INDENT))
    now = time.strftime("%Y-%m-%d %H:%M")
    print(f"{now}: {total:,} executions of {len({o.target for o in outcomes})} targets, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
