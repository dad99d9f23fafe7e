"""Token ids given by callers: convert them, and say why a token is refused."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from ..base.errors import describe_value
from ..vocabulary.vocabulary import Vocabulary

__all__ = ["check_token", "explain_refusal"]


def check_token(token: Any) -> int:
    """Return a token id as an int, also from numpy and torch.

    Raise TypeError for a bool, a float, or any other value.
    """
    try:
        if isinstance(token, (bool, np.bool_)):
            raise TypeError
        return index(token)
    except Exception:  # also of foreign __index__
        raise TypeError(f"the token is {describe_value(token)}: give its id, a whole number") from None


def explain_refusal(vocabulary: Vocabulary, token: int, has_ended: bool) -> str:
    """Return the message for a refused token. `has_ended` says whether an end token was accepted before."""
    if has_ended:
        return f"Token {token} is refused: the text has ended."
    if not 0 <= token < vocabulary.size:
        return f"Token {token} is refused: the vocabulary has {vocabulary.size} tokens."
    if token in vocabulary.eos_ids:
        return f"End token {token} is refused: the text is not complete."
    text = vocabulary.tokens[token]
    if not text:
        return f"Token {token} is refused: it is {'special' if token in vocabulary.names else 'empty'}, and no text."
    return f"Token {token}, {text[:40]!r}, is refused here."
