"""infill_check: whether a partly known text can be completed, by what, and with which tokens at which positions.

The question is whether a context-free language (or what else a Constraint expresses) and the regular language of the
fillings of the spans intersect (Muendler et al. 2025, "Constrained Decoding of Diffusion LLMs with Context-Free
Grammars", arXiv 2508.10111). Two constructions answer it.

- The *position lattice* (`position_lattice`) is their product over the states of the engine. It holds for every
  Constraint and gives masks. It is exact where it is finite and within `most_states`: for any number of token positions
  if the constraint reaches few states between them, and for text of any length if the constraint is regular, or
  brackets cannot nest without bound inside the gap.
- The *product grammar* (`text_intersection`) is that of a plain context-free grammar and an automaton of the spans. It
  decides gaps of any text inside nested structures, which have no finite lattice.

A lattice that would be too large is refused with LimitError, or narrowed: then what it allows is right, but it may
allow too little (`InfillAnswer.is_exact`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ..base.errors import LimitError, UnsupportedError, check_choice, check_count, check_type
from ..engine.constraint import Constraint
from .gaps import KnownText, Segment, Span, TextGap, TokenPositions, read_spans
from .lattice_steps import Piece
from .position_lattice import PositionLattice
from .text_intersection import find_text

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["InfillAnswer", "infill_check", "join_pieces"]

FIRST_STATES = 1_000
"""States of a lattice of unknown text that are tried before the product grammar."""


@dataclass(frozen=True, slots=True, eq=False)
class InfillAnswer:
    """What `infill_check` found.

    Attributes
    ----------
    is_possible : bool
        Whether some completion is in the language.
    witness : bytes or None
        The text of one completion; None if there is none.
    pieces : tuple
        The completion by parts, in the order of the spans: bytes of known and unknown text, and a token, or None for an
        absent one, for each position.
    masks : ndarray of int32, shape (unknown positions, ceil(V / 32))
        Per unknown position of a token, in order: token t is set if some completion has t there. Bit `i % 32` of word
        `i // 32` stands for token `i`. All 0 if nothing is possible.
    is_exact : bool
        False if the lattice was narrowed: completions may exist that `masks` does not know.
    """

    is_possible: bool
    witness: bytes | None
    pieces: tuple[Piece, ...]
    masks: NDArray[np.int32]
    is_exact: bool

    def __bool__(self) -> bool:
        """Return `is_possible`."""
        return self.is_possible


def infill_check(
    spans: Iterable[Span],
    constraint: Constraint,
    *,
    beyond: Literal["refuse", "narrow"] = "refuse",
    most_states: int = 10_000,
) -> InfillAnswer:
    """Decide whether a partly known text can be completed to a text of a constraint.

    Parameters
    ----------
    spans : iterable of str, bytes, int, sequence of int or None, Gap, or None
        The text in order: known text, known tokens, gaps. None is one unknown token.
    constraint : Constraint
        What `constrain.compile` returned.
    beyond : {"refuse", "narrow"}
        What happens if there are more than `most_states` states: LimitError, or an answer with `is_exact` False whose
        witness and masks are right as far as they go.
    most_states : int
        Most states of the constraint that are followed.

    Returns
    -------
    InfillAnswer

    Raises
    ------
    LimitError
        If the answer needs more than `most_states` states. With "narrow" only if no completion was found and there may
        be one.
    TypeError, ArgumentError
        If an argument is not what it should be.
    """
    check_type("constraint", constraint, Constraint, "give what constrain.compile returned")
    check_choice("beyond", beyond, ("refuse", "narrow"))
    most_states = check_count("most_states", most_states, 1)
    segments = read_spans(spans, constraint.vocabulary)
    if any(isinstance(one, TextGap) for one in segments):
        answer = _check_text(segments, constraint, most_states)
        if answer is not None:
            return answer
    return _answer(PositionLattice.build(constraint, segments, most_states, beyond=beyond))


def _check_text(segments: Sequence[Segment], constraint: Constraint, most_states: int) -> InfillAnswer | None:
    """Answer spans with gaps of text by a small lattice, then by the product grammar; None if neither decides."""
    lattice = PositionLattice.build(constraint, segments, min(FIRST_STATES, most_states), beyond="narrow")
    has_positions = any(isinstance(one, TokenPositions) and None in one.known for one in segments)
    if lattice.is_exact or (lattice.is_possible and not has_positions):
        return _answer(lattice)
    if has_positions:
        return None
    try:
        text = find_text([_as_text(one, constraint.vocabulary) for one in segments], constraint)
    except (UnsupportedError, LimitError):
        return None
    masks = np.zeros((0, -(-constraint.vocabulary.size // 32)), np.int32)
    return InfillAnswer(text is not None, text, () if text is None else (text,), masks, True)


def _as_text(segment: Segment, vocabulary: Vocabulary) -> Segment:
    """Return known tokens as the text that they spell; another segment, and special tokens, unchanged."""
    if not isinstance(segment, TokenPositions) or segment.form is not None:
        return segment
    pieces = [None if token is None else vocabulary.tokens[token] for token in segment.known]
    return segment if None in pieces else KnownText(b"".join(one for one in pieces if one is not None))


def _answer(lattice: PositionLattice) -> InfillAnswer:
    """Return the answer that a lattice gives. Raise LimitError if it was narrowed and has no completion."""
    unknown = [index for index in range(len(lattice.positions)) if lattice.known_token(index) is None]
    words = -(-lattice.constraint.vocabulary.size // 32)
    if not lattice.is_possible:
        if not lattice.is_exact:
            raise LimitError(
                "No completion was found, and more than most_states states would have to be followed to exclude one.",
                hint="Raise most_states, make the gaps shorter, or the constraint narrower.",
            )
        return InfillAnswer(False, None, (), np.zeros((len(unknown), words), np.int32), True)
    pieces = lattice.trace_completion().pieces
    masks = np.array([lattice.position_mask(index) for index in unknown], np.int32).reshape(len(unknown), words)
    is_exact = lattice.is_exact or not unknown
    return InfillAnswer(True, join_pieces(lattice.constraint.vocabulary, pieces), tuple(pieces), masks, is_exact)


def join_pieces(vocabulary: Vocabulary, pieces: Iterable[Piece]) -> bytes:
    """Return the bytes of the pieces of a completion; end tokens have none."""
    return b"".join(
        b"" if one is None else one if isinstance(one, bytes) else vocabulary.transcript((one,)) for one in pieces
    )
