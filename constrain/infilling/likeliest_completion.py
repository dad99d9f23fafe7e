"""The likeliest completion in a position lattice, under independent distributions of the positions.

States are deterministic, so each sequence of tokens is one path of the lattice, and the best path is found by dynamic
programming from the end (Viterbi 1967): the value of a state is the greatest log-probability of the tokens between it
and an accepting state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import UnsupportedError
from .lattice_steps import BytesStep, ClosureStep, LatticeStep, TokenStep
from .position_lattice import PositionLattice

__all__ = ["find_likeliest"]

Values = NDArray[np.float64]


def find_likeliest(lattice: PositionLattice, rows: NDArray[np.floating[Any]]) -> tuple[list[int | None], float]:
    """Return the likeliest completion, and its log-probability in nats.

    Parameters
    ----------
    lattice : PositionLattice
        Of spans without gaps of text, with at least one completion.
    rows : ndarray of float, shape (positions, V)
        Log-probabilities of the tokens at each position. Those of known positions count as 0.

    Returns
    -------
    tokens : list of int or None
        The token at each position; None where it is absent.
    logprob : float
        Their log-probability; -inf if no completion has any, and then the tokens are those of any completion.

    Raises
    ------
    UnsupportedError
        If the spans have gaps of text, whose tokens are not known.
    """
    if any(isinstance(step, ClosureStep) for step in lattice.steps):
        raise UnsupportedError("text gaps have no likeliest completion", hint="Give gaps in tokens.")
    position_of = {step: position for position, step in enumerate(lattice.positions)}
    values = [np.where(lattice.live(len(lattice.steps)), 0.0, -np.inf)]
    for index in range(len(lattice.steps) - 1, -1, -1):
        row = rows[position_of[index]] if index in position_of else None
        values.append(_value_step(lattice.steps[index], values[-1], lattice.live(index), row))
    values.reverse()
    total = float(values[0].max())
    if total == -np.inf:
        pieces = lattice.trace_completion().pieces
        return [one for one in pieces if not isinstance(one, bytes)], total
    tokens: list[int | None] = []
    state = int(values[0].argmax())
    for index, step in enumerate(lattice.steps):
        row = rows[position_of[index]] if index in position_of else None
        piece, state = _choose_edge(step, state, values[index + 1], row)
        if index in position_of:
            tokens.append(piece)
    return tokens, total


def _value_step(step: LatticeStep, after: Values, live: NDArray[np.bool_], row: NDArray[Any] | None) -> Values:
    """Return the values of the states before a step."""
    assert isinstance(step, (BytesStep, TokenStep))
    values = np.full(len(step.before), -np.inf)
    if not isinstance(step, TokenStep) or step.known is not None or row is None:
        np.maximum.at(values, step.source, after[step.target])
        return values
    over = step.after[step.target] & 1 == 1  # Absent positions have no token.
    np.maximum.at(values, step.source[over], after[step.target[over]])
    by_code = _values_by_code(step, after)
    for index in np.flatnonzero(live & (step.before & 1 == 0)).tolist():
        weights = _weigh_labels(step, index, by_code, row)
        if len(weights):
            values[index] = max(values[index], float(weights.max()))
    return values


def _values_by_code(step: TokenStep, after: Values) -> Values:
    """Return the values of the states after a step by their codes, and -inf for other codes."""
    by_code = np.full(step.states.code_limit(), -np.inf)
    by_code[step.after] = after
    return by_code


def _weigh_labels(step: TokenStep, index: int, by_code: Values, row: NDArray[Any]) -> Values:
    """Return the values of the tokens that may follow a state before an unknown position: float64 [k]."""
    arcs = step.arcs.get(int(step.before[index]) >> 1)
    if arcs is None:
        return np.empty(0)
    weights: Values = row[arcs.labels].astype(np.float64) + by_code[2 * arcs.successors][arcs.which]
    return weights


def _choose_edge(step: LatticeStep, index: int, after: Values, row: NDArray[Any] | None) -> tuple[int | None, int]:
    """Return the token of the best edge from a state, and the state after it."""
    assert isinstance(step, (BytesStep, TokenStep))
    edges = np.flatnonzero(step.source == index)
    targets = step.target[edges]
    if isinstance(step, BytesStep):
        return None, int(targets[after[targets].argmax()])
    if step.known is not None or row is None or step.before[index] & 1:
        target = int(targets[after[targets].argmax()])
        return (None if step.after[target] & 1 else step.known), target
    weights = _weigh_labels(step, index, _values_by_code(step, after), row)
    absent = targets[step.after[targets] & 1 == 1]
    if len(absent) and not (len(weights) and weights.max() > after[absent].max()):
        return None, int(absent[after[absent].argmax()])
    arcs, best = step.arcs[int(step.before[index]) >> 1], int(weights.argmax())
    code = 2 * int(arcs.successors[arcs.which[best]])
    return int(arcs.labels[best]), int(np.searchsorted(step.after, code))
