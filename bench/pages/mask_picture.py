"""Draw README's picture of what a mask does: docs/mask.svg, the next tokens of the embedded model at one place.

    python -m bench pages.mask_picture [--out docs/mask.svg]

The likeliest tokens after the text so far, with the probability that the model gives them, and whether the schema
allows them there. Each row holds its token as JSON in `data-token` and the verdict in `data-allowed`, which a test
compares with a Matcher.
"""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import constrain
from constrain.demo import compose_prompt
from constrain.integrations.transformers_language_model import TransformersModel

from ..options import build_parser

__all__ = ["SCHEMA", "TEXT", "Candidate", "draw_mask_picture"]

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "admin": {"type": "boolean"},
    },
    "required": ["name", "age", "admin"],
    "additionalProperties": False,
}
PROMPT = "Describe a person."
TEXT = '{"name": "Ada", "age": 12'
REASONS = {True: "allowed", False: "masked"}
SHOWN = 6
WIDE, ROW, LEFT = 720, 30, 300
LOOK = """text{font:14px system-ui,sans-serif;fill:#1d2329}.c{font-family:ui-monospace,monospace}
.n{fill:#6b747c;font-size:13px}.b{fill:#e8ecf0}.y{fill:#1a7f37}.x{fill:#c0392b}.s{text-decoration:line-through;fill:#7c858e}
@media(prefers-color-scheme:dark){text{fill:#dfe4e8}.n{fill:#9aa4ad}.b{fill:#2a3138}.y{fill:#4cc26a}.x{fill:#ff7b6b}
.s{fill:#8a939c}}"""


class Candidate(NamedTuple):
    """A next token: its text, its probability under the model, and whether the constraint allows it."""

    text: str
    probability: float
    allowed: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the picture. Return the exit code."""
    parser = build_parser("pages.mask_picture", __doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/mask.svg"), help="the file")
    options = parser.parse_args(arguments)
    candidates = find_candidates()
    options.out.write_text(draw_mask_picture(candidates), "utf-8")
    for candidate in candidates:
        print(f"{candidate.text!r:8} {candidate.probability:.3f} {REASONS[candidate.allowed]}")
    return 0


def find_candidates() -> list[Candidate]:
    """Return the likeliest tokens after TEXT, likeliest first."""
    demo = constrain.load_model("demo")
    lm = TransformersModel(demo, prompt=compose_prompt(PROMPT, schema=SCHEMA))
    matcher = constrain.compile(lm.vocabulary, schema=SCHEMA).matcher()
    tokens = demo.tokenizer.encode(TEXT, add_special_tokens=False)
    for token in tokens:
        matcher.advance(token)
    logs = lm.next_logprobs([tokens])[0]
    best = [int(token) for token in np.argsort(-logs)[:SHOWN]]
    return [
        Candidate(lm.vocabulary.decode([token]), float(np.exp(logs[token])), matcher.allows(token)) for token in best
    ]


def draw_mask_picture(candidates: Sequence[Candidate]) -> str:
    """Return the SVG: schema and text on the left, a row for each candidate on the right."""
    rules = [
        "a JSON object with",
        "name   text, at most 20 letters",
        "age    integer, 0 to 120",
        "admin  true or false",
    ]
    parts = ['<text x="16" y="26" class="n">the form you asked for</text>']
    parts += [
        f'<text x="16" y="{50 + 21 * i}" class="c" xml:space="preserve">{rule}</text>' for i, rule in enumerate(rules)
    ]
    parts.append('<text x="16" y="156" class="n">written so far</text>')
    parts.append(f'<text x="16" y="180" class="c">{html.escape(TEXT)}<tspan class="y">▏</tspan></text>')
    parts.append(f'<text x="{LEFT}" y="26" class="n">what the model would write next</text>')
    for i, candidate in enumerate(candidates):
        parts.append(draw_candidate(candidate, 40 + ROW * i))
    high = 40 + ROW * len(candidates) + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {high}" width="{WIDE}" role="img">'
        f"<title>The next tokens of a model, and which of them the schema allows</title><style>{LOOK}</style>"
        f"{''.join(parts)}</svg>\n"
    )


def draw_candidate(candidate: Candidate, top: int) -> str:
    """Return a row: the token, a bar of its probability, the verdict."""
    kind, mark = ("y", "✓") if candidate.allowed else ("x", "✗")
    struck = "c" if candidate.allowed else "c s"
    wide, verdict = max(200 * candidate.probability, 2), REASONS[candidate.allowed]
    token = html.escape(json.dumps(candidate.text), quote=True)
    return (
        f'<g data-token="{token}" data-allowed="{str(candidate.allowed).lower()}">'
        f'<text x="{LEFT}" y="{top + 17}" class="{struck}" xml:space="preserve">{html.escape(candidate.text)}</text>'
        f'<rect class="b" x="{LEFT + 56}" y="{top + 4}" width="200" height="17" rx="3"/>'
        f'<rect class="{kind}" x="{LEFT + 56}" y="{top + 4}" width="{wide:.0f}" height="17" rx="3"/>'
        f'<text x="{LEFT + 266}" y="{top + 17}" class="n">{candidate.probability:.0%}</text>'
        f'<text x="{LEFT + 320}" y="{top + 17}" class="{kind}">{mark} {verdict}</text></g>'
    )


if __name__ == "__main__":
    sys.exit(main())
