"""An ExplainedAnswer as a table of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import TYPE_CHECKING

from ..rendering.readable_tokens import show_bytes

if TYPE_CHECKING:
    from .answer_steps import ExplainedAnswer, TokenStep

__all__ = [
    "HEADERS",
    "MOST_ROWS",
    "answer_rows",
    "describe_chooser",
    "format_answer",
    "format_share",
    "summarise_answer",
]

MOST_ROWS = 1_000
"""Maximum number of tokens in a table, as text and as HTML; of more, the first are shown, and their number is said."""
HEADERS = ("", "taken", "chosen by", "wanted", "allowed", "mass left")
WIDEST = 28
"""Maximum width of a token in a table of plain text."""
BY = {"model": "model", "mask": "mask", "forced": "forced", "closing": "budget"}


def describe_chooser(step: TokenStep) -> str:
    """Return who chose a token, as one word."""
    return BY[step.chosen_by]


def format_share(share: float) -> str:
    """Return a share as a percentage with two significant digits."""
    percent = 100 * share
    if percent >= 99.95 or percent == 0:
        return f"{percent:.0f} %"
    return f"{percent:.1f} %" if percent >= 1 else f"{percent:.2g} %"


def answer_rows(explanation: ExplainedAnswer) -> list[tuple[str, ...]]:
    """Return the rows of the table, under HEADERS, at most MOST_ROWS."""
    return [
        (
            str(step.number), step.text, describe_chooser(step),
            "the same" if step.wanted == step.token else show_wanted(step),
            f"{step.allowed:,}", format_share(step.mass),
        )
        for step in explanation.steps[:MOST_ROWS]
    ]  # fmt: skip


def show_wanted(step: TokenStep) -> str:
    """Return the wanted token with its probability."""
    return f"{show_bytes(step.wanted_data)} {format_share(exp(min(0.0, step.wanted_logprob)))}"


def summarise_answer(explanation: ExplainedAnswer) -> list[str]:
    """Return the summary as lines: who chose how many tokens, and where the constraint pushed hardest."""
    counts, total = explanation.counts, len(explanation.steps)
    parts = [f"{counts['model']} by the model", f"{counts['mask']} by the mask", f"{counts['forced']} forced"]
    if counts["closing"]:
        parts.append(f"{counts['closing']} by the token budget")
    lines = [f"{total} tokens: {', '.join(parts)}."]
    if total > MOST_ROWS:
        lines.append(f"The first {MOST_ROWS:,} of {total:,} tokens are shown.")
    if explanation.note:
        lines.append(f"Note: {explanation.note}.")
    hardest = explanation.hardest()
    lines.append("The constraint pushed hardest here:" if hardest else "The constraint hardly changed the answer.")
    for step in hardest:
        line = f"  token {step.number}, {step.text}: {format_share(step.mass)} of the model's probability was left"
        refusal = explanation.refusals.get(step.number)
        lines.append(line if refusal is None else f"{line}; {refusal}")
    lines.append(f"To explain it, the model was run again over {explanation.rows:,} positions.")
    return lines


def format_answer(explanation: ExplainedAnswer) -> str:
    """Return the table and the summary as text."""
    rows = [HEADERS, *answer_rows(explanation)]
    cells = [[clip(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADERS))]
    right = (0, 4, 5)
    lines = [format_row(row, widths, right) for row in cells]
    return "\n".join([*lines, "", *summarise_answer(explanation)])


def clip(cell: str) -> str:
    """Return a cell, shortened to WIDEST characters."""
    return cell if len(cell) <= WIDEST else cell[: WIDEST - 1] + "…"


def format_row(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    """Return a row with aligned cells."""
    cells = (cell.rjust(width) if n in right else cell.ljust(width) for n, (cell, width) in enumerate(zip(row, widths)))
    return "  ".join(cells).rstrip()
