"""Coverage, compliance and efficiency of an engine over schemas, one greedy answer each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from ..corpus import Case
from .answers import Answer, Refused, answer_prompt

__all__ = ["conforms", "measure_schemas", "summarize_answers"]

SHOWN = 400
"""Most characters of the schema that a prompt shows."""


def measure_schemas(
    loaded: Any, engine: str, cases: Sequence[Case], *, sampler: str, most: int, seed: int, progress: Callable[[], None]
) -> dict[str, Any]:
    """Return the row of an engine."""
    answers: list[Answer | None] = []
    valid = 0
    for case in cases:
        prompt = f"Write JSON for this schema.\n{case.schema[:SHOWN]}\n"
        try:
            answer = answer_prompt(loaded, engine, prompt, case.schema, sampler=sampler, most=most, seed=seed)
        except Refused:
            answers.append(None)
        else:
            answers.append(answer)
            valid += conforms(answer.text, case.schema)
        progress()
    return {"engine": engine, **summarize_answers(answers, valid)}


def summarize_answers(answers: Sequence[Answer | None], valid: int) -> dict[str, Any]:
    """Return the measures; None stands for a schema that the engine refused."""
    made = [answer for answer in answers if answer is not None]

    def milliseconds(values: list[float]) -> float | None:
        return median(values) * 1e3 if values else None

    later = [(one.total - one.first) / (one.tokens - 1) for one in made if one.first is not None and one.tokens > 1]
    return {
        "schemas": len(answers),
        "declared coverage": len(made) / len(answers) if answers else None,
        "empirical coverage": valid / len(answers) if answers else None,
        "compliance": valid / len(made) if made else None,
        "compile ms": milliseconds([one.compiling for one in made if one.compiling is not None]),
        "first token ms": milliseconds([one.first for one in made if one.first is not None]),
        "each token ms": milliseconds(later),
    }


def conforms(text: str, schema: str) -> bool:
    """Return whether a text is JSON that `jsonschema` judges valid; formats are annotations there, as by default."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    try:
        value, document = json.loads(text), json.loads(schema)
    except ValueError:
        return False
    kind = validator_for(document, default=Draft202012Validator)
    return bool(kind(document).is_valid(value))
