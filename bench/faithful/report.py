"""What was measured, as one HTML page with its curves in it, and as JSON."""

from __future__ import annotations

import html
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from .fixtures import Fixture
from .measure import Curve, Floor
from .samplers import SAMPLERS

__all__ = ["page"]

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}.bad{color:#b00;font-weight:600}
.fine{color:#070}p{max-width:60em}"""


def page(path: Path, told: dict[str, Any], plots: list[tuple[Fixture, Floor, list[Curve]]]) -> None:
    """Writes `path` and the JSON beside it. told: title, intro, tables (name, note, header, rows of texts)."""
    parts = [f"<!doctype html><meta charset=utf-8><title>{told['title']}</title><style>{STYLE}</style>"]
    parts.append(f"<h1>{told['title']}</h1><p>{told['intro']}</p>")
    for table in told["tables"]:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table["header"])
        rows = "".join(
            "<tr>" + "".join(f"<td{shade(cell)}>{html.escape(cell.strip('!+'))}</td>" for cell in row) + "</tr>"
            for row in table["rows"]
        )
        parts.append(f"<h2>{html.escape(table['name'])}</h2><p>{table['note']}</p><table><tr>{head}</tr>{rows}</table>")
    parts.append(
        "<h2>Divergence against draws, and against model evaluations</h2><p>KL in nats of the texts drawn so far from "
        "p given L: the mean of repeats, the band from the least to the largest. Dashed: what exact draws of that "
        "number come to, the floor; nothing can be below it for long. A line at the top right that does not fall is "
        "bias.</p>"
    )
    parts += [drawn(*plot) for plot in plots]
    path.write_text("\n".join(parts), encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def shade(cell: str) -> str:
    """A cell that begins with ! is bad news, with + good."""
    return {"!": ' class="bad"', "+": ' class="fine"'}.get(cell[:1], "")


def drawn(fixture: Fixture, floor: Floor, curves: list[Curve]) -> str:
    """Two panels as SVG."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "faithful", "font.size": 9, "axes.grid": True, "grid.alpha": 0.25})
    from matplotlib import pyplot

    from .measure import STEPS

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 3.9), sharey=True)
    colours = {sampler.name: sampler.line for sampler in SAMPLERS}
    for one in curves:
        length = min((len(row) for row in one.divergence), default=0)
        if not length:
            continue
        far = np.array([row[:length] for row in one.divergence])
        asked = np.array([row[:length] for row in one.evaluations], dtype=np.float64)
        for axes, across in ((left, np.array(STEPS[:length])), (right, asked.mean(axis=0))):
            axes.plot(across, far.mean(axis=0), color=colours[one.sampler], label=one.sampler, linewidth=1.4)
            axes.fill_between(across, far.min(axis=0), far.max(axis=0), color=colours[one.sampler], alpha=0.12)
    left.plot(STEPS, floor.mean, "k--", linewidth=1, label="floor")
    left.set_xlabel("draws")
    right.set_xlabel("model evaluations (prefixes asked)")
    left.set_ylabel("KL(drawn || p given L), nats")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
    right.legend(fontsize=7, loc="upper right", ncols=2)
    figure.suptitle(f"{fixture.name}: {len(fixture.exact)} sequences, p(L) = {fixture.z:.2g}", fontsize=10)
    figure.tight_layout()
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    text = out.getvalue()
    return text[text.index("<svg") :]
