"""Tests of what runs on a card: on one, or in numba's CUDA simulator, else not at all.

    make gpu                                                        on a card: these tests, then bench/gpu
    NUMBA_ENABLE_CUDASIM=1 python -m pytest tests/gpu               in the simulator, as tests/kernels/test_cuda.py does

numba reads that variable when it is imported, so that a process has either the simulator or compiled kernels.
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import torch
from numba import cuda

from constrain.kernels.cuda.cuda_device import SIMULATED

DEVICE = "cpu" if SIMULATED else "cuda"
HERE = SIMULATED or (torch.cuda.is_available() and cuda.is_available())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not HERE and "/gpu/" in str(item.path):
            item.add_marker(pytest.mark.skip(reason="there is no card here, and NUMBA_ENABLE_CUDASIM is not set"))


@pytest.fixture
def device() -> str:
    """Where kernels run."""
    return DEVICE
