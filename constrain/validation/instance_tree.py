"""An instance as a tree of numbered items, which know their parents, so that each has a pointer and a position.

Items are numbered in the order in which their texts begin. So the n-th value of a JSON text is the item n, and a table
of results by the number of an item needs no equality of values.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from ..base.errors import ArgumentError
from ..base.json_documents import pointer_token
from ..base.work import spend_work
from ..frontends.json_schema.core.json_values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING

__all__ = ["InstanceItem", "build_tree", "name_item"]

ITEM = 4
"""Units of work that an item counts as."""


class InstanceItem:
    """A value of an instance.

    value: the plain value. kind: its JSON type, a bit of `json_values`. children: the items of an array, the members of
    an object by name; empty for scalars. key: index or name in the parent. is_name: whether it is the name of the
    member `key` and not its value. index: its number; that of a name is negative.
    """

    __slots__ = ("children", "index", "is_name", "key", "kind", "parent", "value")

    def __init__(self, value: Any, kind: int, index: int, parent: InstanceItem | None, key: str | int) -> None:
        self.value = value
        self.kind = kind
        self.index = index
        self.parent = parent
        self.key = key
        self.is_name = False
        self.children: Any = ()

    @property
    def pointer(self) -> str:
        """The JSON pointer of the item; of a name, that of its member."""
        tokens: list[str] = []
        item = self
        while item.parent is not None:
            tokens.append(pointer_token(item.key))
            item = item.parent
        return "".join(f"/{token}" for token in reversed(tokens))


def build_tree(value: Any) -> list[InstanceItem]:
    """Return the items of a plain JSON value in the order of their texts; the first is the root.

    Raise ArgumentError for NaN, infinity and half of a surrogate pair, none of which has a JSON text in UTF-8.
    """
    items: list[InstanceItem] = []
    root = InstanceItem(value, kind_bit(value), 0, None, "")
    stack = [root]
    while stack:
        item = stack.pop()
        item.index = len(items)
        items.append(item)
        if item.kind == ARRAY:
            spend_work(ITEM * len(item.value), "the reading of an instance")
            item.children = [InstanceItem(v, kind_bit(v), 0, item, at) for at, v in enumerate(item.value)]
            stack.extend(reversed(item.children))
        elif item.kind == OBJECT:
            spend_work(ITEM * len(item.value), "the reading of an instance")
            item.children = {name: InstanceItem(v, kind_bit(v), 0, item, name) for name, v in item.value.items()}
            stack.extend(reversed(item.children.values()))
        check_scalars(item)
    return items


def name_item(member: InstanceItem) -> InstanceItem:
    """Return the name of a member as an item."""
    name = InstanceItem(member.key, STRING, -1 - member.index, member.parent, member.key)
    name.is_name = True
    return name


def kind_bit(value: Any) -> int:
    """Return the JSON type of a plain value as a bit."""
    if isinstance(value, str):
        return STRING
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, (int, float, Decimal)):
        return NUMBER
    return ARRAY if isinstance(value, list) else OBJECT


def check_scalars(item: InstanceItem) -> None:
    """Raise ArgumentError if the item is a number or text, or has a key, that cannot be written as JSON."""
    value = item.value
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise ArgumentError(
            f"{value} is not a JSON number.", pointer=item.pointer, hint="Give null, or a text, in its place."
        )
    for text in texts_of(item):
        try:
            if not text.isascii():
                text.encode()
        except UnicodeEncodeError:
            raise ArgumentError(
                "A text contains half of a surrogate pair, which is not a character.", pointer=item.pointer,
                hint="Decode the text with surrogates combined, or leave the character out.",
            ) from None  # fmt: skip


def texts_of(item: InstanceItem) -> Iterator[str]:
    """Yield the text of a string, the keys of an object, nothing otherwise."""
    if item.kind == STRING:
        yield item.value
    elif item.kind == OBJECT:
        yield from item.value
