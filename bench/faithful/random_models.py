"""Small random models and constraints for the study of coverage, with the traps that estimates fall into.

The truth is known by brute force: every token sequence is multiplied out and put to an oracle that does not know the
engine (`tests.markov_factory.Case`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from constrain.compilation.constraint_compiler import compile as compile_constraint
from constrain.sampling.core.masked_sampling import Proposal
from constrain.sampling.particles import Masked
from tests.markov_factory import LETTERS, Case, ChainModel, Tokens, trapped

__all__ = ["KINDS", "StudiedModel", "make_model"]

A, B, C = 0, 1, 2
"""Tokens of LETTERS."""


@dataclass(frozen=True)
class StudiedModel:
    """kind: one of KINDS. options: of a sampler, by its name; a sampler that is missing is not studied."""

    kind: str
    case: Case
    options: dict[str, dict[str, Any]]

    def probability(self, event: Callable[[str], bool]) -> float:
        """The probability of an event under p given L."""
        law = self.case.exact()
        return math.fsum(p for tokens, p in law.items() if event(self.spell(tokens)))

    def spell(self, tokens: Tokens) -> str:
        """The text of some tokens."""
        return b"".join(self.case.constraint.vocabulary.tokens[token] or b"" for token in tokens).decode()


PLAIN_OPTIONS: dict[str, dict[str, Any]] = {
    "masked": {}, "awrs": {}, "asap": {}, "exact": {}, "without_replacement": {}, "smc": {},
    "pimh": {"particles": 8}, "markov": {},
}  # fmt: skip


def make_plain(seed: int) -> StudiedModel:
    """A random automaton, as in the tests, and a random model of order 1 or 2: masks distort, but no trap is set."""
    case = trapped(f"plain {seed}", seed, states=4 + seed % 4, order=1 + seed % 2, max_tokens=5 + seed % 5)
    return StudiedModel("plain", case, PLAIN_OPTIONS)


def pattern_case(name: str, pattern: str, rows: np.ndarray[Any, np.dtype[np.float64]], max_tokens: int) -> Case:
    """A pattern over a, b and c; the rows of the model are those after a, b, c and the end, and the first one."""
    oracle = re.compile(pattern.encode())
    constraint = compile_constraint(vocabulary=LETTERS, regex=pattern)
    lm = ChainModel(np.log(rows / rows.sum(axis=1, keepdims=True)), 1)
    return Case(name, lm, constraint, lambda text: oracle.fullmatch(text) is not None, max_tokens)


def random_rows(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Rows of a model over a, b, c and the end, none of them below 0.02."""
    return np.maximum(rng.dirichlet(np.ones(4), 5), 0.02)


def make_hidden(seed: int) -> StudiedModel:
    """Most of Z follows a first token c, of a probability of 1e-7 and less, that draws never take."""
    rng = np.random.default_rng([seed, 1])
    rows = random_rows(rng)
    rows[:, A] *= 0.01  # what follows b takes three unlikely a's
    pattern = "baaa[ab]?|c[abc]{1,3}"
    rows[4] = [0.3, 0.7, 1e-7, 1e-3]
    case = pattern_case(f"hidden {seed}", pattern, rows, 6)
    visible = math.fsum(p for tokens, p in case.law().items() if tokens[0] == B)
    hidden = math.fsum(p for tokens, p in case.law().items() if tokens[0] == C) / 1e-7
    rows[4, C] = min(visible / hidden * math.exp(rng.uniform(0.5, 4)), 1e-6)
    return StudiedModel("hidden mode", pattern_case(case.name, pattern, rows, 6), PLAIN_OPTIONS)


def make_truncated(seed: int) -> StudiedModel:
    """The proposal takes the one or two likeliest tokens only."""
    case = make_plain(seed).case
    proposal = [Proposal(top_k=1), Proposal(top_k=2), Proposal(top_p=0.5), Proposal(temperature=0)][seed % 4]
    options: dict[str, dict[str, Any]] = {
        "masked": {"proposal": proposal}, "smc": {"move": Masked(proposal)},
        "pimh": {"move": Masked(proposal), "particles": 8},
    }  # fmt: skip
    return StudiedModel("truncated", case, options)


def make_uneven(seed: int) -> StudiedModel:
    """A first token a, which nearly all draws take, leads to little; b, which few take, leads to most of Z."""
    rng = np.random.default_rng([seed, 2])
    rows = random_rows(rng)
    rows[4] = [1.0, 10 ** rng.uniform(-3.5, -1.5), 1e-9, 1e-9]
    rows[A] = [0.9, 1e-4, 0.1, 0.02]
    pattern = "aa?b[ab]|b[abc]{1,2}"
    options = {**PLAIN_OPTIONS, "pimh": {"particles": 2, "twist": None}}
    return StudiedModel("low acceptance", pattern_case(f"uneven {seed}", pattern, rows, 6), options)


def make_few(seed: int) -> StudiedModel:
    """Two or three texts."""
    rng = np.random.default_rng([seed, 3])
    pattern = "|".join(rng.choice(["ab", "ba", "cab", "bbb", "c"], size=2 + seed % 2, replace=False).tolist())
    return StudiedModel("few texts", pattern_case(f"few {seed}", pattern, random_rows(rng), 5), PLAIN_OPTIONS)


KINDS: dict[str, Callable[[int], StudiedModel]] = {
    "plain": make_plain,
    "hidden mode": make_hidden,
    "truncated": make_truncated,
    "low acceptance": make_uneven,
    "few texts": make_few,
}
"""Only "plain" has no trap."""


def make_model(number: int) -> StudiedModel:
    """Model `number`: every second one is plain, the others take the traps in turn."""
    traps = [kind for kind in KINDS if kind != "plain"]
    kind = "plain" if number % 2 == 0 else traps[number // 2 % len(traps)]
    return KINDS[kind](number)
