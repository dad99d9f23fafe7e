"""Comparisons as text, as HTML for notebooks, and as pages."""

from __future__ import annotations

from math import isnan

from ..rendering.html_pages import build_page, build_table, draw_bars
from ..rendering.readable_tokens import escape_html, show_characters
from .comparison_results import ComparedLanguages, ComparedSamplers, Inclusion, SamplerRow

__all__ = [
    "SAMPLER_HEADERS",
    "build_language_page",
    "build_sampler_page",
    "describe_languages",
    "describe_samplers",
    "draw_languages",
    "draw_samplers",
    "sampler_cells",
    "share_rows",
]

MOST_TEXTS = 12
"""Number of answers whose shares are shown."""
LONGEST = 200
"""Maximum number of characters of an answer or example that are shown."""
SAMPLER_HEADERS = ("sampler", "draws", "texts", "cut off", "off by", "worth", "calls", "seconds")
MONO = "font:13px/1.6 ui-monospace,'DejaVu Sans Mono',monospace"
RELATIONS = {
    "equal": "{0} and {1} accept exactly the same.",
    "narrower": "{0} is narrower: {1} accepts all that {0} accepts, and more.",
    "wider": "{0} is wider: it accepts all that {1} accepts, and more.",
    "overlapping": "Each accepts something that the other refuses.",
    "unknown": "Not everything could be decided.",
}


# ---- languages ---------------------------------------------------------------------------------------------------


def describe_languages(comparison: ComparedLanguages) -> list[str]:
    """Return what was found about two languages, as lines."""
    first, second = (show_characters(name) for name in comparison.names)
    lines = [RELATIONS[comparison.relation].format(first, second)]
    lines.append(describe_inclusion(first, second, comparison.forward))
    lines.append(describe_inclusion(second, first, comparison.backward))
    return lines


def describe_inclusion(inner: str, outer: str, inclusion: Inclusion) -> str:
    """Return what was found about one direction, and how."""
    how = {
        "decided": "decided", "empty": f"{inner} accepts nothing",
        "enumerated": f"all {inclusion.checked:,} texts were checked",
        "sampled": f"{inclusion.checked:,} random texts were checked",
    }[inclusion.method]  # fmt: skip
    because = f"; it could not be decided: {inclusion.reason}" if inclusion.reason else ""
    if inclusion.included:
        return f"{outer} accepts all of {inner} ({how}{because})"
    if inclusion.included is None:
        return f"no text of {inner} was found that {outer} refuses, which proves nothing ({how}{because})"
    example = show_example(inclusion.example or "")
    return f"{inner} accepts, and {outer} refuses: {example} ({how}{because})"


def show_example(text: str) -> str:
    """Return an example, or that it is the empty text."""
    shown = show_characters(text)
    if not shown:
        return "the empty text"
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}… ({len(text):,} characters)"


def draw_languages(comparison: ComparedLanguages) -> str:
    """Return a comparison of languages as HTML."""
    lines = "".join(f"<p>{escape_html(line)}</p>" for line in describe_languages(comparison))
    return f'<div style="{MONO}">{lines}</div>'


def build_language_page(comparison: ComparedLanguages) -> str:
    """Return a page about two languages."""
    title = f"{comparison.names[0]} and {comparison.names[1]}"
    return build_page(title, [draw_languages(comparison)])


# ---- samplers ----------------------------------------------------------------------------------------------------


def sampler_cells(row: SamplerRow) -> tuple[str, ...]:
    """Return the cells of a sampler under SAMPLER_HEADERS."""
    if isnan(row.distortion):
        off = "not known"
    else:
        off = "nothing" if row.target == "exact" else f"{row.distortion:.2f} nats"
    return (
        row.sampler, f"{row.draws:,}", f"{row.texts:,}", f"{row.unfinished:,}", off, f"{row.ess:.1f}",
        f"{row.model_calls:,}", f"{row.seconds:.2f}",
    )  # fmt: skip


def describe_samplers(comparison: ComparedSamplers) -> list[str]:
    """Return how far the first two samplers are apart, and what the columns mean, as lines."""
    first, second = comparison.rows[:2]
    line = f"{first.sampler} and {second.sampler}: {100 * comparison.distance:.1f} % of their answers differ"
    if not isnan(comparison.chance):
        line += f"; {100 * comparison.chance:.1f} % would be expected of two samples of one distribution"
    lines = [f"{line}."]
    weighted = [row.sampler for row in comparison.rows if row.by_weight]
    if weighted:
        lines.append(f"Answers of {', '.join(weighted)} are counted by their weights.")
    lines.append(
        "texts: how many different ones. cut off: draws that did not end. off by: how far the draws are from the "
        "model's own distribution under the constraint (KL divergence). worth: how many faithful draws these are "
        "worth. calls: of the model."
    )
    return lines


def share_rows(comparison: ComparedSamplers) -> list[tuple[str, list[float]]]:
    """Return the likeliest texts with the share of each sampler, the largest first, at most MOST_TEXTS."""
    largest: dict[str, float] = {}
    for row in comparison.rows:
        for text, share in row.shares.items():
            largest[text] = max(share, largest.get(text, 0.0))
    texts = sorted(largest, key=lambda text: (-largest[text], text))[:MOST_TEXTS]
    return [
        (show_characters(text[:LONGEST]) or "(empty)", [row.shares.get(text, 0.0) for row in comparison.rows])
        for text in texts
    ]


def draw_samplers(comparison: ComparedSamplers) -> str:
    """Return a comparison of samplers as HTML: the shares of the likeliest answers as bars, and a table."""
    rows = share_rows(comparison)
    names = [row.sampler for row in comparison.rows]
    every = len({text for row in comparison.rows for text in row.shares})
    more = f"<p>The {len(rows)} likeliest of {every:,} answers are shown.</p>" if every > len(rows) else ""
    bars = draw_bars(rows, names, "The likeliest answers and their shares for each sampler; a table follows")
    cells = [[escape_html(cell) for cell in sampler_cells(row)] for row in comparison.rows]
    table = build_table(SAMPLER_HEADERS, cells, numeric=range(1, len(SAMPLER_HEADERS)))
    shares = build_table(
        ["answer", *map(escape_html, names)],
        [[escape_html(text), *(f"{100 * share:.1f} %" for share in values)] for text, values in rows],
        numeric=range(1, len(names) + 1),
    )
    lines = "".join(f"<p>{escape_html(line)}</p>" for line in describe_samplers(comparison))
    return f'<div style="{MONO}">{bars}{more}{table}{shares}{lines}</div>'


def build_sampler_page(comparison: ComparedSamplers) -> str:
    """Return a page about samplers."""
    return build_page("Samplers: " + ", ".join(row.sampler for row in comparison.rows), [draw_samplers(comparison)])
