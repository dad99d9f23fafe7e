"""A model after a prompt, whose rows are computed in the slots of a scheduler: what searches and sessions run on.

Calls of several of them, in several threads, are rows of the same steps as the texts of the scheduler (see
`decoding.prefix_calls`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstrainError
from ..decoding.model_runner import ModelRunner
from ..decoding.prefix_calls import PrefixReader, RowKind
from ..decoding.scheduler import Scheduler

__all__ = ["SlotModel", "open_models_here"]

Rows = NDArray[np.floating[Any]]
ReadRows = Callable[[PrefixReader, Sequence[Sequence[int]], RowKind], Rows]
"""Returns the rows after prefixes."""


class SlotModel:
    """A `LanguageModel` after a prompt, in slots.

    Parameters
    ----------
    read : callable
        Returns the rows after prefixes, see `ReadRows`.
    free : callable
        Frees the slots of a reader.
    prompt : sequence of int
        Token ids; empty for a model that holds its own prompt.
    max_new_tokens : int or None
        Most tokens that the model has positions for after the prompt.
    width : int
        Most texts whose keys and values are kept between calls.
    """

    def __init__(
        self,
        read: ReadRows,
        free: Callable[[PrefixReader], None],
        prompt: Sequence[int],
        max_new_tokens: int | None,
        width: int = 1,
    ) -> None:
        self.read, self.free, self.max_new_tokens = read, free, max_new_tokens
        self.prompt_ids = list(prompt)
        self.reader = PrefixReader(self.prompt_ids, width)
        self.is_stopped = False

    def next_logprobs(self, prefixes: list[list[int]]) -> Rows:
        """Return the log-probabilities (nats) of the next token after each prefix, float [n, V]."""
        return self.call(prefixes, "logprobs")

    def next_logits(self, prefixes: list[list[int]]) -> Rows:
        """Return the logits of the next token after each prefix, float [n, V]; of a model without logits, its
        log-probabilities.
        """
        return self.call(prefixes, "logits")

    def call(self, prefixes: list[list[int]], kind: RowKind) -> Rows:
        """Return rows. Raise ConstrainError after `stop`."""
        if self.is_stopped:
            raise ConstrainError("the call was cancelled")
        return self.read(self.reader, prefixes, kind)

    def fork(self) -> SlotModel:
        """Return a model after the same prompt, with slots of its own."""
        return SlotModel(self.read, self.free, self.prompt_ids, self.max_new_tokens, self.reader.width)

    def close(self) -> None:
        """Free the slots. They are filled again if more rows are asked for."""
        self.free(self.reader)

    def stop(self) -> None:
        """Let all further calls fail, from any thread."""
        self.is_stopped = True


def open_models_here(runner: ModelRunner) -> Callable[[Sequence[int]], SlotModel]:
    """Return a function that opens the model after a prompt; rows are computed in the thread that asks for them."""
    scheduler = Scheduler(runner)

    def read(reader: PrefixReader, prefixes: Sequence[Sequence[int]], kind: RowKind) -> Rows:
        call = scheduler.prefix_calls.submit(reader, prefixes, kind)
        try:
            while not call.done.done():
                scheduler.step()
        except BaseException as error:
            scheduler.abort(error)
            raise
        return call.done.result()

    def free(reader: PrefixReader) -> None:
        reader.is_idle = True

    def open_model(prompt: Sequence[int]) -> SlotModel:
        return SlotModel(read, free, prompt, runner.count_positions_left(prompt), scheduler.slots)

    return open_model
