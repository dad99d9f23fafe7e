"""What is asked of the scheduler: texts after one prompt under one constraint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Union

import numpy as np

from ..checking.checked_sampling import TokenCheck
from ..speculation.draft_source import DraftSource
from ..speculation.forced_drafts import ForcedDrafts
from .outcomes import Outcome, Piece
from .token_choice import PLAIN_CHOICE, TokenChoice

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["EndListener", "GenerationRequest", "PieceListener"]

PieceListener = Callable[[int, Piece], None]
"""Called with the number of the sample and each of its Pieces, in the thread that steps the scheduler. An exception
ends that sample."""

EndListener = Callable[[int, Union[Outcome, None], Union[BaseException, None]], None]
"""Called with the number of a sample when it has ended, and its Outcome or its error; not if it is abandoned."""


@dataclass(frozen=True, eq=False)
class GenerationRequest:
    """Texts after one prompt under one constraint, which share the keys and values of the prompt.

    Attributes
    ----------
    vocabulary : Vocabulary
        The tokens of the model.
    generators : sequence of numpy.random.Generator
        One source of randomness for each sample; their number is the number of samples. A text depends on its own
        generator only.
    prompt : sequence of int
        Token ids; empty for a model that holds its own prompt.
    constraint : Constraint or None
        What the texts must satisfy; None generates without a constraint, up to an end token or max_tokens.
    max_tokens : int
        Maximum number of tokens of a text, end token included.
    choice : TokenChoice
        How a token is chosen among the allowed ones, and the strings that end a text.
    listener : callable, optional
        Receives the Pieces of all samples as they are generated.
    end_listener : callable, optional
        Called when each sample has ended.
    prefix : bytes
        The bytes with which the texts of the constraint begin because of token healing; they are not in the outcome.
    positions_left : int or None
        The number of tokens that the prompt leaves of the model's context; None if it is not limited.
    draft_source : callable
        Makes the `DraftSource` of each sample; by default the forced tokens of the constraint.
    check : TokenCheck, optional
        What each token must pass besides the mask. It needs a constraint, and forced text that is sampled.
    """

    vocabulary: Vocabulary = field(repr=False)
    generators: Sequence[np.random.Generator]
    prompt: Sequence[int] = ()
    constraint: Constraint | None = None
    max_tokens: int = 512
    choice: TokenChoice = PLAIN_CHOICE
    listener: PieceListener | None = None
    end_listener: EndListener | None = field(default=None, kw_only=True)
    prefix: bytes = field(default=b"", kw_only=True)
    draft_source: Callable[[], DraftSource] = ForcedDrafts
    check: TokenCheck | None = field(default=None, kw_only=True)
    positions_left: int | None = field(default=None, kw_only=True)
