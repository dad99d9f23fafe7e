"""Different instances: random ones while they differ, and the list of all of them where there are only few.

Two texts are the same instance if they are the same JSON value: 1 and 1.0 are, 1 and true are not, and the order of
keys does not count (JSON Schema 2020-12, core, section 4.2.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...base.errors import ConstrainError
from ...base.json_documents import parse_json
from ...frontends.json_schema.core.json_values import to_constant
from .random_instances import random_text
from .text_enumeration import few_texts

if TYPE_CHECKING:
    from ...engine.constraint import Constraint

__all__ = ["distinct_texts", "value_of"]

IDLE = 40
"""Draws in a row that bring nothing new, after which it is asked whether there is anything new at all."""
PATIENCE = 400
"""Draws in a row after which it is given up where there is more than can be listed."""
FEW = 2_000
"""Most texts that are listed."""
LARGER = 4
"""Where nothing new comes, texts may grow by this factor."""


def distinct_texts(
    constraint: Constraint,
    n: int,
    *,
    rng: np.random.Generator,
    size: int = 600,
    agree: Callable[[bytes], bool] = lambda text: True,
) -> Iterator[bytes]:
    """Up to n texts of a constraint that are different JSON values; fewer if there are fewer, or none more is found.

    size: bytes after which a text is closed. agree: whether a text will do (another validator's opinion, say).
    """
    seen: set[object] = set()

    def fresh(text: bytes) -> bool:
        value = value_of(text)
        new = value not in seen and agree(text)
        if new:
            seen.add(value)
        return new

    idle = 0
    while len(seen) < n and idle < PATIENCE:
        if idle == IDLE and (listed := few_texts(constraint.grammar, FEW)) is not None:
            for text in listed:
                if len(seen) < n and fresh(text):
                    yield text
            return
        text = random_text(constraint, rng, size=size if idle < IDLE else size * LARGER)
        idle = 0 if fresh(text) else idle + 1
        if not idle:
            yield text


def value_of(text: bytes) -> object:
    """What a text is as a JSON value, with exact numbers, hashable; the text itself if it is no JSON."""
    try:
        return to_constant(parse_json(text.decode()), "")
    except ConstrainError:
        return text
