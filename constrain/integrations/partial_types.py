"""Partial instances of types: what a JSON text that is being written shows so far, in the shape of its type.

    class Person(BaseModel):  name: str;  born: date;  tags: list[Tag]

    {"name": "Ann", "born": "2001-0       ->  PartialPerson(name="Ann", born=None, tags=None)

A partial class has the fields of the class, all optional with the default None, and none of its methods and validators:
a validator of a whole value cannot judge a part of it. Strings are shown as far as they are written; dates, enums,
literals and all else that is written as a string only when it is complete. TypedDicts are dicts without the keys that
are not written yet. Values that do not fit their type are shown as plain JSON.
"""

from __future__ import annotations

import types
from collections import namedtuple
from dataclasses import field, is_dataclass, make_dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ..base.errors import UnsupportedError
from ..frontends.type_inspection import (
    MOST_NESTED,
    count_levels,
    is_alias,
    is_record,
    is_typeddict,
    list_init_fields,
    resolve_alias,
    resolve_hints,
)
from .python_values import WRAPPERS, Misfit, convert_key, convert_value, equal_json, name_of, to_plain

__all__ = ["partial_model", "to_partial"]

Path = Union[tuple[Union[str, int], ...], None]
"""Keys and indices to the innermost value that is not finished, as `PartialJson.open_path`; None: all is finished."""


class Omitted:
    """The type of OMITTED."""


OMITTED = Omitted()
"""A string that is not complete, of a type other than str."""


def partial_model(tp: Any) -> Any:
    """Return the type of partial values of a type.

    Parameters
    ----------
    tp : type
        A Pydantic model, dataclass, NamedTuple or TypedDict, or a type that contains them.

    Returns
    -------
    type
        For a Pydantic model, a model with its fields, all optional; for a dataclass or NamedTuple likewise; for a
        TypedDict one without required keys; for a union or a collection that of its parts; any other type itself. The
        same for the same type.

    Raises
    ------
    UnsupportedError
        If the annotations of a class cannot be resolved.
    """
    tp = strip_wrappers(tp)[0]
    try:
        hash(tp)
    except TypeError:  # such as Annotated with a list
        return build_partial(tp)
    return build_cached(tp)


@lru_cache(maxsize=256)
def build_cached(tp: Any) -> Any:
    """Return the partial type, the same for the same type."""
    return build_partial(tp)


def build_partial(tp: Any) -> Any:
    """Return the partial type of `tp`. Within it a recursive class is Any."""
    tp, origin, args = strip_wrappers(tp)
    if origin is Union or origin is types.UnionType:
        return Union[tuple(build_part(arg) for arg in args)]
    if origin is not None and isinstance(origin, type) and args and not has_fields(origin):
        parts = tuple(arg if arg is Ellipsis else build_part(arg) for arg in args)
        generic: Any = origin
        return generic[parts if len(parts) > 1 else parts[0]] if hasattr(origin, "__class_getitem__") else origin
    if not has_fields(tp):
        return tp
    hints = {name: build_part(hint) for name, hint in hints_of(tp).items()}
    kind = origin or tp
    return build_record(kind, f"Partial{name_of(kind).rpartition('.')[2]}", hints)


def build_part(tp: Any) -> Any:
    """Return the partial type of a part of a type."""
    tp = strip_marks(tp)
    return Any if (has_fields(tp) or is_alias(tp)) and is_recursive(tp) else partial_model(tp)


def is_recursive(tp: Any) -> bool:
    """Return whether a class or an alias occurs in its parts, or in theirs, or does so with ever larger arguments."""
    seen: list[Any] = []  # types need not be hashable
    waiting = parts_of(tp)
    while waiting:
        part = strip_marks(waiting.pop())
        is_too_deep = (has_fields(part) or is_alias(part)) and count_levels(part) > MOST_NESTED
        if part == tp or (is_too_deep and get_origin(part) is get_origin(tp)):
            return True
        if not is_too_deep and part not in seen:
            seen.append(part)
            waiting += parts_of(part)
    return False


def parts_of(tp: Any) -> list[Any]:
    """Return the types of the fields of a class, the type of an alias, or the arguments of any other type."""
    if is_alias(tp):
        return [resolve_alias(tp)]
    return list(hints_of(tp).values()) if has_fields(tp) else [arg for arg in get_args(tp) if arg is not Ellipsis]


def build_record(tp: Any, name: str, hints: dict[str, Any]) -> Any:
    """Return a class with these fields, all optional."""
    if hasattr(tp, "model_fields"):
        from pydantic import ConfigDict, create_model

        optional: dict[str, Any] = {key: (Union[hint, None], None) for key, hint in hints.items()}
        config = ConfigDict(arbitrary_types_allowed=True, extra="allow", protected_namespaces=())
        return create_model(name, __config__=config, __module__=tp.__module__, **optional)
    if is_typeddict(tp):
        from typing_extensions import TypedDict

        return TypedDict(name, hints, total=False)  # type: ignore[operator]
    made: Any
    if is_dataclass(tp):
        made = make_dataclass(name, [(key, Union[hint, None], field(default=None)) for key, hint in hints.items()])
    else:  # a NamedTuple
        made = namedtuple(name, list(hints), defaults=(None,) * len(hints))  # type: ignore[misc, no-redef]
        made.__annotations__ = {key: Union[hint, None] for key, hint in hints.items()}
    made.__module__ = tp.__module__
    return made


def strip_wrappers(tp: Any) -> tuple[Any, Any, tuple[Any, ...]]:
    """Return a type without Annotated, NewType, aliases and the like, its origin and its arguments."""
    tp = strip_marks(tp)
    while is_alias(tp):
        tp = strip_marks(resolve_alias(tp))
    return tp, get_origin(tp), get_args(tp)


def strip_marks(tp: Any) -> Any:
    """Return a type without Annotated, NewType and the like."""
    while True:
        origin = get_origin(tp)
        if origin is Annotated or getattr(origin, "__name__", getattr(origin, "_name", "")) in WRAPPERS:
            tp = get_args(tp)[0]
        elif hasattr(tp, "__supertype__"):
            tp = tp.__supertype__
        else:
            return tp


def has_fields(tp: Any) -> bool:
    """Return whether a type is a class with named fields, which may have arguments."""
    origin = get_origin(tp) or tp
    return isinstance(origin, type) and (is_record(origin) or hasattr(origin, "model_fields"))


def is_root_model(tp: Any) -> bool:
    """Return whether a type is a RootModel of Pydantic, which is written as its only field is."""
    return getattr(tp, "__pydantic_root_model__", False) is True


def hints_of(tp: Any) -> dict[str, Any]:
    """Return the annotations of the fields of a class by name."""
    if hasattr(tp, "model_fields"):
        return {name: one.annotation for name, one in tp.model_fields.items()}
    try:
        hints = resolve_hints(tp)
    except NameError as error:
        raise UnsupportedError(f"the annotations of {name_of(tp)} cannot be resolved: {error}") from error
    tp = get_origin(tp) or tp
    if is_dataclass(tp):
        return {name: hints.get(name, Any) for name in list_init_fields(tp, hints)}
    return {name: hints.get(name, Any) for name in tp._fields} if hasattr(tp, "_fields") else hints


def to_partial(tp: Any, value: Any, path: Path) -> Any:
    """Return the partial value of type `partial_model(tp)`.

    Parameters
    ----------
    tp : type
    value : object
        What `PartialJson(Decimal)` shows; not modified, and not shared with the result where it may still change.
    path : tuple of str and int, or None
        Its open path.

    Returns
    -------
    object
        None where a string is not complete that is not of type str.

    Raises
    ------
    RecursionError
        If the value is nested too deeply for Python.
    """
    converted = convert_partial(tp, value, path)
    return None if converted is OMITTED else converted


def convert_partial(tp: Any, value: Any, path: Path) -> Any:
    """Return the partial value, or OMITTED."""
    tp, origin, args = strip_wrappers(tp)
    if origin is Union or origin is types.UnionType:
        return convert_partial(choose_member(args, value), value, path)
    if is_root_model(tp):
        root = convert_partial(hints_of(tp)["root"], value, path)
        return OMITTED if root is OMITTED else partial_model(tp).model_construct(root=root)
    if isinstance(value, dict):
        if has_fields(tp):
            return convert_fields(tp, value, path)
        keys, inner = args if len(args) == 2 else (str, Any)
        items = convert_items(value.items(), lambda key: inner, path)
        return {convert_partial_key(keys, key): item for key, item in items if item is not OMITTED}
    if isinstance(value, list):
        if hasattr(tp, "_fields"):
            place = (tp._fields[path[0]], *path[1:]) if path and isinstance(path[0], int) else path
            return convert_fields(tp, dict(zip(tp._fields, value)), place)
        made = [item for _, item in convert_items(enumerate(value), lambda at: item_type(origin, args, at), path)]
        return [item for item in made if item is not OMITTED]
    if isinstance(value, str) and path is not None:
        return value if tp in (str, Any, object) else OMITTED
    try:
        return convert_value(tp, value)
    except (Misfit, TypeError, ValueError, ArithmeticError, UnsupportedError):
        return to_plain(value)


def convert_partial_key(tp: Any, key: str) -> Any:
    """Return the key of a dict, which is complete, or the text where it does not fit its type."""
    try:
        return convert_key(tp, key)
    except (Misfit, TypeError, ValueError, ArithmeticError, UnsupportedError):
        return key


def convert_items(items: Any, type_at: Any, path: Path) -> list[tuple[Any, Any]]:
    """Return keys or indices with the partial values of an array or object."""
    return [(key, convert_partial(type_at(key), item, path[1:] if path and path[0] == key else None))
            for key, item in items]  # fmt: skip


def item_type(origin: Any, args: tuple[Any, ...], index: int) -> Any:
    """Return the type of an item of an array."""
    if origin is tuple and args[-1:] != (Ellipsis,):
        return args[index] if index < len(args) else Any
    return args[0] if args else Any


def convert_fields(tp: Any, value: dict[str, Any], path: Path) -> Any:
    """Return a partial instance of a class with named fields."""
    made, hints = partial_model(tp), hints_of(tp)
    names = {key: name for name, key in keys_of(tp).items()}
    renamed = [(names.get(key, key), item) for key, item in value.items()]
    place = (names.get(path[0], path[0]), *path[1:]) if path and isinstance(path[0], str) else path
    found = {}
    for name, item in convert_items(renamed, lambda name: hints.get(name, Any), place):
        if item is not OMITTED and (name in hints or hasattr(tp, "model_fields")):
            found[name] = item
    if is_typeddict(get_origin(tp) or tp):
        return found
    if hasattr(made, "model_construct"):
        return made.model_construct(**found)
    return made(**found)


def keys_of(tp: Any) -> dict[str, str]:
    """Return the key in JSON of each field of a Pydantic model that has an alias."""
    declared = getattr(tp, "model_fields", None) or {}
    aliases = {name: one.validation_alias or one.alias for name, one in declared.items()}
    return {name: alias for name, alias in aliases.items() if isinstance(alias, str)}


def choose_member(members: tuple[Any, ...], value: Any) -> Any:
    """Return the member of a union that a partial value belongs to: the first that what is written does not exclude."""
    return next((one for one in members if may_become(one, value)), Any)


def may_become(tp: Any, value: Any) -> bool:
    """Return whether a partial value may become one of the type: its kind of JSON value fits, and for a class its keys
    and those of its fields that are literals.
    """
    tp, origin, args = strip_wrappers(tp)
    if tp in (Any, object):
        return True
    if origin is Union or origin is types.UnionType:
        return any(may_become(one, value) for one in args)
    if origin is Literal:
        return any(equal_json(one, value) or (isinstance(value, str) and str(one).startswith(value)) for one in args)
    if is_root_model(tp):
        return may_become(hints_of(tp)["root"], value)
    base = origin if origin is not None else tp
    if isinstance(value, dict):
        if not has_fields(tp):
            return isinstance(base, type) and issubclass(base, dict)
        hints, names = hints_of(tp), {key: name for name, key in keys_of(tp).items()}
        known = {names.get(key, key): item for key, item in value.items()}
        literals = [key for key in known if key in hints and strip_wrappers(hints[key])[1] is Literal]
        return known.keys() <= hints.keys() and all(may_become(hints[key], known[key]) for key in literals)
    if isinstance(value, list):
        return isinstance(base, type) and not has_fields(base) and not issubclass(base, (str, dict, int, float))
    if value is None:
        return tp in (None, type(None))
    if isinstance(value, str):
        return tp not in (None, type(None), bool, int, float) and not has_fields(base) and base not in (list, dict, set)
    return fits_scalar(tp, value)


def fits_scalar(tp: Any, value: Any) -> bool:
    """Return whether a complete number or boolean is of the type."""
    try:
        convert_value(tp, value)
    except (Misfit, TypeError, ValueError, ArithmeticError, UnsupportedError):
        return False
    return True
