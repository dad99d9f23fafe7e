"""The batched model that the scheduler steps: slots with key-value caches, and one call for all rows of a step.

A *slot* holds the keys and values of one text. A step feeds every slot its new tokens and, after these, a tree of
draft tokens, whose attention is limited to their ancestors (tree attention, SpecInfer, Miao et al. 2024, section 4.2).
It returns the log-probabilities of the next token after the last new token and after each draft token. `commit` then
keeps the draft tokens that were accepted and discards the others.

    slot, unfed = runner.open(prompt)
    rows = runner.start([RowStep(slot, unfed, draft)]).wait()[0]     # float [1 + len(draft), V]
    runner.commit(slot, kept)                                        # nodes of one path of the draft
    runner.start([RowStep(slot, [token], next_draft)]) ...
    runner.release(slot)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..speculation.draft_source import NO_DRAFT, DraftTree

__all__ = ["DEFAULT_BOUNDS", "CacheBounds", "LogprobRows", "ModelRunner", "OpenedSlot", "RowStep", "RunningStep"]

LogprobRows = NDArray[np.floating[Any]]
"""Log-probabilities of the next token (nats), float32 or float64 [n, V], normalised; or logits, where asked for."""


@dataclass(frozen=True, slots=True)
class CacheBounds:
    """How much memory a runner uses for texts that have ended.

    texts: the most of them that are kept, for prompts that begin as they do. rows: the most texts in the cache, running
    and kept; a running text is never refused, so the scheduler limits those. bytes: the most that the cache holds while
    no text runs, and for kept texts. While texts run, it holds at most that, or twice what they need, where a number of
    rows and a length are rounded up to powers of two.
    """

    texts: int = 0
    rows: int = 0
    bytes: int = 1 << 28


DEFAULT_BOUNDS = CacheBounds()


class OpenedSlot(NamedTuple):
    """A slot, the tokens of its prompt that have to be fed before or with the first step, and the number of those
    before them whose keys and values were in the cache.
    """

    slot: int
    unfed: Sequence[int]
    reused: int = 0


@dataclass(frozen=True, slots=True)
class RowStep:
    """What one slot is fed in a step.

    slot: its number. feed: tokens that follow the text in the cache; at least one unless the runner opened the slot
    with nothing to feed. draft: a tree of guesses after them. rows: asks for the rows after the last token of `feed`
    and after each node of `draft`, as log-probabilities or as the model's logits (of a model without logits also
    log-probabilities); "none" asks for no row (a part of a long prompt).
    """

    slot: int
    feed: Sequence[int]
    draft: DraftTree = NO_DRAFT
    rows: Literal["logprobs", "logits", "none"] = "logprobs"


class RunningStep(Protocol):
    """A step that was started."""

    def wait(self) -> list[LogprobRows]:
        """Return the rows of each RowStep, float [1 + len(draft), V], or [0, V] if none were asked for.

        Raises what the model raised. The slots of the step can then only be released.
        """
        ...

    def ends_within(self, seconds: float) -> bool:
        """Wait for the step, at most so long, and return whether it has ended, so that `wait` returns at once.

        Also True, at once, if the step runs only in the thread that calls `wait`: there is no time to use before.
        """
        ...


class ModelRunner(Protocol):
    """A model with slots. Used by one thread at a time, and for one step at a time."""

    def open(self, prompt: Sequence[int]) -> OpenedSlot:
        """Return a new slot for a text after `prompt`."""
        ...

    def count_cached(self, prompt: Sequence[int]) -> int:
        """Return how many tokens of a prompt need not be fed, because `open` would find their keys and values."""
        ...

    def start(self, steps: Sequence[RowStep]) -> RunningStep:
        """Start one forward pass, or several, over different slots. The caller can compute masks until it waits."""
        ...

    def commit(self, slot: int, kept: Sequence[int]) -> None:
        """Keep these nodes of the draft of the last step, which form a path from the root; discard the others.

        Must be called for each slot of a step before its next step.
        """
        ...

    def share(self, slot: int) -> int:
        """Return a new slot with a copy of everything in `slot`, the draft of its last step included."""
        ...

    def rewind(self, slot: int, kept: int = 0) -> None:
        """Discard everything after the prompt of a slot but its first `kept` tokens."""
        ...

    def release(self, slot: int) -> None:
        """Free a slot."""
        ...

    def count_positions_left(self, prompt: Sequence[int]) -> int | None:
        """Return the most tokens of a text after `prompt`, end token included; None if there is no limit."""
        ...

    def estimate_cost(self, widths: Sequence[int]) -> float:
        """Return the relative cost of a step whose rows have these numbers of tokens, fed and drafted, in any unit."""
        ...

    def restart(self) -> bool:
        """Make the runner usable, without any slot, in a forked process, where its threads do not exist. Return
        whether it is: a model on a device may not be.
        """
        ...

    def close(self) -> None:
        """Wait for a step that is running, and free all memory. The runner cannot be used afterwards."""
        ...
