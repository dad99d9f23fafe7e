"""Mutants of a Python file: one small change each that preserves the line numbers of the text.

Operators: a comparison negated or moved by its boundary, + for -, `and` for `or`, a condition negated, a number one
more or less, a statement removed, a return value replaced.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "list_mutants"]

COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Mod: "+",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "&",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.Div: "*",
    ast.Pow: "*",
}
WRITTEN: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Div: "/",
    ast.Pow: "**",
}
UNTOUCHED = ("__all__", "STAMP", "__repr__", "__slots__")
"""Names whose mutants change nothing, or only a message."""


@dataclass(frozen=True)
class Mutant:
    """A small change. file: path in the checkout. span: offsets of the replaced text. old, new: text before and after.
    function: the name of the function.
    """

    file: str
    line: int
    operator: str
    span: tuple[int, int]
    old: str
    new: str
    function: str

    def apply(self, text: str) -> str:
        """Return the text of the file, mutated."""
        return text[: self.span[0]] + self.new + text[self.span[1] :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}: {self.old.strip()[:60]!r} -> {self.new.strip()[:60]!r}"


def list_mutants(file: str, text: str) -> list[Mutant]:
    """Return every mutant of a file."""
    return list(Walk(file, text).list_all(ast.parse(text)))


class Walk:
    """Lists the mutants of a file in one pass over its syntax tree."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        data = text.encode()
        self.starts = [0]
        for line in data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.data = data

    def list_all(self, tree: ast.AST) -> Iterator[Mutant]:
        """Yield the mutants of all functions; code at module level is not mutated, as it runs at import."""
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name not in UNTOUCHED:
                yield from self.list_in_function(node)

    def list_in_function(self, function: ast.FunctionDef) -> Iterator[Mutant]:
        """Yield the mutants of one function, without its docstring and nested functions."""
        todo: list[ast.AST] = list(function.body)
        if isinstance(todo[0], ast.Expr) and isinstance(todo[0].value, ast.Constant):
            del todo[0]
        while todo:
            node = todo.pop()
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Raise, ast.Assert)):
                continue  # messages are not behaviour
            for operator, changed, new in self.list_changes(node):
                yield self.build_mutant(function.name, operator, changed, new)
            todo += [
                child
                for child in ast.iter_child_nodes(node)
                if not isinstance(child, (ast.JoinedStr, ast.expr_context))
            ]
            if isinstance(node, ast.AnnAssign):
                todo.remove(node.annotation)

    def list_changes(self, node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
        """Yield (operator, replaced node, its new text)."""
        match node:
            case ast.Compare(ops=[op], left=left, comparators=[right]):
                for new in COMPARISONS[type(op)]:
                    yield "comparison", node, f"{self.get_source(left)} {new} {self.get_source(right)}"
            case ast.BoolOp(op=op, values=values):
                word = " or " if isinstance(op, ast.And) else " and "
                yield "boolean", node, "(" + word.join(f"({self.get_source(value)})" for value in values) + ")"
            case ast.BinOp(left=left, op=op, right=right) if (
                type(op) in ARITHMETIC and not is_text(left) and not is_text(right)
            ):
                yield "arithmetic", node, f"({self.get_source(left)}) {ARITHMETIC[type(op)]} ({self.get_source(right)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield "boolean", node, f"bool({self.get_source(operand)})"
            case ast.Constant(value=bool(value)):
                yield "constant", node, str(not value)
            case ast.Constant(value=int(value)):
                yield "constant", node, str(value + 1)
                if value:
                    yield "constant", node, str(value - 1)
            case ast.If(test=test) | ast.While(test=test) if not isinstance(
                test, (ast.Compare, ast.BoolOp, ast.Constant)
            ):
                yield "condition", test, f"(not ({self.get_source(test)}))"
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield "return", value, self.replace_returned(value)
            case ast.AugAssign() | ast.Continue() | ast.Break():
                yield "statement", node, "pass"
            case ast.Expr(value=ast.Call()):
                yield "statement", node, "pass"
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
                yield "statement", node, "pass"

    def replace_returned(self, value: ast.expr) -> str:
        """Return the expression that replaces a returned value, of the same type, as kernels require."""
        if not self.file.startswith("constrain/kernels/"):
            return "None"
        return f"({'0, ' * len(value.elts)})" if isinstance(value, ast.Tuple) else "0"

    def get_source(self, node: ast.AST) -> str:
        """Return the text of a node, in brackets where it needs them."""
        start, end = self.get_span(node)
        text = self.data[start:end].decode()
        needs = isinstance(node, (ast.BoolOp, ast.IfExp, ast.Compare, ast.Lambda, ast.NamedExpr, ast.UnaryOp))
        return f"({text})" if needs else text

    def get_span(self, node: ast.AST) -> tuple[int, int]:
        """Return the byte offsets of a node."""
        line, column, last, end = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return self.starts[line - 1] + column, self.starts[last - 1] + end

    def build_mutant(self, function: str, operator: str, node: ast.AST, new: str) -> Mutant:
        """Return a mutant, with as many line breaks as the original."""
        start, end = self.get_span(node)
        old = self.data[start:end].decode()
        missing = old.count("\n") - new.count("\n")
        if missing > 0:  # Line breaks are allowed anywhere in brackets.
            new = new + "\n" * missing if new == "pass" else f"({new}" + "\n" * missing + ")"
        at, stop = len(self.data[:start].decode()), len(self.data[:end].decode())
        return Mutant(self.file, node.lineno, operator, (at, stop), old, new, function)  # type: ignore[attr-defined]


def is_text(node: ast.expr) -> bool:
    """Return whether an operand is a text or a list, whose + is not arithmetic."""
    return isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )
