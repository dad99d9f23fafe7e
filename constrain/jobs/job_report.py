"""Statistics of a job."""

from __future__ import annotations

import json
from dataclasses import dataclass

from .row_runner import RowResult

__all__ = ["JobReport"]


@dataclass
class JobReport:
    """Statistics of a job, which change while it runs.

    Attributes
    ----------
    total : int
        Number of rows of the input.
    rows, valid, errors : int
        Number of rows of the output; of these, answers and errors.
    resumed : int
        Number of rows that an earlier run had written.
    tokens : int
        Number of tokens of the answers of this run.
    seconds : float
        Duration of this run; on Ray with the start of the workers, otherwise without the time to load the model.
    compile_seconds, mask_seconds, model_seconds : float
        Time in this run for constraints, for masks, and for the model, summed over workers. Masks are computed while
        the model runs.
    """

    total: int = 0
    rows: int = 0
    valid: int = 0
    errors: int = 0
    resumed: int = 0
    tokens: int = 0
    seconds: float = 0.0
    compile_seconds: float = 0.0
    mask_seconds: float = 0.0
    model_seconds: float = 0.0

    @property
    def tokens_per_second(self) -> float:
        """Tokens of this run per second."""
        return self.tokens / self.seconds if self.seconds else 0.0

    @property
    def rows_per_second(self) -> float:
        """Rows of this run per second."""
        return (self.rows - self.resumed) / self.seconds if self.seconds else 0.0

    def count_result(self, result: RowResult) -> None:
        """Count a finished row."""
        self.rows += 1
        self.errors += result.is_error
        self.valid += not result.is_error
        self.tokens += result.tokens
        self.compile_seconds += result.compile_us / 1e6
        self.mask_seconds += result.mask_us / 1e6

    def count_line(self, line: bytes) -> None:
        """Count a row that an earlier run has written."""
        self.rows += 1
        self.resumed += 1
        is_error = "error" in json.loads(line)
        self.errors += is_error
        self.valid += not is_error
