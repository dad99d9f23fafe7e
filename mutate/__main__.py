"""Mutation testing: how many mutants of the kernels, the shape algebra and the samplers do the tests kill?

    python -m mutate --sample 500 --seed 1 [--only sampling] [--jobs 2] [--log mutants.txt]
    python -m mutate --again mutants.txt   only the survivors in this log, after tests were added; the summary counts
    all
                                           mutants in the log
    python -m mutate --list                print the number of mutants

A mutant is one small change (`operators.py`). The drawn mutants are compiled into one scratch copy, each with a switch
(`schemata.py`), and a fork server (`fork_server.py`) runs the tests. A mutant is killed if one of the tests selected
for its file (`selection.py`) fails: first the nearest test files run, then, for survivors, further ones. Survivors that
are equivalent to the original are listed in `mutate/equivalent.txt`, each with its reason, and not counted. The exit
code is 1 if less than 90 % are killed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.record import describe_commit
from constrain.kernels import layout

from .operators import Mutant, list_mutants
from .runner import Scratch, Verdict
from .schema_runner import SchemaScratch, TestChoice
from .selection import ROOT, choose_further_tests, choose_nearest_tests, list_files

GOAL = 0.9
EQUIVALENT = Path(__file__).parent / "equivalent.txt"


def main() -> int:
    """Draw mutants and run the tests. Return the exit code."""
    options = parse_arguments()
    everything = [
        one
        for file in list_files()
        if options.only in file
        for one in list_mutants(file, (ROOT / file).read_text("utf-8"))
    ]
    if options.list:
        print("\n".join(f"{count:6,}  {file}" for file, count in Counter(one.file for one in everything).most_common()))
        print(f"{len(everything):6,}  mutants")
        return 0
    before: list[Verdict] = []
    if options.again:
        known = parse_verdicts(options.again.read_text("utf-8"))
        before = [Verdict(one, "before", 0.0) for one in everything if known.get(str(one)) == "killed"]
        chosen = [one for one in everything if known.get(str(one)) == "alive"]
    else:
        chosen = random.Random(options.seed).sample(everything, min(options.sample, len(everything)))[options.start :]
    # Mutants of one file are adjacent, so that compiled code and imports are in the caches.
    chosen = sorted(chosen, key=lambda one: (one.file, one.span))
    return print_report([*before, *judge_mutants(chosen, options.log, options.jobs, options.rounds)])


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=500, help="number of mutants to draw (500)")
    parser.add_argument("--start", type=int, default=0, help="number of mutants to skip")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (1)")
    parser.add_argument("--again", type=Path, metavar="LOG", help="run the survivors in a log instead of a sample")
    parser.add_argument("--only", default="", metavar="WORD", help="only files with this in their path")
    parser.add_argument("--jobs", type=int, default=1, help="mutants that run at the same time (1)")
    parser.add_argument("--rounds", type=int, default=2, help="1: run the nearest tests only (2)")
    parser.add_argument("--log", type=Path, help="also write each verdict to this file")
    parser.add_argument("--list", action="store_const", const="list", help="count the mutants")
    return parser.parse_args()


def judge_mutants(chosen: list[Mutant], log: Path | None, jobs: int, rounds: int) -> list[Verdict]:
    """Run the tests against the mutants and print each verdict. Return the last verdict of each mutant."""
    last: dict[Mutant, Verdict] = {}
    chosen = [one for one in chosen if not is_no_change(one)]
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        for verdict in run_mutants(Path(folder), chosen, jobs, rounds):
            last[verdict.mutant] = verdict
            how = f"{'killed' if verdict.killed else 'alive':<6} {verdict.seconds:6.1f} s {verdict.tests:4} tests"
            line = f"{how}  {verdict.mutant}  {verdict.killed}"
            print(line, flush=True)
            if log:
                with log.open("a", encoding="utf-8") as out:
                    out.write(line + "\n")
    return list(last.values())


def run_mutants(folder: Path, chosen: list[Mutant], jobs: int, rounds: int) -> Iterator[Verdict]:
    """Yield verdicts, of which the last of each mutant counts.

    First those of the mutants that are compiled together, in rounds with further tests for survivors, then those of
    mutants that cannot be compiled with the others.
    """
    together = SchemaScratch(folder / "together", chosen)
    near: dict[int, TestChoice] = {}
    later: dict[int, TestChoice] = {}
    for number, one in together.numbered.items():
        tests = choose_nearest_tests(one.file)
        near[number] = (tests, ())
        later[number] = (choose_further_tests(one.file), tests)
    yield from together.verdicts([near, later][:rounds], jobs)
    left = [one for one in chosen if one not in set(together.numbered.values())]
    alone = Scratch(folder / "alone") if left else None
    for one in left:
        assert alone is not None
        yield alone.judge(one, choose_nearest_tests(one.file))


def parse_verdicts(log: str) -> dict[str, str]:
    """Return the last verdict of each mutant in a log, "killed" or "alive"."""
    last: dict[str, str] = {}
    for line in log.splitlines():
        verdict, _, mutant = line.partition(" tests  ")
        last[mutant.rpartition("  ")[0]] = verdict.split()[0]
    return last


def is_no_change(mutant: Mutant) -> bool:
    """Return whether a mutant is a syntax error or changes `x + 0` to `x - 0`; 0 may have a name in `layout`."""
    zero = re.fullmatch(r"\(.*\) [-+] \((0|[A-Z]\w*)\)\s*", mutant.new, re.S)
    if mutant.operator == "arithmetic" and zero and (zero[1] == "0" or getattr(layout, zero[1], None) == 0):
        return True
    try:
        compile(mutant.apply((ROOT / mutant.file).read_text("utf-8")), mutant.file, "exec")
    except SyntaxError:
        return True
    return False


def read_equivalents() -> set[str]:
    """Return the mutants that are listed as equivalent.

    A line of the file is a mutant as `name_mutant` writes it, two spaces, `# ` and the reason.
    """
    lines = EQUIVALENT.read_text("utf-8").splitlines() if EQUIVALENT.exists() else []
    return {line.rpartition("  # ")[0] for line in lines if line and not line.startswith("#")}


def name_mutant(mutant: Mutant) -> str:
    """Return a name of a mutant: the line that it changes, with the change and without the line number."""
    text = (ROOT / mutant.file).read_text("utf-8")
    start, end = mutant.span
    before, after = text[:start].rpartition("\n")[2], text[end:].partition("\n")[0]
    changed = f"{before}{{{mutant.old} => {mutant.new}}}{after}".partition("  #")[0]
    return f"{mutant.file} {mutant.function}: {' '.join(changed.split())}"


def print_report(verdicts: list[Verdict]) -> int:
    """Print the closing lines. Return 1 if too few mutants are killed, else 0."""
    explained = read_equivalents()
    counted = [one for one in verdicts if one.killed or name_mutant(one.mutant) not in explained]
    killed = sum(bool(one.killed) for one in counted)
    share = killed / max(1, len(counted))
    by_file: dict[str, list[bool]] = {}
    for one in counted:
        by_file.setdefault(str(Path(one.mutant.file).parent), []).append(bool(one.killed))
    for one in counted:
        if not one.killed:
            print(f"SURVIVED {one.tests:4} tests  {name_mutant(one.mutant)}")
    for folder, outcomes in sorted(by_file.items()):
        print(f"{folder:<50} {sum(outcomes):4} of {len(outcomes):4} killed")
    explained_away = len(verdicts) - len(counted)
    print(f"{killed} of {len(counted)} mutants killed ({share:.1%}), {explained_away} explained as equivalent")
    print(f"at {describe_commit()}, goal {GOAL:.0%}")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
