"""Continuous batching: texts join and leave the batch between the steps of the model (Orca, Yu et al. 2022, section 3).

    while there is work:  admit requests to free slots  ->  start a step of all rows
                          ->  fill their masks, then prepare for the next ones, meanwhile
                          ->  sample along each row  ->  retire finished texts at once

The prompt of a request is fed once, from the end of the longest prefix that is in the cache of the model on, in parts
of a stated number of tokens per step beside the running rows (chunked prefill, Sarathi, Agrawal et al. 2023), and its
keys and values are then copied to the slots of the request's samples.
All state belongs to the request and its samples; a slot is only a place. A text whose constraint, listener or row fails
ends with its own error; the others do not notice. Only an error of the model itself ends all texts of its step.

Searches and sessions ask for rows after prefixes of their own; these are rows of the same steps (`prefix_calls`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter_ns

import numpy as np

from ..base.errors import ConstrainError, check_count
from ..speculation.draft_source import NO_DRAFT, DraftTree
from .draft_costs import find_least_draft
from .idle_preparation import prepare_while_running
from .model_runner import LogprobRows, ModelRunner, RowStep
from .prefix_calls import PrefixCalls
from .prompt_order import PromptOrder
from .request_run import RequestRun
from .requests import GenerationRequest
from .sample_state import SampleState
from .step_masks import MaskBuffer, NodeMask, compute_step_masks

__all__ = ["PREFILL_TOKENS", "SLOTS", "Scheduler"]

SLOTS = 32
"""Default number of texts in a batch."""
PREFILL_TOKENS = 512
"""Default number of prompt tokens that a step feeds beside the running rows."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """One row of a step: a sample that goes on, or the prompt of a request (sample None)."""

    run: RequestRun
    sample: SampleState | None
    step: RowStep

    @property
    def text(self) -> SampleState:
        """The text whose masks the row needs; of a prompt, its first sample."""
        return self.run.first_sample() if self.sample is None else self.sample


class Scheduler:
    """Runs requests on a `ModelRunner`, as one batch. Used by one thread at a time, except `submit` and `cancel`.

    Parameters
    ----------
    runner : ModelRunner
        The model.
    slots : int
        Maximum number of texts in a batch.
    prefill_tokens : int
        Maximum number of prompt tokens that a step feeds, so that long prompts do not stall the running rows.
    """

    def __init__(self, runner: ModelRunner, *, slots: int = SLOTS, prefill_tokens: int = PREFILL_TOKENS) -> None:
        self.runner = runner
        self.slots, self.prefill_tokens = (
            check_count("slots", slots, 1),
            check_count("prefill_tokens", prefill_tokens, 1),
        )
        self.queue: deque[RequestRun] = deque()
        self.runs: list[RequestRun] = []
        self.used = 0
        self.prefix_calls = PrefixCalls(runner)
        self.buffer = MaskBuffer()
        self.step_ns = self.outside_ns = self.steps = 0

    def submit(self, request: GenerationRequest, on_done: Callable[[RequestRun], None] | None = None) -> RequestRun:
        """Queue a request and return its run. on_done: called in the stepping thread when all its texts have ended."""
        run = RequestRun(request, on_done)
        self.queue.append(run)
        return run

    def cancel(self, run: RequestRun) -> None:
        """Abandon the texts of a run that have not ended; their slots are free from the next step on."""
        run.is_cancelled = True

    @property
    def has_work(self) -> bool:
        """Whether a request or a call has not ended."""
        return bool(self.queue or self.runs) or self.prefix_calls.has_work

    def step(self) -> None:
        """Advance all texts by one step of the model."""
        start = perf_counter_ns()
        self.drop_cancelled()
        asked = self.prefix_calls.plan_steps(self.slots - self.used, self.prefill_tokens)
        self.admit()
        rows = self.defer_drafts(self.plan_rows())
        if not rows and not asked:
            return
        running = self.runner.start([*(row.step for row in rows), *(step for _, _, step in asked)])
        begin = perf_counter_ns()
        masks = self.fill_masks(rows)
        masked = perf_counter_ns()
        prepare_while_running((row.text.matcher for row in rows), running)
        try:
            found = running.wait()
        except Exception as error:
            for row in rows:
                self.fail_run(row.run, error)
            for call, _, _ in asked:
                self.prefix_calls.fail(call, error)
            return
        ready = perf_counter_ns()
        for row, logprobs, node_masks in zip(rows, found, masks):
            row.text.model_ns += ready - begin
            row.text.mask_ns += (masked - begin) // len(rows)
            self.deliver_row(row, logprobs, node_masks)
        for (call, feed, _), logprobs in zip(asked, found[len(rows) :]):
            self.prefix_calls.deliver(call, feed, logprobs)
        end = perf_counter_ns()
        self.steps, self.step_ns = self.steps + 1, self.step_ns + end - start
        self.outside_ns += begin - start + end - ready

    def abort(self, error: BaseException | None = None) -> None:
        """Abandon all requests, with an error or as cancelled, after an exception that interrupted a step."""
        for run in [*self.runs, *self.queue]:
            if error is not None:
                run.fail_all(error)
            run.is_cancelled = True
        self.drop_cancelled()
        self.prefix_calls.abort(ConstrainError("the Engine was closed") if error is None else error)

    def forget_runs(self) -> None:
        """Forget all requests without reporting them, in a forked process, where nobody waits for them."""
        self.queue.clear()
        self.runs.clear()
        self.used = 0
        self.prefix_calls.forget_calls()

    # ---- admission ----------------------------------------------------------------------------------------------

    def drop_cancelled(self) -> None:
        """End the runs that were cancelled."""
        for run in [run for run in [*self.runs, *self.queue] if run.is_cancelled]:
            if run in self.queue:
                self.queue.remove(run)
            self.end_run(run)

    def admit(self) -> None:
        """Give free slots to waiting samples of running requests, then to queued requests."""
        for run in list(self.runs):
            while run.waiting and run.live and self.find_slots(1):
                slot = self.runner.share(next(iter(run.live.values())))
                self.used += 1
                self.continue_in(run, slot)
        while self.queue and self.find_slots(1):
            self.begin_run(self.queue.popleft())

    def begin_run(self, run: RequestRun) -> None:
        """Reserve a slot for the prompt of a request."""
        try:
            run.begin()
        except Exception as error:
            run.fail_all(error)
        self.runs.append(run)
        if not run.is_done:
            run.is_admitted, self.used = True, self.used + 1
        self.end_if_done(run)

    def open_prompt(self, run: RequestRun) -> None:
        """Open the slot of a request when its prompt begins to be fed."""
        run.is_admitted, self.used = False, self.used - 1
        try:
            run.slot, unfed, run.reused = self.runner.open(run.request.prompt)
        except Exception as error:
            self.fail_run(run, error)
            return
        run.unfed, self.used = list(unfed), self.used + 1

    # ---- a step -------------------------------------------------------------------------------------------------

    def plan_rows(self) -> list[StepRow]:
        """Return the rows of the next step: running samples with their drafts, and parts of prompts."""
        rows, budget, order = list[StepRow](), self.prefill_tokens, PromptOrder(self.runner)
        for run in list(self.runs):
            for sample, slot in list(run.live.items()):
                try:
                    draft = sample.propose_draft(self.used)
                except Exception as error:
                    self.end_sample(run, sample, error)
                    continue
                rows.append(StepRow(run, sample, RowStep(slot, sample.unfed, draft, run.wanted)))
            if run.is_admitted and budget > 0 and order.is_due(run):
                self.open_prompt(run)
            if run.slot is not None and budget > 0:
                order.add(run)
                part = run.unfed[:budget]
                budget -= len(part)
                if len(part) < len(run.unfed):
                    rows.append(StepRow(run, None, RowStep(run.slot, part, rows="none")))
                    continue
                try:
                    draft = run.propose_first_draft(self.used)
                except Exception as error:
                    self.fail_run(run, error)
                    continue
                rows.append(StepRow(run, None, RowStep(run.slot, part, draft, run.wanted)))
        return rows

    def defer_drafts(self, rows: list[StepRow]) -> list[StepRow]:
        """Leave out the drafts of forced text that cost this step more than they save later ones."""
        lengths = [len(row.step.draft) if row.text.is_draft_forced else 0 for row in rows]
        if not any(lengths):
            return rows
        widths = [len(row.step.feed) + len(row.step.draft) - length for row, length in zip(rows, lengths)]
        least = find_least_draft(widths, lengths, self.runner.estimate_cost)
        return [
            replace(row, step=replace(row.step, draft=NO_DRAFT)) if 0 < length < least else row
            for row, length in zip(rows, lengths)
        ]

    def fill_masks(self, rows: Sequence[StepRow]) -> list[list[NodeMask]]:
        """Return the masks of the rows of a step, at the last token and at each node of the draft."""
        texts = [(None if row.step.rows == "none" else row.text.matcher, row.step.draft) for row in rows]
        return compute_step_masks(texts, self.buffer)

    def deliver_row(self, row: StepRow, logprobs: LogprobRows, masks: Sequence[NodeMask]) -> None:
        """Hand the rows of a step to their text, or to all samples of a prompt that is complete."""
        run, step = row.run, row.step
        if row.sample is not None:
            if row.sample in run.live:
                self.take_rows(run, row.sample, logprobs, masks, step.draft)
            return
        if run.slot is None:
            return
        run.unfed = run.unfed[len(step.feed) :]
        if step.rows == "none":
            self.runner.commit(run.slot, ())
            return
        self.start_samples(run, logprobs, masks, step.draft)

    def start_samples(
        self, run: RequestRun, logprobs: LogprobRows, masks: Sequence[NodeMask], draft: DraftTree
    ) -> None:
        """Give as many samples as possible a slot each with a copy of the prompt, and their first rows."""
        assert run.slot is not None
        count = 1 + self.find_slots(len(run.waiting) - 1)
        slots = [run.slot, *(self.runner.share(run.slot) for _ in range(count - 1))]
        run.slot, self.used = None, self.used + count - 1
        if len(run.waiting) > count:
            run.first_row = logprobs[:1].copy()
        started = []
        for slot in slots:
            sample = self.open_sample(run, slot)
            if sample is not None:
                started.append(sample)
        for sample in started:
            copies = [mask.copy() if isinstance(mask, np.ndarray) else mask for mask in masks]
            self.take_rows(run, sample, logprobs, copies, draft)
        self.end_if_done(run)

    def take_rows(
        self, run: RequestRun, sample: SampleState, logprobs: LogprobRows, masks: Sequence[NodeMask], draft: DraftTree
    ) -> None:
        """Let a text sample along its rows; retire it if it ends or fails."""
        try:
            kept = sample.take_rows(logprobs, masks, draft)
        except BaseException as error:  # the text's own; an interrupt is raised by whoever waits for the run
            self.end_sample(run, sample, error)
        else:
            if sample.is_finished:
                self.end_sample(run, sample, None)
            else:
                self.runner.commit(run.live[sample], kept)

    def end_sample(self, run: RequestRun, sample: SampleState, error: BaseException | None) -> None:
        """Retire a text, and start the next one of its request in its slot."""
        run.end_sample(sample, error)
        self.continue_in(run, run.live.pop(sample))
        self.end_if_done(run)

    # ---- slots --------------------------------------------------------------------------------------------------

    def find_slots(self, count: int) -> int:
        """Return how many of a number of slots are free, after taking those of programs that are not using them."""
        while self.slots - self.used - self.prefix_calls.held < count and self.prefix_calls.give_up_slot():
            pass
        return min(count, self.slots - self.used - self.prefix_calls.held)

    def open_sample(self, run: RequestRun, slot: int) -> SampleState | None:
        """Make the next waiting sample of a run live in a slot. Release the slot if it cannot begin."""
        sample = run.next_sample()
        if sample is None:
            self.release(slot)
        else:
            run.live[sample] = slot
        return sample

    def continue_in(self, run: RequestRun, slot: int) -> None:
        """Rewind a slot to its prompt and start the next waiting sample there; release it if there is none."""
        if not run.waiting:
            self.release(slot)
            return
        self.runner.rewind(slot)
        sample = self.open_sample(run, slot)
        if sample is not None:
            assert run.first_row is not None
            masks = compute_step_masks([(sample.matcher, NO_DRAFT)], MaskBuffer())[0]
            self.take_rows(run, sample, run.first_row, masks, NO_DRAFT)

    def release(self, slot: int) -> None:
        """Free a slot."""
        self.runner.release(slot)
        self.used -= 1

    def fail_run(self, run: RequestRun, error: BaseException) -> None:
        """End all texts of a run with an error."""
        run.fail_all(error)
        self.end_run(run)

    def end_if_done(self, run: RequestRun) -> None:
        """End a run of which no text is left."""
        if run.is_done:
            self.end_run(run)

    def end_run(self, run: RequestRun) -> None:
        """Free everything that a run holds, and report it."""
        for slot in run.live.values():
            self.release(slot)
        if run.slot is not None:
            self.release(run.slot)
        if run.is_admitted:
            self.used -= 1
        run.live, run.slot, run.is_admitted = {}, None, False
        run.forget_samples()
        if run in self.runs:
            self.runs.remove(run)
        run.report()
