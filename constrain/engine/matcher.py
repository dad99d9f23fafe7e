"""Matcher: one changing position in a Constraint.

A position is the id of a set of configurations in this thread's state cache, so `fork` and `rollback` copy ints. What
was taken is kept too: if the state cache is evicted (it is bounded), or another thread goes on, the position is found
again.
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
"""Evictions of the state cache that one call survives: each leaves it empty, so that more attempts would not help."""

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
    """Whether numpy's arrays have their fields where kernels look for them; else each array is looked at by Python."""
    fields, dims = array("q", bytes(8 * POSITION_W)), []
    for one in (np.empty(3, np.int32), np.empty(5, np.float64)[::2], np.frombuffer(bytes(8), np.int16)):
        length = _look_at_array(fields.buffer_info()[0], id(one))
        found = fields[AT_OUT_DATA], fields[AT_OUT_DIMS], fields[AT_OUT_TYPE], fields[AT_OUT_FLAGS], length
        dims.append(found == (one.ctypes.data, 1, id(one.dtype), one.flags.num, len(one)))
    return sys.implementation.name == "cpython" and all(dims)


def _too_small(state_cache_bytes: int) -> LimitError:
    return LimitError(
        f"One text and one step of this constraint do not fit into Limits.state_cache_bytes = {state_cache_bytes:,}.",
        hint="Raise Limits(state_cache_bytes=...).",
    )


class Matcher:
    """One position; not for several threads at the same time, though any one may go on where another stopped."""

    __slots__ = ("_address", "_at", "_ended", "_out", "_sets", "_state_cache", "_taken", "_worker_slot", "constraint")

    def __init__(self, constraint: BoundProgram) -> None:
        if not isinstance(getattr(constraint, "program", None), Program):
            raise TypeError(f"constraint is {describe_value(constraint)}: give what constrain.compile returned")
        self.constraint = constraint
        self._at = array("q", bytes(8 * POSITION_W))  # the position, as `kernels.matcher_calls` has it
        self._address = self._at.buffer_info()[0]
        self._taken: list[int | bytes] = []
        self._sets: list[int] = []
        self._ended = 0  # how many of the taken are end tokens: these change no set
        self._worker_slot = 0  # which of a thread's state caches: see `engine.batches.parallel_fill`
        self._out: NDArray[np.int32] | None = None  # the array that was masked last, as `_at` describes it
        self._see_end()
        self._find()

    def __repr__(self) -> str:
        """The text so far, and whether it may end."""
        vocabulary = self.constraint.vocabulary
        text = b"".join(t if isinstance(t, bytes) else vocabulary.transcript((t,)) for t in self._taken)
        state = "finished" if self.is_finished else "complete" if self.is_complete else "not complete"
        return f"Matcher({text if len(text) <= 60 else b'...' + text[-57:]!r}, {state})"

    def _find(self) -> None:
        """Replay all that was taken, in this thread's state cache."""
        for _ in range(TRIES):
            try:
                self._at[AT_EPOCH] = -1  # until all is found: an interrupt leaves a position that is looked for again
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
        """Give the position up after an interrupt: `_taken` says what was taken, and all else is found by that."""
        taken, ends = self._taken, self.constraint.vocabulary.eos_ids
        self._ended = int(bool(taken) and not isinstance(taken[-1], bytes) and taken[-1] in ends)
        self._at[AT_EPOCH] = -1
        self._see_end()

    def _move(self, worker_slot: int) -> None:
        """Goes on in another of this thread's state caches."""
        self._worker_slot = worker_slot
        self._find()

    @property
    def _set(self) -> int:
        return self._at[AT_SET]

    @_set.setter
    def _set(self, number: int) -> None:
        self._at[AT_SET] = number

    def _see_end(self) -> None:
        """Notes which tokens are taken by their bytes alone."""
        plain = self.constraint.spellable is None
        self._at[AT_PLAIN] = -1 if self._ended else self.constraint.vocabulary.size if plain else 0

    def _stands(self) -> bool:
        """Whether the position means something to this thread."""
        return self._at[AT_EPOCH] == self._state_cache.epoch and self._at[AT_THREAD] == get_ident()

    def _here(self) -> StateCache:
        """The state cache, this matcher's position being valid in it."""
        if not self._stands():
            self._find()
        return self._state_cache

    def _after(self, state_cache: StateCache, item: int | bytes) -> int:
        """The set after a token or bytes: at.DEAD if refused; for bytes -2 - i if byte i is."""
        if isinstance(item, int):
            return state_cache.run(trie_walks.advance_token, self._set, item)
        return state_cache.run(
            trie_walks.advance_bytes, self._set, np.frombuffer(bytearray(item), np.uint8), length=len(item)
        )

    def _try(self, question: Callable[[StateCache], _T]) -> _T:
        """Return what `question` returns for this matcher's state cache; ask again after an eviction."""
        for _ in range(TRIES):
            try:
                return question(self._here())
            except StateCacheEvicted:
                continue
            except ConstrainError:
                raise
            except BaseException:  # KeyboardInterrupt: what a state cache remembers may be there by half.
                self._state_cache.lose()
                raise
        raise _too_small(self.constraint.limits.state_cache_bytes)

    def _finished_by_tokens(self, state_cache: StateCache, token: int) -> int:
        """The set after a token, at.DEAD if it is refused or no tokens reach the end behind it."""
        after, spellable = self._after(state_cache, token), self.constraint.spellable
        return after if after <= 0 or spellable is None or spellable.can_finish(state_cache, after) else at.DEAD

    def _ask(self, item: int | bytes) -> int:
        return self._try(lambda state_cache: self._after(state_cache, item))

    # ---- what may come --------------------------------------------------------------------------------------

    def mask(self, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """The tokens allowed next: bit i % 32 of word i // 32 is token i. int32[ceil(V / 32)], into `out` if given.

        An end token is allowed exactly when `is_complete`; after one nothing is. A mask without any token is otherwise
        an error: LimitError where a search gave up (`is_stuck`) or the mask takes too many steps, VocabularyError where
        no tokens spell what may follow. The matcher stays as it is.
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
        """The same, where more is needed than one call."""
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
        """Check an array for masks and return where it begins. While it stays as it is, it is not checked again."""
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
        """Whether the token may come next; no mask is made."""
        vocabulary = self.constraint.vocabulary
        if type(token) is not int:
            token = check_token(token)
        if self._ended or not 0 <= token < vocabulary.size:
            return False
        if token in vocabulary.eos_ids:
            return self.is_complete
        return self._try(lambda state_cache: self._finished_by_tokens(state_cache, int(token))) > 0

    def states_after(self, tokens: Iterable[int]) -> NDArray[np.int64]:
        """Return int64 [n]: the second part of `state` after each of these tokens, 0 or less for a refused one.

        Tokens with equal numbers have the same future. End tokens are not asked about.
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
        """The bytes that may come next, whatever the tokens."""
        if self._ended:
            return set()
        flags = np.empty(256, np.uint8)
        self._try(lambda state_cache: state_cache.run(masks.list_next_bytes, self._set, flags))
        return set(np.flatnonzero(flags).tolist())

    def forced(self) -> bytes:
        """The bytes that must come next: until there is a choice, or the text may end."""
        if self._ended:
            return b""
        text = np.empty(FORCED_AT_ONCE, np.uint8)
        return text[
            : self._try(lambda state_cache: state_cache.run(masks.find_forced_bytes, self._set, text))
        ].tobytes()

    def forced_tokens(self) -> list[int]:
        """Tokens that spell the start of `forced` as the tokenizer would.

        The tokenizer might merge the last of them with what comes next, so it is left out unless it is special, or the
        text must end behind it.
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
        """About the fewest bytes that finish the text from here; None if that takes more than `limit` bytes."""
        limit = None if limit is None else check_count("limit", limit)
        if self._ended:
            return b""
        return self._try(lambda state_cache: completion_search(state_cache).complete(self._set, limit))

    @property
    def is_complete(self) -> bool:
        """Whether the text may end here: an end token is then allowed."""
        if self._ended:
            return True
        flags = self._here().arrays[at.SETS][self._set * at.SET_W + at.SET_FLAGS]
        return bool(flags & at.IS_ACCEPTING)

    @property
    def state(self) -> tuple[int, int]:
        """What may follow, by a number: positions of one Constraint and thread with equal states have the same future.

        (epoch, set) of the state cache, (epoch, -1) behind an end token; a later epoch numbers everything anew.
        """
        state_cache = self._here()
        return state_cache.epoch, -1 if self._ended else self._set

    @property
    def is_finished(self) -> bool:
        """Whether the text must end here: an end token was taken, or no byte may follow."""
        return self._ended > 0 or (self.is_complete and not self.next_bytes())

    @property
    def is_stuck(self) -> bool:
        """Whether nothing may follow and the text may not end: only where a guard gave up its search (see `guards`)."""
        return not self._ended and not self.is_complete and not self.next_bytes()

    # ---- moving ------------------------------------------------------------------------------------------------

    @property
    def tokens(self) -> list[int]:
        """The tokens taken so far, end tokens included. Bytes taken by `advance_bytes` are not tokens."""
        return [item for item in self._taken if isinstance(item, int)]

    def advance(self, token: int) -> None:
        """Takes one token. Raises TokenRefused, the matcher unchanged, if it is not allowed."""
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
        except BaseException:  # KeyboardInterrupt: some of these steps may be done.
            self._lose()
            raise

    def _advance(self, token: int) -> None:
        """The same, where more is needed than one call."""
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
        """Takes bytes, whatever the tokens. Raises TokenRefused (`position`: the first refused byte), unchanged."""
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
        """Undoes the last n advances (a call of `advance_bytes` counts as one)."""
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
        """Another matcher at the same position; the two do not disturb each other."""
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
    """Return a matcher after what a pickled one took. Raise TokenRefused if something is refused."""
    matcher = Matcher(constraint)
    for item in taken:
        if isinstance(item, bytes):
            matcher.advance_bytes(item)
        else:
            matcher.advance(item)
    return matcher


def check_token(token: Any) -> int:
    """Return a token id of numpy or torch as an int. Raise TypeError for a bool, a float and everything else."""
    try:
        if isinstance(token, (bool, np.bool_)):
            raise TypeError
        return index(token)
    except Exception:  # also of foreign __index__
        raise TypeError(f"the token is {describe_value(token)}: give its id, a whole number") from None
