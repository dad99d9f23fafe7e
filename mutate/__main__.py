"""How many mutants of the kernels, the shape algebra and the samplers do the tests notice?

    python -m mutate --sample 500 --seed 1 [--only sampling] [--jobs 2] [--log mutants.txt]
    python -m mutate --again mutants.txt   those that this log names as survivors, after tests were written; the closing
                                           lines count all that the log names
    python -m mutate --list                how many mutants there are

A mutant is one small change (`operators.py`). All that are drawn are compiled into one scratch copy, each behind a
switch (`schemata.py`), and a fork server (`fork_server.py`) runs the tests. A mutant is killed if a test about its file
(`selection.py`) fails: first the nearest files are asked, then, about those still alive, further ones. Survivors that
no test can tell from the original are named in `mutate/equivalent.txt`, each with its reason, and not counted.
Exit code 1 if less than 90 % are killed.
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

from bench.report import commit
from constrain.kernels import layout

from .operators import Mutant, mutants
from .runner import Scratch, Verdict
from .schema_runner import Asked, SchemaScratch
from .selection import ROOT, asked_about, asked_later, files

GOAL = 0.9
EQUIVALENT = Path(__file__).parent / "equivalent.txt"


def main() -> int:
    """Run what was asked for; the exit code."""
    asked = arguments()
    everything = [
        one for file in files() if asked.only in file for one in mutants(file, (ROOT / file).read_text("utf-8"))
    ]
    if asked.list:
        print("\n".join(f"{count:6,}  {file}" for file, count in Counter(one.file for one in everything).most_common()))
        print(f"{len(everything):6,}  mutants")
        return 0
    before: list[Verdict] = []
    if asked.again:
        known = verdicts_of(asked.again.read_text("utf-8"))
        before = [Verdict(one, "before", 0.0) for one in everything if known.get(str(one)) == "killed"]
        chosen = [one for one in everything if known.get(str(one)) == "alive"]
    else:
        chosen = random.Random(asked.seed).sample(everything, min(asked.sample, len(everything)))[asked.start :]
    # Files together: compiled code and imports of one are still warm for the next.
    chosen = sorted(chosen, key=lambda one: (one.file, one.span))
    return report([*before, *judge(chosen, asked.log, asked.jobs, asked.rounds)])


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=500, help="mutants that are drawn (500)")
    parser.add_argument("--start", type=int, default=0, help="leave out the first of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", type=Path, metavar="LOG", help="the survivors that a log names, instead of a sample")
    parser.add_argument("--only", default="", metavar="WORD", help="files with this in their path")
    parser.add_argument("--jobs", type=int, default=1, help="mutants that are run at the same time (1)")
    parser.add_argument("--rounds", type=int, default=2, help="1: ask the nearest tests only (2)")
    parser.add_argument("--log", type=Path, help="also write each verdict to this file")
    parser.add_argument("--list", action="store_const", const="list", help="count the mutants")
    return parser.parse_args()


def judge(chosen: list[Mutant], log: Path | None, jobs: int, rounds: int) -> list[Verdict]:
    """The verdicts, told as they come: those of all mutants compiled together, then of each that cannot be."""
    last: dict[Mutant, Verdict] = {}
    chosen = [one for one in chosen if not mutant_is_none(one)]
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        for verdict in all_verdicts(Path(folder), chosen, jobs, rounds):
            last[verdict.mutant] = verdict
            how = f"{'killed' if verdict.killed else 'alive':<6} {verdict.seconds:6.1f} s {verdict.tests:4} tests"
            line = f"{how}  {verdict.mutant}  {verdict.killed}"
            print(line, flush=True)
            if log:
                with log.open("a", encoding="utf-8") as out:
                    out.write(line + "\n")
    return list(last.values())


def all_verdicts(folder: Path, chosen: list[Mutant], jobs: int, rounds: int) -> Iterator[Verdict]:
    """The verdicts, the last one of each mutant counts: survivors of the nearest tests are asked about once more."""
    together = SchemaScratch(folder / "together", chosen)
    near: dict[int, Asked] = {}
    later: dict[int, Asked] = {}
    for number, one in together.numbered.items():
        tests = asked_about(one.file)
        near[number] = (tests, ())
        later[number] = (asked_later(one.file), tests)
    yield from together.verdicts([near, later][:rounds], jobs)
    left = [one for one in chosen if one not in set(together.numbered.values())]
    alone = Scratch(folder / "alone") if left else None
    for one in left:
        assert alone is not None
        yield alone.judge(one, asked_about(one.file))


def verdicts_of(log: str) -> dict[str, str]:
    """Return the last verdict of each mutant that a log names, "killed" or "alive"."""
    last: dict[str, str] = {}
    for line in log.splitlines():
        verdict, _, mutant = line.partition(" tests  ")
        last[mutant.rpartition("  ")[0]] = verdict.split()[0]
    return last


def mutant_is_none(mutant: Mutant) -> bool:
    """Whether the change is not even syntax, or is `x + 0` made `x - 0`; 0 may have a name in `layout`."""
    zero = re.fullmatch(r"\(.*\) [-+] \((0|[A-Z]\w*)\)\s*", mutant.new, re.S)
    if mutant.operator == "arithmetic" and zero and (zero[1] == "0" or getattr(layout, zero[1], None) == 0):
        return True
    try:
        compile(mutant.applied((ROOT / mutant.file).read_text("utf-8")), mutant.file, "exec")
    except SyntaxError:
        return True
    return False


def equivalents() -> set[str]:
    """The mutants that are explained: a line is a mutant as `name` writes it, two spaces, `# ` and the reason."""
    lines = EQUIVALENT.read_text("utf-8").splitlines() if EQUIVALENT.exists() else []
    return {line.rpartition("  # ")[0] for line in lines if line and not line.startswith("#")}


def name(mutant: Mutant) -> str:
    """A mutant as the line that it changes, with the change in it, and without the line's number."""
    text = (ROOT / mutant.file).read_text("utf-8")
    start, end = mutant.span
    before, after = text[:start].rpartition("\n")[2], text[end:].partition("\n")[0]
    changed = f"{before}{{{mutant.old} => {mutant.new}}}{after}".partition("  #")[0]
    return f"{mutant.file} {mutant.function}: {' '.join(changed.split())}"


def report(verdicts: list[Verdict]) -> int:
    """The closing lines; 1 if too few are killed."""
    explained = equivalents()
    counted = [one for one in verdicts if one.killed or name(one.mutant) not in explained]
    killed = sum(bool(one.killed) for one in counted)
    share = killed / max(1, len(counted))
    by_file: dict[str, list[bool]] = {}
    for one in counted:
        by_file.setdefault(str(Path(one.mutant.file).parent), []).append(bool(one.killed))
    for one in counted:
        if not one.killed:
            print(f"SURVIVED {one.tests:4} tests  {name(one.mutant)}")
    for folder, outcomes in sorted(by_file.items()):
        print(f"{folder:<50} {sum(outcomes):4} of {len(outcomes):4} killed")
    explained_away = len(verdicts) - len(counted)
    print(f"{killed} of {len(counted)} mutants killed ({share:.1%}), {explained_away} explained as equivalent")
    print(f"at {commit()}, goal {GOAL:.0%}")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
