"""An ExplainedAnswer as HTML: the text coloured by who chose its tokens, for notebooks, and a page with plots.

All text is escaped (`readable_tokens`). Colours are translucent and lines have the colour of the text around them, so
that the same output is readable on a light and on a dark page, in notebooks of any theme. Who chose a token is shown by
its underline too, and in a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..rendering.html_pages import build_page, build_table
from ..rendering.readable_tokens import escape_html, show_bytes
from .answer_plots import draw_mass_plot, draw_weight_plot
from .answer_text import HEADERS, MOST_ROWS, answer_rows, describe_chooser, format_share, summarise_answer

if TYPE_CHECKING:
    from .answer_steps import ExplainedAnswer, TokenStep

__all__ = ["build_answer_page", "draw_plain_text", "draw_token_line"]

LOOKS = {
    "model": "background:rgba(60,140,90,.22)",
    "mask": "background:rgba(220,120,20,.38);border-bottom:2px solid rgba(220,120,20,.95)",
    "forced": "background:rgba(128,128,128,.20);border-bottom:2px dotted rgba(128,128,128,.9)",
    "closing": "background:rgba(150,90,220,.28);border-bottom:3px double rgba(150,90,220,.95)",
}
MEANINGS = {
    "model": "the model's own choice",
    "mask": "the model wanted another token, which the constraint refuses",
    "forced": "the constraint left nothing else",
    "closing": "written to end the text within the token budget",
}
BLOCK = "font:14px/1.9 ui-monospace,'DejaVu Sans Mono',monospace;white-space:pre-wrap;overflow-wrap:anywhere"
LEGEND = "font:12px/1.6 system-ui,sans-serif;margin-top:.4em;opacity:.85"
LONGEST_TEXT = 20_000
"""Maximum number of characters of a text whose tokens are not known."""


def draw_token_line(explanation: ExplainedAnswer) -> str:
    """Return the text coloured by who chose its tokens, with a legend, as HTML for a notebook.

    At most MOST_ROWS tokens are shown, and the output says so.
    """
    shown = "".join(draw_token(step) for step in explanation.steps[:MOST_ROWS] if not step.is_end)
    left = len(explanation.steps) - MOST_ROWS
    rest = f" … and {left:,} more tokens" if left > 0 else ""
    note = f"<br>{escape_html(explanation.note)}" if explanation.note else ""
    below = f'<div style="{LEGEND}">{draw_legend(explanation)}{note}</div>'
    return f'<div><div style="{BLOCK}">{shown}{rest}</div>{below}</div>'


def draw_token(step: TokenStep) -> str:
    """Return one token as HTML; line breaks are shown and kept."""
    text = "↵\n".join(escape_html(line) for line in step.data.decode("utf-8", "backslashreplace").split("\n"))
    title = f"{describe_chooser(step)}: {format_share(step.mass)} of the model's probability was left"
    if step.wanted != step.token:
        title += f"; the model wanted {show_bytes(step.wanted_data)}"
    return (
        f'<span style="{LOOKS[step.chosen_by]};border-radius:3px" title="{escape_html(title)}"><bdi>{text}</bdi></span>'
    )


def draw_legend(explanation: ExplainedAnswer) -> str:
    """Return the legend of the kinds of choices that occur, with their numbers."""
    parts = [
        f'<span style="{LOOKS[name]};border-radius:3px;padding:0 .4em">{count}</span> {MEANINGS[name]}'
        for name, count in explanation.counts.items()
        if count
    ]
    return " &nbsp; ".join(parts)


def draw_plain_text(text: str, note: str) -> str:
    """Return a text as HTML for a notebook, at most LONGEST_TEXT characters of it, with a note below."""
    lines = "\n".join(escape_html(line) for line in text[:LONGEST_TEXT].split("\n"))
    left = len(text) - LONGEST_TEXT
    rest = f" … and {left:,} more characters" if left > 0 else ""
    return (
        f'<div><div style="{BLOCK}"><bdi>{lines}</bdi>{rest}</div><div style="{LEGEND}">{escape_html(note)}</div></div>'
    )


def build_answer_page(explanation: ExplainedAnswer) -> str:
    """Return a self-contained page: the coloured text, plots, the hardest steps, and the table of all tokens."""
    rows = [[escape_html(cell) for cell in row] for row in answer_rows(explanation)]
    count = len(explanation.steps)
    limit = f" The first {MOST_ROWS:,} of {count:,} tokens are shown." if count > MOST_ROWS else ""
    parts = [
        draw_token_line(explanation),
        "<h2>How much of the model's probability the constraint left</h2>",
        "<p>A tall bar: the model would have kept to the constraint anyway. A short bar: it wanted to write something "
        f"that the constraint refuses.{limit}</p>",
        draw_mass_plot(explanation.steps[:MOST_ROWS]),
        "<h2>The product of these shares so far</h2>",
        "<p>What the last point shows is the weight of the answer: how much of the model's probability masking "
        "redistributed on the way. Downward steps are where the constraint pushed.</p>",
        draw_weight_plot(explanation.steps[:MOST_ROWS]),
        "<h2>In words</h2>",
        f"<pre>{escape_lines(summarise_answer(explanation))}</pre>",
        "<h2>All tokens</h2>",
        build_table([escape_html(header) or "#" for header in HEADERS], rows, numeric=(0, 4, 5)),
    ]
    return build_page("How an answer came about", parts)


def escape_lines(lines: list[str]) -> str:
    """Return lines for a preformatted block."""
    return "\n".join(escape_html(line) for line in lines)
