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

from ..base.cached_property import cached_property
from ..base.errors import check_type
from . import awrs
from .core.language_model import LanguageModel, check_mass, rows_after
from .core.masked_sampling import PLAIN, Proposal, apply_proposal
from .core.results import log_sum
from .core.token_masses import Masses, allowed_tokens, enumerate_tokens, sum_ends
from .late_mask import SharedRow

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher
    from .token_rejection import Method
    from .twists import Future

__all__ = [
    "Awrs",
    "TokenDistribution",
    "Masked",
    "Move",
    "Mover",
    "ParticleNode",
    "Prefixes",
    "Twisted",
    "list_allowed_logprobs",
]

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


class TokenDistribution(NamedTuple):
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

    matcher: after this text; that of the parent if the token is an end token.
    row: the model's row at this text, while it is cached. exit_rate, has_newline: for learned
    twists, see `lookahead`; whether the text has a line feed. ended: whether the token is an end token. logprob: of the
    text under the model. slot: row of this text in the last call of the model that included it. distribution, value:
    cached by movers and twists (a TokenDistribution, Masses, Lookahead or SharedRow, and log psi).
    """

    __slots__ = (
        "children",
        "depth",
        "distribution",
        "ended",
        "exit_rate",
        "has_newline",
        "logprob",
        "matcher",
        "parent",
        "row",
        "slot",
        "token",
        "value",
    )

    def __init__(self, parent: ParticleNode | None, token: int, matcher: Matcher, logprob: float, ended: bool) -> None:
        self.parent, self.token, self.matcher, self.logprob, self.ended = parent, token, matcher, logprob, ended
        self.depth: int = 0 if parent is None else parent.depth + (not ended)
        self.children: dict[int, ParticleNode] = {}
        self.row: NDArray[np.floating[Any]] | None = None
        self.distribution: object | None = None
        self.value: float | None = None
        self.slot, self.exit_rate, self.has_newline = 0, math.nan, False

    @property
    def tokens(self) -> list[int]:
        """The tokens of the text, without an end token."""
        return self.matcher.tokens


class Prefixes:
    """The trie of the texts visited so far, with the model.

    calls: calls of the model; contexts: texts evaluated in them; checks: checks of the constraint, counted by moves;
    cached_bytes: size of rows and distributions in bytes. revisits: whether more than one population will be grown.
    """

    def __init__(self, lm: LanguageModel, constraint: Constraint) -> None:
        self.lm, self.constraint, self.revisits = lm, constraint, True
        self.ends = constraint.vocabulary.eos_ids
        self.reorder: Callable[[NDArray[np.int64]], None] | None = getattr(lm, "reorder", None)
        self.calls = self.contexts = self.checks = 0
        self.clear()

    @cached_property
    def newlines(self) -> NDArray[np.bool_]:
        """Whether each token has a line feed: bool [V]."""
        vocabulary = self.constraint.vocabulary
        places = np.flatnonzero(np.frombuffer(vocabulary.blob, np.uint8) == ord("\n"))
        found = np.zeros(vocabulary.size, np.bool_)
        found[np.searchsorted(vocabulary.offsets, places, side="right") - 1] = True
        return found

    def clear(self) -> None:
        """Remove all texts."""
        self.root = ParticleNode(None, -1, self.constraint.matcher(), 0.0, False)
        self.cached_bytes = 0

    def begin(self) -> ParticleNode:
        """Return the node of the empty text, for a new population.

        Remove all texts first if the model has a cache to reorder or the memory budget is exceeded.
        """
        if self.reorder is not None or self.cached_bytes > MOST_BYTES:
            self.clear()
        return self.root

    def release_rows(self, nodes: Sequence[ParticleNode]) -> None:
        """Mark that particles have left these nodes: drop their rows if no other population will visit them, and their
        distributions, too, if the memory budget is exceeded.
        """
        if not self.revisits:  # the next rows then take the same memory, without page faults
            for node in nodes:
                node.row = None
        if self.cached_bytes > MOST_BYTES:
            for node in nodes:
                node.row = node.distribution = None

    def child(self, node: ParticleNode, move: Move) -> ParticleNode:
        """Return the node of the text that `move` extends; create it if necessary."""
        assert move.token is not None
        child = node.children.get(move.token)
        if child is None:
            ended = move.token in self.ends
            matcher = node.matcher
            if not ended:
                matcher = matcher.fork()
                matcher.advance(move.token)
            child = ParticleNode(node, move.token, matcher, node.logprob + move.logprob, ended)
            node.children[move.token] = child
        return child

    def fetch_rows(self, nodes: Sequence[ParticleNode], *, maxima: bool = True) -> None:
        """Call the model for the distinct texts of `nodes` that have no row yet. Raise ValueError for invalid rows.

        maxima: as in `rows_after`.
        """
        missing = list(dict.fromkeys(node for node in nodes if node.row is None and node.distribution is None))
        if not missing:
            return
        if self.reorder is not None and missing[0].parent is not None:
            self.reorder(np.array([node.parent.slot for node in missing if node.parent is not None], np.int64))
        size = self.constraint.vocabulary.size
        rows = rows_after(self.lm, [node.tokens for node in missing], size, maxima=maxima)
        self.calls, self.contexts = self.calls + 1, self.contexts + len(missing)
        for slot, (node, row) in enumerate(zip(missing, rows)):
            node.row, node.slot = row, slot
        self.cached_bytes += rows.nbytes


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
        check_type("proposal", proposal, Proposal, "give a sampling.Proposal")
        self.proposal = proposal

    @property
    def is_plain(self) -> bool:
        """Whether tokens are proposed by the model's own probabilities under the mask."""
        return self.proposal == PLAIN

    def __call__(self, prefixes: Prefixes, node: ParticleNode, left: int, rng: np.random.Generator) -> Move:
        if node.distribution is None:
            self.cache_distribution(prefixes, node, left)
        distribution = node.distribution
        if isinstance(distribution, Masses):
            token, ends = distribution.token_at(rng.random()), prefixes.ends
            if token in ends:
                return Move(ends[0], distribution.log_of(ends), distribution.logmass)
            return Move(token, float(distribution.row[token]), distribution.logmass)
        assert isinstance(distribution, TokenDistribution)
        return draw_move(distribution, rng) if distribution.mass > -np.inf else DEAD

    def cache_distribution(self, prefixes: Prefixes, node: ParticleNode, left: int, *, listed: bool = False) -> None:
        """Compute the distribution at a node, cache it and drop the row. listed: always compute a TokenDistribution,
        never Masses.
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
                    prefixes.cached_bytes += masses.nbytes - node.row.nbytes
                    node.distribution, node.row = masses, None
                    return
        distribution = self.build_distribution(*list_logprobs_under(prefixes, node, mask, tokens), node, left)
        check_mass(distribution.mass)
        prefixes.cached_bytes += 24 * len(distribution.tokens) - node.row.nbytes
        node.distribution, node.row = distribution, None

    def build_distribution(
        self, tokens: NDArray[np.int64], logs: Floats, node: ParticleNode, left: int
    ) -> TokenDistribution:
        if not len(logs):
            return TokenDistribution(tokens, logs, -np.inf, logs)
        top = float(logs.max())
        edges = np.exp(logs - top).cumsum()
        mass = top + math.log(edges[-1])
        if self.proposal == PLAIN:
            return TokenDistribution(tokens, logs, mass, edges)
        proposal = apply_proposal(logs, self.proposal)
        return TokenDistribution(tokens, logs, mass, np.cumsum(proposal), proposal)


class Twisted(Masked):
    """Propose in proportion to p(a) psi(ua) under the mask, for a twist that returns psi of all next tokens at once."""

    def __init__(self, twist: Future) -> None:
        super().__init__(PLAIN)
        self.twist = twist

    @property
    def is_plain(self) -> bool:
        """False: the twist is in the proposal."""
        return False

    def cache_distribution(self, prefixes: Prefixes, node: ParticleNode, left: int, *, listed: bool = True) -> None:
        """Cache the distribution as a TokenDistribution, since the twist applies to single tokens."""
        super().cache_distribution(prefixes, node, left, listed=True)

    def build_distribution(
        self, tokens: NDArray[np.int64], logs: Floats, node: ParticleNode, left: int
    ) -> TokenDistribution:
        twisted = logs + self.twist.after(node.matcher, node.tokens, left, tokens)
        total = log_sum(twisted)
        if total == -np.inf:
            return TokenDistribution(tokens, logs, -np.inf, logs)
        proposal = np.exp(twisted - total)
        return TokenDistribution(tokens, logs, log_sum(logs), np.cumsum(proposal), proposal)


class Awrs:
    """Propose with few checks of single tokens, and with a mask only if many fail. method, budget: as in
    `awrs.draw_token`. Particles of the same text share what is computed of its row.
    """

    def __init__(self, method: Method = awrs.LATE_MASK, budget: int | None = None) -> None:
        self.method, self.budget = method, budget

    def __call__(self, prefixes: Prefixes, node: ParticleNode, left: int, rng: np.random.Generator) -> Move:
        assert node.row is not None
        ends = prefixes.ends
        if left == 1:
            logprob = sum_ends(node.row, ends) if node.matcher.is_complete else -np.inf
            return Move(ends[0], logprob, logprob) if logprob > -np.inf else DEAD
        shared = node.distribution
        if not isinstance(shared, SharedRow):
            shared = node.distribution = SharedRow(node.depth)
        drawn = awrs.draw_token(
            node.row, node.matcher.allows, rng,
            method=self.method, budget=self.budget, mask=node.matcher.mask, ends=ends, shared=shared,
        )  # fmt: skip
        prefixes.checks += drawn.checks
        if drawn.token is None:
            return DEAD
        if drawn.token in ends:
            return Move(ends[0], sum_ends(node.row, ends), drawn.log_weight)
        return Move(drawn.token, float(node.row[drawn.token]), drawn.log_weight)


def list_allowed_logprobs(prefixes: Prefixes, node: ParticleNode, left: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the allowed tokens of positive probability (int64 [k]; an end token last, for all end tokens) and their
    logs.
    """
    return list_logprobs_under(prefixes, node, node.matcher.mask() if left > 1 else None, None)


def list_logprobs_under(
    prefixes: Prefixes, node: ParticleNode, mask: NDArray[np.int32] | None, tokens: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], Floats]:
    """Return the same as `list_allowed_logprobs`, given the mask (None: only an end token is allowed) and optionally
    its tokens.
    """
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
        logs = np.append(logs, sum_ends(row, ends))
    possible = logs > -np.inf
    return (tokens, logs) if possible.all() else (tokens[possible], logs[possible])


def draw_move(distribution: TokenDistribution, rng: np.random.Generator) -> Move:
    """Draw a token from the proposal of a distribution."""
    index = int(np.searchsorted(distribution.edges, rng.random() * distribution.edges[-1], side="right"))
    if index == len(distribution.edges):  # rounding can exceed the last possible token
        index = int(distribution.edges.searchsorted(distribution.edges[-1]))
    logprob = float(distribution.logs[index])
    log_weight = (
        distribution.mass if distribution.proposal is None else logprob - float(np.log(distribution.proposal[index]))
    )
    return Move(int(distribution.tokens[index]), logprob, log_weight)
