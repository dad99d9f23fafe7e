"""Token budgets for decoders that do not report which token they choose, such as logits processors.

`token_budget.Closing` tests the token that was sampled. A logits processor must know the admissible tokens before
sampling: it groups the allowed tokens by the state that they lead to, of which there are few, and computes the shortest
completion of each state. Within undeclared keys, where every spelling is a state, tokens that lead to the same keyless
state are one group (`engine.free_keys`).

    a token is admissible if  tokens of a completion after it + 1 for the end token <= tokens that remain after it

The current completion, or its remainder, is tried first, since it usually still applies. Its first token is therefore
always admissible, and by induction the text always fits in the budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..base.errors import VocabularyError
from ..engine.free_keys import SPARE, find_keyless_state, free_states_after, list_plain_tokens
from ..engine.length_limits import make_limit_error
from ..sampling.core.masked_sampling import allowed_tokens
from .token_budget import can_complete

if TYPE_CHECKING:
    from ..engine.matcher import Matcher
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["Budget"]

KEPT = 4096
"""Maximum number of cached completions."""
KEPT_KEYS = 64
"""Maximum number of keyless states of which bounds are cached."""
NEVER = np.iinfo(np.int32).max
CONTINUATIONS = bytes(range(0x80, 0xC0))
SECOND = {b"\xe0": b"\xa0", b"\xf0": b"\x90"}
"""Second bytes of characters that cannot be 0x80."""
State = tuple[int, int]


def finish_character(text: bytes) -> bytes:
    """Return continuation bytes that end the character of UTF-8 in which a text ends; b"" if it ends with a whole one.

    Source: RFC 3629, section 4.
    """
    last = text[-3:].rstrip(CONTINUATIONS)[-1:]
    begun = text[text.rfind(last) :] if last else b""
    if last < b"\xc0":
        return b""
    wanted = 2 + (last >= b"\xe0") + (last >= b"\xf0")
    second = SECOND.get(last, b"\x80") if len(begun) == 1 else b""
    return second + b"\x80" * (wanted - len(begun) - len(second))


class Budget:
    """A cache of the completions of one Constraint, by state. max_tokens: budget of a text, end token included."""

    def __init__(self, vocabulary: Vocabulary, max_tokens: int) -> None:
        self.vocabulary, self.max_tokens = vocabulary, max_tokens
        self.byte_by_byte = not vocabulary.missing_bytes
        self.completions: dict[State, bytes | None] = {}
        self.lengths: dict[bytes, int | None] = {}
        self.found: dict[int, bytes] = {}
        """The last shortest completion found after a token."""
        self.enough: dict[State, int] = {}
        """For some states, a number of remaining tokens that admits all allowed tokens."""
        self.plain: NDArray[np.bool_] | None = None
        self.in_keys: dict[State, NDArray[np.int32]] = {}
        """For keyless states, what `bound_in_key` returned."""

    def begin(self, matcher: Matcher) -> bytes | None:
        """Return a completion of the empty text. Raise LimitError if it does not fit in max_tokens."""
        data = self.completion(matcher)
        if data is not None and not self.fits(data, self.max_tokens):
            least = (self.length(data) or 0) + 1
            raise make_limit_error(self.max_tokens, least, data, "max_new_tokens")
        return data

    def narrow(self, matcher: Matcher, mask: NDArray[np.int32], known: bytes | None, remaining: int) -> None:
        """Clear the bits of tokens after which the text cannot be completed in `remaining` - 1 tokens.

        mask: int32 [words], changed in place. known: a completion of the current text; if None (the vocabulary cannot
        spell any), the mask is left unchanged and nothing is guaranteed.
        """
        if known is None:
            return
        if remaining >= self.enough.get(matcher.state, remaining + 1):
            return
        ends = self.vocabulary.eos_ids
        tokens = allowed_tokens(mask)
        tokens = tokens[~np.isin(tokens, ends)]
        if not len(tokens):
            return
        fit_in_key = self.find_fitting_in_key(matcher, tokens, known, remaining)
        tokens = tokens[~fit_in_key]
        keep = np.zeros(len(tokens), np.bool_)
        if remaining > 1 and len(tokens):
            states = matcher.states_after(tokens)
            _, firsts, groups = np.unique(states, return_index=True, return_inverse=True)
            fitting = [self.reaches(matcher, int(tokens[first]), known, remaining - 1) for first in firsts]
            keep = np.array([one is not None for one in fitting], np.bool_)[groups.reshape(-1)]
            if keep.all() and not fit_in_key.any():
                self.remember(matcher.state, fitting)
        words = mask.view(np.uint32)
        for token in tokens[~keep].tolist():
            words[token // 32] &= np.uint32(~(1 << (token % 32)) & 0xFFFFFFFF)

    def find_fitting_in_key(
        self, matcher: Matcher, tokens: NDArray[np.int64], known: bytes, remaining: int
    ) -> NDArray[np.bool_]:
        """Return which of the allowed tokens continue an undeclared key and certainly fit: bool [n].

        The bound of `engine.free_keys`: others may fit, too.
        """
        keyless = find_keyless_state(matcher) if self.byte_by_byte and remaining > SPARE + 1 else 0
        if not keyless:
            return np.zeros(len(tokens), np.bool_)
        state = matcher.state[0], keyless
        if state not in self.in_keys:
            if len(self.in_keys) >= KEPT_KEYS:
                self.in_keys.clear()
            self.in_keys[state] = self.bound_in_key(matcher, tokens, known, remaining)
        fitting: NDArray[np.bool_] = self.in_keys[state][tokens] <= remaining
        return fitting

    def bound_in_key(
        self, matcher: Matcher, tokens: NDArray[np.int64], known: bytes, remaining: int
    ) -> NDArray[np.int32]:
        """Return for each token of the vocabulary a number of remaining tokens that admits it: int32 [V]."""
        if self.plain is None:
            self.plain = list_plain_tokens(self.vocabulary)
        needed = np.full(self.vocabulary.size, NEVER, np.int32)
        tokens = tokens[self.plain[tokens]]
        states = free_states_after(matcher, tokens)
        for state in np.unique(states[states > 0]).tolist():
            group = tokens[states == state]
            data = self.reaches(matcher, int(group[0]), known, remaining - 1 - SPARE)
            length = None if data is None else self.length(data)
            if length is not None:
                needed[group] = length + SPARE + 2  # the allowed token and the end token
        return needed

    def remember(self, state: State, completions: list[bytes | None]) -> None:
        """Record how many remaining tokens admit all allowed tokens of a state, by a completion after each of them."""
        if len(self.enough) >= KEPT:
            self.enough.clear()
        found = [data for data in completions if data is not None]
        most = max((len(data) if self.byte_by_byte else self.length(data) or 0 for data in found), default=0)
        self.enough[state] = most + 2  # the allowed token and the end token

    def reaches(self, matcher: Matcher, token: int, known: bytes, remaining: int) -> bytes | None:
        """Return a completion after the token that fits in `remaining` tokens; None if there is none."""
        trial = matcher.fork()
        trial.advance(token)
        return self.after(trial, token, known, remaining)

    def after(self, matcher: Matcher, token: int, known: bytes | None, remaining: int) -> bytes | None:
        """Return a completion that fits in `remaining` tokens after `matcher` took `token`; None if there is none.

        The known completion, unchanged or without as many bytes as the token has, usually still applies (see
        `token_budget.Closing.follow`), or after the rest of a character that the token has begun, or else the one that
        was found the last time after this token.
        """
        spelled = self.vocabulary.spelled(token)
        candidates = [self.found.get(token)]
        if known is not None:
            character = finish_character(matcher.text[-3:]) if spelled[-1:] >= b"\x80" else b""
            candidates = [known[len(spelled) :], character + known, *candidates]
        for data in candidates:
            if data is not None and self.fits(data, remaining) and can_complete(matcher, data):
                return data
        fresh = self.completion(matcher)
        if fresh is None or not self.fits(fresh, remaining):
            return None
        self.found[token] = fresh
        return fresh

    def completion(self, matcher: Matcher) -> bytes | None:
        """Return an approximately shortest completion; None if the vocabulary cannot spell it."""
        state = matcher.state
        if state not in self.completions:
            if len(self.completions) >= KEPT:
                self.completions.clear()
            data = matcher.shortest_completion(None)
            spelled = data is not None and (self.byte_by_byte or self.length(data) is not None)
            self.completions[state] = data if spelled else None
        return self.completions[state]

    def fits(self, data: bytes, remaining: int) -> bool:
        """Return whether a completion and an end token fit in `remaining` tokens."""
        if self.byte_by_byte and len(data) < remaining:
            return True
        length = self.length(data)
        return length is not None and length < remaining

    def length(self, data: bytes) -> int | None:
        """Return the least number of tokens that spell `data`; None if none do."""
        if data not in self.lengths:
            if len(self.lengths) >= KEPT:
                self.lengths.clear()
            try:
                self.lengths[data] = len(self.vocabulary.fewest(data))
            except VocabularyError:
                self.lengths[data] = None
        return self.lengths[data]
