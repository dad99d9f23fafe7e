"""What a command of the command line answers, as tests look at it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Answer", "Run"]


class Answer(NamedTuple):
    """code: the exit code. out, err: what was printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What --json printed."""
        return json.loads(self.out)


Run = Callable[..., Answer]
"""Runs a command line: each test file has its own way to do it."""
