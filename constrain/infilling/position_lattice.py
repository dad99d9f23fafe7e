"""PositionLattice: all completions of a partly known text, as a graph of layers of states.

A partly known text is a regular language, that of all its fillings. The lattice is the product of its automaton, whose
states are the places between spans and positions, with the Constraint, whose states are sets of configurations of the
engine: the construction of Bar-Hillel, Perles and Shamir (1961), carried out on the determinised machine instead of the
grammar. Paths from the start to an accepting state are exactly the completions, so everything follows from
reachability: a state at a place is *live* if it is reached from the start and leads to the end, a token is possible at
a position if it joins two live states, and any path along live states is a completion. This holds for every Constraint,
whether its grammar is context-free, has counters or a lexer, since equal states have equal futures.

Making a position known only removes edges. So the lattice is built once, and `choose` updates the layers whose flags
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from .constraint_states import ConstraintStates
from .gaps import Segment, TokenPositions
from .lattice_builder import LEAST_WIDTH, STATES_PER_PLACE, LatticeBuilder, LatticePath
from .lattice_steps import Flags, Piece, TokenStep

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["PositionLattice"]


class PositionLattice:
    """The completions of a partly known text. Create one with `build`; use it in the thread that made it.

    Attributes
    ----------
    positions : list of int
        The steps that are positions of tokens, in order, known ones included.
    is_exact : bool
        Whether it has all completions; otherwise it was narrowed.
    """

    def __init__(
        self, constraint: Constraint, segments: Sequence[Segment], built: LatticeBuilder, accepting: Flags
    ) -> None:
        layers, steps = built.layers, built.steps
        self.constraint, self.segments, self.gaps, self.is_exact = constraint, segments, built.gaps, built.is_exact
        self.layers, self.steps = layers, steps
        self.positions = [index for index, step in enumerate(steps) if isinstance(step, TokenStep)]
        self.reached: list[Flags] = [np.ones(len(layers[0]), np.bool_)]
        for step in steps:
            self.reached.append(step.forward(self.reached[-1]))
        self.leading: list[Flags] = [accepting]
        for step in reversed(steps):
            self.leading.append(step.backward(self.leading[-1]))
        self.leading.reverse()
        self._masks: dict[int, tuple[Flags, Flags, NDArray[np.int32]]] = {}

    @classmethod
    def build(
        cls,
        constraint: Constraint,
        segments: Sequence[Segment],
        most_states: int,
        *,
        beyond: str = "refuse",
        earlier: PositionLattice | None = None,
        preferred: Sequence[NDArray[np.int64]] = (),
    ) -> PositionLattice:
        """Build the lattice of the completions of `segments`.

        Parameters
        ----------
        constraint : Constraint
        segments : sequence of Segment
            See `gaps.read_spans`.
        most_states : int
            Bound of the number of states.
        beyond : {"refuse", "narrow"}
            What happens beyond this bound, see `lattice_builder`.
        earlier : PositionLattice, optional
            A lattice of spans of which these are a restriction that keeps its `trace_completion`; narrowing keeps this
            completion, too.
        preferred : sequence of int64 [k], optional
            For each position of a token, tokens that narrowing tries first where it cannot try all.

        Returns
        -------
        PositionLattice

        Raises
        ------
        LimitError
            If there are too many states, or they do not fit into `Limits.state_cache_bytes`.
        """
        states = ConstraintStates.of(constraint)
        unknown = sum(one.known.count(None) for one in segments if isinstance(one, TokenPositions))
        width = None if beyond == "refuse" else max(LEAST_WIDTH, most_states // (STATES_PER_PLACE * max(1, unknown)))
        if earlier is not None and all(gap.outer is states for gap in earlier.gaps):
            kept, gaps = earlier.trace_completion(), earlier.gaps
            builder = LatticeBuilder(states, most_states, width, kept, gaps, preferred)
        else:
            builder = LatticeBuilder(states, most_states, width, preferred=preferred)
        for segment in segments:
            builder.add(segment)
        accepting = np.array([states.is_accepting(code) for code in builder.layers[-1].tolist()], np.bool_)
        return cls(constraint, segments, builder, accepting)

    @property
    def is_possible(self) -> bool:
        """Whether there is a completion."""
        return bool(self.leading[0].any())

    def live(self, layer: int) -> Flags:
        """Return which states of a layer are on a completion."""
        return self.reached[layer] & self.leading[layer]

    def known_token(self, position: int) -> int | None:
        """Return the token of a position (an index in `positions`), None if it is unknown."""
        step = self.steps[self.positions[position]]
        assert isinstance(step, TokenStep)
        return step.known

    def position_mask(self, position: int) -> NDArray[np.int32]:
        """Return the mask of the tokens that some completion has at a position: int32 [ceil(V / 32)]. Do not change it.

        Parameters
        ----------
        position : int
            An index in `positions`.
        """
        index = self.positions[position]
        before, after = self.reached[index], self.leading[index + 1]
        cached = self._masks.get(index)
        if cached is None or cached[0] is not before or cached[1] is not after:
            step = self.steps[index]
            assert isinstance(step, TokenStep)
            mask = step.allow_tokens(self.live(index), self.live(index + 1), self.constraint.vocabulary.size)
            cached = self._masks[index] = before, after, mask
        return cached[2]

    def choose(self, position: int, token: int) -> None:
        """Make a position known, which keeps the completions that have this token there.

        Parameters
        ----------
        position : int
            An index in `positions`.
        token : int
            A token that `position_mask` allows.

        Raises
        ------
        ArgumentError
            If no completion has this token at this position. The lattice is unchanged.
        """
        mask = self.position_mask(position)
        if not 0 <= token < 32 * len(mask) or not mask[token >> 5] >> (token & 31) & 1:
            raise ArgumentError(f"token {token} is not possible at position {position}")
        index = self.positions[position]
        step = self.steps[index]
        assert isinstance(step, TokenStep)
        step.restrict(token, self.live(index))
        for layer in range(index, len(self.steps)):
            flags = self.steps[layer].forward(self.reached[layer])
            if np.array_equal(flags, self.reached[layer + 1]):
                break
            self.reached[layer + 1] = flags
        for layer in range(index, -1, -1):
            flags = self.steps[layer].backward(self.leading[layer + 1])
            if np.array_equal(flags, self.leading[layer]):
                break
            self.leading[layer] = flags
        self._masks.pop(index, None)

    def trace_completion(self) -> LatticePath:
        """Return a completion. There must be one, see `is_possible`."""
        index, pieces, codes = int(np.flatnonzero(self.leading[0])[0]), list[Piece](), [int(self.layers[0][0])]
        for layer, step in enumerate(self.steps):
            piece, index = step.trace(index, self.leading[layer + 1])
            pieces.append(piece)
            codes.append(int(self.layers[layer + 1][index]))
        return LatticePath(pieces, codes)
