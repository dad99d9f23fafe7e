"""The picture of docs/theory.md: docs/distortion.svg, one example under the embedded model, three laws.

    python -m bench faithful.picture [--out docs/distortion.svg]

The question has six answers. Grey: the probability of each under p given L, summed over all token sequences.
Orange: masked draws; green: draws of `exact`.
"""

from __future__ import annotations

import html
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import constrain
from constrain import demo
from constrain.sampling import trie_rejection
from constrain.sampling.core import masked_sampling
from constrain.sampling.core.results import Draws

from ..checkpoints import load_checkpoint
from ..counted_models import CachedModel
from ..options import build_parser
from .fixtures import build_fixture

__all__ = ["draw_picture"]

ASKED = "How many stars?"
SCHEMA = {"enum": [6, 7, 8, 9, 10, 20]}
MOST = 12
ROW, LEFT, WIDE = 46, 66, 640
LOOK = """text{font:13px system-ui,sans-serif;fill:#1d2329}.n{fill:#6b747c;font-size:12px}.t{fill:#8a939c}
.m{fill:#d98200}.e{fill:#1a7f37}@media(prefers-color-scheme:dark){text{fill:#dfe4e8}.n{fill:#9aa4ad}.e{fill:#4cc26a}}"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the picture. Return the exit code."""
    parser = build_parser("faithful.picture", __doc__, "checkpoint", checkpoint="demo")
    parser.add_argument("--draws", type=int, default=4000, help="draws of each sampler")
    parser.add_argument("--out", type=Path, default=Path("docs/distortion.svg"), help="the file")
    options = parser.parse_args(arguments)
    model = load_checkpoint(options.checkpoint)
    constraint = constrain.compile(model.vocabulary, schema=SCHEMA, style=constrain.Style(whitespace="compact"))
    lm = CachedModel(model.on(demo.compose_prompt(ASKED, schema=SCHEMA)))
    f = build_fixture("", lm, constraint, MOST, real=True)
    truth: dict[str, float] = defaultdict(float)
    for tokens, p in f.exact.items():
        truth[model.vocabulary.decode(tokens)] += p
    laws: dict[str, dict[str, float]] = {
        "asked again until it fits": dict(truth),
        "masked": compute_shares(
            masked_sampling.draw_masked(lm, constraint, n=options.draws, rng=np.random.default_rng(1), max_tokens=MOST)
        ),
        'sampler="exact"': compute_shares(
            trie_rejection.draw_exact(lm, constraint, n=options.draws, rng=np.random.default_rng(1), max_tokens=MOST)
        ),
    }
    options.out.write_text(draw_picture(laws, f.distortion, options.draws), encoding="utf-8")
    for name, law in laws.items():
        print(name, {text: round(p, 3) for text, p in sorted(law.items())})
    return 0


def compute_shares(draws: Draws) -> dict[str, float]:
    """Return the share of each text among the draws that ended."""
    counts = Counter(draw.text for draw in draws if draw.log_weight > -np.inf)
    return {text: count / counts.total() for text, count in counts.items()}


def draw_picture(laws: dict[str, dict[str, float]], distortion: float, draws: int) -> str:
    """Return the SVG: three bars for each answer, the likeliest answer first."""
    truth, *_ = laws.values()
    answers = sorted(truth, key=lambda text: -truth[text])
    most = max(max(law.values()) for law in laws.values())
    parts = [f'<text x="{LEFT}" y="18">{ASKED} One of {len(answers)} answers, and how often each is given</text>']
    for i, (name, kind) in enumerate(zip(laws, "tme")):
        x = LEFT + 200 * i
        parts.append(f'<rect class="{kind}" x="{x}" y="30" width="12" height="12" rx="2"/>')
        parts.append(f'<text class="n" x="{x + 18}" y="41">{html.escape(name)}</text>')
    for row, answer in enumerate(answers):
        top = 56 + ROW * row
        label = html.escape(answer.strip('"'))
        parts.append(f'<text x="{LEFT - 8}" y="{top + 24}" text-anchor="end">{label}</text>')
        for i, (law, kind) in enumerate(zip(laws.values(), "tme")):
            share = law.get(answer, 0.0)
            wide = max((WIDE - LEFT - 60) * share / most, 1)
            parts.append(
                f'<rect class="{kind}" x="{LEFT}" y="{top + 13 * i}" width="{wide:.0f}" height="11" rx="2"/>'
                f'<text class="n" x="{LEFT + wide + 5:.0f}" y="{top + 13 * i + 10}">{share:.1%}</text>'
            )
    high = 56 + ROW * len(answers) + 20
    parts.append(
        f'<text class="n" x="{LEFT}" y="{high - 6}">{draws:,} draws each; grey is added up over all '
        f"token sequences. Masking is {distortion:.2f} nats off.</text>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {high}" width="{WIDE}" role="img">'
        f"<title>Masked draws, exact draws, and the truth</title><style>{LOOK}</style>{''.join(parts)}</svg>\n"
    )


if __name__ == "__main__":
    sys.exit(main())
