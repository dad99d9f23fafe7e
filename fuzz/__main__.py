"""Fuzz constrain.

    python -m fuzz schema-text --seconds 60 --seed 1     one target
    python -m fuzz --all --hours 1 --jobs 2              all of them, half the time generated, half guided by coverage
    python -m fuzz --list

Each input has 10 s of CPU time and 1 GiB above what the process holds, in a child process. A finding is an exception
that is not ours, a process that died, or a disagreement with another judge that `fuzz/explained.py` does not explain;
it is kept in `fuzz/findings/`. Exit code 1 if there are any.
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
from .findings import keep
from .supervise import Outcome, guided_engine, supervise

FINDINGS = Path(__file__).parent / "findings"
LINE = "{:<16} {:<9} {:>7} {:>11} {:>9} {:>7} {:>8} {:>9}"
SHOWN = 300
INDENT = "    "


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", nargs="*", help="names, as --list shows them")
    parser.add_argument("--all", action="store_const", const="all", help="all targets")
    parser.add_argument("--list", action="store_const", const="list", help="the targets")
    parser.add_argument("--seconds", type=float, default=60, help="for each target (default: 60)")
    parser.add_argument("--hours", type=float, help="for all targets together")
    parser.add_argument("--jobs", type=int, default=1, help="targets side by side: the hours are theirs together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=["both", "generate", "guided", "python", "atheris"], default="both")
    parser.add_argument("--findings", type=Path, default=FINDINGS, help="folder for what is found")
    return parser.parse_args()


def main() -> int:
    """Run what was asked for; the exit code."""
    asked = arguments()
    from .targets import TARGETS

    if asked.list:
        for target in TARGETS.values():
            print(f"{target.name:<16} {target.about}")
        return 0
    names = list(TARGETS) if asked.all else asked.target
    unknown = [name for name in names if name not in TARGETS]
    if unknown or not names:
        print(f"no target {', '.join(unknown) or 'given'}: {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    engines = engines_of(asked.engine)
    seconds = (asked.hours * 3_600 / len(names) if asked.hours else asked.seconds) / len(engines)
    print(LINE.format("target", "engine", "seconds", "executions", "per s", "cover", "slowest", "findings"), flush=True)
    with ThreadPoolExecutor(asked.jobs) as pool:
        runs = [pool.submit(supervise, name, engine, seconds, asked.seed) for name in names for engine in engines]
        try:
            outcomes = [tell(run.result(), asked.findings) for run in runs]
        finally:
            pool.shutdown(cancel_futures=True)  # after an interrupt only those that run are waited for
    return report(outcomes)


def engines_of(asked: str) -> list[str]:
    """The engines that were asked for, by the names that `fuzz.child` knows."""
    guided = guided_engine()
    return {"both": ["generate", guided], "guided": [guided]}.get(asked, [asked])


def tell(outcome: Outcome, folder: Path) -> Outcome:
    """Keep the findings of one target and engine, and write its lines of the log."""
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
        keep(folder, finding)
        shown = (
            finding.shown
            if len(finding.shown) <= SHOWN
            else f"{finding.shown[:SHOWN]}… ({len(finding.shown):,} characters)"
        )
        about = (
            finding.detail.strip().splitlines()[:3]
            if finding.kind == "disagreement"
            else finding.detail.strip().splitlines()[-1:]
        )
        print(f"    {finding.kind}: {finding.signature}")
        print("\n".join(f"      {line[:SHOWN]}" for line in about).encode(errors="backslashreplace").decode())
        print(f"      input: {shown.encode(errors='backslashreplace').decode()}", flush=True)
    return outcome


def report(outcomes: list[Outcome]) -> int:
    """The closing line; 1 if anything was found."""
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
