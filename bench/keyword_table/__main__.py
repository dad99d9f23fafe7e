"""Which keywords does each engine enforce, refuse, narrow or ignore? Every engine on small schemas, one run.

    python -m bench.keyword_table [--engines llguidance,xgrammar] [--only oneOf] [--write docs/json-schema.md]

Each engine runs in worker processes of its own, with limits per schema (5 s of computing, 2 GiB); one not installed is
skipped and named. Printed: the counts, and every row that constrain does not enforce. Saved as JSON in bench/results/,
with the documents that were judged wrong and what the refusals say.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

from ..maskbench import names
from ..report import commit, machine
from ..workers import Failure, Guard, guarded
from .peers import ENGINES, OURS, PACKAGES
from .probes import Probe, probes
from .table import TITLES, Verdict, judge, page, prepared, summary, trusted

LIMITS = Guard(5.0, 2 << 30, "cpu")
WORDS = {"timeout": "time-out", "memory": "crash", "crash": "crash"}


def main(arguments: list[str] | None = None) -> int:
    """Runs the engines; 0, or 2 for a mistake in the arguments or a label that `jsonschema` does not share."""
    options = parse(arguments)
    chosen = [probe for probe in probes() if options.only in probe.name]
    if options.write and (options.only or options.engines != list(ENGINES)):
        print("--write is of the whole table: without --only and --engines", file=sys.stderr)
        return 2
    try:
        trusted(chosen)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    versions = {name: version for name in PACKAGES if (version := installed(name))}
    found: dict[str, list[Verdict]] = {}
    for name in options.engines:
        if name not in OURS and name not in versions:
            print(f"{name} is not installed: skipped", file=sys.stderr)
            continue
        print(name, file=sys.stderr, flush=True)
        found[name] = run(name, chosen)
    for line in summary(found, {name: TITLES[name] for name in found}):
        print(line)
    for name in OURS:
        for probe, verdict in zip(chosen, found.get(name, ())):
            if verdict.word != "enforced":
                print(f"{TITLES[name]}: {probe.name}: {verdict.word} {verdict.error}{verdict.over}{verdict.under}")
    now = datetime.datetime.now(datetime.timezone.utc)
    print(f"saved as {save(chosen, found, versions, now, options.results)}")
    if options.write:
        options.write.write_text(page(chosen, found, f"{now:%Y-%m-%d}", versions), "utf-8")
        print(f"written to {options.write}")
    return 0


def run(name: str, chosen: list[Probe]) -> list[Verdict]:
    """One engine over all probes."""
    verdicts = []
    for _, outcome in guarded(
        partial(judge, name), chosen, limits=LIMITS, fresh=False, begin=lambda: void(prepared(name))
    ):
        verdicts.append(Verdict(WORDS[outcome.kind], outcome.detail) if isinstance(outcome, Failure) else outcome)
    return verdicts


def void(_: object) -> None:
    """Made for what making it leaves behind."""


def installed(package: str) -> str:
    """The version of a package; "" if there is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def save(
    chosen: list[Probe],
    found: dict[str, list[Verdict]],
    versions: dict[str, str],
    now: datetime.datetime,
    folder: Path,
) -> Path:
    """Every verdict with what is behind it; the file's path."""
    document = {
        "question": "which keywords does each engine enforce, refuse, narrow or ignore?",
        "command": " ".join(["python -m bench.keyword_table", *sys.argv[1:]]),
        "date": now.isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "versions": versions,
        "rows": {
            probe.name: {
                name: {key: value for key, value in asdict(verdicts[index]).items() if value}
                for name, verdicts in found.items()
            }
            for index, probe in enumerate(chosen)
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"keyword-table-{now:%Y-%m-%d-%H%M}.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.keyword_table", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engines", type=names(ENGINES), default=list(ENGINES), metavar="A,B", help=", ".join(ENGINES))
    parser.add_argument("--only", default="", metavar="WORD", help="probes with this in their name")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent.parent / "results", help="for the JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
