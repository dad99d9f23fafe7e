"""Whether a text may end after certain bytes, without copying its Matcher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kernels import layout as at

if TYPE_CHECKING:
    from .matcher import Matcher
    from .state_cache import StateCache

__all__ = ["can_end_after"]


def can_end_after(matcher: Matcher, data: bytes) -> bool:
    """Return whether the text of `matcher` followed by `data` is complete. The matcher does not change."""
    if not data or matcher._ended:
        return not data and matcher.is_complete

    def is_accepting(state_cache: StateCache) -> bool:
        after = matcher._set_after(state_cache, data)
        return after > 0 and bool(state_cache.arrays[at.SETS][after * at.SET_W + at.SET_FLAGS] & at.IS_ACCEPTING)

    return matcher._retry_evicted(is_accepting)
