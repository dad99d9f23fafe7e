"""Matcher: the state of matching one text against a Constraint.

A position is the id of a set of configurations in this thread's state cache, so `fork` and `rollback` copy integers.
The accepted tokens and bytes are stored too: if the state cache is evicted (its size is bounded), or another thread
continues, they are replayed to recompute the position.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable
from functools import cache
from operator import index
from threading import get_ident
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..base.errors import (
    ArgumentError,
    ConstrainError,
    LimitError,
    TokenRefused,
    VocabularyError,
    check_count,
    check_type,
    describe_value,
)
from ..kernels import layout as at, masks, matcher_calls, trie_walks
from ..kernels.jit.entry_points import address_of, entry_point
from ..kernels.matcher_calls import (  # fmt: skip
    AT_CONTEXT,
    AT_EPOCH,
    AT_OUT_DATA,
    AT_OUT_DIMS,
    AT_OUT_FLAGS,
    AT_OUT_TYPE,
    AT_PLAIN,
    AT_SET,
    AT_THREAD,
    POSITION_W,
)
from ..program.program import Program
from .bound_program import BoundProgram
from .shortest_completion import completion_search
from .state_cache import StateCache, StateCacheEvicted

__all__ = ["Matcher"]

FORCED_AT_ONCE = 4096
TRIES = 3
"""Evictions of the state cache that one call survives.

Each leaves the cache empty, so more attempts would not help.
"""

_T = TypeVar("_T")

_mask_at, _advance_at, _address_of = (
    entry_point(matcher_calls.mask_at),
    entry_point(matcher_calls.advance_at),
    entry_point(address_of),
)
_mask_again, _look_at_array = entry_point(matcher_calls.repeat_mask), entry_point(matcher_calls.note_array)
_walk = entry_point(trie_walks.advance_token)


@cache
def _knows_arrays() -> bool:
    """Return whether numpy arrays have the memory layout that the kernels read.

    If not, each array is inspected from Python.
    """
    fields, dims = array("q", bytes(8 * POSITION_W)), []
    for one in (np.empty(3, np.int32), np.empty(5, np.float64)[::2], np.frombuffer(bytes(8), np.int16)):
        length = _look_at_array(fields.buffer_info()[0], id(one))
        found = fields[AT_OUT_DATA], fields[AT_OUT_DIMS], fields[AT_OUT_TYPE], fields[AT_OUT_FLAGS], length
        dims.append(found == (one.ctypes.data, 1, id(one.dtype), one.flags.num, len(one)))
    return sys.implementation.name == "cpython" and all(dims)


def _too_small(state_cache_bytes: int) -> LimitError:
    """Return the LimitError for a state cache too small for one text and one step."""
    return LimitError(
        f"One text and one step of this constraint do not fit into Limits.state_cache_bytes = {state_cache_bytes:,}.",
        hint="Raise Limits(state_cache_bytes=...).",
    )


class Matcher:
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

    __slots__ = ("_address", "_at", "_ended", "_out", "_sets", "_state_cache", "_taken", "_worker_slot", "constraint")

    def __init__(self, constraint: BoundProgram) -> None:
        if not isinstance(getattr(constraint, "program", None), Program):
            raise TypeError(f"constraint is {describe_value(constraint)}: give what constrain.compile returned")
        self.constraint = constraint
        self._at = array("q", bytes(8 * POSITION_W))  # the position; layout: `kernels.matcher_calls`
        self._address = self._at.buffer_info()[0]
        self._taken: list[int | bytes] = []
        self._sets: list[int] = []
        self._ended = 0  # accepted end tokens: these do not change the set
        self._worker_slot = 0  # index among this thread's state caches, see `engine.batches.parallel_fill`
        self._out: NDArray[np.int32] | None = None  # the array of the last mask; its description is in `_at`
        self._see_end()
        self._find()

    def __repr__(self) -> str:
        """Return the text so far and whether it is complete."""
        vocabulary = self.constraint.vocabulary
        text = b"".join(t if isinstance(t, bytes) else vocabulary.transcript((t,)) for t in self._taken)
        state = "finished" if self.is_finished else "complete" if self.is_complete else "not complete"
        return f"Matcher({text if len(text) <= 60 else b'...' + text[-57:]!r}, {state})"

    def _find(self) -> None:
        """Replay all accepted tokens and bytes in this thread's state cache."""
        for _ in range(TRIES):
            try:
                self._at[AT_EPOCH] = -1  # an interrupt leaves an invalid position, which is recomputed
                state_cache = self._state_cache = self.constraint.state_cache(self._worker_slot)
                self._at[AT_CONTEXT], self._at[AT_THREAD] = state_cache.address, get_ident()
                self._sets, self._set = [], state_cache.start
                for item in self._taken[: len(self._taken) - self._ended]:
                    self._sets.append(self._set)
                    self._set = self._after(state_cache, item)
                self._sets.extend([self._set] * self._ended)
                self._at[AT_EPOCH] = state_cache.epoch
                return
            except StateCacheEvicted:
                continue
        raise _too_small(self.constraint.limits.state_cache_bytes)

    def _lose(self) -> None:
        """Invalidate the position after an interrupt. It is recomputed from `_taken`."""
        taken, ends = self._taken, self.constraint.vocabulary.eos_ids
        self._ended = int(bool(taken) and not isinstance(taken[-1], bytes) and taken[-1] in ends)
        self._at[AT_EPOCH] = -1
        self._see_end()

    def _move(self, worker_slot: int) -> None:
        """Continue in another of this thread's state caches."""
        self._worker_slot = worker_slot
        self._find()

    @property
    def _set(self) -> int:
        return self._at[AT_SET]

    @_set.setter
    def _set(self, number: int) -> None:
        self._at[AT_SET] = number

    def _see_end(self) -> None:
        """Update which tokens can be accepted by their bytes alone."""
        plain = self.constraint.spellable is None
        self._at[AT_PLAIN] = -1 if self._ended else self.constraint.vocabulary.size if plain else 0

    def _stands(self) -> bool:
        """Return whether the position is valid in this thread."""
        return self._at[AT_EPOCH] == self._state_cache.epoch and self._at[AT_THREAD] == get_ident()

    def _here(self) -> StateCache:
        """Return the state cache, after making the position valid in it."""
        if not self._stands():
            self._find()
        return self._state_cache

    def _after(self, state_cache: StateCache, item: int | bytes) -> int:
        """Return the set after a token or bytes: at.DEAD if a token is refused, -2 - i if byte i is refused."""
        if isinstance(item, int):
            return state_cache.run(trie_walks.advance_token, self._set, item)
        return state_cache.run(
            trie_walks.advance_bytes, self._set, np.frombuffer(bytearray(item), np.uint8), length=len(item)
        )

    def _try(self, question: Callable[[StateCache], _T]) -> _T:
        """Call `question` with this matcher's state cache and return the result. Retry after an eviction."""
        for _ in range(TRIES):
            try:
                return question(self._here())
            except StateCacheEvicted:
                continue
            except ConstrainError:
                raise
            except BaseException:  # KeyboardInterrupt: the state cache may be inconsistent
                self._state_cache.lose()
                raise
        raise _too_small(self.constraint.limits.state_cache_bytes)

    def _finished_by_tokens(self, state_cache: StateCache, token: int) -> int:
        """Return the set after a token.

        Return at.DEAD if the token is refused or no tokens can complete the text after it.
        """
        after, spellable = self._after(state_cache, token), self.constraint.spellable
        return after if after <= 0 or spellable is None or spellable.can_finish(state_cache, after) else at.DEAD

    def _ask(self, item: int | bytes) -> int:
        """Return the set after a token or bytes, as `_after` does, retrying after an eviction."""
        return self._try(lambda state_cache: self._after(state_cache, item))

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
            if out is self._out and _mask_again(self._address, get_ident()) >= 0:
                return out
            place = self._see(out)
        else:
            out = np.empty(self._state_cache.table.words, np.int32)
            place = _address_of(out)
        if _mask_at(self._address, get_ident(), place) < 0:
            self._mask(out, place)
        return out

    def _mask(self, out: NDArray[np.int32], place: int) -> None:
        """Compute the mask where one kernel call does not suffice."""
        if self._ended:
            out[:] = 0
            return
        self._try(lambda state_cache: state_cache.run(masks.fill_mask, self._set, place))
        if self.constraint.spellable is not None:
            self.constraint.spellable.narrow(out, self.allows)
            if not out.any() and not self.is_complete:
                raise VocabularyError(
                    "No tokens of the vocabulary spell a text of this constraint.",
                    hint="Use a vocabulary with a token for every byte.",
                )

    def _see(self, out: NDArray[np.int32]) -> int:
        """Check an array for masks and return its address.

        The array is not checked again while its address, shape, dtype and flags stay the same.
        """
        self._out = None
        is_plain = type(out) is np.ndarray
        if not is_plain:
            check_type("out", out, np.ndarray, "give a numpy array of int32, or None for a new one")
        words = self._state_cache.table.words
        if out.shape != (words,) or out.dtype != np.int32 or not (out.flags.c_contiguous and out.flags.writeable):
            raise ArgumentError(
                f"out must be a contiguous, writeable int32[{words}], not {out.dtype}{list(out.shape)}"
                f"{'' if out.flags.writeable else ', read-only'}"
            )
        if is_plain and _knows_arrays():
            _look_at_array(self._address, id(out))
            self._out = out
        return int(out.ctypes.data)

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
        return self._try(lambda state_cache: self._finished_by_tokens(state_cache, int(token))) > 0

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
            begin, spellable, found = self._set, self.constraint.spellable, []
            for token in ids:
                if not 0 <= token < self.constraint.vocabulary.size or self._ended:
                    found.append(at.DEAD)
                    continue
                after = _walk(state_cache.address, begin, token) if spellable is None else -1
                found.append(self._finished_by_tokens(state_cache, token) if after < 0 else after)
            return found

        return np.array(self._try(states), np.int64)

    def next_bytes(self) -> set[int]:
        """Return the bytes that may come next, regardless of token boundaries.

        Returns
        -------
        set of int
        """
        if self._ended:
            return set()
        flags = np.empty(256, np.uint8)
        self._try(lambda state_cache: state_cache.run(masks.list_next_bytes, self._set, flags))
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
        text = np.empty(FORCED_AT_ONCE, np.uint8)
        return text[
            : self._try(lambda state_cache: state_cache.run(masks.find_forced_bytes, self._set, text))
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
        whole = other.is_finished or tokens[-1] in self.constraint.vocabulary.names
        return tokens if whole else tokens[:-1]

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
        return self._try(lambda state_cache: completion_search(state_cache).complete(self._set, limit))

    @property
    def is_complete(self) -> bool:
        """Whether the text may end here, so that an end token is allowed."""
        if self._ended:
            return True
        flags = self._here().arrays[at.SETS][self._set * at.SET_W + at.SET_FLAGS]
        return bool(flags & at.IS_ACCEPTING)

    @property
    def state(self) -> tuple[int, int]:
        """The state as a pair (epoch, set).

        Positions of one Constraint and thread with equal states have the same future. `set` is the id of the set in the
        state cache, -1 after an end token. Every eviction of the state cache starts a new epoch, in which sets are
        renumbered.
        """
        state_cache = self._here()
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

    # ---- transitions --------------------------------------------------------------------------------------------

    @property
    def tokens(self) -> list[int]:
        """The tokens accepted so far, including end tokens, excluding bytes accepted by `advance_bytes`."""
        return [item for item in self._taken if isinstance(item, int)]

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
            before = _advance_at(self._address, get_ident(), token)
            if before >= 0:
                self._taken.append(token)
                self._sets.append(before)
            else:
                self._advance(token)
        except OverflowError:
            self._advance(token)
        except ConstrainError:
            raise
        except BaseException:  # KeyboardInterrupt: the position may be inconsistent
            self._lose()
            raise

    def _advance(self, token: int) -> None:
        """Accept a token where one kernel call does not suffice."""
        vocabulary = self.constraint.vocabulary
        if not self._ended and 0 <= token < vocabulary.size and token not in vocabulary.eos_ids:
            after = self._try(lambda state_cache: self._finished_by_tokens(state_cache, token))
            if after > 0:
                self._taken.append(token)
                self._sets.append(self._set)
                self._set = after
                return
        elif not self._ended and token in vocabulary.eos_ids and self.is_complete:
            self._taken.append(token)
            self._sets.append(self._set)
            self._ended = 1
            self._see_end()
            return
        raise TokenRefused(self._refusal(token), hint="`mask` says which tokens are allowed here.")

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
        after = self._ask(bytes(text))
        if after < 0:
            place = -2 - after
            raise TokenRefused(f"Byte {place} of {text[: place + 1][-24:]!r} is refused.", position=place)
        try:
            self._taken.append(bytes(text))
            self._sets.append(self._set)
            self._set = after
        except BaseException:
            self._lose()
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
        if n > len(self._taken):
            raise ArgumentError(f"cannot roll back {n} of {len(self._taken)} advances")
        self._here()
        if n:
            try:
                self._set = self._sets[-n]
                del self._sets[-n:], self._taken[-n:]
                self._ended = 0
                self._see_end()
            except BaseException:
                self._lose()
                raise

    def fork(self) -> Matcher:
        """Return an independent copy of this matcher at the same position.

        Returns
        -------
        Matcher
        """
        self._here()
        other = object.__new__(Matcher)
        other.constraint, other._state_cache, other._worker_slot, other._ended = (
            self.constraint,
            self._state_cache,
            self._worker_slot,
            self._ended,
        )
        other._at = self._at[:]
        other._address = other._at.buffer_info()[0]
        other._taken, other._sets = self._taken.copy(), self._sets.copy()
        other._out = None
        return other

    def __copy__(self) -> Matcher:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, object]) -> Matcher:
        return self.fork()

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.constraint, list(self._taken))

    def _refusal(self, token: int) -> str:
        vocabulary = self.constraint.vocabulary
        if self._ended:
            return f"Token {token} is refused: the text has ended."
        if not 0 <= token < vocabulary.size:
            return f"Token {token} is refused: the vocabulary has {vocabulary.size} tokens."
        if token in vocabulary.eos_ids:
            return f"End token {token} is refused: the text is not complete."
        text = vocabulary.tokens[token]
        if not text:
            return (
                f"Token {token} is refused: it is {'special' if token in vocabulary.names else 'empty'}, and no text."
            )
        return f"Token {token}, {text[:40]!r}, is refused here."


def _restore(constraint: BoundProgram, taken: list[int | bytes]) -> Matcher:
    """Rebuild a pickled matcher by replaying its tokens and bytes. Raise TokenRefused if one of them is refused."""
    matcher = Matcher(constraint)
    for item in taken:
        if isinstance(item, bytes):
            matcher.advance_bytes(item)
        else:
            matcher.advance(item)
    return matcher


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
