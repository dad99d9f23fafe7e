"""Particles as nodes of a prefix trie, and the proposals (moves) that extend a particle by one token.

Particles with the same text share a node, so the model is called once per distinct text and its mask is computed once.
The text of a node never changes, so copying a particle is copying a reference. A move is a token with a weight:

    E[exp(log_weight) 1{token = a}] = p(a | u) [a is allowed]        (all end tokens count as one)

If the model has a method `reorder(rows)`, it is called before each call with the row of the previous call that each
prefix extends (int64 [n], in the order of the prefixes), so that a cache can be gathered as by transformers'
`Cache.reorder_cache`.
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
"""Memory budget of a trie for rows and distributions; beyond it they are evicted and computed again when needed."""


class Move(NamedTuple):
    """A proposed token. token: None if the particle is dead. logprob: of the token under the model. logprob and
    log_weight are in nats.
    """

    token: int | None
    logprob: float
    log_weight: float


DEAD = Move(None, -np.inf, -np.inf)


class TokenLaw(NamedTuple):
    """The distribution of the next token under a mask.

    tokens: int64 [k], the allowed ones, an end token last if the text may end. logs: float64 [k], the model's
    log-probabilities, where the end token has the sum over all end tokens. mass: log of their sum. edges: float64 [k],
    cumulative weights that tokens are drawn by. proposal: float64 [k], the probabilities they are drawn with; None if
    these are the model's, renormalised, so that every token has the weight exp(mass).
    """

    tokens: NDArray[np.int64]
    logs: Floats
    mass: float
    edges: Floats
    proposal: Floats | None = None


class ParticleNode:
    """A text: that of its parent and one token more.

    row: the model's row at this text, while it is cached. ended: whether the token is an end token. logprob: of the
    text under the model. slot: row of this text in the last call of the model that included it. law, value: cached by
    movers and twists.
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
        """The tokens of the text, without an end token."""
        out, node = list[int](), self if not self.ended else self.parent
        while node is not None and node.parent is not None:
            out.append(node.token)
            node = node.parent
        return out[::-1]


class Prefixes:
    """The trie of the texts visited so far, with the model.

    calls: calls of the model; contexts: texts evaluated in them; checks: checks of the constraint, counted by moves;
    held: size of rows and distributions in bytes.
    """

    def __init__(self, lm: LanguageModel, constraint: Constraint) -> None:
        self.lm, self.constraint = lm, constraint
        self.ends = constraint.vocabulary.eos_ids
        self.reorder: Callable[[NDArray[np.int64]], None] | None = getattr(lm, "reorder", None)
        self.calls = self.contexts = self.checks = 0
        self.clear()

    def clear(self) -> None:
        """Remove all texts."""
        self.root = ParticleNode(None, -1, self.constraint.matcher(), 0.0, False)
        self.held = 0

    def begin(self) -> ParticleNode:
        """Return the node of the empty text, for a new population.

        Remove all texts first if the model has a cache to reorder or the memory budget is exceeded.
        """
        if self.reorder is not None or self.held > MOST_BYTES:
            self.clear()
        return self.root

    def let_go(self, nodes: Sequence[ParticleNode]) -> None:
        """Mark that particles have left these nodes: drop their rows and distributions if the memory budget is
        exceeded.
        """
        if self.held > MOST_BYTES:
            for node in nodes:
                node.row = node.law = None

    def child(self, node: ParticleNode, move: Move) -> ParticleNode:
        """Return the node of the text that `move` extends; create it if necessary."""
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
        """Call the model for the distinct texts of `nodes` that have no row yet. Raise ValueError for invalid rows."""
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
    """A proposal: chooses the next token at a node that has a row. left: number of remaining tokens, end token
    included.
    """

    def __call__(self, prefixes: Prefixes, node: ParticleNode, left: int, rng: np.random.Generator) -> Move: ...


class Masked:
    """Propose from the model's distribution under the mask, as `masked_sampling.draw_masked`; the weight is p / q.
    Distributions are cached at the nodes.
    """

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
        """Compute the distribution at a node, cache it and drop the row. listed: always compute a TokenLaw, never
        Masses.
        """
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
    """Propose in proportion to p(a) psi(ua) under the mask, for a twist that returns psi of all next tokens at once."""

    def __init__(self, twist: Future) -> None:
        super().__init__(PLAIN)
        self.twist = twist

    def remember(self, prefixes: Prefixes, node: ParticleNode, left: int, *, listed: bool = True) -> None:
        """Cache the distribution as a TokenLaw, since the twist applies to single tokens."""
        super().remember(prefixes, node, left, listed=True)

    def finish(self, tokens: NDArray[np.int64], logs: Floats, node: ParticleNode, left: int) -> TokenLaw:
        twisted = logs + self.twist.after(node.matcher, node.tokens, left, tokens)
        total = log_sum(twisted)
        if total == -np.inf:
            return TokenLaw(tokens, logs, -np.inf, logs)
        proposal = np.exp(twisted - total)
        return TokenLaw(tokens, logs, log_sum(logs), np.cumsum(proposal), proposal)


class Awrs:
    """Propose with few checks of single tokens, and with a mask only if many fail. method, budget: as in
    `awrs.draw_token`.
    """

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
    """Return the allowed tokens of positive probability (int64 [k]; an end token last, for all end tokens) and their
    logs.
    """
    return law_under(prefixes, node, node.matcher.mask() if left > 1 else None, None)


def law_under(
    prefixes: Prefixes, node: ParticleNode, mask: NDArray[np.int32] | None, tokens: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], Floats]:
    """Return the same as `law_of`, given the mask (None: only an end token is allowed) and optionally its tokens."""
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
    """Draw a token from the proposal of a distribution."""
    index = int(np.searchsorted(law.edges, rng.random() * law.edges[-1], side="right"))
    if index == len(law.edges):  # rounding can exceed the last possible token
        index = int(law.edges.searchsorted(law.edges[-1]))
    logprob = float(law.logs[index])
    log_weight = law.mass if law.proposal is None else logprob - float(np.log(law.proposal[index]))
    return Move(int(law.tokens[index]), logprob, log_weight)
