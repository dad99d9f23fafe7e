"""The options of commands that run a model: --model and --prompt."""

from __future__ import annotations

from typing import Annotated

import typer

from .standard_streams import open_stdin

__all__ = ["ModelOption", "PromptOption", "read_prompt"]

PANEL = "The model and its prompt"
ModelOption = Annotated[
    str, typer.Option(help="demo (embedded), a folder, or a hub id on this machine.", rich_help_panel=PANEL)
]
PromptOption = Annotated[str | None, typer.Option(help="The prompt; - for stdin.", rich_help_panel=PANEL)]


def read_prompt(prompt: str | None) -> str | None:
    """Return the prompt; what stdin holds for "-"."""
    return open_stdin().read() if prompt == "-" else prompt
