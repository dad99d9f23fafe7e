"""Particles as nodes of a prefix trie, and the moves that take them from a text to a text one token longer.

Particles with the same text are at the same node, so the model is asked once per distinct text and a mask is made
once; nodes never change, so to copy a particle is to point to its node. A move is a token with a weight:

    E[exp(log_weight) 1{token = a}] = p(a | u) [a may come]        (all end tokens count as one)

A model with a method `reorder(rows)` is told before each call which row of its last call every prefix goes on from
(int64 [n], the order of the prefixes): so a cache can be gathered as transformers' `Cache.reorder_cache` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from . import awrs
from .core.language_model import LanguageModel, check_mass, rows_after
from .core.masked_sampling import PLAIN, Proposal, apply_proposal
from .core.results import log_sum
from .core.token_masses import Masses, allowed_tokens, enumerate_tokens

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher
    from .token_rejection import Method
    from .twists import Future

__all__ = ["Awrs", "TokenLaw", "Masked", "Move", "Mover", "ParticleNode", "Prefixes", "Twisted", "law_of"]

Floats = NDArray[np.float64]

MOST_BYTES = 256 << 20
"""Of rows and laws that a trie keeps: more are forgotten and asked for again."""


class Move(NamedTuple):
    """token: None if there is none, and the particle is dead. logprob: of the token under the model. Both in nats."""

    token: int | None
    logprob: float
    log_weight: float


DEAD = Move(None, -np.inf, -np.inf)


class TokenLaw(NamedTuple):
    """tokens: int64 [k], those that may come, an end token last if the text may end; logs: float64 [k], the model's,
    the end's for all end tokens; mass: log of their sum. edges: float64 [k], running sums of what a token is drawn by.
    proposal: float64 [k], the probabilities of that, or None if they are the model's on these tokens: every token's
    weight is then exp(mass).
    """

    tokens: NDArray[np.int64]
    logs: Floats
    mass: float
    edges: Floats
    proposal: Floats | None = None


class ParticleNode:
    """A text: its parent's and one token more. row: the model's answer to it, while it is kept. ended: by an end token.

    logprob: of the text under the model. slot: its place in the last call of the model that it was part of.
    law, value: what a mover and a twist remember.
    """

    __slots__ = ("children", "depth", "ended", "law", "logprob", "matcher", "parent", "row", "slot", "token", "value")

    def __init__(self, parent: ParticleNode | None, token: int, matcher: Matcher, logprob: float, ended: bool) -> None:
        self.parent, self.token, self.matcher, self.logprob, self.ended = parent, token, matcher, logprob, ended
        self.depth: int = 0 if parent is None else parent.depth + (not ended)
        self.children: dict[int, ParticleNode] = {}
        self.row: NDArray[np.floating[Any]] | None = None
        self.law: TokenLaw | Masses | None = None
        self.value: float | None = None
        self.slot = 0

    @property
    def tokens(self) -> list[int]:
        """From the start, end token left out."""
        out, node = list[int](), self if not self.ended else self.parent
        while node is not None and node.parent is not None:
            out.append(node.token)
            node = node.parent
        return out[::-1]


class Prefixes:
    """The trie of the texts that were looked at, and the model that is asked about them.

    calls, contexts: of the model; checks: of the constraint, by moves that count them; held: bytes of rows and laws.
    """

    def __init__(self, lm: LanguageModel, constraint: Constraint) -> None:
        self.lm, self.constraint = lm, constraint
        self.ends = constraint.vocabulary.eos_ids
        self.reorder: Callable[[NDArray[np.int64]], None] | None = getattr(lm, "reorder", None)
        self.calls = self.contexts = self.checks = 0
        self.clear()

    def clear(self) -> None:
        """Forget all texts."""
        self.root = ParticleNode(None, -1, self.constraint.matcher(), 0.0, False)
        self.held = 0

    def begin(self) -> ParticleNode:
        """The empty text, for a new population: with a cache to be gathered, or too much kept, all is forgotten."""
        if self.reorder is not None or self.held > MOST_BYTES:
            self.clear()
        return self.root

    def let_go(self, nodes: Sequence[ParticleNode]) -> None:
        """Particles have left these nodes: what the model said there is kept only while there is room for it."""
        if self.held > MOST_BYTES:
            for node in nodes:
                node.row = node.law = None

    def child(self, node: ParticleNode, move: Move) -> ParticleNode:
        """The text one token longer."""
        assert move.token is not None
        found = node.children.get(move.token)
        if found is None:
            ended = move.token in self.ends
            matcher = node.matcher
            if not ended:
                matcher = matcher.fork()
                matcher.advance(move.token)
            found = ParticleNode(node, move.token, matcher, node.logprob + move.logprob, ended)
            node.children[move.token] = found
        return found

    def ask(self, nodes: Sequence[ParticleNode]) -> None:
        """Ask the model about each distinct text of `nodes` that it was not asked about. ValueError for wrong rows."""
        fresh = list(dict.fromkeys(node for node in nodes if node.row is None and node.law is None))
        if not fresh:
            return
        if self.reorder is not None and fresh[0].parent is not None:
            self.reorder(np.array([node.parent.slot for node in fresh if node.parent is not None], np.int64))
        rows = rows_after(self.lm, [node.tokens for node in fresh], self.constraint.vocabulary.size)
        self.calls, self.contexts = self.calls + 1, self.contexts + len(fresh)
        for slot, (node, row) in enumerate(zip(fresh, rows)):
            node.row, node.slot = row, slot
        self.held += rows.nbytes


class Mover(Protocol):
    """A proposal: one token after a node that the model was asked about. left: tokens that still fit, end included.

    rows: whether the model's whole row must be kept (else its law under the mask is).
    """

    def __call__(self, prefixes: Prefixes, node: ParticleNode, left: int, rng: np.random.Generator) -> Move: ...


class Masked:
    """By the mask, as `masked.draw` does: the weight is p / q. Laws are remembered at the nodes."""

    def __init__(self, proposal: Proposal = PLAIN) -> None:
        self.proposal = proposal

    def __call__(self, prefixes: Prefixes, node: ParticleNode, left: int, rng: np.random.Generator) -> Move:
        if node.law is None:
            self.remember(prefixes, node, left)
        law = node.law
        assert law is not None
        if isinstance(law, Masses):
            token, ends = law.place(rng.random()), prefixes.ends
            if token in ends:
                return Move(ends[0], law.log_of(ends), law.logmass)
            return Move(token, float(law.row[token]), law.logmass)
        return draw_move(law, rng) if law.mass > -np.inf else DEAD

    def remember(self, prefixes: Prefixes, node: ParticleNode, left: int, *, listed: bool = False) -> None:
        """Makes the law at a node and lets its row go. listed: as a Law in any case."""
        assert node.row is not None
        tokens, mask = None, None
        if left > 1:
            mask = node.matcher.mask()
            tokens = enumerate_tokens(mask)
            if tokens is None and self.proposal == PLAIN and not listed:
                masses = Masses(node.row, mask)
                if masses.logmass > -np.inf:
                    check_mass(masses.logmass)
                    prefixes.held += masses.nbytes - node.row.nbytes
                    node.law, node.row = masses, None
                    return
        law = self.finish(*law_under(prefixes, node, mask, tokens), node, left)
        check_mass(law.mass)
        prefixes.held += 24 * len(law.tokens) - node.row.nbytes
        node.law, node.row = law, None

    def finish(self, tokens: NDArray[np.int64], logs: Floats, node: ParticleNode, left: int) -> TokenLaw:
        if not len(logs):
            return TokenLaw(tokens, logs, -np.inf, logs)
        top = float(logs.max())
        edges = np.exp(logs - top).cumsum()
        mass = top + math.log(edges[-1])
        if self.proposal == PLAIN:
            return TokenLaw(tokens, logs, mass, edges)
        proposal = apply_proposal(logs, self.proposal)
        return TokenLaw(tokens, logs, mass, np.cumsum(proposal), proposal)


class Twisted(Masked):
    """By mask and twist together: q(a) in proportion to p(a) psi(ua), for a twist that knows all ua at once."""

    def __init__(self, twist: Future) -> None:
        super().__init__(PLAIN)
        self.twist = twist

    def remember(self, prefixes: Prefixes, node: ParticleNode, left: int, *, listed: bool = True) -> None:
        """Listed: the twist knows single tokens."""
        super().remember(prefixes, node, left, listed=True)

    def finish(self, tokens: NDArray[np.int64], logs: Floats, node: ParticleNode, left: int) -> TokenLaw:
        twisted = logs + self.twist.after(node.matcher, node.tokens, left, tokens)
        total = log_sum(twisted)
        if total == -np.inf:
            return TokenLaw(tokens, logs, -np.inf, logs)
        proposal = np.exp(twisted - total)
        return TokenLaw(tokens, logs, log_sum(logs), np.cumsum(proposal), proposal)


class Awrs:
    """By few checks, and a mask only where many fail: `awrs.step`. method, budget: as there."""

    def __init__(self, method: Method = awrs.DES_RAJ, budget: int | None = None) -> None:
        self.method, self.budget = method, budget

    def __call__(self, prefixes: Prefixes, node: ParticleNode, left: int, rng: np.random.Generator) -> Move:
        assert node.row is not None
        ends = prefixes.ends
        if left == 1:
            logprob = log_sum(node.row[list(ends)].astype(np.float64)) if node.matcher.is_complete else -np.inf
            return Move(ends[0], logprob, logprob) if logprob > -np.inf else DEAD
        made = awrs.draw_token(
            node.row, node.matcher.allows, rng,
            method=self.method, budget=self.budget, mask=node.matcher.mask, ends=ends,
        )  # fmt: skip
        prefixes.checks += made.checks
        if made.token is None:
            return DEAD
        logs = node.row[list(ends) if made.token in ends else [made.token]].astype(np.float64)
        return Move(ends[0] if made.token in ends else made.token, log_sum(logs), made.log_weight)


def law_of(prefixes: Prefixes, node: ParticleNode, left: int) -> tuple[NDArray[np.int64], Floats]:
    """Tokens that may come and have any probability (int64 [k]; an end token last, for all of them), and their logs."""
    return law_under(prefixes, node, node.matcher.mask() if left > 1 else None, None)


def law_under(
    prefixes: Prefixes, node: ParticleNode, mask: NDArray[np.int32] | None, tokens: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], Floats]:
    """The same where the mask is at hand (None: only an end may come), and perhaps its tokens."""
    row, ends = node.row, prefixes.ends
    assert row is not None
    complete = node.matcher.is_complete
    if mask is None:
        tokens = np.empty(0, np.int64)
    elif tokens is None:
        tokens = allowed_tokens(mask)
    if complete and len(tokens):
        for end in ends:
            tokens = tokens[tokens != end]
    logs = row[tokens].astype(np.float64)
    if complete:
        tokens = np.append(tokens, ends[0])
        logs = np.append(logs, log_sum(row[list(ends)].astype(np.float64)))
    possible = logs > -np.inf
    return (tokens, logs) if possible.all() else (tokens[possible], logs[possible])


def draw_move(law: TokenLaw, rng: np.random.Generator) -> Move:
    """A token by the law's proposal."""
    index = int(np.searchsorted(law.edges, rng.random() * law.edges[-1], side="right"))
    if index == len(law.edges):  # rounding may point behind the last possible token
        index = int(law.edges.searchsorted(law.edges[-1]))
    logprob = float(law.logs[index])
    log_weight = law.mass if law.proposal is None else logprob - float(np.log(law.proposal[index]))
    return Move(int(law.tokens[index]), logprob, log_weight)
