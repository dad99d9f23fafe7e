"""Constraints on NVIDIA cards: what torch users call, around the kernels of `constrain/kernels/cuda`.

    masks         apply_mask: logits under packed masks, in place
    sampling      mask_softmax_sample: temperature, top-k, top-p, min-p and mask, to a token with its log-probability
    token_table   a regular Constraint as a table; resident: such tables on a card, steps without the host
    overlap       all other constraints: masks made on the host while the model runs, copied beside it
    race          the first few tokens of each row, for `integrations.awrs_tensors`
    launch        tensors as kernels take them, on torch's stream

See docs/how-to/gpu.md. torch is needed; numba's CUDA target is there with the extra `constrain-lm[cuda]`.
"""

from __future__ import annotations

from .device_masks import apply_mask
from .device_sampling import Sampled, mask_softmax_sample
from .mask_overlap import Overlap, decode_batch
from .resident_constraints import ResidentConstraints, ResidentPositions
from .token_tables import TokenTable, pool_tables, token_table

__all__ = [
    "Overlap",
    "ResidentPositions",
    "ResidentConstraints",
    "Sampled",
    "TokenTable",
    "apply_mask",
    "decode_batch",
    "mask_softmax_sample",
    "pool_tables",
    "token_table",
]
