"""Which prompts of a batch are fed first, so that those with a common prefix do not all compute its keys and values.

A prompt waits while another one is being fed that has more tokens in common with it than the cache has; when these are
in the cache, it begins after them. Thirty requests with one long system prompt thus feed it once.
"""

from __future__ import annotations

from collections.abc import Sequence

from .model_runner import ModelRunner
from .request_run import RequestRun

__all__ = ["PromptOrder", "count_common_tokens"]

WORTH_WAITING = 16
"""Fewest tokens that are saved by waiting."""
BLOCK = 256
"""Tokens that are compared at once."""


class PromptOrder:
    """The prompts that one step feeds."""

    def __init__(self, runner: ModelRunner) -> None:
        self.runner = runner
        self.fed: list[RequestRun] = []

    def add(self, run: RequestRun) -> None:
        """Note that the step feeds a part of the prompt of a run."""
        if run.unfed:
            self.fed.append(run)

    def is_due(self, run: RequestRun) -> bool:
        """Return whether a prompt should begin to be fed in this step."""
        prompt, shared = run.request.prompt, 0
        for other in self.fed:
            shared = max(shared, count_common_tokens(other.request.prompt, prompt))
        shared = min(shared, len(prompt) - 1)
        return shared < WORTH_WAITING or shared - self.runner.count_cached(prompt) < WORTH_WAITING


def count_common_tokens(left: Sequence[int], right: Sequence[int]) -> int:
    """Return the length of the longest common prefix of two sequences of tokens."""
    if type(left) is not type(right):  # slices of a list and of a tuple are never equal
        left, right = list(left), list(right)
    most = min(len(left), len(right))
    start = 0
    while start < most and left[start : start + BLOCK] == right[start : start + BLOCK]:
        start += BLOCK
    while start < most and left[start] == right[start]:
        start += 1
    return min(start, most)
