"""GuardedSets: what the uniqueness guards use of a state cache, which is its only subclass.

The guards are called by the state cache and call kernels on it, so they cannot import it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...program.byte_code import ByteCode
from ...vocabulary.mask_table import MaskTable
from .uniqueness_memo import UniquenessMemo

__all__ = ["GuardedSets"]


class GuardedSets(ABC):
    """Interned sets of configurations, on which kernels run.

    arrays: int32 array of each slot (`kernels.layout`). table: rows and suffix tries of the vocabulary. guarded: what
    the guards remember until the sets are evicted.
    """

    program: ByteCode
    table: MaskTable
    arrays: dict[int, NDArray[np.int32]]
    guarded: UniquenessMemo

    @abstractmethod
    def run(self, kernel: Callable[..., int], *arguments: Any, length: int = 0) -> int:
        """Call a kernel on these sets until it needs nothing more, and return what it returns."""
