"""A fuzz target: a strategy that draws inputs, and a check that raises if a promise is broken.

Any input is drawn by Hypothesis, so one target serves three engines: Hypothesis' own generation
(`engine.generate_inputs`), coverage-guided mutation of the choices that a strategy draws from (`engine.run_guided`, by
atheris or in Python), and the minimisation of findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from constrain.base.errors import ConstrainError

__all__ = ["Target", "ours_only", "show"]


@dataclass(frozen=True)
class Target:
    """name: as on the command line. inputs: a strategy. check: raises `Disagreement`, or whatever must not leave the
    library. corpus: inputs that are tried first, as values of the strategy. prepare: called once per process. seconds:
    CPU time of one input; more than the library may take, where a slow oracle takes most of it."""

    name: str
    about: str
    inputs: st.SearchStrategy[Any]
    check: Callable[[Any], None]
    prepare: Callable[[], None] = lambda: None
    corpus: tuple[Any, ...] = field(default=())
    seconds: int = 10


@contextmanager
def ours_only() -> Iterator[None]:
    """A block that may fail, but only by a ConstrainError: bad input has no other way out of the public API."""
    try:
        yield
    except ConstrainError:
        pass


def show(value: Any) -> str:
    """Return an input as it can be pasted into Python."""
    return value if isinstance(value, str) else repr(value)
