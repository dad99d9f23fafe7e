"""The members of an object: which of them are written, in which order, and under which names."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from ..grammar.nodes import NameClass, Object, Property
from .choice_source import TRIES, NoMember
from .dfa_texts import build_language, draw_text
from .document_plan import PartialDocument

__all__ = ["write_object"]

MANY = 16
"""Maximum number of optional members for which one coin each is tossed; of more members, some are selected."""


def write_object(writer: PartialDocument, node: Object) -> None:
    lay = node.layout
    writer.out += lay.opening
    used = {*node.excluded, *(item.name for item in node.properties)}
    members = members_of(writer, node)
    if node.order == "any" and writer.choose(3) == 2:
        for index in range(len(members) - 1, 0, -1):
            other = writer.choose(index + 1)
            members[index], members[other] = members[other], members[index]
    written = 0
    for item in members:
        name: str | None
        if isinstance(item, Property):
            name = item.name
        else:
            name = name_of(writer, item, used)
        if name is not None:
            writer.node(lay.comma if written else lay.open)
            spelled = (
                writer.quoted(name) if node.escapes == "any" or isinstance(item, NameClass) else canonical_key(name)
            )
            writer.out += spelled
            writer.node(lay.colon)
            writer.chooser.span(partial(writer.node, item.value))
            written += 1
    if written < node.low:
        raise NoMember
    writer.node(lay.close if written else lay.empty)
    writer.out += lay.closing


def name_of(writer: PartialDocument, item: NameClass, used: set[str]) -> str | None:
    """Return an unused name of the class; None if there is none."""
    names = build_language(item.names, 0, None)
    for _ in range(TRIES):
        name = draw_text(names, writer.choose)
        if name not in used:
            break
    else:
        left = item.names.subtract(type(item.names).from_strings(sorted(used)))
        if left.is_empty:
            return None
        name = build_language(left, 0, None).simplest()
    used.add(name)
    return name


def members_of(writer: PartialDocument, node: Object) -> list[Property | NameClass]:
    """Return the members to write: the required ones, and some others with their dependencies, within the bounds on
    their number."""
    known = {item.name: item for item in node.properties}
    must = [item for item in node.others if item.required]
    chosen = {item.name for item in node.properties if item.required}
    for name in list(chosen):
        chosen |= add_dependencies(name, known)
    free = [item for item in node.properties if item.name not in chosen]

    def fits(more: int) -> bool:
        return node.high is None or len(chosen) + len(must) + more <= node.high

    def take(item: Property) -> None:
        more = add_dependencies(item.name, known) - chosen
        if fits(len(more)):
            chosen.update(more)

    for item in pick_members(writer, free):
        take(item)
    extra: list[NameClass] = list(must)
    while node.others and fits(len(extra) - len(must) + 1) and writer.more():
        extra.append(node.others[writer.choose(len(node.others))])
    fill_members(writer, node, [item for item in free if item.name not in chosen], take, chosen, extra)
    return [*(item for item in node.properties if item.name in chosen), *extra]


def fill_members(
    writer: PartialDocument,
    node: Object,
    free: list[Property],
    take: Callable[[Property], None],
    chosen: set[str],
    extra: list[NameClass],
) -> None:
    """Add members to reach the minimum number: declared ones, then undeclared ones.

    Only those that terminate soon are added once the budget is exhausted.
    """
    height = writer.plan.endings.height
    if writer.ending and len(chosen) + len(extra) < node.low:
        free = sorted(free, key=lambda item: height(item.value))
    while free and len(chosen) + len(extra) < node.low:
        take(free.pop(writer.choose(len(free))))
    missing = node.low - len(chosen) - len(extra)
    if missing > 0 and node.others:
        classes = [item for item in node.others if item.names.is_endless] or list(node.others)
        classes.sort(key=lambda item: height(item.value))
        extra += [classes[writer.choose(len(classes))] for _ in range(missing)]


def pick_members(writer: PartialDocument, free: list[Property]) -> list[Property]:
    """Return some of the optional members: none, or by one coin each; a few of very many."""
    how = 0 if writer.ending or not free else writer.choose(4)
    if how and len(free) <= MANY:
        # Of eight: likely, even or rare. All coins are independent, so that each can be changed by itself.
        least = {1: 4, 2: 7, 3: 1}[how] if writer.level <= 3 else 6
        return [item for item in free if writer.choose(8) >= least]
    picked: list[Property] = []
    while how and len(picked) < len(free) and writer.more():
        picked.append(free[writer.choose(len(free))])
    return picked


def add_dependencies(name: str, known: dict[str, Property]) -> set[str]:
    """Return a declared key with all of its dependencies."""
    names, todo = {name}, [name]
    while todo:
        for other in known[todo.pop()].needs:
            if other not in names:
                names.add(other)
                todo.append(other)
    return names


def canonical_key(name: str) -> bytes:
    """Return a key as a Grammar with canonical escapes spells it."""
    return json.dumps(name, ensure_ascii=False).encode()
