"""JSON: schemas of the development set if its file is given, else three of our own, and the embedded model.

The mask is exact, so every constrained text that ends is valid; methods differ in how many end in time, and which.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema

import constrain
from constrain import demo
from constrain.base.errors import ConstrainError
from constrain.sampling.success_walks import Validator

from ...checkpoints import BASELINE, load_checkpoint
from ...counted_models import CachedModel
from .tasks import Task

__all__ = ["build_document_tasks"]

LONGEST, BRIEF = 500, 60
"""Maximum number of characters of a schema, which must fit into the prompt of the embedded model, and of its shortest
valid instance: an instance that exceeds max_tokens says nothing about samplers."""
TEXT: dict[str, Any] = {"type": "string", "maxLength": 12}
OWN: list[tuple[str, dict[str, Any]]] = [
    ("a person", {"type": "object", "required": ["name", "age"], "additionalProperties": False,
                  "properties": {"name": TEXT, "age": {"type": "integer", "minimum": 18, "maximum": 30}}}),
    ("an order", {"type": "object", "required": ["state"], "additionalProperties": False,
                  "properties": {"state": {"enum": ["paid", "pending", "refused"]}, "gift": {"type": "boolean"}}}),
    ("a point", {"type": "array", "items": {"type": "integer", "multipleOf": 5}, "minItems": 2, "maxItems": 2}),
]  # fmt: skip


def build_document_tasks(count: int, data: Path | None, checkpoint: str = BASELINE) -> list[Task]:
    """Build `count` tasks: of the first short schemas in a file of MaskBench that compile, or of OWN."""
    model, out = load_checkpoint(checkpoint), list[Task]()
    for name, schema in OWN if data is None else read_short_schemas(data):
        if len(out) == count:
            break
        try:
            constraint = constrain.compile(vocabulary=model.vocabulary, schema=schema)
        except ConstrainError:
            continue
        lm = CachedModel(model.on(demo.compose_prompt("Write an example.", schema=schema)))
        out.append(Task("JSON", name, lm, constraint, 64, is_answer=build_validator(schema)))
    return out


def read_short_schemas(data: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the name and schema of every fifth schema that is short and has a short valid instance."""
    with gzip.open(data, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    small = [row for row in rows if len(json.dumps(row["schema"])) <= LONGEST and isinstance(row["schema"], dict)]
    brief = [
        row for row in small
        if any(test["valid"] and 6 <= len(json.dumps(test["data"])) <= BRIEF for test in row["tests"])
    ]  # fmt: skip
    return [(row["id"], row["schema"]) for row in brief[::5]]


def build_validator(schema: dict[str, Any]) -> Validator:
    """Return a validator of documents that does not use constrain: the jsonschema package."""
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema)

    def is_valid(text: bytes) -> bool:
        try:
            return bool(validator.is_valid(json.loads(text)))
        except ValueError:
            return False

    return is_valid
