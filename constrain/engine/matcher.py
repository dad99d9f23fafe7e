"""Matcher: the state of matching one text against a Constraint.

How the position is stored and recomputed is in `matcher_position`; here are the queries and transitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import get_ident
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from ..base.errors import (
    ArgumentError,
    ConstrainError,
    TokenRefused,
    VocabularyError,
    check_count,
    check_type,
)
from ..base.keyword_names import explain_attributes
from ..kernels import layout as at
from ..kernels.call_layout import AT_OUT_DATA, CHANGED
from ..kernels.entry_points import (
    address_of,
    advance_at,
    advance_token,
    fill_mask,
    find_forced_bytes,
    list_next_bytes,
    mask_at,
    note_array,
    repeat_mask,
)
from .bound_program import BoundProgram
from .mask_arrays import can_read_arrays, check_mask_array, note_usual_array
from .matcher_position import MatcherPosition
from .preparation import check_seconds, prepare_matchers
from .shortest_completion import completion_search
from .state_cache import StateCache
from .token_checks import check_token, explain_refusal

__all__ = ["Matcher"]

MOST_FORCED = 4096
"""Most bytes that `forced` returns at once."""


FOREIGN_ATTRIBUTES = {
    **dict.fromkeys(("accept_token", "consume_token", "try_consume_tokens", "advance_token"), "matcher.advance(token)"),
    **dict.fromkeys(("accept_string", "accept_bytes", "advance_string"), "matcher.advance_bytes(text.encode())"),
    **dict.fromkeys(("fill_next_token_bitmask", "compute_mask", "compute_bitmask", "get_mask", "get_tokens",
                     "get_next_instruction"), "matcher.mask()"),
    **dict.fromkeys(("is_terminated", "is_stopped"), "matcher.is_finished, or matcher.is_complete"),
    **dict.fromkeys(("is_accepting", "is_final"), "matcher.is_complete, an attribute"),
    **dict.fromkeys(("find_jump_forward_string", "compute_ff_bytes"), "matcher.forced()"),
    "compute_ff_tokens": "matcher.forced_tokens()",
    "reset": "constraint.matcher(), a new one, or matcher.rollback(n)",
    "copy": "matcher.fork()",
}  # fmt: skip
"""What XGrammar, llguidance and Outlines call the methods of a Matcher."""


@explain_attributes(FOREIGN_ATTRIBUTES)
class Matcher(MatcherPosition):
    """The state of matching one text against a Constraint. Create one with `Constraint.matcher`.

    A Matcher must not be used by several threads at the same time, but any thread may continue where another stopped.
    It can be copied (`fork`) and pickled.

    Parameters
    ----------
    constraint : Constraint
        What `constrain.compile` returned.

    Raises
    ------
    TypeError
        If `constraint` is not a Constraint.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the text so far and whether it is complete."""
        text = self.text
        state = "finished" if self.is_finished else "complete" if self.is_complete else "not complete"
        return f"Matcher({text if len(text) <= 60 else b'...' + text[-57:]!r}, {state})"

    # ---- queries --------------------------------------------------------------------------------------------

    def mask(self, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Compute the mask of the tokens that are allowed next. The matcher does not change.

        Bit `i % 32` of word `i // 32` is set if token `i` is allowed. An end token is allowed exactly if `is_complete`.
        After an end token nothing is allowed.

        Parameters
        ----------
        out : ndarray of int32, shape (ceil(V / 32),), optional
            Array to write to: C-contiguous and writeable. V is the size of the vocabulary. None allocates a new array.

        Returns
        -------
        ndarray of int32, shape (ceil(V / 32),)
            `out`, or the new array.

        Raises
        ------
        LimitError
            If no token is allowed because a search gave up (see `is_stuck`), or the mask takes more than `Limits.work`
            steps.
        VocabularyError
            If no tokens of the vocabulary spell a text that may follow.
        TypeError, ArgumentError
            If `out` is not a suitable array.
        """
        if out is not None:
            result = repeat_mask(self._address, get_ident()) if out is self._out else CHANGED
            if result >= 0:
                return out
            if result != CHANGED:
                self._mask(out, self._position[AT_OUT_DATA])
                return out
            address = self._check_out(out)
        else:
            out = np.empty(self._state_cache.table.words, np.int32)
            address = address_of(out)
        if mask_at(self._address, get_ident(), address) < 0:
            self._mask(out, address)
        return out

    def _mask(self, out: NDArray[np.int32], address: int) -> None:
        """Compute the mask where one kernel call does not suffice."""
        if self._ended:
            out[:] = 0
            return
        self._retry_evicted(lambda state_cache: state_cache.run(fill_mask, self._set, address))
        if self.constraint.spellable is not None:
            self.constraint.spellable.narrow(out, self.allows)
            if not out.any() and not self.is_complete:
                raise VocabularyError(
                    "No tokens of the vocabulary spell a text of this constraint.",
                    hint="Use a vocabulary with a token for every byte.",
                )

    def _check_out(self, out: NDArray[np.int32]) -> int:
        """Check an array for masks and return its address.

        The array is not checked again while its address, shape, dtype and flags stay the same.
        """
        self._out = None
        words = self._state_cache.table.words
        if (
            type(out) is np.ndarray
            and can_read_arrays()
            and note_usual_array(self._position, self._address, out, words)
        ):
            self._out = out
            return self._position[AT_OUT_DATA]
        check_mask_array(out, words)
        if type(out) is not np.ndarray:
            return int(out.ctypes.data)
        if can_read_arrays():
            note_array(self._address, id(out))
            self._out = out
        return address_of(out)

    def allows(self, token: int) -> bool:
        """Return whether a token is allowed next, without computing a mask.

        Parameters
        ----------
        token : int
            A token id. Ids outside the vocabulary are not allowed.

        Returns
        -------
        bool

        Raises
        ------
        TypeError
            If `token` is not an integer.
        """
        vocabulary = self.constraint.vocabulary
        if type(token) is not int:
            token = check_token(token)
        if self._ended or not 0 <= token < vocabulary.size:
            return False
        if token in vocabulary.eos_ids:
            return self.is_complete
        return self._retry_evicted(lambda state_cache: self._completable_set_after(state_cache, int(token))) > 0

    def states_after(self, tokens: Iterable[int]) -> NDArray[np.int64]:
        """Return the state number after each of several tokens.

        Tokens with equal numbers lead to the same future.

        Parameters
        ----------
        tokens : iterable of int
            Token ids, n in total, without end tokens.

        Returns
        -------
        ndarray of int64, shape (n,)
            The second element of `state` after each token; 0 or less for a token that is refused.
        """
        ids = [check_token(token) for token in tokens]

        def states(state_cache: StateCache) -> list[int]:
            start, spellable, sets = self._set, self.constraint.spellable, []
            for token in ids:
                if not 0 <= token < self.constraint.vocabulary.size or self._ended:
                    sets.append(at.DEAD)
                    continue
                after = advance_token(state_cache.address, start, token) if spellable is None else -1
                sets.append(self._completable_set_after(state_cache, token) if after < 0 else after)
            return sets

        return np.array(self._retry_evicted(states), np.int64)

    def next_bytes(self) -> set[int]:
        """Return the bytes that may come next, regardless of token boundaries.

        Returns
        -------
        set of int
        """
        if self._ended:
            return set()
        flags = np.empty(256, np.uint8)
        self._retry_evicted(lambda state_cache: state_cache.run(list_next_bytes, self._set, flags))
        return set(np.flatnonzero(flags).tolist())

    def forced(self) -> bytes:
        """Return the bytes that must come next, up to the first choice or the point where the text may end.

        At most 4096 bytes are returned at once.

        Returns
        -------
        bytes
        """
        if self._ended:
            return b""
        text = np.empty(MOST_FORCED, np.uint8)
        return text[
            : self._retry_evicted(lambda state_cache: state_cache.run(find_forced_bytes, self._set, text))
        ].tobytes()

    def forced_tokens(self) -> list[int]:
        """Return tokens that spell a prefix of `forced`, as the tokenizer would spell it.

        The last token is omitted because the tokenizer might merge it with the text that follows, unless it is a
        special token or the text must end after it.

        Returns
        -------
        list of int
        """
        text = self.forced()
        if not text:
            return []
        tokens = self.constraint.vocabulary.tokenize(text)
        other = self.fork()
        other.advance_bytes(text)
        is_final = other.is_finished or tokens[-1] in self.constraint.vocabulary.names
        return tokens if is_final else tokens[:-1]

    def shortest_completion(self, limit: int | None = None) -> bytes | None:
        """Return a shortest, or nearly shortest, text that completes the current one.

        Parameters
        ----------
        limit : int, optional
            Most bytes of the completion.

        Returns
        -------
        bytes or None
            None if the completion takes more than `limit` bytes.
        """
        limit = None if limit is None else check_count("limit", limit)
        if self._ended:
            return b""
        return self._retry_evicted(lambda state_cache: completion_search(state_cache).complete(self._set, limit))

    @property
    def is_complete(self) -> bool:
        """Whether the text may end here, so that an end token is allowed."""
        if self._ended:
            return True
        flags = self._valid_state_cache().arrays[at.SETS][self._set * at.SET_W + at.SET_FLAGS]
        return bool(flags & at.IS_ACCEPTING)

    @property
    def state(self) -> tuple[int, int]:
        """The state as a pair (epoch, set).

        Positions of one Constraint and thread with equal states have the same future. `set` is the id of the set in the
        state cache, -1 after an end token. Every eviction of the state cache starts a new epoch, in which sets are
        renumbered.
        """
        state_cache = self._valid_state_cache()
        return state_cache.epoch, -1 if self._ended else self._set

    @property
    def is_finished(self) -> bool:
        """Whether the text must end here: an end token was accepted, or no byte may follow."""
        return self._ended > 0 or (self.is_complete and not self.next_bytes())

    @property
    def is_stuck(self) -> bool:
        """Whether nothing may follow although the text is not complete.

        This happens only where a uniqueness search gave up (see `engine.uniqueness`).
        """
        return not self._ended and not self.is_complete and not self.next_bytes()

    def prepare(self, seconds: float) -> bool:
        """Make ahead of time what the next masks can need. Call it while the model computes.

        Rules of the source that can be reached from here are linked, nearest first, and rows of tokens are made for
        their strings and numbers; then the masks of the states that likely tokens lead to are made. The steps that
        would have made them are faster then; masks and results are the same.

        The work is done in units of mostly less than 0.3 ms, and the last one may end after `seconds`. It is bounded
        by shares of `Limits.work` and `Limits.state_cache_bytes`, and never evicts the state cache.

        Parameters
        ----------
        seconds : float
            The time after which no more is begun.

        Returns
        -------
        bool
            Whether something is left to prepare.

        Raises
        ------
        TypeError, ArgumentError
            If `seconds` is not a number from 0 on.
        """
        end = perf_counter() + check_seconds(seconds)
        return prepare_matchers([self], lambda: perf_counter() >= end)

    # ---- transitions --------------------------------------------------------------------------------------------

    @property
    def text(self) -> bytes:
        """The text accepted so far: bytes of `advance_bytes` and of tokens, special tokens by their names."""
        spell = self.constraint.vocabulary.transcript
        return b"".join(item if isinstance(item, bytes) else spell((item,)) for item in self._accepted.to_list())

    @property
    def tokens(self) -> list[int]:
        """The tokens accepted so far, including end tokens, excluding bytes accepted by `advance_bytes`."""
        return self._accepted.tokens()

    def advance(self, token: int) -> None:
        """Accept one token.

        Parameters
        ----------
        token : int
            The token id.

        Raises
        ------
        TokenRefused
            If the token is not allowed. The matcher is unchanged.
        TypeError
            If `token` is not an integer.
        """
        if type(token) is not int:
            token = check_token(token)
        try:
            if advance_at(self._address, get_ident(), token) == 0:
                return
        except OverflowError:  # refused below
            pass
        try:
            self._advance(token)
        except ConstrainError:
            raise
        except BaseException:  # KeyboardInterrupt: the position may be inconsistent
            self._invalidate()
            raise

    def _advance(self, token: int) -> None:
        """Accept a token where one kernel call does not suffice."""
        vocabulary = self.constraint.vocabulary
        if not self._ended and 0 <= token < vocabulary.size and token not in vocabulary.eos_ids:
            after = self._retry_evicted(lambda state_cache: self._completable_set_after(state_cache, token))
            if after > 0:
                self._accepted.append(token, self._set)
                self._set = after
                return
        elif not self._ended and token in vocabulary.eos_ids and self.is_complete:
            self._accepted.append(token, self._set)
            self._ended = 1
            self._update_plain_tokens()
            return
        raise TokenRefused(
            explain_refusal(vocabulary, token, self._ended > 0), hint="`mask` says which tokens are allowed here."
        )

    def advance_bytes(self, text: bytes) -> None:
        """Accept bytes, regardless of token boundaries.

        Parameters
        ----------
        text : bytes
            The bytes to accept.

        Raises
        ------
        TokenRefused
            If a byte is refused; the attribute `position` of the error is its index. The matcher is unchanged.
        TypeError
            If `text` is not bytes.
        """
        check_type("text", text, (bytes, bytearray, memoryview), "give bytes, such as text.encode()")
        if self._ended and text:
            raise TokenRefused("The text has ended: nothing may follow the end token.")
        if not text:
            return
        octets = bytes(text)
        after = self._retry_evicted(lambda state_cache: self._set_after(state_cache, octets))
        if after < 0:
            position = -2 - after
            raise TokenRefused(f"Byte {position} of {octets[: position + 1][-24:]!r} is refused.", position=position)
        try:
            self._accepted.append(octets, self._set)
            self._set = after
        except BaseException:
            self._invalidate()
            raise

    def rollback(self, n: int = 1) -> None:
        """Undo the last advances. A call of `advance_bytes` counts as one.

        Parameters
        ----------
        n : int
            Number of advances to undo.

        Raises
        ------
        ArgumentError
            If fewer than `n` advances were made, or `n` is negative.
        """
        n = check_count("n", n)
        if n > len(self._accepted):
            raise ArgumentError(f"cannot roll back {n} of {len(self._accepted)} advances")
        self._valid_state_cache()
        if n:
            try:
                left = len(self._accepted) - n
                self._set = self._accepted.set_before(left)
                self._accepted.truncate(left)
                self._ended = 0
                self._update_plain_tokens()
            except BaseException:
                self._invalidate()
                raise

    def fork(self) -> Matcher:
        """Return an independent copy of this matcher at the same position.

        Returns
        -------
        Matcher
        """
        self._valid_state_cache()
        other = object.__new__(Matcher)
        other.constraint, other._state_cache, other._worker_slot, other._ended = (
            self.constraint,
            self._state_cache,
            self._worker_slot,
            self._ended,
        )
        other._set_record(self._position[:], self._accepted)
        other._out = None
        return other

    def __copy__(self) -> Matcher:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, object]) -> Matcher:
        return self.fork()

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.constraint, self._accepted.to_list())


def _restore(constraint: BoundProgram, taken: list[int | bytes]) -> Matcher:
    """Rebuild a pickled matcher by replaying its tokens and bytes. Raise TokenRefused if one of them is refused."""
    matcher = Matcher(constraint)
    for item in taken:
        if isinstance(item, bytes):
            matcher.advance_bytes(item)
        else:
            matcher.advance(item)
    return matcher
