"""What a notebook shows of a Constraint, a Vocabulary and Draws: HTML that is readable on light and dark pages.

`Constraint._repr_html_` and the others are in packages below this one, which look these functions up by name (see
`base.extensions`).
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from typing import TYPE_CHECKING

from ..diagrams import draw_rules_svg, draw_source
from ..rendering.html_pages import build_table, draw_bars
from ..rendering.readable_tokens import escape_html, show_bytes, show_characters

if TYPE_CHECKING:
    from ...engine.constraint import Constraint
    from ...sampling.core.results import Draws
    from ...vocabulary.vocabulary import Vocabulary

__all__ = ["show_constraint", "show_draws", "show_vocabulary"]

MOST_SVG = 400_000
"""Maximum number of characters of a diagram in a notebook."""
SAMPLE = 24
"""Number of tokens of a vocabulary that are shown."""
MOST_TEXTS = 12
"""Number of texts of Draws that are shown."""
SMALL = "font:12px/1.5 system-ui,sans-serif;opacity:.85"
MONO = "font:13px/1.6 ui-monospace,'DejaVu Sans Mono',monospace"


def show_constraint(constraint: Constraint) -> str:
    """Return a railroad diagram of a Constraint, as a picture that keeps its own colours."""
    head = f'<div style="{MONO}">{escape_html(repr(constraint))}</div>'
    drawn, note = draw_source(constraint.source or {})
    if not drawn:
        note = note or "It was made of Grammar nodes, which have no diagram."
        return f'<div>{head}<div style="{SMALL}">{escape_html(note)}</div></div>'
    svg = draw_rules_svg("constraint", drawn)
    if len(svg) > MOST_SVG:
        note = f"The diagram is larger than {MOST_SVG:,} characters; constrain view draws grammars of any size."
        return f'<div>{head}<div style="{SMALL}">{escape_html(note)}</div></div>'
    data = b64encode(svg.encode("utf-8", "replace")).decode("ascii")
    names = ", ".join(one.name for one in drawn)
    image = (
        f'<img style="max-width:none" alt="railroad diagram of {escape_html(names)}" '
        f'src="data:image/svg+xml;base64,{data}">'
    )
    below = f'<div style="{SMALL}">{escape_html(note)}</div>' if note else ""
    return f'<div>{head}<div style="overflow-x:auto">{image}</div>{below}</div>'


def show_vocabulary(vocabulary: Vocabulary) -> str:
    """Return the size, the special tokens and a sample of the tokens of a Vocabulary."""
    texts = [token for token in vocabulary.tokens if token]
    lengths = Counter(map(len, texts))
    missing = vocabulary.missing_bytes
    ends = [show_special(vocabulary, index) for index in vocabulary.eos_ids[:SAMPLE]]
    names = [name for name, index in vocabulary.special.items() if index not in vocabulary.eos_ids]
    more = f" and {len(names) - SAMPLE:,} more" if len(names) > SAMPLE else ""
    step = max(1, len(texts) // SAMPLE)
    sample = " ".join(show_bytes(token, 20) for token in texts[::step][:SAMPLE])
    rows = [
        ("tokens", f"{vocabulary.size:,}, of which {len(texts):,} have text"),
        ("longest", f"{max(lengths, default=0)} bytes"),
        ("end tokens", ", ".join(ends)),
        ("special", (", ".join(show_characters(name[:40]) for name in names[:SAMPLE]) or "none") + more),
        ("bytes without a token", f"{len(missing)}: some texts cannot be spelled" if missing else "none"),
        ("a sample", sample),
        ("fingerprint", vocabulary.fingerprint[:16]),
    ]
    cells = [(f"<b>{escape_html(name)}</b>", escape_html(value)) for name, value in rows]
    title = escape_html(f"Vocabulary {vocabulary.name[-80:]}")
    return f'<div style="{MONO}">{title}{build_table(("", ""), cells)}</div>'


def show_special(vocabulary: Vocabulary, index: int) -> str:
    """Return the id and the name of a special token."""
    name = next((name for name, token in vocabulary.special.items() if token == index), "")
    return f"{index} {show_characters(name[:40])}".rstrip()


def show_draws(draws: Draws) -> str:
    """Return the likeliest texts of Draws with their shares, as bars, and what the draws are worth."""
    shares = draws.by_text()
    rows = [(show_characters(text[:80]), (share,)) for text, share in list(shares.items())[:MOST_TEXTS]]
    left = len(shares) - len(rows)
    facts = [
        f"{len(draws):,} draws, {len(shares):,} different texts", f"worth {draws.ess:.1f} faithful draws",
        f"{draws.unfinished:,} did not end" if draws.unfinished else "",
        f"{left:,} more texts are not shown" if left > 0 else "",
    ]  # fmt: skip
    note = " · ".join(fact for fact in facts if fact)
    bars = draw_bars(rows, ["share of the weight"], "The likeliest texts and their shares of the weight")
    return f'<div>{bars}<div style="{SMALL}">{escape_html(note)}</div></div>'
