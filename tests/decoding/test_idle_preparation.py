"""The scheduler prepares while a step of the model runs, and stops when it ends; texts are those without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from constrain import Vocabulary, compile
from constrain.decoding.generation_loop import finish_runs
from constrain.decoding.idle_preparation import PAUSE, prepare_while_running
from constrain.decoding.language_model_runner import LanguageModelRunner
from constrain.decoding.model_runner import LogprobRows, RowStep
from constrain.decoding.outcomes import Outcome
from constrain.decoding.requests import GenerationRequest
from constrain.decoding.scheduler import Scheduler
from tests.finite_grammar_factory import FiniteConstraint
from tests.model_factory import TableModel

BYTES = Vocabulary.bytes()
SCHEMA = {
    "type": "object",
    "properties": {
        f"{letter}{k}": {"type": "string", "pattern": f"^[{letter}-z]{{{k},{k + 2}}}$"}
        for letter in "abc"
        for k in (1, 2)
    },
    "additionalProperties": False,
}


@dataclass
class SlowStep:
    """A step that ends at the n-th question whether it has."""

    step: Any
    units: int
    asked: list[float] = field(default_factory=list)

    def wait(self) -> list[LogprobRows]:
        rows: list[LogprobRows] = self.step.wait()
        return rows

    def ends_within(self, seconds: float) -> bool:
        self.asked.append(seconds)
        return len(self.asked) > self.units


class SlowRunner(LanguageModelRunner):
    """A runner whose steps leave time for so many units of preparation."""

    def __init__(self, lm: TableModel, units: int) -> None:
        super().__init__(lambda _: lm, BYTES.size)
        self.units, self.steps = units, list[SlowStep]()

    def start(self, steps: Sequence[RowStep]) -> Any:
        self.steps.append(SlowStep(super().start(steps), self.units))
        return self.steps[-1]


def generate(units: int, samples: int) -> tuple[list[Outcome | None], SlowRunner, int]:
    """Return texts of one constraint, the runner, and how many rules were linked."""
    vocabulary = Vocabulary.bytes()  # whose table knows nothing
    constraint = compile(vocabulary, schema=SCHEMA)
    runner = SlowRunner(TableModel(BYTES.size, 7), units)
    scheduler = Scheduler(runner)
    generators = [np.random.default_rng(seed) for seed in range(samples)]
    run = scheduler.submit(GenerationRequest(vocabulary, generators, constraint=constraint, max_tokens=40))
    finish_runs(scheduler, [run])
    return run.outcomes, runner, len(constraint.program.links)


@pytest.mark.parametrize("samples", [1, 3])
def test_texts_are_those_without_preparation(samples: int) -> None:
    plain, _, _ = generate(0, samples)
    for units in (1, 4, 10_000):
        prepared, _, _ = generate(units, samples)
        assert [one.tokens for one in prepared if one] == [one.tokens for one in plain if one]
        assert [one.logprob for one in prepared if one] == [one.logprob for one in plain if one]


def test_all_is_prepared_in_a_long_step_and_the_later_ones_ask_once() -> None:
    _, runner, links = generate(10_000, 1)
    constraint = compile(BYTES, schema=SCHEMA)
    constraint.matcher().prepare(3600)
    assert links == len(constraint.program.links)
    first, *_, last = runner.steps
    assert first.asked[0] == 0 and set(first.asked[1:]) == {PAUSE}
    assert len(last.asked) < 5 < len(first.asked)


def test_no_unit_is_begun_after_the_step_has_ended() -> None:
    constraint = compile(Vocabulary.bytes(), schema=SCHEMA)
    matcher = constraint.matcher()
    links = len(constraint.program.links)
    step = SlowStep(None, 0)
    prepare_while_running([matcher], step)
    assert step.asked == [0] and len(constraint.program.links) == links
    step = SlowStep(None, 3)
    prepare_while_running([matcher], step)
    assert len(step.asked) == 4 and links <= len(constraint.program.links) <= links + 2


def test_texts_without_a_constraint_or_with_a_foreign_one_are_left_out() -> None:
    step = SlowStep(None, 100)
    prepare_while_running([None, FiniteConstraint(BYTES, [b"ab"]).matcher()], step)
    assert step.asked == [0]
