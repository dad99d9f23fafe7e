"""Which samplers draw from p given L, and after how much?

    python -m bench.faithful [--draws 4000] [--repeats 4] [--markov-only] [--out bench/results/faithful.html]

Every fixture's law is known exactly. Printed and written: G-tests of the samplers that say they are exact, with masking
as the control that must fail; particles needed with and without a twist; the divergence that masking reports of itself
beside the truth; and curves of divergence. Minutes on two cores; exit status 1 if a test that must pass fails.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from constrain.errors import UnsatisfiableError

from ..report import commit, machine
from . import fixtures, measure
from .report import page
from .samplers import CONTROL, SAMPLERS

ALARM, SURELY = 1e-6, 1e-12
"""A G-test below the first fails; the control must be below the second."""
NEAR = 0.02
"""Nats of distortion below which masking is too nearly right to be told apart by a few thousand draws."""
CURVES = ("traps, trigram", "pieces", "demo: an integer", "demo: a city")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.faithful", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=4000, help="of each G-test; 2,000 with the demo model")
    parser.add_argument("--repeats", type=int, default=4, help="streams of each curve")
    parser.add_argument("--markov-only", action="store_true", help="without the demo model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench/results/faithful.html"))
    chosen = parser.parse_args()
    begin, console = perf_counter(), Console()
    all_of_them = fixtures.markov() + ([] if chosen.markov_only else fixtures.demo())
    floors = {f.name: measure.floor_of(f, min(chosen.draws, 2000), measure.STEPS, chosen.seed) for f in all_of_them}
    tables, failures = [], list[str]()
    for make in (exactness, firsts, particles, estimates):
        table, failed = make(all_of_them, floors, chosen)
        tables.append(table)
        failures += failed
        show(console, table)
    curves = []
    for f in all_of_them:
        if f.name in CURVES:
            made = [
                measure.curve(f, sampler, chosen.repeats, chosen.seed, measure.STEPS)
                for sampler in SAMPLERS
                if sampler.line
            ]
            curves.append((f, floors[f.name], made))
            console.print(f"curves of {f.name}: {perf_counter() - begin:.0f} s since the start")
    intro = (
        f"{machine()}, commit {commit()}, seed {chosen.seed}. Fixtures: Markov models under regular and context-free "
        "constraints by brute force, the embedded model under small schemas by walking all prefixes."
    )
    page(chosen.out, {"title": "Which samplers draw from p given L?", "intro": intro, "tables": tables}, curves)
    console.print(f"{chosen.out}, {perf_counter() - begin:.0f} s; {len(failures)} failures", *failures, sep="\n  ")
    sys.exit(1 if failures else 0)


Made = tuple[dict[str, Any], list[str]]


def exactness(
    all_of_them: list[fixtures.Fixture], floors: dict[str, measure.Floor], chosen: argparse.Namespace
) -> Made:
    """G-tests."""
    tested = [CONTROL, *(sampler for sampler in SAMPLERS if sampler.exact)]
    rows, failures = [], []
    for f in all_of_them:
        n = min(chosen.draws, 2000) if f.real else chosen.draws
        row = [f.name, str(len(f.exact)), f"{f.z:.2g}", f"{f.distortion:.3f}"]
        for sampler in tested:
            wanted = n if sampler.name == "exact" else min(n, 1000)
            if sampler.name == "rejection" and f.z < 0.03:
                row.append("-")
                continue
            try:
                p, count = measure.g_tested(f, sampler.open(f, np.random.default_rng([chosen.seed, 5])), wanted)
            except UnsatisfiableError:
                row.append("none")
                continue
            if sampler is CONTROL:
                blind = len(f.exact) < 2 or f.distortion < NEAR or count < wanted // 2
                good = p < SURELY or blind
            else:
                good, blind = p > ALARM or math.isnan(p), math.isnan(p)
            row.append(("" if blind else "+" if good else "!") + f"{p:.1g}" + (f" ({count})" if count < wanted else ""))
            if not good:
                failures.append(f"{f.name}: {sampler.name} has p = {p:.2g}")
        rows.append(row)
    note = (
        f"P-values of G-tests against the exact law, {chosen.draws:,} draws (the others but `exact`: at most "
        "1,000; the demo model: 2,000). Exact samplers must be above 1e-6, masking below 1e-12 wherever its "
        f"distortion, KL(masking || p given L), is above {NEAR} nats. In brackets: draws, where there were fewer. -: "
        "p(L) is too small for rejection; none: all first populations of pimh died, and it says so."
    )
    header = ["fixture", "sequences", "p(L)", "distortion", *(sampler.name for sampler in tested)]
    return {"name": "Exactness", "note": note, "header": header, "rows": rows}, failures


def firsts(all_of_them: list[fixtures.Fixture], floors: dict[str, measure.Floor], chosen: argparse.Namespace) -> Made:
    """The first draw of `exact`."""
    rows, failures, medians = [], [], []
    for f in all_of_them:
        p, attempts = measure.first_draws(f, 300, chosen.seed)
        medians.append(attempts)
        rows.append([f.name, ("+" if p > ALARM else "!") + f"{p:.2g}", f"{attempts:.2f}"])
        if p <= ALARM:
            failures.append(f"{f.name}: first draws of exact have p = {p:.2g}")
    median = float(np.median(medians))
    rows.append(["median", "", ("+" if median <= 1.5 else "!") + f"{median:.2f}"])
    if median > 1.5:
        failures.append(f"exact needs {median:.2f} attempts per draw")
    note = (
        "First draws of 300 fresh tries, tested; attempts per draw over the first 100 of a trie (target: at most 1.5)."
    )
    return {
        "name": "Exact from the first draw",
        "note": note,
        "header": ["fixture", "p", "attempts"],
        "rows": rows,
    }, failures


def particles(
    all_of_them: list[fixtures.Fixture], floors: dict[str, measure.Floor], chosen: argparse.Namespace
) -> Made:
    """Particles needed."""
    rows, failures = [], []
    for f in all_of_them:
        if len(f.exact) < 2 or f.distortion < NEAR:
            continue
        n = 500
        floor = measure.floor_of(f, n, measure.STEPS, chosen.seed)
        mask, twist = measure.particles(f, floor, n, chosen.seed)
        good = twist <= 16 or mask < 64
        rows.append([f.name, said(mask), ("+" if good else "!") + said(twist)])
        if not good:
            failures.append(f"{f.name}: {twist} particles with a twist, {mask} without")
    note = (
        "Fewest particles (of 1, 4, 16 and 64) at which one draw from each of 500 populations is at the sampling "
        "floor (total variation within four deviations of exact redraws'). Twist: a bigram model distilled from 30 "
        "masked texts, crossed with the constraint. Target: at most 16 where masks alone need 64 or more."
    )
    header = ["fixture", "masks alone", "with the twist"]
    return {"name": "Particles", "note": note, "header": header, "rows": rows}, failures


def said(count: float) -> str:
    return f"{count:.0f}" if math.isfinite(count) else "more than 64"


def estimates(
    all_of_them: list[fixtures.Fixture], floors: dict[str, measure.Floor], chosen: argparse.Namespace
) -> Made:
    """Masking's own estimate of how far it is off."""
    rows, failures = [], []
    for f in all_of_them:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            told, truth, trusted = measure.masking_estimate(f, 4000, chosen.seed)
        good = not trusted or abs(told - truth) <= max(0.1 * truth, 0.005)
        rows.append([f.name, f"{told:.4f}", f"{truth:.4f}", ("+" if good else "!") + ("yes" if trusted else "no")])
        if not good:
            failures.append(f"{f.name}: masking says {told:.4f} nats, it is {truth:.4f}")
    note = "KL(masking || p given L) in nats, from the weights of 4,000 draws, and by enumeration; target: within 10 %."
    header = ["fixture", "estimated", "true", "says it can be trusted"]
    return {"name": "What masking says of itself", "note": note, "header": header, "rows": rows}, failures


def show(console: Console, made: dict[str, Any]) -> None:
    """On the terminal."""
    table = Table(title=made["name"])
    for cell in made["header"]:
        table.add_column(cell, justify="left" if cell == "fixture" else "right")
    for row in made["rows"]:
        table.add_row(*(cell.replace("!", "[red]!").replace("+", "", 1) if i else cell for i, cell in enumerate(row)))
    console.print(table)


if __name__ == "__main__":
    main()
