"""Self-contained HTML pages and tables of reports: no scripts, nothing fetched, light and dark by the system colours.

Arguments named `parts` and `cells` are HTML already: whoever makes them has escaped their text (`readable_tokens`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .readable_tokens import escape_html

__all__ = ["build_page", "build_table", "draw_bars", "draw_frame"]

STYLE = """
:root { color-scheme: light dark }
body { background: Canvas; color: CanvasText; font: 15px/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.05rem; margin: 1.8rem 0 .3rem } p { margin: .3rem 0 }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0 }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace }
th, td { vertical-align: top }
td { overflow-wrap: anywhere; white-space: pre-wrap }
th { border-bottom: 1px solid; font-family: system-ui, sans-serif }
"""
CELL = "padding:.1em 1em .1em 0"
"""Style of the cells of tables, in notebooks too, which have no style sheet of ours."""
FONT = "font:11px system-ui,sans-serif"


def build_page(title: str, parts: Iterable[str]) -> str:
    """Return a page with this title, which is also its heading."""
    name = escape_html(title)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}</title><style>{STYLE}</style></head>\n<body><main><h1>{name}</h1>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def build_table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: Sequence[int] = ()) -> str:
    """Return a table of cells that are HTML already. numeric: columns that are aligned to the right."""

    def row_of(cells: Sequence[str], tag: str) -> str:
        sides = ["right" if k in numeric else "left" for k in range(len(cells))]
        kinds = [f' style="{CELL};text-align:{side}"' for side in sides]
        scope = ' scope="col"' if tag == "th" else ""
        return "<tr>" + "".join(f"<{tag}{scope}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, cells)) + "</tr>"

    body = "\n".join(row_of(row, "td") for row in rows)
    return (
        f'<div class="scroll" style="overflow-x:auto" tabindex="0"><table><thead>{row_of(headers, "th")}</thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def draw_frame(width: float, height: float, label: str, parts: Iterable[str]) -> str:
    """Return an SVG picture of this size, scrolled if it is wider than the page. label: what it shows."""
    return (
        f'<div class="scroll" style="overflow-x:auto" tabindex="0"><svg role="img" aria-label="{escape_html(label)}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'style="{FONT};fill:currentColor">{"".join(parts)}</svg></div>'
    )


def draw_bars(rows: Sequence[tuple[str, Sequence[float]]], names: Sequence[str], label: str) -> str:
    """Return horizontal bars of shares from 0 to 1: for each row (name, shares) one bar of each of `names`."""
    colours = ("#3a6fc4", "#dc7814", "#3c8c5a", "#965adc")
    thick, left, room = 13, 250, 420
    parts, y = [], 18.0
    for number, name in enumerate(names):
        x = left + number * 160
        parts.append(f'<rect x="{x}" y="2" width="11" height="11" fill="{colours[number % len(colours)]}"/>')
        parts.append(f'<text x="{x + 16}" y="12">{escape_html(name)}</text>')
    for name, shares in rows:
        y += 8
        short = name if len(name) <= 36 else name[:35] + "…"
        parts.append(
            f'<text x="{left - 8}" y="{y + thick * len(shares) / 2 + 4:.1f}" text-anchor="end">{escape_html(short)}'
            f"<title>{escape_html(name[:1000])}</title></text>"
        )
        for number, share in enumerate(shares):
            long = max(1.0, room * share)
            colour = colours[number % len(colours)]
            parts.append(f'<rect x="{left}" y="{y:.1f}" width="{long:.1f}" height="{thick - 1}" fill="{colour}"/>')
            parts.append(f'<text x="{left + long + 5:.1f}" y="{y + 10:.1f}">{100 * share:.1f} %</text>')
            y += thick
    return draw_frame(left + room + 70, y + 10, label, parts)
