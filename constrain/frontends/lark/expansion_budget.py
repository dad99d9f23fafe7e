"""Bound the expansion of a Lark grammar before lark performs it.

lark expands choices, optional parts and templates, and composes terminals, without a bound on the result, and it
recurses into brackets. So each expansion is first counted here, iteratively, and charged to `Limits.work`.
"""

from __future__ import annotations

from typing import Any

from ...base.errors import LimitError
from ...base.work import spend_work
from .rule_expansion import count_options
from .source_map import SourceMap, SourceToken

__all__ = ["charge_options", "charge_templates", "charge_terminals", "check_nesting"]

OPENING, CLOSING = "([{", ")]}"
MOST_TERMINAL_DEPTH = 150
"""Most levels of terminals within terminals, which lark composes recursively."""


def check_nesting(source_map: SourceMap, nesting: int) -> None:
    """Raise LimitError if brackets are nested more deeply than `nesting`."""
    depth = 0
    for token in source_map.tokens:
        if token.kind == "sign":
            if token.text in OPENING:
                depth += 1
                if depth > nesting:
                    raise LimitError(
                        f"brackets are nested more than Limits.nesting = {nesting} levels deep",
                        source=source_map.text,
                        position=token.position,
                        hint="Move inner parts into separate rules.",
                    )
            elif token.text in CLOSING:
                depth = max(0, depth - 1)


def charge_options(count: int) -> None:
    """Charge the expanded alternatives of one rule; lark compares them pairwise."""
    spend_work(50 * count + count * count // 10, "the options of a rule, written out")


def charge_terminals(source_map: SourceMap) -> None:
    """Charge the patterns of composed terminals, each expanded in full."""
    bodies = {name: body for name, body in _bodies(source_map).items() if name.upper() == name}
    sizes: dict[str, tuple[int, int]] = {}  # Expanded number of parts, and levels, of each terminal.
    for root in bodies:
        todo = [root]
        while todo:
            name = todo[-1]
            inner = [t.text for t in bodies[name] if t.kind == "name" and t.text in bodies]
            missing = [one for one in inner if one not in sizes]
            if name in sizes or not missing:
                todo.pop()
                if name not in sizes:
                    parts = [sizes[one] for one in inner]
                    depth = 1 + max((levels for _, levels in parts), default=0)
                    size = len(bodies[name]) + sum(count for count, _ in parts)
                    _charge_terminal(source_map, name, size, depth)
                    sizes[name] = size, depth
            elif any(one in todo for one in missing):  # Recursive terminal: lark refuses it.
                return
            else:
                todo.append(missing[0])


def _charge_terminal(source_map: SourceMap, name: str, size: int, depth: int) -> None:
    spend_work(size * (20 + 2 * depth), "the terminals, written out")
    if depth > MOST_TERMINAL_DEPTH:
        raise LimitError(
            f"terminal `{name}` is made of terminals in terminals, more than {MOST_TERMINAL_DEPTH} levels deep",
            source=source_map.text,
            position=source_map.definition(name) or 0,
            hint="Write inner ones out, or make rules of the outer ones.",
        )


def _bodies(source_map: SourceMap) -> dict[str, list[SourceToken]]:
    """Return the tokens of the definitions of each name; of all its definitions if there are several."""
    bodies: dict[str, list[SourceToken]] = {}
    current: list[SourceToken] = []
    heads = {position: name for name, positions in source_map.definitions.items() for position in positions}
    for token in source_map.tokens:
        if token.kind == "directive" and token.text not in ("%extend", "%override"):
            current = []
        elif token.position in heads and heads[token.position] == token.text:
            current = bodies.setdefault(token.text, [])
        else:
            current.append(token)
    return bodies


# ---- templates

Usage = tuple[str, tuple[int, ...]]
"""A template and its arguments, by number."""


def charge_templates(rules: Any) -> None:
    """Charge the rules that templates expand to. rules: `rule_defs` of a grammar that lark has loaded."""
    templates = {str(name): ([str(p) for p in params], tree) for name, params, tree, _ in rules if params}
    if templates:
        counter = _TemplateInstances(templates)
        for _, params, tree, _ in rules:
            if not params and tree is not None:
                counter.use(tree, {})
        counter.run()


class _TemplateInstances:
    """Instances of templates, represented by their numbers and the lengths of their names."""

    def __init__(self, templates: dict[str, tuple[list[str], Any]]) -> None:
        self.templates = templates
        self.numbers: dict[object, int] = {}
        self.lengths: list[int] = []
        self.todo: list[Usage] = []
        self.sizes = {name: sum(1 for _ in tree.iter_subtrees()) for name, (_, tree) in templates.items()}
        self.usages = {name: list(tree.find_data("template_usage")) for name, (_, tree) in templates.items()}

    def number(self, key: object, length: int) -> int:
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.lengths)
            self.lengths.append(length)
        return found

    def run(self) -> None:
        while self.todo:
            name, arguments = self.todo.pop()
            parameters, tree = self.templates[name]
            options_ = count_options(tree)
            charge_options(options_)
            spend_work(200 + 20 * self.sizes[name], "the templates, written out")
            self.use(tree, dict(zip(parameters, arguments)), self.usages[name])

    def use(self, tree: Any, names: dict[str, int], usages: list[Any] | None = None) -> None:
        """Record the template usages in a tree; `iter_subtrees` yields inner ones first."""
        numbers: dict[int, int] = {}
        for node in tree.find_data("template_usage") if usages is None else usages:
            name = str(node.children[0].name)
            if name in names or name not in self.templates:  # lark refuses either.
                continue
            arguments = tuple(self.argument(child, names, numbers) for child in node.children[1:])
            key: Usage = name, arguments
            known = key in self.numbers
            length = len(name) + 2 + sum(self.lengths[one] + 1 for one in arguments)
            numbers[id(node)] = self.number(key, length)
            if not known:
                spend_work(10 + length, "the templates, written out")
                self.todo.append(key)

    def argument(self, node: Any, names: dict[str, int], numbers: dict[int, int]) -> int:
        inner = node
        while getattr(inner, "data", None) == "value" and len(inner.children) == 1:
            inner = inner.children[0]
        if id(inner) in numbers:
            return numbers[id(inner)]
        text = str(getattr(inner, "name", inner))
        return names[text] if text in names else self.number(text, len(text))
