"""One population under a twist, with an exact look-ahead of one token.

With psi > 0 any values that are fixed before the population starts, and p the model under the mask:

    B(u) = p(end | u) + sum over tokens a of p(a | u) psi(ua)             of all particles, at every step:
    weight *= B(u) / psi(u), from now on psi(u) = B(u)                    what a step can come to is known before it
    resample if few particles hold the weight                            before the move: no twins
    draw a from q = (1 - eps) p(a | u) psi(ua) / B(u) + eps p(a | u) / z  z: all that is allowed; particles of one text
                                                                         draw in strata
    weight *= p(a | u) psi(ua) / (B(u) q(a))                              psi of an ended text is 1

The factors of psi cancel along each text, and a text that has ended weighs p(x) / q(x): the population is properly
weighted for p restricted to L whatever psi is (see `smc`). With psi = h, the probability that a text is completed, all
weights are Z. Source: Naesseth, Lindsten & Schön 2019, Elements of Sequential Monte Carlo, sections 3.1 and 3.3
(twisted targets, fully adapted proposals).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .core.results import log_sum
from .learned_twist.state_numbers import StateNumbers
from .learned_twist.value_table import Values
from .learned_twist.visited_prefixes import VisitedPrefix, VisitedPrefixes
from .lookahead import Lookahead, build_lookahead, find_slot
from .particles import Move, ParticleNode, Prefixes
from .populations import Population, Settings, log_potential

__all__ = ["Flat", "LearningTrie", "grow_twisted_population"]

DEFENSIVE = 0.02
"""eps: share of the proposal that ignores the twist."""
RELEARN = 8
"""Tokens after which a population may go on with values that were learned from it."""
DOUBT = 8.0
"""Nats below the value of its slot that the value of one visited text may go: its own is an estimate, too."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Flat:
    """The twist psi = 1: masked sampling with the look-ahead."""

    def of_slots(self, slots: Ints, left: int) -> Floats:
        """Return zeros, float64 [n]."""
        return np.zeros(len(slots))

    def of_pairs(self, slots: Ints, tokens: Ints, left: int) -> Floats:
        """Return zeros, float64 [n]."""
        return np.zeros(len(slots))

    def are_guesses(self, slots: Ints) -> NDArray[np.bool_]:
        """Return False for all, bool [n]."""
        return np.zeros(len(slots), np.bool_)


class LearningTrie:
    """The nodes of a trie of texts with what is learned from them: `visited` outlives the nodes.

    numbers: the states. most: texts beyond this number are drawn from, but not learned from.
    """

    def __init__(self, prefixes: Prefixes, numbers: StateNumbers, most: int) -> None:
        self.prefixes, self.numbers, self.most = prefixes, numbers, most
        self.visited = VisitedPrefixes()
        self._of_node: dict[int, VisitedPrefix] = {}  # by id of a node that `_nodes` keeps alive
        self._root: ParticleNode | None = None

    def begin(self) -> ParticleNode:
        """Return the node of the empty text, for a new population."""
        root = self.prefixes.begin()
        if root is not self._root:  # the nodes were dropped
            self._root, self._of_node = root, {}
            if self.visited.root is not None:
                self._of_node[id(root)] = self.visited.root
        return root

    def visited_at(self, node: ParticleNode) -> VisitedPrefix | None:
        """Return the visited text of a node, if there is one."""
        found = self._of_node.get(id(node))
        if found is None and node.parent is not None:
            parent = self._of_node.get(id(node.parent))
            found = None if parent is None else parent.children.get(node.token)
            if found is not None:
                self._of_node[id(node)] = found
        return found

    def look_ahead(self, node: ParticleNode, left: int) -> tuple[Lookahead, VisitedPrefix | None]:
        """Return the look-ahead at a node that has a row or a look-ahead, and its visited text."""
        visited = self.visited_at(node)
        ahead = node.distribution
        if not isinstance(ahead, Lookahead):
            known = None if visited is None else (visited.tokens, visited.slots)
            assert node.row is not None
            size = node.row.nbytes
            ahead = node.distribution = build_lookahead(self.prefixes, node, left, self.numbers, known)
            self.prefixes.cached_bytes += ahead.nbytes - size
            node.row = None
        if visited is None and len(self.visited) < self.most:
            visited = self._visit(node, left, ahead)
        return ahead, visited

    def _visit(self, node: ParticleNode, left: int, ahead: Lookahead) -> VisitedPrefix | None:
        parent = None if node.parent is None else self.visited_at(node.parent)
        if parent is None and node.parent is not None:
            return None
        prob = 1.0 if node.parent is None else math.exp(node.logprob - node.parent.logprob)
        visited = self.visited.add(parent, find_slot(node, self.numbers), node.token, prob, left)
        visited.tokens, visited.slots, visited.probs = ahead.tokens, ahead.slots, np.exp(ahead.logs)
        visited.rest_slot, visited.rest_prob = ahead.own_slot, math.exp(ahead.rest_log)
        visited.end_prob = math.exp(ahead.end_log)
        self._of_node[id(node)] = visited
        return visited


class _Step(NamedTuple):
    """The proposal at a text: for each followed token, the rest, and the end, in this order.

    log_ahead: log B. values: log psi, float64 [k + 2]. weights: log-weights of moves. edges: cumulative probabilities.
    """

    ahead: Lookahead
    log_ahead: float
    values: Floats
    weights: Floats
    edges: Floats


def grow_twisted_population(
    trie: LearningTrie, particles: int, settings: Settings, values: Values | Flat, rng: np.random.Generator,
    defensive: float = DEFENSIVE, relearn: Callable[[], Values] | None = None,
) -> Population:  # fmt: skip
    """Grow one population under the twist `values`, and add the texts that it visits to `trie`.

    settings: its threshold, resampling scheme, critic and max_tokens are used. defensive: eps, from 0 to 1. relearn:
    called after every RELEARN tokens for the values to go on with. They may depend on all that the population has
    found so far: every particle keeps the psi that it was drawn with until the next step divides by it.
    """
    prefixes, resample = trie.prefixes, settings.resample
    assert resample is not None
    nodes = [trie.begin()] * particles
    log_weights, psi = np.zeros(particles), np.zeros(particles)
    lines, resampled = np.arange(particles), 0
    for left in range(settings.max_tokens, 0, -1):
        live = [i for i in range(particles) if not nodes[i].ended and log_weights[i] > -np.inf]
        if not live:
            break
        texts = list(dict.fromkeys(nodes[i] for i in live))
        prefixes.fetch_rows(texts)
        if relearn is not None and left < settings.max_tokens and (settings.max_tokens - left) % RELEARN == 0:
            values = relearn()
        expected = {nodes[i]: float(psi[i]) for i in live}
        steps = {
            node: _prepare_step(*trie.look_ahead(node, left), values, left - 1, defensive, expected[node])
            for node in texts
        }
        prefixes.release_rows(texts)
        for i in live:
            log_ahead = steps[nodes[i]].log_ahead
            log_weights[i] += log_ahead - psi[i]
            psi[i] = log_ahead
        total = log_sum(log_weights)
        if total == -np.inf:
            break
        if np.exp(2 * total - log_sum(2 * log_weights)) < settings.threshold * particles:
            ancestors = resample(np.exp(log_weights - total), particles, rng)
            nodes = [nodes[i] for i in ancestors]
            psi, lines = psi[ancestors], lines[ancestors]
            log_weights = np.full(particles, total - np.log(particles))
            resampled += 1
        for i, point in _place_points(nodes, log_weights, rng):
            step = steps[nodes[i]]
            move, slot, psi[i] = _find_move(step, point, prefixes.ends[0], rng)
            had_newline = nodes[i].has_newline
            nodes[i] = prefixes.child(nodes[i], move)
            nodes[i].has_newline = had_newline or bool(prefixes.newlines[nodes[i].token])
            nodes[i].exit_rate = step.ahead.exit_rate_after(slot)
            log_weights[i] += move.log_weight
            if nodes[i].ended:
                log_weights[i] += log_potential(prefixes, nodes[i], left - 1, settings)
    unfinished = np.array([not node.ended for node in nodes])
    log_weights[unfinished] = -np.inf
    return Population(nodes, log_weights, len(np.unique(lines[~unfinished])), resampled, lines)


def _prepare_step(
    ahead: Lookahead, visited: VisitedPrefix | None, values: Values | Flat, left: int, defensive: float, expected: float
) -> _Step:
    """Compute B(u), psi and the proposal at a text. left: number of tokens after the next one. expected: log psi(u)."""
    psi = np.zeros(len(ahead.tokens) + 2)
    psi[:-2] = values.of_pairs(ahead.slots, ahead.tokens, left)
    guessed = values.are_guesses(np.append(ahead.slots, [ahead.own_slot, -1]))
    if visited is not None and isinstance(values, Values):
        for token, child in visited.children.items():
            if child.value is not None:
                at = int(ahead.tokens.searchsorted(token))
                if at < len(ahead.tokens) and ahead.tokens[at] == token:
                    psi[at] = max(math.log(child.value), psi[at] - DOUBT)
                    guessed[at] = False
    psi[-2] = values.of_slots(np.array([ahead.own_slot]), left)[0]
    logs = np.append(ahead.logs, [ahead.rest_log, ahead.end_log])
    if guessed.any():
        psi[guessed] -= _find_excess(logs + psi, guessed, expected)
    twisted = logs + psi
    log_ahead = log_sum(twisted)
    if log_ahead == -np.inf:
        return _Step(ahead, -np.inf, psi, twisted, twisted)
    target = np.exp(twisted - log_ahead)
    proposal = (1 - defensive) * target + defensive * np.exp(logs - ahead.log_mass) if defensive else target
    with np.errstate(divide="ignore", invalid="ignore"):
        corrections = twisted - log_ahead - np.log(proposal)
    weights = np.where(proposal > 0, corrections, 0.0) if defensive else np.zeros_like(psi)
    return _Step(ahead, log_ahead, psi, weights, np.cumsum(proposal))


def _find_excess(terms: Floats, guessed: NDArray[np.bool_], expected: float) -> float:
    """Return by how many nats the guesses among the terms of B(u) are to be lowered. terms: logs; expected: log psi(u).

    Guesses may fill B(u) up to what was expected of the text, or to twice what is known of it. If they could raise it
    further, the worst guess of many would draw all particles to texts that cannot be completed.
    """
    known, guesses = log_sum(terms[~guessed]), log_sum(terms[guessed])
    most = known
    if expected > known:
        most = max(known, expected + math.log1p(-math.exp(known - expected)))
    return max(0.0, guesses - most) if most > -np.inf else 0.0


def _place_points(
    nodes: list[ParticleNode], log_weights: Floats, rng: np.random.Generator
) -> list[tuple[int, np.float64]]:
    """Return the live particles, each with a point in [0, 1) to draw its token at.

    The k particles of one text have one point in each of k equal intervals. They came there by the same moves, so their
    weights are equal: it is enough that their points together are unbiased, and these are more even than independent
    ones.
    """
    copies: dict[ParticleNode, list[int]] = {}
    for i, node in enumerate(nodes):
        if not node.ended and log_weights[i] > -np.inf:
            copies.setdefault(node, []).append(i)
    placed = list[tuple[int, np.float64]]()
    for members in copies.values():
        placed.extend(zip(members, (rng.random(len(members)) + np.arange(len(members))) / len(members)))
    return placed


def _find_move(step: _Step, point: float, end: int, rng: np.random.Generator) -> tuple[Move, int, float]:
    """Return the move at a point in [0, 1), whose weight is that of the proposal alone, and slot and log psi of the
    text after it. Of the tokens that were not followed, one is drawn.
    """
    ahead, followed = step.ahead, len(step.ahead.tokens)
    index = int(np.searchsorted(step.edges, point * step.edges[-1], side="right"))
    if index == len(step.edges):  # rounding can exceed the last possible token
        index = int(step.edges.searchsorted(step.edges[-1]))
    weight, psi = float(step.weights[index]), float(step.values[index])
    if index < followed:
        return Move(int(ahead.tokens[index]), float(ahead.logs[index]), weight), int(ahead.slots[index]), psi
    if index == followed:
        assert ahead.rest is not None
        token, logprob = ahead.rest.draw(rng)
        return Move(token, logprob, weight), ahead.own_slot, psi
    return Move(end, ahead.end_log, weight), ahead.own_slot, 0.0
