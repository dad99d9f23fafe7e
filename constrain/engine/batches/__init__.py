"""Batches of matchers: masks of all in one call, a token for each, and masks applied to the logits of a batch.

    parallel_fill     fill_masks: matchers -> rows of masks
    batch_advance     advance_all: matchers and a token for each
    logit_masking     apply_mask: rows of masks -> logits, in place
    worker_threads    threads that wait for tasks
    array_memory      arrays of numpy and torch, as addresses

Operations on a single position are methods of Matcher.
"""

from __future__ import annotations

from .batch_advance import advance_all
from .logit_masking import apply_mask
from .parallel_fill import fill_masks

__all__ = ["advance_all", "apply_mask", "fill_masks"]
