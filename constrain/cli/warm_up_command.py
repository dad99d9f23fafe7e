"""`constrain warmup`: compile the kernels ahead of time."""

from __future__ import annotations

from . import display
from .kernel_notice import ready
from .source_options import JsonFlag

__all__ = ["warmup"]


def warmup(as_json: JsonFlag = False) -> None:
    """Compile the kernels now, so that the first use does not have to."""
    seconds = ready()
    if as_json:
        display.as_json({"seconds": round(seconds, 3)})
    else:
        display.say(f"the kernels are ready ({seconds:.1f} s)")
