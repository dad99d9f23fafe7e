"""`RowPosition`: the state of one row of a batch in its constraint, as a function of the row's tokens.

A RowPosition is immutable: `after` returns the next one. So rows can be reordered, rolled back and replayed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstrainError, TokenRefused, VocabularyError
from ..decoding.reachable_tokens import Budget
from .end_tokens import ids_of

if TYPE_CHECKING:
    from ..engine.matcher import Matcher
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["RowEndings", "RowPosition"]


class RowEndings:
    """How the caller's `generate` ends a row.

    stops: ids at which it stops. pads: ids that it writes after them. known: whether its generation config declares end
    tokens; otherwise those of the Vocabulary are used. never: packed mask of the end tokens at which it does not stop,
    and of other tokens at which it stops, which would truncate a text.
    """

    def __init__(self, vocabulary: Vocabulary, config: Any) -> None:
        """Raise VocabularyError if `generate` stops at no end token of the Vocabulary, or at one that is text."""
        declared = ids_of(as_list(getattr(config, "eos_token_id", None)))
        self.known = bool(declared)
        self.stops = tuple(end for end in vocabulary.eos_ids if end in declared) if declared else vocabulary.eos_ids
        if not self.stops:
            raise VocabularyError(
                f"generate stops at {declared}, and the vocabulary {vocabulary.name} ends at "
                f"{list(vocabulary.eos_ids)}: no text would ever end",
                hint=f"Make the Vocabulary with eos_ids={declared}, or set eos_token_id of the generation config.",
            )
        others = [index for index in declared if index not in self.stops and 0 <= index < vocabulary.size]
        texts = [index for index in others if vocabulary.tokens[index] is not None]
        if texts:
            raise VocabularyError(
                f"generate stops at token {texts[0]}, which is the text {vocabulary.tokens[texts[0]]!r} in the "
                f"vocabulary {vocabulary.name}: it would cut texts short",
                hint=f"Make the Vocabulary with eos_ids={declared}.",
            )
        pads = [
            index for index in ids_of(as_list(getattr(config, "pad_token_id", None))) if 0 <= index < vocabulary.size
        ]
        word_count = (vocabulary.size + 31) // 32
        unused = [end for end in vocabulary.eos_ids if end not in self.stops]
        self.never = pack_bits([*unused, *others], word_count)
        self.ended = pack_bits([*self.stops, *pads], word_count)
        self.passive = frozenset((*self.stops, *pads))


class RowPosition:
    """The state of a row: a Matcher that is never advanced further.

    ended: number of tokens of the row from its end token on, 0 while the text is open. closing: a completion of the
    text, if there is a Budget. refused: the first token that the constraint refused, with the reason, None if there is
    none. What follows a refused token is not looked at.
    """

    __slots__ = ("budget", "closing", "ended", "endings", "matcher", "refused", "taken")
    refused: tuple[int, TokenRefused | None] | None

    def __init__(self, matcher: Matcher, endings: RowEndings, budget: Budget | None = None) -> None:
        self.matcher, self.endings, self.budget = matcher, endings, budget
        self.taken, self.ended, self.refused = 0, 0, None
        self.closing = None if budget is None else budget.begin(matcher)

    def moved(
        self,
        matcher: Matcher,
        closing: bytes | None,
        ended: int,
        refused: tuple[int, TokenRefused | None] | None = None,
    ) -> RowPosition:
        """Return a RowPosition one token further."""
        other = object.__new__(RowPosition)
        other.matcher, other.endings, other.budget = matcher, self.endings, self.budget
        other.taken, other.closing, other.ended, other.refused = self.taken + 1, closing, ended, refused
        return other

    def after(self, token: int) -> RowPosition:
        """Return the position after one more token. Only end tokens and padding may follow an end token."""
        vocabulary = self.matcher.constraint.vocabulary
        if self.refused:
            return self.moved(self.matcher, None, self.ended, self.refused)
        if self.ended:
            is_text = token < vocabulary.size and vocabulary.tokens[token] is not None
            refused = (token, None) if is_text and token not in self.endings.passive else None
            return self.moved(self.matcher, None, self.ended + 1, refused)
        if token in vocabulary.eos_ids and self.matcher.is_complete:
            return self.moved(self.matcher, None, 1)
        matcher, closing = self.matcher.fork(), None
        try:
            matcher.advance(token)
            if self.closing is not None and self.budget is not None:
                closing = self.budget.after(matcher, token, self.closing, self.budget.max_tokens - self.taken - 1)
                if closing is None:
                    raise TokenRefused(f"After token {token} the text cannot be completed in max_new_tokens.")
        except TokenRefused as error:
            return self.moved(self.matcher, None, 0, (token, error.with_traceback(None)))
        return self.moved(matcher, closing, 0)

    def check_refused(self) -> None:
        """Raise ConstrainError if the row holds a refused token."""
        if self.refused is None:
            return
        token, cause = self.refused
        if self.ended:
            raise ConstrainError(
                f"the text of a row continues, with token {token}, after its end token: this is not padding",
                hint="If these ids are a new prompt, use a new ConstraintLogitsProcessor or give prompt_length=.",
            )
        text = self.matcher.constraint.vocabulary.decode(self.matcher.tokens)
        raise ConstrainError(
            f"a row holds token {token} after {text[-40:]!r}, which its constraint refuses",
            hint="If somebody changed the text on purpose, or these ids are a new prompt, use a new "
            "ConstraintLogitsProcessor or give prompt_length=. If they are a draft that was made without this "
            'processor, give on_refused="end".',
        ) from cause

    @property
    def is_open(self) -> bool:
        """Whether the text may continue."""
        return not self.ended and self.refused is None

    def mask(self) -> NDArray[np.int32]:
        """Return the mask of the next token, int32 [words]; after the end only end tokens and padding are allowed."""
        return self.narrow(self.matcher.mask(None)) if self.is_open else self.endings.ended.copy()

    def narrow(self, mask: NDArray[np.int32]) -> NDArray[np.int32]:
        """Clear, in place, the bits of the matcher's mask that this `generate` must not choose; return the mask."""
        mask &= ~self.endings.never
        if self.budget is not None:
            self.budget.narrow(self.matcher, mask, self.closing, self.budget.max_tokens - self.taken)
        return mask


def pack_bits(tokens: list[int], words: int) -> NDArray[np.int32]:
    """Return the packed mask of these tokens."""
    out = np.zeros(words, np.uint32)
    for token in tokens:
        out[token // 32] |= np.uint32(1 << (token % 32))
    return out.view(np.int32)


def as_list(value: Any) -> Any:
    """Convert a tensor or array of ids to Python values."""
    return value.tolist() if hasattr(value, "tolist") else value
