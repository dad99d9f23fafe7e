"""`MaskPrefetcher`: compute the masks of a ConstraintLogitsProcessor while the model runs, inside transformers'
`model.generate`.

A logits processor is called after the forward pass has been launched, so reading the ids there waits for that pass. A
*stopping criterion* is called before it, with the same ids. This one never stops generation: it starts copying the ids
to the host on a side stream, and a thread computes the masks and copies them to the device, where the processor finds
them.

    processor = ConstraintLogitsProcessor(constraint)
    model.generate(..., logits_processor=[processor], stopping_criteria=[Ahead(processor)])

If the processor receives other ids than were announced (the first step, reordered beams), it computes the masks then.

From then until the processor is called, the thread prepares for the masks after them (`engine.preparation`).
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import torch
from numba import cuda

from ..decoding.idle_preparation import PAUSE
from ..engine.preparation import prepare_matchers
from .cuda.device_masks import apply_mask
from .cuda.tensor_launch import KINDS
from .logits_processor import ConstraintLogitsProcessor, mask_scores

__all__ = ["MaskPrefetcher"]


class MaskPrefetcher:
    """A stopping criterion that starts computing the masks of the next step.

    ready_count: number of steps whose masks were ready.
    """

    def __init__(self, processor: ConstraintLogitsProcessor) -> None:
        self.processor, self.ready_count = processor, 0
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="constrain-prefetch")
        self._shape: tuple[int, ...] | None = None
        self._ids: torch.Tensor | None = None
        self._made: Future[tuple[torch.Tensor, Any]] | None = None
        self._prepared: Future[None] | None = None
        self._is_called = Event()  # the processor waits for masks, or a step has ended
        self._stream: Any = None
        processor.prefetcher = self

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        """Return bool [rows], all False. input_ids: int64 [rows, length], the ids that the processor receives next."""
        self._is_called.set()
        if self._prepared is not None:
            self._prepared.result()
            self._prepared = None
        if self._made is not None:
            self._made.exception()  # waits; a failure is raised by the processor's own call
            self._made = None
        if self._shape is not None and len(input_ids) == self._shape[0]:
            self._ids, self._made = input_ids, self._start(input_ids)
            self._is_called.clear()
            self._prepared = self._worker.submit(self._prepare)
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)

    def masks(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return int32 [rows, words] on the device of the scores: masks computed ahead, or now by the same thread."""
        self._is_called.set()
        made, ids = self._made, self._ids
        shape, self._shape = self._shape, tuple(scores.shape)
        self._made = self._ids = None
        if made is None or ids is not input_ids or shape != self._shape:
            if made is not None:
                made.exception()
            made = self._start(input_ids)
        else:
            self.ready_count += 1
        words, sent = made.result()
        if sent is not None:
            here = torch.cuda.current_stream(words.device)
            here.wait_event(sent)
            words.record_stream(here)
        return words

    def masked(self, input_ids: torch.Tensor, scores: torch.Tensor) -> Any:
        """Return a new tensor of the scores with every token that is not allowed at -inf; by a kernel where there is
        one.
        """
        words = self.masks(input_ids, scores)
        if scores.is_cuda and scores.dtype in KINDS and cuda.is_available():
            return apply_mask(scores.clone(memory_format=torch.contiguous_format), words)
        return mask_scores(scores, words)

    def _start(self, input_ids: torch.Tensor) -> Future[tuple[torch.Tensor, Any]]:
        drawn = None
        if input_ids.is_cuda:
            drawn = torch.cuda.Event()
            drawn.record(torch.cuda.current_stream(input_ids.device))
        return self._worker.submit(self._make, input_ids, drawn)

    def _prepare(self) -> None:
        """In the worker, after the masks: prepare for the next ones until the processor is called."""
        prepare_matchers(self.processor.open_matchers, lambda: self._is_called.wait(PAUSE))

    def _make(self, input_ids: torch.Tensor, drawn: Any) -> tuple[torch.Tensor, Any]:
        """In the worker: copy ids to the host, compute masks, copy them to the device.

        drawn: the event that the ids wait for.
        """
        assert self._shape is not None
        if not input_ids.is_cuda:
            return torch.from_numpy(self.processor.masks(input_ids.detach().numpy(), self._shape)), None
        device = input_ids.device
        if self._stream is None:
            self._stream = torch.cuda.Stream(device)
        self._stream.wait_event(drawn)
        with torch.cuda.stream(self._stream):
            ids = input_ids.detach().cpu().numpy()  # waits for this stream, not for the model
            masks = torch.from_numpy(self.processor.masks(ids, self._shape)).pin_memory()
            words = masks.to(device, non_blocking=True)
            sent = torch.cuda.Event()
            sent.record(self._stream)
        return words, sent
