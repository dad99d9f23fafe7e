"""advance_all: accept one token in each of many matchers, in one call."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import ArgumentError, ConstrainError, TokenRefused, describe_value
from ...kernels import entry_points
from .array_memory import as_numpy
from .parallel_fill import list_positions

if TYPE_CHECKING:
    from ..matcher import Matcher

__all__ = ["advance_all"]

MOST_TOKENS = 1 << 31
"""More than any vocabulary has."""


def advance_all(matchers: Sequence[Matcher], tokens: Any) -> None:
    """Accept one token in each matcher, as `Matcher.advance` does.

    The GIL is released during the call. End tokens are accepted as well, so leave out the matchers that have ended.

    Parameters
    ----------
    matchers : sequence of Matcher
        Matchers of one or several Constraints, none of them in use by another thread during the call.
    tokens : sequence of int, ndarray or torch.Tensor of integers, shape (len(matchers),)
        The token of each matcher. A tensor must be in CPU memory.

    Raises
    ------
    TokenRefused
        If one of the tokens is not allowed; the message says whose. No matcher has changed then.
    TypeError, ValueError
        If there is not an integer for each matcher.
    """
    if type(matchers) is list and type(tokens) is list and len(matchers) == len(tokens) == 1:
        address, token = getattr(matchers[0], "_address", 0), tokens[0]
        if address and type(token) is int and -1 < token < MOST_TOKENS:
            if entry_points.advance_at(address, get_ident(), token) == 0:
                return
    positions = list_positions(matchers)
    numbers = _list_tokens(tokens)
    if len(numbers) != len(positions):
        raise ArgumentError(f"there are {len(numbers)} tokens for {len(positions)} matchers: give one for each")
    inputs, last, thread = (positions.buffer_info()[0], numbers.buffer_info()[0]), len(positions), get_ident()
    done = 0
    try:
        while (done := entry_points.advance_all(*inputs, done, last, thread)) != last:
            matchers[done].advance(numbers[done])
            done += 1
    except ConstrainError as error:
        for index in reversed(range(done)):
            matchers[index].rollback()
        if isinstance(error, TokenRefused):
            raise TokenRefused(f"Matcher {done} of {last}: {error.cause}", hint=error.hint) from error
        raise


def _list_tokens(tokens: Any) -> array[int]:
    """Return tokens as int64s. Raise TypeError if they are not integers."""
    wanted = "give a list of token ids, or a one-dimensional array of integers"
    if isinstance(tokens, np.ndarray) or hasattr(tokens, "data_ptr"):
        listed = as_numpy(tokens)
        if listed.ndim != 1 or listed.dtype.kind not in "iu":
            raise TypeError(f"tokens is {listed.dtype}{list(listed.shape)}: {wanted}")
        if listed.dtype.kind == "i" or listed.itemsize < 8:
            numbers = array("q")
            numbers.frombytes(listed.astype(np.int64).tobytes())
            return numbers
        tokens = listed.tolist()  # which may be beyond int64
    try:
        is_listed = isinstance(tokens, Sequence) and not isinstance(tokens, (str, bytes, bytearray, memoryview))
        if is_listed and bool not in set(map(type, tokens)):
            return array("q", tokens)
    except TypeError:
        pass
    except OverflowError:
        raise TokenRefused("A token is beyond a signed integer of 64 bits, and no vocabulary has it.") from None
    raise TypeError(f"tokens is {describe_value(tokens)}: {wanted}")
