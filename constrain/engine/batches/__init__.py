"""Many positions at once: their masks in one call, on all cores, and masks applied to the logits of a batch.

    fill        fill_masks: matchers -> rows of masks          logits      apply_mask: rows of masks -> logits, in place
    workers     threads that wait for work                     memory      arrays of numpy and torch, as addresses

What works on one position at a time is the Matcher's.
"""

from __future__ import annotations

from .logit_masking import apply_mask
from .parallel_fill import fill_masks

__all__ = ["apply_mask", "fill_masks"]
