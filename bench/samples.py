"""Are there 20 different valid instances of every schema, and does `jsonschema` agree with each?

    python -m bench samples [--all | --sample 500] [--n 20]

Draws n different instances of every schema as `constrain sample` does, in a worker with limits (10 s, 2 GiB), in the
default style, and judges them by `jsonschema` with formats asserted. If there are fewer, all texts of the schema are
listed to prove that it has no more ("all there are"). Results are written to bench/results/ as JSON, with the id of
every schema that has too few.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from .corpus import Case
from .options import build_parser, read_cases
from .record import write_result
from .workers import Failure, Guard, run_guarded

MOST = 5_000
"""Maximum number of texts that are listed to prove that there are no more."""


@dataclass(slots=True)
class Outcome:
    """kind: "enough", "all there are", "too few", "refused" or "unsatisfiable". otherwise: (text, message) of instances
    that `jsonschema` rejects.
    """

    kind: str
    count: int = 0
    detail: str = ""
    otherwise: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0


def draw_samples(case: Case, n: int) -> Outcome:
    """Draw n different instances of one schema, as `constrain sample` does."""
    from constrain import Style, Vocabulary, compile
    from constrain.authoring.samples.distinct_instances import distinct_texts
    from constrain.base.errors import ConstrainError, UnsatisfiableError
    from constrain.cli.cross_check import parse_exact, validate_independently
    from constrain.engine.text_enumeration import hashable_json, list_texts

    begin = perf_counter()
    refused: list[tuple[str, str]] = []

    def agreed(text: bytes) -> bool:
        theirs = validate_independently(case.schema, text)
        if (
            theirs.verdict == "invalid"
            and validate_independently(case.schema, text, parse=parse_exact).verdict == "invalid"
        ):
            refused.append((text.decode(), theirs.message))
        return theirs.verdict != "invalid"

    try:
        constraint = compile(Vocabulary.bytes(), schema=case.schema)
        drawn = list(distinct_texts(constraint, n, rng=np.random.default_rng(0), agree=agreed))
    except UnsatisfiableError as error:
        return Outcome("unsatisfiable", detail=str(error))
    except ConstrainError as error:
        return Outcome("refused", detail=str(error))
    assert len({hashable_json(text) for text in drawn}) == len(drawn)
    outcome = Outcome("enough", len(drawn), otherwise=refused[:3])
    if len(drawn) < n:
        style = replace(Style(), whitespace="compact")
        listed = list_texts(compile(Vocabulary.bytes(), schema=case.schema, style=style).grammar, MOST)
        known = listed is not None and len({hashable_json(text) for text in listed}) == len(drawn)
        outcome.kind = "all there are" if known else "too few"
    outcome.seconds = perf_counter() - begin
    return outcome


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    parser = build_parser(
        "samples", __doc__, "data", "sample", "all", "ids", "seed", "seconds", "mebibytes", "results", sample=500
    )
    parser.add_argument("--n", type=int, default=20, help="instances of each schema")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    cases = read_cases(options)
    draw_samples(Case("warm", '{"type":"object","required":["a"]}', ()), 2)
    guard = Guard(options.seconds, options.mebibytes << 20)
    outcomes: list[Outcome | Failure] = []
    work = run_guarded(lambda case: draw_samples(case, options.n), cases, limits=guard, fresh=False)
    for _, outcome in track(work, "sampling", len(cases), console=Console(stderr=True)):
        outcomes.append(outcome)
    print_outcomes(cases, outcomes, options)
    return 0


def print_outcomes(cases: list[Case], outcomes: list[Outcome | Failure], options: argparse.Namespace) -> None:
    """Print the counts, and write every schema that has too few instances to the file."""
    counts = Counter(outcome.kind for outcome in outcomes)
    short: dict[str, Any] = {}
    for case, outcome in zip(cases, outcomes):
        if isinstance(outcome, Failure):
            short[case.id] = {"kind": outcome.kind, "detail": outcome.detail}
        elif outcome.kind in ("refused", "too few", "unsatisfiable") or outcome.otherwise:
            short[case.id] = {"kind": outcome.kind, "count": outcome.count, "detail": outcome.detail,
                              "otherwise": outcome.otherwise}  # fmt: skip
    judged = sum(isinstance(outcome, Outcome) and bool(outcome.otherwise) for outcome in outcomes)
    out = Console()
    out.print(f"{len(cases):,} schemas, {options.n} different instances of each", highlight=False)
    for kind, count in counts.most_common():
        out.print(f"  {kind:16} {count:6,}", highlight=False)
    out.print(f"  schemas with a text that jsonschema, with exact numbers, calls invalid: {judged}", highlight=False)
    facts = {
        "schemas": len(cases),
        "counts": dict(counts),
        "schemas that jsonschema judges otherwise": judged,
        "seconds": sum(outcome.seconds for outcome in outcomes if isinstance(outcome, Outcome)),
        "short": short,
    }
    write_result(options, facts)


if __name__ == "__main__":
    sys.exit(main())
