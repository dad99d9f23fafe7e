"""Deserialise forms from JSON. Every field is validated, because the JSON may come from an untrusted source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields as dataclass_fields
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..base.errors import SourceError, shorten_text
from ..base.options import Style
from .form import Form, LiteralText, NamedForm, RepeatedForm, literal
from .free_text_forms import MarkOf, Thinking, Triggered, Unconstrained, mark, thinking, triggered, unconstrained
from .lexical_constraints import AllClauses, PhraseOccurrence, all_of, contains, excludes
from .sources import FreeText, free_text

__all__ = ["read_form"]

REMAKE: dict[type[Form], Callable[..., Form]] = {
    LiteralText: literal,
    FreeText: lambda low, high, without, until: free_text(low, high, without=without, until=until),
    RepeatedForm: lambda form, low, high: form.repeat(low, high),
    NamedForm: lambda form, name: form.named(name),
    MarkOf: mark,
    Unconstrained: unconstrained,
    Triggered: lambda forms, least, most, after: triggered(forms, least=least, most=most, after=after),
    PhraseOccurrence: lambda phrases, occurring, case, boundaries, within: (
        contains if occurring == "some" else excludes
    )(*phrases, case=case, boundaries=boundaries, within=within),
    AllClauses: all_of,
    Thinking: lambda form, open, close, most, thought: thinking(form, open, close, most=most, thought=thought),
}
"""Public constructors of forms, for the kinds whose constructor checks more than the types of its arguments."""


def read_form(body: Mapping[str, Any]) -> Form:
    """Read a form that `Form.plain` serialised.

    Raise SourceError if it is not a form, was written by another version, or names folders to import from. Iterative,
    since a form may be nested as deeply as `Limits.nesting` allows.
    """
    cache: dict[int, Any] = {}  # by the identity of the JSON value
    todo: list[tuple[Any, bool]] = [(body, False)]
    while todo:
        value, ready = todo.pop()
        if not isinstance(value, (dict, list)):
            continue
        inner = list(value.values()) if isinstance(value, dict) else value
        if ready:
            cache[id(value)] = _read(value, [cache.get(id(one), one) for one in inner])
        else:
            todo.append((value, True))
            todo.extend((one, False) for one in inner)
    form = cache.get(id(body))
    if not isinstance(form, Form):
        raise _wrong("the JSON contains no form")
    return form


def _read(value: Any, inner: list[Any]) -> Any:
    """Return the object of a JSON value whose members have been read: a form, a style, or a tuple."""
    if isinstance(value, list):
        return tuple(inner)
    fields = dict(zip(value, inner))
    if "kind" not in fields:
        try:
            return Style(**fields)
        except (TypeError, ValueError) as error:
            raise _wrong(f"a style is invalid: {shorten_text(error)}") from None
    kind = Form.kinds.get(fields["kind"]) if isinstance(fields["kind"], str) else None
    if kind is None:
        raise _wrong(f"there is no form {shorten_text(repr(fields['kind']))}")
    del fields["kind"]
    if fields.get("import_paths"):
        raise SourceError(
            "a saved Lark grammar names folders for %import, which are not read on behalf of a file",
            hint="Compile the grammar again with import_paths=, and save it: its modules are then part of the file.",
        )
    for name, hint in field_types(kind).items():
        if name in fields and not is_of_type(fields[name], hint):
            raise _wrong(f"{name} of {kind.__name__} is {shorten_text(repr(fields[name]))}")
    try:
        form = kind(**fields)
        return REMAKE[kind](*(getattr(form, name) for name in field_types(kind))) if kind in REMAKE else form
    except ValueError as error:
        raise _wrong(shorten_text(error)) from None
    except TypeError:
        raise _wrong(f"{kind.__name__} has other fields than {shorten_text(', '.join(fields))}") from None


def _wrong(cause: str) -> SourceError:
    return SourceError(cause, hint="It was written by another version or by another program.")


@cache
def field_types(kind: type[Form]) -> dict[str, Any]:
    """Return the types of the fields of a form class."""
    types = get_type_hints(kind)
    return {one.name: types[one.name] for one in dataclass_fields(kind)}  # type: ignore[arg-type]


def is_of_type(value: Any, hint: Any) -> bool:
    """Return whether a value is an instance of a type hint: a class, tuple, Literal, or union of these."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(is_of_type(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(inner) == 2 and inner[1] is Ellipsis:
            return all(is_of_type(one, inner[0]) for one in value)
        return len(value) == len(inner) and all(map(is_of_type, value, inner))
    if hint is type(None):
        return value is None
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
