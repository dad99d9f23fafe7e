"""What `constrain generate` says about the texts it wrote: how each ended, and with --stats every figure, explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from . import display

if TYPE_CHECKING:
    from ..generation.generation_result import Generation

__all__ = ["print_ending", "print_statistics"]

ENDINGS = {
    "complete": "complete", "budget": "complete, shortened to fit --max-tokens", "length": "cut off, not complete",
    "stop": "complete before a stop string",
}  # fmt: skip
COUNTED = {
    "attempts": "texts that were begun",
    "acceptance": "share of the proposed texts that were accepted",
    "populations": "populations that were run",
    "checks_per_token": "calls of the checker for each token",
    "model_calls": "forward passes of the model",
}
"""Statistics of a sampler other than masked."""
Row = tuple[str, str, str]


def print_ending(generation: Generation[Any]) -> None:
    """Print to stderr how a text ended, its length and how long it took."""
    stats = generation.stats
    seconds = f" · {stats.total_us / 1e6:.2f} s" if stats.total_us else ""
    count = f"{stats.tokens} token{'s' * (stats.tokens != 1)}"
    display.print_note((f"{ENDINGS[generation.finish_reason]} · {count}{seconds}", "dim"))


def print_statistics(generations: list[Generation[Any]]) -> None:
    """Print to stderr the figures of each text and of all together, each with its meaning."""
    for number, generation in enumerate(generations, 1):
        print_rows(f"text {number}" if len(generations) > 1 else "the text", list_figures(generation))
    rows = list_sampling_figures(generations)
    if rows:
        print_rows("sampling", rows)


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
    rows.append(("logprob", f"{generation.logprob:.2f}", "log-probability of the text under the model, in nats"))
    meaning = "log of how much likelier the model makes the text than the sampler does"
    return [*rows, ("log weight", f"{generation.log_weight:.2f}", meaning)]


def list_sampling_figures(generations: list[Generation[Any]]) -> list[Row]:
    """Return which sampler was chosen and why, and the figures of all texts together."""
    from ..sampling.sampler_table import SAMPLERS

    stats = generations[0].stats
    rows = [("sampler", stats.sampler, stats.reason)] if stats.reason else []
    rows += [(name, f"{stats.counts[name]:.4g}", COUNTED[name]) for name in COUNTED if name in stats.counts]
    weights = stats.weights
    if len(generations) < 2 or not weights:
        return rows
    rows.append(("log Z", f"{weights['log_z']:.2f}", "log of the probability that the model alone would be valid"))
    if SAMPLERS[stats.sampler].equal_weights:
        return [*rows, ("law", "exact", "the texts follow the model's own distribution among valid ones")]
    distance = f"{weights['kl_to_target']:.2g}"
    rows.append(("distance", distance, "nats from the model's own distribution among valid texts (0: none)"))
    rows.append(("worth", f"{weights['ess']:.1f}", "texts from that distribution would say as much"))
    verdict = ("yes", "enough texts for these figures") if weights["trusted"] else ("no", "draw more texts")
    return [*rows, ("reliable", *verdict)]
