"""One population under a twist, with an exact look-ahead of one token, in which no text is held twice.

With psi > 0 any values that are fixed before the population starts, and p the model under the mask:

    B(u) = p(end | u) + sum over tokens a of p(a | u) psi(ua)              of all texts, at every step
    s(u, a) = w(u) [(1 - eps) p(a | u) psi(ua) + eps B(u) p(a | u) / z]    score of a candidate, the text ua; z: of all
                                                                          that is allowed
    choose ua with probability pi, and let w(ua) = w(u) p(a | u) / pi

Every text that may end is ended with certainty, with the weight w(u) p(end | u), and needs no row of the model any
more, so the end is no candidate. Of the ended texts as many are kept as there are particles, with probabilities in
proportion to w, so that the sum of their weights is unchanged.

If few of the texts that go on hold the weight w B, all of their candidates compete without replacement: pi =
min(1, c s), with c such that pi sums to the number of particles. Else the particles are divided among the texts, at
least one each, in proportion to w B, and the candidates of one text compete for its particles. So what a step can come
to is known before the choice, and what weighs enough is kept with certainty: no other choice of as many candidates has
less variance at this step.

What is not known is how far the values of the chosen texts are from psi, which their rows of the model will show. With
v(ua) the spread of the slot of ua (0 if ua was visited), and shares q in proportion to s, the sum of the weights is
expected to change by sum of q^2 v (1 / pi - 1), relative to its square. Where that is much, more candidates are chosen,
up to WIDEST times the number of particles (WIDEST_MEAN times in the mean), and fewer again at the next step: the
variance of the estimate, a sum over steps of such terms, is least for its rows if the number of texts at each step is
in proportion to the root of the step's term with one text. How many are chosen depends on what was known before only,
so the estimate stays unbiased.

E[w(x)] = p(x) for every text x of L whatever psi is, since all factors are p / pi: the sum of the weights is an
unbiased estimate of Z (see `smc`). With psi = h, the probability that a text is completed, all scores of a step sum to
Z. Sources: Fearnhead & Clifford 2003, section 3.2 (choices without replacement); Naesseth, Lindsten & Schön 2019,
Elements of Sequential Monte Carlo, sections 3.1 and 3.3 (twisted targets, fully adapted proposals); Lee & Whiteley
2018, Variance estimation in the particle filter, Biometrika 105 (numbers of particles that vary from step to step).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
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
from .resampling import find_inclusion_probabilities, resample_without_replacement

__all__ = ["Flat", "LearningTrie", "grow_twisted_population"]

DEFENSIVE = 0.02
"""eps: share of the proposal that ignores the twist."""
RELEARN = 8
"""Tokens after which a population may go on with values that were learned from it."""
STEP_VARIANCE = 0.001
"""Expected relative variance of a step with as many texts as particles, beyond which it gets more texts."""
WIDEST, WIDEST_MEAN = 4, 2
"""Most texts per particle of a step, and in the mean of the steps so far."""
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

    def look_ahead(self, node: ParticleNode, left: int, weight: float = 1.0) -> tuple[Lookahead, VisitedPrefix | None]:
        """Return the look-ahead at a node that has a row or a look-ahead, and its visited text. weight: for how many
        texts it counts in what is learned, if not for more after an earlier visit.
        """
        visited = self.visited_at(node)
        ahead = node.distribution
        if not isinstance(ahead, Lookahead):
            known = None if visited is None else (visited.tokens, visited.slots)
            assert node.row is not None
            size = node.row.nbytes
            ahead = node.distribution = build_lookahead(self.prefixes, node, left, self.numbers, known)
            self.prefixes.cached_bytes += ahead.nbytes - size
            node.row = None
        if visited is not None:
            visited.weight = max(visited.weight, weight)
        elif len(self.visited) < self.most:
            visited = self._visit(node, left, ahead)
            if visited is not None:
                visited.weight = weight
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
    """What may follow a text: each followed token, the rest, and the end, in this order.

    log_ahead: log B. logs: log-probabilities under the model. psi: log-values of the texts that they lead to. scores:
    log of s(u, a) / w(u), which sum to B. All are float64 [k + 2]. visited: indices of tokens after which the text was
    visited before.
    """

    ahead: Lookahead
    log_ahead: float
    logs: Floats
    psi: Floats
    scores: Floats
    visited: list[int]


class _Text(NamedTuple):
    """A text of a population. log_weight: log w. psi: log-value that it was chosen by. line: number of the first choice
    on the way to it that was left to chance, -1 if all were certain.
    """

    node: ParticleNode
    log_weight: float
    psi: float
    line: int


class _Candidates(NamedTuple):
    """What the texts of a population may become, text by text: so systematic choices are spread over the texts.

    owners: index of the text. places: index in its `_Step`. parts: into how many candidates the rest of a text was
    divided (int64 [n]). shares: scores relative to the largest, all positive (float64 [n]). effective: effective number
    of texts, by w B. log_mass: log of the sum of the scores. spreads: of the texts that candidates become, see
    `value_table` (float64 [n]); None if they are not known.
    """

    owners: Ints
    places: Ints
    parts: Ints
    shares: Floats
    effective: float
    log_mass: float
    spreads: Floats | None


def grow_twisted_population(
    trie: LearningTrie, particles: int, settings: Settings, values: Values | Flat, rng: np.random.Generator,
    defensive: float = DEFENSIVE, relearn: Callable[[], Values] | None = None,
) -> Population:  # fmt: skip
    """Grow one population under the twist `values`, and add the texts that it visits to `trie`.

    particles: texts that are returned, and that go on at the same time, at most; up to WIDEST times as many go on where
    the values of what comes next are uncertain. settings: its threshold, critic and max_tokens are used. If fewer texts
    than particles are found, each is divided among several particles, unless the settings ask for resampling without
    replacement. defensive: eps, from 0 to 1.
    relearn: called after every RELEARN tokens for the values to go on with. They may depend on all that the population
    has found so far.
    """
    prefixes, resampled, room, lines = trie.prefixes, 0, 0, itertools.count()
    live, ended = [_Text(trie.begin(), 0.0, 0.0, -1)], list[_Text]()
    for left in range(settings.max_tokens, 0, -1):
        nodes = [text.node for text in live]
        prefixes.fetch_rows(nodes)
        if relearn is not None and left < settings.max_tokens and (settings.max_tokens - left) % RELEARN == 0:
            values = relearn()
        mean = log_sum(np.array([text.log_weight + text.psi for text in live + ended])) - math.log(particles)
        steps = {}
        for text in live:
            weight = math.exp(min(0.0, text.log_weight + text.psi - mean))
            found = trie.look_ahead(text.node, left, weight)
            steps[text.node] = _prepare_step(*found, values, left - 1, defensive, text.psi)
        prefixes.release_rows(nodes)
        ended = _keep_ended(ended, [_end(prefixes, text, steps[text.node]) for text in live], prefixes, particles,
                            settings, lines, rng)  # fmt: skip
        candidates = _list_candidates(live, steps, values, particles)
        if not len(candidates.shares):
            break
        room += WIDEST_MEAN * particles
        width = _choose_width(candidates, ended, particles, min(room, WIDEST * particles))
        room -= width
        if candidates.effective < settings.threshold * particles or len(live) > width:
            chosen, probabilities = resample_without_replacement(candidates.shares, width, rng)
            resampled += len(chosen) < len(candidates.shares)
        else:
            chosen, probabilities = _choose_children(candidates, width, rng)
        live = _extend(prefixes, live, steps, candidates, zip(chosen.tolist(), probabilities.tolist()), lines, rng)
    return _finish(ended, prefixes, particles, settings, resampled)


def _end(prefixes: Prefixes, text: _Text, step: _Step) -> _Text:
    """Return a text with the end token, of weight 0 if it may not end."""
    if step.ahead.end_log == -np.inf:
        return text._replace(log_weight=-np.inf)
    node = prefixes.child(text.node, Move(prefixes.ends[0], step.ahead.end_log, 0.0))
    return _Text(node, text.log_weight + step.ahead.end_log, 0.0, text.line)


def _keep_ended(
    ended: list[_Text], new: list[_Text], prefixes: Prefixes, particles: int, settings: Settings,
    lines: Iterator[int], rng: np.random.Generator,
) -> list[_Text]:  # fmt: skip
    """Return ended texts with those that have just ended, at most as many as there are particles.

    Those that are kept have the same sum of weights. The critic judges only new ones that are kept.
    """
    known = {text.node for text in ended}
    texts = [text for text in ended + new if text.log_weight > -np.inf]
    if not texts:
        return []
    log_weights = np.array([text.log_weight for text in texts])
    shares = np.maximum(np.exp(log_weights - log_weights.max()), 1e-300)
    chosen, probabilities = resample_without_replacement(shares, particles, rng)
    kept = []
    for index, probability in zip(chosen.tolist(), probabilities.tolist()):
        text = texts[index]
        log_weight = text.log_weight - math.log(probability)
        if text.node not in known:
            log_weight += log_potential(prefixes, text.node, 0, settings)
        if log_weight > -np.inf:
            line = text.line if text.line >= 0 or probability == 1 else next(lines)
            kept.append(text._replace(log_weight=log_weight, line=line))
    return kept


def _list_candidates(
    texts: list[_Text], steps: dict[ParticleNode, _Step], values: Values | Flat, particles: int
) -> _Candidates:
    """Return the candidates of all texts.

    The rest of a text, one candidate that stands for many tokens, is divided into parts that weigh no more than a
    particle does on average, so that several of its tokens can be drawn.
    """
    listed = [steps[text.node] for text in texts]
    scores = [step.scores[:-1] for step in listed]
    sizes = np.array([len(one) for one in scores])
    owners = np.repeat(np.arange(len(texts)), sizes)
    places = np.concatenate([np.arange(size) for size in sizes.tolist()])
    logs = np.concatenate(scores) + np.array([text.log_weight for text in texts])[owners]
    used = np.flatnonzero(logs > -np.inf)
    owners, places = owners[used], places[used]
    # Every candidate of positive weight needs a positive score, even if it underflows relative to the largest.
    shares = np.maximum(np.exp(logs[used] - logs.max()), 1e-300) if len(used) else np.empty(0)
    by_text, parts = np.bincount(owners, shares), np.ones(len(used), np.int64)
    rests = places == sizes[owners] - 1
    parts[rests] = np.ceil(shares[rests] * particles / shares.sum()).astype(np.int64)
    effective = float(by_text.sum() ** 2 / (by_text**2).sum()) if len(used) else 0.0
    spreads = None
    if isinstance(values, Values) and values.has_spreads and len(used):
        slots = np.concatenate([np.append(each.ahead.slots, each.ahead.own_slot) for each in listed])
        spreads = values.spreads_of(slots)
        starts = np.cumsum(sizes) - sizes
        spreads[[start + place for start, each in zip(starts.tolist(), listed) for place in each.visited]] = 0.0
        spreads = np.repeat(spreads[used], parts)
    return _Candidates(
        np.repeat(owners, parts), np.repeat(places, parts), np.repeat(parts, parts), np.repeat(shares / parts, parts),
        effective, log_sum(logs), spreads,
    )  # fmt: skip


def _choose_width(candidates: _Candidates, ended: list[_Text], particles: int, most: int) -> int:
    """Return how many candidates to choose: as many as particles, or more where their values are uncertain."""
    if candidates.spreads is None:
        return particles
    shares = candidates.shares / candidates.shares.sum()
    probabilities = find_inclusion_probabilities(shares, particles)
    done = log_sum(np.array([text.log_weight for text in ended])) if ended else -np.inf
    going = math.exp(candidates.log_mass - np.logaddexp(candidates.log_mass, done))
    variance = going**2 * float((shares**2 * candidates.spreads * (1 / probabilities - 1)).sum())
    return min(max(particles, round(particles * math.sqrt(variance / STEP_VARIANCE))), most)


def _choose_children(candidates: _Candidates, particles: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Return candidates of each text (int64 [k]), at least one, and the probabilities that they had (float64 [k])."""
    starts = np.flatnonzero(np.diff(candidates.owners, prepend=-1))
    groups = np.split(candidates.shares, starts[1:])
    logs, sizes = np.log([shares.sum() for shares in groups]), np.array([len(shares) for shares in groups])
    found = [
        resample_without_replacement(shares, count, rng)
        for shares, count in zip(groups, divide_particles(logs, particles, sizes).tolist())
    ]
    chosen = np.concatenate([start + places for start, (places, _) in zip(starts.tolist(), found)])
    return chosen, np.concatenate([probabilities for _, probabilities in found])


def _extend(
    prefixes: Prefixes, texts: list[_Text], steps: dict[ParticleNode, _Step], candidates: _Candidates,
    choices: Iterable[tuple[int, float]], lines: Iterator[int], rng: np.random.Generator,
) -> list[_Text]:  # fmt: skip
    """Return the texts that candidates stand for. choices: index of each, and the probability that it was chosen with.
    lines: numbers for new lines.

    From the rest of a text, one token is drawn. If it is drawn for two parts of the rest, they are one text again.
    """
    found = dict[ParticleNode, _Text]()
    for index, probability in choices:
        text, place = texts[candidates.owners[index]], int(candidates.places[index])
        step = steps[text.node]
        token, logprob, slot = _find_move(step, place, rng)
        node = prefixes.child(text.node, Move(token, logprob, 0.0))
        node.has_newline = text.node.has_newline or bool(prefixes.newlines[token])
        node.exit_rate = step.ahead.exit_rate_after(slot)
        log_weight = text.log_weight + float(step.logs[place]) - math.log(probability * candidates.parts[index])
        is_certain = probability == 1 and place != len(step.ahead.tokens)
        line = text.line if is_certain or text.line >= 0 else next(lines)
        if node in found:
            log_weight, line = float(np.logaddexp(log_weight, found[node].log_weight)), found[node].line
        found[node] = _Text(node, log_weight, float(step.psi[place]), line)
    return list(found.values())


def _finish(texts: list[_Text], prefixes: Prefixes, particles: int, settings: Settings, resampled: int) -> Population:
    """Return the population of texts that have ended.

    Texts whose choices were all certain are lines of their own. The sum of the weights estimates Z, in a Population
    their mean does.
    """
    if not texts:
        return Population([prefixes.root] * particles, np.full(particles, -np.inf), 0, resampled)
    log_weights = np.array([text.log_weight for text in texts])
    lines = np.array([text.line for text in texts])
    alone = lines < 0
    lines[alone] = 1 + lines.max() + np.arange(alone.sum())
    copies = np.ones(len(texts), np.int64) if settings.resample is None else divide_particles(log_weights, particles)
    log_weights = np.repeat(log_weights - np.log(copies) + math.log(copies.sum()), copies)
    nodes = [text.node for text, count in zip(texts, copies.tolist()) for _ in range(count)]
    return Population(nodes, log_weights, len(np.unique(lines)), resampled, np.repeat(lines, copies))


def divide_particles(log_weights: Floats, particles: int, most: Ints | None = None) -> Ints:
    """Return how many of at least as many particles each text gets (int64 [n]): one, and the others one by one to the
    text with the largest weight per particle. most: how many each can use (int64 [n], positive), None for any number.
    """
    copies = np.ones(len(log_weights), np.int64)
    queue = [(-log_weight, i) for i, log_weight in enumerate(log_weights.tolist()) if most is None or most[i] > 1]
    heapq.heapify(queue)
    for _ in range(particles - len(copies)):
        if not queue:
            break
        index = queue[0][1]
        copies[index] += 1
        if most is not None and copies[index] == most[index]:
            heapq.heappop(queue)
        else:
            heapq.heapreplace(queue, (math.log(copies[index]) - log_weights[index], index))
    return copies


def _prepare_step(
    ahead: Lookahead, visited: VisitedPrefix | None, values: Values | Flat, left: int, defensive: float, expected: float
) -> _Step:
    """Compute B(u), psi and the scores at a text. left: number of tokens after the next one. expected: log psi(u)."""
    psi = np.zeros(len(ahead.tokens) + 2)
    psi[:-2] = values.of_pairs(ahead.slots, ahead.tokens, left)
    guessed, places = values.are_guesses(np.append(ahead.slots, [ahead.own_slot, -1])), list[int]()
    if visited is not None and isinstance(values, Values):
        for token, child in visited.children.items():
            if child.value is not None:
                at = int(ahead.tokens.searchsorted(token))
                if at < len(ahead.tokens) and ahead.tokens[at] == token:
                    psi[at] = max(math.log(child.value), psi[at] - DOUBT)
                    guessed[at] = False
                    places.append(at)
    psi[-2] = values.of_slots(np.array([ahead.own_slot]), left)[0]
    logs = np.append(ahead.logs, [ahead.rest_log, ahead.end_log])
    if guessed.any():
        psi[guessed] -= _find_excess(logs + psi, guessed, expected)
    twisted = logs + psi
    log_ahead, scores = log_sum(twisted), twisted
    if defensive and log_ahead > -np.inf:
        with np.errstate(divide="ignore"):  # eps = 1
            scores = np.logaddexp(
                np.log1p(-defensive) + twisted, math.log(defensive) + log_ahead + logs - ahead.log_mass
            )
    return _Step(ahead, log_ahead, logs, psi, scores, places)


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


def _find_move(step: _Step, place: int, rng: np.random.Generator) -> tuple[int, float, int]:
    """Return the token of a candidate, its log-probability, and the slot of the text after it. Of the tokens that were
    not followed, one is drawn.
    """
    ahead = step.ahead
    if place < len(ahead.tokens):
        return int(ahead.tokens[place]), float(ahead.logs[place]), int(ahead.slots[place])
    assert ahead.rest is not None
    return *ahead.rest.draw(rng), ahead.own_slot
