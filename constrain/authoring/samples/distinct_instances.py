"""Draw different instances: at random while they differ, and from the list of all instances where there are few.

Two texts are the same instance if they are the same JSON value: 1 and 1.0 are, 1 and true are not, and the order of
keys does not matter (JSON Schema 2020-12, core, section 4.2.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...engine.text_enumeration import hashable_json, list_texts
from .random_instances import random_text

if TYPE_CHECKING:
    from ...engine.constraint import Constraint

__all__ = ["distinct_texts"]

IDLE = 40
"""Number of consecutive draws without a new instance after which the language is enumerated to see whether there are
any."""
PATIENCE = 400
"""Number of consecutive draws without a new instance after which drawing stops, if there are too many to enumerate."""
FEW = 2_000
"""Maximum number of texts that are enumerated."""
LARGER = 4
"""Factor by which texts may grow when no new instance is found."""


def distinct_texts(
    constraint: Constraint,
    n: int,
    *,
    rng: np.random.Generator,
    size: int = 600,
    agree: Callable[[bytes], bool] = lambda text: True,
) -> Iterator[bytes]:
    """Yield up to n texts of a constraint that are pairwise different JSON values.

    There are fewer if the language has fewer, or if no more are found.

    Parameters
    ----------
    constraint : Constraint
        The constraint.
    n : int
        Maximum number of texts.
    rng : numpy.random.Generator
        Source of randomness.
    size : int
        Number of bytes after which a text is completed as soon as possible.
    agree : callable
        Post-filter: whether a text is accepted, for example by another validator.
    """
    seen: set[object] = set()

    def fresh(text: bytes) -> bool:
        value = hashable_json(text)
        new = value not in seen and agree(text)
        if new:
            seen.add(value)
        return new

    idle = 0
    while len(seen) < n and idle < PATIENCE:
        if idle == IDLE and (listed := list_texts(constraint.grammar, FEW)) is not None:
            for text in listed:
                if len(seen) < n and fresh(text):
                    yield text
            return
        text = random_text(constraint, rng, size=size if idle < IDLE else size * LARGER)
        idle = 0 if fresh(text) else idle + 1
        if not idle:
            yield text
