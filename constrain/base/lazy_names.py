"""Lazy names: public names of a package whose modules are imported when one of their names is first used.

A package that offers names of many modules would import all of them with the first. With the names imported for type
checkers only, and

    __getattr__ = import_lazily(__name__, {"form": "Form literal", "sources": "lark regex"})

the module `form` is imported when `Form` or `literal` is first looked up (PEP 562).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["import_lazily"]


def import_lazily(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function `__getattr__` of a package.

    package: its `__name__`. modules: the names that each of its modules defines, separated by spaces.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
