"""What `constrain generate` says about the texts it wrote: how each ended, and with --stats every figure, explained."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from ..sampling.sampler_table import SAMPLERS
from . import display

if TYPE_CHECKING:
    from ..generation.generation_result import Generation

__all__ = ["print_ending", "print_statistics", "print_total"]

ENDINGS = {
    "budget": "complete, but shortened to fit --max-tokens", "length": "cut off, not complete",
    "stop": "complete before a stop string",
}  # fmt: skip
"""What a finish_reason means, for those that do not speak for themselves."""
COUNTED = {
    "attempts": "texts that were begun",
    "acceptance": "share of the proposed texts that were accepted",
    "populations": "populations that were run",
    "value_gap": "nats by which states that no text reached could raise log Z",
    "checks_per_token": "calls of the checker for each token",
    "model_calls": "forward passes of the model",
}
"""Statistics of a sampler other than masked."""
SHARED = ("speed", "mask", "compiled")
"""Figures that texts of a batch have in common."""
Row = tuple[str, str, str]


def print_ending(generation: Generation[Any]) -> None:
    """Print to stderr how a text ended, its length and how long it took."""
    stats, reason = generation.stats, generation.finish_reason
    meaning = f" ({ENDINGS[reason]})" if reason in ENDINGS else ""
    seconds = f" · {stats.total_us / 1e6:.2f} s" if stats.total_us else ""
    count = f"{stats.tokens} token{'s' * (stats.tokens != 1)}"
    display.print_note((f"finish_reason {reason}{meaning} · {count}{seconds}", "dim"))
    print_choice([generation])


def print_total(generations: list[Generation[Any]], seconds: float) -> None:
    """Print to stderr how many texts ended for each reason, their tokens, and the time of all."""
    reasons = Counter(one.finish_reason for one in generations)
    counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    tokens = sum(one.stats.tokens for one in generations)
    plural = "s" * (len(generations) != 1)
    display.print_note(
        (f"{len(generations)} text{plural}: finish_reason {counts} · {tokens:,} tokens · {seconds:.2f} s", "dim")
    )
    print_choice(generations)


def print_choice(generations: list[Generation[Any]]) -> None:
    """Print to stderr which samplers `--sampler auto` has chosen, and why."""
    choices = [f"sampler {one.stats.sampler}: {one.stats.reason}" for one in generations if one.stats.reason]
    for choice in dict.fromkeys(choices):
        display.print_note((choice, "dim"))


def print_statistics(generations: list[Generation[Any]]) -> None:
    """Print to stderr the figures of each text and of all together, each with its meaning."""
    if len(generations) == 1:
        print_rows("the text", list_figures(generations[0]))
    else:
        print_figures(generations)
    rows = list_sampling_figures(generations)
    if rows:
        print_rows("all texts together" if len(generations) > 1 else "sampling", rows)


def print_figures(generations: list[Generation[Any]]) -> None:
    """Print to stderr a line of figures for each text, and below what they mean."""
    listed = [[row for row in list_figures(one) if row[0] not in SHARED] for one in generations]
    figures = [{name: (value, meaning) for name, value, meaning in rows} for rows in listed]
    meanings = {name: meaning for one in figures for name, (_, meaning) in one.items()}
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("text", *meanings):
        grid.add_column(name, justify="right", no_wrap=True)
    for number, one in enumerate(figures, 1):
        grid.add_row(str(number), *(one[name][0] if name in one else "" for name in meanings))
    display.message_console().print(grid)
    shared = [row for row in list_figures(generations[-1]) if row[0] in SHARED]
    print_rows("their meaning", [*((name, "", meaning) for name, meaning in meanings.items()), *shared])


def print_rows(title: str, rows: list[Row]) -> None:
    """Print names, values and meanings to stderr, under a title; on a terminal, meanings wrap by words."""
    display.print_note((title, "bold"))
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(style="dim")
    for row in rows:
        grid.add_row(*(Text(display.replace_controls(field)) for field in row))
    display.message_console().print(grid)


def list_figures(generation: Generation[Any]) -> list[Row]:
    """Return the figures of one text."""
    stats = generation.stats
    rows = [("tokens", f"{stats.tokens}", "with the end token")]
    if stats.forced_tokens:
        rows.append(("forced", f"{stats.forced_tokens}", "of them without a choice, hence without a forward pass"))
    if stats.closing_tokens:
        rows.append(("closing", f"{stats.closing_tokens}", "of them written to end the text within --max-tokens"))
    if stats.model_calls:
        rows.append(("passes", f"{stats.model_calls}", "forward passes of the model"))
    if stats.total_us:
        rows.append(("speed", f"{stats.tokens / stats.total_us * 1e6:.0f}/s", "tokens per second"))
    if stats.mask_us:
        rows.append(("mask", f"{stats.mask_us:.1f} µs", "mean time to find the tokens that are allowed"))
    if stats.compile_us:
        rows.append(("compiled", f"{stats.compile_us / 1e3:.1f} ms", "time to make the constraint ready"))
    rows.append(("logprob", f"{generation.logprob:.2f}", "natural logarithm of its probability under the model"))
    meaning = "natural logarithm of how much likelier the text is for the model than for the sampler"
    return [*rows, ("weight", f"{generation.log_weight:.2f}", meaning)]


def list_sampling_figures(generations: list[Generation[Any]]) -> list[Row]:
    """Return which sampler was chosen and why, and the figures of all texts together."""
    stats = generations[0].stats
    rows = [("sampler", stats.sampler, stats.reason)] if stats.reason else []
    rows += [(name, f"{stats.counts[name]:.4g}", COUNTED[name]) for name in COUNTED if name in stats.counts]
    weights = stats.weights
    if len(generations) < 2 or not weights:
        return rows
    rows.append(
        (
            "log Z",
            f"{weights['log_z']:.2f}",
            "natural logarithm of the probability that the model alone is valid",
        )
    )
    if SAMPLERS[stats.sampler].equal_weights:
        return [*rows, ("law", "exact", "the texts follow the model's own distribution among valid ones")]
    distance = f"{weights['kl_to_target']:.2g}"
    rows.append(("distance", distance, "from the model's own distribution among valid texts, in nats (0: equal)"))
    rows.append(("worth", f"{weights['ess']:.1f}", "texts drawn from that distribution would say as much as these"))
    rows.append(("texts", f"{weights['distinct']:.0f}", "different ones"))
    return [*rows, ("reliable", *judge_weights(weights))]


def judge_weights(weights: dict[str, float]) -> tuple[str, str]:
    """Return whether the statistics of the weights are reliable, and why."""
    if weights["trusted"]:
        return "yes", "enough texts for these figures"
    if not weights["steady"]:
        return "no", "draw more texts"
    gap = f"exp({weights['gap']:.2g})" if math.isfinite(weights["gap"]) else "any number"
    return "no", f"texts that were not drawn could multiply the probability by {gap}"
