"""Violations: what an instance does against its schema, as values for programs and as sentences for people."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Violation"]


@dataclass(frozen=True, slots=True)
class Violation:
    """One keyword of a schema that an instance does not satisfy. `str()` of it begins with its place.

    Attributes
    ----------
    message : str
        What is wrong, in one sentence, such as "200 is above maximum 120".
    keyword : str
        The keyword that is violated; for a subschema `false`, the keyword that holds it. "" if the text is not JSON.
    pointer : str
        JSON pointer (RFC 6901) of the part of the instance that violates it; "" is the whole instance. A member that is
        not allowed is named itself; of a member that is missing, its object is named.
    schema_pointer : str
        JSON pointer of the keyword in the schema. References are resolved: it is the place where the keyword stands,
        after `URI#` if that is in a document of the registry.
    line, column : int or None
        Position in the text, 1-based, in characters; None if the instance is not a text.
    """

    message: str
    keyword: str
    pointer: str
    schema_pointer: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}, column {self.column}: "
        return f"{place}{self.pointer + ': ' if self.pointer else ''}{self.message}"
