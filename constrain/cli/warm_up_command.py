"""`constrain warmup`: compile the kernels ahead of time."""

from __future__ import annotations

from . import output
from .kernel_notice import ready
from .source_options import JsonFlag

__all__ = ["warmup"]


def warmup(as_json: JsonFlag = False) -> None:
    """Compile the kernels now, so that the first use does not have to."""
    seconds = ready()
    if as_json:
        output.as_json({"seconds": round(seconds, 3)})
    else:
        output.say(f"the kernels are ready ({seconds:.1f} s)")
