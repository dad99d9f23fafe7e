"""Verdicts: a target, whether it was met, and by how much."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Verdict", "format_verdict"]


class Verdict(NamedTuple):
    """A target. said: the measured values, in words."""

    target: str
    met: bool
    said: str


def format_verdict(verdict: Verdict) -> str:
    """Return a verdict as a line for the terminal."""
    return f"[{'green]met   ' if verdict.met else 'bold red]MISSED'}[/] {verdict.target}: {verdict.said}"
