"""What a scheduler does while it waits for the model: prepare for the next masks of its texts (`engine.preparation`).

The units of preparation are Python, and so is a part of a forward pass in another thread: each waits for the other's
use of the interpreter. So there is a pause after each unit, in which the model's thread goes on, and which ends at once
when the step does. A model that runs in the thread that waits for it leaves no idle time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..engine.preparation import prepare_matchers
from .model_runner import RunningStep

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["PAUSE", "prepare_while_running"]

PAUSE = 0.0001
"""Seconds between two units of preparation."""


def prepare_while_running(matchers: Iterable[Matcher | None], running: RunningStep) -> None:
    """Prepare for the next masks of texts until nothing is left or the step has ended."""
    if not running.ends_within(0):
        known = [matcher for matcher in matchers if matcher is not None and hasattr(matcher, "prepare")]
        prepare_matchers(known, lambda: running.ends_within(PAUSE))
