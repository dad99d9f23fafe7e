"""Constrained decoding on NVIDIA GPUs: the torch interface of the kernels in `constrain/kernels/cuda`.

    device_masks          apply_mask: apply packed masks to logits, in place
    device_sampling       mask_softmax_sample: sample tokens under temperature, top-k, top-p, min-p and a mask
    token_tables          token_table, pool_tables: a regular Constraint as a table over tokens
    resident_constraints  ResidentConstraints: such tables on a GPU, advanced without the host
    mask_overlap          Overlap, decode_batch: masks of any Constraint, computed on the host while the model runs
    device_race           the first arrivals of exponential races, for `integrations.awrs_tensors`
    tensor_launch         conversion of tensors to kernel arguments, and launches on torch's current stream

Requires torch; numba's CUDA target is installed by the extra `constrain-lm[cuda]`. See docs/how-to/gpu.md.
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
