"""The answer of a command line in tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Answer", "Run"]


class Answer(NamedTuple):
    """The answer of a command. code: exit code. out, err: output and error output."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The output as JSON."""
        return json.loads(self.out)


Run = Callable[..., Answer]
"""Function that runs a command line; see the fixture `run` in tests/cli."""
