"""Tokens per second with drafts over those without; ours only.

Two tasks whose texts repeat. *records*: an array of four records under a schema with random fields, so that keys, and
with this model many values, occur again. *documents*: the prompt contains a document that satisfies the schema; the
embedded model does not copy it well, so this shows what drafts cost if they are not accepted.
Each kind of draft alternates with no drafts, on the same prompts and seeds. Lookup drafts do not change the text of a
seed; the number of equal texts is reported.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from ..corpus import Case
from .timing import Run, compute_median_ratio, compute_rate, generate_ours

__all__ = ["KINDS", "build_record_tasks", "find_document_tasks", "measure_drafts"]

KINDS = {"forced text": "constraint", "prompt look-up": "prompt", "suffix look-up": "suffix", "recycling": "recycling"}
LONGEST = 1_500
"""Maximum number of characters of a document."""
FIELDS = (
    "name", "email", "city", "phone", "company", "country", "street", "title", "colour", "language", "department",
    "product", "status", "category", "owner", "currency",
)  # fmt: skip
RECORDS = 4
Task = tuple[str, str]
"""A prompt and a schema."""


def build_record_tasks(count: int, seed: int) -> list[Task]:
    """Return prompts for arrays of records, each with a schema of four to six fields."""
    rng, tasks = random.Random(seed), list[Task]()
    for _ in range(count):
        fields = rng.sample(FIELDS, rng.randint(4, 6))
        record = {
            "type": "object", "properties": {field: {"type": "string"} for field in fields}, "required": fields,
            "additionalProperties": False,
        }  # fmt: skip
        schema = {"type": "array", "items": record, "minItems": RECORDS, "maxItems": RECORDS}
        tasks.append((f"Describe {RECORDS} records.\nSchema: {json.dumps(schema)}\nAnswer:\n", json.dumps(schema)))
    return tasks


def find_document_tasks(cases: Sequence[Case], count: int) -> list[Task]:
    """Return prompts that hold a valid instance, with the schema that it satisfies."""
    tasks = list[Task]()
    for case in cases:
        texts = [test.text for test in case.tests if test.valid and 150 <= len(test.text) <= LONGEST]
        if texts and len(tasks) < count:
            tasks.append((f"Copy this document.\n{texts[0]}\nAnswer:\n", case.schema))
    return tasks


def measure_drafts(
    engine: Any, tasks: Sequence[Task], *, most: int, seed: int, temperature: float, progress: Callable[[], None]
) -> list[dict[str, Any]]:
    """Return a row for each kind of draft."""
    base: dict[str, list[Run]] = {kind: [] for kind in KINDS}
    drafted: dict[str, list[Run]] = {kind: [] for kind in KINDS}
    for number, (prompt, schema) in enumerate(tasks):
        ids = engine.model.prompt_ids(prompt)
        options: dict[str, Any] = {
            "schema": schema, "max_tokens": most, "seed": seed + number, "temperature": temperature,
        }  # fmt: skip
        generate_ours(engine, ids, draft="none", **options)
        for kind, draft in KINDS.items():
            base[kind].append(generate_ours(engine, ids, draft="none", **options))
            drafted[kind].append(generate_ours(engine, ids, draft=draft, **options))
        progress()
    return [
        {
            "draft": kind, "temperature": temperature, "with": compute_rate(drafted[kind]),
            "without": compute_rate(base[kind]), "ratio": compute_rate(drafted[kind]) / compute_rate(base[kind]),
            "median ratio": compute_median_ratio(drafted[kind], base[kind]),
            "same texts": sum(a.ids == b.ids for a, b in zip(drafted[kind], base[kind])), "texts": len(base[kind]),
        }
        for kind in KINDS
    ]  # fmt: skip
