"""How do ASAp and exact sampling converge with a transformer that was trained on GAD's grammars?

    python -m bench faithful.trained [--draws 2000] [--steps 1200] [--grammars "SLIA, trained"]

Park et al. 2024 (grammar-aligned decoding), on the shapes of its three kinds of grammars (`shapes/gad_grammars`), with
a model of the transformers library for each, trained here in about a minute on sentences with noise. Nesting is
bounded, so the exact distribution is known. By number of draws: KL(last `--window` draws || p given L) in nats, true
and as the paper estimates it (likelihoods renormalised over the texts that were drawn), for masking, ASAp, exact
sampling and AWRS-SMC; the floor is that of as many exact draws. `learnt` is KL(p given L || what ASAp draws from then
on). The exit code is 1 if exact sampling is not at the floor, or ASAp does not end below masking.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from time import perf_counter
from typing import Any

from rich.console import Console

import constrain
from constrain.base.errors import ConstrainError

from ..counted_models import CachedModel
from ..options import build_parser
from ..record import write_result
from ..tables import build_table, print_table
from .fixtures import build_fixture
from .shapes.gad import WINDOW, Windows, measure_windows
from .shapes.gad_grammars import TRAINED, TrainedGrammar
from .shapes.trained_transformers import Training, train_transformer
from .verdicts import Verdict, format_verdict


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return 1 if a target is missed, else 0."""
    parser = build_parser("faithful.trained", __doc__, "seed", "results", seed=1)
    parser.add_argument("--draws", type=int, default=2000, help="draws of each method")
    parser.add_argument("--window", type=int, default=WINDOW, help="draws of a window")
    parser.add_argument("--steps", type=int, default=1200, help="training steps")
    parser.add_argument("--sentences", type=int, default=4000, help="sentences to train on")
    parser.add_argument(
        "--grammars", nargs="*", default=[one.name for one in TRAINED], help="names of grammars (default: all)"
    )
    options = parser.parse_args(arguments)
    console, begin, rows = Console(), perf_counter(), list[dict[str, Any]]()
    for grammar in TRAINED:
        if grammar.name in options.grammars:
            rows.append(measure_grammar(grammar, options, console))
            console.print(f"{grammar.name}: {perf_counter() - begin:.0f} s since the start", highlight=False)
    verdicts = judge_rows(rows)
    for verdict in verdicts:
        console.print(format_verdict(verdict), highlight=False)
    write_result(options, {"rows": rows, "verdicts": [verdict._asdict() for verdict in verdicts]})
    return 0 if all(verdict.met for verdict in verdicts) else 1


def measure_grammar(grammar: TrainedGrammar, options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Train a model on one grammar, and measure all methods with it."""
    loaded, training = train_transformer(grammar, seed=options.seed, sentences=options.sentences, steps=options.steps)
    console.print(f"{grammar.name}: {describe_training(training)}", highlight=False)
    constraint = constrain.compile(loaded.vocabulary, grammar=constrain.gbnf(grammar.to_gbnf()))
    lm = CachedModel(loaded.on([loaded.vocabulary.eos_ids[0]]))
    fixture = build_fixture(grammar.name, lm, constraint, grammar.most, real=True)
    console.print(
        f"{len(fixture.exact):,} token sequences, p(L) {fixture.z:.3g}, KL(masking || p given L) "
        f"{fixture.distortion:.3f} nats",
        highlight=False,
    )
    windows = measure_windows(fixture, options.draws, options.seed, window=options.window)
    print_table(build_windows(grammar.name, windows), console)
    learnt = ", ".join(f"{count}: {kl:.3f}" for count, kl in windows.learnt)
    console.print(f"learnt by ASAp, KL by number of draws: {learnt}", highlight=False, soft_wrap=True)
    return {
        "name": grammar.name, "training": asdict(training), "sequences": len(fixture.exact), "z": fixture.z,
        "distortion": fixture.distortion, **asdict(windows),
    }  # fmt: skip


def describe_training(training: Training) -> str:
    """Return the figures of a training in one sentence."""
    return (
        f"{training.parameters:,} parameters, {training.steps} steps in {training.seconds:.0f} s ({training.cpu:.0f} s "
        f"of CPU), loss {training.first_loss:.3f} -> {training.last_loss:.3f} nats a token"
    )


def build_windows(name: str, windows: Windows) -> Any:
    """Return the table of KL by number of draws, true and (in brackets) as GAD estimates it."""
    shown = list(windows.true)
    table = build_table(f"{name}: KL of the last window, nats; floor {windows.floor:.3f}", ["draws"], shown)
    for i, at in enumerate(windows.at):
        cells = [f"{windows.true[one][i]:.3f} ({windows.estimated[one][i]:.3f})" for one in shown]
        table.add_row(f"{at:,}", *cells)
    return table


def judge_rows(rows: list[dict[str, Any]]) -> list[Verdict]:
    """Judge whether exact sampling is at the floor in every window, and ASAp ends below masking."""
    high = [row["name"] for row in rows if max(row["true"]["exact"]) > 3 * row["floor"] + 0.02]
    above = [
        row["name"] for row in rows if row["true"]["ASAp"][-1] > max(row["true"]["masked"][-1], 3 * row["floor"] + 0.02)
    ]
    return [
        Verdict("exact is at the floor in every window", not high, ", ".join(high) or "on all grammars"),
        Verdict("ASAp ends below masking", not above, ", ".join(above) or "on all grammars"),
    ]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ConstrainError as error:
        sys.exit(str(error))
