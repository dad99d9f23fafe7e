"""Which samplers draw from p given L, and after how much?

    python -m bench faithful [--draws 4000] [--repeats 4] [--markov-only]

The exact distribution of every fixture is known. Printed and written: G-tests of the samplers that are exact, with
masking as the control that must fail; particles needed with and without a twist; the divergence of masking, estimated
from its weights and true; curves of divergence, also as SVG; and a verdict for each target. With 20,000 draws it takes
ten minutes on two cores. The exit code is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console

from constrain.base.errors import UnsatisfiableError

from ..options import build_parser
from ..record import write_result
from ..tables import build_table
from . import fixtures, measure
from .plots import draw_curves
from .samplers import CONTROL, SAMPLERS
from .verdicts import Verdict, format_verdict

PASS_ABOVE, CONTROL_BELOW = 1e-6, 1e-12
"""P-values: a G-test passes above the first; the control must be below the second."""
SMALL = 0.05
"""Nats: below it an error of 0.005 is accepted, above it an error of 10 %."""
NEAR = 0.02
"""Nats: below this distortion a few thousand draws cannot tell masking from the exact distribution."""
CURVES = ("traps, trigram", "pieces", "demo: an integer", "demo: a city")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return 1 if a target is missed, else 0."""
    parser = build_parser("faithful", __doc__, "seed", "checkpoint", "results", seed=1)
    parser.add_argument(
        "--draws", type=int, default=4000, help="draws of each G-test; at most 2,000 with the demo model"
    )
    parser.add_argument("--repeats", type=int, default=4, help="independent runs of each curve")
    parser.add_argument("--markov-only", action="store_true", help="without the demo model")
    options = parser.parse_args(arguments)
    begin, console = perf_counter(), Console()
    all_fixtures = fixtures.list_markov_fixtures()
    if not options.markov_only:
        all_fixtures += fixtures.list_demo_fixtures(options.checkpoint)
    floors = {
        f.name: measure.compute_floor(f, min(options.draws, 2000), measure.STEPS, options.seed) for f in all_fixtures
    }
    tables, verdicts = [], list[Verdict]()
    for make in (judge_exactness, judge_first_draws, judge_particles, judge_estimates):
        table, found = make(all_fixtures, floors, options)
        tables.append(table)
        verdicts += found
        print_section(console, table)
    curves = []
    for f in all_fixtures:
        if f.name in CURVES:
            lines = [
                measure.measure_curve(f, sampler, options.repeats, options.seed, measure.STEPS)
                for sampler in SAMPLERS
                if sampler.curve
            ]
            curves.append(encode_curves(f, floors[f.name], lines))
            console.print(f"curves of {f.name}: {perf_counter() - begin:.0f} s since the start")
    facts = {"verdicts": [verdict._asdict() for verdict in verdicts], "tables": tables, "curves": curves}
    draw_curves(write_result(options, facts).with_suffix(".svg"), curves)
    return print_verdicts(verdicts, console, perf_counter() - begin)


def print_verdicts(verdicts: list[Verdict], console: Console, seconds: float) -> int:
    """Print the verdicts. Return the exit code: 1 if a target is missed."""
    console.print(f"{seconds:.0f} s")
    for verdict in verdicts:
        console.print(format_verdict(verdict), highlight=False)
    return 0 if all(verdict.met for verdict in verdicts) else 1


def encode_curves(f: fixtures.Fixture, floor: measure.Floor, lines: list[measure.Curve]) -> dict[str, Any]:
    """Return curves as JSON values: means and bands over repeats, to four digits."""
    out = []
    for one in lines:
        length = min((len(row) for row in one.divergence), default=0)
        if length:
            far = np.array([row[:length] for row in one.divergence])
            asked = np.array([row[:length] for row in one.evaluations], dtype=np.float64)
            columns = {"mean": far.mean(axis=0), "low": far.min(axis=0), "high": far.max(axis=0)}
            rounded = {name: [float(f"{v:.4g}") for v in column] for name, column in columns.items()}
            out.append({"sampler": one.sampler, "asked": asked.mean(axis=0).round().tolist(), **rounded})
    return {
        "name": f.name, "sequences": len(f.exact), "z": f.z, "at": list(measure.STEPS),
        "floor": [float(f"{v:.4g}") for v in floor.mean], "lines": out,
    }  # fmt: skip


Made = tuple[dict[str, Any], list[Verdict]]


def judge_exactness(
    all_fixtures: list[fixtures.Fixture], floors: dict[str, measure.Floor], options: argparse.Namespace
) -> Made:
    """Run the G-tests of exact samplers and of the control."""
    tested = [CONTROL, *(sampler for sampler in SAMPLERS if sampler.exact)]
    rows, wrong, refuted, tests = [], list[str](), 0, 0
    blinds = list[str]()
    for f in all_fixtures:
        n = min(options.draws, 2000) if f.real else options.draws
        row = [f.name, str(len(f.exact)), f"{f.z:.2g}", f"{f.distortion:.3f}"]
        for sampler in tested:
            wanted = n if sampler.name == "exact" else min(n, 1000)
            if sampler.name == "rejection" and f.z < 0.03:
                row.append("-")
                continue
            try:
                p, count = measure.compute_g_test(f, sampler.open(f, np.random.default_rng([options.seed, 5])), wanted)
            except UnsatisfiableError:
                row.append("none")
                continue
            if sampler is CONTROL:
                blind = len(f.exact) < 2 or f.distortion < NEAR or count < wanted // 2
                good = p < CONTROL_BELOW or blind
                refuted += not blind and good
                blinds += [f.name] * blind
            else:
                good, blind = p > PASS_ABOVE or math.isnan(p), math.isnan(p)
                tests += not blind
            row.append(("" if blind else "+" if good else "!") + f"{p:.1g}" + (f" ({count})" if count < wanted else ""))
            if not good:
                wrong.append(f"{f.name}: {sampler.name} has p = {p:.2g}")
        rows.append(row)
    note = (
        f"P-values of G-tests against the exact law, {options.draws:,} draws (the others but `exact`: at most "
        "1,000; the demo model: 2,000). Exact samplers must be above 1e-6, masking below 1e-12 wherever its "
        f"distortion, KL(masking || p given L), is above {NEAR} nats. In brackets: draws, where there were fewer. -: "
        "p(L) is too small for rejection; none: all first populations of pimh died, and it says so."
    )
    header = ["fixture", "sequences", "p(L)", "distortion", *(sampler.name for sampler in tested)]
    exactly = [w for w in wrong if ": masked has" not in w]
    masking = [w for w in wrong if ": masked has" in w]
    tried = len(all_fixtures) - len(blinds)
    summary = f"{refuted} of {tried} (too nearly right, or one text, or none that ends: {', '.join(blinds)})"
    return {"name": "Exactness", "note": note, "header": header, "rows": rows}, [
        Verdict("samplers that are exact pass their G-tests", not exactly, "; ".join(exactly) or f"all {tests}"),
        Verdict("masking fails them", not masking, "; ".join(masking) or summary),
    ]


def judge_first_draws(
    all_fixtures: list[fixtures.Fixture], floors: dict[str, measure.Floor], options: argparse.Namespace
) -> Made:
    """Test the first draws of `exact` and count its attempts."""
    rows, wrong, medians = [], list[str](), []
    for f in all_fixtures:
        p, attempts = measure.measure_first_draws(f, 300, options.seed)
        medians.append(attempts)
        rows.append([f.name, ("+" if p > PASS_ABOVE else "!") + f"{p:.2g}", f"{attempts:.2f}"])
        if p <= PASS_ABOVE:
            wrong.append(f"{f.name}: p = {p:.2g}")
    median = float(np.median(medians))
    rows.append(["median", "", ("+" if median <= 1.5 else "!") + f"{median:.2f}"])
    note = (
        "First draws of 300 fresh tries, tested; attempts per draw over the first 100 of a trie (target: at most 1.5)."
    )
    return {
        "name": "Exact from the first draw",
        "note": note,
        "header": ["fixture", "p", "attempts"],
        "rows": rows,
    }, [
        Verdict(
            "exact is at the sampling floor from its first draw", not wrong,
            "; ".join(wrong) or f"G-tests of 300 first draws pass on all {len(medians)} fixtures",
        ),
        Verdict(
            "at a median of at most 1.5 attempts", median <= 1.5,
            f"{median:.2f}; of single fixtures {min(medians):.2f} to {max(medians):.2f}",
        ),
    ]  # fmt: skip


def judge_particles(
    all_fixtures: list[fixtures.Fixture], floors: dict[str, measure.Floor], options: argparse.Namespace
) -> Made:
    """Find the number of particles needed with masks alone and with the twist."""
    rows, needed, wrong = [], list[float](), list[str]()
    for f in all_fixtures:
        if len(f.exact) < 2 or f.distortion < NEAR:
            continue
        n = 500
        floor = measure.compute_floor(f, n, measure.STEPS, options.seed)
        mask, twist = measure.find_particles_needed(f, floor, n, options.seed)
        good = twist <= 16 or mask < 64
        rows.append([f.name, format_count(mask), ("+" if good else "!") + format_count(twist)])
        if mask >= 64:
            needed.append(twist)
        if not good:
            wrong.append(f"{f.name}: {format_count(twist)}")
    note = (
        "Fewest particles (of 1, 4, 16 and 64) at which one draw from each of 500 populations is at the sampling "
        "floor (total variation within four deviations of exact redraws'). Twist: a bigram model distilled from 30 "
        "masked texts, crossed with the constraint. Target: at most 16 where masks alone need 64 or more."
    )
    header = ["fixture", "masks alone", "with the twist"]
    estimate = f"at most {max(needed, default=0):.0f} on {len(needed)} such fixtures"
    return {"name": "Particles", "note": note, "header": header, "rows": rows}, [
        Verdict(
            "SMC with the n-gram twist is at the floor with at most 16 particles where masks alone need 64 or more",
            not wrong, "; ".join(wrong) or estimate,
        )
    ]  # fmt: skip


def format_count(count: float) -> str:
    """Return a number of particles as text; inf is "more than 64"."""
    return f"{count:.0f}" if math.isfinite(count) else "more than 64"


def judge_estimates(
    all_fixtures: list[fixtures.Fixture], floors: dict[str, measure.Floor], options: argparse.Namespace
) -> Made:
    """Compare the divergence that masking estimates from its weights with the true one."""
    rows, wrong, worst = [], list[str](), {True: 0.0, False: 0.0}
    for f in all_fixtures:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            estimate, truth, trusted = measure.estimate_masking(f, 4000, options.seed)
        good = not trusted or abs(estimate - truth) <= max(0.1 * truth, 0.005)
        rows.append([f.name, f"{estimate:.4f}", f"{truth:.4f}", ("+" if good else "!") + ("yes" if trusted else "no")])
        if truth > SMALL:
            worst[trusted] = max(worst[trusted], abs(estimate / truth - 1))
        if not good:
            wrong.append(f"{f.name}: {estimate:.4f}, truly {truth:.4f}")
    note = "KL(masking || p given L) in nats, from the weights of 4,000 draws, and by enumeration; target: within 10 %."
    header = ["fixture", "estimated", "true", "says it can be trusted"]
    summary = f"at most {worst[True]:.1%} off where trusted, {worst[False]:.1%} where not (truth above {SMALL} nats)"
    return {"name": "What masking says of itself", "note": note, "header": header, "rows": rows}, [
        Verdict("masking's estimate of its KL is within 10 % where it says so", not wrong, "; ".join(wrong) or summary)
    ]


def print_section(console: Console, made: dict[str, Any]) -> None:
    """Print a table and its note."""
    first, *others = made["header"]
    table = build_table(made["name"], [first], others)
    for row in made["rows"]:
        table.add_row(*(cell.replace("!", "[red]!").replace("+", "", 1) if i else cell for i, cell in enumerate(row)))
    console.print(table)
    if made["note"]:
        console.print(made["note"], markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
