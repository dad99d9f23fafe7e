"""The fuzz targets, one file for each kind of input."""

from __future__ import annotations

from ..target import Target
from . import calls, forms, gbnf, lark, numbers, peers, regex, saved, schema, tokenizers, walks

__all__ = ["TARGETS"]

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        *schema.TARGETS, *numbers.TARGETS, *regex.TARGETS, *lark.TARGETS, *gbnf.TARGETS, *forms.TARGETS, *walks.TARGETS,
        *saved.TARGETS, *calls.TARGETS, *tokenizers.TARGETS, *peers.TARGETS,
    )
}  # fmt: skip
"""By name."""
