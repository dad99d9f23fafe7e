"""What must hold of the kernel files themselves."""

from __future__ import annotations

from constrain.kernels.__main__ import stale


def test_stamps_are_true() -> None:
    """Else numba would run code compiled from an older text of an imported file."""
    assert not stale(), "run `python -m constrain.kernels`"
