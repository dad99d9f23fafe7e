"""Do methods rank as the AWRS and GAD papers report?

    python -m bench faithful.shapes [--data ../shared/data/maskbench-dev.jsonl.gz] [--answers 20]

Lipkin et al. 2025 (AWRS): shares of right answers on five kinds of tasks, and checks against exp(KL) of a step. Park et
al. 2024 (GAD): running windows on its three kinds of grammars, with the embedded model and with models that are trained
here (`gad_grammars`). The embedded model writes patterns, JSON and the grammars; byte-level n-gram models, trained on
examples, write SQL, arithmetic and SMILES-like strings, which the embedded model has not learned.
Takes minutes on two cores. The exit code is 1 if a result contradicts the papers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console

from ...options import build_parser
from ...record import write_result
from ..__main__ import print_section, print_verdicts
from ..plots import draw_shapes
from ..verdicts import Verdict, format_verdict
from . import accuracy, arithmetic, checks, documents, gad, gad_grammars, molecules, patterns, sql
from .accuracy import Row

EXPECTED = 0.8
"""Minimum rank correlation of checks and exp(KL)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return 1 if a verdict is negative, else 0."""
    parser = build_parser("faithful.shapes", __doc__, "data", "seed", "checkpoint", "results", data=None, seed=1)
    parser.add_argument("--answers", type=int, default=20, help="answers to each task, by each method")
    parser.add_argument("--tasks", type=int, default=12, help="maximum number of tasks of each kind")
    parser.add_argument("--draws", type=int, default=2000, help="draws in GAD's protocol")
    parser.add_argument("--grammars", nargs="*", help="names of grammars in GAD's protocol (default: all)")
    options = parser.parse_args(arguments)
    begin, console = perf_counter(), Console()
    kinds, counts, verdicts = dict[str, list[Row]](), dict[str, int](), list[Verdict]()
    for tasks in (
        patterns.build_pattern_tasks(options.tasks, options.checkpoint),
        documents.build_document_tasks(options.tasks, options.data, options.checkpoint),
        sql.build_query_tasks(options.tasks),
        arithmetic.build_arithmetic_tasks(options.tasks), molecules.build_molecule_tasks(options.tasks),
    ):  # fmt: skip
        made = accuracy.measure_methods(tasks, options.answers, options.seed)
        kinds[made[0].kind], counts[made[0].kind] = made, len(tasks)
        print_section(console, build_accuracy_table(made, len(tasks)))
        verdicts.append(judge_order(made))
        console.print(format_verdict(verdicts[-1]), f"({perf_counter() - begin:.0f} s)", highlight=False)
    masked_tasks = patterns.build_pattern_tasks(options.tasks, options.checkpoint)
    masked_tasks += documents.build_document_tasks(2 * options.tasks, options.data, options.checkpoint)
    steps = checks.measure_steps_of_tasks(masked_tasks, 3, 40, options.seed)
    verdicts.append(
        Verdict(
            f"checks of AWRS grow with exp(KL) of the step: rank correlation above {EXPECTED}",
            steps.by_step > EXPECTED, f"{steps.by_step:.2f} over {len(steps.kl)} steps, {steps.by_task:.2f} over "
            f"the means of {len(masked_tasks)} constraints",
        )
    )  # fmt: skip
    console.print(format_verdict(verdicts[-1]), highlight=False)
    protocol = list[dict[str, Any]]()
    fixtures = gad.list_gad_fixtures(options.grammars, options.checkpoint)
    for f in [*fixtures, *gad_grammars.list_trained_fixtures(options.grammars)]:
        found = gad.measure_windows(f, options.draws, options.seed, window=min(gad.WINDOW, options.draws // 4))
        protocol.append({"name": f.name, "sequences": len(f.exact), "z": f.z, "distortion": f.distortion,
                         **round_values(asdict(found))})  # fmt: skip
        console.print(f"{f.name}: {perf_counter() - begin:.0f} s since the start")
    verdicts += judge_gad(protocol)
    tables = [build_accuracy_table(made, counts[kind]) for kind, made in kinds.items()]
    tables[0]["note"] = NOTE.format(options.answers)
    tables.append(build_gad_table(protocol))
    print_section(console, tables[-1])
    facts = {
        "verdicts": [verdict._asdict() for verdict in verdicts],
        "kinds": {kind: [round_values(asdict(row)) for row in made] for kind, made in kinds.items()},
        "tables": tables,
        "steps": round_values({
            "by_step": steps.by_step, "by_task": steps.by_task, "races": checks.RACES,
            "exp_kl": np.exp(steps.kl).tolist(), "checks": steps.checks.tolist(),
        }),
        "gad": protocol,
    }  # fmt: skip
    draw_shapes(write_result(options, facts).with_suffix(".svg"), facts)
    return print_verdicts(verdicts, console, perf_counter() - begin)


def round_values(value: Any) -> Any:
    """Round all numbers in a nested value to four digits; NaN becomes None."""
    if isinstance(value, float):
        return float(f"{value:.4g}") if value == value else None
    if isinstance(value, dict):
        return {key: round_values(part) for key, part in value.items()}
    return [round_values(part) for part in value] if isinstance(value, (list, tuple)) else value


def judge_order(made: list[Row]) -> Verdict:
    """Judge the order of methods on one kind of task."""
    good, wrong = accuracy.check_order(made)
    shares = ", ".join(f"{row.method} {row.right:.0%}" for row in made)
    return Verdict(f"{made[0].kind}: methods in order, within 95 % intervals", good, wrong or shares)


NOTE = (
    "{} answers to each task. Less likely: nats by which the answers in L are less likely under the model than exact "
    "ones are, mean over tasks, and its standard error. Evaluations: prefixes that the model evaluated, per answer."
)


def build_accuracy_table(made: list[Row], tasks: int) -> dict[str, Any]:
    """Build the table of one kind of task."""
    rows = [
        [row.method, f"{row.right:.0%}", f"{row.low:.0%} to {row.high:.0%}",
         "" if row.surprise != row.surprise else f"{row.surprise:.2f} ± {row.error:.2f}", f"{row.evaluations:,.0f}",
         f"{row.ms:,.0f}"]
        for row in made
    ]  # fmt: skip
    header = ["method", "right", "95 % interval", "less likely", "evaluations", "ms of CPU"]
    return {"name": f"{made[0].kind}, {tasks} tasks", "note": "", "header": header, "rows": rows}


def build_gad_table(protocol: list[dict[str, Any]]) -> dict[str, Any]:
    """Build the table of the last window of each grammar."""
    methods = list(protocol[0]["true"])
    rows = [
        [one["name"], f"{one['sequences']:,}", f"{one['z']:.2g}", f"{one['distortion']:.2f}",
         *(f"{one['true'][name][-1]:.3f} ({one['estimated'][name][-1]:.3f})" for name in methods),
         f"{one['floor']:.3f}"]
        for one in protocol
    ]  # fmt: skip
    note = (
        "KL of the last window from p given L in nats, true and in brackets as GAD estimates it; floor: of exact "
        "redraws. Distortion: KL(masking || p given L)."
    )
    header = ["grammar", "sequences", "p(L)", "distortion", *methods, "floor"]
    return {"name": "GAD's grammars", "note": note, "header": header, "rows": rows}


def judge_gad(protocol: list[dict[str, Any]]) -> list[Verdict]:
    """Judge GAD's protocol: exact at the floor in every window, ASAp in the end below masking, and above it before."""
    high = [one["name"] for one in protocol if max(one["true"]["exact"]) > 3 * one["floor"] + 0.02]
    above = [
        one["name"] for one in protocol
        if one["true"]["ASAp"][-1] > max(one["true"]["masked"][-1], 3 * one["floor"] + 0.02)
    ]  # fmt: skip
    bumps = [one["name"] for one in protocol if max(kl for _, kl in one["learnt"]) > one["learnt"][0][1] + 0.01]
    return [
        Verdict("GAD: exact is at the floor in every window", not high, ", ".join(high) or "on all grammars"),
        Verdict("GAD: ASAp ends below masking", not above, ", ".join(above) or "on all grammars"),
        Verdict(
            "ASAp's law is worse than masking before it is better, on most grammars",
            2 * len(bumps) > len(protocol), f"on {len(bumps)} of {len(protocol)}",
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
