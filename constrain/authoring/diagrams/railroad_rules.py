"""Convert the rules of a grammar to shapes: `x ("," x)*` becomes a loop with a comma on the way back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from ...base.options import Limits
from ...frontends.gbnf.gbnf_parser import GbnfParser as GbnfReader
from ...frontends.lark.lark_imports import ImportReader
from ...grammar.nodes import Chars, Choice as ChoiceNode, Literal, Repeat, Rule, Sequence as SequenceNode, Token
from ...grammar.visitor import NodeVisitor
from ..grammar_tools.character_grammar import GBNF_CLASSES, format_characters
from ..grammar_tools.written_grammar import WrittenGrammar
from .railroad_shapes import Box, DiagramShape, Remark, ShapeChoice, ShapeLoop, ShapeRow, Skip, fold_row

__all__ = ["Drawn", "draw_rules"]

MOST_LETTERS = 70
"""Maximum number of characters of a pattern that are shown in a box."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The diagram of a rule or terminal. about: a remark beside its name."""

    name: str
    kind: str
    shape: DiagramShape
    about: str = ""


def draw_rules(written: WrittenGrammar) -> list[Drawn]:
    """Return the diagrams of all rules, then of the named terminals."""
    return _LarkRules(written).all() if written.kind == "lark" else _GbnfRules(written.text).all()


# ---- what shapes are made of -------------------------------------------------------------------------------------


def make_optional(shape: DiagramShape) -> DiagramShape:
    """Return an optional shape: the bypass is above."""
    return ShapeChoice((Skip(), shape), 1)


def repeat_shape(shape: DiagramShape, low: int, high: int | None) -> DiagramShape:
    """Return a shape repeated low to high times."""
    if (low, high) == (0, 1):
        return make_optional(shape)
    if (low, high) == (1, 1):
        return shape
    if high == 0:
        return Skip()
    times = "" if high is None and low <= 1 else f"{low}×" if low == high else f"{low}–{'∞' if high is None else high}×"
    loop = ShapeLoop(shape, Remark(times) if times else Skip())
    return make_optional(loop) if low == 0 else loop


def join_parts(
    parts: Sequence[tuple[Any, DiagramShape]], loops: dict[int, tuple[list[Any], list[DiagramShape]]]
) -> DiagramShape:
    """Return a row of parts (key, shape).

    loops: by the index of a `(...)*`, the keys and shapes that it repeats; where these end with the parts before it,
    both are merged into one loop.
    """
    out: list[tuple[Any, DiagramShape]] = []
    for index, (separator, shape) in enumerate(parts):
        if index in loops:
            keys, shapes = loops[index]
            begin = len(out)
            shared = 0
            while shared < min(len(keys), begin) and keys[-1 - shared] == out[begin - 1 - shared][0]:
                shared += 1
            if shared:
                repeated = ShapeRow(tuple(one for _, one in out[begin - shared :]))
                between = [*reversed(shapes[: len(shapes) - shared])]
                loop = ShapeLoop(repeated, ShapeRow(tuple(between)) if between else Skip())
                out[begin - shared :] = [(object(), loop)]
                continue
        out.append((separator, shape))
    return fold_row([shape for _, shape in out]) if out else Skip()


def shorten_text(text: str) -> str:
    """Return a text, truncated to the maximum length."""
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"


# ---- Lark --------------------------------------------------------------------------------------------------------


class _LarkRules:
    def __init__(self, written: WrittenGrammar) -> None:
        from lark import load_grammar as lark

        reader = ImportReader(written.import_paths)
        self.grammar, _ = lark.load_grammar(written.text, written.name, [reader], False)
        self.written = written
        self.names = {str(name) for name, *_ in self.grammar.rule_defs} | {str(n) for n, _ in self.grammar.term_defs}

    def all(self) -> list[Drawn]:
        out = []
        ignored = set(map(str, self.grammar.ignore))
        for name, parameters, tree, options in self.grammar.rule_defs:
            if tree is not None:
                about = ["start"] if name == self.written.start else []
                about += [f"template of {', '.join(map(str, parameters))}"] if parameters else []
                about += [f"priority {options.priority}"] if options.priority else []
                out.append(Drawn(str(name), "rule", self.shape(tree), " · ".join(about)))
        out.sort(key=lambda one: one.name != self.written.start)
        for name, (tree, priority) in self.grammar.term_defs:
            about = [f"priority {priority}"] if priority else []
            about += ["ignored"] if str(name) in ignored else []
            if tree is None:
                out.append(Drawn(str(name), "terminal", Remark("declared: made by whoever uses the grammar"), ""))
            else:
                title = "ignored" if str(name).startswith("__") else str(name)
                out.append(Drawn(title, "terminal", self.shape(tree), " · ".join(about) if title != "ignored" else ""))
        return out

    def shape(self, tree: Any) -> DiagramShape:
        """Return the shape of a tree of Lark's own grammar."""
        kind = getattr(tree, "data", None)
        if kind is None:
            return self.symbol(tree)
        if kind == "expansions":
            options = [self.shape(child) for child in tree.children]
            options = [*(o for o in options if isinstance(o, Skip))][:1] + [
                o for o in options if not isinstance(o, Skip)
            ]
            if len(options) == 1:
                return options[0]
            return ShapeChoice(tuple(options), 1 if isinstance(options[0], Skip) else 0)
        if kind == "expansion":
            return self.row(tree.children)
        if kind == "alias":
            return self.shape(tree.children[0])
        if kind == "maybe":
            return make_optional(self.shape(tree.children[0]))
        if kind == "expr":
            return repeat_shape(self.shape(tree.children[0]), *_counts(tree))
        if kind == "range":
            return Box(f"{tree.children[0]} to {tree.children[1]}", "pattern")
        if kind == "literal":
            text = str(tree.children[0])
            return Box(shorten_text(text), "text" if text.startswith('"') else "pattern")
        if kind == "template_usage":
            inside = ", ".join(map(_source, tree.children[1:]))
            name = str(tree.children[0].name)
            return Box(shorten_text(f"{name}{{{inside}}}"), "rule", f"rule-{name}" if name in self.names else "")
        return self.row(tree.children)

    def row(self, children: Sequence[Any]) -> DiagramShape:
        loops: dict[int, tuple[list[Any], list[DiagramShape]]] = {}
        for index, child in enumerate(children):
            if getattr(child, "data", None) == "expr" and _counts(child) == (0, None):
                inner = _only(child.children[0])
                loops[index] = [_source(one) for one in inner], [self.shape(one) for one in inner]
        return join_parts([(_source(child), self.shape(child)) for child in children], loops)

    def symbol(self, symbol: Any) -> DiagramShape:
        name = str(getattr(symbol, "name", symbol))
        terminal = name.upper() == name
        link = f"{'terminal' if terminal else 'rule'}-{name}" if name in self.names else ""
        return Box(name, "terminal" if terminal else "rule", link)


def _counts(tree: Any) -> tuple[int, int | None]:
    """Return the minimum and maximum number of repetitions of an `expr`."""
    operator, numbers = str(tree.children[1]), [int(number) for number in tree.children[2:]]
    if operator == "~":
        return numbers[0], numbers[-1]
    return {"?": (0, 1), "*": (0, None), "+": (1, None)}[operator]


def _only(tree: Any) -> list[Any]:
    """Return the parts of a group in parentheses that has a single option."""
    if tree.data == "expansions" and len(tree.children) == 1 and tree.children[0].data == "expansion":
        return list(tree.children[0].children)
    return [tree]


def _source(tree: Any) -> str:
    """Return the source of a part, for comparison and as a name."""
    if not hasattr(tree, "data"):
        return str(getattr(tree, "name", tree))
    between = {"expansions": " | ", "range": ".."}.get(tree.data, " ")
    return between.join(map(_source, tree.children))


# ---- GBNF --------------------------------------------------------------------------------------------------------


class _GbnfRules(NodeVisitor[DiagramShape]):
    """The diagrams of the rules of a GBNF grammar."""

    node_classes = GBNF_CLASSES

    def __init__(self, text: str) -> None:
        self.reader = GbnfReader(text, Limits().nesting)
        self.reader.read()

    def all(self) -> list[Drawn]:
        out = [Drawn(_called(name), "rule", self.visit(body)) for name, body in self.reader.rules.items()]
        return sorted(out, key=lambda one: one.name != "root")

    def visit_literal(self, node: Literal) -> DiagramShape:
        return Box(shorten_text(f'"{node.data.decode()}"'), "text") if node.data else Skip()

    def visit_chars(self, node: Chars) -> DiagramShape:
        return Box(shorten_text(format_characters(node.dfa)), "pattern")

    def visit_rule(self, node: Rule) -> DiagramShape:
        return Box(_called(node.name), "rule", f"rule-{_called(node.name)}")

    def visit_token(self, node: Token) -> DiagramShape:
        return Box(("not " if node.negated else "") + ", ".join(map(str, node.names)), "terminal")

    def visit_repeat(self, node: Repeat) -> DiagramShape:
        return repeat_shape(self.visit(node.node), node.low, node.high)

    def visit_choice(self, node: ChoiceNode) -> DiagramShape:
        options = [self.visit(option) for option in node.options]
        options.sort(key=lambda option: not isinstance(option, Skip))
        return ShapeChoice(tuple(options), 1 if isinstance(options[0], Skip) and len(options) > 1 else 0)

    def visit_sequence(self, node: SequenceNode) -> DiagramShape:
        loops: dict[int, tuple[list[Any], list[DiagramShape]]] = {}
        for index, part in enumerate(node.parts):
            if isinstance(part, Repeat) and (part.low, part.high) == (0, None):
                inner = part.node.parts if isinstance(part.node, SequenceNode) else (part.node,)
                loops[index] = list(inner), [self.visit(one) for one in inner]
        return join_parts([(part, self.visit(part)) for part in node.parts], loops)


def _called(name: Hashable) -> str:
    return name if isinstance(name, str) else "group"
