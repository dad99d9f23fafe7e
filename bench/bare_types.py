"""Draw answers of the embedded model for bare Python types in the default style, in their own, and without white space.

    python -m bench bare_types [--draws 200 --seed 1]

A bare type, such as `type=list[int]`, does not tell the model what to write, so the style matters: the length of
answers, their share of white space, the number of digits of numbers, and of items of lists.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

import constrain
from constrain import Style
from constrain.generation.type_styles import BARE_STYLE

from .options import build_parser

PROMPTS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "int": (int, ("How old is Ada?", "Count the apples.")),
    "float": (float, ("What is the price?", "How tall is the tower in metres?")),
    "list[int]": (list[int], ("List some scores.", "Give three numbers.")),
    "str": (str, ("Describe a person.", "Name a colour.")),
}
STYLES = {
    "default": Style(formats="annotate"),  # not equal to `Style()`, so not replaced; these types have no formats
    "bare types": BARE_STYLE,
    "compact": Style(whitespace="compact", digits=BARE_STYLE.digits),
}
LONG = 9
"""Number of successive digits above which a number counts as too long."""
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
MOST_TOKENS = 200


def measure_type(model: Any, name: str, label: str, draws: int, seed: int) -> list[str]:
    """Return a row of the table for one type in one style."""
    tp, prompts = PROMPTS[name]
    texts = [
        one.text
        for prompt in prompts
        for one in constrain.generate(
            model, prompt, type=tp, n=draws // len(prompts), seed=seed, max_tokens=MOST_TOKENS, style=STYLES[label]
        )
    ]
    bare = [STRING.sub("", text) for text in texts]
    characters = sum(map(len, texts))
    white = sum(sum(char.isspace() for char in text) for text in bare)
    runs = [max(map(len, re.findall("[0-9]+", text)), default=0) for text in bare]
    numbers = sum(len(re.findall(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", text)) for text in bare)
    return [
        name, label, f"{characters / len(texts):.1f}",
        f"{100 * white / characters:.0f}", f"{numbers / len(texts):.1f}", str(max(runs)),
        str(sum(run > LONG for run in runs)),
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Return the exit code."""
    parser = build_parser("bare_types", __doc__, "seed", seed=1)
    parser.add_argument("--draws", type=int, default=200, help="answers for each type and style")
    options = parser.parse_args(arguments)
    model = constrain.load_model("demo")
    print("| type | style | characters | white space, % | numbers | most digits in a row | answers with more than 9 |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for name in PROMPTS:
        for label in STYLES:
            print(f"| {' | '.join(measure_type(model, name, label, options.draws, options.seed))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
