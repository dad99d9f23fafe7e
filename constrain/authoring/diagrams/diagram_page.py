"""All diagrams of a grammar as one SVG picture, or as a page with links between the rules.

Both follow the light or dark colour scheme of the reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from ...frontends.lark.lexer_terminals import build_lexers
from ...lalr.parser_code import Parser
from ..grammar_tools.written_grammar import WrittenGrammar
from .automaton_diagram import MOST_STATES, Automaton, draw_automaton
from .railroad_rules import Drawn, draw_rules
from .railroad_shapes import GAP

__all__ = ["draw_page", "draw_rules_svg", "draw_svg"]

MARGIN = 20
TITLE = 26
STYLE = """
.railroad path, .railroad .end { fill: none; stroke: var(--line); stroke-width: 1.6 }
.railroad path.arrow { stroke-width: 1.4 }
.railroad rect { stroke-width: 1.4; fill: var(--box); stroke: var(--edge) }
.railroad .text rect { fill: var(--text-fill); stroke: var(--text-edge) }
.railroad .pattern rect { fill: var(--pattern-fill); stroke: var(--pattern-edge) }
.railroad .terminal rect { fill: var(--terminal-fill); stroke: var(--terminal-edge) }
.railroad text, .scanner text {
  fill: var(--ink); text-anchor: middle; font: 13px ui-monospace, "DejaVu Sans Mono", monospace
}
.railroad text.words { fill: var(--quiet); font-size: 11px }
.railroad text.title, .scanner text.title { text-anchor: start; font-weight: bold; font-size: 14px }
.railroad .about { fill: var(--quiet); font-size: 11px; font-weight: normal }
.railroad a { cursor: pointer } .railroad a:hover rect { stroke-width: 2.6 }
.scanner .edge { fill: none; stroke: var(--line); stroke-width: 1.2 } .scanner .tip { fill: var(--line) }
.scanner .state { fill: var(--box); stroke: var(--edge); stroke-width: 1.4 }
.scanner .accepts { fill: none; stroke: var(--terminal-edge); stroke-width: 1.6 }
.scanner .halo { fill: var(--paper); opacity: 0.85 } .scanner text.label { font-size: 10.5px; fill: var(--quiet) }
.scanner text.terminal { font-size: 10.5px } .scanner text.number { font-size: 11px; fill: var(--quiet) }
"""
LIGHT = """--paper: #ffffff; --ink: #1c2430; --quiet: #667084; --line: #67748a; --box: #f4f6f9; --edge: #67748a;
--text-fill: #e6f3ea; --text-edge: #3c8a58; --pattern-fill: #fbf0dc; --pattern-edge: #b07a1e;
--terminal-fill: #e6eefb; --terminal-edge: #3a6fc4"""
DARK = """--paper: #14181f; --ink: #e4e8ee; --quiet: #9aa5b5; --line: #8391a5; --box: #222935; --edge: #8391a5;
--text-fill: #1c3527; --text-edge: #62b883; --pattern-fill: #3a2f1a; --pattern-edge: #d6a24a;
--terminal-fill: #1d2c45; --terminal-edge: #76a4ee"""
COLOURS = f":root {{ color-scheme: light dark; {LIGHT} }} @media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}"
TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0 0.5 L7.5 4 L0 7.5 Z"/></marker></defs>'
)


def draw_svg(written: WrittenGrammar) -> str:
    """Return one SVG picture with all diagrams below each other."""
    parts, y, width = _stack(draw_rules(written))
    scanner = _scanner(written)
    if scanner is not None:
        title = f'<text class="title" x="{MARGIN}" y="{y + 16:g}">all terminals as one automaton</text>'
        moved = f'<g transform="translate({MARGIN} {y + TITLE:g})">{"".join(scanner.parts)}</g>'
        parts.append(f'<g class="scanner">{TIP}{title}{moved}</g>')
        y += TITLE + scanner.height
        width = max(width, scanner.width + 2 * MARGIN)
    return _picture(written.name, parts, width, y + MARGIN)


def draw_rules_svg(name: str, drawn: Sequence[Drawn]) -> str:
    """Return one SVG picture of some diagrams below each other. name: its title."""
    parts, y, width = _stack(drawn)
    return _picture(name, parts, width, y + MARGIN)


def _stack(drawn: Sequence[Drawn]) -> tuple[list[str], float, float]:
    """Return diagrams below each other, with the height and the width that they take."""
    parts, y, width = [], float(MARGIN), 300.0
    for one in drawn:
        parts.append(f'<g class="railroad" id="{escape(_id(one))}">' + "".join(_titled(one, MARGIN, y)) + "</g>")
        y += _height(one)
        width = max(width, one.shape.width + 8 * GAP + 2 * MARGIN)
    return parts, y, width


def _picture(name: str, parts: Sequence[str], width: float, height: float) -> str:
    """Return an SVG picture that follows the colour scheme of the reader."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}">'
        f"<title>{escape(name)}</title><style>{COLOURS}{STYLE}</style>"
        f'<rect width="100%" height="100%" style="fill: var(--paper)"/>{"".join(parts)}</svg>\n'
    )


def draw_page(written: WrittenGrammar) -> str:
    """Return a self-contained HTML page."""
    all_ = draw_rules(written)
    sections = []
    for one in all_:
        width, height = one.shape.width + 8 * GAP, one.shape.up + one.shape.down + 2 * GAP
        about = f" <small>{escape(one.about)}</small>" if one.about else ""
        sections.append(
            f'<section id="{escape(_id(one))}"><h2>{escape(one.name)}{about}</h2>'
            f'<svg class="railroad" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
            f'role="img" aria-label="{escape(one.name)}">{"".join(_ended(one, 0, one.shape.up + GAP))}</svg></section>'
        )
    scanner = _scanner(written)
    if scanner is not None:
        sections.append(
            '<section id="lexer"><h2>all terminals as one automaton</h2>'
            f'<svg class="scanner" width="{scanner.width:g}" height="{scanner.height:g}">{TIP}'
            f"{''.join(scanner.parts)}</svg></section>"
        )
    elif written.has_lexer:
        sections.append(f"<p>The automaton of the lexer has more than the {MOST_STATES} states that are drawn.</p>")
    links = " ".join(f'<a class="{one.kind}" href="#{escape(_id(one))}">{escape(one.name)}</a>' for one in all_)
    name = escape(written.name)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title><style>{COLOURS}
body {{ background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }}
body {{ margin: 2rem auto; max-width: 70rem; padding: 0 1rem }}
h1 {{ font-size: 1.4rem }} h2 {{ font: bold 1rem ui-monospace, monospace; margin: 1.6rem 0 .3rem }}
small {{ color: var(--quiet); font-weight: normal }} nav {{ line-height: 2 }}
nav a {{ color: inherit; text-decoration: none; border: 1px solid var(--edge) }}
nav a {{ padding: .1rem .5rem; margin-right: .2rem; white-space: nowrap }}
nav a.terminal {{ border-color: var(--terminal-edge); border-radius: 1rem }}
section {{ overflow-x: auto }} :target h2 {{ text-decoration: underline }}
{STYLE}</style></head>
<body><h1>{name}</h1><nav>{links}</nav>
{chr(10).join(sections)}
</body></html>
"""


def _id(one: Drawn) -> str:
    return f"{one.kind}-{one.name}"


def _height(one: Drawn) -> float:
    return TITLE + one.shape.up + one.shape.down + 3 * GAP


def _titled(one: Drawn, x: float, y: float) -> list[str]:
    """Return a diagram under its name."""
    about = f'<tspan class="about" dx="10">{escape(one.about)}</tspan>' if one.about else ""
    title = f'<text class="title" x="{x:g}" y="{y + 14:g}">{escape(one.name)}{about}</text>'
    return [title, *_ended(one, x, y + TITLE + one.shape.up)]


def _ended(one: Drawn, x: float, y: float) -> list[str]:
    """Return a diagram with its end marks; y is the height of its track."""
    right = x + one.shape.width + 6 * GAP
    return [
        f'<path d="M{x + 10:g} {y - 8:g} v16 m5 -16 v16 m0 -8 H{x + 3 * GAP:g}"/>',
        *one.shape.draw(x + 3 * GAP, y),
        f'<path d="M{right - 3 * GAP:g} {y:g} H{right - 15:g} m0 -8 v16 m5 -16 v16"/>',
    ]


def _scanner(written: WrittenGrammar) -> Automaton | None:
    """Return the picture of the basic lexer's automaton, if it is small.

    Contextual lexers are made from the same terminals; a picture with a start state for each of them would be
    unreadable.
    """
    loaded = written.loaded
    if loaded is None or not written.has_lexer:
        return None
    lexers = build_lexers(loaded, limits=written.limits)
    scan = np.repeat(lexers.starts, len(written.table.action))
    parser = Parser(lexers.scanner, written.table, written.productions, scan, frozenset(loaded.ignored))
    count = len(loaded.terminals)
    names = {t: written.productions.name(t) for t in range(count)}
    names |= {count + k: names[t] for k, t in enumerate(lexers.fed)}
    names |= {t: "(ignored)" for t in parser.ignored if names[t].startswith("__")}
    return draw_automaton(parser, names)
