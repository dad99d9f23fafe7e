"""A request in the scheduler: which of its samples wait, which run in which slot, and how the others ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Literal

from ..base.errors import ConstrainError
from ..speculation.draft_source import NO_DRAFT, DraftTree
from .model_runner import LogprobRows
from .outcomes import Outcome
from .requests import GenerationRequest
from .sample_state import SampleState

__all__ = ["RequestRun"]


class RequestRun:
    """The state of a request.

    Attributes
    ----------
    request : GenerationRequest
    outcomes : list of Outcome or None
        The texts that have ended, by the number of the sample.
    errors : list of BaseException or None
        The errors that samples have ended with.
    live : dict of SampleState to int
        The samples that are being generated, and their slots.
    waiting : deque of int
        The numbers of the samples that have not begun.
    is_admitted : bool
        Whether a slot is reserved for the prompt, which does not begin to be fed yet.
    slot : int or None
        The slot of the prompt while it is fed; unfed: its tokens that have not been fed; reused: the number of those
        that need not be.
    first_row : float [1, V] or None
        The row after the prompt, while samples wait.
    wanted : {"logprobs", "logits"}
        The rows that its samples take.
    is_cancelled : bool
        Set by any thread; the run ends before the next step.
    """

    def __init__(self, request: GenerationRequest, on_done: Callable[[RequestRun], None] | None) -> None:
        count = len(request.generators)
        self.request, self.on_done = request, on_done
        self.outcomes: list[Outcome | None] = [None] * count
        self.errors: list[BaseException | None] = [None] * count
        self.live: dict[SampleState, int] = {}
        self.numbers: dict[SampleState, int] = {}
        self.waiting = deque(range(count))
        self.wanted: Literal["logprobs", "logits"] = "logprobs" if request.choice.adjustment.is_empty else "logits"
        self.is_admitted = False
        self.slot: int | None = None
        self.unfed: list[int] = []
        self.reused = 0
        self.first: SampleState | None = None
        self.first_row: LogprobRows | None = None
        self.is_cancelled = self.is_reported = False

    @property
    def is_done(self) -> bool:
        """Whether every sample has ended."""
        return not self.waiting and not self.live

    @property
    def error(self) -> BaseException | None:
        """The first error of a sample, or None."""
        return next((error for error in self.errors if error is not None), None)

    def begin(self) -> None:
        """Make the state of the first sample. Raises LimitError if the shortest text does not fit in max_tokens."""
        if self.waiting:
            self.first = self.make_sample(0)

    def first_sample(self) -> SampleState:
        """Return the state of the first sample, which stands for all while the prompt is fed."""
        assert self.first is not None
        return self.first

    def propose_first_draft(self, texts: int) -> DraftTree:
        """Return the draft after the prompt, which all samples share. A sampled draft is shared by none: the samples
        would not be independent. texts: how many texts the batch has.
        """
        draft = self.first_sample().propose_draft(texts)
        return NO_DRAFT if draft.probabilities and len(self.waiting) > 1 else draft

    def make_sample(self, number: int) -> SampleState:
        """Return the state of a sample at its beginning."""
        listener = self.request.listener
        emit = None if listener is None else partial(listener, number)
        sample = SampleState(self.request, self.request.generators[number], emit)
        self.numbers[sample] = number
        return sample

    def next_sample(self) -> SampleState | None:
        """Take the next waiting sample and return its state; None if it cannot begin, which is recorded."""
        number = self.waiting.popleft()
        try:
            return self.first_sample() if number == 0 else self.make_sample(number)
        except ConstrainError as error:
            self.record(number, None, error)
            return None

    def end_sample(self, sample: SampleState, error: BaseException | None) -> None:
        """Record how a sample ended. The caller takes it out of `live`."""
        self.record(self.numbers.pop(sample), sample.outcome if error is None else None, error)

    def record(self, number: int, outcome: Outcome | None, error: BaseException | None) -> None:
        """Record how the sample of this number ended, and tell the listener."""
        self.outcomes[number], self.errors[number] = outcome, error
        if outcome is not None:
            outcome.stats.reused_tokens = self.reused
        if self.request.end_listener is not None:
            try:
                self.request.end_listener(number, outcome, error)
            except BaseException as failure:  # must not end the texts of others
                self.errors[number] = failure if error is None else error

    def fail_all(self, error: BaseException) -> None:
        """Record an error for every sample that has not ended."""
        for number, outcome in enumerate(self.outcomes):
            if outcome is None and self.errors[number] is None:
                self.record(number, None, error)
        self.waiting.clear()

    def forget_samples(self) -> None:
        """Free the states of samples: whoever waits for the outcomes may keep the run for long."""
        self.numbers.clear()
        self.first = self.first_row = None

    def report(self) -> None:
        """Call `on_done`, once."""
        if not self.is_reported:
            self.is_reported = True
            if self.on_done is not None:
                self.on_done(self)
