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

__all__ = ["LogprobRows", "ModelRunner", "OpenedSlot", "RowStep", "RunningStep"]

LogprobRows = NDArray[np.floating[Any]]
"""Log-probabilities of the next token (nats), float32 or float64 [n, V], normalised; or logits, where asked for."""


class OpenedSlot(NamedTuple):
    """A slot, and the tokens of its prompt that have to be fed before or with the first step."""

    slot: int
    unfed: Sequence[int]


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


class ModelRunner(Protocol):
    """A model with slots. Used by one thread at a time, and for one step at a time."""

    def open(self, prompt: Sequence[int]) -> OpenedSlot:
        """Return a new slot for a text after `prompt`."""
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

    def rewind(self, slot: int) -> None:
        """Discard everything after the prompt of a slot."""
        ...

    def release(self, slot: int) -> None:
        """Free a slot."""
        ...

    def count_positions_left(self, prompt: Sequence[int]) -> int | None:
        """Return the most tokens of a text after `prompt`, end token included; None if there is no limit."""
        ...

    def close(self) -> None:
        """Wait for a step that is running, and free all memory. The runner cannot be used afterwards."""
        ...
