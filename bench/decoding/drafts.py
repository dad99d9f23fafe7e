"""Tokens per second with drafts over those without, and the tokens that a forward pass yields; ours only.

The task is one that copies much: the prompt holds a document that satisfies the schema. Each kind of draft runs on the
same prompts with the same seeds as no drafts, by turns. Look-ups are lossless for a seed, so their texts must be the
same; it is counted how many are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..corpus import Case
from .timing import Run, count_rate, generate_ours, median_ratio

__all__ = ["KINDS", "find_copy_tasks", "measure_drafts"]

KINDS: dict[str, Any] = {"prompt": "prompt", "suffix": "suffix", "recycling": "recycling"}
LONGEST = 1_500
"""Most characters of a document."""


def find_copy_tasks(cases: Sequence[Case], count: int) -> list[tuple[str, Case]]:
    """Return prompts that hold a valid instance, with the cases whose schemas it satisfies."""
    tasks = []
    for case in cases:
        texts = [test.text for test in case.tests if test.valid and 150 <= len(test.text) <= LONGEST]
        if texts:
            tasks.append((f"Copy this document.\n{texts[0]}\nAnswer:\n", case))
        if len(tasks) == count:
            break
    return tasks


def measure_drafts(
    engine: Any, tasks: Sequence[tuple[str, Case]], kinds: dict[str, Any], *, most: int, seed: int,
    temperature: float, progress: Callable[[], None],
) -> list[dict[str, Any]]:  # fmt: skip
    """Return a row for each kind of draft."""
    base: dict[str, list[Run]] = {kind: [] for kind in kinds}
    drafted: dict[str, list[Run]] = {kind: [] for kind in kinds}
    for number, (prompt, case) in enumerate(tasks):
        ids = engine.model.prompt_ids(prompt)
        options: dict[str, Any] = {
            "schema": case.schema,
            "max_tokens": most,
            "seed": seed + number,
            "temperature": temperature,
        }
        generate_ours(engine, ids, draft=[], **options)
        for kind, draft in kinds.items():
            base[kind].append(generate_ours(engine, ids, draft=[], **options))
            drafted[kind].append(generate_ours(engine, ids, draft=draft, **options))
        progress()
    return [
        {
            "draft": kind, "with": count_rate(drafted[kind]), "without": count_rate(base[kind]),
            "ratio": count_rate(drafted[kind]) / count_rate(base[kind]),
            "median ratio": median_ratio(drafted[kind], base[kind]),
            "same texts": sum(a.ids == b.ids for a, b in zip(drafted[kind], base[kind])), "texts": len(base[kind]),
        }
        for kind in kinds
    ]  # fmt: skip
