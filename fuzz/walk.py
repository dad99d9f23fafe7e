"""Random walks along masks, with checks that the answers of the Matcher are consistent."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import constrain
from constrain import Constraint, Vocabulary

from .findings import Disagreement

__all__ = ["BYTES", "MIXED", "list_members", "walk"]

BYTES = Vocabulary.bytes()
MIXED = Vocabulary.from_tokens(
    [bytes((value,)) for value in range(256)]
    + [b'":', b'",', b'{"', b"[]", b"{}", b"}}", b"]]", b"true", b"null", b"\\u", b"00", b"12", b"ab", b"aa", b" \n",
       b'": "', b"\xc3\xa9", b"\xf0\x9f", b"\x98\x80", b'"a"', b"e+", b"-1", b".5", None],
    eos_ids=[279],
)  # fmt: skip
STEPS = 30
COMPLETION = 2_000


def list_members(mask: Any, size: int) -> np.ndarray[Any, Any]:
    """Return the ids of the tokens in a mask."""
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[:size])


def walk(constraint: Constraint, seed: int, steps: int = STEPS) -> bytes | None:
    """Return a text from a random walk along masks and the shortest completion, or None if that is too long.

    Raises Disagreement if a mask is empty, has end tokens where the text is incomplete (or none where it is complete),
    or differs from `allows`, or if an allowed token is refused.
    """
    rng = random.Random(seed)
    vocabulary = constraint.vocabulary
    matcher = constraint.matcher()
    text = b""
    for _ in range(rng.randint(0, steps)):
        try:
            allowed = list_members(matcher.mask(), vocabulary.size)
        except constrain.VocabularyError:
            if not vocabulary.missing_bytes:
                raise
            return None  # A text that this vocabulary cannot spell to its end.
        if not len(allowed):
            raise Disagreement("empty mask", f"after {text!r}")
        ends = np.isin(allowed, vocabulary.eos_ids)
        if bool(ends.any()) != matcher.is_complete:
            raise Disagreement("end token against is_complete", f"after {text!r}")
        plain = allowed[~ends]
        refused = rng.randrange(vocabulary.size)
        if matcher.allows(refused) != (refused in allowed):
            raise Disagreement("mask against allows", f"after {text!r}, token {refused}")
        if not len(plain):
            return text
        token = int(rng.choice(plain))
        matcher.advance(token)
        text += vocabulary.tokens[token] or b""
    rest = matcher.shortest_completion(limit=COMPLETION)
    if rest is None:
        return None
    matcher.advance_bytes(rest)
    if not matcher.is_complete:
        raise Disagreement("shortest completion is not a completion", f"{text!r} + {rest!r}")
    return text + rest
