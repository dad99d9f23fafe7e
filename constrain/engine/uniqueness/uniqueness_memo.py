"""UniquenessMemo: results of uniqueness queries for one state cache, and the work budget of a step."""

from __future__ import annotations

from ...base.errors import LimitError
from .json_equality import Value
from .value_index import Candidates, ValueIndex

__all__ = ["UniquenessMemo"]

STEP_SHARE = 8
"""Divisor of Limits.work: the part that the queries of one step may take."""
TOKEN_BYTES = 64
"""Bytes of text per share: a step that consumes n bytes may take 1 + n // TOKEN_BYTES shares."""


class UniquenessMemo:
    """Results of uniqueness queries since the state cache was last evicted, and the work budget of the current step.

    Attributes
    ----------
    values : dict
        By list of members: the value of its last member.
    indexes : dict
        By list of members: the index of all its values.
    candidates : dict
        By (register, text): the values that the member may still become equal to.
    can_differ : dict
        By signature of a set (`uniqueness_queries`): whether a member unlike all earlier ones can be reached.
    limit, spent : int
        Units of work of the current step.
    total : int
        Units of work of all steps.
    is_answering : bool
        Whether a query is being answered; kernels that run for it belong to the same step.
    """

    __slots__ = ("can_differ", "candidates", "indexes", "is_answering", "limit", "spent", "total", "values", "work")

    def __init__(self, work: int) -> None:
        self.work = self.limit = work
        self.spent = self.total = 0
        self.is_answering = False
        self.values: dict[int, Value] = {}
        self.indexes: dict[int, ValueIndex] = {}
        self.candidates: dict[tuple[int, int], Candidates] = {}
        self.can_differ: dict[tuple[object, ...], bool] = {}

    def begin_step(self, length: int) -> None:
        """Begin a step that consumes `length` bytes, unless the kernel runs for a query of the current step."""
        if not self.is_answering:
            self.spent, self.limit = 0, self.work // STEP_SHARE * (1 + length // TOKEN_BYTES)

    def spend(self, units: int) -> None:
        """Charge the current step. Raise LimitError if its budget is exceeded."""
        self.spent += units
        self.total += units
        if self.spent > self.limit:
            raise LimitError(
                f"Comparing members that must differ takes more than {self.limit:,} units in one step, "
                f"a share of Limits.work = {self.work:,}.",
                hint="Write fewer members (maxItems), leave out uniqueItems, or raise Limits(work=...).",
            )
