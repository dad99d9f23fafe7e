"""The embedded model: a small Llama that writes JSON for a schema it is shown (see README.md beside this file).

`model_folder()` is a folder that transformers loads like any other; `compose_prompt()` is the one form of prompt it was trained on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["TEMPLATE", "model_folder", "compose_prompt"]

TEMPLATE = "{instruction}\n{form}\nAnswer:\n"
"""A prompt; the form is one of `Schema: {...}`, `Format: regex`, `Choices: a | b`; empty lines are left out."""


def model_folder() -> Path:
    """The folder with config.json, model.safetensors and the tokenizer."""
    return Path(__file__).resolve().parent


def compose_prompt(
    instruction: str | None = None,
    schema: Mapping[str, object] | bool | str | None = None,
    *,
    regex: str | None = None,
    choices: Sequence[str] | None = None,
) -> str:
    """The prompt that the embedded model was trained on, ending where its answer starts.

    schema: the JSON Schema to show, as a mapping, a boolean, or JSON text (which is shown as `json.dumps` writes it
    compactly). regex, choices: shown instead. With none of them the model writes prose, or JSON if it is asked to.
    """
    if schema is not None:
        document = json.loads(schema) if isinstance(schema, str) else schema
        form = "Schema: " + json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    elif regex is not None:
        form = f"Format: {regex}"
    elif choices is not None:
        form = "Choices: " + " | ".join(choices)
    else:
        form = ""
    filled = TEMPLATE.format(instruction=(instruction or "").strip(), form=form)
    return "".join(line + "\n" for line in filled.split("\n") if line)
