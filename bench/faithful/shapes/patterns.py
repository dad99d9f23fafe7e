"""Pattern matching: regular expressions with lookahead, as in the first task of the AWRS paper, and the embedded model.

A lookahead constrains text that is written later, and a mask removes mass only where few choices are left.
"""

from __future__ import annotations

import constrain
from constrain import demo

from ...checkpoints import BASELINE, load_checkpoint
from ...counted_models import CachedModel
from .tasks import Task

__all__ = ["PATTERNS", "build_pattern_tasks"]

PATTERNS = [
    ("a name with an a at its end", r"(?=[A-Za-z ]*a$)[A-Z][a-z]{2,7}( [A-Z][a-z]{2,7})?"),
    ("a password with a digit", r"(?=.*\d)(?=.*[a-z])[a-z0-9]{4,8}"),
    ("a code with two capitals", r"(?=.*[A-Z].*[A-Z])(?=.*\d)[A-Z0-9-]{4,7}"),
    ("a date at a weekend in June", r"(?=\d{4}-06)(?!.*-(0[1-6]|1[0-5]|2\d|30)$)20\d{2}-\d{2}-\d{2}"),
    ("an address that ends in org", r"(?=.*\.org$)[a-z]{2,8}@[a-z]{2,8}\.[a-z]{2,3}"),
    ("a word without e", r"(?!.*e)[a-z]{3,9}"),
    ("a word of an even length with an x", r"(?=.*x)([a-z]{2}){2,4}"),
    ("a time after noon", r"(?=1[2-9]|2)\d{2}:\d{2}(?<=[05])"),
    ("an even number of three digits", r"(?=.*[02468]$)[1-9]\d{2}"),
    ("a colour that is not short", r"(?=.{6,})#?[0-9a-f]{3,8}"),
    ("two equal halves", r"(?=(ab|ba|cd))([a-d]{2}){1,3}(?<=ab)"),
    ("a sentence with the word and", r"(?=.* and )[A-Z][a-z]{1,7}( [a-z]{1,7}){2,4}\."),
]


def build_pattern_tasks(count: int, checkpoint: str = BASELINE) -> list[Task]:
    """Return the first `count` tasks."""
    model, out = load_checkpoint(checkpoint), []
    for name, pattern in PATTERNS[:count]:
        constraint = constrain.compile(vocabulary=model.vocabulary, regex=pattern)
        lm = CachedModel(model.on(demo.compose_prompt(f"Write {name}.", regex=pattern)))
        out.append(Task("patterns", name, lm, constraint, 24))
    return out
