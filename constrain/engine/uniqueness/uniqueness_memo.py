"""What the uniqueness guards of one state cache have worked out, and the work that one step may take for it."""

from __future__ import annotations

from ...base.errors import LimitError
from .json_equality import Value
from .value_index import Candidates, ValueIndex

__all__ = ["UniquenessMemo"]

STEP_SHARE = 8
"""Part of Limits.work that one step may take."""
TOKEN_BYTES = 64
"""Bytes of a text to which one step's work is allowed."""


class UniquenessMemo:
    """What was worked out for one state cache since it was last emptied, and the work that the step at hand may take.

    values: of lists of members, that of the last. indexes: of all members of a list. candidates: of a register and a
    text, the values that a member may still become equal to. ways: whether sets with this likeness have a way on.
    limit, spent: units of work of one step. total: of all steps. is_asked: whether a question is being answered, so
    that kernels that run meanwhile belong to its step.
    """

    __slots__ = ("candidates", "indexes", "is_asked", "limit", "spent", "total", "values", "ways", "work")

    def __init__(self, work: int) -> None:
        self.work = self.limit = work
        self.spent = self.total = 0
        self.is_asked = False
        self.values: dict[int, Value] = {}
        self.indexes: dict[int, ValueIndex] = {}
        self.candidates: dict[tuple[int, int], Candidates] = {}
        self.ways: dict[tuple[object, ...], bool] = {}

    def begin_step(self, length: int) -> None:
        """Begin a step that takes `length` bytes, unless the kernel runs for a question of the step at hand."""
        if not self.is_asked:
            self.spent, self.limit = 0, self.work // STEP_SHARE * (1 + length // TOKEN_BYTES)

    def spend(self, units: int) -> None:
        """Charge the step at hand. Raise LimitError if its work is spent."""
        self.spent += units
        self.total += units
        if self.spent > self.limit:
            raise LimitError(
                f"Comparing members that must differ takes more than {self.limit:,} units in one step, "
                f"a share of Limits.work = {self.work:,}.",
                hint="Write fewer members (maxItems), leave out uniqueItems, or raise Limits(work=...).",
            )
