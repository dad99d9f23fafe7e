"""A fuzz target: a strategy that draws inputs, and a check that raises if a property is violated.

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

__all__ = ["Target", "suppress_our_errors", "show_input"]


@dataclass(frozen=True)
class Target:
    """A fuzz target.

    inputs: a strategy. check: raises `Disagreement`, or an exception that the library must not raise. corpus: inputs
    that are tried first, as values of the strategy. prepare: called once per process. seconds: limit of CPU time of one
    input, with that of a slow oracle.
    """

    name: str
    about: str
    inputs: st.SearchStrategy[Any]
    check: Callable[[Any], None]
    prepare: Callable[[], None] = lambda: None
    corpus: tuple[Any, ...] = field(default=())
    seconds: int = 10


@contextmanager
def suppress_our_errors() -> Iterator[None]:
    """Suppress ConstrainError in the block: the only error that the public API may raise for bad input."""
    try:
        yield
    except ConstrainError:
        pass


def show_input(value: Any) -> str:
    """Return an input as a Python expression."""
    return value if isinstance(value, str) else repr(value)
