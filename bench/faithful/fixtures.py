"""Distributions to draw from: small Markov models under constraints with traps, the demo model under small schemas.

The exact distribution of each is known: by brute force (tests/markov_factory.py), or by enumerating every prefix that
the mask allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from constrain.engine.constraint import Constraint
from constrain.sampling.particles import Move, ParticleNode, Prefixes, list_allowed_logprobs
from tests.markov_factory import Case, Tokens, cases

from ..checkpoints import BASELINE, load_checkpoint
from ..counted_models import CachedModel

__all__ = ["DEMO", "Fixture", "list_demo_fixtures", "list_markov_fixtures"]

MOST = 4_000
"""Maximum number of prefixes of one length; a fixture with more cannot be enumerated."""


@dataclass(frozen=True)
class Fixture:
    """A model, a constraint and their exact distributions.

    exact: p given L. z: p(L). masked: probability under masking of each text that ends within max_tokens; the others
    are left out, so it may sum to less than 1. real: whether the model is a transformer.
    """

    name: str
    lm: CachedModel
    constraint: Constraint
    max_tokens: int
    exact: dict[Tokens, float]
    z: float
    masked: dict[Tokens, float]
    real: bool

    @property
    def distortion(self) -> float:
        """KL(masking || p given L) in nats, masking given that a text ends in time."""
        total = math.fsum(self.masked.values())
        return math.fsum(q / total * math.log(q / total / self.exact[x]) for x, q in self.masked.items() if q > 0)

    @property
    def backward(self) -> float:
        """KL(p given L || masking) in nats, masking given that a text ends in time."""
        total = math.fsum(self.masked.values())
        return math.fsum(p * math.log(p / (self.masked[x] / total)) for x, p in self.exact.items() if p > 0)


def enumerate_texts(lm: CachedModel, constraint: Constraint, max_tokens: int) -> Iterator[tuple[Tokens, float, float]]:
    """Yield (tokens, log p, log q) for every text that ends in time under the mask; q: its probability
    under masking.
    """
    prefixes = Prefixes(lm, constraint)
    layer: list[tuple[ParticleNode, float]] = [(prefixes.root, 0.0)]
    for left in range(max_tokens, 0, -1):
        prefixes.fetch_rows([node for node, _ in layer])
        further: list[tuple[ParticleNode, float]] = []
        for node, log_q in layer:
            tokens, logs = list_allowed_logprobs(prefixes, node, left)
            mass = np.logaddexp.reduce(logs) if len(logs) else -np.inf
            for token, log in zip(tokens.tolist(), logs.tolist()):
                child = prefixes.child(node, Move(token, log, 0.0))
                if child.ended:
                    yield tuple(child.tokens), child.logprob, log_q + log - mass
                else:
                    further.append((child, log_q + log - mass))
            node.row = None
        layer = further
        if len(layer) > MOST:
            raise ValueError(f"more than {MOST} prefixes of one length")


def build_fixture(name: str, lm: CachedModel, constraint: Constraint, max_tokens: int, *, real: bool) -> Fixture:
    """Build a fixture and compute its exact distributions."""
    texts = list(enumerate_texts(lm, constraint, max_tokens))
    z = math.fsum(math.exp(p) for _, p, _ in texts)
    exact = {x: math.exp(p) / z for x, p, _ in texts}
    return Fixture(name, lm, constraint, max_tokens, exact, z, {x: math.exp(q) for x, _, q in texts}, real)


def list_markov_fixtures() -> list[Fixture]:
    """Build the fixtures of the tests. Raise AssertionError if enumeration and brute force disagree."""
    out = []
    for case in cases().values():
        made = build_fixture(case.name, CachedModel(case.lm), case.constraint, case.max_tokens, real=False)
        check_agreement(case, made)
        out.append(made)
    return out


def check_agreement(case: Case, made: Fixture) -> None:
    """Assert that enumeration and brute force give the same distribution."""
    law = case.exact()
    assert law.keys() == made.exact.keys(), case.name
    assert all(abs(p - made.exact[x]) < 1e-9 for x, p in law.items()), case.name


DEMO: list[tuple[str, str, dict[str, Any], int]] = [
    ("demo: an enum", "Is the sky blue?", {"enum": ["yes", "no", "maybe", "not sure", "never"]}, 12),
    ("demo: an integer", "How old is Ada?", {"type": "integer", "minimum": 1, "maximum": 120}, 6),
    ("demo: a city", "Where do you live?", {"enum": ["Paris", "Prague", "Porto", "Oslo", "Rome", "Riga", 1]}, 12),
    ("demo: an array", "Numbers?", {"type": "array", "items": {"enum": [0, 1]}, "maxItems": 2}, 10),
    ("demo: a flag", "Is it on?", {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"],
                                   "additionalProperties": False}, 12),
]  # fmt: skip
"""name, instruction, schema, max_tokens: few token sequences, so that all of them can be enumerated."""


def list_demo_fixtures(checkpoint: str = BASELINE) -> list[Fixture]:
    """Build the fixtures of the embedded model under real schemas."""
    import constrain
    from constrain import demo as embedded

    model = load_checkpoint(checkpoint)
    out = []
    for name, instruction, schema, max_tokens in DEMO:
        constraint = constrain.compile(
            vocabulary=model.vocabulary, schema=schema, style=constrain.Style(whitespace="compact")
        )
        lm = CachedModel(model.on(embedded.compose_prompt(instruction, schema=schema)))
        out.append(build_fixture(name, lm, constraint, max_tokens, real=True))
    return out
