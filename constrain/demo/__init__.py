"""The embedded model: a small Llama that writes JSON for a schema in its prompt (see README.md in this folder).

`model_folder()` returns a folder that transformers loads like any other model; `compose_prompt()` builds the only form
of prompt on which the model was trained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["TEMPLATE", "model_folder", "compose_prompt"]

TEMPLATE = "{instruction}\n{form}\nAnswer:\n"
"""Template of a prompt; the form is one of `Schema: {...}`, `Format: regex`, `Choices: a | b`; empty lines are
omitted."""


def model_folder() -> Path:
    """Return the folder that contains config.json, model.safetensors and the tokenizer."""
    return Path(__file__).resolve().parent


def compose_prompt(
    instruction: str | None = None,
    schema: Mapping[str, object] | bool | str | None = None,
    *,
    regex: str | None = None,
    choices: Sequence[str] | None = None,
) -> str:
    """Return the prompt on which the embedded model was trained; it ends where the answer starts.

    Parameters
    ----------
    instruction : str, optional
        What to write.
    schema : mapping, bool or str, optional
        The JSON Schema to show; it is shown in the compact form of `json.dumps`, also if given as JSON text.
    regex : str, optional
        A regular expression to show instead of a schema.
    choices : sequence of str, optional
        The alternatives to show instead of a schema. With no schema, regex or choices the model writes prose, or JSON
        if the instruction requests it.

    Returns
    -------
    str
        The prompt.
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
