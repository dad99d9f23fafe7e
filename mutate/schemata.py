"""Mutant schemata: all mutants of a file are written into it, and a switch selects one at run time.

Untch, Offutt and Harrold, "Mutation analysis using mutant schemata" (ISSTA 1993). Compiling a kernel takes minutes and
running its tests seconds, so mutants of kernels are compiled together:

    expression    `a < b`        ->  `((a <= b) if _active(17) else (a < b))`
    statement     `total += 1`   ->  `if not _active(18): total += 1`

Mutants may be nested, since all are nodes of one syntax tree. The replacement of a node contains no other mutants: only
one is active at a time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from .operators import Mutant

__all__ = ["can_switch", "combine_mutants"]

IMPORT = "from __future__ import annotations"
SWITCH = f"{IMPORT}; from constrain.switch import active as _active"
"""Written to the line of another import, so that line numbers are preserved."""
COMPILED = ("entry", "inlined", "kernel", "recursive")
"""Decorators of compiled functions. `overload` decorates a function that returns a compiled one."""


def combine_mutants(text: str, numbered: Mapping[int, Mutant]) -> str:
    """Return the text of a file with these mutants, each switched by its number."""
    # Outer mutants first; a statement before the expression with the same span.
    ordered = sorted(numbered.items(), key=lambda pair: (pair[1].span[0], -pair[1].span[1], not is_statement(pair[1])))
    return rewrite_source(text, 0, len(text), ordered).replace(IMPORT, SWITCH, 1)


def rewrite_source(text: str, begin: int, end: int, ordered: list[tuple[int, Mutant]]) -> str:
    """Rewrite text[begin:end] with mutants inside it."""
    parts, at = [], begin
    while ordered:
        number, mutant = ordered.pop(0)
        start, stop = mutant.span
        inner = []
        while ordered and ordered[0][1].span[1] <= stop:
            inner.append(ordered.pop(0))
        old = rewrite_source(text, start, stop, inner)
        guarded = f"if not _active({number}): {old}"
        parts += [text[at:start], guarded if is_statement(mutant) else build_choice(number, mutant.new, old)]
        at = stop
    return "".join([*parts, text[at:end]])


def build_choice(number: int, new: str, old: str) -> str:
    """Return the expression that is `new` while the mutant is active."""
    return f"(({new}) if _active({number}) else ({old}))"


def is_statement(mutant: Mutant) -> bool:
    """Return whether a mutant removes a statement."""
    return mutant.operator == "statement"


def can_switch(text: str, mutant: Mutant) -> bool:
    """Return whether a mutant can be selected at run time: not in a match pattern, nor in code that builds kernels."""
    try:
        tree = ast.parse(combine_mutants(text, {1: mutant}))
    except SyntaxError:
        return False
    if not mutant.file.startswith("constrain/kernels/"):
        return True
    at = next(node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "_active")
    return is_compiled(find_enclosing_functions(tree, at))


def find_enclosing_functions(node: ast.AST, sought: ast.AST) -> list[ast.FunctionDef]:
    """Return the functions around a node of a tree, the outermost first."""
    for child in ast.iter_child_nodes(node):
        if child is sought or any(one is sought for one in ast.walk(child)):
            own = [child] if isinstance(child, ast.FunctionDef) else []
            return own + find_enclosing_functions(child, sought)
    return []


def is_compiled(functions: list[ast.FunctionDef]) -> bool:
    """Return whether the innermost of nested functions is compiled as a kernel."""
    return any(name in COMPILED for name in list_decorators(functions[-1])) or (
        len(functions) > 1 and "overload" in list_decorators(functions[-2])
    )


def list_decorators(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the names of the decorators of a function."""
    for one in function.decorator_list:
        called = one.func if isinstance(one, ast.Call) else one
        yield ast.unparse(called)
