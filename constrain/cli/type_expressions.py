"""Python type expressions as text: ``list[int]``, ``dict[str, float]``, ``Literal["a", "b"]``, ``int | None``.

The text is parsed, not evaluated: only the names of `NAMES`, their arguments, ``|`` and the values of a Literal have a
meaning, so that the text of a stranger cannot run anything.
"""

from __future__ import annotations

import ast
import datetime
import typing
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Literal, NoReturn, Optional, Union
from uuid import UUID

from ..base.errors import LimitError, SourceError, shorten_text

__all__ = ["NAMES", "parse_type"]

PLAIN: dict[str, Any] = {
    "None": None, "bool": bool, "int": int, "float": float, "str": str, "Any": Any, "object": object,
    "Decimal": Decimal, "date": datetime.date, "datetime": datetime.datetime, "time": datetime.time, "UUID": UUID,
    "list": list, "set": set, "frozenset": frozenset, "tuple": tuple, "dict": dict,
}  # fmt: skip
GENERIC: dict[str, Any] = {
    "list": list, "List": list, "set": set, "Set": set, "frozenset": frozenset, "tuple": tuple, "Tuple": tuple,
    "dict": dict, "Dict": dict, "Sequence": typing.Sequence, "Mapping": typing.Mapping,
    "Optional": Optional, "Union": Union,
}  # fmt: skip
NAMES = tuple(dict.fromkeys([*PLAIN, *GENERIC, "Literal"]))
"""The names that an expression may use, also as `typing.Name`."""
MOST_CHARACTERS, MOST_DEPTH = 10_000, 100
"""Maximum length of an expression, and maximum nesting, so that neither parser nor visitor exhausts the stack."""


def parse_type(text: str) -> Any:
    """Return the Python type of an expression.

    Raises
    ------
    SourceError
        With a caret, if the text is not an expression or contains anything but a type.
    LimitError
        If it is longer than `MOST_CHARACTERS`, or nested deeper than `MOST_DEPTH`.
    """
    if len(text) > MOST_CHARACTERS or measure_nesting(text) > MOST_DEPTH:
        raise LimitError(
            f"the type has more than {MOST_CHARACTERS:,} characters, or is nested deeper than {MOST_DEPTH}",
            hint="Give a schema, or a class in a module: --pydantic MODULE:CLASS.",
        )
    try:
        tree = ast.parse(text.strip() or "?", mode="eval").body
    except (SyntaxError, ValueError) as error:
        position = (getattr(error, "offset", None) or 1) - 1
        raise SourceError(
            f"the type is not a Python expression: {shorten_text(getattr(error, 'msg', error))}",
            source=text.strip(), position=position, hint='Give a type such as int, list[int] or Literal["a", "b"].',
        ) from None  # fmt: skip
    try:
        return TypeReader(text.strip()).read(tree)
    except TypeError as error:  # of typing, such as Optional[int, str]
        raise SourceError(f"the type is not valid: {error}", source=text.strip(), position=0) from None


def measure_nesting(text: str) -> int:
    """Return the largest number of brackets that are open at once, or of operators: ``|`` nests to the left."""
    depth = deepest = 0
    for character in text:
        depth += (character in "[({") - (character in "])}")
        deepest = max(deepest, depth)
    return max(deepest, sum(map(text.count, "|+-~!")))


class TypeReader:
    """Makes types of the nodes of a parsed expression. text: the expression, for carets."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self, node: ast.expr) -> Any:
        """Return the type of a node. Raise SourceError if it is none."""
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return Union[self.read(node.left), self.read(node.right)]
        if isinstance(node, ast.Subscript):
            return self.read_generic(node)
        name = self.name_of(node)
        if name in PLAIN:
            return PLAIN[name]
        if name in GENERIC or name == "Literal":
            self.refuse(node, f"{name} needs arguments", f"Write {name}[...].")
        return self.refuse_name(node, name)

    def read_generic(self, node: ast.Subscript) -> Any:
        """Return the type of ``name[arguments]``."""
        name = self.name_of(node.value)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Literal":
            return Literal[tuple(self.read_value(item) for item in items)]
        if name not in GENERIC:
            if name in PLAIN:
                self.refuse(node, f"{name} has no arguments", f"Write {name}.")
            return self.refuse_name(node.value, name)
        is_ellipsis = [isinstance(item, ast.Constant) and item.value is Ellipsis for item in items]
        if name in ("tuple", "Tuple") and is_ellipsis == [False, True]:
            return tuple[(self.read(items[0]), ...)]  # type: ignore[misc]
        arguments = tuple(self.read(item) for item in items)
        return GENERIC[name][arguments[0] if len(arguments) == 1 else arguments]

    def read_value(self, node: ast.expr) -> Any:
        """Return a value of a Literal: a string, whole number, True, False or None."""
        sign = 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            node, sign = node.operand, -1
        if isinstance(node, ast.Constant) and (node.value is None or type(node.value) in (str, int, bool)):
            if sign == 1:
                return node.value
            if type(node.value) is int:
                return -node.value
        return self.refuse(
            node, "a value of a Literal is a string, a whole number, True, False or None", "Numbers have no fraction."
        )

    def name_of(self, node: ast.expr) -> str:
        """Return the name of a node: ``list``, or ``typing.List`` without its module. Raise SourceError otherwise."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("typing", "datetime", "decimal", "uuid"):
                return node.attr
        if not isinstance(node, ast.Name):
            self.refuse(node, "this is not a type", f"Types are {', '.join(NAMES)}.")
        return node.id

    def refuse_name(self, node: ast.expr, name: str) -> NoReturn:
        """Raise SourceError for an unknown name."""
        near = get_close_matches(name, NAMES, 1)
        hint = f"Did you mean {near[0]}?" if near else f"Types are {', '.join(NAMES)}."
        self.refuse(node, f"there is no type {name}", f"{hint} For a class of yours: --pydantic MODULE:CLASS.")

    def refuse(self, node: ast.expr, cause: str, hint: str) -> NoReturn:
        """Raise SourceError with a caret at a node."""
        lines = self.text.splitlines(keepends=True)
        before = lines[node.lineno - 1].encode()[: node.col_offset].decode(errors="replace")
        position = sum(map(len, lines[: node.lineno - 1])) + len(before)
        raise SourceError(f"the type: {cause}", source=self.text, position=position, hint=hint)
