"""GuardedSets: the interface of a state cache, its only subclass, that uniqueness queries use.

The state cache calls the queries, and they call kernels on it, so they cannot import it.
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

    `arrays` is the int32 array of each slot (`kernels.layout`), `table` the mask table of the vocabulary, and
    `uniqueness` the memo of the queries, which is empty after the sets were evicted.
    """

    program: ByteCode
    table: MaskTable
    arrays: dict[int, NDArray[np.int32]]

    @property
    @abstractmethod
    def uniqueness(self) -> UniquenessMemo:
        """The memo of the queries."""

    @abstractmethod
    def run(self, kernel: Callable[..., int], *arguments: Any, length: int = 0) -> int:
        """Call a kernel on these sets, serve its requests until it has finished, and return its result."""
