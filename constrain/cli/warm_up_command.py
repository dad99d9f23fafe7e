"""`constrain warmup`: compile the kernels in advance."""

from __future__ import annotations

from . import display
from .kernel_notice import load_kernels
from .source_options import JsonFlag

__all__ = ["warm_up_kernels"]


def warm_up_kernels(as_json: JsonFlag = False) -> None:
    """Compile the kernels now, so that the first use does not have to."""
    seconds = load_kernels()
    if as_json:
        display.as_json({"seconds": round(seconds, 3)})
    else:
        display.print_answer(f"the kernels are ready ({seconds:.1f} s)")
