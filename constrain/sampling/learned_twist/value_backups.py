"""Learning values from visited texts: the equation of the mass to come, from no token left to all of them.

With p the model's next-token distribution after u, over all allowed tokens, and l tokens left,

    V(u, l) = p(end | u) + sum over tokens a of p(a | u) v(ua, l - 1),        v(., 0) = 0

where v(ua, l) is V(ua, l) if ua was visited, and else the value of its slot, shifted by what its last token adds. The
values of slots with l tokens left are arithmetic means of V(u, l) over the visited texts in each of them, by weight,
drawn towards those of wider classes (`_average`). So one pass from l = 1
upwards solves the equation: every row counts in full, not only the token that was drawn, and for every number of
tokens left, not only for the one that it was fetched with. What last tokens add is learned from pass to pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .value_table import HORIZONS, MOST_RATIO, PACES, SMALLEST, ValueTable, count_horizons, fit_line, guess_logs
from .visited_prefixes import VisitedPrefix, VisitedPrefixes

__all__ = ["MOST_SHIFT", "back_up", "measure_gap"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_PASSES = 3
"""Passes of the first backup of a table; later ones have one."""
COARSE_SHRINK, STATE_SHRINK, SLOT_SHRINK = 3.0, 1.0, 12.0
"""Texts as good as the prior that are added to every mean of ratios to it: of coarse states, states, and slots. Texts
of one slot differ nearly as much as texts of one state: few of them say little about the slot."""
REACH, BASE = 8.0, 0.05
"""A text that had k tokens more or fewer left than is asked about has the weight BASE + exp(-k / REACH) in the mean of
its slot: early in a text, a model is not where it will be late."""
FARTHEST = 6_400
"""Distance from which on the weight is BASE: exp(-k / REACH) is 0 in a double."""
SPREAD_SHRINK = 4.0
"""Texts of the spread of the wider class that are added to those of a state, and of a slot."""
MOST_DEPARTURE = 1.5
"""Nats by which a text's value counts as above what is said of it, at most: rare ones would be all of a spread."""
PAIR_SHRINK, MOST_SHIFT = 2.0, 8.0
"""Texts without a shift that are added to those of a pair, and the largest shift in nats."""
PRIOR = 4.0
"""Most texts that values from earlier calls count for."""
TINY = math.exp(SMALLEST)
SETTLES, SETTLED = 256, 1e-6
"""Tokens left from which on values that change by at most SETTLED per token are taken to have settled."""


@dataclass(frozen=True)
class _Layout:
    """Visited texts as arrays; entry i of an edge array belongs to text `owners[i]`."""

    texts: list[VisitedPrefix]
    slots: Ints
    tokens: Ints
    lefts: Ints
    weights: Floats
    ends: Floats
    owners: Ints
    edge_slots: Ints
    edge_tokens: Ints  # -1 for all tokens together that were not followed
    edge_probs: Floats
    child_owners: Ints
    children: Ints
    child_probs: Floats

    @classmethod
    def of(cls, visited: VisitedPrefixes) -> _Layout:
        texts = visited.listed
        index = {id(one): i for i, one in enumerate(texts)}
        count = len(texts)
        starts = np.cumsum([0, *(len(one.tokens) for one in texts)])
        slots, tokens = np.concatenate([one.slots for one in texts]), np.concatenate([one.tokens for one in texts])
        probs = np.concatenate([one.probs for one in texts])
        rests = np.array([one.rest_prob for one in texts])
        owners, children, child_probs = list[int](), list[int](), list[float]()
        for i, one in enumerate(texts):
            for token, child in one.children.items():
                at = int(one.tokens.searchsorted(token))
                owners.append(i)
                children.append(index[id(child)])
                if at < len(one.tokens) and one.tokens[at] == token:
                    child_probs.append(float(one.probs[at]))
                    probs[starts[i] + at] = 0.0
                else:
                    child_probs.append(child.prob)
                    rests[i] -= child.prob
        rest_slots = np.array([one.rest_slot for one in texts], np.int64)
        lefts = np.minimum([one.left for one in texts], HORIZONS[-1])
        edge_owners = np.repeat(np.arange(count), np.diff(starts))
        return cls(
            texts, np.array([one.slot for one in texts], np.int64), np.array([one.token for one in texts], np.int64),
            lefts, np.array([one.weight for one in texts]), np.array([one.end_prob for one in texts]),
            np.concatenate([edge_owners, np.arange(count)]), np.concatenate([slots, rest_slots]),
            np.concatenate([tokens, np.full(count, -1)]), np.concatenate([probs, np.maximum(rests, 0.0)]),
            np.array(owners, np.int64), np.array(children, np.int64), np.array(child_probs),
        )  # fmt: skip


class _Classes(NamedTuple):
    """The slots that texts and their next tokens are in, and what earlier calls know of each.

    slots: int64 [n], ascending. states: int64 [n]. least: float64 [n]. texts: slot of each text, as an index
    (int64 [N]). last, counts, earlier: float64 [n], total weight of the texts of this call, of those of them with more
    than one token left, and how many texts the earlier value counts for. Of a text with one token left only the end is
    known: the value with one token left.
    known: indices of the slots of the prior table. groups: numbers of the coarse state and of the state (int64 [n]).
    """

    slots: Ints
    states: Ints
    least: Floats
    texts: Ints
    last: Floats
    counts: Floats
    earlier: Floats
    known: Ints
    groups: tuple[Ints, Ints]

    @classmethod
    def of(cls, layout: _Layout, prior: ValueTable, capped: float) -> _Classes:
        slots = np.unique(np.concatenate([layout.slots, layout.edge_slots, prior.slots]))
        states = slots // PACES
        texts = slots.searchsorted(layout.slots)
        last: Floats = np.bincount(texts, layout.weights, len(slots)).astype(np.float64)
        counts: Floats = np.bincount(texts, layout.weights * (layout.lefts > 1), len(slots)).astype(np.float64)
        known = slots.searchsorted(prior.slots)
        earlier = np.zeros(len(slots))
        earlier[known] = prior.counts
        earlier = np.where(counts > 0, np.minimum(earlier, capped), earlier)
        numbers = prior.numbers
        return cls(slots, states, numbers.least[states].astype(np.float64), texts, last, counts, earlier, known,
                   (numbers.coarse[states], states))  # fmt: skip


class _Pass(NamedTuple):
    """What one pass finds: log-values of slots (float64 [n, H]), and of each text with the tokens that it has left:
    its value, and that of its slot (float64 [N])."""

    logs: Floats
    own: Floats
    slot_own: Floats


def back_up(visited: VisitedPrefixes, prior: ValueTable, start: ValueTable, passes: int | None = None) -> ValueTable:
    """Return the table that visited texts and a prior table give, and store the value of each text in it.

    prior: table of earlier calls, whose texts count for at most PRIOR new ones per value. start: the table whose pairs
    and line the first pass uses. passes: by default 1, FIRST_PASSES if `start` has learned nothing. The tables share
    their states.
    """
    if not len(visited):
        return start
    layout, table = _Layout.of(visited), start
    classes = _Classes.of(layout, prior, PRIOR)
    for _ in range(passes or (1 if start.populations else FIRST_PASSES)):
        found = _solve(layout, classes, prior, table, None)
        spreads = _learn_spreads(layout, classes, found, prior, table)
        table = _learn_pairs(layout, classes, found, prior)
        table = replace(table, spreads=spreads, line=_fit(classes, found, start.line))
    for one, value in zip(layout.texts, np.clip(found.own, TINY, 1.0).tolist()):
        one.value = value
    return replace(table, populations=start.populations + 1, has_fallen_back=start.has_fallen_back)


def measure_gap(visited: VisitedPrefixes, table: ValueTable) -> tuple[float, float]:
    """Return logs of the values of the empty text if states that were never visited are worth 0, and 1.

    log Z is between them under the abstraction: if texts of one slot had equal values.
    """
    layout = _Layout.of(visited)
    classes = _Classes.of(layout, table, 0.0)
    low, high = (
        math.log(max(float(_solve(layout, classes, table, table, unseen).own[0]), TINY)) for unseen in (0.0, 1.0)
    )
    return low, max(low, high)


def _solve(layout: _Layout, classes: _Classes, prior: ValueTable, table: ValueTable, unseen: float | None) -> _Pass:
    """Solve the equation for all numbers of tokens left that a text has. table: its pairs and line are used.

    unseen: value of all states of which no text was seen, without shrinkage of the others; None for estimates.
    """
    most = int(layout.lefts.max())
    owners, targets, probs = _merge_edges(layout, classes, table)
    count, size = len(layout.texts), len(classes.slots)
    logs = np.empty((size, count_horizons(most)))
    own, slot_own = np.zeros(count), np.zeros(count)
    values: Floats = np.zeros(size)
    before: Floats = np.zeros(count)
    columns = {int(left): column for column, left in enumerate(HORIZONS[: logs.shape[1]])}
    logs[:, 0] = SMALLEST
    longest = int(HORIZONS[logs.shape[1] - 1])
    by_left = _group_by_left(layout.lefts)
    farthest = min(max(most, longest), FARTHEST)
    decay = BASE + np.exp(-np.arange(farthest + 1) / REACH)
    every = np.arange(size)
    kept_lefts = np.union1d(HORIZONS[1 : logs.shape[1]], layout.lefts)
    left, is_settled = 0, False
    while left < longest:
        # Where a token more changes nothing, only the values that are kept are computed.
        left = int(kept_lefts[kept_lefts.searchsorted(left + 1)]) if is_settled and left >= SETTLES else left + 1
        if left <= 2:  # of texts with one token left, only the value with one token left is known
            counts = classes.last if left == 1 else classes.counts
            used = layout.weights if left == 1 else layout.weights * (layout.lefts > 1)
            averages = _Averages(classes, counts, table.line, np.union1d(targets, classes.texts))
        sums = layout.ends + np.bincount(owners, probs * values[targets], count)
        if len(layout.children):
            sums += np.bincount(layout.child_owners, layout.child_probs * before[layout.children], count)
        is_settled = float(np.abs(np.minimum(sums, 1.0) - before).max()) <= SETTLED
        before = np.minimum(sums, 1.0)
        if unseen is None:
            weights = used * decay[np.minimum(np.abs(layout.lefts - left), farthest)]
            shares = np.bincount(classes.texts, weights, size)
            totals = np.bincount(classes.texts, weights * before, size)
            wanted = every if left in columns else averages.needed
            values = averages.at(totals / np.maximum(shares, TINY), prior, left, wanted)
        else:
            sums_of_slots: Floats = np.bincount(classes.texts, used * before, size).astype(np.float64)
            values = _average_bare(classes, counts, sums_of_slots, prior, unseen, left)
        now = by_left.get(left)
        if now is not None:
            own[now], slot_own[now] = before[now], values[classes.texts[now]]
        if left in columns:
            logs[:, columns[left]] = np.log(np.maximum(values, TINY))
    return _Pass(np.minimum(logs, 0.0), own, slot_own)


def _group_by_left(lefts: Ints) -> dict[int, Ints]:
    """Return the texts with each number of tokens left."""
    order = np.argsort(lefts, kind="stable")
    starts = np.flatnonzero(np.diff(lefts[order], prepend=-1))
    return {int(lefts[group[0]]): group for group in np.split(order, starts[1:])}


def _merge_edges(layout: _Layout, classes: _Classes, table: ValueTable) -> tuple[Ints, Ints, Floats]:
    """Return the edges to texts that were not visited, one for each text and slot: owner, slot's index, probability
    times what last tokens make of the value.
    """
    probs = layout.edge_probs * np.exp(_find_shifts(table, layout.edge_slots, layout.edge_tokens))
    count = len(classes.slots)
    used = probs > 0
    codes, place = np.unique(
        layout.owners[used] * count + classes.slots.searchsorted(layout.edge_slots[used]), return_inverse=True
    )
    merged = np.bincount(place, probs[used], len(codes)).astype(np.float64)
    return codes // count, codes % count, merged


def _find_shifts(table: ValueTable, slots: Ints, tokens: Ints) -> Floats:
    """Return what last tokens (-1: none) add to the log-values of slots: float64 [n]."""
    if not len(table.pairs):
        return np.zeros(len(slots))
    codes = slots // PACES * table.size + tokens
    index = np.minimum(table.pairs.searchsorted(codes), len(table.pairs) - 1)
    shifts: Floats = np.where((table.pairs[index] == codes) & (tokens >= 0), table.pair_logs[index], 0.0)
    return shifts


class _Averages:
    """The values of slots: what `guess_logs` says of each, times the mean ratios to it of its coarse state, of its
    state, and of itself.

    Means are arithmetic, those of ratios with a gamma prior of mean 1 and its own shape: a value is an expectation, of
    which rare texts may be the larger part. A few texts that could not be completed say little about the next one, and
    a value that is too low costs more than one that is too high: such texts are seldom drawn, and weigh much.

    Only slots of which a text was seen, in this call or earlier, are in means. needed: slots whose values the equation
    needs (int64 [k]). What does not depend on the number of tokens left is computed once.
    """

    def __init__(self, classes: _Classes, new: Floats, line: tuple[float, float], needed: Ints) -> None:
        self.classes, self.new, self.line, self.needed = classes, new, line, needed
        counts = new + classes.earlier
        self.seen = np.flatnonzero(counts > 0)
        self.counts, self.earlier = counts[self.seen], classes.earlier[self.seen]
        self.groups = [
            (groups, groups[self.seen], shrink, np.bincount(groups[self.seen], self.counts, int(groups.max()) + 1))
            for groups, shrink in zip(classes.groups, (COARSE_SHRINK, STATE_SHRINK))
        ]
        self.is_old = (new == 0) & (classes.earlier > 0)

    def at(self, means: Floats, prior: ValueTable, left: int, wanted: Ints) -> Floats:
        """Return the values with some tokens left: float64 [n], 0 for slots that are not wanted and were not seen in
        earlier calls. means: of this call's texts, the mean of their V.
        """
        classes, seen, counts = self.classes, self.seen, self.counts
        known = self.new[seen] * means[seen]
        if len(prior.slots):
            old = _earlier_values(classes, prior, left)
            known = known + self.earlier * old[seen]
        logs = np.log(np.maximum(known, TINY) / np.maximum(counts, TINY))
        estimate = guess_logs(self.line, classes.least, left)
        for groups, own_groups, shrink, total in self.groups:
            ratios = np.exp(np.minimum(logs - estimate[seen], MOST_RATIO))
            common = (np.bincount(own_groups, counts * ratios, len(total)) + shrink) / (total + shrink)
            estimate = estimate + np.log(common)[groups]
        ratios = np.exp(np.minimum(logs - estimate[seen], -SMALLEST))
        estimate[seen] += np.log((counts * ratios + SLOT_SHRINK) / (counts + SLOT_SHRINK))
        values = np.zeros(len(means))
        values[wanted] = np.exp(np.clip(estimate[wanted], SMALLEST, 0.0))
        if len(prior.slots):
            values[self.is_old] = old[self.is_old]
        return values


def _average_bare(
    classes: _Classes, new: Floats, totals: Floats, prior: ValueTable, unseen: float, left: int
) -> Floats:
    """Return the means by slot; for slots without texts by state, and `unseen` for states without texts. new, totals:
    number of this call's texts, and sum of their V.
    """
    counts = new + classes.earlier
    sums = totals + classes.earlier * _earlier_values(classes, prior, left)
    by_state = np.bincount(classes.states, counts)[classes.states]
    means = np.bincount(classes.states, sums)[classes.states] / np.maximum(by_state, TINY)
    means = np.where(by_state > 0, means, unseen)
    return np.where(counts > 0, sums / np.maximum(counts, TINY), means)


def _earlier_values(classes: _Classes, prior: ValueTable, left: int) -> Floats:
    """Return the values of slots in the table of earlier calls, 0 for those that it does not have: float64 [n]."""
    old = np.zeros(len(classes.slots))
    if len(prior.slots):
        old[classes.known] = np.exp(prior.logs_at(left))
    return old


def _fit(classes: _Classes, found: _Pass, line: tuple[float, float]) -> tuple[float, float]:
    """Return the line through the values of slots that were seen and whose texts could be completed."""
    logs = found.logs[:, -1]
    used = (classes.counts > 0) & (logs > SMALLEST / 2)
    return fit_line(classes.least[used], logs[used]) if used.any() else line


def _learn_spreads(layout: _Layout, classes: _Classes, found: _Pass, prior: ValueTable, table: ValueTable) -> Floats:
    """Return the spread of each slot. table: what was known of last tokens when the values were computed."""
    drawn = np.flatnonzero((layout.lefts > 1) & (found.own > 0))
    shifts = _find_shifts(table, layout.slots[drawn], layout.tokens[drawn])
    logs = np.log(found.own[drawn]) - np.log(np.maximum(found.slot_own[drawn], TINY)) - shifts
    squares = np.expm1(np.minimum(logs, MOST_DEPARTURE)) ** 2
    weights, count = layout.weights[drawn], len(classes.slots)
    totals: Floats = np.bincount(classes.texts[drawn], weights * squares, count).astype(np.float64)
    totals[classes.known] += classes.earlier[classes.known] * prior.spreads
    counts = np.bincount(classes.texts[drawn], weights, count) + classes.earlier
    overall = totals.sum() / max(counts.sum(), TINY)
    by_state, seen = (np.bincount(classes.states, each)[classes.states] for each in (totals, counts))
    of_state = (by_state + SPREAD_SHRINK * overall) / (seen + SPREAD_SHRINK)
    spreads: Floats = (totals + SPREAD_SHRINK * of_state) / (counts + SPREAD_SHRINK)
    return spreads


def _learn_pairs(layout: _Layout, classes: _Classes, found: _Pass, prior: ValueTable) -> ValueTable:
    """Return the table of a pass, with what last tokens add to the log-values of slots."""
    drawn = (layout.tokens >= 0) & (layout.lefts > 1)
    seen = layout.slots[drawn] // PACES * prior.size + layout.tokens[drawn]
    codes = np.union1d(prior.pairs, seen)
    old = codes.searchsorted(prior.pairs)
    logs, earlier = np.zeros(len(codes)), np.zeros(len(codes))
    logs[old], earlier[old] = prior.pair_logs, prior.pair_counts
    place = codes.searchsorted(seen)
    weights = layout.weights[drawn]
    counts = np.bincount(place, weights, len(codes))
    sums, bases = (np.bincount(place, weights * values[drawn], len(codes)) for values in (found.own, found.slot_own))
    earlier = np.where(counts > 0, np.minimum(earlier, PRIOR), earlier)
    new = np.clip(np.log((sums + TINY) / (bases + TINY)), -MOST_SHIFT, MOST_SHIFT)
    shifts = np.log((counts * np.exp(new) + earlier * np.exp(logs) + PAIR_SHRINK) / (counts + earlier + PAIR_SHRINK))
    return replace(
        prior, slots=classes.slots, logs=found.logs, counts=classes.counts + classes.earlier, pairs=codes,
        pair_logs=np.where(counts > 0, shifts, logs), pair_counts=counts + earlier,
    )  # fmt: skip
