"""Which keywords does each engine enforce, refuse, narrow or ignore? Every engine on small schemas, one run.

    python -m bench keyword_table [--engines llguidance,xgrammar] [--only oneOf] [--write docs/json-schema.md]

Each engine runs in worker processes of its own, with limits per schema (5 s of CPU time, 2 GiB). Engines that are not
installed are named and skipped. Printed: the counts, and every row that constrain does not enforce. Results are written
to bench/results/ as JSON, with the documents that were judged wrong and the messages of refusals.
"""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from ..options import build_parser
from ..record import list_versions, write_result
from ..workers import Failure, Guard, run_guarded
from .peers import ENGINES, OURS, PACKAGES
from .probes import Probe, list_probes
from .table import TITLES, Verdict, build_page, check_labels, judge_probe, prepare_engine, summarise_verdicts

LIMITS = Guard(5.0, 2 << 30, "cpu")
WORDS = {"timeout": "time-out", "memory": "crash", "crash": "crash"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the engines. Return the exit code: 2 for wrong arguments or a label with which `jsonschema` disagrees."""
    parser = build_parser("keyword_table", __doc__, "only", "results", engines=ENGINES)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    chosen = [probe for probe in list_probes() if options.only in probe.name]
    if options.write and (options.only or options.engines != list(ENGINES)):
        parser.error("--write is of the whole table: without --only and --engines")
    try:
        check_labels(chosen)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    versions = {name: version for name, version in list_versions().items() if name in PACKAGES}
    found: dict[str, list[Verdict]] = {}
    for name in options.engines:
        if name not in OURS and name not in versions:
            print(f"{name} is not installed: skipped", file=sys.stderr)
            continue
        print(name, file=sys.stderr, flush=True)
        found[name] = judge_probes(name, chosen)
    for line in summarise_verdicts(found, {name: TITLES[name] for name in found}):
        print(line)
    for name in OURS:
        for probe, verdict in zip(chosen, found.get(name, ())):
            if verdict.word != "enforced":
                print(f"{TITLES[name]}: {probe.name}: {verdict.word} {verdict.error}{verdict.over}{verdict.under}")
    rows = {
        probe.name: {
            name: {key: value for key, value in asdict(verdicts[index]).items() if value}
            for name, verdicts in found.items()
        }
        for index, probe in enumerate(chosen)
    }
    write_result(options, {"versions": versions, "rows": rows})
    if options.write:
        today = datetime.datetime.now(datetime.timezone.utc)
        options.write.write_text(build_page(chosen, found, f"{today:%Y-%m-%d}", versions), "utf-8")
        print(f"written to {options.write}")
    return 0


def judge_probes(name: str, chosen: list[Probe]) -> list[Verdict]:
    """Judge all probes with one engine."""
    verdicts = []
    begin = partial(prepare_engine, name)  # fills the cache of `prepare_engine`
    for _, outcome in run_guarded(partial(judge_probe, name), chosen, limits=LIMITS, fresh=False, begin=begin):
        verdicts.append(Verdict(WORDS[outcome.kind], outcome.detail) if isinstance(outcome, Failure) else outcome)
    return verdicts


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
