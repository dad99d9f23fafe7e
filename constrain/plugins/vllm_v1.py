"""vLLM, V1 model runner: `vllm serve MODEL --logits-processors constrain.plugins.vllm_v1:VllmV1Processor`.

Set VLLM_USE_V2_MODEL_RUNNER=0 where vLLM would use its newer runner; the class for that one is in `vllm_v2`. A class of
the wrong generation stops the server when it starts, which is why neither is registered as an entry point. vLLM refuses
custom processors with this runner beside speculative decoding.

The batch changes between steps: requests leave, join and change places (`BatchUpdate`). `AdapterLogitsProcessor` of
vLLM keeps the state of a request with its row, and the list of its output tokens is live, so nothing here counts calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

from ..integrations.vocabulary_match import check_logits
from .engine_versions import check_engine_version
from .request_matcher import fill_request_masks
from .tensor_rows import mask_tensor_rows
from .vllm_requests import VllmRequest, VllmRequests, read_vllm_vocabulary, validate_vllm_params

if TYPE_CHECKING:
    import torch

__all__ = ["VllmV1Processor"]

check_engine_version("vllm")


class RequestRow:
    """The processor of one request, as vLLM's adapter wants it: a callable of (output_ids, logits)."""

    def __init__(self, request: VllmRequest) -> None:
        self.request = request

    def __call__(self, output_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
        """Mask one row of logits, [V], in place."""
        self.request.follow(output_ids)
        mask_tensor_rows(logits[None], self.request.mask()[None], [0])
        return logits


class VllmV1Processor(AdapterLogitsProcessor):
    """Masks the rows of requests that have a constraint, see `vllm_requests`."""

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise ValueError for a constraint that is refused, or contradicts other parameters."""
        validate_vllm_params(sampling_params)

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        """Raise VocabularyError if the bytes of the model's tokens cannot be derived."""
        super().__init__(vllm_config, device, is_pin_memory)
        self.requests = VllmRequests(read_vllm_vocabulary(vllm_config))
        self.width: int | None = None

    def is_argmax_invariant(self) -> bool:
        """Return False: a mask changes the most likely token."""
        return False

    def new_req_logits_processor(self, params: Any) -> RequestRow | None:
        """Return the processor of a new request; None if it has no constraint."""
        request = self.requests.open_request(params)
        return None if request is None else RequestRow(request)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Mask the rows of constrained requests in place. logits: float32 [rows, V]."""
        if not self.req_info:
            return logits
        if logits.shape[-1] != self.width:
            check_logits(self.requests.vocabulary, logits.shape[-1])
            self.width = logits.shape[-1]
        rows, requests = list(self.req_info), []
        for row in rows:
            state = self.req_info[row]
            request = state.func.request
            request.follow(state.args[0])
            requests.append(request)
        masks = np.zeros((len(rows), len(requests[0].ends)), np.int32)
        fill_request_masks(requests, masks)
        for request in requests:
            request.report_error()
        mask_tensor_rows(logits, masks, rows)
        return logits
