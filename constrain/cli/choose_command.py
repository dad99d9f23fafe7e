"""`constrain choose`: the probabilities that a model gives to some options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ..generation.option_probabilities import choose
from . import display
from .generate_command import load_with_note
from .kernel_notice import load_kernels
from .model_options import ModelOption, PromptOption, read_prompt
from .source_options import JsonFlag

__all__ = ["choose_option"]


def choose_option(
    options: Annotated[
        list[str],
        typer.Argument(
            metavar="OPTIONS...",
            help='The texts to choose from, with the space that an answer begins with: " yes" " no".',
            show_default=False,
        ),
    ],
    prompt: PromptOption = None,
    model: ModelOption = "demo",
    ends: Annotated[
        Literal["token", "prefix"],
        typer.Option(help="token: the answer is an option. prefix: the answer begins with one."),
    ] = "token",
    tolerance: Annotated[
        float, typer.Option(min=0, help="Largest share of the probability that is not summed up.")
    ] = 1e-3,
    max_rows: Annotated[int, typer.Option(min=1, help="Stop after so many positions of the model.")] = 4096,
    as_json: JsonFlag = False,
) -> None:
    """Print the probabilities of the options as answers to the prompt, the likeliest first.

    They are relative to each other, and summed over all tokenisations of each option.
    """
    text = read_prompt(prompt)
    load_kernels()
    loaded = load_with_note(model)
    with display.show_progress("comparing …"):
        found = choose(loaded, text, options, ends=ends, tolerance=tolerance, max_rows=max_rows)
    if as_json:
        display.as_json({
            "best": found.best, "is_certain": found.is_certain, "probabilities": dict(found.probabilities),
            "bounds": dict(found.bounds), "log_total": found.log_total, "unresolved": found.unresolved,
            "spellings": dict(found.spellings), "model_calls": found.model_calls, "rows": found.rows,
        })  # fmt: skip
        return
    ordered = sorted(found.probabilities, key=found.probabilities.__getitem__, reverse=True)
    rows = [
        (repr(option), f"{found.probabilities[option]:.6f}", *(f"{bound:.6f}" for bound in found.bounds[option]))
        for option in ordered
    ]
    display.print_table(("option", "probability", "at least", "at most"), rows, styles=("bold",))
    summed = sum(found.spellings.values())
    certain = "" if found.is_certain else " · the first is not proved to be the likeliest: lower --tolerance"
    display.print_note((
        f"log-probability of any option {found.log_total:.3f} · {summed:,} tokenisations · "
        f"{found.rows:,} positions in {found.model_calls:,} calls of the model{certain}", "dim",
    ))  # fmt: skip
