"""vLLM, V2 model runner: `vllm serve MODEL --logits-processors constrain.plugins.vllm_v2:VllmV2Processor`.

A row of logits is not a request. With speculative decoding a request has one row for each draft token and one more;
rows change places every step; the slot of a finished request is given to another one. The text of a row is

    committed tokens of its slot (`req_states.all_token_ids`)  +  the draft tokens fed to earlier rows of the slot

Nothing is kept from step to step but the committed tokens already read: a slot that is a step ahead of them needs only
the token fed to its first row. After a preemption, a prefix found in the cache or accepted drafts, the others are read
back from the device. Rows of a prompt that is not complete yet are left as they are: their samples are discarded.

This module is also loaded by the front end of vLLM, and imports neither torch nor the runner.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor

from ..integrations.vocabulary_match import check_logits
from .engine_versions import check_engine_version
from .request_matcher import fill_request_masks
from .tensor_rows import mask_tensor_rows
from .vllm_requests import VllmRequest, VllmRequests, read_vllm_vocabulary, validate_vllm_params

if TYPE_CHECKING:
    import torch

__all__ = ["VllmV2Processor"]

check_engine_version("vllm")


class SlotText:
    """A request in a slot: its position, and the committed tokens of its text that are known on the host."""

    def __init__(self, request: VllmRequest) -> None:
        self.request = request
        self.committed: list[int] = []

    def update(self, length: int, last: int, history: Any) -> list[int]:
        """Return the first `length` committed tokens of the text.

        last: the token fed to the model, which is the last of them. history: function of (start, end) that reads
        tokens of the text from the device.
        """
        known = len(self.committed)
        if length == known + 1:
            self.committed.append(last)
        elif length > known:
            self.committed += history(known, length)
        return self.committed[:length]


class VllmV2Processor(LogitsProcessor):
    """Masks the rows of requests that have a constraint, see `vllm_requests`."""

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise ValueError for a constraint that is refused, or contradicts other parameters."""
        validate_vllm_params(sampling_params)

    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        """Raise VocabularyError if the bytes of the model's tokens cannot be derived."""
        super().__init__(vllm_config, req_states)
        self.requests = VllmRequests(read_vllm_vocabulary(vllm_config))
        check_logits(self.requests.vocabulary, req_states.vocab_size)
        self.req_states = req_states
        self.slots: dict[int, SlotText] = {}

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Put a request into a slot, whatever was in it. Return whether it has a constraint."""
        self.slots.pop(req_idx, None)
        request = self.requests.open_request(sampling_params)
        if request is None:
            return False
        self.slots[req_idx] = SlotText(request)
        return True

    def apply(self, logits: torch.Tensor, ctx: Any) -> torch.Tensor:
        """Mask the rows of constrained requests in place. logits: float32 [rows, V]; ctx: LogitsContext."""
        if self.slots.keys().isdisjoint(ctx.idx_mapping_np.tolist()):
            return logits
        slots, positions, fed = read_rows(ctx)
        rows_of_slots: dict[int, list[int]] = defaultdict(list)
        for row in np.argsort(positions, kind="stable").tolist():
            if slots[row] in self.slots:
                rows_of_slots[slots[row]].append(row)
        words = (self.requests.vocabulary.size + 31) // 32
        rows: list[int] = []
        masks: list[NDArray[np.int32]] = []
        single_rows: list[int] = []
        single: list[VllmRequest] = []
        for slot, own in rows_of_slots.items():
            committed = self._read_text(slot, positions[own[0]], fed[own[0]])
            if committed is None:
                continue
            request = self.slots[slot].request
            request.follow(committed)
            if len(own) == 1:
                single_rows.append(own[0])
                single.append(request)
                continue
            for count, row in enumerate(own):
                if count:
                    request.follow([*committed, *(fed[one] for one in own[1 : count + 1])])
                rows.append(row)
                masks.append(request.mask())
                if not count:  # a later row may fail over a draft token that is rejected
                    request.report_error()
        filled = np.zeros((len(single), words), np.int32)
        fill_request_masks(single, filled)
        for request in single:
            request.report_error()
        together = np.concatenate([filled, *(mask[None] for mask in masks)])
        mask_tensor_rows(logits, together, [*single_rows, *rows])
        return logits

    def _read_text(self, slot: int, position: int, fed: int) -> list[int] | None:
        """Return the committed tokens of a text up to a position of its sequence; None within the prompt."""
        start = int(self.req_states.prompt_len.np[slot])
        length = position + 1 - start
        if length < 0:
            return None
        tokens = self.req_states.all_token_ids.gpu

        def history(first: int, end: int) -> list[int]:
            read: list[int] = tokens[slot, start + first : start + end].tolist()
            return read

        return self.slots[slot].update(length, fed, history)


def read_rows(ctx: Any) -> tuple[list[int], list[int], list[int]]:
    """Return slot, position and fed token of each row, copied to the host at once."""
    import torch

    columns = (ctx.expanded_idx_mapping, ctx.pos, ctx.input_ids)
    slots, positions, fed = torch.stack([one.to(torch.int64) for one in columns]).tolist()
    return slots, positions, fed
