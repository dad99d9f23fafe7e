"""Look-ahead: what a candidate will reach if it is continued greedily (NeuroLogic A*esque, Lu et al. 2022).

A beam ranks candidates by the probability so far; A* search would add the best probability of what follows. It is
estimated by a greedy continuation of a few tokens under the mask, for all candidates at once:

    without phrases   log-probability of the continuation (section 2.3)
    with phrases      largest log-probability, at any step of it, of a token that brings a phrase forward (section 2.4);
                      0 if all phrases are met

The heuristic may overestimate, so it changes the order of candidates and proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .candidate_order import iterate_falling
from .hypotheses import END, Candidate, Children, Hypothesis, Row, SearchSpace
from .search_options import Lookahead

__all__ = ["add_lookahead"]


@dataclass(slots=True)
class Continuation:
    """The greedy continuation of a candidate so far. logprob: of its tokens. nearest: largest log-probability of a
    token that brings a phrase forward.
    """

    candidate: Candidate
    head: Hypothesis
    logprob: float = 0.0
    nearest: float = -np.inf
    has_ended: bool = False


def add_lookahead(space: SearchSpace, candidates: list[Candidate], options: Lookahead) -> None:
    """Add the weighted heuristic to the keys of admitted candidates, with one call of the model per step.

    The rows after the candidates themselves are kept in ``space.known``, so that the next step of the search need not
    ask for them again.
    """
    runs = [Continuation(candidate, candidate.extend()) for candidate in candidates if candidate.token != END]
    for step in range(options.steps):
        open_runs = [run for run in runs if not run.has_ended]
        if not open_runs:
            break
        prefixes = [run.head.tokens for run in open_runs]
        rows = space.request_rows(prefixes)
        if step == 0:
            space.known = dict(zip(prefixes, rows))
        for run, row in zip(open_runs, rows):
            continue_greedily(space, run, row)
    for run in runs:
        heuristic = run.logprob
        if space.phrases is not None:
            heuristic = 0.0 if space.phrases.is_met(run.candidate.phrases) else max(run.nearest, -1e9)
        run.candidate.key += options.weight * heuristic


def continue_greedily(space: SearchSpace, run: Continuation, row: Row) -> None:
    """Extend a continuation by its likeliest admissible token, or end it."""
    children = space.list_children(run.head, row)
    run.nearest = max(run.nearest, nearest_progress(space, run.head, children))
    head = run.head
    for index in iterate_falling(children.logs):
        if children.end >= children.logs[index]:
            break
        step = float(children.logs[index])
        candidate = Candidate(head, int(children.tokens[index]), step, step)
        if space.is_allowed(candidate):
            run.head, run.logprob = candidate.extend(), run.logprob + step
            return
    run.has_ended = True
    if children.end > -np.inf:
        run.logprob += children.end


def nearest_progress(space: SearchSpace, head: Hypothesis, children: Children) -> float:
    """Return the largest log-probability of a child that covers more of the phrases than its parent; -inf without
    phrases.
    """
    phrases = space.phrases
    if phrases is None:
        return -np.inf
    node, met = head.phrases
    moves, here = phrases.moves_from(node), phrases.bank(head.phrases)
    forward = np.array([phrases.bank(state) > here for state in moves.states_after(met)], np.bool_)
    return float(children.logs[forward[moves.classes[children.tokens]]].max(initial=-np.inf))
