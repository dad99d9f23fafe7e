"""The page: what `bench faithful` and `bench faithful.shapes` stored as JSON beside it, with plots.

Each command writes its own JSON and then the whole page, so neither forgets what the other found.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from .plots import STYLE as PLOTS, Line, draw_bars, draw_legend, draw_panel, draw_points

__all__ = ["COLOURS", "write_page"]

STYLE = (
    """:root{--ink:#1d2329;--soft:#8a939c;--rule:#e3e7ea;--paper:#fff;--good:#1a7f37;--bad:#c4302b}
@media(prefers-color-scheme:dark){:root{--ink:#dfe4e8;--soft:#727b84;--rule:#2d343a;--paper:#14181c;
--good:#4cc26a;--bad:#ff7b72}}
body{font:15px/1.55 system-ui,sans-serif;max-width:62em;margin:2.5em auto;padding:0 1.2em;
color:var(--ink);background:var(--paper)}
h1{line-height:1.2}h2{margin-top:2.4em;border-bottom:1px solid var(--rule);padding-bottom:.2em}h3{margin-bottom:.3em}
p{max-width:48em}.fine{color:var(--good)}.bad{color:var(--bad);font-weight:600}.note{color:var(--soft);font-size:.93em}
.wide{overflow-x:auto}table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums}
td,th{padding:.15em .75em;text-align:right;border-bottom:1px solid var(--rule);font-size:.93em}th{font-weight:600}
td:first-child,th:first-child{text-align:left}.plots{display:flex;flex-wrap:wrap;gap:.6em 1.2em}
.legend span{margin-right:1.1em;white-space:nowrap}.legend i{
display:inline-block;width:1em;height:.6em;margin-right:.35em}
ul.verdicts{list-style:none;padding:0}ul.verdicts li{margin:.3em 0}"""
    + PLOTS
)

COLOURS: dict[str, str] = {
    "masked": "#8a939c", "awrs": "#a8a03c", "asap": "#d98200", "exact": "#1a7f37", "smc awrs 4": "#8db4f0",
    "smc awrs 16": "#4477dd", "smc awrs 64": "#254f9e", "pimh 8": "#a8407f", "smc twisted 8": "#14a3a3",
    "rejection": "#e0555f", "ASAp": "#d98200", "AWRS-SMC 5": "#4477dd",
}  # fmt: skip
KINDS = {
    "model alone": "#c9a2a2", "best of 10": "#e0555f", "masked": "#8a939c", "masked, 1 of 10 by weight": "#a8a03c",
    "SMC 10, judged": "#a8407f", "AWRS-SMC 5": "#8db4f0", "AWRS-SMC 32": "#4477dd", "AWRS-SMC 32, twist": "#14a3a3",
    "exact": "#1a7f37",
}  # fmt: skip


def write_page(folder: Path) -> Path:
    """Write faithful.html from the results in the folder, those that exist: faithful.json, faithful.shapes.json."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Which samplers draw from p given L?</title><style>{STYLE}</style>"
        "<h1>Which samplers draw from p given L?</h1>"
        "<p>Masking token by token gives valid text from the wrong law: a prefix is chosen with mass that it loses "
        "later. Below, every sampler of <code>constrain.sampling</code> is compared with the right law, which is "
        "known: for small models and languages by adding everything up.</p>"
    ]
    for name, section in (("faithful.json", render_laws), ("faithful.shapes.json", render_shapes)):
        if (stored := folder / name).is_file():
            document = json.loads(stored.read_text("utf-8"))
            parts += section(document["facts"], render_origin(document))
    path = folder / "faithful.html"
    path.write_text("\n".join(part for part in parts if part) + "\n", encoding="utf-8")
    return path


def render_laws(told: dict[str, Any], origin: str) -> list[str]:
    """What `bench faithful` found."""
    parts = ["<h2>Targets</h2>", render_verdicts(told["verdicts"]), origin]
    parts += [render_table(one) for one in told["tables"]]
    if not told["curves"]:
        return parts
    parts.append(
        "<h2>Divergence against draws, and against model evaluations</h2><p>KL in nats of the texts drawn so far from "
        "p given L: the mean of repeats, the band from the least to the largest. Dashed: what exact draws of that "
        "number come to, the floor, below which nothing stays. A line that stops falling is bias.</p>"
    )
    names = list(dict.fromkeys(line["sampler"] for one in told["curves"] for line in one["lines"]))
    parts.append(draw_legend([(name, COLOURS[name]) for name in names]))
    parts += [render_curves(one) for one in told["curves"]]
    return parts


def render_curves(one: dict[str, Any]) -> str:
    """Two panels of one fixture."""
    by_draws, by_asked = [], []
    for line in one["lines"]:
        given = COLOURS[line["sampler"]], line["mean"], line["low"], line["high"]
        by_draws.append(Line(line["sampler"], given[0], one["at"][: len(line["mean"])], *given[1:]))
        by_asked.append(Line(line["sampler"], given[0], line["asked"], *given[1:]))
    by_draws.append(Line("floor", "currentColor", one["at"], one["floor"], dashed=True))
    title = f"{one['name']}: {one['sequences']:,} sequences, p(L) = {one['z']:.2g}"
    return (
        '<div class="plots">'
        + draw_panel(title, by_draws, across="draws", up="KL, nats", least=1e-3)
        + draw_panel("", by_asked, across="model evaluations", up="KL, nats", least=1e-3)
        + "</div>"
    )


def render_shapes(told: dict[str, Any], origin: str) -> list[str]:
    """What `bench faithful.shapes` found."""
    parts = [
        "<h2>The shape of the papers' results</h2>", render_verdicts(told["verdicts"]), origin,
        "<p>Five kinds of tasks after Lipkin et al. 2025. Shares of answers that are right: in L, ended in time, and "
        "so judged by a second opinion where there is one. SQLite itself runs the queries.</p>", '<div class="plots">',
    ]  # fmt: skip
    for kind, rows in told["kinds"].items():
        parts.append(
            draw_bars(kind, [(r["method"], r["right"], r["low"], r["high"], KINDS[r["method"]]) for r in rows])
        )
    parts.append("</div>")
    parts += [render_table(one) for one in told["tables"][:-1]]
    steps = told["steps"]
    top = max(steps["exp_kl"])
    parts += [
        "<h3>AWRS checks where the constraint bites</h3><p>Each dot is a step under the embedded model: checks until a "
        f"valid token is found, mean of {steps['races']}, against exp(KL) of the masked law from the model's. Dashed: "
        f"the bound. Rank correlation {steps['by_step']:.2f} over {len(steps['checks']):,} steps.</p>",
        draw_points("", steps["exp_kl"], steps["checks"], Line("", "currentColor", [1, top], [1, top]),
               across="exp(KL)", up="checks"),
        "<h3>GAD's protocol</h3><p>A running window of 500 of 2,000 draws. Left: the true KL of the window from p "
        "given L; middle: as GAD estimates it, from the model's likelihoods of texts that were seen; right: KL of "
        "p given L from the law that ASAp has learnt by then. It begins as masking and gets worse before it gets "
        "better.</p>",
        render_table(told["tables"][-1]),
        draw_legend([(name, COLOURS[name]) for name in ("masked", "ASAp", "AWRS-SMC 5", "exact")]),
    ]  # fmt: skip
    for one in told["gad"]:
        flat = Line("floor", "currentColor", [one["at"][0], one["at"][-1]], [one["floor"]] * 2, dashed=True)
        true = [Line(name, COLOURS[name], one["at"], ys) for name, ys in one["true"].items()]
        seen = [Line(name, COLOURS[name], one["at"], ys) for name, ys in one["estimated"].items()]
        begin, far = [max(at, 0.5) for at, _ in one["learnt"]], [kl for _, kl in one["learnt"]]
        level = Line("masked", COLOURS["masked"], [begin[0], begin[-1]], [far[0], far[0]], dashed=True)
        parts.append(
            '<div class="plots three">'
            + draw_panel(one["name"] + ", true", [*true, flat], across="draws", up="KL, nats", logs=(False, True))
            + draw_panel("as GAD estimates", [*seen, flat], across="draws", up="KL, nats", logs=(False, True))
            + draw_panel("ASAp's law", [Line("ASAp", COLOURS["ASAp"], begin, far), level], across="draws",
                         up="KL, nats", marks=True)
            + "</div>"
        )  # fmt: skip
    return parts


def render_origin(document: dict[str, Any]) -> str:
    """By what, when and where."""
    here = document["machine"]
    machine = f"{here['processor']}, {here['cores']} cores, load {here['load'][0]:.1f}"
    said = (document["command"], document["date"], document["commit"], machine)
    return f'<p class="note">{html.escape(" · ".join(said))}</p>'


def render_verdicts(told: list[dict[str, Any]]) -> str:
    """Target by target."""
    marks = {True: '<b class="fine">met</b>', False: '<b class="bad">missed</b>'}
    return (
        '<ul class="verdicts">'
        + "".join(f"<li>{marks[v['met']]} {html.escape(v['target'])}: {html.escape(v['said'])}</li>" for v in told)
        + "</ul>"
    )


def render_table(told: dict[str, Any]) -> str:
    """name, note, header, rows of texts; a cell that begins with ! is bad news, with + good."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in told["header"])
    rows = "".join(
        "<tr>" + "".join(f"<td{choose_class(cell)}>{html.escape(cell.strip('!+'))}</td>" for cell in row) + "</tr>"
        for row in told["rows"]
    )
    return (
        f"<h3>{html.escape(told['name'])}</h3><p>{html.escape(told['note'])}</p>"
        f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'
    )


def choose_class(cell: str) -> str:
    return {"!": ' class="bad"', "+": ' class="fine"'}.get(cell[:1], "")
