"""Parts of a schema that nothing satisfies, although the whole may be satisfied.

A property whose schema is impossible can never be written, an impossible branch never be taken. Nothing is wrong with
that, and sometimes it is meant (`false`), but more often it is a slip that shows up nowhere: the part is silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....base.errors import ConstrainError
from ....base.options import Limits, Style
from ..algebra.shape_algebra import Algebra, Circular
from ..schema_pipeline import load
from .schema_parser import ExactReader

__all__ = ["impossible"]


def impossible(
    schema: dict[str, Any] | bool | str,
    *,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),
) -> list[str]:
    """Pointers of the subschemas that no value satisfies, sorted; of nested ones the innermost.

    Only those that can be reached and that say something; `false` says it itself. Errors as of `to_grammar`, but not
    UnsatisfiableError.
    """
    reader = ExactReader(load(schema, limits), registry, style, limits)
    algebra = Algebra(reader, style, limits)
    empty: list[str] = []
    for node in reader.nodes:
        if node is None or node.pointer is None or not node.facts:
            continue
        try:
            possible = algebra.nonempty((node.number,))
        except (ConstrainError, Circular):  # asked on its own it may be beyond what is enforced; then nothing is known
            continue
        if not possible:
            empty.append(node.pointer)
    around = {"/".join(parts[:n]) for parts in (pointer.split("/") for pointer in empty) for n in range(len(parts))}
    return sorted(dict.fromkeys(pointer for pointer in empty if pointer not in around))
