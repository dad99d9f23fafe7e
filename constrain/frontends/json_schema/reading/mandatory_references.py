"""Whether a reference is a mandatory part of its own target, so that a subschema might have no finite value.

Mandatory parts are those that every value has: required keys, and items of an array that may not be empty. Of
alternatives all are taken to be, and of an undecided subschema (`document_inspection`) all references inside it: a
cycle may be seen where there is none, but none is overlooked.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from ....base.work import spend_work

__all__ = ["READING", "UNITS_AT_ONCE", "are_founded"]

READING = "the reading of a schema"
"""What work is spent on."""
UNITS_AT_ONCE = 1024
"""Units of work after which they are charged."""
MOST_REFERENCES = 24
"""Longest chain of mandatory references that is followed."""


def are_founded(targets: Mapping[str, Any], undecided: Container[int]) -> bool:
    """Return whether no reference is a mandatory part of its own target.

    Parameters
    ----------
    targets : mapping of str to raw subschema
        All references of a document and what they refer to, all plain or undecided.
    undecided : container of int
        Ids of the undecided subschemas.

    Returns
    -------
    bool
        False also if a chain of references is longer than MOST_REFERENCES.
    """
    search = _CycleSearch(targets, undecided)
    return all(search.is_founded(reference, ()) for reference in targets)


class _CycleSearch:
    """A depth-first search for a cycle of mandatory references."""

    def __init__(self, targets: Mapping[str, Any], undecided: Container[int]) -> None:
        self._targets, self._undecided = targets, undecided
        self._founded: set[str] = set()
        self._followed = 0

    def is_founded(self, reference: str, path: tuple[str, ...]) -> bool:
        """Return whether a reference leads to no cycle. path: those that lead to it."""
        if reference not in self._founded:
            if reference in path or len(path) > MOST_REFERENCES:
                return False
            path = (*path, reference)
            if not all(self.is_founded(other, path) for other in self._list_mandatory(reference)):
                return False
            self._founded.add(reference)
        return True

    def _list_mandatory(self, reference: str) -> list[str]:
        """Return the references that a value of the target of a reference may have to follow."""
        found: list[str] = []
        pending: list[Any] = [self._targets[reference]]
        while pending:
            part = pending.pop()
            if type(part) is not dict:
                continue
            if id(part) in self._undecided:
                found += self._list_inside(part)
                continue
            if "$ref" in part:
                found.append(part["$ref"])
                continue
            properties, additional = part.get("properties", {}), part.get("additionalProperties")
            pending += [properties.get(name, additional) for name in part.get("required", ())]
            pending += part.get("anyOf", ())
            pending += part.get("oneOf", ())
            if part.get("minItems"):
                pending.append(part.get("items"))
            self._count()
        return found

    def _list_inside(self, part: dict[str, Any]) -> list[str]:
        """Return all references of a document that occur inside an undecided subschema."""
        found: list[str] = []
        pending: list[Any] = [part]
        while pending:
            value = pending.pop()
            if type(value) is dict:
                reference = value.get("$ref")
                if type(reference) is str and reference in self._targets:  # others are inside constants
                    found.append(reference)
                pending += value.values()
            elif type(value) is list:
                pending += value
            self._count()
        return found

    def _count(self) -> None:
        """Count a unit of work."""
        self._followed += 1
        if self._followed > UNITS_AT_ONCE:
            spend_work(self._followed, READING)
            self._followed = 0
